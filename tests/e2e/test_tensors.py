# SPDX-License-Identifier: Apache-2.0
"""sonde.memory_report and sonde.tensor_lines: which tensors hold memory, which lines took it."""
import json
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


def test_tensors_without_a_storage_of_their_own():
    """Sparse ones hold indices and values, others tell no place at all; the rest is listed too."""
    dense = torch.eye(60)
    kept = {"coo": dense.to_sparse(), "csr": dense.to_sparse_csr(), "csc": dense.to_sparse_csc(),
            "bsr": dense.to_sparse_bsr((2, 2)), "packed": dense.to_mkldnn(),
            "jagged": torch.nested.nested_tensor([dense, dense[:7]], layout=torch.jagged),
            "plain": dense}
    model = torch.nn.Module()
    for name, tensor in kept.items():
        model.register_buffer(name, tensor)
    rows = {row["name"].partition(".")[2]: row for row in sonde.memory_report(model).rows()}
    assert set(rows) == set(kept)
    held = {name: row["storage_bytes"] for name, row in rows.items()}
    assert held["coo"] == 60 * (2 * 8 + 4)
    assert held["csr"] == held["csc"] == (60 + 61) * 8 + 60 * 4
    assert held["bsr"] == (30 + 31) * 8 + 30 * 4 * 4
    assert held["packed"] == held["plain"] == 60 * 60 * 4
    assert held["jagged"] == 67 * 60 * 4 + 3 * 8
    assert rows["jagged"]["shape"] == [2, -1, 60] and rows["csr"]["shape"] == [60, 60]
    assert all(row["shared_with"] in ("", None) for row in rows.values())
    assert len(sonde.memory_report(everything=True).rows()) >= len(kept)


def test_names_and_shapes_are_memreporters():
    """pytorch_memlab's own list, of the same model."""
    from pytorch_memlab import mem_reporter
    model = nets.Tied()
    theirs = mem_reporter.MemReporter(model)
    theirs.collect_tensor()
    # It fails at tensors without memory, such as other tests may have left behind.
    own = {id(one) for one in model.parameters()}
    theirs.device_mapping = {device: [one for one in tensors if id(one) in own]
                             for device, tensors in theirs.device_mapping.items()}
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


def test_a_function_of_any_length(tmp_path, monkeypatch):
    """More of them than a record holds, and one line of more bytes than a value of metadata."""
    body = [f"    x = x.neg()  # {number} {'abc déf ' * 5}" for number in range(600)]
    body[150] = f"    x = x.neg()  # {'long ' * 2000}"
    path = tmp_path / "long_one.py"
    path.write_text("\n".join(["def long_one(x):", *body, "    return x", ""]), encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    import long_one
    with sonde.tensor_lines(long_one.long_one, helper) as lines:
        long_one.long_one(torch.zeros(1000))
    rows = [row for row in lines.rows() if row["function"] == "long_one"]
    assert [row["line"] for row in rows] == list(range(1, 603))
    assert [row["taken_bytes"] for row in rows] == [None] + 600 * [4000] + [None]
    sources = path.read_text(encoding="utf-8").splitlines()
    assert [row["source"] for row in rows] == sources
    assert [row["source"] for row in lines.rows()][602:] == ["def helper(x):", "    return x.neg()"]


def facts_of(made, tmp_path):
    """The typed records of its trace, by kind; and the keys of its metadata."""
    made.save(tmp_path / "t.sonde")
    done = subprocess.run([SONDE, "export", tmp_path / "t.sonde", "--to", "json", "-o", "-"],
                          stdout=subprocess.PIPE, check=True, encoding="utf-8")
    process, = json.loads(done.stdout)["processes"]
    facts = {fact["kind"]: [(one["field"], one["value"]) for one in fact["members"]] for fact in process["facts"]}
    return facts, [one["key"] for one in process["metadata"]]


def test_tensors_and_lines_are_typed_records(tmp_path):
    model = torch.nn.Linear(4, 10)
    facts, metadata = facts_of(sonde.memory_report(model), tmp_path)
    members = dict(facts["tensor"])
    assert members["kind"] == "parameter" and members["bytes"] == 40 and members["shape"] == "[10]"
    assert members["storage"] == model.bias.untyped_storage().data_ptr()
    assert not [key for key in metadata if key.startswith("tensor ")]
    with sonde.tensor_lines(helper) as lines:
        helper(torch.zeros(10))
    facts, metadata = facts_of(lines, tmp_path)
    assert [value for word, value in facts["lines"] if word == "lines"] == [
        "def helper(x):", "    return x.neg()"]
    assert not [key for key in metadata if key.startswith("model.lines")]


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
