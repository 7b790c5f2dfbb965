# SPDX-License-Identifier: Apache-2.0
"""A newcomer's path: an exporter, a view, a command, a probe and an event are added as CONTRIBUTING.md says.

Each is added in a copy of the tree, by writing to the places that its row of the table names: to
all of them, and to no other. The copy is built, its goldens are accepted, its checks must pass, and
each of the five must work.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NAME = "toy"


# ------------------------------------------------------------------ what the table says

def places(kind):
    """The files and folders that the row names, for something called NAME, in a room of that name."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    row, = re.findall(rf"^\| {re.escape(kind)} \|(.*)\|$", text, re.M)
    return {re.sub("NAME|ROOM", NAME, word) for word in re.findall(r"`([\w./-]+)`", row)
            if "/" in word and not word.startswith("python/")}  # for a probe that Python starts


def place_of(path, allowed):
    for place in allowed:
        if path == place or place.endswith("/") and path.startswith(place):
            return place
    return None


# ------------------------------------------------------------------------- what is added

class Line:
    """A line to be put before the first one that holds `anchor`."""

    def __init__(self, anchor, text):
        self.anchor, self.text = anchor, text

    def put(self, path):
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
        at = next(i for i, line in enumerate(lines) if self.anchor in line)
        path.write_text("".join([*lines[:at], self.text, *lines[at:]]), encoding="utf-8")


EXPORTER = {
    "src/export/toy/toy.c": """\
/* SPDX-License-Identifier: Apache-2.0 */
#include "export/common/exporter.h"

SND_EXPORT_WRITE(snd_export_toy)
{
    (void)trace;
    (void)options;
    (void)err;
    snd_out_text(out, "a toy\\n");
    return SONDE_OK;
}
""",
    "src/export/exporters.def": Line('SND_EXPORTER("csv"', 'SND_EXPORTER("toy", ".toy", "nothing but a toy", NULL, NULL, STREAM(snd_export_toy))\n'),
    "src/export/meson.build": Line("'timeline/arrows.c'", "  'toy/toy.c',\n"),
    "tests/golden/export-toy/commands": "gen convnet t.sonde\nsonde export t.sonde --to toy -o -\n",
    "man/sonde-export.1": Line(".It Cm csv", ".It Cm toy\nnothing but a toy\n"),
}

VIEW = {
    "src/view/toy/toy_view.c": """\
/* SPDX-License-Identifier: Apache-2.0 */
#include "view/render/view.h"

static const struct snd_column columns[] = {
    { "toy", "Toy", SND_TEXT, SND_FIT_CONTENT },
};

SND_VIEW_BUILD(snd_view_toy)
{
    (void)trace;
    (void)options;
    (void)err;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    *snd_table_add(&doc->rows) = snd_cell_string("a toy");
    return SONDE_OK;
}
""",
    "src/view/views.def": Line('SND_VIEW("ledger"', 'SND_VIEW("toy", snd_view_toy, "nothing but a toy", 0, SND_FIXED,\n'
                               '         SND_PAGE("Toy", 0, SND_ALWAYS), SND_UNSAID)\n'),
    "src/view/meson.build": Line("'report.c'", "  'toy/toy_view.c',\n"),
    "tests/golden/view-toy/commands": "gen convnet t.sonde\nsonde report t.sonde --view toy\n",
    "man/sonde-report.1": [Line(".It Cm ledger", ".It Cm toy\nnothing but a toy\n"), Line(".It ledger", ".It toy\ntoy\n")],
}

