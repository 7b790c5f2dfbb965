# SPDX-License-Identifier: Apache-2.0
"""The header and the library as other people build with them: C++, static programs, sandboxes."""
import json
import os
import pathlib
import platform
import re
import shutil
import subprocess

import pytest

from cli_tools import SONDE, load_tool, needs_tools, read_json

pytestmark = needs_tools

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ROOT / "tests/e2e/programs"
PKG_CONFIG = {**os.environ, "PKG_CONFIG_PATH": ":".join(map(str, ROOT.glob(".venv/lib*/**/pkgconfig")))}


def flags(*options):
    done = subprocess.run(["pkg-config", *options, "sonde"], env=PKG_CONFIG, capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip("sonde is not installed with its sonde.pc: run `make`")
    return done.stdout.split()


def build(compiler, source, to, *options):
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}")
    done = subprocess.run([compiler, "-O1", source, "-o", to, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return to


def ranges(trace):
    return {row["key"]: row["count"] for row in read_json("report", trace, "--view", "ops", "--json")["rows"]}


@pytest.mark.parametrize("compiler", ["g++", "clang++"])
@pytest.mark.parametrize("standard", [11, 14, 17, 20])
def test_the_headers_are_clean_in_cxx(tmp_path, standard, compiler):
    library = flags("--variable=libdir")[0]
    program = build(compiler, PROGRAMS / "header.cc", tmp_path / "header", f"-std=c++{standard}", "-Wall", "-Wextra",
                    "-Wshadow", "-Wconversion", "-Wold-style-cast", "-Wzero-as-null-pointer-constant", "-Werror",
                    "-I", ROOT / "include", *flags("--libs"), f"-Wl,-rpath,{library}")
    subprocess.run([program], check=True, cwd=tmp_path)
    assert ranges(tmp_path / "header.sonde")["innermost"] == 1


def test_a_static_program_records(tmp_path):
    program = build("cc", PROGRAMS / "sandboxed.c", tmp_path / "static", "-static",
                    *flags("--static", "--cflags", "--libs"))
    assert b"INTERP" not in subprocess.run(["readelf", "-l", program], capture_output=True).stdout
    done = subprocess.run([program, tmp_path / "x.sonde"], capture_output=True, text=True)
    assert done.returncode in (0, 77), done.stderr
    if done.returncode == 0:
        assert ranges(tmp_path / "x.sonde") == {"range": 3000}
    run = subprocess.run([SONDE, "run", "-o", tmp_path / "run.sonde", "--", program, tmp_path / "unused"],
                         capture_output=True, text=True)
    assert run.returncode == done.returncode, run.stderr
    if done.returncode == 0:
        assert ranges(tmp_path / "run.sonde") == {"range": 3000}


@pytest.mark.parametrize("how", ["static", "shared"])
def test_constructors_and_destructors_are_recorded(tmp_path, how):
    more = ["-static", *flags("--static", "--cflags", "--libs")] if how == "static" else [
        *flags("--cflags", "--libs"), f"-Wl,-rpath,{flags('--variable=libdir')[0]}"]
    program = build("cc", PROGRAMS / "early.c", tmp_path / "early", *more)
    subprocess.run([SONDE, "run", "-q", "-o", tmp_path / "x.sonde", "--", program], check=True, timeout=60)
    assert ranges(tmp_path / "x.sonde") == {"constructor": 1, "main": 1, "destructor": 1}


@pytest.mark.parametrize("how", ["recording", "stopped", "threads", "exit"])
def test_a_plugin_with_the_recorder_in_it_can_be_unloaded(tmp_path, how):
    """Unloaded and loaded again, the recording open or not, threads that marked ending later or at that moment."""
    library = flags("--variable=libdir")[0]
    plugin = build("cc", PROGRAMS / "plugin.c", tmp_path / "plugin.so", "-shared", "-fPIC", *flags("--cflags"),
                   f"{library}/libsonde_record.a", "-pthread")
    host = build("cc", PROGRAMS / "unloads.c", tmp_path / "host", "-ldl", "-pthread")
    done = subprocess.run([host, plugin, tmp_path / "x", how, "6"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    rounds = 1 if how == "exit" else 6
    assert done.stdout.split() == ["loaded", "unloaded"] * rounds, done.stderr
    for i in range(rounds):
        assert ranges(tmp_path / f"x{i}.sonde") == {"step": 40_000}
        ledger = read_json("report", tmp_path / f"x{i}.sonde", "--view", "ledger", "--json")
        assert not [row for row in ledger["rows"] if row["key"] in ("unclosed", "lost_events", "unfinished")], ledger


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers of calls are x86-64's")
def test_the_calls_of_the_sandbox_page_suffice(tmp_path):
    library = flags("--variable=libdir")[0]
    program = build("cc", PROGRAMS / "sandboxed.c", tmp_path / "sandboxed", *flags("--cflags", "--libs"),
                    "-pthread", f"-Wl,-rpath,{library}")
    listed = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    page = re.search(r"```\n(.*?)```", (ROOT / "docs/SANDBOX.md").read_text(), re.S).group(1).split()
    assert page == listed
    done = subprocess.run([program, tmp_path / "x.sonde"], capture_output=True, text=True)
    if done.returncode == 77:
        pytest.skip("this machine has no seccomp filters")
    assert done.returncode == 0, f"killed by its filter: {done.returncode}"
    assert ranges(tmp_path / "x.sonde") == {"range": 3000}


def test_the_recorder_builds_with_musl(tmp_path):
    """Another libc: its library records, and glibc's program reads. The whole command line: the stage `musl`."""
    headers = load_tool("test").kernel_headers(tmp_path / "kernel")
    commands = json.loads((ROOT / "build/compile_commands.json").read_text())
    sources = [ROOT / "build" / one["file"] for one in commands if one["output"].startswith("src/libsonde_record.so")]
    assert len(sources) > 20
    library = build("musl-gcc", sources[0], tmp_path / "libsonde_record.so.1", *sources[1:], "-O0", "-std=c17", "-Wall", "-Werror",
                    "-fPIC", "-shared", "-D_GNU_SOURCE", "-DSND_SIDE_RECORD", "-fvisibility=hidden", "-idirafter", headers,
                    *(f"-I{ROOT / folder}" for folder in ("src", "include", "build")), "-pthread")
    program = build("musl-gcc", PROGRAMS / "two_layers.c", tmp_path / "prog", "-I", ROOT / "include", library, "-pthread",
                    f"-Wl,-rpath,{tmp_path}")
    subprocess.run([SONDE, "run", "-o", tmp_path / "x.sonde", "--", program], check=True)
    assert ranges(tmp_path / "x.sonde") == {"layer": 18}
