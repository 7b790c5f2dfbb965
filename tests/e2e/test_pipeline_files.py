# SPDX-License-Identifier: Apache-2.0
"""sonde convert and sonde plan against PipeEdge's own output, read back by PyYAML.

tests/data/pipeedge holds what PipeEdge's programs wrote (its README says which command wrote what).
PyYAML is what PipeEdge reads and writes with, and so the judge of types and of the text.
"""
import datetime
import itertools
import os
import pathlib
import random
import resource
import subprocess

import pytest

from cli_tools import ROOT, SONDE, read_json, sonde
from test_full_disk import SPACE

yaml = pytest.importorskip("yaml")
pytestmark = pytest.mark.skipif(not SONDE, reason="the program sonde is not built: run `make`, or "
                                "set SONDE")

DATA = ROOT / "tests/data/pipeedge"


@pytest.fixture(autouse=True, scope="module")
def has_yaml():
    checks = {check["name"]: check["verdict"] for check in read_json("doctor", "--json")["checks"]}
    if checks["yaml"] != "ok":
        pytest.skip("sonde was built without libyaml: `tools/setup build`, then `make`")


def good(*arguments, **extra):
    done = sonde(*arguments, **extra)
    assert done.returncode == 0, done.stderr
    return done


def refused(*arguments, status=1, says="", **extra):
    """It fails with this status and one line that says so."""
    done = sonde(*arguments, **extra)
    lines = done.stderr.decode().splitlines()
    assert done.returncode == status and done.stdout == b"", (done.returncode, lines)
    assert lines[-1].startswith("sonde: ") and says in lines[-1], lines
    return lines


def load(path):
    return yaml.safe_load(pathlib.Path(path).read_bytes())


def typed(value):
    """A value with the types of everything in it: 1, 1.0 and True are equal without."""
    if isinstance(value, dict):
        return {(type(k).__name__, k): typed(v) for k, v in value.items()}
    if isinstance(value, list):
        return [typed(item) for item in value]
    return type(value).__name__, repr(value)


def dumped(value):
    """As PipeEdge writes its files (yaml_files.yaml_save)."""
    return yaml.safe_dump(value, default_flow_style=None, encoding="utf-8")


def same(ours, theirs):
    assert typed(load(ours)) == typed(load(theirs))
    assert pathlib.Path(ours).read_bytes() == pathlib.Path(theirs).read_bytes()


# ---------------------------------------------------------------- converters

@pytest.mark.parametrize("version, rcc", [("seed", "RCC-VE-C2558"), ("current", "RCC-VE-C2000")])
def test_converters_equal_pipeedges(tmp_path, version, rcc):
    folder = DATA / version
    good("convert", "models", "-i", folder / "results_rcc.yml", "-o", tmp_path / "models.yml")
    same(tmp_path / "models.yml", folder / "models.yml")
    good("convert", "device-types", "Minnowboard-E3845", "-i", folder / "results_minnowboard.yml",
         "-o", tmp_path / "types.yml", "-dtm", 2048, "-dtb", 1000)
    good("convert", "device-types", rcc, "-i", folder / "results_rcc.yml", "-o",
         tmp_path / "types.yml", "-dtm", 8192, "-dtb", 1000)
    same(tmp_path / "types.yml", folder / "device_types.yml")


def test_converters_equal_pipeedges_on_what_it_measured(tmp_path):
    for name in ("vit_base_b8", "deit_tiny_b1", "bert_base_b1"):
        results = DATA / f"measured/results_{name}.yml"
        good("convert", "models", "-i", results, cwd=tmp_path)  # the default names, and added to
        done = good("convert", "device-types", "example-box", "-i", results, "--dev-type-mem=4096",
                    "--dev-type-bw", 1000, cwd=tmp_path)
        assert (b"torch.int64" in done.stderr) == (name == "bert_base_b1")
    same(tmp_path / "models.yml", DATA / "measured/models.yml")
    same(tmp_path / "device_types.yml", DATA / "measured/device_types.yml")


def test_the_edge_cases_go_as_pipeedges(tmp_path):
    edge = DATA / "edge"
    for name in ("extra_keys", "small_time"):
        good("convert", "models", "-f", "-i", edge / f"results_{name}.yml", cwd=tmp_path)
    same(tmp_path / "models.yml", DATA / "current/models.yml")
    good("convert", "device-types", "box", "-i", edge / "results_small_time.yml", "-dtm", 1, "-dtb", 2,
         cwd=tmp_path)
    (profile,) = load(tmp_path / "device_types.yml")["box"]["model_profiles"]["google/vit-base-patch16-224"]
    assert profile["time_s"][0] == 1e-05 and isinstance(profile["time_s"][0], float)
    before = (tmp_path / "device_types.yml").read_bytes()
    for kind in (("models",), ("device-types", "box", "-f")):
        refused("convert", *kind, "-i", edge / "results_partial_1_4.yml", cwd=tmp_path,
                says="declares 48 layers and has 4 rows")
    refused("convert", "device-types", "box", "-f", "-i", edge / "results_small_time_bad_yaml.yml",
            cwd=tmp_path, says="'1e-05', not a number >= 0; YAML 1.1 takes it for text")
    assert (tmp_path / "device_types.yml").read_bytes() == before


