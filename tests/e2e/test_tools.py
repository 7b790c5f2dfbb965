# SPDX-License-Identifier: Apache-2.0
"""The checks of the tree can fail: each is shown something that it must refuse."""
import ast
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

import pytest
from packaging.specifiers import SpecifierSet

from cli_tools import load_tool

ROOT = pathlib.Path(__file__).resolve().parents[2]


@pytest.fixture
def tree(tmp_path):
    for folder in ("src", "include", "tools"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    return tmp_path


def layers(tree):
    return subprocess.run([ROOT / "tools/check_layers", tree], text=True, stdout=subprocess.PIPE)


def test_the_tree_as_it_is(tree):
    assert layers(tree).stdout == ""


SCHEMA = [
    ("src/model/bad.c", 'key_is(key, "python.lines");', "python.lines"),          # a key of metadata
    ("src/model/bad2.c", 'starts(key, "torch.thread 12");', "torch.thread"),      # or a prefix
    ("src/probes/bad.c", 'sonde_metadata("command", text);', "metadata.def"),     # a plain word
    ("src/view/bad.c", "sonde_trace_metadata(trace, 0, 0, &k, &v);", "read/said/trace_metadata.h"),
    ("src/model/bad3.c", 'strncmp(name, "model.pass batch=", 17);', "model.pass"),  # a range's name
    ("src/model/bad4.c", "n += row->words[2];", "tallies.def"),                     # a word by number
]


def test_what_both_sides_know_is_declared_once(tree):
    shutil.copytree(ROOT / "docs", tree / "docs")
    run = lambda: subprocess.run([ROOT / "tools/check_schema", tree], text=True,  # noqa: E731
                                 stdout=subprocess.PIPE)
    assert run().stdout == ""
    for file, line, _ in SCHEMA:
        (tree / file).write_text(f"/* {line} */\nint x;\n{line}\n")
    done = run()
    assert done.returncode == 1 and len(done.stdout.splitlines()) == len(SCHEMA)
    for file, _, says in SCHEMA:
        assert [says in said for said in done.stdout.splitlines() if said.startswith(f"{file}:3: ")] == [True], file


@pytest.mark.parametrize("old, new, says", [
    ("| END 0x01 | 1 |", "| END 0x02 | 1 |", ["Events: lacks END 0x01 | 1", "Events: not in the code: END 0x02 | 1"]),
    ("| RECORD 0xe2, RECORD_SHORT 0x64 | 8, 4 |", "| RECORD 0xe2 | 8 |", ["Events: lacks RECORD_SHORT 0x64 | 4"]),
    ("| 13 symbol |", "| 14 symbol |", ["Records: lacks 13", "Records: not in the code: 14"]),
    ("| LINE 2 |", "| LINES 2 |", ["Tallies: lacks LINE 2", "Tallies: not in the code: LINES 2"]),
    ("1 REASON (text)", "1 REASON (real)", ["Facts: lacks FAILURE 3", "Facts: not in the code: FAILURE 3"]),
    ("| torch.names_only | number |", "| torch.names_only | text |",
     ["Metadata: lacks torch.names_only | number", "Metadata: not in the code: torch.names_only | text"]),
    ("| `process.rss` |", "| `process.size` |",
     ["Names that sonde gives: lacks `process.rss`", "Names that sonde gives: not in the code: `process.size`"]),
    ("| lost_names, cut_names |", "| lost_names |", ["Ledger keys: lacks cut_names"]),
    ("`src/format/attrs.def`", "a list", ["does not name src/format/attrs.def"]),
])
def test_a_table_of_the_format_that_differs_is_refused(tree, old, new, says):
    shutil.copytree(ROOT / "docs", tree / "docs")
    page = tree / "docs/FORMAT.md"
    text = page.read_text()
    assert text.count(old) == 1
    page.write_text(text.replace(old, new))
    done = subprocess.run([ROOT / "tools/check_schema", tree], text=True, stdout=subprocess.PIPE)
    assert done.returncode == 1 and len(done.stdout.splitlines()) == len(says)
    assert all(line.startswith(f"docs/FORMAT.md: {begin}") for line, begin in zip(done.stdout.splitlines(), says))


@pytest.mark.parametrize("file, text, at", [
    ("src/cli/bad.c", 'fail("--rows needs a whole "\n     "number from %d");\n', 1),
    ("src/cli/bad.c", 'int x;\nfail("there is no view \'%s\'");\n', 2),
    ("python/bad.py", 'raise ValueError(f"hz is from 1 to 20000, not {hz}")\n', 1),
    ("man/bad.1", ".It Fl -wide\neven when stderr\nis no terminal\n", 3),
    ("docs/bad.md", "It is not\ncut short.\n", 2),
])
def test_paraphrases_are_refused(tmp_path, file, text, at):
    run = lambda: subprocess.run([ROOT / "tools/check_words", tmp_path], text=True,  # noqa: E731
                                 stdout=subprocess.PIPE)
    (tmp_path / file).parent.mkdir(parents=True)
    if file.endswith((".c", ".py")):  # comments and docstrings are not looked at
        (tmp_path / file).write_text("/* a whole number */\n" if file.endswith(".c") else '"""A whole number."""\n')
        assert run().stdout == "" and run().returncode == 0
    (tmp_path / file).write_text(text)
    done = run()
    assert done.returncode == 1 and re.match(rf"{file}:{at}: '.+': write: ", done.stdout), done.stdout


def test_each_file_has_a_test_that_is_found(tmp_path):
    def run():
        done = subprocess.run([ROOT / "tools/check_tests", tmp_path], text=True, stdout=subprocess.PIPE)
        return done.returncode, done.stdout
    files = ["src/read/walk/merge.c", "src/read/walk/rare.c", "src/view/ops/ops_view.c", "src/export/csv/csv.c", "src/cli/command/cmd_run.c", "src/probes/x/y.c",
             "tests/unit/test_merge.c", "tests/unit/test_walk.c", "tests/e2e/test_walks.py", "tests/e2e/test_x.py", *(
                 f"tests/golden/{case}/commands" for case in ("view-ops", "export-csv", "command-run"))]
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    readme = tmp_path / "src/read/README.md"
    assert run() == (1, "src/read/walk/rare.c: no test has its name, and no README above it says which covers it\n")
    readme.write_text("# read\n\n`rare` is rare.\n\nTests: test_walk (`seldom`).\n\n`rare`\n")
    assert run() == (1, "src/read/walk/rare.c: no test has its name, and src/read/README.md does not say which covers it\n")
    for said in ("test_walk (`rare`)", "e2e/test_walks and golden/view-ops (`walk/rare`)", "test_walk (`walk`)", "test_walk (`ra*`)"):
        readme.write_text(f"# read\n\nTests: {said}.\n")
        assert run() == (0, ""), said
    for gone in ("test_gone", "e2e/test_gone", "golden/gone", "fuzz/gone"):
        readme.write_text(f"# read\n\nTests: test_walk (`rare`),\n{gone}.\n")
        assert run() == (1, f"src/read/README.md: names {gone}, which is not there\n")


def test_repeats(tmp_path):
    run = lambda: subprocess.run([ROOT / "tools/check_repeats", tmp_path], text=True,  # noqa: E731
                                 stdout=subprocess.PIPE)
    same = "".join(f"    put_something(out, {number});\n" for number in range(6))
    for folder in ("src/view", "python/sonde"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "src/view/one.c").write_text("/* one */\nint f(void)\n{\n" + same + "}\n")
    (tmp_path / "src/view/two.c").write_text("/* two */\n" + same.replace("5", "7"))
    assert run().returncode == 0, "five lines are no repeat"
    (tmp_path / "src/view/three.c").write_text("/* three */\nvoid g(void)\n{\n\n" + same + "}\n")
    done = run()
    assert done.returncode == 1
    assert done.stdout.startswith("src/view/one.c:4 and src/view/three.c:5: 6 lines or more are the same")


@pytest.mark.parametrize("file, line", [
    ("src/read/bad.c", '#include "record/state.h"'),       # reading meets recording
    ("src/record/bad.c", '#include "read/file/source.h"'),      # and the other way
    ("src/base/bad.c", '#include "format/layout.h"'),      # upwards
    ("src/model/bad.c", '#include "view/render/table.h"'),        # upwards
    ("src/view/bad.c", '#include <sonde/record.h>'),       # by the public header
    ("src/record/bad.c", '#include "sonde/trace.h"'),
    ("src/record/bad.c", '#include <zstd.h>'),             # libc and threads only
    ("src/base/bad.c", '#include "error.h"'),              # the layer must show
    ("src/python/read/bad.c", '#include <sonde/record.h>'),  # the package's C: a folder for each side
    ("src/python/record/bad.c", '#include <sonde/trace.h>'),
    ("src/python/record/bad.c", '#include "python/read/rows.h"'),
    ("src/python/bad.c", '#include <stdio.h>'),
    ("src/new/bad.c", '#include <stdio.h>'),               # a folder without a place
    ("src/record/thread/thread.c", '#include "record/session/session.h"'),  # against the order of the recorder's files
    ("src/record/file/supply.h", '#include "record/thread/thread.h"'),
    ("src/record/bad.c", '#include <stdio.h>'),            # a file that is not in that order
    ("include/sonde/record.h", '#include "sonde/trace.h"'),
    ("include/sonde/probe.h", '#include "sonde/model.h"'),  # a part of record.h
])
def test_layers_refuses(tree, file, line):
    path = tree / file
    path.parent.mkdir(exist_ok=True)
    with path.open("a") as out:
        out.write(f"{line}\n")
    done = layers(tree)
    assert done.returncode == 1 and file in done.stdout


@pytest.mark.parametrize("before, after, said", [
    (" *   session/session ", " *   session/sitting ", "sitting"),  # a file that is not there
    ("lowest first", "in some order", "not in the list"),  # no list at all
])
def test_layers_refuses_a_wrong_list_of_files(tree, before, after, said):
    state = tree / "src/record/state.h"
    state.write_text(state.read_text().replace(before, after, 1))
    done = layers(tree)
    assert done.returncode == 1 and said in done.stdout


def test_layers_refuses_a_full_folder_and_a_second_file_of_a_name(tree):
    for number in range(26):
        (tree / "src/hook" / f"h{number}.h").write_text("")
    (tree / "src/hook/buf.h").write_text("")
    done = layers(tree)
    assert done.returncode == 1 and re.search(r"^src/hook: \d+ files, at most 25", done.stdout, re.M)
    assert "src/hook/buf.h: src/base/text/buf.h has the same name" in done.stdout


def test_layers_refuses_a_name_of_the_headers_own(tree):
    (tree / "src/probes/bad.c").write_text('/* sonde_lane_ */ const char *x = "sonde_lane_";\nint y = sonde_lane_.busy;\n')
    done = layers(tree)
    assert done.returncode == 1
    assert done.stdout.splitlines() == ["src/probes/bad.c: uses sonde_lane_, which is the public headers' own"]


def test_layers_refuses_a_library_in_the_recorder(tree):
    build = tree / "src/meson.build"
    build.write_text(build.read_text().replace("dependencies: threads,", "dependencies: [threads, zstd],", 1))
    done = layers(tree)
    assert done.returncode == 1 and "zstd" in done.stdout


def build_files(tree, files, check="check_circles"):
    """What the check says of objects of {source: text}, and the list of them as meson writes it."""
    commands = []
    for source, text in files.items():
        output = "src/libx.a.p/" + source.replace("/", "_") + ".o"
        for path in (tree / source, tree / "build" / output):
            path.parent.mkdir(parents=True, exist_ok=True)
        (tree / source).write_text(text)
        subprocess.run(["cc", "-c", "-w", "-o", tree / "build" / output, tree / source], check=True)
        commands.append({"directory": str(tree / "build"), "file": f"../{source}", "output": output})
    (tree / "build/compile_commands.json").write_text(json.dumps(commands))
    return subprocess.run([ROOT / "tools" / check, tree / "build"], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def test_circles_are_refused(tmp_path):
    files = {"src/model/a.c": "void b(void); void a(void) { b(); }",
             "src/model/b.c": "void c(void); void b(void) { c(); }",
             "src/view/c.c": "int shown; void c(void) { }"}
    assert build_files(tmp_path, files).returncode == 0
    files["src/view/c.c"] = "void a(void); int shown; void c(void) { a(); }"
    done = build_files(tmp_path, files)
    assert done.returncode == 1
    first, *closed_by = done.stdout.splitlines()
    assert first == "3 files call each other in a circle: src/model/a.c, src/model/b.c, src/view/c.c"
    assert "    src/view/c.c -> src/model/a.c: a" in closed_by
    # a variable closes one as well as a function does
    files["src/view/c.c"] = "extern int drawn; int shown; int c(void) { return drawn; }"
    files["src/view/d.c"] = "extern int shown; int drawn; int d(void) { return shown; }"
    assert "2 files call each other in a circle: src/view/c.c, src/view/d.c" in build_files(tmp_path, files).stdout


def test_circles_that_may_stay_are_within_their_folder(tmp_path):
    files = {"src/record/a.c": "void b(void); void a(void) { b(); }", "src/record/x/b.c": "void a(void); void b(void) { a(); }"}
    assert build_files(tmp_path, files).returncode == 0
    files["src/format/c.c"] = "void a(void); void c(void) { a(); }"
    files["src/record/a.c"] += " void c(void); void also(void) { c(); }"
    assert build_files(tmp_path, files).returncode == 1


def test_circles_need_a_build(tmp_path):
    (tmp_path / "build").mkdir()
    (tmp_path / "build/compile_commands.json").write_text(json.dumps(
        [{"directory": str(tmp_path / "build"), "file": "../src/a.c", "output": "src/libx.a.p/a.c.o"}]))
    done = subprocess.run([ROOT / "tools/check_circles", tmp_path / "build"], text=True, stderr=subprocess.PIPE)
    assert done.returncode == 1 and "is not built: run make" in done.stderr


def test_functions_for_one_file_or_for_tests_are_refused(tmp_path):
    files = {"src/model/a.c": "void snd_a(void) { } void snd_seam(void) { } void run(void) { snd_seam(); }",
             "src/view/b.c": "void snd_a(void); void b(void) { snd_a(); }",
             "tests/unit/t.c": "void snd_seam(void); void t(void) { snd_seam(); }"}
    done = build_files(tmp_path, files, "check_calls")
    assert (done.returncode, done.stderr) == (0, "")
    files["src/model/a.c"] += " void snd_own(void) { } void go(void) { snd_own(); } void snd_tried(void) { } int snd_none; /* snd_none */"
    files["tests/unit/t.c"] += " void snd_tried(void); void u(void) { snd_tried(); }"
    done = build_files(tmp_path, files, "check_calls")
    assert done.returncode == 1
    assert [line.partition("a.c: ")[2] for line in done.stderr.splitlines()] == [
        "snd_none: nothing uses it", "snd_own: no other file uses it: make it static", "snd_tried: only tests use it"]


def symbols(library):
    return subprocess.run([ROOT / "tools/check_symbols", library], text=True, stdout=subprocess.PIPE)


def test_symbols_refuses(tmp_path):
    source = tmp_path / "x.c"
    source.write_text("int sonde_start, sonde_trace_open, stray;\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", tmp_path / "libx.so", source, "-lm", "-Wl,--no-as-needed"],
                   check=True)
    subprocess.run(["cc", "-fPIC", "-c", "-o", tmp_path / "x.o", source], check=True)
    subprocess.run(["ar", "rc", tmp_path / "libx.a", tmp_path / "x.o"], check=True)
    for library in ("libx.so", "libx.a"):
        done = symbols(tmp_path / library)
        assert done.returncode == 1 and "stray" in done.stdout
    said = symbols(tmp_path / "libx.so").stdout
    assert "sonde_start without a version" in said and "does not export sonde_begin:" in said


def test_setup_knows_its_groups():
    done = subprocess.run([ROOT / "tools/setup", "nothing"], text=True, stderr=subprocess.PIPE)
    assert done.returncode == 2 and "there are" in done.stderr
    assert subprocess.run([ROOT / "tools/setup", "build"]).returncode == 0


SUITES = ROOT / "tests/data/suites"
SETUP = (ROOT / "tools/setup").read_text()
GROUPS = re.search(r'^groups="(.*)"$', SETUP, re.M).group(1).split()


def make_machine(tmp_path, known, user=0, tools=("apt-get", "apt-cache", "dpkg-query", "dpkg"), **other):
    """The environment of a machine where nothing is installed and apt knows these packages. `other`: what programs do instead."""
    programs = {
        "apt-get": f'echo "$*" >> {tmp_path}/asked',
        "apt-cache": f'if grep -qx "${{2%%:*}}" {tmp_path}/known; then echo "Candidate: 1"; else echo "Candidate: (none)"; fi',
        "dpkg-query": "exit 1",
        "dpkg": "echo arm64",
        "id": f"echo {user}",
        **other,
    }
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("sh", "tr", "mktemp", "rm", "tail", "grep", "flock", "mkdir", "rmdir", "sleep"):
        (place / name).symlink_to(shutil.which(name))
    for name in (*tools, "id"):
        (place / name).write_text(f"#!/bin/sh\n{programs[name]}\n")
        (place / name).chmod(0o755)
    (tmp_path / "known").write_text("\n".join(known) + "\n")
    return {"PATH": str(place)}


def setup_on(tmp_path, known, *groups, **machine):
    """tools/setup there, and what it asked apt-get for."""
    done = subprocess.run([ROOT / "tools/setup", *groups], env=make_machine(tmp_path, known, **machine), text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    asked = (tmp_path / "asked").read_text().splitlines() if (tmp_path / "asked").exists() else []
    return done, asked


@pytest.mark.parametrize("suite", ["bookworm", "trixie", "sid"])
def test_every_package_has_a_name_in_each_release(tmp_path, suite):
    """tests/data/suites has the names that apt knows there; `tools/test-distros --names` writes them."""
    done, asked = setup_on(tmp_path, (SUITES / suite).read_text().split(), *GROUPS)
    assert (done.returncode, done.stderr) == (0, "")
    assert asked[0] == "update" and len(asked) == 2
    installed = set(asked[1].split())
    wanted = re.search(r"^packages\(\) \{.*?^\}", SETUP, re.M | re.S).group(0)
    for alternatives in re.findall(r"'([^' ]+\|[^' ]+)'", wanted):
        assert len(installed & set(alternatives.split("|"))) == 1
    assert {"gcc", "python3-dev", "chromium", "libc6-dev:arm64"} <= installed


def test_setup_names_a_package_that_a_release_lacks_and_installs_the_rest(tmp_path):
    known = set((SUITES / "trixie").read_text().split()) - {"nodejs", "libmimalloc3"}
    done, asked = setup_on(tmp_path, known, "build", "test")
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["tools/setup: this release has no package nodejs",
                                        "tools/setup: this release has no package libmimalloc2.0|libmimalloc3"]
    assert "gcc" in asked[1].split() and "nodejs" not in asked[1]


def test_setups_beside_each_other_wait(tmp_path):
    """apt-get fails at once where another is at work; the gate's stages install at the same time."""
    busy = f'mkdir {tmp_path}/busy || {{ echo "E: Could not get lock" >&2; exit 100; }}; sleep 0.1; rmdir {tmp_path}/busy'
    env = make_machine(tmp_path, ["g++", "clang", "clang-tidy", "binutils"], **{"apt-get": busy})
    started = [subprocess.Popen([ROOT / "tools/setup", group], env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
               for group in ("torch", "lint", "torch", "lint")]
    for process in started:
        assert process.communicate(timeout=60)[1] == "" and process.returncode == 0


def test_setup_without_root_prints_the_line_to_run(tmp_path):
    done, asked = setup_on(tmp_path, ["g++"], "torch", user=1000)
    assert done.returncode == 1 and asked == []
    assert done.stderr.splitlines()[-1] == f"    sudo {ROOT}/tools/setup torch"


def test_setup_elsewhere_lists_names_of_pkg_config(tmp_path):
    done, _ = setup_on(tmp_path, [], *GROUPS, tools=())
    assert done.returncode == 0
    assert [line.split(":")[0].strip() for line in done.stderr.splitlines()[1:]] == GROUPS
    for name in ("libzstd", "zlib", "yaml-0.1", "cmocka"):
        assert re.search(rf"build: .*pkg-config: .*{name}", done.stderr)
    for dependency in re.findall(r"dependency\('([^']+)'", (ROOT / "meson.build").read_text()):
        assert dependency == "threads" or dependency in done.stderr


def test_the_layers_in_the_documentation_are_those_that_are_checked():
    may_include = load_tool("check_layers").MAY_INCLUDE
    text = (ROOT / "docs/ARCHITECTURE.md").read_text().split("## Layers")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (\d) \| (.*?) \|", text, re.M)
    level = [(folder, int(number)) for number, folders in rows for folder in re.findall(r"`src/([\w/]+)`", folders)]
    assert sorted(folder for folder, _ in level) == sorted({folder.split("/")[0] for folder in may_include})
    level = dict(level)
    for folder, lower in may_include.items():
        for other in lower:
            assert level[other] < level[folder.split("/")[0]], (folder, other)


def test_every_benchmark_has_its_section_of_the_overhead():
    overhead = load_tool("overhead")
    benches = re.search(r"^BENCHES +:= ((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.M)[1].replace("\\", "").split()
    assert sorted(overhead.SECTIONS) == sorted(["run", *benches])
    from figures import figure  # bench/ is on the path now
    results = {"command": "make bench", "date": "today", "figures": [
        {**figure(f"{bench}_x", f"what {bench} measures", 2.5, "x", 2, limit=1.25, why=f"of {bench} the half is the limit."),
         "bench": bench} for bench in overhead.SECTIONS] + [
        {**figure("heap_y", "another", 1, "ns", 0, why="of heap the half is the limit."), "bench": "heap"},
        {**figure("heap_z", "a third", 1, "ns", 1, limit="some ns", why="it was met."), "bench": "heap"}],
        "machine": dict(cpu="a", cores=2, arch="b", kernel="c", compiler="d")}
    text = overhead.render(results)
    for bench in overhead.SECTIONS:
        assert f"| what {bench} measures | 2.50× | 1.25 |  |  | at most 2.00 (**missed**) |  |\n" in text
        which = f"what {bench} measures" + ("; another" if bench == "heap" else "")
        assert f"|\n\nMissed, {which}: of {bench} the half is the limit.\n" in text
    assert "| a third | 1.00 ns | some ns |  |  | at most 1.00 |  |\n" in text and "it was met" not in text


@pytest.mark.parametrize("name", sorted(path.name for path in (ROOT / "bench").glob("*.py") if "ArgumentParser" in path.read_text()
                                        and not re.search("^(import|from) torch", path.read_text(), re.M)) + ["run", "soak"])
def test_benchmarks_have_help(name, tmp_path):
    """None takes --help for the name of a trace, or begins to measure."""
    words = [str(ROOT / "build/bench/soak")] if name == "soak" else [sys.executable, str(ROOT / "bench" / name)]
    done = subprocess.run([*words, "--help"], cwd=tmp_path, text=True, stdout=subprocess.PIPE, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("usage: ") and not list(tmp_path.iterdir())


def test_benchmarks_print_their_figures_and_nothing_else():
    """By bench/figures.py alone; a print with `file` talks to another process."""
    for path in (ROOT / "bench").glob("*.py"):
        tree = ast.parse(path.read_text())
        prints = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
                  and node.func.id == "print" and not any(word.arg == "file" for word in node.keywords)]
        assert path.name == "figures.py" or not prints, (path.name, prints)
        assert path.name == "figures.py" or "conclude(" in path.read_text(), path.name


@pytest.mark.parametrize("result, text, expected", [
    ("OK", "[  PASSED  ] 7 test(s).", (7, 0, 0)),
    ("FAIL", "[  PASSED  ] 5 test(s).\n[  FAILED  ] 2 test(s), listed below:", (5, 2, 0)),
    ("FAIL", "[  PASSED  ] 7 test(s).", (7, 1, 0)),  # a leak or a race after the last case
    ("OK", "[  PASSED  ] 3 test(s).\n[  SKIPPED ] 1 test(s), listed below:", (3, 0, 1)),
    ("OK", "", (1, 0, 0)),
    ("FAIL", "", (0, 1, 0)),
    ("TIMEOUT", "", (0, 1, 0)),
    ("ERROR", "", (0, 1, 0)),
    ("SKIP", "no such device", (0, 0, 1)),
])
def test_what_counts_as_passed(result, text, expected):
    tally = load_tool("test").count_program({"name": "x", "result": result, "stdout": "", "stderr": text})
    assert (tally.passed, tally.failed, tally.skipped) == expected


@pytest.fixture(scope="module")
def three_programs_build(tmp_path_factory):
    """A build with a test that passes, one that passes at its second run, and one that never does."""
    place = tmp_path_factory.mktemp("three")
    (place / "meson.build").write_text(
        "project('three')\nsh = find_program('sh')\n"
        "test('good', sh, args: ['-c', 'test $SPEED = slow'], suite: 'unit', timeout: 600)\n"
        "test('second', sh, args: ['-c', 'test $SPEED = slow && ! mkdir @0@/once'], suite: 'unit', timeout: 600)\n"
        "test('never', sh, args: ['-c', 'echo the reason; false'], suite: 'unit', timeout: 600)\n"
        "test('other', sh, args: ['-c', 'false'], suite: 'other')\n".replace("@0@", str(place)))
    subprocess.run(["meson", "setup", "built"], cwd=place, check=True, stdout=subprocess.PIPE)
    return place


@pytest.fixture
def three_programs(three_programs_build):
    """tools/test, for that build; the second program has not run yet."""
    shutil.rmtree(three_programs_build / "once", ignore_errors=True)
    tool = load_tool("test")
    tool.ROOT = str(three_programs_build)
    tool.wait_until_quiet = lambda: None
    return tool


def test_a_program_is_tried_again(three_programs):
    """With the same wrapper and environment; only what failed runs again."""
    calls, run = [], three_programs.run
    three_programs.run = lambda command, **extra: calls.append(command) or run(command, **extra)
    tally = three_programs.meson_test("built", "--suite", "unit", "--wrap=env A=1", env={"SPEED": "slow"})
    assert (tally.passed, tally.failed, tally.skipped) == (2, 1, 0)
    assert tally.flaky == ["three:unit / second"]
    assert [(name, "the reason" in text) for name, text in tally.failures] == [("three:unit / never", True)]
    first, second, third = calls
    assert second[-2:] == ["never", "second"] and set(first) <= set(second)
    assert third[-1:] == ["never"] and third[:-1] == second[:-2]


@pytest.mark.parametrize("taken, looks, says", [([0.02], 1, False), ([0.5, 0.04, 0.02], 3, True), ([0.5] * 1000, None, True)])
def test_what_failed_is_tried_again_on_a_quiet_machine(capsys, monkeypatch, taken, looks, says):
    """`taken`: of each second that was asked for. The last one is never quiet."""
    tool, calls = load_tool("test"), iter(range(10000))
    monkeypatch.setattr(tool, "LOOK_S", 0.02)

    def stolen():  # before and after each look
        call = next(calls)
        return sum(taken[:(call + 1) // 2]) * tool.LOOK_S

    monkeypatch.setattr(tool, "stolen", stolen)
    tool.wait_until_quiet(limit=0.5)
    made = next(calls) // 2
    assert made == looks if looks else 1 < made < 20
    assert ("for a quiet machine" in capsys.readouterr().out) == says
    monkeypatch.setattr(tool, "UNTIL", time.time())
    tool.wait_until_quiet()
    assert next(calls) == 2 * made + 1  # there is no time for it


@pytest.mark.parametrize("flaky, last, status", [("", "2 passed, 0 failed, 0 skipped", 0),
                                                 ("fail", "1 passed, 1 failed, 0 skipped", 1)])
def test_what_is_flaky_stands_before_the_last_line(three_programs, capsys, monkeypatch, flaky, last, status):
    monkeypatch.setenv("FLAKY", flaky)
    monkeypatch.setattr(three_programs, "TRIED_AGAIN_MAX", 1)
    monkeypatch.setattr(three_programs, "STAGES", {"some": (lambda: three_programs.meson_test(
        "built", "good", "second", env={"SPEED": "slow"}), "three programs")})
    with pytest.raises(SystemExit) as stopped:
        three_programs.main(["some"])
    assert stopped.value.code == status
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "flaky: some: three:unit / second (passed when it was tried again)", last]


def test_many_failures_are_not_tried_again(three_programs, monkeypatch):
    monkeypatch.setattr(three_programs, "TRIED_AGAIN_MAX", 1)
    tally = three_programs.meson_test("built", "--suite", "unit", env={"SPEED": "slow"})
    assert (tally.passed, tally.failed, tally.flaky) == (1, 2, [])


def test_lint_runs_beside_e2e(capsys, monkeypatch):
    """Each stage here waits for the other; lint has the lowest priority, and is printed in its place."""
    tool, e2e, lint, own = load_tool("test"), threading.Event(), threading.Event(), os.nice(0)

    def run_e2e():
        e2e.set()
        return tool.Tally(passed=2) if lint.wait(60) else None

    def run_lint():
        lint.set()
        return tool.Tally(passed=3) if e2e.wait(60) and os.nice(0) == 19 else None

    monkeypatch.setattr(tool, "STAGES", {"e2e": (run_e2e, "first"), "lint": (run_lint, "second")})
    with pytest.raises(SystemExit) as stopped:
        tool.main(["e2e", "lint"])
    assert stopped.value.code == 0 and os.nice(0) == own
    words = [line.split()[:2] for line in capsys.readouterr().out.splitlines()]
    assert words == [["==", "e2e:"], ["e2e:", "2"], ["==", "lint:"], ["lint:", "3"], ["5", "passed,"]]


def test_a_stage_whose_time_is_over_is_left_out(capsys, monkeypatch):
    tool = load_tool("test")

    def run_first():
        monkeypatch.setattr(tool, "UNTIL", time.time() - 1)
        return tool.Tally(passed=2)

    monkeypatch.setattr(tool, "STAGES", {"first": (run_first, "one"), "second": (lambda: tool.Tally(failed=1), "two")})
    with pytest.raises(SystemExit) as stopped:
        tool.main(["first", "second"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out.splitlines()[-2:] == [
        "== second: left out: the time that TEST_UNTIL gives is over", "2 passed, 0 failed, 1 skipped"]


def test_temporary_files_are_in_memory_where_there_is_room(monkeypatch, tmp_path):
    tool = load_tool("test")
    monkeypatch.setattr(tool, "MEMORY_FOLDER", str(tmp_path))
    monkeypatch.setattr(tool, "MEMORY_LEAST", 1)
    with tool.temporary_files() as env:
        pathlib.Path(env["TMPDIR"], "file").write_text("")
        assert pathlib.Path(env["TMPDIR"]).parent == tmp_path and "TORCHINDUCTOR_CACHE_DIR" in env
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(tool, "MEMORY_LEAST", 1 << 60)
    with tool.temporary_files() as env:
        assert env == {}
    assert not tool.has_room(tmp_path / "none")


def test_a_source_is_checked_once_for_each_set_of_macros(tmp_path):
    def command(file, *options):
        return {"directory": str(ROOT / "build"), "file": f"../{file}", "command": " ".join(["cc", *options, "-c"])}
    twice = [command("src/a.c", "-Ione", "-DX"), command("src/a.c", "-Itwo", "-DX"), command("src/a.c", "-DY"),
             command("src/b.c"), command("tests/c.c")]
    (tmp_path / "compile_commands.json").write_text(json.dumps(twice))
    done = subprocess.run([ROOT / "tools/compile_commands", tmp_path, tmp_path / "chosen", "src/a.c", "src/b.c", "src/none.c"],
                          cwd=ROOT, text=True, stdout=subprocess.PIPE, check=True)
    assert done.stdout.split() == ["src/a.c", "src/b.c"]
    assert json.loads((tmp_path / "chosen/compile_commands.json").read_text()) == [twice[0], *twice[2:4]]


def test_what_clang_tidy_found_clean_is_checked_again_when_it_changes(monkeypatch, tmp_path):
    tool, checked = load_tool("tidy"), []

    def check(_folder, _checks, files):
        checked.extend(files)
        return all("bad" not in pathlib.Path(file).read_text() for file in files)

    def found(checks="one"):
        checked.clear()
        return tool.main("build", "lint", checks, "a.c", "b.c", "unknown.c"), sorted(checked)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tool, "AT_ONCE", 1)
    monkeypatch.setattr(tool, "check", check)
    monkeypatch.setattr(tool, "includes", lambda build: {"a.c": {"a.c", "both.h"}, "b.c": {"b.c", "both.h"}})
    for name in ("a.c", "b.c", "both.h", "unknown.c", ".clang-tidy"):
        pathlib.Path(name).write_text("")
    pathlib.Path("lint").mkdir()
    pathlib.Path("lint/compile_commands.json").write_text("[]")
    every = ["a.c", "b.c", "unknown.c"]
    assert found() == (0, every)
    assert found() == (0, ["unknown.c"])  # nobody knows what it includes
    pathlib.Path("a.c").write_text("bad")
    assert found() == found() == (1, ["a.c", "unknown.c"])
    pathlib.Path("a.c").write_text("good")
    assert found() == (0, ["a.c", "unknown.c"])
    for change in (lambda: pathlib.Path("both.h").write_text("other"), lambda: pathlib.Path(".clang-tidy").write_text("other"),
                   lambda: pathlib.Path("lint/compile_commands.json").write_text(json.dumps(
                       [{"directory": str(tmp_path), "file": name, "command": "cc -DX"} for name in every]))):
        change()
        assert found() == (0, every)
    assert found("two") == (0, every)


def test_what_runs_alone_is_found_in_its_files():
    found = {os.path.basename(path) for path in load_tool("test").marked_alone(["tests/e2e"])}
    assert {"test_functions.py", "test_model.py"} <= found and "test_cli_run.py" not in found


def test_the_page_of_costs_is_what_the_tool_writes():
    """Its words are in tools/overhead: what is edited by hand would be lost with the next `make bench`."""
    page, tool = (ROOT / "docs/OVERHEAD.md").read_text(encoding="utf-8"), load_tool("overhead")
    assert page.startswith(tool.OPENING.partition("{")[0]) and page.endswith(tool.GPUS)
    measured = page[:-len(tool.GPUS)]
    sections = [part for part in tool.SECTIONS.values() if f"\n## {part[0]}\n" in measured]
    assert re.findall(r"^## (.*)$", measured, re.M) == [title for title, _ in sections] != []
    assert all(f"\n## {title}\n{how}\n{tool.TABLE}|" in measured for title, how in sections)
    assert all(row.count("|") == 8 for row in re.findall(r"^\|.*$", measured, re.M))


LOCKS = sorted((ROOT / "tools").glob("requirements-*.lock"))
OWN_LOCK = ROOT / f"tools/requirements-{sys.version_info[0]}.{sys.version_info[1]}.lock"


@pytest.mark.skipif(not OWN_LOCK.exists(), reason="this Python has no lock")
def test_the_lock_fits_the_first_python_of_its_series():
    """Debian 12 has 3.11.2. pip leaves out what needs a later one, and searches for an hour for what fits the rest."""
    def plain(name):
        return re.sub("[-_.]+", "-", name).lower()
    locked = dict(line.split("==") for line in OWN_LOCK.read_text().splitlines() if "==" in line)
    asked = {plain(one.metadata["Name"]): one.metadata["Requires-Python"] for one in importlib.metadata.distributions()
             if locked.get(plain(one.metadata["Name"])) == one.version.split("+")[0]}
    assert len(asked) > 100
    assert [name for name, python in asked.items() if not SpecifierSet(python or "").contains(f"3.{sys.version_info[1]}.2")] == []


@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.stem)
def test_every_requirement_is_pinned(path):
    """What pip adds to a name (extras, ranges, markers) does not matter: the lock has one version of it."""
    def names(file, end):
        lines = (ROOT / "tools" / file).read_text().splitlines()
        return {re.split(end, line)[0].strip().lower().replace("_", "-").replace(".", "-")
                for line in lines if line and not line.startswith("#")}

    lock = path.read_text()
    assert f"CPython {path.stem.partition('-')[2]} " in lock
    assert all(re.fullmatch(r"#.*|[a-z0-9-]+==[0-9a-z.]+", line) for line in lock.splitlines())
    for file in ("torch-requirements.txt", "test-requirements.txt"):
        assert names(file, r"[<>=!;\[ ]") <= names(path.name, "==")
    for file in ("wheel-requirements.txt", "audit-requirements.txt", "lint-requirements.txt"):
        for line in (ROOT / "tools" / file).read_text().splitlines():
            assert re.match(r"#|[\w-]+==[\d.]+(;|$)", line), line


def test_the_version_is_in_one_place():
    """tests/wheel compares what is installed; here: nobody has written it down again."""
    version = re.search(r"version: '(.*?)'", (ROOT / "meson.build").read_text()).group(1)
    places = [*ROOT.glob("src/**/*.[ch]"), *ROOT.glob("include/**/*.h*"), *ROOT.glob("python/**/*.py*"),
              *ROOT.glob("man/*.1"), ROOT / "pyproject.toml"]
    assert len(places) > 100
    assert [path for path in places if re.search(rf"(?<![\d.]){re.escape(version)}(?![\d.])", path.read_text())] == []


def test_the_header_of_the_recorder_is_short():
    """The headers of all of the processor's instructions would make each compilation and check seconds longer."""
    text = '#include "sonde/record.h"\n'
    done = subprocess.run(["cc", "-E", "-I", ROOT / "include", "-x", "c", "-"], input=text, text=True, check=True,
                          stdout=subprocess.PIPE)
    assert len(done.stdout.splitlines()) < 2000


def test_a_view_keeps_its_own_data():
    """Adding a view does not touch what all of them share: its model is the view's own."""
    names = set(re.findall(r"struct (sonde_\w+)", (ROOT / "src/view/render/doc.h").read_text()))
    assert names == {"sonde_buffer", "sonde_error", "sonde_report_options", "sonde_summary", "sonde_text",
                     "sonde_trace"}


# ------------------------------------------------------------------ what does not end

HANGS = """
import subprocess, threading

def test_waits_for_a_program():
    subprocess.run(["sh", "-c", "echo begun; sleep 1000"], stdout=subprocess.PIPE)

def test_waits_for_a_thread():
    threading.Event().wait()

def test_after_them():
    pass
"""


def test_a_test_that_hangs_fails_and_says_where(tmp_path):
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "test_hangs.py").write_text(HANGS)
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", tmp_path], text=True,
                          env={**os.environ, "TEST_LIMIT": "1"}, stdout=subprocess.PIPE, timeout=100)
    assert "2 failed, 1 passed" in done.stdout
    assert re.search(r"^ +\d+: sleep 1000\n +sleep \d+: S, system call 230,", done.stdout, re.M), done.stdout
    assert "threading.Event().wait()" in done.stdout


INTERRUPTED = """
import signal, subprocess

def test_a_program_is_interrupted():
    child = subprocess.Popen(["sleep", "30"])
    child.send_signal(signal.SIGINT)
    assert child.wait() == -signal.SIGINT
"""


def test_tests_in_the_background_can_interrupt_programs(tmp_path):
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "test_interrupts.py").write_text(INTERRUPTED)
    subprocess.run(["sh", "-c", 'trap "" INT QUIT; exec "$@"', "sh", sys.executable, "-m", "pytest", "-q", "-p",
                    "no:cacheprovider", tmp_path], check=True, stdout=subprocess.DEVNULL, timeout=100)


def test_a_command_that_hangs_is_ended(monkeypatch, capsys):
    runner = load_tool("test")
    monkeypatch.setattr(runner, "COMMAND_LIMIT", 1)
    assert not runner.run(["sh", "-c", "echo begun; exec sleep 1000"])
    assert "begun\n\nended by tools/test: it had not ended after 1 s" in capsys.readouterr().out
    assert runner.run(["true"]) and not runner.run(["false"])


# ------------------------------------------------------------------ what pages name

PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tests/**/README.md")]
FOLDERS = ("src", "tools", "tests", "bench", "python", "docs", "fuzz", "include", "man", "examples")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_that_a_page_names_exist(page):
    """Whole paths in the tree, but for those with a word that stands for any: NAME, FILE, X."""
    text = page.read_text(encoding="utf-8")
    named = re.findall(rf"`((?:{'|'.join(FOLDERS)})/[\w./-]+)`", text)
    missing = [path for path in named if not (ROOT / path).exists() and not re.search(r"[A-Z]{4}|\bX\b", path)]
    if page.name == "CHANGELOG.md":  # of older versions
        missing = []
    assert missing == []


def test_targets_that_a_page_names_exist():
    """The head of the Makefile lists every target, and pages name no other."""
    makefile = (ROOT / "Makefile").read_text()
    phony = set(re.search(r"^\.PHONY: (.*)$", makefile, re.M).group(1).replace("$(STAGES)", "").split())
    stages = re.search(r"^STAGES +:= (.*)$", makefile, re.M).group(1).split()
    listed = set(re.findall(r"^#   make ([a-z][a-z0-9-]*)", makefile, re.M))
    assert phony - listed == {"all", "setup"}
    assert re.search(rf"^#   make {' '.join(stages)} ", makefile, re.M)
    named = {word for page in PAGES for word in re.findall(r"`make ([a-z][a-z-]*)", page.read_text(encoding="utf-8"))}
    assert named <= phony | set(stages)


def make_prints(*goals):
    """The commands that make would run for a tree that was not built yet."""
    env = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKEOVERRIDES", "WERROR")}  # of `make test` itself
    return subprocess.run(["make", "-n", "BUILD=build-none", *goals], cwd=ROOT, check=True, text=True, env=env,
                          stdout=subprocess.PIPE).stdout


def test_a_warning_fails_our_checks_and_no_build_of_a_user():
    """A newer compiler has new warnings: whoever only builds gets a program all the same."""
    for goals in ([], ["demo"], ["install"], ["wheel"]):
        assert "werror" not in make_prints(*goals).lower(), goals
    for goal in ("test", "test-all", "lint"):
        said = make_prints(goal)
        assert 0 < said.index("meson configure build-none -Dwerror=true") < said.index("ninja -C build-none")
    assert "werror" not in make_prints("test", "WERROR=false").lower()
    assert "werror" not in (ROOT / "meson.build").read_text()


def test_each_other_build_of_the_stages_refuses_warnings(monkeypatch):
    tool, setups = load_tool("test"), []
    monkeypatch.setattr(tool, "ROOT", "/nowhere")
    monkeypatch.setattr(tool, "run", lambda command, **extra: setups.append(command) or False)
    assert not tool.build("build-x", ["-Dzstd=disabled"])
    assert "-Dwerror=true" in setups[0] and setups[0][-1] == "-Dzstd=disabled"


def test_what_failed_is_listed_as_it_ends(tmp_path):
    """With workers, too: a run of many minutes is read before its end."""
    shutil.copy(ROOT / "tests/conftest.py", tmp_path)
    (tmp_path / "test_three.py").write_text("import os, time\n"
                                            "def test_bad(): assert 1 == 2\n"
                                            "def test_good(): pass\n"
                                            "def test_last():\n"
                                            "    while not os.path.exists(os.environ['TEST_FAILURES']):\n"
                                            "        time.sleep(0.01)\n")
    for number, workers in enumerate(([], ["-n", "1"])):
        failures = tmp_path / f"failures{number}"
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *workers, tmp_path], stdout=subprocess.PIPE,
                              env={**env, "TEST_FAILURES": str(failures)}, text=True, timeout=100)
        assert "1 failed, 2 passed" in done.stdout
        assert re.findall("^== (.*)", failures.read_text(), re.M) == ["test_three.py::test_bad (call)"] and "assert 1 == 2" in failures.read_text()


