# SPDX-License-Identifier: Apache-2.0
"""Each call as a range (--timeline): what the ranges add up to is what is counted without them."""
import json

from python_tools import SONDE, rows, run, sonde_run

PROGRAM = """
import asyncio, threading

def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)

def numbers(n):
    for i in range(n):
        yield i

class Thing:
    def even(self, n):
        return n == 0 or self.odd(n - 1)

    def odd(self, n):
        return n != 0 and self.even(n - 1)

async def nap():
    await asyncio.sleep(0.01)

def fails():
    raise ValueError

def main():
    fib(10)
    list(numbers(7))
    Thing().even(20)
    asyncio.run(nap())
    try:
        fails()
    except ValueError:
        pass
    thread = threading.Thread(target=fib, args=(6,))
    thread.start()
    thread.join()

main()
"""


def record(tmp_path, *options):
    (tmp_path / "prog.py").write_text(PROGRAM, encoding="utf-8")
    trace = tmp_path / "t.sonde"
    sonde_run(["--functions", *options, "-o", trace], "prog.py", cwd=tmp_path)
    return trace


def own(rows_found):
    """What is of the program itself, and no time."""
    return sorted((row["function"], row.get("caller_function"), row["calls"],
                   row["primitive_calls"], row.get("resumptions"))
                  for row in rows_found if row["file"].endswith("prog.py") and
                  (row.get("caller_file") or "prog.py").endswith("prog.py"))


def test_ranges_add_up_to_what_is_counted(tmp_path):
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    counted, ranges = record(tmp_path / "one"), record(tmp_path / "two", "--timeline")
    for options in ([], ["--callers"], ["--callees"]):
        found = own(rows(ranges, "functions", *options))
        assert found == own(rows(counted, "functions", *options))
        assert any(row[0] == "fib" for row in found)
    by_name = {row["function"]: row for row in rows(ranges, "functions")}
    assert (by_name["fib"]["calls"], by_name["fib"]["primitive_calls"]) == (177 + 25, 2)
    assert (by_name["numbers"]["calls"], by_name["numbers"]["resumptions"]) == (1, 7)


def test_ranges_are_on_the_timeline(tmp_path):
    trace = record(tmp_path, "--timeline")
    total = sum(row["calls"] + row["resumptions"] for row in rows(trace, "functions")
                if row["function"] == "fib")
    chrome = json.loads(run(SONDE, "export", trace, "--to", "chrome", "-o", "-", cwd=".").stdout)
    names = [event["name"] for event in chrome["traceEvents"]
             if event.get("cat") == "python_function"]
    assert sum(name.endswith("prog.py(4): fib") for name in names) == total == 202
    scope = json.loads(run(SONDE, "export", trace, "--to", "speedscope", "-o", "-",
                           cwd=".").stdout)
    assert {profile["type"] for profile in scope["profiles"]} == {"evented"}


TWINS = """
class A:
    def work(self):
        return 1

class B:
    def work(self):
        return 2

a, b = A(), B()
for _ in range(50):
    a.work(), b.work()
"""


def test_the_first_view_tells_functions_of_one_name_apart(tmp_path):
    """What is shown without --view is what --print shows: the functions, not ranges by their name."""
    (tmp_path / "twins.py").write_text(TWINS, encoding="utf-8")
    trace = tmp_path / "t.sonde"
    sonde_run(["--functions", "--timeline", "-o", trace], "twins.py", cwd=tmp_path)
    shown = run(SONDE, "report", trace, cwd=tmp_path).stdout
    assert [line.split()[0] for line in shown.splitlines() if "(work)" in line] == ["50", "50"]
    printed = sonde_run(["--functions", "--timeline", "--print"], "twins.py", cwd=tmp_path).stdout
    assert [line.split()[0] for line in printed.splitlines() if "(work)" in line] == ["50", "50"]
    assert "(work)" in run(SONDE, "report", trace, "--callers", cwd=tmp_path).stdout
