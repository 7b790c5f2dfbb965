# SPDX-License-Identifier: Apache-2.0
"""Calls of modules are recorded, not inferred from their operators. The oracle is torch's own hook."""
import collections
import shutil
import threading
import warnings

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402

import sonde  # noqa: E402
from sonde.torch import _compiled  # noqa: E402
from cli_tools import read_json  # noqa: E402


class Loop(nn.Module):
    def forward(self, x):
        for _ in range(5):
            x = torch.sin(x)
        return x


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        return self.fc(self.fc(x))


class Net(nn.Module):
    """A loop of one operator, a layer that is called twice, several operators of one name, none at all."""

    def __init__(self):
        super().__init__()
        self.loop, self.twice = Loop(), Twice()
        self.lstm = nn.LSTM(8, 8, batch_first=True)
        self.nothing = nn.Identity()
        self.parts = nn.ModuleList([nn.LayerNorm(8), nn.LayerNorm(8)])

    def forward(self, x):
        x = self.nothing(self.twice(self.loop(x)))
        for part in self.parts:
            x = part(x)
        return self.lstm(x)[0]


def counted(model, run):
    """Calls by path, as torch's hook sees them."""
    paths = {id(one): f"{type(model).__name__}.{name}".rstrip(".") for name, one in model.named_modules()}
    calls = collections.Counter()
    lock = threading.Lock()

    def count(module, _args):
        with lock:
            calls[paths[id(module)]] += 1

    handles = [one.register_forward_pre_hook(count) for one in model.modules()]
    run()
    for handle in handles:
        handle.remove()
    return dict(calls)


def recorded(run, path, **options):
    with sonde.profile(with_modules=True, **options) as prof:
        run()
    prof.save(path)
    rows = read_json("report", path, "--view", "modules", "--json", "--rows", "-1")["rows"]
    return {row["path"]: row for row in rows if row["path"]}


def calls_of(rows):
    return {path: row["calls"] for path, row in rows.items() if row["calls"]}


@pytest.mark.parametrize("options", [{}, {"with_stack": True, "profile_memory": True}])
def test_calls_are_those_that_were_made(options, tmp_path):
    net, x = Net().eval(), torch.randn(2, 3, 8)

    def run():
        with torch.no_grad():
            for _ in range(3):
                net(x)

    run()
    rows = recorded(run, tmp_path / "t.sonde", **options)
    assert calls_of(rows) == counted(net, run)
    assert {path: row["idle_calls"] for path, row in rows.items() if row["idle_calls"]} == {"Net.nothing": 3}
    assert not any(row["calls_inferred"] for row in rows.values())