COMMAND = {
    "src/cli/command/cmd_toy.c": """\
/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/commands.h"

struct toy_args {
    bool loud;
};

static const struct snd_option options[] = {
    { 0, "loud", NULL, "print it twice", SND_OPTION_FLAG, offsetof(struct toy_args, loud), 0 },
};

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct toy_args args = { 0 };
    int             operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    printf(args.loud ? "a toy, a toy\\n" : "a toy\\n");
    return snd_finish_stdout(self);
}

const struct snd_command snd_command_toy = {
    .name = "toy",
    .operands = "",
    .summary = "print a toy",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
""",
    "src/cli/commands.def": Line("SND_COMMAND(run)", "SND_COMMAND(toy)\n"),
    "tests/golden/command-toy/commands": "sonde toy --help\nsonde toy --loud\n",
    "man/sonde-toy.1": """\
.\\" SPDX-License-Identifier: Apache-2.0
.Dd November 16, 2026
.Dt SONDE-TOY 1
.Os
.Sh NAME
.Nm sonde-toy
.Nd print a toy
.Sh SYNOPSIS
.Nm sonde toy
.Op Ar OPTIONS
.Sh OPTIONS
.Bl -tag -width Ds
.It Fl -loud
print it twice
.El
.Sh SEE ALSO
.Xr sonde 1
""",
    "man/sonde.1": Line(".It Cm pack", ".It Cm toy\nprint a toy;\n.Xr sonde-toy 1\n"),
}

PROBE = {
    "src/probes/toy/toy_probe.c": """\
/* SPDX-License-Identifier: Apache-2.0 */
/* A library that is loaded before the program's own: it marks that it was there. */
#include "sonde/record.h"

__attribute__((constructor)) static void start(void)
{
    sonde_mark("a toy");
}
""",
    "src/probes/toy/meson.build": "# SPDX-License-Identifier: Apache-2.0\nprobe_sources = files('toy_probe.c')\n",
    "src/probes/probes.def": Line("/* clang-format on */", """\
SND_PROBE(toy, "toy", FLAG, NULL, 0, "toys", "toy", EMPTY, "", false,
          SND_BY_LIBRARY(toy, LD_PRELOAD), "probes/toy", library, "a toy, marked once")
"""),
    "tests/e2e/test_toy.py": """\
import os
import subprocess


def sonde(*words):
    return subprocess.run([os.environ["SONDE"], *words], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout


def test_toy(tmp_path):
    trace = str(tmp_path / "t.sonde")
    sonde("run", "--toy", "-o", trace, "--", "true")
    assert '"a toy"' in sonde("export", trace, "--to", "json", "-o", "-")
""",
    "man/sonde-run.1": Line(".It Fl p , Fl -print", ".It Fl -toy\na toy, marked once\n"),
}

# A probe of the other kind: not loaded before the program, but by a library of the program's, which
# takes its path from a variable and calls it, as CUDA does.
INJECTED = {
    "src/probes/injected/injected.c": """\
/* SPDX-License-Identifier: Apache-2.0 */
#include "sonde/record.h"

SONDE_API int InitializeInjection(void);

int InitializeInjection(void)
{
    sonde_mark("an injected toy");
    return 1;
}
""",
    "src/probes/injected/meson.build": "# SPDX-License-Identifier: Apache-2.0\nprobe_sources = files('injected.c')\n",
    "src/probes/probes.def": Line("/* clang-format on */", """\
SND_PROBE(injected, "injected-toy", FLAG, NULL, 0, "injected toys", "toy", EMPTY, "", false,
          SND_BY_LIBRARY(injected, TOY_INJECTION_PATH), "probes/injected", library, "a toy, marked when called")
"""),
    "tests/e2e/test_injected.py": """\
import sys

from test_toy import sonde

CUDA = "import ctypes, os; ctypes.CDLL(os.environ['TOY_INJECTION_PATH']).InitializeInjection()"


def test_injected(tmp_path):
    trace = str(tmp_path / "t.sonde")
    sonde("run", "--injected-toy", "-o", trace, "--", sys.executable, "-S", "-c", CUDA)
    assert '"an injected toy"' in sonde("export", trace, "--to", "json", "-o", "-")
""",
    "man/sonde-run.1": Line(".It Fl p , Fl -print", ".It Fl -injected-toy\na toy, marked when called\n"),
}

