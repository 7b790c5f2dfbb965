# SPDX-License-Identifier: Apache-2.0
"""What holds for all end-to-end tests, before any of them is imported."""
import gc
import os
import resource
import signal
import sysconfig
import time

import pytest

# Threads of OpenMP that wait for work spin otherwise: two tests at a time then take each other's cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

# Whoever runs the tests in the background has them ignore SIGINT; what they start would inherit that. Not by
# subprocess's preexec_fn: that copies this process, with torch in it, which takes 30 ms of processor time.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# --------------------------------------------------------- what each test costs (TEST_TIMES=FILE)

TIMES = os.path.abspath(os.environ["TEST_TIMES"]) if os.environ.get("TEST_TIMES") else None
BEGUN = time.monotonic()


def processor_seconds():
    """Of this process and all it started, those that still run included."""
    ended = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return ended + sum(map(seconds_of_running, children_of(os.getpid())))


def children_of(process):
    try:
        for task in os.listdir(f"/proc/{process}/task"):
            with open(f"/proc/{process}/task/{task}/children") as children:
                yield from map(int, children.read().split())
    except OSError:  # it has ended meanwhile
        return


def seconds_of_running(process):
    """With its children, those that have ended and those that run."""
    try:
        with open(f"/proc/{process}/stat") as stat:
            own = sum(map(int, stat.read().rpartition(") ")[2].split()[11:15])) / os.sysconf("SC_CLK_TCK")
    except OSError:
        return 0
    return own + sum(map(seconds_of_running, children_of(process)))


def note_times(name, processor, wall):
    """One line: processor seconds, seconds, test. Several workers append to the same file."""
    with open(TIMES, "a") as out:
        out.write(f"{processor:.2f}\t{wall:.2f}\t{name}\n")


def pytest_runtest_protocol(item):
    processor, wall = processor_seconds(), time.monotonic()
    done = yield
    note_times(item.nodeid, processor_seconds() - processor, time.monotonic() - wall)
    return done


if TIMES:
    pytest_runtest_protocol = pytest.hookimpl(wrapper=True)(pytest_runtest_protocol)
else:
    del pytest_runtest_protocol


def pytest_collection_finish():
    """What was imported stays: to look through all of it takes longer than most of what the tests do."""
    gc.collect()
    gc.freeze()
    if TIMES:
        note_times("import and collection", processor_seconds(), time.monotonic() - BEGUN)


def pytest_unconfigure():
    gc.unfreeze()


# --------------------------------------------------------- what a Python without the interpreter lock refuses

def pytest_collection_modifyitems(items):
    """--line-memory: that it is refused there is tried by test_python_free.py; a test that is given it as a parameter has nothing to see."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return
    for item in items:
        if "line-memory" in repr(getattr(item, "callspec", None) and item.callspec.params):
            item.add_marker(pytest.mark.skip(reason="this Python has no interpreter lock: the memory of lines is refused"))


# --------------------------------------------------------- the report page in a browser (page_tools.py)

@pytest.fixture(scope="module")
def browser():
    from page_tools import open_browser
    with open_browser() as one:
        yield one


@pytest.fixture(scope="module")
def page_traces(tmp_path_factory):
    """page_traces(CASE, ..): a generated trace and its page, made when they are first asked for."""
    from page_tools import page_maker
    return page_maker(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def opened(browser, page_traces):
    """opened(CASE, ..): that trace, and its page in the browser. At the end no page may have had a fault."""
    from page_tools import opened_pages
    with opened_pages(browser, page_traces) as show:
        yield show
