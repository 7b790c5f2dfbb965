# SPDX-License-Identifier: Apache-2.0
"""The package's folders: what is installed, what importing them costs, whose frames are shown."""
import pathlib
import pickle
import sys
import textwrap

import pytest

import sonde
from python_tools import SONDE, python, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
INSTALLED = pathlib.Path(sonde.__file__).parent


def test_every_file_is_installed():
    """python/meson.build has a list of them."""
    source = ROOT / "python/sonde"
    names = {path.relative_to(source) for kind in ("*.py", "*.pyi", "py.typed") for path in source.rglob(kind)}
    assert len(names) > 40
    assert {name for name in names if not (INSTALLED / name).exists()} == set()


@pytest.mark.parametrize("name", ["torch", "torch._probe", "torch._attach", "torch._installed", "python", "model", "pipeline",
                                  "python._functions", "python._start", "_steps", "_recording", "torch._operators"])
def test_importing_a_folder_imports_no_torch(name, tmp_path):
    done = python("-c", f"import sonde.{name}, sys; print('torch' in sys.modules)", cwd=tmp_path)
    assert done.stdout == "False\n"


def test_the_names_of_sonde_torch(tmp_path):
    """All of them, a star and a name that nobody has; without torch too."""
    done = python("-c", textwrap.dedent("""
        import sys; sys.modules["torch"] = None
        import sonde, sonde.torch
        from sonde.torch import *
        assert profile is sonde.profile is sonde.torch.profile
        assert set(sonde.torch.__all__) <= set(dir(sonde.torch)) & set(globals())
        try:
            sonde.torch.nothing
        except AttributeError as error:
            print(error)
        """), cwd=tmp_path)
    assert done.stdout == "module 'sonde.torch' has no attribute 'nothing'\n"


@pytest.mark.parametrize("place, name", [("_lists", "EventList"), ("_lists", "Events"), ("_lists", "_list_of"),
                                         ("_lists", "_events_of"), ("_lists", "rows_of"), ("_result", "_unpack")])
def test_older_pickles_find_what_they_name(place, name):
    found = pickle.loads(f"csonde.{place}\n{name}\n.".encode())
    assert found is getattr(sys.modules[f"sonde.torch.{place}"], name)


# --------------------------------------------------------------------------- own frames

@pytest.mark.parametrize("folder, hidden", [("sonde", True), ("sonde/python", True), ("sonde/model", True),
                                            ("sonde/mine", False), ("python", False)])
def test_samples_begin_below_what_runs_the_program(folder, hidden, tmp_path):
    runner = tmp_path / folder / "_runner.py"
    runner.parent.mkdir(parents=True)
    runner.write_text("import runpy, sys\ndef go(): runpy.run_path(sys.argv[1])\ngo()\n")
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import time
        def busy():
            end = time.thread_time() + 0.3
            while time.thread_time() < end: pass
        busy()
        """))
    run(SONDE, "run", "--sample", "-o", "t.sonde", "--", sys.executable, str(runner), "program.py", cwd=tmp_path)
    shown = run(SONDE, "report", "t.sonde", "--view", "samples", cwd=tmp_path).stdout
    assert "busy" in shown
    assert ("_runner.py:" not in shown) == hidden


def test_own_functions_are_in_nobodys_table(tmp_path):
    """Of every folder: sessions, a profile, folders that go with their objects."""
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import sonde
        def work():
            with sonde.functions():
                pass
            with sonde.profile(): pass
            sonde.step()
        with sonde.functions() as calls:
            work()
        calls.print()
        """))
    shown = python("program.py", cwd=tmp_path).stdout
    assert "(work)" in shown
    assert [line for line in shown.splitlines() if str(INSTALLED) in line] == []


# ------------------------------------------------------------------- the one recording

def test_one_module_begins_and_ends_recordings():
    """Everyone else asks it, and so is told whose the recording is."""
    found = set()
    for path in (ROOT / "python/sonde").rglob("*.py"):
        if any(f"_record.{name}(" in path.read_text(encoding="utf-8") for name in ("start", "stop")):
            found.add(path.name)
    assert found == {"_recording.py"}


def test_owners_and_sessions_know_of_each_other(tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import sys; sys.modules["torch"] = None
        import sonde
        def work(): return len("x")
        with sonde.profile() as owner:
            try:
                sonde.profile().start()
            except RuntimeError as error:
                print("already recording" in str(error))
            with sonde.functions() as guest:  # joins, and keeps its part when the owner's file moves
                work()
        owner.save("owner.sonde")
        print("work" in guest.report(), sonde._recording.is_on())
        with sonde.functions() as first:
            with sonde.profile() as joined:
                with sonde.record_function("piece"):
                    work()
            work()
            print([row.key for row in joined.key_averages()])
        print(first.trace().report(view="functions").count("(work)"), sonde._recording.is_on())
        """))
    assert python("program.py", cwd=tmp_path).stdout.split("\n")[:4] == [
        "True", "True False", "['piece']", "1 False"]


# --------------------------------------------------------------- what is declared once, in C

def test_words_of_options_are_the_librarys(tmp_path):
    (tmp_path / "program.py").write_text(textwrap.dedent("""
        import sys; sys.modules["torch"] = None
        import sonde
        with sonde.profile() as prof:
            with sonde.record_function("piece"): pass
        prof.save("t.sonde")
        with sonde.Trace("t.sonde") as trace:
            for wrong in ({"group_by": "shape,tread"}, {"flops": "fast"}, {"format": "jsno"},
                          {"time_unit": "weeks"}, {"part": "caller"}):
                try:
                    trace.report(**wrong)
                except sonde.Error as error:
                    print(error)
        print(*prof.events().supported_export_stacks_metrics())
        """))
    shown = python("program.py", cwd=tmp_path).stdout.splitlines()
    command = run(SONDE, "report", "t.sonde", "--group-by", "tread", cwd=tmp_path, status=2).stderr
    assert shown[0] in command
    assert shown == [
        "unknown group 'tread' (did you mean 'thread'?); groups: shape, stack, thread, process, module, overload, operator, grid, device, step",
        "expected full, torch or none, got 'fast'",
        "unknown format 'jsno' (did you mean 'json'?); formats: text, json, csv",
        "unknown time unit 'weeks'; units: us, ms, s, auto",
        "unknown part 'caller' (did you mean 'callers'?); parts: main, callers, callees, tree, awaiting, summary",
        "self_cpu_time_total self_cuda_time_total self_xpu_time_total self_privateuse1_time_total"]


def test_a_schedule_of_any_size(tmp_path):
    """Fields beyond what C's have are more steps than a program has; torch takes halves, too."""
    done = python("-c", textwrap.dedent("""
        import sys; sys.modules["torch"] = None
        import sonde
        never = sonde.schedule(wait=10**12, warmup=1, active=1)
        print(never(0).name, never(10**9).name)
        print(sonde.schedule(wait=0, warmup=1, active=0.5, skip_first_wait=True)(1).name)
        """), cwd=tmp_path)
    assert done.stdout == "NONE NONE\nRECORD_AND_SAVE\n"