# An event that the second probe records, with a field of each form that export shows in its own way.
EVENT = {
    "src/probes/injected/injected.c": [
        Line("SONDE_API", '#include "format/fields.h"\n#include "format/layout.h"\n'),
        Line("return 1;", """\
    uint32_t seen = sonde_intern("a toy was seen", 14);
    uint64_t fields[] = { SND_PAIR(seen, 1), SND_PAIR(sonde_intern_stack(0, sonde_intern_frame(seen, 0, 7)), 3),
                          UINT64_MAX, 0x3fe0000000000000 /* 0.5 */ };
    if (!sonde_put(SND_EV_TOY, fields, 4))
        return 0;
"""),
    ],
    "src/format/events.def": [
        Line("SND_EVENT(ATTR,", 'SND_EVENT(TOY, 3, 5, 1, "a toy was seen: name, whether it is new, stack, how many, size, share")\n'),
        Line("/* clang-format on */", """\
SND_EVENT_FIELD(TOY, name, 2, STRING)
SND_EVENT_FIELD(TOY, is_new, 3, FLAG)
SND_EVENT_FIELD(TOY, stack, 4, STACK)
SND_EVENT_FIELD(TOY, toys, 5, U32)
SND_EVENT_FIELD(TOY, size, 6, U64)
SND_EVENT_FIELD(TOY, share, 8, F64)
"""),
    ],
    "docs/FORMAT.md": Line("| ATTR 0x02 |", "| TOY 0x83 | 5 | u32 name, u32 1 if it is new; u32 stack, u32 toys; u64 size; f64 share |\n"),
    "tests/e2e/test_event.py": """\
import json
import sys

from test_injected import CUDA
from test_toy import sonde


def test_event(tmp_path):
    trace = str(tmp_path / "t.sonde")
    sonde("run", "--injected-toy", "-o", trace, "--", sys.executable, "-S", "-c", CUDA)
    event, = (e for e in json.loads(sonde("export", trace, "--to", "json", "-o", "-"))["events"] if e["kind"] == "toy")
    frame, = event.pop("stack")
    assert (frame["function"], frame["line"]) == ("a toy was seen", 7)
    del event["thread"], event["time_ns"]
    assert event == {"kind": "toy", "name": "a toy was seen", "is_new": True, "toys": 3, "size": 2**64 - 1, "share": 0.5}
""",
}

ADDED = {"an exporter": EXPORTER, "a view": VIEW, "a command": COMMAND, "a probe": PROBE, "an event": EVENT}


# ------------------------------------------------------------------------------ the path

@pytest.mark.parametrize("kind", ADDED)
def test_the_row_names_every_place_and_no_other(kind):
    allowed = places(kind)
    used = {path: place_of(path, allowed) for path in ADDED[kind]}
    assert None not in used.values(), f"CONTRIBUTING.md does not name all of {used}"
    assert set(used.values()) == allowed, "CONTRIBUTING.md names a place that nothing is needed in"
    product = [path for path in used if not path.startswith("tests/")]
    assert len(product) <= 4, product


def copy_tree(to):
    """What is in the tree but was not built there, by the folders' names."""
    left_out = shutil.ignore_patterns("build*", ".venv", ".git", "demo", "__pycache__", "_probes")
    shutil.copytree(ROOT, to, ignore=left_out, symlinks=True)
    page = ROOT / "build/report/page.html"
    if page.exists():  # as a release archive has it: nothing that is added here is of the page
        (to / "report/built").mkdir(exist_ok=True)
        shutil.copy(page, to / "report/built")
    for kind, files in [("the second probe", INJECTED), *ADDED.items()]:
        for path, what in files.items():
            (to / path).parent.mkdir(exist_ok=True)
            if isinstance(what, str):
                assert not (to / path).exists(), f"{path} of {kind} is there already"
                (to / path).write_text(what, encoding="utf-8")
                continue
            for change in what if isinstance(what, list) else [what]:
                change.put(to / path)


