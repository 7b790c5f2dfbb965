# SPDX-License-Identifier: Apache-2.0
"""The archive of `make dist`: it builds by itself, `make install` puts it below a prefix, and C programs use it there."""
import os
import pathlib
import re
import subprocess
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not os.environ.get("SONDE_WHEEL"), reason="it takes long: run `make test-wheel`")


def run(command, **extra):
    done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **extra)
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


def version():
    return re.search(r"version: '(.*?)'", (ROOT / "meson.build").read_text()).group(1)


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """The archive's tree, built and installed below `prefix` beside it."""
    folder = tmp_path_factory.mktemp("archive")
    archive = ROOT / run([ROOT / "tools/wheel", "--source"], cwd=ROOT).split()[-1]
    assert archive.name == f"sonde-{version()}.tar.gz"
    with tarfile.open(archive) as opened:
        opened.extractall(folder)
    tree = folder / f"sonde-{version()}"
    run(["make", "install", f"PREFIX={folder}/prefix", "MESON_OPTIONS=-Doptimization=0"], cwd=tree)
    return tree


@pytest.fixture(scope="module")
def prefix(tree):
    return tree.parent / "prefix"


def test_programs_in_c_record_and_read(tree, prefix):
    environment = {**os.environ, "PKG_CONFIG_PATH": f"{prefix}/lib/pkgconfig"}
    assert run(["pkg-config", "--modversion", "sonde", "sonde-trace"], env=environment).split() == [version()] * 2
    for name, package in (("schedule", "sonde"), ("longest", "sonde-trace")):
        flags = run(["pkg-config", "--cflags", "--libs", package], env=environment).split()
        run(["cc", tree / f"examples/{name}.c", "-o", tree / name, *flags, f"-Wl,-rpath,{prefix}/lib"])
    run([tree / "schedule", "traces"], cwd=tree)
    assert re.search(r" 4  work$", run([tree / "longest", "traces"], cwd=tree), re.M)
    needed = run(["readelf", "-dW", tree / "schedule"])
    assert "libsonde_record.so.1" in needed and "zstd" not in needed and "yaml" not in needed


def test_the_version_is_the_same_everywhere(tree, prefix):
    (tree / "v.c").write_text('#include <stdio.h>\n#include <sonde/version.h>\nint main(void) { printf("%s %d.%d.%d\\n", '
                              "SONDE_VERSION, SONDE_VERSION_MAJOR, SONDE_VERSION_MINOR, SONDE_VERSION_PATCH); }\n")
    run(["cc", tree / "v.c", "-o", tree / "v", "-I", prefix / "include"])
    assert run([tree / "v"]).split() == [version()] * 2
    assert run([prefix / "bin/sonde", "--version"]).split() == ["sonde", version()]
    for page in (prefix / "share/man/man1").glob("sonde*"):
        assert f"\n.Os sonde {version()}\n" in page.read_text(), page


def test_the_command_line_works_below_a_prefix(tree, prefix):
    (tree / "plain.py").write_text("def work():\n    return 1\n\n\nwork()\n")
    said = run([prefix / "bin/sonde", "run", "--functions", "--print", "--", "python3", "plain.py"], cwd=tree)
    assert "plain.py:1(work)" in said


def test_destdir_is_put_in_front(tree, tmp_path):
    run(["make", "install", "PREFIX=/opt/sonde", f"DESTDIR={tmp_path}"], cwd=tree)
    staged = tmp_path / "opt/sonde"
    for name in ("bin/sonde", "lib/libsonde_record.so.1", "lib/libsonde.a", "include/sonde/record.h",
                 "share/man/man1/sonde.1"):
        assert (staged / name).exists(), name
    assert "prefix=/opt/sonde\n" in (staged / "lib/pkgconfig/sonde.pc").read_text()
    assert [path.name for path in tmp_path.iterdir()] == ["opt"]
