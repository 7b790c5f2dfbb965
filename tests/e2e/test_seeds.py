# SPDX-License-Identifier: Apache-2.0
"""Users' programs, with nothing changed but the import line, print the same tables.

Each runs twice: as it is, and with sonde's import. The tables must have the same rows, columns,
counts and memory; only the times may differ.
"""
import json
import pathlib
import re

import pytest

pytest.importorskip("torch", reason="torch is not installed: the programs need it")
pytest.importorskip("torchvision", reason="torchvision is not installed: the programs need it")

import warm_torch  # noqa: E402

SEEDS = pathlib.Path(__file__).parent / "seeds"
TORCH_IMPORT = re.compile(r"^from torch\.profiler import", re.MULTILINE)
ACCELERATE_IMPORT = re.compile(r"^from accelerate import ProfileKwargs", re.MULTILINE)


def run(program, text, folder):
    folder.mkdir()
    (folder / program).write_text(text)
    done = warm_torch.run(program, cwd=folder)
    assert done.returncode == 0, done.stderr
    return done.stdout


def changed(program):
    text = (SEEDS / program).read_text()
    text, torch_lines = TORCH_IMPORT.subn("from sonde import", text)
    text, accelerate_lines = ACCELERATE_IMPORT.subn("from sonde import ProfileKwargs", text)
    assert torch_lines + accelerate_lines == 1
    return text


def tables(output):
    """[(columns, {row name and shapes: (calls, memory)})]: what does not depend on the clock."""
    found = []
    for block in re.split(r"^Self CPU time total.*$", output, flags=re.MULTILINE)[:-1]:
        lines = block.splitlines()
        rule = next(i for i, line in enumerate(lines) if re.fullmatch(r"-[- ]*", line))
        ends = [match.end() for match in re.finditer("-+", lines[rule])]
        begins = [match.start() for match in re.finditer("-+", lines[rule])]

        def cells(line):
            return [line[b:e].strip() for b, e in zip(begins, ends)]

        header = cells(lines[rule + 1])
        kept = [n for n, name in enumerate(header)
                if name in ("# of Calls", "CPU Mem", "Self CPU Mem", "Input Shapes")]
        rows = sorted((cells(line)[0], *(cells(line)[n] for n in kept))
                      for line in lines[rule + 3:] if line.strip() and not line.startswith("--"))
        found.append((header, rows))
    return found


def same_but_for_order(ours, theirs):
    """The same tables, where a row limit and other times may let other rows in."""
    assert len(ours) == len(theirs) > 0
    for (our_header, our_rows), (their_header, their_rows) in zip(ours, theirs):
        flops = "FLOPs" in our_header[-1]  # in full: more rows have them, so other rows come first
        assert our_header == their_header or flops and our_header[:-1] == their_header[:-1]
        assert len(our_rows) == len(their_rows)
        their_names = {row[0]: row for row in their_rows}
        common = [row for row in our_rows if row[0] in their_names]
        assert len(common) >= (1 if flops else len(our_rows) // 2)
        if "Input Shapes" not in our_header:
            assert all(their_names[row[0]] == row for row in common)


@pytest.mark.parametrize("program", ["quickstart.py", "resnet.py", "sample_code.py",
                                     "guide_torch.py", "guide_accelerate.py"])
def test_only_the_import_changes(program, tmp_path):
    if program == "guide_accelerate.py":
        pytest.importorskip("accelerate", reason="accelerate is not installed: the program needs it")
    theirs = run(program, (SEEDS / program).read_text(), tmp_path / "theirs")
    ours = run(program, changed(program), tmp_path / "ours")
    same_but_for_order(tables(ours), tables(theirs))
    files = [sorted(str(path.relative_to(tmp_path / side)) for path in
                    (tmp_path / side).rglob("*.json")) for side in ("ours", "theirs")]
    assert files[0] == files[1]
    for name in files[0]:
        names = [{event["name"] for event in json.loads((tmp_path / side / name).read_text())
                  ["traceEvents"] if event.get("cat") == "cpu_op"} for side in ("ours", "theirs")]
        assert names[0] == names[1] and names[0]


@pytest.mark.parametrize("name,lines", [("resnet18", ["aten::conv2d", "model_inference"]),
                                        ("train", ["Three steps", "aten::convolution_backward"])])
def test_examples(name, lines, tmp_path):
    """What `make demo` shows: the tables, and the two files."""
    import sonde
    program = SEEDS.parents[2] / "examples/torch" / f"{name}.py"
    done = warm_torch.run(program, tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert all(line in done.stdout for line in lines)
    assert json.loads((tmp_path / f"out/{name}.json").read_text())["traceEvents"]
    with sonde.Trace(tmp_path / f"out/{name}.sonde") as trace:
        assert "aten::" in trace.report(view="ops")
    assert (tmp_path / f"out/{name}.sonde").stat().st_mode & 0o777 == 0o600
