# SPDX-License-Identifier: Apache-2.0
"""How the report page gets into the binary: by node and npm, from a release archive, or not at all."""
import os
import shutil
import subprocess
import sys

import pytest

from cli_tools import ROOT

PAGE = ROOT / "tools/page"


def test_without_node_there_is_one_line_that_says_so(tmp_path):
    for name in ("sh", "dirname", "cmp", "mkdir"):
        (tmp_path / name).symlink_to(shutil.which(name))
    done = subprocess.run([PAGE, "prepare"], env={"PATH": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "tools/page: node and npm are not installed\n")


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("npm") or not (ROOT / "build/report/page.html").exists(),
                    reason="this build has no page: node and npm are not installed")
def test_a_release_archive_carries_the_page(tmp_path):
    subprocess.run([PAGE, "dist"], env={**os.environ, "MESON_DIST_ROOT": str(tmp_path)}, check=True, timeout=600)
    made = (tmp_path / "report/built/page.html").read_bytes()
    assert made == (ROOT / "build/report/page.html").read_bytes() and b"@SONDE-DATA@" in made


@pytest.mark.skipif(not shutil.which("cc"), reason="there is no C compiler")
def test_the_page_comes_out_of_c_as_it_went_in(tmp_path):
    text = 'quote " back \\ slash ??/ tri\r\n\ttab 0123 \u00e9\U0001f680 %s' * 300
    (tmp_path / "page.html").write_bytes(text.encode())
    subprocess.run([sys.executable, ROOT / "report/embed.py", tmp_path / "page.c", tmp_path / "page.html"], check=True)
    (tmp_path / "main.c").write_text('#include <stdio.h>\n#include "export/page/page_template.h"\n'
                                     "int main(void) { fputs(snd_html_template, stdout); }\n")
    subprocess.run(["cc", "-std=c17", f"-I{ROOT / 'src'}", "-o", tmp_path / "show", tmp_path / "main.c", tmp_path / "page.c"], check=True)
    assert subprocess.run([tmp_path / "show"], check=True, stdout=subprocess.PIPE).stdout == text.encode()
