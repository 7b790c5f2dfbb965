# SPDX-License-Identifier: Apache-2.0
"""What the tests of samples share: programs to be sampled, and the samples of a trace."""
import collections
import json
import os
import subprocess
import sysconfig
import tempfile

SONDE = os.environ.get("SONDE") or os.path.join(sysconfig.get_path("scripts"), "sonde")

GIL, ON_CPU, GIL_WAIT = 1, 2, 4

# Each function is called by one other only, and all of them are short: a stack that was put
# together from two moments shows.
POSSIBLE = """
def c(): pass
def d(): pass
def e(): pass
def f(): pass
def a(): c(); c()
def b(): d()
def g():
    e()
    yield 1
    e()
    yield 2
def rec(n):
    if n: rec(n - 1)
    else: f()
def main(is_over):
    while not is_over():
        for _ in range(200):
            a(); b()
            for _ in g(): pass
            rec(3); rec(40)
"""
CALLERS = {"main": {"<module>"}, "a": {"main"}, "b": {"main"}, "g": {"main"},
           "rec": {"main", "rec"}, "c": {"a"}, "d": {"b"}, "e": {"g"}, "f": {"rec"}}


def samples(trace):
    """Of a trace: dicts with process, thread name, tid, state, samples, covered_ns, stack."""
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([SONDE, "export", str(trace), "--to", "json", "-o", file.name], check=True)
        whole = json.load(open(file.name))
    found = []
    for event in whole["events"]:
        if event["kind"] == "sample":
            thread = whole["threads"][event["thread"]]
            found.append({**event, "name": thread["name"], "tid": thread["tid"],
                          "process": thread["process"],
                          "functions": [f["function"].rpartition(".")[2] for f in event.get("stack", [])]})
    return found


def shares(found, keep=lambda sample: True):
    """Percent of the time in which a function was the innermost of those in `names`."""
    spent = collections.Counter()
    for sample in filter(keep, found):
        if sample["functions"]:
            spent[sample["functions"][0]] += sample["covered_ns"]
    whole = sum(spent.values())
    return {name: 100 * ns / whole for name, ns in spent.items()} if whole else {}


def impossible(found):
    """Stacks of POSSIBLE that no moment of it had."""
    wrong = []
    for sample in found:
        stack = sample["functions"]
        for inner, outer in zip(stack, [*stack[1:], None]):
            if inner in CALLERS and outer not in CALLERS[inner]:
                wrong.append(stack)
    return wrong


def ledger(trace):
    done = subprocess.run([SONDE, "report", str(trace), "--view", "ledger", "--json"],
                          stdout=subprocess.PIPE, check=True)
    return {row["key"]: row["count"] for row in json.loads(done.stdout)["rows"]}
