# SPDX-License-Identifier: Apache-2.0
"""Debian's packages (tools/deb), laid into a folder as dpkg would: each has its files, and they work together.

`tools/test deb` (make deb) builds them and sets SONDE_DEBS, their folder. Nothing is installed on the machine.
"""
import json
import os
import pathlib
import subprocess
import textwrap

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBS = pathlib.Path(os.environ.get("SONDE_DEBS", "/nonexistent"))
NAMES = ("libsonde-record1", "libsonde-dev", "python3-sonde", "sonde")

pytestmark = pytest.mark.skipif(not DEBS.is_dir(), reason="no packages: run `make deb`")


def package(name):
    found = sorted(DEBS.glob(f"{name}_*.deb"))
    assert len(found) == 1, found
    return found[0]


def files_of(name):
    listed = subprocess.run(["dpkg-deb", "--contents", package(name)], capture_output=True, text=True, check=True).stdout
    return [line.split()[5].removeprefix("./") for line in listed.splitlines() if not line.split()[5].endswith("/")]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """All four in one folder."""
    folder = tmp_path_factory.mktemp("root")
    for name in NAMES:
        subprocess.run(["dpkg-deb", "--extract", package(name), folder], check=True)
    return folder


@pytest.fixture(scope="module")
def environment(root):
    library = next(root.rglob("libsonde_record.so.1")).parent
    return {"PATH": f"{root}/usr/bin:/usr/bin:/bin", "HOME": str(root), "LD_LIBRARY_PATH": str(library),
            "PYTHONPATH": f"{root}/usr/lib/python3/dist-packages", "PKG_CONFIG_SYSROOT_DIR": str(root),
            "PKG_CONFIG_LIBDIR": f"{library}/pkgconfig:/usr/lib/{library.name}/pkgconfig:/usr/share/pkgconfig"}


def run(words, environment, **more):
    done = subprocess.run(list(map(str, words)), env=environment, text=True, capture_output=True, timeout=120, **more)
    assert done.returncode == 0, (words, done.stdout, done.stderr)
    return done.stdout


def test_no_file_is_in_two_packages():
    every = [path for name in NAMES for path in files_of(name)]
    assert len(every) == len(set(every)) > 100


def test_no_path_of_the_building_machine_is_in_them(root):
    """Neither as a run path nor in a file of pkg-config: what was built in a folder is used elsewhere."""
    for path in root.rglob("*"):
        if path.suffix == ".so" or path.name in ("sonde", "libsonde_record.so.1") and path.is_file():
            said = subprocess.run(["readelf", "-dW", path], capture_output=True, text=True).stdout
            assert "RUNPATH" not in said and "RPATH" not in said, path
        if path.suffix == ".pc":
            assert str(ROOT) not in path.read_text()


def test_the_command_works_and_has_the_page(root, environment, tmp_path):
    assert run(["sonde", "--version"], environment).startswith("sonde ")
    (tmp_path / "work.py").write_text(textwrap.dedent("""
        def work(n):
            return sum(i * i for i in range(n))
        for _ in range(20):
            work(1000)
        """))
    # Debian's Python, whose package this is: not the one that the tests run in
    run(["sonde", "run", "--functions", "-o", "t.sonde", "--", "/usr/bin/python3", "work.py"], environment, cwd=tmp_path)
    rows = json.loads(run(["sonde", "report", "t.sonde", "--view", "functions", "--json"], environment, cwd=tmp_path))["rows"]
    assert [row["calls"] for row in rows if row["function"] == "work"] == [20]
    run(["sonde", "export", "t.sonde", "--to", "html", "-o", "t.html"], environment, cwd=tmp_path)
    assert "<html" in (tmp_path / "t.html").read_text()[:1000]


def test_programs_in_c_are_built_with_the_development_files(root, environment, tmp_path):
    for name, wanted in (("schedule", "sonde"), ("longest", "sonde-trace")):
        flags = run(["pkg-config", "--cflags", "--libs", wanted], environment).split()
        run(["cc", ROOT / f"examples/{name}.c", "-o", tmp_path / name, *flags], environment)
    run([tmp_path / "schedule", "traces"], environment, cwd=tmp_path)
    assert " work\n" in run([tmp_path / "longest", "traces"], environment, cwd=tmp_path)
