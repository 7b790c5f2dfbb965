# SPDX-License-Identifier: Apache-2.0
"""python -m sonde [OPTIONS] script.py [ARGS], or -m module [ARGS]: as cProfile and kernprof.

This only translates their options to those of `sonde run`, which then runs the program by itself:
as its own process, in which nothing of ours lies below its first frame, and whose trace outlives
whatever ends it.
"""
import os
import subprocess
import sys

from .._core import PROBES

USAGE = """\
usage: python -m sonde [OPTIONS] SCRIPT.py [ARGS]
       python -m sonde [OPTIONS] -m MODULE [ARGS]
       python -m sonde COMMAND ...                   (report, export, ..: see 'sonde help')

Runs a Python program as it is, records it, and shows what was recorded when it has ended.

what to record:
      --functions         every call (the default), as cProfile
      --timeline          every call with its time, for -o FILE.json
      --python-only       without functions written in C
      --lines LIST        time of each line: module.function, Class.method, file.py:function
      --line-memory LIST  bytes of each line, of the same
  -l, --line-by-line      time of each line of what is decorated with @profile, as kernprof;
                          writes SCRIPT.lprof
  -p, --prof-mod LIST     with -l: these too
      --sample [HZ]       sample the stacks of all threads at HZ
      --native            samples with the C functions between the Python ones
      --ops --shapes --memory --modules --stacks      PyTorch's operators

what to do with it:
  -o, --outfile FILE      keep it instead of showing it: .sonde, .prof, .lprof, .json, ..
  -v, --view              show it too
  -s, --sort KEY          order of the rows; with -l, --setup FILE: run FILE before the program
  -n, --rows N            at most N rows
  -u, --unit UNIT         seconds, of the times of lines: 1e-9, 1e-6, 1e-3, 1
  -z, --skip-zero         no functions that did not run
"""

# What to record: the options of `sonde run`, each a "flag", a "list", a "rate" or "words".
_RECORDS = {f"--{name}": value for name, value in PROBES}
# Whether an option has a value. Those that `sonde run` has too, and those that are only here.
_PASSED = {
    **{name: value == "list" for name, value in _RECORDS.items() if value not in ("rate", "words")},
    **dict.fromkeys(("--keep-last", "--skip-zero"), False),
    **dict.fromkeys(("--max-size", "--schedule", "--sort", "--rows"), True),
}
_OWN = {
    "--outfile": True, "--output": True, "--line-by-line": False, "--view": False,
    "--prof-mod": True, "--setup": True, "--unit": True, "--builtin": False, "--no-builtin": False,
    "--help": False,
}
_LETTERS = {
    "-o": "--outfile", "-l": "--line-by-line", "-v": "--view", "-s": "--sort", "-n": "--rows",
    "-u": "--unit", "-z": "--skip-zero", "-p": "--prof-mod", "-b": "--builtin", "-h": "--help",
}
_UNITS = {1e-6: "us", 1e-3: "ms", 1.0: "s", 1e-9: None}  # seconds; None: the table's own


class UsageError(Exception):
    pass


def is_ours(words):
    """Is this a program to run, not a command of `sonde`?"""
    if not words:
        return False
    first = words[0].partition("=")[0]
    if first.startswith("-"):
        return first[:2] == "-m" or first[:2] in _LETTERS and first[:2] != "-h" and \
            first[1] != "-" or first in _PASSED or first in _RECORDS or \
            first in _OWN and first != "--help"
    return first.endswith((".py", ".pyc", ".pyz")) or os.path.isfile(first) and "/" in first


# --------------------------------------------------------------------------- parsing