def run(*words, cwd, **more):
    done = subprocess.run([str(word) for word in words], cwd=cwd, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, **more)
    assert done.returncode == 0, f"{words}: {done.stdout[-6000:]}"
    return done.stdout


def build(tree):
    (tree / "native.ini").write_text(f"[binaries]\npython = '{sys.executable}'\n")
    run("meson", "setup", "build", "--native-file", "native.ini", "--buildtype", "plain", "-Dwerror=true",
        "-Dpython=enabled", cwd=tree)
    run("ninja", "-C", "build", "-j1", "src/cli/sonde", "tests/gen/gen", "tests/golden/golden_tables",
        "python/probe_toy.so", "python/probe_injected.so", cwd=tree)


def goldens(tree):
    return {path.relative_to(tree).as_posix(): path.read_text(encoding="utf-8", errors="replace")
            for path in tree.glob("tests/golden/*/expected")}


def accept(tree, sonde):
    """The goldens of what lists everything change by the new names, and by nothing else."""
    before = goldens(tree)
    run(tree / "tests/golden/run", sonde, tree / "build/tests/gen/gen", "--accept", cwd=tree)
    for path, text in goldens(tree).items():
        old = set(before.get(path, "").splitlines())
        new = [line for line in text.splitlines() if line not in old]
        if "-toy/" not in path:
            assert all(NAME in line for line in new), (path, new)


@pytest.mark.skipif(not (shutil.which("meson") and shutil.which("ninja")), reason="no meson, no ninja")
def test_what_was_added_works(tmp_path):
    tree = tmp_path / "tree"
    copy_tree(tree)
    build(tree)
    sonde = tree / "build/src/cli/sonde"
    accept(tree, sonde)
    run(tree / "tests/golden/check_tables", sonde, tree / "build/tests/golden/golden_tables", tree, cwd=tree)
    run(tree / "tests/golden/check_keys", sonde, tree / "build/tests/gen/gen", tree / "man/sonde-report.1", cwd=tree)
    run(tree / "tools/check_layers", tree, cwd=tree)
    run(tree / "tools/check_schema", tree, cwd=tree)
    for case in ("export-toy", "view-toy"):
        assert "\na toy" in (tree / "tests/golden" / case / "expected").read_text()
    assert "\na toy, a toy\n" in (tree / "tests/golden/command-toy/expected").read_text()
    assert "\n--loud" in "\n".join(run(sonde, "completion", "bash", cwd=tree).split())
    # As `make` and a wheel install it, but that the recorder is found in the build.
    plan = json.loads((tree / "build/meson-info/intro-install_plan.json").read_text())["targets"]
    for name in ("toy", "injected"):
        built, = (entry for path, entry in plan.items() if path.endswith(f"/probe_{name}.so"))
        assert built["destination"].endswith(f"/sonde/_native/probe_{name}.so") and built["tag"] == "runtime", built
    package = tmp_path / "package"
    shutil.copytree(tree / "python/sonde/_autostart", package / "_autostart")
    (package / "_native").mkdir()
    for name in ("toy", "injected"):
        shutil.copy(tree / f"build/python/probe_{name}.so", package / "_native")
    env = {**os.environ, "SONDE": str(sonde), "SONDE_PYTHON": str(package),
           "LD_LIBRARY_PATH": str(tree / "build/src")}
    run(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/e2e/test_toy.py",
        "tests/e2e/test_injected.py", "tests/e2e/test_event.py", cwd=tree, env=env)
    doctor = run(sonde, "doctor", cwd=tree, env=env)
    assert re.search(r"^toy +ok +--toy loads", doctor, re.M)
    assert re.search(r"^injected-toy +ok +--injected-toy loads", doctor, re.M)