def test_what_is_there_is_replaced_only_when_told(tmp_path):
    results = DATA / "current/results_rcc.yml"
    good("convert", "models", "-i", results, cwd=tmp_path)
    good("convert", "device-types", "rcc", "-i", results, "-dtm", 8192, "-dtb", 1000, cwd=tmp_path)
    refused("convert", "models", "-i", results, cwd=tmp_path, says="already")
    refused("convert", "device-types", "rcc", "-i", results, cwd=tmp_path, says="already")
    for more in (("-dtm", 1), ("-dtb", 1)):
        refused("convert", "device-types", "rcc", "-f", "-i", results, *more, cwd=tmp_path)
    refused("convert", "device-types", "new", "-i", results, "-dtm", 1, cwd=tmp_path, says="-dtb")
    refused("convert", "device-types", "new", "-i", results, "-dtb", 1, cwd=tmp_path, says="-dtm")
    same(tmp_path / "models.yml", DATA / "current/models.yml")
    twice = load(results)
    for row in twice["profile_data"]:
        row["time"] *= 2
    (tmp_path / "twice.yml").write_bytes(dumped(twice))
    good("convert", "device-types", "rcc", "-f", "-i", "twice.yml", cwd=tmp_path)
    twice["batch_size"] = 16
    (tmp_path / "twice.yml").write_bytes(dumped(twice))
    good("convert", "device-types", "rcc", "-i", "twice.yml", cwd=tmp_path)
    times = load(DATA / "current/device_types.yml")["RCC-VE-C2000"]["model_profiles"]
    (old,) = times["google/vit-base-patch16-224"]
    doubled = [2 * time for time in old["time_s"]]
    assert load(tmp_path / "device_types.yml")["rcc"] == {
        "bw_Mbps": 1000, "mem_MB": 8192, "model_profiles": {"google/vit-base-patch16-224": [
            {"batch_size": 8, "dtype": "torch.float32", "time_s": doubled},
            {"batch_size": 16, "dtype": "torch.float32", "time_s": doubled}]}}


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "{}\n"])
def test_an_empty_file_is_begun(tmp_path, text):
    (tmp_path / "models.yml").write_text(text)
    good("convert", "models", "-i", DATA / "current/results_rcc.yml", cwd=tmp_path)
    same(tmp_path / "models.yml", DATA / "current/models.yml")


def make_value(draw, depth=0):
    """Anything that YAML 1.1 and PyYAML's safe dumper know."""
    kind = draw.randrange(10 if depth < 4 else 8)
    if kind == 0:
        return draw.choice([None, True, False])
    if kind == 1:
        return draw.randrange(-10**6, 10**19)
    if kind in (2, 3):
        return draw.choice([draw.random(), draw.uniform(-1, 1) * 10.0 ** draw.randrange(-300, 300),
                            float(draw.randrange(10**17)), float("inf"), -0.0, 2.0 ** -44, 5e-324])
    if kind == 4:
        return draw.choice(["yes", "1e-05", "1.0e-05", "~", "", "=", "<<", "0x10", "010", "1:30", "-", "?",
                            "a: b", "# c", "' \"", "null", "2024-01-31", "[", "*a", "&a", "!x", "%", "@", "1_0",
                            ".5", "-.5", ".inf", "0o7", "x" * 200, "two words " * 20, " lead", "trail "])
    if kind == 5:
        return "".join(draw.choice("ab01 \t\n:#-'\"\\{}[],&*!|>%@`é€\U0001f600\u2028\x07") for _ in
                       range(draw.randrange(12)))
    if kind == 6 and draw.random() < .5:
        return datetime.datetime(2024, 1 + draw.randrange(12), 3, 4, 5, 6, draw.choice([0, 700000]))
    if kind == 6:
        return datetime.date(2000 + draw.randrange(30), 1 + draw.randrange(12), 1 + draw.randrange(28))
    if kind == 7:
        return f"host-{draw.randrange(100)}"
    if kind == 8:
        return [make_value(draw, depth + 1) for _ in range(draw.randrange(5))]
    return {draw.choice([str, int])(draw.randrange(50)) if draw.random() < .3 else f"k {i}":
            make_value(draw, depth + 1) for i in range(draw.randrange(5))}


