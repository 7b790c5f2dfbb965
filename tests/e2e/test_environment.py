# SPDX-License-Identifier: Apache-2.0
"""SECURITY.md lists every environment variable that is read, sonde-run(1) every one that it sets."""
import ast
import os
import pathlib
import re
import subprocess

import pytest

from cli_tools import needs_tools, sonde

ROOT = pathlib.Path(__file__).resolve().parents[2]

# Where the name is not in the call itself: (file, argument) and what it stands for. "*": others check it.
INDIRECT = {
    ("src/probes/python/program/child_env.c", "VARIABLE"): {"SONDE_TRACE"},
    ("src/record/options/environment.c", "name"): {
        "RANK", "WORLD_SIZE", "LOCAL_RANK", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
        "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"},
    ("src/record/options/environment.c", "launchers[0].job[k]"): {"TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT"},
    ("src/record/options/environment.c", "by->job[k]"): {
        "TORCHELASTIC_RUN_ID", "MASTER_ADDR", "MASTER_PORT", "PMIX_NAMESPACE", "PMI_JOBID", "SLURM_JOB_ID", "SLURM_STEP_ID"},
    ("src/cli/run/run_folder.c", "variables[i]"): {"SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK"},
    ("src/cli/options/view_options.c", "names[i]"): {"LC_ALL", "LC_CTYPE", "LANG"},
    ("src/cli/run/run_library.c", "library->variable"):
        {"LD_PRELOAD", "CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH"},
    ("python/sonde/python/_start.py", "_FIRST"): {"SONDE_FIRST_PROCESS"},
    ("python/sonde/_autostart/sitecustomize.py", "'SONDE_' + self.name.replace('-', '_').upper()"):
        {"SONDE_LINES", "SONDE_LINE_MEMORY", "SONDE_SAMPLE"},
}
# What looks at all of the environment: the compiler's is made from it, without LD_PRELOAD.
WHOLE = {"python/sonde/torch/_probe.py": {"LD_PRELOAD"}}


def c_names(text):
    """The argument of each call of getenv(), as it is written."""
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.S)
    return re.findall(r"\b(?:secure_)?getenv\s*\(\s*([^()]+?)\s*\)", text)


def is_environ(node):
    return isinstance(node, ast.Attribute) and node.attr == "environ" or \
        isinstance(node, ast.Attribute) and node.attr == "environb"


def python_names(text):
    """The key of each use of os.environ and os.getenv(), as it is written; None: all of it is looked at."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Subscript) and is_environ(node.value):
            yield ast.unparse(node.slice)
        elif isinstance(node, ast.Compare) and is_environ(node.comparators[0]):
            yield ast.unparse(node.left)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_environ(node.func.value):
            yield ast.unparse(node.args[0]) if node.args else None
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "os.getenv":
            yield ast.unparse(node.args[0])


def resolve(file, argument):
    if argument is None:
        return WHOLE[file]
    literal = re.fullmatch(r"(['\"])(\w+)\1", argument)
    return {literal.group(2)} if literal else INDIRECT[file, argument]


def read_names():
    found = set()
    for path in sorted([*ROOT.glob("src/**/*"), *ROOT.glob("include/**/*.h"), *ROOT.glob("python/**/*.py")]):
        reader = {".c": c_names, ".h": c_names, ".cpp": c_names, ".py": python_names}.get(path.suffix)
        for argument in reader(path.read_text()) if reader else ():
            found |= resolve(str(path.relative_to(ROOT)), argument)
    return found


def listed_names():
    table = (ROOT / "SECURITY.md").read_text().split("| variable |")[1].split("\n\n")[0]
    return {name for line in table.splitlines()[2:] for name in re.findall(r"`([A-Z0-9_]+)`", line.split("|")[1])}


def test_the_list_is_what_is_read():
    assert read_names() == listed_names()


@pytest.mark.parametrize("text, reader", [
    ('x = getenv("SONDE_NEW");', c_names),
    ('secure_getenv ( "SONDE_NEW" )', c_names),
    ("import os\nos.environ['SONDE_NEW']", python_names),
    ("import os\nos.environ.get('SONDE_NEW')", python_names),
    ("import os\nif 'SONDE_NEW' in os.environ: pass", python_names),
    ("import os\nos.getenv('SONDE_NEW')", python_names),
])
def test_a_new_variable_is_found(text, reader):
    assert [resolve("x", argument) for argument in reader(text)] == [{"SONDE_NEW"}]
    assert "SONDE_NEW" not in listed_names()


def test_one_that_is_not_written_out_is_refused():
    with pytest.raises(KeyError):
        [resolve("x", argument) for argument in c_names("getenv(which)")]


# Options of `sonde run` that together set every variable that it sets for a program.
SETTING = [["--standby"], ["--heap"], ["--gpu"], ["--counters", "--per-range", "--per-function"], ["--roof"], ["--schedule", "active=1"],
           ["--max-size", "1M", "--keep-last"], ["--lines", "f", "--line-memory", "f", "--sample=50"]]


@needs_tools
def test_the_manual_page_lists_what_is_set(tmp_path):
    """Section ENVIRONMENT of sonde-run(1), its first list."""
    show = ["sh", "-c", "env -0 > names"]
    subprocess.run(show, cwd=tmp_path, check=True)
    before = (tmp_path / "names").read_bytes().split(b"\0")
    found = set()
    for options in SETTING:
        sonde("run", "-q", *options, "-o", "t.sonde", "--", *show, cwd=tmp_path)
        after = (tmp_path / "names").read_bytes().split(b"\0")
        found |= {entry.partition(b"=")[0].decode() for entry in set(after) - set(before)}
    page = (ROOT / "man/sonde-run.1").read_text(encoding="utf-8")
    listed = re.search(r"^These are set for the program:\n(.*?)^\.El", page, re.M | re.S)[1]
    names = set(re.findall(r"[A-Z][A-Z0-9_]+", " ".join(re.findall(r"^\.It Ev (.*)", listed, re.M))))
    assert found - {"_", "OLDPWD"} == names - (set() if os.geteuid() == 0 else {"SONDE_TRACE_OTHERS"})
