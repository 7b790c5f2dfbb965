# SPDX-License-Identifier: Apache-2.0
"""What is compiled for torch is loaded into the process: it is kept where nobody else can write."""
import os
import subprocess
import sys

import pytest

WHERE = "from sonde.torch import _probe; print(_probe._cache_folder())"


def where(home, cwd=None, **environment):
    env = {**os.environ, "HOME": str(home), "TMPDIR": str(home), **environment}
    done = subprocess.run([sys.executable, "-c", WHERE], env=env, cwd=cwd, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_relative_cache_is_ignored(tmp_path):
    found = where(tmp_path, cwd=tmp_path, XDG_CACHE_HOME="here")
    assert found == f"{tmp_path}/.cache/sonde" and not (tmp_path / "here").exists()
    assert where(tmp_path, XDG_CACHE_HOME="") == found
    assert where(tmp_path, XDG_CACHE_HOME=str(tmp_path / "own")) == f"{tmp_path}/own/sonde"


@pytest.mark.parametrize("which", ["mode", "owner"])
def test_a_cache_below_a_folder_of_others_is_not_used(tmp_path, which):
    above = tmp_path / "above"
    (above / "cache").mkdir(parents=True)
    if which == "mode":
        above.chmod(0o777)
    elif os.geteuid() == 0:
        os.chown(above, 65534, -1)
    else:
        pytest.skip("only root can give a folder away")
    assert where(tmp_path, XDG_CACHE_HOME=str(above / "cache")) == f"{tmp_path}/sonde-{os.getuid()}"
    (tmp_path / "link").symlink_to(above / "cache")
    assert where(tmp_path, XDG_CACHE_HOME=str(tmp_path / "link")) == f"{tmp_path}/sonde-{os.getuid()}"
    if which == "mode":  # as /tmp: others can make files there, but not rename ours
        above.chmod(0o1777)
        assert where(tmp_path, XDG_CACHE_HOME=str(above / "cache")) == f"{above}/cache/sonde"
