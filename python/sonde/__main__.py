# SPDX-License-Identifier: Apache-2.0
"""python -m sonde: runs a Python program and records it, or the command line as it is installed.

    python -m sonde [OPTIONS] script.py [ARGS]      _runner.py
    python -m sonde [OPTIONS] -m module [ARGS]
    python -m sonde COMMAND ...                     the program `sonde` of this environment
"""
import os
import shutil
import sys
import sysconfig

from .python import _runner


def find_program():
    """The `sonde` of this environment; only if there is none, that of the PATH."""
    beside = os.path.join(sysconfig.get_path("scripts"), "sonde")
    return beside if os.access(beside, os.X_OK) else shutil.which("sonde")


def main():
    program = find_program()
    if not program:
        sys.exit("sonde: the program is not beside this Python nor on the PATH; "
                 "install sonde again (make, or pip install .)")
    command = [program, *sys.argv[1:]]
    if _runner.is_ours(sys.argv[1:]):
        try:
            command = _runner.command(sys.argv[1:], program)
        except _runner.UsageError as error:
            print(f"sonde: {error}; see 'python -m sonde -l --help'", file=sys.stderr)
            sys.exit(2)
    sys.stdout.flush()
    if command:
        os.execv(command[0], command)


if __name__ == "__main__":
    main()