@pytest.mark.parametrize("reason, is_machine", [
    ("there is no GPU here", True), ("only root can become another user", True), ("since 3.12 nothing of ours stands there", True),
    ("this torch has no skip_first_wait", True), ("the kernel does not let us sample: see `sonde doctor`", True),
    ("no chromium, or sonde was built without the report page", False), ("zsh is not installed (tools/setup test)", False),
    ("torch is not installed: nothing to compare with", False), ("could not import 'hta': No module named 'hta'", False),
    ("no C compiler", False), ("no reason given", False)])
def test_the_gate_accepts_what_a_machine_is(reason, is_machine):
    assert load_tool("test").is_the_machine(reason) == is_machine


def test_a_skip_for_what_can_be_installed_fails_the_gate(tmp_path, capsys, monkeypatch):
    """By way of pytest itself: two tests are skipped, for want of a package and by the machine's nature."""
    (tmp_path / "test_two.py").write_text("import pytest\n"
                                          "def test_absent(): pytest.importorskip('no_such_package', reason='it is not installed')\n"
                                          "def test_gpu(): pytest.skip('there is no GPU here')\n"
                                          "def test_good(): pass\n")
    tool, asked = load_tool("test"), []
    monkeypatch.setattr(tool, "needs", lambda *groups: asked.append(groups) or True)
    monkeypatch.setattr(tool, "pytest", lambda *folders, **extra: tool.run_pytest(
        os.path.relpath(tmp_path, ROOT), sys.executable, None, "-p", "no:cacheprovider", str(tmp_path)))
    tally = tool.stage_e2e()
    assert asked == [("test", "torch")]  # first, what can be installed is
    assert (tally.passed, tally.failed, tally.skipped) == (1, 1, 1)
    [(name, why)] = tally.failures
    assert name == "test_absent" and "it is not installed" in why
    assert "skipped: test_gpu: there is no GPU here" in capsys.readouterr().out


