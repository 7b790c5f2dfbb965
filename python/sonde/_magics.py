# SPDX-License-Identifier: Apache-2.0
"""%load_ext sonde: profiling in IPython and notebooks.

    %sonde, %%sonde     functions (as %prun), --lines, --line-memory, --sample, --ops
    %lprun, %%lprun     line_profiler's          %mprun, %%mprun     memory_profiler's
    %memit, %%memit     memory_profiler's

Results are shown as the tool's own text and, in a notebook, as a table.
"""
import builtins
import contextlib
import gc
import html
import itertools
import json
import linecache
import os

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from .python import _decorated, _functions, _names, _runner, _sources

_MIB = 1 << 20
_numbers = itertools.count(1)  # of what was run


# ------------------------------------------------------------------------------ results

class Table:
    """The result of a view: text for a terminal, a table for a notebook."""

    def __init__(self, session, **options):
        self.text = session.report(**options).rstrip("\n")
        self._rows = json.loads(session.report(format="json", **options))["rows"]

    def __repr__(self):
        return self.text

    def _repr_html_(self):
        if not self._rows:
            return f"<pre>{html.escape(self.text)}</pre>"
        names = list(self._rows[0])
        head = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in names)
        body = "".join("<tr>" + "".join(_cell(row.get(name)) for name in names) + "</tr>"
                       for row in self._rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value):
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return f"<td>{value:,}</td>"
    text = "" if value is None else str(value)
    return f'<td style="text-align: left; white-space: pre">{html.escape(text)}</td>'


class MemitResult:
    """Of %memit -o; memory in MiB, as memory_profiler's."""

    def __init__(self, mem_usage, baseline):
        self.mem_usage, self.baseline = mem_usage, baseline

    def __str__(self):
        most = max(self.mem_usage)
        return f"peak memory: {most:.2f} MiB, increment: {most - self.baseline:.2f} MiB"

    def __repr__(self):
        return f"<MemitResult : {self}>"


# ---------------------------------------------------------------------------- the shell

def _statement(line, count):
    """What follows the first `count` words, as it was written."""
    parts = line.split(None, count)
    return parts[count] if len(parts) > count else ""


@contextlib.contextmanager
def _builtin_profile(sessions):
    """`@profile` in what is run, as the other tools have it."""
    absent = object()
    before = getattr(builtins, "profile", absent)
    builtins.profile = _decorated.Profile(sessions, _remember_sources)
    try:
        yield
    finally:
        if before is absent:
            del builtins.profile
        else:
            builtins.profile = before


def _within(sessions, function):
    """Calls it while the sessions are on. All frames are of this package, and not recorded."""
    if not sessions:
        return function()
    with sessions[0]:
        return _within(sessions[1:], function)


def _execute(code, names, local_names):
    """What the statement ended by, if that is not the end of the session."""
    try:
        exec(code, names, local_names)
    except (SystemExit, KeyboardInterrupt) as error:
        return f"{type(error).__name__} exception caught in code being profiled."
    return None


