# SPDX-License-Identifier: Apache-2.0
"""Other people's programs do under sonde what they do alone: output, exit status, answers.

`make test-programs` installs them (tools/programs-requirements.txt) in build-programs/, and runs
this. Each program of the table (programs.py) runs once alone and once in every mode.
"""
import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request

import pytest

from programs import COMPILED, NATIVE, NATIVE_SERVERS, PREPARE, PROGRAMS, SERVERS, TIMES

ROOT = pathlib.Path(__file__).resolve().parents[2]
SCRATCH = pathlib.Path(os.environ.get("SONDE_PROGRAMS", ROOT / "build-programs"))
PREFIX = pathlib.Path(os.environ.get("SONDE_PREFIX", ROOT / ".venv"))
SONDE = str(PREFIX / "bin/sonde")

MODES = {
    "sample": ["--sample"],
    "functions": ["--functions"],
    "lines": ["--lines", "{lines}"],
    "line-memory": ["--line-memory", "{lines}"],
    "native": ["--sample", "--native"],
    "all": ["--sample", "--native", "--functions", "--lines", "{lines}", "--line-memory", "{lines}"],
    "heap": ["--heap"],
}
NATIVE_MODES = {
    "sample": ["--sample"],
    "off-cpu": ["--off-cpu"],
    "counters": ["--counters"],
    "heap": ["--heap"],
    "heap-sampled": ["--heap=sampled"],
    "everything": ["--sample", "--off-cpu", "--heap", "--counters"],
}
# Of programs with torch, besides.
TORCH_MODES = {
    "ops": ["--ops", "--shapes", "--memory", "--modules", "--stacks"],
    "timeline": ["--ops", "--functions", "--timeline", "--sample"],
}
OPTIONS = {**MODES, **NATIVE_MODES, **TORCH_MODES}
VIEWS = {"functions": "functions", "lines": "lines", "line-memory": "line-memory", "all": "functions", "heap": "heap",
         "heap-sampled": "heap", "counters": "counters", "ops": "ops", "timeline": "functions"}  # the others: samples


# -------------------------------------------------------------------------------- running

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def postgres():
    """The folder of its programs, which Debian keeps off PATH."""
    return max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), default=pathlib.Path("/usr/bin"))


@functools.lru_cache(maxsize=None)
def frozen():
    """A program that PyInstaller has made, once."""
    folder = SCRATCH / "frozen"
    if not (folder / "frozen_app").exists():
        subprocess.run([SCRATCH / "venv/bin/pyinstaller", "--onefile", "--log-level", "ERROR", "--name", "frozen_app",
                        "--distpath", folder, "--workpath", SCRATCH / "frozen-work", "--specpath", SCRATCH / "frozen-work",
                        ROOT / "tests/programs/scripts/frozen_app.py"], check=True, timeout=600)
    return folder


def words_of(text, folder, port):
    return shlex.split(text.format(python=SCRATCH / "venv/bin/python", torch=SCRATCH / "torch/bin/python", bin=SCRATCH / "venv/bin",
                                   sources=SCRATCH / "sources", frozen=frozen() if "{frozen}" in text else "",
                                   pg=postgres(), folder=folder, port=port))


def recorded(words, mode, lines, trace):
    """`sonde run` in front of it, or nothing."""
    if mode is None:
        return words
    options = [option.format(lines=lines) for option in OPTIONS[mode]]
    return [SONDE, "run", *options, "-o", str(trace), "--", *words]


def environment():
    """Nothing of ours, and nothing that makes two runs differ."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SONDE", "PYTHON", "PYTEST"))}
    return {**kept, "PYTHONHASHSEED": "1", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "100", "CI": "true",
            "PATH": f"{SCRATCH}/venv/bin:{kept['PATH']}"}


def clean(text, folder, ignore=""):
    """Without times, the folder's name, and what two runs alone do not have in common."""
    text = text.replace(str(folder), "FOLDER")
    for pattern in filter(None, (TIMES, ignore)):
        text = re.sub(pattern, "", text, flags=re.M)
    return [line.rstrip() for line in text.splitlines() if line.strip(" =-")]


def complaints(errors):
    """What sonde itself says on stderr, and what the program does."""
    ours = [line for line in errors if line.startswith("sonde")]
    return ours, [line for line in errors if not line.startswith("sonde")]


