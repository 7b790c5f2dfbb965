# SPDX-License-Identifier: Apache-2.0
"""The library against the stored dump of its interface, and what such a comparison must find (tools/abi)."""
import os
import pathlib
import re
import subprocess

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LIBRARY = os.environ.get("SONDE_ABI_LIBRARY", ROOT / "build/src/libsonde_record.so.1")
DUMP = ROOT / "tests/data/abi/libsonde_record.xml"


def check(dump):
    return subprocess.run([ROOT / "tools/abi", "check", LIBRARY, dump], text=True, stdout=subprocess.PIPE)


def test_programs_that_were_linked_before_still_run():
    done = check(DUMP)
    assert done.returncode == 0, done.stdout


def swap(text, struct, one, other):
    """The dump with two members of a struct in each other's place."""
    begin = text.index(f"<class-decl name='{struct}'")
    end = text.index("</class-decl>", begin)
    body = text[begin:end].replace(f"name='{one}'", "name='?'").replace(f"name='{other}'", f"name='{one}'")
    return text[:begin] + body.replace("name='?'", f"name='{other}'") + text[end:]


CHANGES = {
    "two members of the options in each other's place":
        (lambda text: swap(text, "sonde_options", "rank", "world_size"), 4, "rank"),
    "a struct of the inline marks that was smaller":
        (lambda text: re.sub(r"(<class-decl name='sonde_lane' size-in-bits=)'320'", r"\1'256'", text), 4, "sonde_lane"),
    "a function that is no longer there":
        (lambda text: re.sub(r"'sonde_mark'", "'sonde_gone'", text), 8, "sonde_gone"),
    "a function that was added since":
        (lambda text: re.sub(r".*<elf-symbol name='sonde_mark'.*\n", "", text), 4, "sonde_mark"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_found(tmp_path, change):
    edit, bit, named = CHANGES[change]
    text = DUMP.read_text()
    assert edit(text) != text
    old = tmp_path / "old.xml"
    old.write_text(edit(text))
    done = check(old)
    assert done.returncode & bit and named in done.stdout, done.stdout
