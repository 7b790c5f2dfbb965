# SPDX-License-Identifier: Apache-2.0
"""What the tests of Python programs share: running one under sonde and under a peer tool."""
import functools
import glob
import json
import os
import pathlib
import shutil
import subprocess
import sys
import sysconfig

import pytest

PROGRAMS = pathlib.Path(__file__).parent / "programs/python"
FREE = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))  # this Python has no interpreter lock
SONDE = os.environ.get("SONDE") or os.path.join(sysconfig.get_path("scripts"), "sonde")


def run(*words, cwd, status=0, **extra):
    """A finished process, which ended as it should; its output is text."""
    done = subprocess.run([str(word) for word in words], cwd=cwd, text=True, timeout=300,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, **extra)
    if status is not None:
        assert done.returncode == status, f"{done.args}: {done.returncode}\n{done.stderr}"
    return done


def python(*words, **extra):
    return run(sys.executable, *words, **extra)


def sonde_run(options, *program, interpreter=sys.executable, **extra):
    """`sonde run OPTIONS -- python PROGRAM`."""
    return run(SONDE, "run", "-q", *options, "--", interpreter, *program, **extra)


def rows(trace, view, *options):
    """The rows of a view, as its JSON has them."""
    done = run(SONDE, "report", trace, "--view", view, "--json", *options, cwd=".")
    return json.loads(done.stdout)["rows"]


@functools.lru_cache(maxsize=None)
def interpreters(since=9, but=()):
    """One of each series from 3.9 (or 3.`since`) on, with and without the interpreter lock ("3.14t"); where there is none, a case that is skipped."""
    found = {}
    places = [sys.executable, *glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"))]
    places += [shutil.which(f"python3.{minor}{kind}") for minor in range(9, 20) for kind in ("", "t")]
    for place in dict.fromkeys(filter(None, places)):
        done = subprocess.run([place, "-I", "-c", "import sys, sysconfig; print(*sys.version_info[:2], sysconfig."
                               "get_config_var('Py_GIL_DISABLED') or 0, sysconfig.get_path('include'))"],
                              stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if done.returncode == 0:
            major, minor, free, include = done.stdout.split(maxsplit=3)
            version = int(major), int(minor), int(free)
            if (3, since) <= version[:2] and version not in found and name_of(version) not in but:
                found[version] = place, include.strip()
    none = pytest.mark.skip(reason=f"before 3.{since} there is nothing to try, and no later Python is on this machine")
    return [pytest.param(*found[version], id=name_of(version)) for version in sorted(found)] or [pytest.param("", "", id="none", marks=none)]


def name_of(version):
    return f"{version[0]}.{version[1]}{'t' * version[2]}"


def own_interpreter():
    """The one that runs the tests, as interpreters() has it."""
    minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
    return [pytest.param(sys.executable, sysconfig.get_path("include"), id=minor)]