@pytest.mark.parametrize("seed", range(40))
def test_other_entries_stay_as_they_were(tmp_path, seed):
    """The judge is PyYAML: it reads the same from the file that was added to, type by type."""
    draw = random.Random(seed)
    others = {f"other {i}": make_value(draw) for i in range(12)}
    text = yaml.safe_dump(others, default_flow_style=draw.choice([None, True, False]), encoding="utf-8",
                          allow_unicode=draw.random() < .5, width=draw.choice([40, 80, 1000]),
                          sort_keys=draw.random() < .5,
                          default_style=draw.choice([None, None, "'", '"']))
    (tmp_path / "models.yml").write_bytes(text)
    others = yaml.safe_load(text)
    good("convert", "models", "-i", DATA / "current/results_rcc.yml", cwd=tmp_path)
    found = load(tmp_path / "models.yml")
    model = found.pop("google/vit-base-patch16-224")
    assert typed(found) == typed(others)
    assert {"google/vit-base-patch16-224": model} == load(DATA / "current/models.yml")


@pytest.mark.parametrize("seed", range(20))
def test_the_text_is_pyyamls(tmp_path, seed):
    """Of what was made from Python values, to the byte."""
    draw = random.Random(1000 + seed)
    models = {f"other {i}": make_value(draw) for i in range(12)}
    (tmp_path / "models.yml").write_bytes(dumped(models))
    good("convert", "models", "-i", DATA / "current/results_rcc.yml", cwd=tmp_path)
    models.update(load(DATA / "current/models.yml"))
    assert (tmp_path / "models.yml").read_bytes() == dumped(models)


ROWS = [("swap two layers", lambda rows: rows.insert(1, rows.pop(2)), "layers must be in order"),
        ("a layer twice", lambda rows: rows[3].update(layer=3), "duplicate layer 3"),
        ("a shape", lambda rows: rows[4].update(shape_in=[[1, 2]]), "shape_in of layer 5 is not"),
        ("a text for a size", lambda rows: rows[5].update(shape_out=[["x"]]), "a list of shapes"),
        ("no key", lambda rows: rows[6].pop("shape_out"), "has no shape_out"),
        ("not finite", lambda rows: rows[7].update(time=float("nan"), memory=float("inf")), "a number >= 0"),
        ("negative", lambda rows: rows[8].update(time=-1.0, memory=-1.0), "a number >= 0")]


@pytest.mark.parametrize("what, change, says", ROWS, ids=[row[0] for row in ROWS])
def test_results_that_pipeedge_would_take_are_refused(tmp_path, what, change, says):
    results = load(DATA / "current/results_rcc.yml")
    change(results["profile_data"])
    (tmp_path / "profiler_results.yml").write_bytes(dumped(results))
    refused("convert", "models", cwd=tmp_path, says=says)
    refused("convert", "device-types", "x", "-dtm", 1, "-dtb", 1, cwd=tmp_path, says=says)
    assert sorted(os.listdir(tmp_path)) == ["profiler_results.yml"]


def test_files_that_are_none(tmp_path):
    refused("convert", "models", "-i", tmp_path / "no.yml", says="No such file")
    refused("convert", "models", "-i", tmp_path, says="Is a directory")
    for text, says in [("{", "not YAML"), ("\x00", "control characters"), ("a: 1\na: 2\n", "duplicate key"),
                       ("- 1\n", "expected a map"), ("a: !!python/object:os.system x\n", "unsupported YAML tag"),
                       ("[" * 100000, "nested deeper"), ("x: 1\n", "not a results file")]:
        (tmp_path / "x.yml").write_text(text)
        refused("convert", "models", "-i", tmp_path / "x.yml", says=says)
    (tmp_path / "models.yml").write_text("google/vit-base-patch16-224: {\n")
    refused("convert", "models", "-i", DATA / "current/results_rcc.yml", cwd=tmp_path, says="not YAML")
    assert (tmp_path / "models.yml").read_text() == "google/vit-base-patch16-224: {\n"


