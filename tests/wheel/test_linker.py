# SPDX-License-Identifier: Apache-2.0
"""tools/cc-old-glibc, by which a wheel is compiled here and linked for glibc 2.28: what newer headers make of a call links, too."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not os.environ.get("SONDE_WHEEL"), reason="it takes long: run `make test-wheel`")

# As the headers of glibc 2.38 and later have it compiled, on any machine.
SOURCE = """
#include <stdio.h>
extern long               __isoc23_strtol(const char *, char **, int);
extern unsigned long      __isoc23_strtoul(const char *, char **, int);
extern long long          __isoc23_strtoll(const char *, char **, int);
extern unsigned long long __isoc23_strtoull(const char *, char **, int);
extern long               __isoc23_strtoimax(const char *, char **, int);
extern unsigned long      __isoc23_strtoumax(const char *, char **, int);
extern int                __isoc23_sscanf(const char *, const char *, ...);
extern int                __isoc23_fscanf(FILE *, const char *, ...);
int main(void)
{
    char *end;
    int   a = 0, b = 0;
    int   count = __isoc23_sscanf("5 6", "%d %d", &a, &b);
    long  seven = __isoc23_strtol("-7x", &end, 10);
    count += __isoc23_fscanf(stdin, "%d", &b);
    printf("%ld %s %lu %lld %llu %ld %lu %d %d %d\\n", seven, end, __isoc23_strtoul("ff", NULL, 16),
           __isoc23_strtoll("-8", NULL, 0), __isoc23_strtoull("010", NULL, 0), __isoc23_strtoimax("-9", NULL, 10),
           __isoc23_strtoumax("9", NULL, 10), count, a, b);
    return 0;
}
"""


def test_names_of_newer_headers_are_the_old_functions(tmp_path):
    zig = subprocess.run([ROOT / "tools/wheel", "--zig"], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]
    (tmp_path / "calls.c").write_text(SOURCE)
    env = {**os.environ, "OLD_GLIBC_ZIG": zig, "OLD_GLIBC_TARGET": f"{os.uname().machine}-linux-gnu.2.28"}
    done = subprocess.run([ROOT / "tools/cc-old-glibc", "calls.c", "-o", "calls"], cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    assert subprocess.run([tmp_path / "calls"], input="17", stdout=subprocess.PIPE, text=True, check=True).stdout == "-7 x 255 -8 8 -9 9 3 5 17\n"
    # and none of them is asked of the machine that it runs on, nor what came after that glibc
    symbols = subprocess.run(["nm", "-D", "--undefined-only", tmp_path / "calls"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert "__isoc23" not in symbols
    assert max(tuple(map(int, version.split("."))) for version in re.findall(r"GLIBC_(2\.\d+)", symbols)) <= (2, 28)
