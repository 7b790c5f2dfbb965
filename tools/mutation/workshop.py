# SPDX-License-Identifier: Apache-2.0
"""A copy of the tree and a build of it that counts the lines that each test runs.

A mutant touches neither. Its file is compiled beside them, by the build's own command, and the programs that a test
runs are linked from that object and the others as they are; so several can be tried at once, and none costs a build.
"""
import json
import os
import pathlib
import resource
import shlex
import shutil
import signal
import subprocess
import sys

MESON = os.environ.get("MESON", "meson")
# Of one test: a mutant that never ends, fills the disk or takes all memory has been noticed. Processor seconds, so that a
# busy machine does not end a test; for one that waits, these and half as many again, at least SECONDS_LEAST.
SECONDS_LEAST = 120
BYTES_MAX = 24 << 30
FILE_MAX = 1 << 30


# A mutant that no plain test notices may still read past an array, use what was freed, leak or overflow: its file is compiled with
# the sanitizers then, and what it calls in the C library is checked as well.
CHECKS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
# Of what it is linked with, this as well: arrays have no room to spare then, in which one too many could be read unseen.
GROWS = "src/base/data/map.c"
CHECKED = {"ASAN_OPTIONS": f"detect_stack_use_after_return=1:strict_string_checks=1:hard_rss_limit_mb={BYTES_MAX >> 21}",
           "UBSAN_OPTIONS": "halt_on_error=1"}


def can_check(folder):
    """Whether the compiler has its sanitizers here, and a program with them runs."""
    source, made = folder / "can_check.c", folder / "can_check"
    source.write_text("int main(void) { return 0; }\n")
    done = subprocess.run(["cc", *CHECKS, str(source), "-o", str(made)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return done.returncode == 0 and run_limited([str(made)], folder, CHECKED, 60)[0] == 0


def limit(processor_seconds, env):
    resource.setrlimit(resource.RLIMIT_CPU, (processor_seconds, processor_seconds + 2))
    if "ASAN_OPTIONS" not in env:  # its shadow is all of the address space
        resource.setrlimit(resource.RLIMIT_AS, (BYTES_MAX, BYTES_MAX))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_MAX, FILE_MAX))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def run_limited(command, folder, env, processor_seconds):
    """The exit status and what it printed; whatever it started ends with it."""
    process = subprocess.Popen(command, cwd=folder, env={**os.environ, **env}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=lambda: limit(processor_seconds, env))
    try:
        output, _ = process.communicate(timeout=max(SECONDS_LEAST, 1.5 * processor_seconds))
        status = process.returncode
    except subprocess.TimeoutExpired:
        output, status = b"", "no end"
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()
    return status, output.decode("utf-8", "replace")


def call(command, folder, **more):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", errors="replace", **more)
    if done.returncode != 0:
        sys.exit(f"mutants: {command if isinstance(command, str) else shlex.join(command)}:\n{done.stdout[-3000:]}")
    return done.stdout


def copy_tree(root, tree, folders):
    """What git knows of and what it does not ignore, below `folders`. Files that are the same keep their times."""
    listed = call(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *folders], root).split("\0")
    wanted = {name for name in listed if name and (root / name).is_file()}
    for name in wanted:
        source, target = root / name, tree / name
        if target.exists() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, target)  # with today's time: a build goes by it
    for folder in folders or ["."]:
        for path in (tree / folder).rglob("*"):
            name = path.relative_to(tree).as_posix()
            if path.is_file() and name not in wanted and not name.startswith("report/") and "__pycache__" not in name:
                path.unlink()
    page, built = root / "build/report/page.html", tree / "report/built/page.html"
    if page.exists() and not built.exists():  # spares the copy npm's packages
        built.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(page, built)


# What counts lines, left out: programs that are linked with this write no counts when they end.
NO_COUNTS = """
void __gcov_init(void *unit);
void __gcov_exit(void);
void __gcov_merge_add(long *counts, unsigned number);
void __gcov_init(void *unit) { (void)unit; }
void __gcov_exit(void) {}
void __gcov_merge_add(long *counts, unsigned number) { (void)counts; (void)number; }
"""


def make_build(tree, folder):
    """Not optimized: it is compiled soon, and whether two objects are equal is another compilation's answer."""
    if not (folder / "build.ninja").exists():
        call([MESON, "setup", str(folder), str(tree), "--buildtype", "release", "-Doptimization=0", "-Db_coverage=true",
              "-Dwerror=false", "-Dpython=disabled"], tree)
    call(["ninja", "-C", str(folder), "build.ninja"], tree)
    tests = [test for test in json.loads(call([MESON, "introspect", "--tests", str(folder)], tree))
             if suites_of(test) & {"unit", "golden"}]
    words = {target_of(word, folder) for test in tests for word in test["cmd"]} - {None}
    call(["ninja", "-C", str(folder), *sorted(words), "tests/e2e/e2e_worker"], tree)
    stub = folder / "no_counts.c"
    stub.write_text(NO_COUNTS)
    call(["cc", "-c", "-fPIC", str(stub), "-o", str(stub.with_suffix(".o"))], folder)
    return tests


def target_of(word, folder):
    """The target that a word of a command names, or None: of a build in `folder`."""
    path = os.path.normpath(os.path.join(folder, word))
    return os.path.relpath(path, folder) if path.startswith(str(folder) + "/") and (word[:1] == "/" or "/" in word) else None


