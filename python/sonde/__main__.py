# SPDX-License-Identifier: Apache-2.0
"""python -m sonde ARGUMENTS: the command line, as it was installed with this package."""
import os
import shutil
import sys
import sysconfig


def find_program():
    """The `sonde` of this environment; only if there is none, that of the PATH."""
    beside = os.path.join(sysconfig.get_path("scripts"), "sonde")
    return beside if os.access(beside, os.X_OK) else shutil.which("sonde")


def main():
    program = find_program()
    if not program:
        sys.exit("sonde: the program is not beside this Python nor on the PATH; "
                 "install sonde again (make, or pip install .)")
    sys.stdout.flush()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
