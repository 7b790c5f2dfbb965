# SPDX-License-Identifier: Apache-2.0
"""`import sonde` without torch: nothing imports it, and ranges of one's own are recorded."""
import json
import subprocess
import sys

import pytest

WITHOUT = 'import sys; sys.modules["torch"] = None\n'


def run(text, *arguments):
    done = subprocess.run([sys.executable, "-c", text, *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_sonde_imports_no_torch():
    assert run("import sonde, sys; print('torch' in sys.modules)") == "False\n"


def test_names_are_there():
    assert run(WITHOUT + """
import sonde
print(sonde.ProfilerAction.RECORD.name, sonde.ProfilerActivity.CPU.name,
      sonde.supported_activities() == {sonde.ProfilerActivity.CPU},
      sonde.schedule(wait=0, warmup=1, active=1)(1).name)
""") == "RECORD CPU True RECORD_AND_SAVE\n"


def test_a_profile_of_ones_own_ranges(tmp_path):
    document = json.loads(run(WITHOUT + """
import json, sonde, sys
@sonde.record_function("fib")
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
with sonde.profile(schedule=sonde.schedule(wait=1, warmup=1, active=2, repeat=1)) as prof:
    for _ in range(6):
        with sonde.record_function("outer"):
            fib(3)
        prof.step()
prof.export_chrome_trace(sys.argv[1])
print(json.dumps([[row.key, row.count] for row in prof.key_averages()]))
""", tmp_path / "t.json"))
    assert dict(document) == {"ProfilerStep*": 2, "outer": 2, "fib": 10}
    names = [event.get("name") for event in
             json.loads((tmp_path / "t.json").read_text())["traceEvents"]]
    assert names.count("fib") == 10 and "ProfilerStep#2" in names


def test_an_unknown_name():
    import sonde
    with pytest.raises(AttributeError, match="nothing"):
        sonde.nothing
    assert "profile" in dir(sonde)