def suites_of(test):
    return {suite.rpartition(":")[2] for suite in test["suite"]}


class Build:
    """The commands of a build of `tree`, by what they make."""

    def __init__(self, tree, folder):
        self.tree, self.folder = tree, pathlib.Path(folder)
        self.units = json.loads((self.folder / "compile_commands.json").read_text())
        self.commands = {}

    def compilations(self, file):
        """Commands that compile `file` (a path of the tree); a file may be part of several programs."""
        return [unit for unit in self.units if (self.folder / unit["file"]).resolve() == file]

    def command_of(self, target):
        """The words of the one command that links or archives `target`; none if it is no target."""
        if target not in self.commands:
            done = subprocess.run(["ninja", "-C", str(self.folder), "-t", "commands", "-s", target],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, encoding="utf-8")
            lines = [line for line in done.stdout.splitlines() if not line.startswith("ninja:")]
            self.commands[target] = shlex.split(lines[-1]) if done.returncode == 0 and lines else []
        return self.commands[target]

    def parts(self, target):
        """What it is linked from that this build makes."""
        return [word for word in self.command_of(target) if word.endswith((".o", ".a", ".so", ".so.1")) and not word.startswith("/")
                and word != target and not word.startswith("-")]


RECORDER = "src/libsonde_record.so.1"  # sonde looks for it beside itself


class Planted:
    """One mutant: its objects, and programs linked with them, in a folder of its own; `checked`: by the sanitizers."""

    def __init__(self, build, folder, checked=False):
        self.build, self.folder = build, pathlib.Path(folder)
        self.checks, self.env = (CHECKS, CHECKED) if checked else ([], {})
        self.made = {}  # of the build to ours; None: as it is there
        self.sources = []  # (unit, changed source, file)

    def compile(self, file, text):
        """Whether it can be compiled."""
        for number, unit in enumerate(self.build.compilations(file)):
            source = self.folder / str(number) / file.name
            source.parent.mkdir(parents=True, exist_ok=True)
            source.write_text(text, encoding="utf-8")
            if not self.make_object(unit, source, file):
                return False
            self.sources.append((unit, source, file))
        grows = self.build.tree / GROWS
        if self.checks and file != grows:
            for unit in self.build.compilations(grows):
                self.make_object(unit, grows, grows)
        return True

    def make_object(self, unit, source, file):
        made = self.folder / unit["output"]
        made.parent.mkdir(parents=True, exist_ok=True)
        self.made[unit["output"]] = str(made)
        return self.compile_one(unit, source, made, file, ["-O0", *self.checks])

    def is_equal(self):
        """Whether an optimizing compiler makes the same of it as of the original."""
        return all(self.code(unit, source, file) == self.code(unit, file, file) for unit, source, file in self.sources)

    def compile_one(self, unit, source, made, file, options):
        words = [word for word in shlex.split(unit["command"]) if word not in ("--coverage", "-O0")]
        words = [str(source) if word == unit["file"] else str(made) if word == unit["output"] else word for word in words]
        words += [*options, "-iquote", str(file.parent), "-w", "-MF", str(made) + ".d"]
        return subprocess.run(words, cwd=self.build.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0

    def code(self, unit, source, file):
        """What an optimizing compiler makes of it, without the names of files."""
        made = self.folder / "optimized.o"
        self.compile_one(unit, source, made, file, ["-O2"])
        call(["strip", "--strip-unneeded", "-R", ".comment", str(made)], self.folder)
        return made.read_bytes()

    def linked(self, target):
        """The path of `target` with the mutant in it, or None if it is not part of it."""
        if target not in self.made:
            self.made[target] = self.link(target)
        return self.made[target]

    def link(self, target):
        replaced = {part: self.linked(part) for part in self.build.parts(target)}
        if not any(replaced.values()):
            return None
        self.lay_beside(part for part, made in replaced.items() if not made)
        if target != RECORDER:
            self.lay_recorder()
        made = self.folder / target
        made.parent.mkdir(parents=True, exist_ok=True)
        made.unlink(missing_ok=True)
        words = [str(made) if word == target else replaced.get(word) or word for word in self.build.command_of(target)]
        if words[:1] == ["rm"]:
            words = [word.replace("csrDT", "csrD") for word in words[words.index("&&") + 1:]]  # no thin archive: it lies elsewhere
        elif "-o" in words:
            words[1:1] = [str(self.build.folder / "no_counts.o"), *self.checks]
        call(words, self.build.folder)
        return str(made)

    def lay_recorder(self):
        """By the name that programs load and the one that they are linked by."""
        if not self.linked(RECORDER):
            self.lay_beside([RECORDER])
        plain = self.folder / RECORDER.removesuffix(".1")
        if not plain.is_symlink():
            plain.symlink_to(pathlib.PurePath(RECORDER).name)

    def lay_beside(self, parts):
        """Shared libraries without the mutant, where a program with it looks for them."""
        for part in parts:
            own = self.folder / part
            if ".so" in part and not own.is_symlink():
                own.parent.mkdir(parents=True, exist_ok=True)
                own.symlink_to(self.build.folder / part)
                self.lay_beside(self.build.parts(part))

    def program(self, target):
        """The program to run: it finds the mutant's libraries beside it, as the build's does."""
        return self.linked(target) or str(self.build.folder / target)