def test_names_cannot_drive_a_terminal(tmp_path):
    """Text of a file that is shown has no control characters left."""
    results = load(DATA / "current/results_rcc.yml")
    results["model_name"] = results["dtype"] = "evil \x1b[2J\x07 name"
    (tmp_path / "profiler_results.yml").write_bytes(dumped(results))
    good("convert", "models", cwd=tmp_path)
    lines = refused("convert", "models", cwd=tmp_path, says="evil ?[2J? name; replace")
    done = good("convert", "device-types", "x", "-dtm", 1, "-dtb", 1, cwd=tmp_path)
    assert b"evil ?[2J? name" in done.stderr and not any(byte < 32 for byte in done.stderr.replace(b"\n", b""))
    assert len(lines) == 1
    good("convert", "device-types", "x", "-f", "-i", DATA / "current/results_rcc.yml", cwd=tmp_path)
    good("convert", "models", "-i", DATA / "current/results_rcc.yml", cwd=tmp_path)
    (tmp_path / "types.yml").write_bytes((DATA / "current/device_types.yml").read_bytes())
    (tmp_path / "devices.yml").write_text('RCC-VE-C2000: ["a\\e[2J\\nb"]\n')
    done = good("plan", "-T", "types.yml", cwd=tmp_path)
    assert b"\x1b" not in done.stdout and yaml.safe_load(done.stdout) == [{"a\x1b[2J\nb": [1, 48]}]


# ----------------------------------------------------------------- full disk

def test_a_file_that_cannot_grow_is_left_as_it_was(tmp_path):
    """A limit on the size of files stands for the disk: the write fails in the middle."""
    old = (DATA / "measured/models.yml").read_bytes()
    (tmp_path / "models.yml").write_bytes(old)
    limit = len(old) + 100
    done = subprocess.run([SONDE, "convert", "models", "-f", "-i", DATA / "current/results_rcc.yml"],
                          cwd=tmp_path, capture_output=True, timeout=60,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limit)))
    assert done.returncode == 1 and b"unchanged" in done.stderr, done.stderr
    assert (tmp_path / "models.yml").read_bytes() == old
    assert os.listdir(tmp_path) == ["models.yml"]


