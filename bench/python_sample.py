#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/python_sample.py [--quick] - what sampling a Python program costs.

The processor time of a program that is sampled 1,000 times a second, and of what samples it, over the
program's alone: fib, a torch program of 64 threads that hand each other small products, and torch with 64
threads inside its operators. Beside sonde in the program: sonde attach and Pyinstrument at the same rate, and
py-spy where it may run. Bare and sampled stretches run in turn, round after round; a figure is the ratio
of the best stretches, its spread that of the paired rounds, first to ninth decile. Processor time, since a
machine that does other things meanwhile makes any wall clock's time longer. sonde attach is measured on a process
that works without end: it is stopped (SIGSTOP) and continued in turn, half a second each, so that bare and sampled
work lie side by side. Then what the sampler itself takes of a processor: its own clock over the wall's, in the best
tenth of a second; and of how many samples the thread had to be interrupted for. Beside that stands the least that it could be:
a waking alone, and what bench/sample_floor.c does, which asks the kernel for one stack as sonde does and nothing else. Prints as bench/run does and puts its
figures into bench/results.json. Exit status: 1 if sonde's budget is missed.
"""
import argparse
import contextlib
import ctypes
import glob
import mmap
import os
import queue
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

from figures import BUILD, build, conclude, figure, ratio, say
from python_functions import fib

os.environ.setdefault("PYINSTRUMENT_IGNORE_OVERHEAD_WARNING", "1")
BUDGET = 1.02
SHARE_BUDGET = 2  # percent
HZ = 1000
THREADS = 64
WINDOW_S, SETTLE_S = 0.5, 0.02
# Long enough for a dozen samples, short enough to be left alone now and then on any machine.
STRETCH_NS, STRETCHES = 12_000_000, 10


# --------------------------------------------------------------------- workloads

def fib_work():
    return lambda: fib(18)


def torch_work():
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(1)
    tasks, done = queue.SimpleQueue(), queue.SimpleQueue()
    x = torch.randn(96, 96)

    def serve():
        while tasks.get():
            torch.mm(x, x)
            done.put(1)

    for _ in range(THREADS):
        threading.Thread(target=serve, daemon=True).start()

    def work():
        for _ in range(THREADS):
            tasks.put(1)
        for _ in range(THREADS):
            done.get()
    return work


def intra_work():
    try:
        import torch
    except ImportError:
        return None
    torch.set_num_threads(THREADS)
    x = torch.randn(256, 256)
    return lambda: torch.mm(x, x)


WORKS = {"fib": ("fib", fib_work), "torch": (f"torch, {THREADS} threads", torch_work),
         "intra": (f"torch, {THREADS} threads inside an operator", intra_work)}


def work_without_end(program, path):
    """The program that is attached to: counts its pieces of work in the file."""
    work = WORKS[program][1]()
    with open(path, "r+b") as file:
        done = ctypes.c_int64.from_buffer(mmap.mmap(file.fileno(), 8))
    print("ready", file=sys.stdout, flush=True)  # to the process that started it
    while True:
        work()
        done.value += 1


# ---------------------------------------------------------------------- samplers

@contextlib.contextmanager
def sonde_on(folder):
    import sonde
    with sonde.sample(hz=HZ, path=f"{folder}/{time.monotonic_ns()}.sonde"):
        yield


@contextlib.contextmanager
def pyinstrument_on(folder):
    import pyinstrument
    profiler = pyinstrument.Profiler(interval=1 / HZ)
    profiler.start()
    try:
        yield
    finally:
        profiler.stop()


observers = []  # the processes that sample this one from outside


def children(pid):
    return [int(child) for path in glob.glob(f"/proc/{pid}/task/*/children") for child in open(path).read().split()]


@contextlib.contextmanager
def outside(program, *options):
    """A program of .venv or of the system's that samples this process until it is interrupted."""
    path = shutil.which(program, path=os.path.dirname(sys.executable)) or shutil.which(program)
    process = subprocess.Popen([path, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(1.5)
    try:
        if process.poll() is not None:
            raise RuntimeError(f"{program} cannot run here")
        observers[:] = [process.pid, *children(process.pid)]
        yield
    finally:
        observers.clear()
        process.send_signal(signal.SIGINT)
        process.wait()


def attach_on(folder, pid=None):
    return outside("sonde", "attach", str(pid or os.getpid()), "--sample", str(HZ), "-o", f"{folder}/a.sonde")


def py_spy_on(folder):
    return outside("py-spy", "record", "-r", str(HZ), "-f", "raw", "-o", f"{folder}/spy", "-d", "60",
                   "-p", str(os.getpid()))


def can(sampler, folder):
    try:
        with sampler(folder):
            return True
    except Exception as error:
        print(f"bench/python_sample.py: left out: {error}", file=sys.stderr)
        return False


# --------------------------------------------------------------------- measuring

def ran_ns(path):
    try:
        return int(open(f"{path}/schedstat").read().split()[0])
    except OSError:  # it has ended
        return 0


def cpu_ns():
    """Processor time of this process and of those that observe it."""
    return time.process_time_ns() + sum(ran_ns(task) for pid in observers for task in glob.glob(f"/proc/{pid}/task/*"))


def stretch_ns(work):
    """Processor time of one piece of work, on average over a stretch: the least of a few stretches."""
    best = float("inf")
    for _ in range(STRETCHES):
        count, begin, end = 0, cpu_ns(), time.perf_counter_ns() + STRETCH_NS
        while time.perf_counter_ns() < end:
            work()
            count += 1
        best = min(best, (cpu_ns() - begin) / count)
    return best


# ------------------------------------------------------------- the sampler itself

def read_if_there(path):
    """Threads end meanwhile."""
    try:
        with open(path) as text:
            return text.read()
    except OSError:
        return ""


def own_tasks():
    return [path[:-5] for path in glob.glob("/proc/self/task/*/comm") if read_if_there(path) == "sonde sampler\n"]


def observer_tasks():
    return [task for pid in observers for task in glob.glob(f"/proc/{pid}/task/*")]


def halts():
    """How often this thread gave up its processor: where it waits for nothing, it was halted."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw


def share_of(tasks, work, windows):
    """What these threads take of one processor, in the best of some tenths of a second; and halts for each sample."""
    best, first, halted = 1.0, time.perf_counter_ns(), halts()
    for _ in range(windows):
        begin, spent = time.perf_counter_ns(), sum(map(ran_ns, tasks))
        while time.perf_counter_ns() - begin < 100_000_000:
            work()
        best = min(best, (sum(map(ran_ns, tasks)) - spent) / (time.perf_counter_ns() - begin))
    return best, (halts() - halted) / ((time.perf_counter_ns() - first) / 1e9 * HZ)


def wake_share(windows):
    """The same, of a thread that wakes as often and does nothing else."""
    libc, best = ctypes.CDLL(None), 1.0
    libc.prctl(29, 1)  # PR_SET_TIMERSLACK, as the sampler's
    for _ in range(windows):
        begin, spent = time.perf_counter_ns(), time.thread_time_ns()
        for _ in range(HZ // 10):
            libc.usleep(1_000_000 // HZ)
        best = min(best, (time.thread_time_ns() - spent) / (time.perf_counter_ns() - begin))
    libc.prctl(29, 50_000)
    return best


def interruptions(name, program, halted):
    """Of the sampler that has just ended, for each round; None: not known."""
    if name == "sonde":
        from sonde import _python
        counts = _python.count_samples()
        return counts["interrupted"] / max(1, counts["rounds"])
    return halted if program == "fib" else None  # the others' threads wait for each other


def sampler_figures(program, what, work, folder, windows, floors):
    found = []
    for name, sampler, tasks in (("sonde", sonde_on, own_tasks), ("sonde attach", attach_on, observer_tasks)):
        with sampler(folder):
            while not tasks():  # it names itself when it runs
                work()
            value, halted = share_of(tasks(), work, windows)
        key = f"python_sample_{program}_{{}}_{name}".replace(" ", "_")
        found.append(figure(key.format("share"), f"{what}: {name}'s own share of a processor", 100 * value, "%", SHARE_BUDGET,
                            **least(floors, program, name, lambda share, cost: share)))
        interrupted = interruptions(name, program, halted)
        if interrupted is not None:
            found.append(figure(key.format("interrupted"), f"{what}: interruptions by {name}, of its rounds",
                                100 * interrupted, "%"))
    return found


FLOORS = {"inside_look": "a look from inside", "inside_stop": "an interruption from inside",
          "outside_look": "a look from outside", "outside_stop": "a halt from outside"}


def measure_floors(windows):
    """{name: percent of a processor, and of the program} of a program in C that wakes as often and asks for one stack."""
    build("bench/sample_floor")
    done = subprocess.run([f"{BUILD}/bench/sample_floor", str(HZ), str(windows)], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.stderr.write("left out: the least that sampling can cost\n")
    lines = [line.split() for line in done.stdout.splitlines()] if done.returncode == 0 else []
    return {name: (float(share), float(cost)) for name, share, cost in lines}


def floor_figures(floors):
    for name, (share, cost) in floors.items():
        yield figure(f"python_sample_floor_{name}", f"the least: {FLOORS[name]} {HZ} times a second, of a processor", share, "%")
        yield figure(f"python_sample_floor_{name}_program", f"the least: {FLOORS[name]}, in the program", cost, "%")


def least(floors, program, name, of):
    """The limit of a figure. A stack of fib moves at nearly every look: its thread is interrupted. The other programs' need not be."""
    floor = ("outside" if name == "sonde attach" else "inside") + ("_stop" if program == "fib" else "_look")
    if floor not in floors:
        return {}
    share, cost = floors[floor][0], max(floors[floor][1], 0)  # what a busy machine hides is less than nothing
    return {"limit": of(share, cost), "why": f"the least, {FLOORS[floor]} by a program in C that does nothing else, is {share:.1f} % of a "
            f"processor and {cost:.1f} % of the program's time."}


@contextlib.contextmanager
def working(program, folder):
    """A process of its own that does this work: its number, and how much of it is done."""
    path = f"{folder}/{program}.count"
    with open(path, "w+b") as file:
        file.truncate(8)
        done = ctypes.c_int64.from_buffer(mmap.mmap(file.fileno(), 8))
    child = subprocess.Popen([sys.executable, __file__, "--work", program, path], stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        yield child.pid, done
    finally:
        child.kill()
        child.communicate()


def window_ns(pid, done):
    """Processor time of one piece of its work, on average over a window, with that of what observes it."""
    clock = ~pid << 3 | 2  # the kernel's, of a process

    def spent():
        return time.clock_gettime_ns(clock) + sum(map(ran_ns, observer_tasks()))
    begin, count = spent(), done.value
    time.sleep(WINDOW_S)
    return (spent() - begin) / (done.value - count) if done.value > count else None


def tell_observers(number):
    for observer in observers:
        os.kill(observer, number)
    time.sleep(SETTLE_S)


def measure_attach(program, pairs, folder):
    times = {"bare": [], "sonde attach": []}
    with working(program, folder) as (pid, done), attach_on(folder, pid):
        while len(times["bare"]) < pairs:
            tell_observers(signal.SIGSTOP)
            bare = window_ns(pid, done)
            tell_observers(signal.SIGCONT)
            sampled_ns = window_ns(pid, done)
            if bare and sampled_ns:  # else its thread was just halted when they were stopped, and stayed so
                times["bare"].append(bare)
                times["sonde attach"].append(sampled_ns)
    return times


def measure(work, samplers, rounds, folder):
    times = {"bare": [], **{name: [] for name in samplers}}
    work()
    for _ in range(rounds):
        times["bare"].append(stretch_ns(work))
        for name, sampler in samplers.items():
            with sampler(folder):
                work()
                times[name].append(stretch_ns(work))
    return times


def sampled(program, what, name, times, budget=None, floors=None):
    return ratio(f"python_sample_{program}_{name}".replace(" ", "_"), f"{what}, sampled {HZ} times a second by {name}",
                 times[name], times["bare"], budget, best_ns=[min(times[name]), min(times["bare"])],
                 **least(floors or {}, program, name, lambda share, cost: 1 + (share + cost) / 100))


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--quick", action="store_true")
    options.add_argument("--work", nargs=2, metavar=("PROGRAM", "FILE"), help=argparse.SUPPRESS)
    options = options.parse_args()
    if options.work:
        work_without_end(*options.work)
    rounds = 10 if options.quick else 40
    floors = measure_floors(rounds)
    figures = list(map(say, floor_figures(floors)))
    with tempfile.TemporaryDirectory(prefix="sonde-bench-") as folder:
        others = {name: sampler for name, sampler in (("pyinstrument", pyinstrument_on),
                                                      ("py-spy", py_spy_on)) if can(sampler, folder)}
        attaches = can(attach_on, folder)
        for program, (what, make) in WORKS.items():
            work = make()
            if work is None:
                sys.stderr.write("left out: sampling of torch: it is not installed\n")
                continue
            # The others change the time of a round by themselves: fewer rounds, of their own.
            found = measure(work, {"sonde": sonde_on}, rounds, folder)
            figures.append(say(sampled(program, what, "sonde", found, BUDGET, floors)))
            figures += map(say, sampler_figures(program, what, work, folder, rounds * 2, floors))
            if attaches:
                found = measure_attach(program, rounds // 2, folder)
                figures.append(say(sampled(program, what, "sonde attach", found, BUDGET, floors)))
            for name, sampler in others.items():
                found = measure(work, {name: sampler}, max(3, rounds // 10), folder)
                figures.append(say(sampled(program, what, name, found)))
    figures.append(say(figure("python_sample_wake", f"a thread that wakes {HZ} times a second, of a processor",
                              100 * wake_share(rounds), "%")))
    conclude(figures)


if __name__ == "__main__":
    main()