def _split(word):
    """'--name=value', '-ovalue', '-lv' to (name, value or None, what is left of the letters)."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        return name, value if equals else None, ""
    name = _LETTERS.get(word[:2], word[:2])
    if _PASSED.get(name, _OWN.get(name)):
        return name, word[2:] or None, ""
    return name, None, word[2:]


def parse(words):
    """(options by name, the program's words)."""
    words, options = list(words), {}
    while words and words[0].startswith("-") and words[0] not in ("-", "--"):
        word = words.pop(0)
        if word.startswith("-m"):
            options["-m"] = True
            words[:0] = [word[2:]] if word[2:] else []
            break
        name, value, rest = _split(word)
        if rest:
            words.insert(0, "-" + rest)
        if _RECORDS.get(name) in ("rate", "words"):
            if _RECORDS[name] == "rate" and value is None and words and words[0].isdigit():
                value = words.pop(0)
        elif name in _PASSED or name in _OWN:
            takes = _PASSED.get(name, _OWN.get(name))
            if takes and value is None:
                if not words:
                    raise UsageError(f"{word} needs a value")
                value = words.pop(0)
            elif not takes and value is not None:
                raise UsageError(f"{name} takes no value")
        else:
            raise UsageError(f"unknown option {word!r}")
        is_list = name == "--prof-mod" or _RECORDS.get(name) == "list"
        repeated = is_list and name in options
        options[name] = f"{options[name]},{value}" if repeated else value
    if words[:1] == ["--"]:
        del words[0]
    return options, words


# -------------------------------------------------------------------------- translating

def _line_by_line(options, program):
    """kernprof -l: @profile's functions, and a file of the script's name."""
    names = [options.pop("--prof-mod", None), options.get("--lines"), "@profile"]
    options["--lines"] = ",".join(name for name in names if name)
    if "--sort" in options:
        options["--setup"] = options.pop("--sort")
    options.setdefault("--outfile", f"{os.path.basename(program)}.lprof")


def time_unit(text):
    """kernprof's unit as report's; None: the table's own."""
    try:
        return _UNITS[float(text)]
    except (KeyError, ValueError):
        raise UsageError(f"--unit: expected 1e-9, 1e-6, 1e-3 or 1 (seconds), got {text!r}") from None


def translate(options, program):
    """The options of `sonde run`, as a list."""
    options = dict(options)
    if "--output" in options:
        options["--outfile"] = options.pop("--output")
    if options.pop("--line-by-line", False) is None:
        _line_by_line(options, program)
    if "--prof-mod" in options:
        raise UsageError("--prof-mod requires -l (--line-by-line)")
    for name in ("--builtin", "--no-builtin", "-m", "--setup"):
        options.pop(name, None)
    if not any(name in options for name in _RECORDS):
        options["--functions"] = None
    unit = time_unit(options.pop("--unit")) if "--unit" in options else None
    if unit:
        options["--time-unit"] = unit
    output, shown = options.pop("--outfile", None), "--view" in options
    options.pop("--view", None)
    result = ["--output", output] if output else []
    if shown or not output:
        result.append("--print")
        options.setdefault("--rows", "-1")  # all, as theirs
    for name, value in options.items():
        result.append(name if value is None else f"{name}={value}")
    return result


def interpreter():
    """This Python, with the options that it was started with."""
    flags = subprocess._args_from_interpreter_flags()
    words = getattr(sys, "orig_argv", [])
    words = words[:len(words) - len(sys.argv) + 1]
    if words[-2:] == ["-m", "sonde"]:
        flags = words[1:-2]
    return [sys.executable, *flags]


def refuse_unheard():
    """Options that keep a Python from loading our start-up code."""
    names = [letter for letter, flag in (("-I", "isolated"), ("-E", "ignore_environment"),
                                         ("-S", "no_site")) if getattr(sys.flags, flag)]
    if names:
        raise UsageError(f"python {names[0]} prevents sonde from recording the program; remove it")


def command(words, program):
    """The whole command line for `program`, which is `sonde`."""
    options, rest = parse(words)
    if "--help" in options:
        print(USAGE, end="")
        return None
    if not rest:
        raise UsageError("missing module name after -m" if "-m" in options else "missing SCRIPT")
    refuse_unheard()
    run = [program, "run", *translate(options, rest[0]), "--", *interpreter()]
    if "--setup" in options or "--line-by-line" in options and "--sort" in options:
        os.environ["SONDE_SETUP"] = options.get("--setup") or options["--sort"]
    return [*run, *(["-m"] if "-m" in options else []), *rest]
