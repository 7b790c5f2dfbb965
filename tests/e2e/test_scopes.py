# SPDX-License-Identifier: Apache-2.0
"""C++ exceptions through C code that has scopes open: the C++ scope around the catch ends them."""
import json
import os
import pathlib
import shutil
import subprocess

import pytest

from cli_tools import SONDE

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = pathlib.Path(os.environ.get("SONDE", ROOT / "build/src/cli/sonde")).parents[1]

C_PART = r"""
#include <sonde/record.h>
void call_back(void (*function)(void));
void call_back(void (*function)(void))
{
    SONDE_RANGE("c outer");
    {
        SONDE_RANGE("c inner");
        function();
    }
}
"""

CPP_PART = r"""
#include <sonde/record.h>
#include <stdexcept>
extern "C" void call_back(void (*function)(void));
static void fail() { SONDE_RANGE("c++ leaf"); throw std::runtime_error("no"); }
int main(int, char **argv)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    options.path = argv[1];
    if (sonde_start(&options, nullptr) != SONDE_OK)
        return 1;
    SONDE_RANGE("program");
    for (int i = 0; i < 500; i++) {
        SONDE_RANGE("request");
        try {
            call_back(fail);
        } catch (const std::exception &) {
        }
    }
    return 0;
}
"""


@pytest.mark.skipif(not shutil.which("g++") or not shutil.which("gcc"), reason="needs gcc and g++")
def test_exceptions_through_c_code(tmp_path):
    (tmp_path / "part.c").write_text(C_PART, encoding="utf-8")
    (tmp_path / "main.cpp").write_text(CPP_PART, encoding="utf-8")
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "include")]
    # Without -fexceptions, as C is compiled, the scopes of C are not ended by an exception.
    subprocess.run(["gcc", *flags, "-fno-exceptions", "-fasynchronous-unwind-tables", "-c",
                    "part.c"], cwd=tmp_path, check=True)
    subprocess.run(["g++", *flags, "main.cpp", "part.o", "-o", "program",
                    str(LIBRARY / "libsonde_record.so"), f"-Wl,-rpath,{LIBRARY}"],
                   cwd=tmp_path, check=True)
    env = {k: v for k, v in os.environ.items() if not k.startswith("SONDE_")}
    subprocess.run(["./program", "t.sonde"], cwd=tmp_path, check=True, env=env)
    done = subprocess.run([SONDE, "report", "t.sonde", "--json"], cwd=tmp_path, check=True,
                          stdout=subprocess.PIPE)
    rows = {row["key"]: row for row in json.loads(done.stdout)["rows"]}
    assert {name: row["count"] for name, row in rows.items()} == {
        "program": 1, "request": 500, "c outer": 500, "c inner": 500, "c++ leaf": 500}
    totals = {name: row["cpu_time_total"] for name, row in rows.items()}
    assert totals["c++ leaf"] <= totals["c inner"] <= totals["c outer"] <= totals["request"]
    assert totals["request"] <= totals["program"]