@magics_class
class SondeMagics(Magics):
    """The magics; each says what it takes in its own help."""

    def _evaluate(self, name, what):
        try:
            return eval(name, self.shell.user_global_ns, self.shell.user_ns)
        except Exception as error:
            raise UsageError(f"Could not find {what} {name}.\n{type(error).__name__}: {error}")

    def _compile(self, text):
        """What is defined in it has a source to show, too."""
        text = self.shell.transform_cell(text)
        name = f"<sonde-{next(_numbers)}>"
        linecache.cache[name] = len(text), None, text.splitlines(True), name
        return compile(text, name, "exec")

    def _record(self, sessions, text, remember=()):
        """Runs `text` with the sessions on; returns the message about its end."""
        code = self._compile(text)
        spaces = self.shell.user_global_ns, self.shell.user_ns
        calls = [session for session in sessions if isinstance(session, _functions.functions)]
        others = [session for session in sessions if session not in calls]

        def run():
            _remember_sources(remember)
            return _within(calls, lambda: _execute(code, *spaces))
        with _builtin_profile([session for session in sessions if hasattr(session, "add_code")]):
            return _within(others, run)

    # ------------------------------------------------------------------------- %sonde

    @line_cell_magic
    def sonde(self, line="", cell=None):
        """Run a statement, or a cell, and show where its time went.

        %sonde [OPTIONS] STATEMENT          %%sonde [OPTIONS]
                                            CELL
        --functions          every call, as %prun (the default)
        --lines F,..         time of each line of these functions (expressions)
        --line-memory F,..   bytes of each line of these
        --sample [HZ]        stacks, so many times a second
        --ops --shapes --memory --modules --stacks      PyTorch's operators
        -s KEY               order of the rows          -n ROWS    at most so many
        -o FILE              keep it too: .sonde, or by its ending .prof, .lprof, .json, ..
        """
        words = line.split()
        try:
            options, rest = _runner.parse(words)
        except _runner.UsageError as error:
            raise UsageError(str(error))
        text = _statement(line, len(words) - len(rest))
        sessions, functions = self._sessions(options)
        message = self._record(sessions, f"{text}\n{cell or ''}", functions)
        shown = {"sort": options.get("--sort"), "rows": int(options.get("--rows") or 100)}
        for session in sessions:
            display(Table(session, **shown))
        path = options.get("--outfile") or options.get("--output")
        if path:
            _keep(sessions, path)
        if message:
            print(f"\n*** {message}")

    def _sessions(self, options):
        """Those that the options ask for, and the functions that they name."""
        import sonde
        made, functions = [], []
        for option, kind in (("--lines", "lines"), ("--line-memory", "line_memory")):
            if option in options:
                found = [self._evaluate(name, "function")
                         for name in options[option].split(",") if name]
                functions += found
                made.append(getattr(sonde, kind)(*found))
        if "--sample" in options:
            rate = options["--sample"]
            made.append(sonde.sample(hz=int(rate)) if rate else sonde.sample())
        asked = [name[2:] for name in ("--shapes", "--memory", "--modules", "--stacks")
                 if name in options]
        if asked or "--ops" in options:
            made.append(_Operators(asked))
        if "--functions" in options or not made:
            made.append(sonde.functions())
        return made, functions

    # -------------------------------------------------------------- the other tools'

    @line_cell_magic
    def lprun(self, line="", cell=None):
        """Run a statement with time taken for each line of the functions named, as line_profiler.

        %lprun -f FUNCTION [-f ..] [-m MODULE] [OPTIONS] STATEMENT
        -D FILE   keep it as .lprof      -T FILE   keep the text      -r   return the profiler
        -z, -s    leave out functions that did not run                -u UNIT   in seconds
        """
        from .python._lines import lines
        opts, text = self.parse_options(line, "rszf:m:D:T:u:", list_all=True, posix=False)
        functions = self._functions(opts)
        session = lines(*functions)
        message = self._record([session], f"{text}\n{cell or ''}", functions)
        shown = {}
        if "z" in opts or "s" in opts:
            shown["skip_zero"] = True
        if "u" in opts:
            shown["time_unit"] = _time_unit(opts["u"][0])
        table = Table(session, **shown)
        display(table)
        for path in opts.get("D", []):
            session.dump_stats(path)
            print(f"\n*** Profile stats pickled to file {path!r}.")
        return self._told(session, table, opts, message)

    @line_cell_magic
    def mprun(self, line="", cell=None):
        """Run a statement and measure the memory of each line of the functions named.

        %mprun -f FUNCTION [-f ..] [-T FILE] [-r] STATEMENT
        """
        from .python._line_memory import line_memory
        opts, text = self.parse_options(line, "rcf:T:", list_all=True, posix=False)
        functions = self._functions(opts)
        session = line_memory(*functions)
        message = self._record([session], f"{text}\n{cell or ''}", functions)
        table = Table(session)
        display(table)
        return self._told(session, table, opts, message)

    @line_cell_magic
    def memit(self, line="", cell=None):
        """Run a statement and print its peak memory, as the allocators count it.

        %memit [-r N] [-o] [-q] STATEMENT
        %%memit [-r N] SETUP
        CELL
        -r N   the most of N runs      -o   return it      -q   say nothing
        -t, -i, -c are memory_profiler's: nothing is polled here, so they have no effect.
        """
        from .python._line_memory import memit
        opts, text = self.parse_options(line, "r:t:i:coq", posix=False, strict=False)
        if cell is not None:
            exec(self._compile(text), self.shell.user_ns)
            text = cell
        code = self._compile(text)
        gc.collect()
        usage, baseline = [], None
        for _ in range(max(1, int(opts.get("r", 1)))):
            most, more = memit(lambda: exec(code, self.shell.user_ns))
            baseline = most - more if baseline is None else baseline
            usage.append(most / _MIB)
        result = MemitResult(usage, baseline / _MIB)
        if "q" not in opts:
            print(result)
        return result if "o" in opts else None

    def _functions(self, opts):
        found = [self._evaluate(name, "function") for name in opts.get("f", [])]
        for name in opts.get("m", []):
            try:
                found.append(__import__(name, fromlist=[""]))
            except Exception as error:
                raise UsageError(f"Could not find module {name}.\n{type(error).__name__}: {error}")
        return found

    def _told(self, session, table, opts, message):
        for path in opts.get("T", []):
            with open(path, "w", encoding="utf-8") as file:
                print(table.text, file=file)
            print(f"\n*** Profile printout saved to text file {path!r}.")
        if message:
            print(f"\n*** {message}")
        return session if "r" in opts else None


def _time_unit(text):
    try:
        return _runner.time_unit(text) or "auto"
    except _runner.UsageError as error:
        raise UsageError(str(error))


# ------------------------------------------------------------------------------ details

class _Operators:
    """sonde.profile as a session: PyTorch's table."""

    def __init__(self, asked):
        from .torch import profile
        names = {"shapes": "record_shapes", "memory": "profile_memory", "modules": "with_modules",
                 "stacks": "with_stack"}
        self._profile = profile(**{names[name]: True for name in asked})

    def __enter__(self):
        self._profile.__enter__()

    def __exit__(self, *error):
        self._profile.__exit__(*error)

    def report(self, **options):
        return self._profile.trace().report(view="ops", **options)


def _remember_sources(functions):
    """A cell's source is in no file: what is needed goes into the trace, to be shown with it."""
    for function in functions:
        for code in _names.functions_of(function):
            lines = linecache.getlines(code.co_filename)
            if lines and not os.path.exists(code.co_filename):
                _sources.keep(code, lines)


def _keep(sessions, path):
    endings = {".prof": "pstats", ".lprof": "lprof", ".dat": "mprof", ".json": "chrome",
               ".folded": "folded", ".speedscope": "speedscope"}
    to = endings.get(os.path.splitext(path)[1])
    if to is None:
        sessions[0].save(path)
    else:
        sessions[0].trace().export(path, to=to)


def load(shell):
    shell.register_magics(SondeMagics)