def check_own(lines):
    """To say where the trace is, or what is missing from it, is fine; to fail is not."""
    bad = [line for line in lines if re.search("cannot|not recorded|not sampled|failed|Traceback|recorded nothing", line)]
    assert not bad, bad


def prepared(folder, port=None):
    shutil.copytree(ROOT / "tests/programs/scripts", folder, dirs_exist_ok=True)
    settings = folder / "nginx.conf"
    settings.write_text(settings.read_text().replace("{port}", str(port)))
    return folder


def run_once(program, mode, folder):
    prepared(folder)
    words = recorded(words_of(program.words, folder, free_port()), mode, program.lines,
                     folder.parent / f"{folder.name}.sonde")
    done = subprocess.run(words, cwd=folder, text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment(), timeout=program.seconds)
    ours, theirs = complaints(clean(done.stderr, folder, program.ignore))
    check_own(ours)
    output = clean(done.stdout, folder, program.ignore)
    return done.returncode, output, theirs


@functools.lru_cache(maxsize=None)
def alone(program):
    with tempfile.TemporaryDirectory() as folder:
        result = run_once(program, None, pathlib.Path(folder) / "alone")
    assert result[0] == program.status, result
    return result


def rows(trace, mode):
    """Of the view that the mode is for."""
    done = subprocess.run([SONDE, "report", str(trace), "--view", VIEWS.get(mode, "samples"), "--json"], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["rows"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_program(program, mode, tmp_path):
    want = alone(program)
    status, output, errors = run_once(program, mode, tmp_path / "folder")
    assert (status, output) == want[:2], "\n".join(errors)
    assert errors == want[2]
    assert rows(tmp_path / "folder.sonde", mode)


@pytest.mark.parametrize("mode", TORCH_MODES)
@pytest.mark.parametrize("program", [program for program in PROGRAMS if "{torch}" in program.words], ids=lambda program: program.name)
def test_torch_program(program, mode, tmp_path):
    test_program(program, mode, tmp_path)


@pytest.mark.parametrize("mode", NATIVE_MODES)
@pytest.mark.parametrize("program", NATIVE, ids=lambda program: program.name)
def test_native_program(program, mode, tmp_path):
    want = alone(program)
    status, output, errors = run_once(program, mode, tmp_path / "folder")
    assert (status, output) == want[:2], "\n".join(errors)
    if mode not in ("counters", "everything"):  # which are printed there
        assert errors == want[2]
    assert rows(tmp_path / "folder.sonde", mode)


@pytest.mark.parametrize("mode", ["functions", "lines", "line-memory"])
def test_a_frozen_program_is_told_of(mode, tmp_path):
    """Its Python takes nothing from the environment: it runs as ever, and one line says that nothing was recorded."""
    prepared(tmp_path / "folder")
    words = recorded([str(frozen() / "frozen_app")], mode, "collatz", tmp_path / "t.sonde")
    done = subprocess.run(words, cwd=tmp_path / "folder", text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=240)
    want = alone(next(program for program in NATIVE if program.name == "pyinstaller"))
    assert (done.returncode, done.stdout.splitlines()) == want[:2]
    assert done.stderr.count("\n") == 1 and "recorded nothing" in done.stderr and "PyInstaller" in done.stderr


# -------------------------------------------------------------------------------- servers

def ask(port, n):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/{n}", timeout=30) as response:
        return response.status, response.read()


def wait_for(port, process):
    for _ in range(600):
        assert process.poll() is None, f"it ended: {process.returncode}"
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
    pytest.fail("it does not listen")


def talk(server, port, process, folder):
    """The server's answers."""
    if server.client:
        if "{port}" in server.client:
            wait_for(port, process)
        done = subprocess.run(words_of(server.client, folder, port), cwd=folder, text=True,
                              stdout=subprocess.PIPE, env=environment(), timeout=120, check=True)
        return done.stdout
    wait_for(port, process)
    with concurrent.futures.ThreadPoolExecutor(8 if server.requests > 100 else 4) as pool:
        return list(pool.map(lambda n: ask(port, n), range(server.requests)))


def as_nobody(server, folder):
    """The words before a command that root is not to run; the folders are made nobody's."""
    if server not in NATIVE_SERVERS or os.geteuid() != 0:
        return []
    for place in (folder.parent, folder, *folder.rglob("*")):
        shutil.chown(place, "nobody", "nogroup")
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


def serve(server, mode, folder):
    port = free_port()
    prepared(folder, port)
    before = as_nobody(server, folder)
    if server.name in PREPARE:
        subprocess.run([*before, *words_of(PREPARE[server.name], folder, port)], cwd=folder, check=True,
                       stdout=subprocess.DEVNULL, timeout=120)
    words = before + recorded(words_of(server.words, folder, port), mode, server.lines,
                              folder.parent / f"{folder.name}.sonde")
    with open(folder / "log", "w+") as log:
        process = subprocess.Popen(words, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                   env={**environment(), "C_FORCE_ROOT": "1"}, start_new_session=True)
        try:
            answers = talk(server, port, process, folder)
            process.send_signal(signal.SIGTERM)
            status = process.wait(60)
            status = 128 - status if status < 0 else status  # as a shell tells it, and `sonde run`
        finally:
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
            log.seek(0)
            text = log.read()
    check_own([line for line in text.splitlines() if line.startswith("sonde")])
    assert "Segmentation" not in text and "WORKER TIMEOUT" not in text and "Traceback" not in text, text
    return status, answers


@functools.lru_cache(maxsize=None)
def served_alone(server):
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        (pathlib.Path(folder) / "own").mkdir()
        result = serve(server, None, pathlib.Path(folder) / "own/alone")
    assert result[0] == server.status
    return result


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_server(server, mode, tmp_path):
    want = served_alone(server)
    assert serve(server, mode, tmp_path / "folder") == want
    assert rows(tmp_path / "folder.sonde", mode)


@pytest.fixture
def open_path():
    """A folder that another user can reach: pytest's own are closed to others."""
    with tempfile.TemporaryDirectory(prefix="sonde-programs-") as folder:
        os.chmod(folder, 0o755)
        (pathlib.Path(folder) / "own").mkdir()
        yield pathlib.Path(folder) / "own"


@pytest.mark.parametrize("mode", NATIVE_MODES)
@pytest.mark.parametrize("server", NATIVE_SERVERS, ids=lambda server: server.name)
def test_native_server(server, mode, open_path):
    want = served_alone(server)
    assert serve(server, mode, open_path / "folder") == want
    assert rows(open_path / "folder.sonde", mode)


def test_workers_of_uwsgi_are_sampled(tmp_path):
    """They are children of C's fork()."""
    serve(next(server for server in SERVERS if server.name == "uwsgi"), "sample", tmp_path / "folder")
    subprocess.run([SONDE, "export", "folder.sonde", "--to", "folded", "-o", "t.txt"], cwd=tmp_path, check=True)
    assert re.search(r"application.*digits", (tmp_path / "t.txt").read_text())


# ------------------------------------------------------------------------- with the C header

@functools.lru_cache(maxsize=None)
def compiled(name):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="sonde-programs-"))
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", COMPILED[name][0]], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split()
    subprocess.run(["cc", "-O2", "-g", "-Wall", "-Werror", f"-I{PREFIX}/include", str(ROOT / f"tests/programs/{name}.c"),
                    "-o", str(folder / name), *flags, f"-L{PREFIX}/lib", f"-Wl,-rpath,{PREFIX}/lib",
                    "-lsonde_record", "-lpthread"], check=True)
    return folder / name


@pytest.mark.parametrize("name", COMPILED)
def test_c_program(name, tmp_path):
    program = str(compiled(name))
    alone = subprocess.run([program], cwd=tmp_path, text=True, stdout=subprocess.PIPE, timeout=60)
    assert alone.returncode == COMPILED[name][1]
    done = subprocess.run([SONDE, "run", "-o", "t.sonde", "--", program], cwd=tmp_path, text=True,
                          stdout=subprocess.PIPE, timeout=60)
    assert (done.returncode, done.stdout) == (alone.returncode, alone.stdout)
    report = subprocess.run([SONDE, "report", "t.sonde", "--view", "ops", "--json"], cwd=tmp_path,
                            text=True, stdout=subprocess.PIPE, check=True)
    calls = {row["key"]: row["count"] for row in json.loads(report.stdout)["rows"]}
    assert calls == {"lua_ranges": {"request": 3, "work": 900, "pause": 300, "refuse": 3},
                     "zstd_ranges": {"level": 28, "compress": 28, "decompress": 28}}[name]