def test_calls_of_threads_of_failures_and_of_training(tmp_path):
    net = Net()

    class Fails(nn.Module):
        def __init__(self):
            super().__init__()
            self.first = nn.Linear(8, 8)

        def forward(self, x):
            self.first(x)
            raise ValueError("on purpose")

    fails = Fails()

    def train():
        for _ in range(4):
            net(torch.randn(2, 3, 8)).sum().backward()

    def run():
        threads = [threading.Thread(target=train) for _ in range(3)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            with pytest.raises(ValueError):
                fails(torch.randn(2, 8))
        for thread in threads:
            thread.join()

    rows = recorded(run, tmp_path / "t.sonde")
    expected = {path: 2 * 3 * 4 if path.startswith("Net.twice.") else 3 * 4
                for path in ("Net", "Net.loop", "Net.twice", "Net.twice.fc", "Net.lstm", "Net.nothing",
                             "Net.parts.0", "Net.parts.1")}
    assert calls_of(rows) == {**expected, "Fails": 5, "Fails.first": 5}


def test_nothing_is_left_behind(tmp_path):
    """Calls after the recording are as before it, and what Python sees of modules never changes."""
    function, net = nn.Module.__call__, Net().eval()
    seen = (function.__code__, function.__name__, nn.Module.__call__.__doc__)
    rows = recorded(lambda: net(torch.randn(1, 2, 8)), tmp_path / "a.sonde")
    net(torch.randn(1, 2, 8))
    assert nn.Module.__call__ is function
    assert (function.__code__, function.__name__, function.__doc__) == seen
    again = recorded(lambda: net(torch.randn(1, 2, 8)), tmp_path / "b.sonde")
    assert calls_of(rows) == calls_of(again)


def test_calls_inside_torchscript_are_shown_as_inferred(tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scripted = torch.jit.script(Twice())
    x = torch.randn(2, 8)
    for _ in range(3):
        scripted(x)
    rows = recorded(lambda: scripted(x), tmp_path / "t.sonde")
    assert (rows["Twice"]["calls"], rows["Twice"]["calls_inferred"]) == (1, 0)
    assert rows["Twice.fc"]["calls_inferred"] == 1


def test_the_peak_of_a_call_is_above_what_was_held_when_it_began(tmp_path):
    class Holds(nn.Module):
        """Two megabytes at once, of which one is freed between operators."""

        def forward(self, x):
            first = torch.zeros(1 << 18)
            second = torch.zeros(1 << 18)
            del first
            third = torch.zeros(1 << 18)
            return x + second[0] + third[0]

    rows = recorded(lambda: Holds()(torch.zeros(1)), tmp_path / "t.sonde", profile_memory=True)
    assert 2 << 20 <= rows["Holds"]["peak_bytes"] < (2 << 20) + 4096


def test_a_benchmark_has_the_calls_of_one_pass():
    rows = {row["path"]: row["calls"] for row in sonde.summary(Net().eval(), torch.randn(2, 3, 8), passes=2).rows()}
    assert (rows["Net"], rows["Net.lstm"], rows["Net.twice.fc"], rows["Net.nothing"]) == (1, 1, 2, 1)


# ------------------------------------------------------------------ compiled code

class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc, self.norm = nn.Linear(8, 8), nn.LayerNorm(8)

    def forward(self, x):
        return torch.sin(self.norm(self.fc(x)))


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        self.one, self.two = Part(), Part()

    def forward(self, x):
        return self.two(self.one(x))


ROOT = "OptimizedModule._orig_mod"


@pytest.fixture
def kernels(monkeypatch):
    """C++ kernels are ranges, as under `sonde run --modules`: in a profile they are not, since torch's has none."""
    record = _compiled.record
    monkeypatch.setattr(_compiled, "record", lambda wanted, kernels=False: record(wanted, wanted))


def divided(compiled, x, path):
    """Time of each module of a compiled model, forward and backward; what the ledger says of it; its kernels."""
    schedule = torch.profiler.schedule(wait=0, warmup=1, active=2)
    with sonde.profile(with_modules=True, schedule=schedule) as prof:
        for _ in range(3):
            compiled(x).sum().backward()
            prof.step()
    prof.save(path)
    rows = read_json("report", path, "--view", "modules", "--json", "--rows", "-1")["rows"]
    times = {row["path"]: (row["forward_ns"], row["backward_ns"]) for row in rows if row["path"].startswith(ROOT)}
    ledger = read_json("report", path, "--view", "ledger", "--json")["rows"]
    made = {event.module for event in prof.events() if event.name.startswith("cpp_")}
    return times, "compiled_modules" in {row["key"] for row in ledger}, made


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++")
def test_time_of_compiled_code_is_its_modules(tmp_path, kernels):
    """By what inductor says of its kernels, when it makes them and when it finds them in its cache on disk."""
    debug = pytest.importorskip("torch._inductor.debug")
    if not hasattr(debug, "set_kernel_post_grad_provenance_tracing"):
        pytest.skip("this torch does not say what its kernels are made of")
    from torch._dynamo.utils import counters
    from torch._functorch import config as autograd_config
    from torch._inductor import config
    from torch._inductor.codecache import FxGraphHashDetails, PyCodeCache
    from torch._inductor.output_code import CompiledFxGraph
    own = [debug.set_kernel_post_grad_provenance_tracing, CompiledFxGraph.__init__, CompiledFxGraph.post_compile,
           FxGraphHashDetails.__init__, torch._TorchCompileInductorWrapper.__call__]
    net, x = Parts(), torch.randn(4, 8)
    expected = net(x)
    for attempt in ("made", "kept", "loaded"):
        torch.compiler.reset()
        counters.clear()
        compiled, cached = torch.compile(net), attempt != "made"
        with config.patch(fx_graph_cache=cached), autograd_config.patch(enable_autograd_cache=cached):
            times, left, made = divided(compiled, x, tmp_path / f"{attempt}.sonde")
        hits = counters["aot_autograd"]["autograd_cache_hit"] + counters["inductor"]["fxgraph_cache_hit"]
        assert (hits > 0) == (attempt == "loaded") or attempt == "kept"
        for part in ("one", "two"):
            for name, (forward, backward) in ((name, times[f"{ROOT}.{part}{name}"]) for name in ("", ".fc")):
                assert forward > 0 and backward > 0, (part, name)
        assert not left
        assert {f"{ROOT}.one", f"{ROOT}.two"} <= made, "a fused kernel is the modules' ancestor's"
        assert torch.allclose(compiled(x), expected, atol=1e-5)
    # A later profile runs the same code, and knows it.
    assert not divided(compiled, x, tmp_path / "again.sonde")[1]
    assert own == [debug.set_kernel_post_grad_provenance_tracing, CompiledFxGraph.__init__, CompiledFxGraph.post_compile,
                   FxGraphHashDetails.__init__, torch._TorchCompileInductorWrapper.__call__]
    assert not any(type(value).__name__ == "kernel" for module in PyCodeCache.modules for value in vars(module).values())


@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs g++")
def test_what_was_compiled_before_is_undivided(tmp_path):
    torch.compiler.reset()
    compiled, x = torch.compile(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))), torch.randn(4, 8)
    with torch.no_grad():
        compiled(x)
        rows = recorded(lambda: compiled(x), tmp_path / "t.sonde")
    assert rows["OptimizedModule"]["forward_ns"] > 0 and rows[f"{ROOT}.0"]["forward_ns"] == 0
    ledger = read_json("report", tmp_path / "t.sonde", "--view", "ledger", "--json")["rows"]
    assert [row["count"] for row in ledger if row["key"] == "compiled_modules"] == [1]
    torch.compiler.reset()
    with torch.no_grad():
        rows = recorded(lambda: compiled(x), tmp_path / "u.sonde")
    assert rows[f"{ROOT}.0"]["forward_ns"] > 0 and rows[f"{ROOT}.1"]["forward_ns"] > 0