def test_a_full_disk_loses_nothing(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = 'mount -t tmpfs -o size=64k none "$DISK"'
    env = {**os.environ, "DISK": str(disk), "SONDE": SONDE, "DATA": str(DATA), "KEPT": str(tmp_path)}
    if subprocess.run([*SPACE, "sh", "-c", mount], env=env, capture_output=True).returncode != 0:
        pytest.skip("this machine lets nobody mount a small file system")
    done = subprocess.run([*SPACE, "sh", "-c", f'''{mount} && cp "$DATA/measured/models.yml" "$DISK"
        head -c 1000000 /dev/zero >"$DISK/filler" 2>/dev/null
        "$SONDE" convert models -f -i "$DATA/current/results_rcc.yml" -o "$DISK/models.yml"; echo $?
        ls -A "$DISK"; cp "$DISK/models.yml" "$KEPT"'''], env=env, capture_output=True, text=True)
    assert done.stdout.split() == ["1", "filler", "models.yml"], (done.stdout, done.stderr)
    assert "No space left on device" in done.stderr
    assert (tmp_path / "models.yml").read_bytes() == (DATA / "measured/models.yml").read_bytes()


# ---------------------------------------------------------------------- plan

def plan(folder, model, devices="devices.yml", prefix="", *more):
    done = good("plan", "-m", model, "-M", folder / f"{prefix}models.yml", "-T",
                folder / f"{prefix}device_types.yml", "-D", folder / devices, *more)
    return yaml.safe_load(done.stdout), done


def cost(model, types, devices, schedule, name):
    """What a schedule costs by PipeEdge's rules (src/pipeedge/sched); infinite if it does not fit."""
    kind = {host: types[group] for group, hosts in devices.items() for host in hosts}
    worst, before = 0.0, None
    for stage in schedule:
        ((host, (first, last)),) = stage.items()
        device = kind[host]
        (profile,) = device["model_profiles"][name]

        def size(layer):  # of a batch of 8 in float32
            return 32 * (model["parameters_out"][layer - 1] if layer else model["parameters_in"])

        need = 3 * size(last) + (3 if first > 1 else 1) * size(first - 1)
        if sum(model["mem_MB"][first - 1:last]) * 2**20 + need >= device["mem_MB"] * 2**20:
            return float("inf")
        worst = max(worst, sum(profile["time_s"][first - 1:last]))
        if before:
            worst = max(worst, size(first - 1) / (min(device["bw_Mbps"], before["bw_Mbps"]) * 2**20 / 8))
        before = device
    return worst


def covers(schedule, layers):
    at = 1
    hosts = [host for stage in schedule for host in stage]
    assert len(set(hosts)) == len(hosts)
    for stage in schedule:
        ((_, (first, last)),) = stage.items()
        assert first == at <= last
        at = last + 1
    assert at == layers + 1


@pytest.mark.parametrize("version", ["seed", "current"])
def test_the_plan_is_no_slower_than_pipeedges(version):
    folder, model = DATA / version, "google/vit-base-patch16-224"
    ours, done = plan(folder, model)
    covers(ours, 48)
    files = [load(folder / f"{name}.yml") for name in ("models", "device_types", "devices")]
    found, theirs = [cost(files[0][model], *files[1:], stages, model)
                     for stages in (ours, load(folder / "schedule.yml"))]
    assert found < theirs  # it takes numbers of types for those of hosts, and so loses time
    assert f"{found:.3f} s for a batch of 8" in done.stdout.decode()


@pytest.mark.parametrize("case", ["1slow_1fast", "2slow_1fast", "fast_only"])
def test_the_plan_is_right_where_pipeedges_is_not(case):
    """Its scheduler leaves the fast host idle in the second case and crashes in the third."""
    ours, done = plan(DATA / "edge", "toy", f"toy_devices_{case}.yml", "toy_")
    assert ours == [{"z0": [1, 4]}] == load(DATA / "edge/toy_schedule_1slow_1fast.yml")
    assert b"# slowest: z0, layers 1 to 4, 0.4000 s" in done.stdout and done.stderr == b""


def test_the_plan_is_the_best_of_all(tmp_path):
    """Against trying every cut and every order of hosts."""
    draw = random.Random(7)
    sends = 0
    for _ in range(25):
        layers, names = draw.randrange(2, 6), ["p", "q", "r"]
        models = {"m": {"layers": layers, "mem_MB": [draw.choice([1, 2.5, 30]) for _ in range(layers)],
                        "parameters_in": 1000, "parameters_out": [draw.choice([10, 10**5, 10**6]) for _ in
                                                                   range(layers)]}}
        types = {name: {"bw_Mbps": draw.choice([50, 100, 1000]), "mem_MB": draw.choice([128, 4096]),
                        "model_profiles": {"m": [{"batch_size": 8, "dtype": "torch.float32", "time_s": [
                            draw.uniform(.1, 2) for _ in range(layers)]}]}} for name in names}
        devices = {name: [f"{name}{i}" for i in range(draw.randrange(1, 3))] for name in names}
        for name, value in (("models", models), ("device_types", types), ("devices", devices)):
            (tmp_path / f"{name}.yml").write_bytes(dumped(value))
        hosts = [host for group in devices.values() for host in group]
        best = float("inf")
        for count in range(1, layers + 1):
            for cuts in itertools.combinations(range(1, layers), count - 1):
                ends = [0, *cuts, layers]
                for order in itertools.permutations(hosts, count):
                    stages = [{host: [ends[i] + 1, ends[i + 1]]} for i, host in enumerate(order)]
                    best = min(best, cost(models["m"], types, devices, stages, "m"))
        if best == float("inf"):
            refused("plan", "-m", "m", cwd=tmp_path, says="no plan")
            continue
        ours, done = plan(tmp_path, "m")
        covers(ours, layers)
        assert cost(models["m"], types, devices, ours, "m") == pytest.approx(best, rel=1e-12)
        sends += b"the transfer from" in done.stdout
    assert sends > 0


def test_a_plan_that_cannot_be(tmp_path):
    edge = DATA / "edge"
    toy = ["plan", "-m", "toy", "-M", edge / "toy_models.yml", "-T", edge / "toy_device_types.yml", "-D"]
    refused(*toy, edge / "toy_devices_fast_only.yml", "-b", 4, says="has a profile of toy, torch.float32")
    refused(*toy, edge / "toy_models.yml", says="not a list of hosts")
    refused(*toy, tmp_path / "none.yml", says="No such file")
    refused("plan", "-m", "x", *toy[3:], edge / "toy_devices_fast_only.yml", says="has no model x")
    refused(*toy, edge / "toy_devices_fast_only.yml", "-d", "torch.int64", status=2, says="torch.float32")
    small = load(edge / "toy_device_types.yml")
    small["Z-fast"]["mem_MB"] = 3
    (tmp_path / "t.yml").write_bytes(dumped(small))
    refused(*toy[:5], "-T", tmp_path / "t.yml", "-D", edge / "toy_devices_fast_only.yml",
            says="the layers need 4 MB besides buffers, the devices have 3 MB")
    short = load(edge / "toy_models.yml")
    short["toy"]["mem_MB"].pop()
    (tmp_path / "m.yml").write_bytes(dumped(short))
    refused(*toy[:3], "-M", tmp_path / "m.yml", *toy[5:], edge / "toy_devices_fast_only.yml",
            says="mem_MB of toy has 3 numbers for 4 layers")
