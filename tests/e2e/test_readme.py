# SPDX-License-Identifier: Apache-2.0
"""The README and docs/C.md as a newcomer reads them: every command and program runs as it stands."""
import json
import os
import re
import subprocess
import sys

import pytest

import warm_torch
from docs_tools import ROOT, blocks, busy  # noqa: F401 (a fixture)

README = (ROOT / "README.md").read_text()

# Commands that other tests run: make itself, and the stage "wheel".
ELSEWHERE = ("make ", "pip install .")

# What starts a Python by itself to load a model gets one that has torch imported: the commands stand as they are.
BY_SONDE = ("Models",)

# The sections that have commands, and something that these print.
EXPECTED = {"start": "accelerate", "PyTorch": "", "Python programs": "accelerate", "Any program": "page-faults", "Models": "layer4",
            "C programs": "layer"}


def sections():
    """The README by its headings, the opening under the name "start"."""
    parts = re.split(r"^## (.*)\n", "start\n" + README, flags=re.M)
    return dict(zip(["start", *parts[1::2]], parts[::2]))


def commands(text):
    """Each line of the sh blocks, each `$ ` line of the other blocks, and `sonde ...` in a sentence."""
    found = [line for block in blocks(text, "sh") for line in block.splitlines() if line.strip()]
    found += [line[2:] for block in blocks(text, "") for line in block.splitlines()
              if line.startswith("$ ")]
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.S | re.M)
    found += re.findall(r"`(sonde run [^`]*--[^`]*)`", prose)
    return [line for line in found if not line.startswith(ELSEWHERE)]


@pytest.fixture
def folder(tmp_path):
    """A folder that looks like the tree after `make`."""
    for name in (".venv", "examples", "build"):
        (tmp_path / name).symlink_to(ROOT / name)
    return tmp_path


def run(command, folder, **variables):
    env = {**os.environ, "PATH": f"{ROOT}/.venv/bin:{os.environ['PATH']}",
           "OMP_NUM_THREADS": "1", **variables}
    done = subprocess.run(command, cwd=folder, env=env, text=True, timeout=600,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def test_is_short():
    assert len(README.splitlines()) <= 150


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_pictures_are_small_and_shown():
    """What tools/pictures made: each is shown by a page, and none weighs much in a clone."""
    guides = sorted((ROOT / "docs/start").glob("*.md"))
    texts = {page: page.read_text() for page in (ROOT / "README.md", ROOT / "docs/REPORT_PAGE.md", *guides)}
    shown = {(page.parent / link).resolve() for page, text in texts.items() for link in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)}
    assert re.search(r"!\[[^\]]+\]\(docs/pictures/", README) and "`sonde view " in README
    assert shown == {picture.resolve() for picture in (ROOT / "docs/pictures").iterdir()}
    assert all(picture.stat().st_size < 60_000 for picture in shown)
    made = (ROOT / "tools/pictures").read_text()
    assert all(f'"{picture.name}"' in made or f'"{picture.stem}"' in made for picture in shown)


def test_targets_exist():
    targets = re.findall(r"^make (\w+)", README, re.M)
    assert targets == ["demo", "test"]
    run(["make", "-n", *targets], ROOT)


def test_every_section_with_commands_is_run():
    assert list(EXPECTED) == [name for name, text in sections().items() if commands(text)]


@pytest.mark.parametrize("name", list(EXPECTED))
def test_commands(name, folder, busy):
    """All in one shell, in order."""
    (folder / "prog.c").write_text("".join(blocks(README, "c")))
    lines = commands(sections()[name])
    variables = {"SONDE_PYTHON_EXE": warm_torch.python()} if name in BY_SONDE else {}
    said = run(["sh", "-ec", "\n".join(lines).replace("attach PID", f"attach {busy}")], folder, **variables)
    assert EXPECTED[name] in said


def test_the_pytorch_program(folder):
    program = blocks(sections()["PyTorch"], "python")[0]
    done = warm_torch.run("-c", program, cwd=folder)
    assert done.returncode == 0, done.stderr
    said = done.stdout
    assert "model_inference" in said and "aten::conv2d" in said
    assert json.loads((folder / "trace.json").read_text())["traceEvents"]


@pytest.mark.parametrize("page", ["README.md", "docs/C.md"])
def test_the_c_program(page, folder):
    """The C program and its commands, and then the README's Python that reads its trace."""
    text = (ROOT / page).read_text()
    (folder / "prog.c").write_text(blocks(text, "c")[0])
    said = run(["sh", "-ec", next(block for block in blocks(text, "sh") if "cc " in block)], folder)
    assert re.search(r"layer .* 10 +1\.280 M", said)  # calls, FLOPs
    assert json.loads((folder / "prog.json").read_text())["traceEvents"]
    assert "layer" in run([sys.executable, "-c", blocks(sections()["Traces"], "python")[0]], folder)
    assert (folder / "prog.json.gz").exists()
