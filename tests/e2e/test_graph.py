# SPDX-License-Identifier: Apache-2.0
"""sonde model --level graph, sonde.graph: a row for every node, as torch.fx's tutorial has it."""
import json
import os
import statistics
import sys
import time

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: there is no model to run")

from torch import fx  # noqa: E402

import sonde  # noqa: E402
from cli_tools import ROOT  # noqa: E402

PROGRAMS = ROOT / "tests/e2e/programs"
sys.path.insert(0, str(PROGRAMS))
import nets  # noqa: E402
from test_model import one_thread, run  # noqa: E402,F401 (one_thread is used by itself)


def test_modules_functions_and_methods_have_rows():
    x = torch.randn(2, 3, 16, 16)
    model = nets.Mixed()
    graph = sonde.graph(model, x, num_runs=2)
    rows = {row["name"]: row for row in graph.rows()}
    kinds = [(row["kind"], row["target"]) for row in graph.rows()]
    assert ("call_function", "operator.add") in kinds
    assert ("call_function", "torch.nn.functional.relu") in kinds
    assert ("call_function", "torch.flatten") in kinds
    assert ("call_method", "mean") in kinds
    assert ("call_module", "features.0") in kinds
    assert kinds[-1] == ("output", "output") and kinds[0] == ("placeholder", "x")
    add = rows["add"]
    assert add["input_shapes"] == [[2, 16, 8, 8]] * 2 and add["output_shapes"] == [[2, 16, 8, 8]]
    size = 2 * 16 * 8 * 8 * 4
    assert add["bytes"] == 3 * size and add["activation_bytes"] == size
    assert add["flops"] == size // 4 and add["mean_ns"] > 0 and add["runs"] == 2
    assert add["peak_bytes"] >= add["held_bytes"] >= 2 * size
    conv = rows["features_0"]
    assert conv["class"] == "Conv2d" and conv["parameter_bytes"] == (8 * 3 * 9 + 8) * 4
    whole = sonde.summary(model, x).rows()[0]
    assert sum(row["flops"] for row in graph.rows()) == whole["flops"]
    assert sum(row["macs"] for row in graph.rows()) == whole["macs"]
    assert model.training
    text = str(graph)
    assert "Traced by: torch.fx" in text and "features.0 (Conv2d)" in text


def test_arguments_by_name_and_several():
    scale = torch.full((2, 1), 2.0)
    rows = sonde.graph(nets.Mixed(), {"x": torch.randn(2, 3, 16, 16), "scale": scale},
                       num_runs=1).rows()
    assert "operator.mul" in [row["target"] for row in rows]
    rows = sonde.graph(nets.TwoInputs(), (torch.randn(2, 4), torch.randn(2, 6)), num_runs=1).rows()
    assert [row["output_shapes"] for row in rows[:2]] == [[[2, 4]], [[2, 6]]]


def test_what_torch_fx_cannot_trace_torch_export_does():
    graph = sonde.graph(nets.Branches(), torch.randn(2, 3, 16, 16), num_runs=1)
    assert "Traced by: torch.export" in str(graph)
    targets = [row["target"] for row in graph.rows()]
    assert any("conv2d" in target for target in targets)
    whole = sonde.summary(nets.Branches(), torch.randn(2, 3, 16, 16)).rows()[0]
    assert sum(row["macs"] for row in graph.rows()) == whole["macs"]


def test_where_tracing_fails_it_says_so_and_the_other_levels_come(tmp_path):
    with pytest.raises(RuntimeError, match="cannot be traced.*torch.fx: .*torch.export: ") as said:
        sonde.graph(nets.Untraceable(), torch.randn(1, 3, 16, 16))
    assert "\n" not in str(said.value)
    spec = f"{PROGRAMS}/nets.py:Untraceable"
    done = run(spec, "-i", 2, "--level", "layer,graph", "--trace", tmp_path / "t")
    assert (done.returncode, done.stderr) == (0, "")
    assert "features (Sequential)" in done.stdout
    assert "\nGraph\nThe model cannot be traced, so there is no graph of it. torch.fx: " in done.stdout
    with sonde.Trace(tmp_path / "t") as trace:
        read = json.loads(trace.report(view="graph", format="json"))
    assert read["rows"] == [] and "cannot be traced" in read["totals"]["absent"]


def test_the_graph_on_the_command_line(tmp_path):
    done = run(f"{PROGRAMS}/nets.py:Mixed", "-b", "1,2", "-i", 2, "--level", "model,layer,graph",
               "-n", -1, "--trace", tmp_path / "traces")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Layers, batch size 2\n" in done.stdout
    assert "features (Sequential)" in done.stdout  # of the model's passes, not of the graph's
    assert "Graph, batch size 2" in done.stdout and "operator.add" in done.stdout
    assert sorted(os.listdir(tmp_path / "traces")) == [
        "graph-2.sonde", "graph-time-2.sonde", "pass-1.sonde", "pass-2.sonde", "peak.sonde",
        "timing-1.sonde", "timing-2.sonde"]
    done = run(f"{PROGRAMS}/nets.py:Mixed", "-i", 2, "--level", "graph", "--json")
    read = json.loads(done.stdout)["graph"]
    assert read["tracer"] == "torch.fx"
    assert 0 < sum(node["share"] for node in read["batch_size_1"]) <= 1


# ------------------------------------------------------------------- beside the tutorial

class ProfilingInterpreter(fx.Interpreter):
    """As in "Building a simple CPU performance profiler with FX" of PyTorch's tutorials."""

    def __init__(self, module):
        super().__init__(fx.symbolic_trace(module))
        self.total_runtime_sec = []
        self.runtimes_sec = {}

    def run(self, *args):
        start = time.time()
        result = super().run(*args)
        self.total_runtime_sec.append(time.time() - start)
        return result

    def run_node(self, node):
        start = time.time()
        result = super().run_node(node)
        self.runtimes_sec.setdefault(node, []).append(time.time() - start)
        return result

    def shares(self):
        total = statistics.mean(self.total_runtime_sec)
        return {node.name: statistics.mean(times) * 100 / total
                for node, times in self.runtimes_sec.items()}


@pytest.mark.long
@pytest.mark.alone
def test_shares_are_those_of_the_tutorials_interpreter():
    """Its own ResNet-18. In turns; of each node the median of the rounds, as others' work on the
    machine falls on one or the other."""
    torchvision = pytest.importorskip("torchvision", reason="torchvision is not installed")
    model, x = torchvision.models.resnet18().eval(), torch.randn(2, 3, 224, 224)
    theirs, ours = [], []
    with torch.no_grad():
        model(x)
        for _ in range(5):
            interpreter = ProfilingInterpreter(model)
            for _ in range(3):
                interpreter.run(x)
            theirs.append(interpreter.shares())
            rows = sonde.graph(model, x, num_runs=3, warmup=1).rows()
            ours.append({row["name"]: row["time_percent"] for row in rows})
    assert list(ours[0]) == list(theirs[0])
    for name in theirs[0]:
        their = statistics.median(one[name] for one in theirs)
        our = statistics.median(one[name] for one in ours)
        assert abs(our - their) < 3, (name, our, their)