def test_the_gate_wants_all_parts_of_the_build(tmp_path):
    program = tmp_path / "sonde"
    program.write_text("#!/bin/sh\necho '{\"checks\": [{\"name\": \"yaml\", \"verdict\": \"no\", \"text\": \"built without libyaml\"},"
                       " {\"name\": \"zstd\", \"verdict\": \"ok\", \"text\": \"\"}, {\"name\": \"gpu\", \"verdict\": \"no\", \"text\": \"\"}]}'\n")
    program.chmod(0o755)
    tool = load_tool("test")
    assert tool.missing_parts(str(program)) == [("yaml", "built without libyaml")]
    listed = json.loads(subprocess.run([tool.missing_parts.__defaults__[0], "doctor", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    assert tool.OPTIONAL_PARTS <= {check["name"] for check in listed["checks"]}


SOURCES = """# a comment
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates bookworm-backports
Components: main
Signed-By: /usr/share/keyrings/some.gpg

Types: deb
URIs: https://vendor.example/apt
Suites: nodistro
Components: main
"""


def test_the_sources_of_another_release_are_those_of_this_machine(tmp_path):
    tool = load_tool("test-distros")
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list.d/debian.sources").write_text(SOURCES)
    (tmp_path / "sources.list").write_text("deb [arch=amd64] http://mirror.example/security bookworm-security main contrib\n"
                                           "deb https://vendor.example/sdk sdk-bookworm main\n# deb http://off.example x main\n")
    sources = tool.read_sources(str(tmp_path))
    assert tool.translate(sources, "bookworm", "trixie") == [
        "deb http://mirror.example/debian trixie main", "deb http://mirror.example/debian trixie-updates main",
        "deb http://mirror.example/security trixie-security main contrib"]
    assert tool.translate(sources, "bookworm", "sid") == ["deb http://mirror.example/debian sid main"]


def test_what_a_fresh_root_skipped_is_added_up_by_reason():
    text = ("    skipped: test_a[x: y]: no GPU: none\n    skipped: test_b: needs root\n    skipped: test_c: needs root\n"
            "1 passed, 0 failed, 1 skipped\nflaky: x\n21 passed, 0 failed, 3 skipped\n")
    tally, reasons = load_tool("test-distros").read_results(text)
    assert tally == "21 passed, 0 failed, 3 skipped" and reasons["needs root"] == 2
    assert load_tool("test-distros").read_results("nothing\n")[0] is None


def test_a_run_in_a_root_that_is_there_goes_on_at_a_step(tmp_path, monkeypatch):
    tool, entered = load_tool("test-distros"), []
    monkeypatch.setattr(tool, "PLACE", str(tmp_path))
    monkeypatch.setattr(tool, "enter", lambda suite, command, log: entered.append(command) or 0)
    monkeypatch.setattr(tool, "unpack", lambda suite: pytest.fail("a fresh root was made"))
    assert not tool.test_suite("trixie", False, "make test")[1] and entered == []  # there is none
    subprocess.run(["git", "init", "--quiet", tmp_path / "trixie/sonde"], check=True)
    lines, good = tool.test_suite("trixie", False, "make test")
    assert good and entered[0] == "cd /sonde && make test WERROR=false" and len(entered) == len(list(tool.steps("trixie", False))) - 2
    head = [subprocess.run(["git", "-C", tree, "rev-parse", "HEAD"], stdout=subprocess.PIPE, check=True).stdout
            for tree in (ROOT, tmp_path / "trixie/sonde")]
    assert head[0] == head[1]
    assert tool.test_suite("trixie", False, "bake")[0] == ["trixie: no step 'bake'; steps: make, make demo, make test, clang, make wheel, gcc-13"]
    assert tool.run_in("trixie", "true") and entered[-1] == "cd /sonde && true"


def test_a_warning_of_a_newer_compiler_fails_the_build_in_its_root(tmp_path, monkeypatch):
    """`make` goes on after it."""
    tool = load_tool("test-distros")
    said = ["[1/2] Compiling C object x.o\n../src/x.c:7:3: warning: unused variable [-Wunused]\n", "[2/2] Linking target x\n"]
    monkeypatch.setattr(tool, "PLACE", str(tmp_path))
    monkeypatch.setattr(tool, "make_root", lambda suite, log: True)
    monkeypatch.setattr(tool, "steps", lambda suite, quick: [("make", "make")])
    monkeypatch.setattr(tool, "enter", lambda suite, command, log: log.write(said.pop(0)) and log.flush() or 0)
    lines, good = tool.test_suite("sid", False, None)
    assert not good and lines[0].endswith(": compiler warnings: 1") and "make: failed" in lines[0]
    assert tool.test_suite("sid", False, None)[1]


def test_the_names_that_a_release_is_asked_for_are_those_of_setup():
    names = subprocess.run([ROOT / "tools/setup", "--names"], stdout=subprocess.PIPE, text=True, check=True).stdout.split()
    assert {"gcc", "libmimalloc3", "libmimalloc2.0", "libcmocka-dev"} <= set(names)
    for suite in SUITES.iterdir():
        assert set(suite.read_text().split()) <= set(names)
