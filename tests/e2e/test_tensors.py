# SPDX-License-Identifier: Apache-2.0
"""sonde.memory_report and sonde.tensor_lines: which tensors hold memory, which lines took it."""
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: there are no tensors")

import sonde  # noqa: E402
from cli_tools import ROOT, SONDE, read_json  # noqa: E402

sys.path.insert(0, str(ROOT / "tests/e2e/programs"))
import nets  # noqa: E402


def size(tensor):
    return tensor.numel() * tensor.element_size()


# -------------------------------------------------------------------------- by tensor

def trained(model, inputs, optimizer):
    model(inputs).sum().backward()
    optimizer.step()


def test_parameters_gradients_and_optimizer_state():
    model = nets.Net()
    optimizer = torch.optim.Adam(model.parameters())
    trained(model, torch.randn(2, 3, 16, 16), optimizer)
    report = sonde.memory_report(model, optimizer)
    rows = {row["name"]: row for row in report.rows()}
    for name, parameter in model.named_parameters():
        row = rows[f"Net.{name}"]
        assert (row["kind"], row["dtype"], row["device"]) == ("parameter", "float32", "cpu")
        assert row["shape"] == list(parameter.shape) and row["size_bytes"] == size(parameter)
        assert rows[f"Net.{name}.grad"]["kind"] == "gradient"
        for key in ("exp_avg", "exp_avg_sq", "step"):
            assert rows[f"Adam.Net.{name}.{key}"]["kind"] == "optimizer"
    totals = report.totals()
    parameters = sum(map(size, model.parameters()))
    assert totals["parameter_bytes"] == totals["gradient_bytes"] == parameters
    assert totals["buffer_bytes"] == sum(map(size, model.buffers()))
    assert totals["optimizer_bytes"] == 2 * parameters + 4 * len(list(model.parameters()))
    assert totals["tensors"] == len(rows)


def test_shared_storage_counts_once(tmp_path):
    model = nets.Tied()
    report = sonde.memory_report(model)
    rows = {row["name"]: row for row in report.rows()}
    assert rows["Tied.head.weight"]["shared_with"] == "Tied.embed.weight"
    assert rows["Tied.head.weight"]["added_bytes"] == 0
    assert report.totals()["storage_bytes"] == sum(map(size, model.parameters()))
    assert "Tied.embed.weight" in str(report)
    report.save(tmp_path / "t.sonde")
    assert read_json("report", tmp_path / "t.sonde", "--view", "tensors", "--json",
                     "--sort", "size_bytes")["rows"][0]["size_bytes"] == 50 * 8 * 4


def test_a_view_shows_the_storage_it_keeps():
    """MemReporter's own example: a slice of a large tensor holds all of it."""
    large = torch.zeros(1000, 1000)
    model = torch.nn.Module()
    model.register_buffer("slice", large[0])
    row = sonde.memory_report(model).rows()[0]
    assert (row["size_bytes"], row["storage_bytes"]) == (4000, 4_000_000)


def test_everything_that_lives():
    kept = torch.zeros(12345)
    names = [row for row in sonde.memory_report(everything=True).rows()
             if row["size_bytes"] == size(kept)]
    assert len(names) == 1 and names[0]["kind"] == "tensor"
    assert sonde.memory_report().rows() == []


def test_names_and_shapes_are_memreporters():
    """pytorch_memlab's own list, of the same model."""
    reporter = pytest.importorskip("pytorch_memlab.mem_reporter",
                                   reason="pytorch_memlab is not installed")
    model = nets.Tied()
    theirs = reporter.MemReporter(model)
    theirs.collect_tensor()
    theirs.get_stats()
    shown = {}
    for stats in theirs.device_tensor_stat.values():
        for name, shape, numel, used in stats:
            shown.setdefault(name, (tuple(shape), numel))
    ours = {row["name"].removeprefix("Tied."): tuple(row["shape"])
            for row in sonde.memory_report(model).rows()}
    common = set(shown) & set(ours)
    assert common >= {"embed.weight", "body.weight", "body.bias"}
    assert all(shown[name][0] == ours[name] for name in common)


# ---------------------------------------------------------------------------- by line

def work(n):
    first = torch.ones(n)
    second = first.exp()
    del first
    third = helper(second)
    return third


def helper(x):
    return x.neg()


def line_of(function, text):
    """The number of the line of `function` that has `text` in it."""
    import inspect
    lines, start = inspect.getsourcelines(function)
    return next(start + i for i, line in enumerate(lines) if text in line)


def rows_of(lines):
    return {row["line"]: row for row in lines.rows()}


def test_each_line_has_the_bytes_it_took():
    with sonde.tensor_lines(work) as lines:
        kept = work(1000)
    rows = rows_of(lines)
    first, second = rows[line_of(work, "ones")], rows[line_of(work, "exp")]
    third = rows[line_of(work, "helper")]
    assert (first["taken_bytes"], first["end_bytes"], first["allocs"]) == (4000, 0, 1)
    assert (second["taken_bytes"], second["active_bytes"]) == (4000, 8000)
    assert (third["taken_bytes"], third["end_bytes"]) == (4000, size(kept))  # what it called took
    assert third["active_bytes"] == 8000  # `first` is gone by then
    assert rows[line_of(work, "del first")]["allocs"] is None
    assert rows[line_of(work, "def work")]["source"] == "def work(n):"


def test_the_innermost_chosen_function_has_it():
    with sonde.tensor_lines(work, helper) as lines:
        work(1000)
    rows = rows_of(lines)
    assert rows[line_of(work, "helper")]["allocs"] is None
    assert rows[line_of(helper, "neg")]["taken_bytes"] == 4000
    assert sum(row["taken_bytes"] or 0 for row in rows.values()) == 12000


def test_methods_and_decorated_calls():
    model = nets.Net()
    lines = sonde.tensor_lines(nets.Net.forward)

    @lines
    def step():
        return model(torch.randn(2, 3, 16, 16))

    step()
    step()
    taken = [row["taken_bytes"] for row in lines.rows() if "self.head" in row["source"]]
    assert taken[0] > 2 * 8 * 16 * 16 * 4  # at least the first convolution's result
    assert "return self.head" in str(lines)


def test_what_is_no_function_is_refused():
    with pytest.raises(TypeError, match="not a Python function"):
        sonde.tensor_lines(len)
    with pytest.raises(ValueError, match="at least one function"):
        sonde.tensor_lines()


def test_the_report_of_a_saved_trace(tmp_path):
    with sonde.tensor_lines(helper) as lines:
        helper(torch.zeros(10))
    lines.save(tmp_path / "l.sonde")
    done = subprocess.run([SONDE, "report", tmp_path / "l.sonde", "--view", "tensor-lines"],
                          stdout=subprocess.PIPE, check=True, encoding="utf-8")
    assert "return x.neg()" in done.stdout and "40 B" in done.stdout
