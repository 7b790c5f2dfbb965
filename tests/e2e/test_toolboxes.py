# SPDX-License-Identifier: Apache-2.0
"""A tutorial's five toolboxes, each beside what sonde gives for it, over the tutorial's own model.

pytorch-benchmark for the model, flops-profiler, pytorch_memlab and torch.fx for the layers,
torch.profiler for the operators.
"""
import time
import warnings

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: the toolboxes need it")

from torch import fx, nn  # noqa: E402

import sonde  # noqa: E402

warnings.filterwarnings("ignore", category=FutureWarning)


class MyModel(nn.Module):
    def __init__(self):
        super(MyModel, self).__init__()
        self.conv1 = nn.Conv2d(3, 3, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(3, 3, kernel_size=3, padding=1)
        self.conv3 = nn.Conv2d(3, 3, kernel_size=3, padding=1)
        self.conv4 = nn.Conv2d(3, 3, kernel_size=3, padding=1)

    def forward(self, x1):
        x1 = self.conv1(x1)
        x1 = self.conv2(x1)
        x1 = self.conv3(x1)
        x1 = self.conv4(x1)
        return x1


MODEL = MyModel().eval()
INPUT = torch.randn(8, 3, 32, 32)
PARAMETERS = 4 * (3 * 3 * 9 + 3)
MACS = 4 * 3 * 3 * 9 * 32 * 32  # of one picture


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def test_the_model_level(capsys, tmp_path):
    """pytorch_benchmark.benchmark(model, sample, num_runs): parameters, FLOPs, latency, memory."""
    result = sonde.benchmark(MODEL, INPUT, num_runs=5)
    assert result["params"] == PARAMETERS and result["macs"] == MACS
    assert list(result["timing"]) == ["batch_size_1", "batch_size_8"]
    assert result["memory"]["batch_size_8"]["peak_activation_bytes"] >= 2 * 8 * 3 * 32 * 32 * 4
    result.print()
    assert f"Parameters: {PARAMETERS}" in capsys.readouterr().out
    result.save(tmp_path / "results.yml")
    import pytorch_benchmark
    theirs = pytorch_benchmark.benchmark(MODEL, INPUT, num_runs=2, print_fn=lambda text: None)
    assert theirs["params"] == result["params"]
    # Its "flops" are multiply-accumulates, and a bias is one of them at each position.
    assert theirs["flops"] == MACS + 4 * 3 * 32 * 32


def test_the_layers_profile(capsys):
    """flops_profiler.get_model_profile(model, input_shape, print_profile, detailed)."""
    profile = sonde.summary(MODEL, INPUT, backward=True)
    profile.print_model_profile()
    text = capsys.readouterr().out
    for name in ("conv1 (Conv2d)", "conv4 (Conv2d)", "MyModel (MyModel)", "Backward", "Depth"):
        assert name in text
    rows = {row["path"]: row for row in profile.rows()}
    assert rows["MyModel"]["macs"] == 8 * MACS
    assert rows["MyModel.conv2"]["parameters"] == PARAMETERS // 4
    assert rows["MyModel.conv2"]["backward_ns"] > 0 and rows["MyModel.conv2"]["forward_ns"] > 0
    assert sum(rows[f"MyModel.conv{i}"]["forward_ns"] for i in (1, 2, 3, 4)) == \
        pytest.approx(rows["MyModel"]["forward_ns"], abs=4)
    from flops_profiler import profiler
    _, macs, parameters = profiler.get_model_profile(MODEL, args=[INPUT], print_profile=False,
                                                     as_string=False, warm_up=1)
    assert (macs, parameters) == (rows["MyModel"]["macs"], rows["MyModel"]["parameters"])


def test_the_memory_of_tensors_and_lines(capsys):
    """pytorch_memlab's MemReporter(model).report() and LineProfiler(forward)."""
    sonde.memory_report(MODEL).print()
    assert "MyModel.conv1.weight" in capsys.readouterr().out
    with sonde.tensor_lines(MyModel.forward) as lines, torch.no_grad():
        MODEL(INPUT)
    rows = [row for row in lines.rows() if "self.conv" in row["source"]]
    assert len(rows) == 4 and all(row["taken_bytes"] >= INPUT.numel() * 4 for row in rows)
    assert [row["end_bytes"] for row in rows] == [0, 0, 0, 0]  # all of it was given back


class ProfilingInterpreter(fx.Interpreter):
    """The tutorial of torch.fx: time of each node."""

    def __init__(self, module):
        super().__init__(fx.symbolic_trace(module))
        self.seconds = {}

    def run_node(self, node):
        begun = time.perf_counter()
        result = super().run_node(node)
        self.seconds.setdefault(node, []).append(time.perf_counter() - begun)
        return result


def test_the_nodes_of_an_interpreter():
    """torch.fx's Interpreter measures the nodes of a graph; a row a module has them all."""
    interpreter = ProfilingInterpreter(MODEL)
    with torch.no_grad():
        interpreter.run(INPUT)
    nodes = [node.target for node in interpreter.seconds if node.op == "call_module"]
    rows = sonde.summary(MODEL, INPUT).rows()
    assert [row["path"].partition(".")[2] for row in rows if row["depth"] == 2] == nodes
    assert all(row["calls"] == 1 for row in rows if row["depth"] == 2)


def test_the_operators(capsys):
    """torch.profiler's table, of the same passes."""
    sonde.benchmark(MODEL, INPUT, num_runs=1, batch_sizes=[8], measure_peak=False).print("op")
    text = capsys.readouterr().out
    assert "aten::conv2d" in text and "Self CPU" in text and "# of Calls" in text
