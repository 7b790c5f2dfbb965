#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench/heap.py [SONDE] [ROUNDS] - what counting allocations adds to a program, beside heaptrack.

In turn: alone, sonde run --heap, --heap=sampled, heaptrack. Of each the least time of the program's part (wall
clock of the whole command), and the ratios that are to hold: full at most half of what heaptrack adds, sampled
under 3 %.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

SMALL = r"""
#include <map>
#include <string>
#include <cstdio>
int main()
{
    size_t sum = 0;
    for (int k = 0; k < 40; k++) {
        std::map<int, std::string> m;
        for (int i = 0; i < 20000; i++) m[i * 7919 % 20000] = std::string(30 + i % 50, 'x');
        sum += m.size();
    }
    std::printf("%zu\n", sum);
}
"""


def programs(folder):
    """Name and command: one that does nothing but allocate, and a compiler."""
    source = folder / "small.cpp"
    source.write_text(SMALL)
    subprocess.run(["c++", "-O2", "-o", folder / "small", source], check=True)
    text = "\n".join(f"int f{i}(int x) {{ int s = 0; for (int i = 0; i < x; i++) s += i * {i}; return s; }}"
                     for i in range(1500))
    (folder / "many.c").write_text(text)
    compiler = subprocess.run(["cc", "-print-prog-name=cc1"], check=True, stdout=subprocess.PIPE).stdout.decode().strip()
    yield "only allocates", [str(folder / "small")]
    yield "cc1", [compiler, "-quiet", "-O2", str(folder / "many.c"), "-o", "/dev/null"]


def seconds(command):
    begin = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def main():
    sonde = sys.argv[1] if len(sys.argv) > 1 else str(pathlib.Path(sys.executable).with_name("sonde"))
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for title, command in programs(folder):
            ways = {"alone": command,
                    "full": [sonde, "run", "-q", "--heap", "-o", folder / "f.sonde", "--", *command],
                    "sampled": [sonde, "run", "-q", "--heap=sampled", "-o", folder / "s.sonde", "--", *command]}
            if shutil.which("heaptrack"):
                ways["heaptrack"] = ["heaptrack", "-o", folder / "ht", *command]
            best = dict.fromkeys(ways, float("inf"))
            for _ in range(rounds):
                for way, line in ways.items():
                    best[way] = min(best[way], seconds(line))
            added = {way: best[way] - best["alone"] for way in best}
            print(f"heap, {title}: alone {best['alone'] * 1e3:.0f} ms, full +{added['full'] * 1e3:.0f} ms, sampled "
                  f"+{added['sampled'] * 1e3:.0f} ms ({100 * added['sampled'] / best['alone']:.1f} %)", end="")
            if "heaptrack" in added:
                print(f", heaptrack +{added['heaptrack'] * 1e3:.0f} ms: full is "
                      f"{added['full'] / added['heaptrack']:.2f} of it", end="")
            print()


main()
