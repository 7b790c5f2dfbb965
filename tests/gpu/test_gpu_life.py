# SPDX-License-Identifier: Apache-2.0
"""Starts, stops, kills, other profilers: nothing is lost, nothing grows, nothing is silent."""
import subprocess
import textwrap

import pytest
from gpu_tools import SONDE, ours, python, read, run

HEAD = """
    import os, sys, warnings, torch, sonde
    from sonde import ProfilerActivity, profile, schedule
    BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    a = torch.randn(64, 64, device="cuda")
    torch.cuda.synchronize()
"""


def program(tmp_path, text, *words, **options):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(HEAD) + textwrap.dedent(text))
    return python(path, *words, cwd=tmp_path, **options)


def test_200_short_sessions_lose_nothing(tmp_path):
    program(tmp_path, """
        for number in range(200):
            with profile(activities=BOTH) as result:
                for _ in range(number % 7 + 1):
                    a.add_(1)
            result.save(f"{number}.sonde")
    """)
    for number in range(200):
        rows, tally = ours(str(tmp_path / f"{number}.sonde"))
        assert len(rows) == number % 7 + 1, number
        assert {operator for _, _, operator in rows} == {"aten::add_"}
        assert tally["dropped"] == tally["early"] == tally["unasked"] == 0, tally


def test_schedule_loses_nothing(tmp_path):
    program(tmp_path, """
        def save(result):
            result.save(f"{result.step_num}.sonde")
        with profile(activities=BOTH, schedule=schedule(wait=1, warmup=1, active=2, repeat=5),
                     on_trace_ready=save) as result:
            for _ in range(20):
                for _ in range(10):
                    a.add_(1)
                result.step()
    """)
    files = sorted(tmp_path.glob("*.sonde"))
    assert len(files) == 5
    for path in files:
        rows, tally = ours(str(path))
        assert len(rows) == 20 and tally["dropped"] == 0, (path, len(rows), tally)


def test_1000_cycles_grow_nothing(tmp_path):
    said = program(tmp_path, """
        def cycles(count):
            for _ in range(count):
                with profile(activities=BOTH):
                    a.add_(1)
        def memory():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096, torch.cuda.mem_get_info()[0]
        cycles(300)
        host, device = memory()
        cycles(700)
        host_after, device_after = memory()
        print(host_after - host, device - device_after)
    """, timeout=500).stdout.split()
    assert int(said[0]) < 4 << 20 and int(said[1]) == 0, said


def test_after_torch_profiler(tmp_path):
    """torch.profiler keeps CUPTI's callbacks: works are recorded all the same, and it is said."""
    said = program(tmp_path, """
        from torch import profiler
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]) as p:
            a.add_(1)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with profile(activities=BOTH) as result:
                for _ in range(5):
                    a.add_(1)
            result.save("after.sonde")
        print([str(one.message) for one in caught])
        with profiler.profile(activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]) as p:
            a.add_(1)
        print("torch again:", sum(e.count for e in p.key_averages() if "CUDA" in str(e.device_type)))
    """).stdout
    rows, tally = ours(str(tmp_path / "after.sonde"))
    assert len(rows) == 5, (said, tally)
    assert "another profiler" in said or tally["unasked"] == 0
    assert "torch again: 1" in said


def test_inside_torch_profiler(tmp_path):
    """torch.profiler records on, whole; ours says that it does not."""
    said = program(tmp_path, """
        from torch import profiler
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with profiler.profile(activities=[profiler.ProfilerActivity.CPU, profiler.ProfilerActivity.CUDA]) as p:
                a.add_(1)
                with profile(activities=BOTH) as result:
                    a.add_(1)
                a.add_(1)
                torch.cuda.synchronize()
        result.save("inside.sonde")
        print([str(one.message) for one in caught])
        print("torch saw", sum(e.count for e in p.key_averages() if "CUDA" in str(e.device_type)))
    """).stdout
    assert "torch saw 3" in said
    assert "another profiler" in said
    assert "aten::add_" in run(SONDE, "report", tmp_path / "inside.sonde").stdout


def test_run_of_a_cuda_program(tmp_path, plain):
    said = run(SONDE, "run", "--gpu", "-o", tmp_path / "t.sonde", "--", plain)
    assert said.stdout.startswith("done")
    works, calls, tally = read(str(tmp_path / "t.sonde"))
    assert [sum(one["kind"] == kind for one in works) for kind in (1, 2, 3)] == [100, 2, 1]
    assert {one["name"] for one in works if one["kind"] == 1} == {"scale(float*, int, float)"}
    assert all(one["call"] for one in works if one["kind"] in (1, 2, 3))
    assert tally["records"] == 103 and tally["dropped"] == tally["unasked"] == 0, tally


def test_run_of_a_program_that_forks(tmp_path, plain):
    run(SONDE, "run", "--gpu", "-o", tmp_path / "t.sonde", "--", plain, "fork")
    works, _, _ = read(str(tmp_path / "t.sonde"))
    assert sum(one["kind"] == 1 for one in works) == 100


def test_killed(tmp_path, plain):
    """What CUPTI had delivered is in the file."""
    subprocess.run([SONDE, "run", "--gpu", "-o", str(tmp_path / "t.sonde"), "--", str(plain), "kill"],
                   timeout=100, capture_output=True)
    works, _, _ = read(str(tmp_path / "t.sonde"))
    assert sum(one["kind"] == 1 for one in works) == 100


def test_run_of_a_python_program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text("import torch\na = torch.randn(64, 64, device='cuda')\nfor _ in range(50): a.add_(1)\n"
                    "torch.cuda.synchronize()\n")
    run(SONDE, "run", "--gpu", "--ops", "-o", tmp_path / "t.sonde", "--", "python", path)
    rows, tally = ours(str(tmp_path / "t.sonde"))
    assert sum(operator == "aten::add_" for _, _, operator in rows) == 50, tally
    assert tally["unasked"] == 0
