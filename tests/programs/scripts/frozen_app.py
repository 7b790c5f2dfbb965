# SPDX-License-Identifier: Apache-2.0
"""What PyInstaller makes a program of: one file, with a Python in it that takes nothing from its environment."""
import json
import sys


def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


print(json.dumps({"longest": max(range(1, 60000), key=collatz), "frozen": getattr(sys, "frozen", False)}))
sys.exit(7)
