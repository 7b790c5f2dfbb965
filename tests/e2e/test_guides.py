# SPDX-License-Identifier: Apache-2.0
"""docs/start, and the pages around it, as a newcomer reads them: programs and commands run, and print what is shown."""
import os
import re
import subprocess
import sys
import urllib.request

import pytest

import warm_torch
from cli_tools import SONDE
from docs_tools import ROOT, blocks, missing, write_programs

pytestmark = pytest.mark.skipif(not SONDE, reason="the program sonde is not built: run `make`")
START = ROOT / "docs/start"
PAGES = sorted(page.name for page in START.glob("*.md") if page.name != "README.md")
# Those that start torch: a Python that has it imported stands for `python`.
TORCH = {"slow-training.md", "out-of-memory.md", "torch-profiler-traces.md"}
RUN_ELSEWHERE = {"idle-gpu.md"}  # needs a GPU: tests/gpu has the same views


@pytest.fixture
def server(tmp_path):
    """The program of running-server.md, asked all the time; its process."""
    write_programs((START / "running-server.md").read_text(), tmp_path)
    process = subprocess.Popen([sys.executable, tmp_path / "server.py"], stdout=subprocess.PIPE, text=True)
    port = process.stdout.readline().strip()
    ask = "import urllib.request\nwhile True: urllib.request.urlopen(f'http://127.0.0.1:%s/').read()" % port
    client = subprocess.Popen([sys.executable, "-c", ask], stderr=subprocess.DEVNULL)
    assert urllib.request.urlopen(f"http://127.0.0.1:{port}/").status == 200
    yield process.pid
    for one in (client, process):
        one.kill()
        one.communicate()


def run_page(page, folder, pid=""):
    """Everything that its commands print."""
    text = (START / page).read_text()
    write_programs(text, folder)
    python = warm_torch.python() if page in TORCH else sys.executable
    (folder / "bin").mkdir()
    (folder / "bin/python").symlink_to(python)
    variables = {**os.environ, "PATH": f"{folder}/bin:{ROOT}/.venv/bin:{os.environ['PATH']}", "OMP_NUM_THREADS": "1",
                 "COLUMNS": "200", "SONDE_PYTHON_EXE": warm_torch.python()}
    commands = "\n".join(blocks(text, "sh")).replace("attach PID", f"attach {pid}")
    done = subprocess.run(["sh", "-ec", commands], cwd=folder, env=variables, text=True, timeout=600, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.parametrize("page", [page for page in PAGES if page not in RUN_ELSEWHERE])
def test_a_page_does_what_it_says(page, tmp_path, request):
    pid = request.getfixturevalue("server") if page == "running-server.md" else ""
    printed = run_page(page, tmp_path, pid)
    shown = blocks((START / page).read_text(), "")
    assert shown
    for block in shown:
        assert missing(block, printed) == [], printed[-6000:]


def test_the_slow_line_is_named(tmp_path):
    """slow-training.md: one of the two lines that its last paragraph has, whichever has the more time there."""
    said = re.findall(r"at line (\d+)", (START / "slow-training.md").read_text())
    assert len(said) == 2
    run_page("slow-training.md", tmp_path)
    done = subprocess.run([SONDE, "report", tmp_path / "train.sonde", "--view", "advice"], capture_output=True, text=True, check=True)
    assert re.search(rf"^\* train\.py:({'|'.join(said)}), in Pictures\.__getitem__\S* takes \d+ % of the running time",
                     done.stdout, re.M), done.stdout


def test_the_line_that_keeps_memory_is_shown(tmp_path):
    """out-of-memory.md: of the ReLU's blocks, the line of the script that called the model."""
    printed = run_page("out-of-memory.md", tmp_path)
    row = printed[printed.rindex("Who holds it"):].partition("aten::clamp_min")[2].partition("aten::")[0]
    assert "train.py(7)" in row, printed[-6000:]


def test_every_page_is_in_the_list():
    text = (START / "README.md").read_text()
    assert sorted(set(re.findall(r"\]\(([\w-]+\.md)\)", text))) == PAGES
    assert "docs/start/README.md" in (ROOT / "README.md").read_text()


def headings(page):
    """As sites make addresses of them."""
    titles = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w\- ]", "", title).strip().lower().replace(" ", "-") for title in titles}


def test_links_lead_somewhere():
    """Of every page of docs/: files, and headings of them. `make docs` asks the same of the site."""
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "CONTRIBUTING.md"]
    assert len(pages) > 40
    for page in pages:
        prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.S | re.M)
        for file, heading in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", prose):
            target = page.parent / file if file else page
            assert target.exists(), (page, file)
            assert not heading or heading in headings(target), (page, heading)


def test_lines_of_the_troubleshooting_are_ours():
    """Each line that the page explains is one that the code can print."""
    text = (ROOT / "docs/TROUBLESHOOTING.md").read_text()
    quoted = re.findall(r"^\| (?:[\w ]*)`([^`]+)`", text, re.M)
    assert len(quoted) >= 8
    code = "".join(path.read_text() for folder in ("src", "python") for path in (ROOT / folder).rglob("*")
                   if path.suffix in (".c", ".h", ".py", ".cpp"))
    code = re.sub(r'"\s*\n\s*f?"', "", code)  # strings that go on in the next line
    for line in quoted:
        assert all(part.strip(" ,:()") in code for part in line.split("..")), line


def test_each_view_is_explained():
    """The page that says how to read them has every view, once, and no other."""
    listed = subprocess.run([SONDE, "report", "--list"], capture_output=True, text=True, check=True).stdout
    explained = re.findall(r"^### (\S+)$", (ROOT / "docs/VIEWS.md").read_text(), re.M)
    assert sorted(explained) == sorted(line.split()[0] for line in listed.splitlines())


def test_formats_of_the_questions_exist():
    text = (ROOT / "docs/FAQ.md").read_text()
    named = re.search(r"`sonde export --to (.*?)more:", text, re.S).group(1)
    listed = subprocess.run([SONDE, "export", "--list"], capture_output=True, text=True, check=True).stdout
    formats = re.findall(r"[\w-]+", named)
    assert len(formats) >= 8 and set(formats) <= {line.split()[0] for line in listed.splitlines()}


def test_options_of_coming_from_exist():
    """The commands on our side of its table are accepted by the parser."""
    text = (ROOT / "docs/COMING_FROM.md").read_text()
    cells = re.findall(r"^\|[^|]*\|([^|]*)\|", text, re.M)
    ours = [command for cell in cells for command in re.findall(r"`(sonde [^`]+)`", cell)]
    assert len(ours) >= 15
    for command in ours:
        words = command.split(" -- ")[0].split()
        said = subprocess.run([SONDE, words[1], "--help"], capture_output=True, text=True, check=True).stdout
        for option in (word.partition("=")[0] for word in words if word.startswith("-")):
            assert re.search(rf"(?<![\w-]){option}(?![\w-])", said), command


@pytest.mark.parametrize("page", PAGES)
def test_a_guide_has_a_picture_that_is_there_and_small(page):
    """Made by tools/pictures, from the guide's own program."""
    shown = re.findall(r"!\[(.+?)\]\((.+?)\)", (START / page).read_text())
    assert [path for _, path in shown] == [f"../pictures/{page.removesuffix('.md')}.png"]
    assert 0 < (START / shown[0][1]).stat().st_size < 60_000
    assert f'("{page.removesuffix(".md")}", ' in (ROOT / "tools/pictures").read_text()
