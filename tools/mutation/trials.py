# SPDX-License-Identifier: Apache-2.0
"""The tests that a mutant is tried with, what each costs, and the lines that each runs."""
import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import time

from mutation.workshop import RECORDER, call, run_limited, suites_of, target_of

SONDE, GEN = "src/cli/sonde", "tests/gen/gen"
# End-to-end tests that read traces of tests/gen or record programs: the longest takes a minute. They run when neither a unit
# test nor a golden one has noticed the mutant.
E2E = ["test_advice", "test_cli_export", "test_cli_run", "test_cli_terminal", "test_core_rows", "test_counters", "test_diff",
       "test_exports_agree", "test_full_disk", "test_functions", "test_gpu_chrome", "test_gpu_several", "test_heap", "test_import",
       "test_keep_last", "test_many_names", "test_mixed", "test_native_counters", "test_native_exports", "test_native_samples",
       "test_parquet", "test_perfetto", "test_pipeline_files", "test_python_exports", "test_python_line_memory",
       "test_python_lines", "test_python_tables", "test_python_timeline", "test_ranks", "test_sampled_lines", "test_scopes",
       "test_sql", "test_sqlite", "test_svg", "test_symbols", "test_view"]
E2E_PROGRAMS = {"SONDE": SONDE, "SONDE_GEN": GEN, "SONDE_WORKER": "tests/e2e/e2e_worker"}
# This runs most of the code, slowly, for something else: which keys the manual has.
SPARED = {"golden keys"}
# What happens without memory: of most of the code, slowly. It is asked when no other unit test or golden case has noticed.
LAST = {"test_nomem"}
LOOSE = 12  # a mutant may take this many times as long as the original, and then some seconds


class Trial:
    """One test: words of its command, which may be targets of the build; `files`: what it consists of."""

    def __init__(self, name, kind, words, files, env=None, programs=None):
        self.name, self.kind, self.words, self.files, self.env = name, kind, words, files, env or {}
        self.programs = programs or {}

    def targets(self):
        return [word[1] for word in self.words if isinstance(word, tuple)] + list(self.programs.values())

    def run(self, program, folder, seconds, env=None, more=()):
        """`program`: where a target of the build lies; `more`: words added to the command."""
        words = [program(word[1]) if isinstance(word, tuple) else word for word in self.words] + list(more)
        named = {name: program(target) for name, target in self.programs.items()}
        if self.kind == "e2e":  # Python programs are recorded by the installed package, and by this recorder
            named["LD_LIBRARY_PATH"] = os.path.dirname(program(RECORDER))
        return run_limited(words, folder, {**self.env, **named, **(env or {})}, seconds)

    def digest(self):
        digest = hashlib.sha256(repr((self.words, self.programs)).encode())
        for file in self.files:
            for path in sorted(file.rglob("*")) if file.is_dir() else [file]:
                digest.update(path.read_bytes() if path.is_file() else b"")
        return digest.hexdigest()


def find_trials(tree, build, tests, python):
    """`tests`: as Meson lists them. The one that runs all golden cases is one for each of them here."""
    trials = []
    for test in tests:
        if test["name"] == "golden" or test["name"] in SPARED:
            continue
        words = [("target", target_of(word, build)) if target_of(word, build) else word for word in test["cmd"]]
        files = [tree / "tests/unit" / (test["name"] + ".c")] if "unit" in suites_of(test) else [tree / "tests/golden"]
        # Meson's LD_LIBRARY_PATH would have them load the unchanged recorder; the run path finds the mutant's.
        env = {name: value for name, value in test["env"].items() if name != "LD_LIBRARY_PATH"}
        trials.append(Trial(test["name"], "unit", words, files, env))
    runner = str(tree / "tests/golden/run")
    for case in sorted((tree / "tests/golden").glob("*/commands")):
        trials.append(Trial("golden " + case.parent.name, "golden", ["python3", runner, ("target", SONDE), ("target", GEN), case.parent.name],
                            [case.parent]))
    if python and python.exists():
        # The package that is installed there records Python programs for the mutant; of it, only the recorder is the mutant's.
        package = next(python.parent.parent.glob("lib/python3*/site-packages/sonde"), None)
        env = {"SONDE_PYTHON": str(package)} if package else {}
        for name in E2E:
            file = tree / "tests/e2e" / (name + ".py")
            if file.exists():
                trials.append(Trial("e2e " + name, "e2e", [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not alone", str(file)],
                                    [file], env, programs=E2E_PROGRAMS))
    return trials


class Knowledge:
    """What is known of the trials, kept in a file: seconds, and whether it passes unchanged; who noticed what before."""

    def __init__(self, folder, tree):
        self.folder, self.tree = folder, tree
        self.file = folder / "known.json"
        try:
            self.kept = json.loads(self.file.read_text())
        except (OSError, ValueError):
            self.kept = {"source": "", "trials": {}, "killers": {}}
        self.lines = {}  # of a file: trial to lines

    def save(self):
        self.file.write_text(json.dumps(self.kept))

    def source_digest(self):
        digest = hashlib.sha256()
        for place in ("src", "include", "meson.build"):
            for path in sorted((self.tree / place).rglob("*")) if (self.tree / place).is_dir() else [self.tree / place]:
                if path.is_file() and path.suffix != ".pyc":
                    digest.update(str(path).encode() + path.read_bytes())
        return digest.hexdigest()

    def learn(self, trials, build, jobs, say):
        """Runs each trial unchanged, unless it was run before as it is."""
        source = self.source_digest()
        if source != self.kept["source"]:
            self.kept.update(source=source, trials={})
        left = [trial for trial in trials if self.kept["trials"].get(trial.name, {}).get("digest") != trial.digest()]
        say(f"{len(trials)} tests, of which {len(left)} run unchanged first")
        left.sort(key=lambda trial: trial.kind != "e2e")  # those that take longest begin first
        with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
            for trial, facts in zip(left, pool.map(lambda trial: self.learn_one(trial, build), left)):
                if not facts["passes"]:  # once more: a busy machine makes some too slow
                    facts = self.learn_one(trial, build)
                self.kept["trials"][trial.name] = facts
                self.save()
                if not facts["passes"]:
                    say(f"{trial.name} fails unchanged and is left out:\n{facts['output']}")

    def learn_one(self, trial, build):
        lines = self.lines_folder(trial)
        call(["rm", "-rf", str(lines)], self.folder)
        begun = time.monotonic()
        status, output = trial.run(lambda target: str(build / target), self.folder, 600,
                                   {"GCOV_PREFIX": str(lines), "GCOV_PREFIX_STRIP": str(len(build.parts) - 1)})
        seconds = time.monotonic() - begun
        # Some of a file of end-to-end tests want what is installed beside sonde: the others of it are run.
        failed = re.findall(r"^(?:FAILED|ERROR) \S*?(\w+\.py::\S+)", output, re.M) if trial.kind == "e2e" and status == 1 else []
        passes = status == 0 or (bool(failed) and re.search(r"\d+ passed", output) is not None)
        return {"digest": trial.digest(), "passes": passes, "seconds": seconds, "failed": failed, "output": "" if passes else output[-800:]}

    def more_words(self, trial):
        """What ends a file of end-to-end tests at the first that notices, and leaves out those that fail unchanged."""
        if trial.kind != "e2e":
            return []
        return ["-x", *(f"--deselect=tests/e2e/{name}" for name in self.kept["trials"][trial.name]["failed"])]

    def lines_folder(self, trial):
        return self.folder / "lines" / re.sub(r"\W", "_", trial.name)

    def lines_of(self, file, trials, build):
        """Which lines of `file` each of them runs. Those of processes that were killed or left by _exit are not counted."""
        if file in self.lines:
            return self.lines[file]
        found = {}
        for notes in build.rglob("*" + file.name + ".gcno"):
            place = notes.relative_to(build)
            for trial in trials:
                counts = self.lines_folder(trial) / place.with_suffix(".gcda")
                if counts.exists():
                    found.setdefault(trial.name, set()).update(self.count(notes, counts, file))
        self.lines[file] = found
        return found

    def count(self, notes, counts, file):
        beside = counts.with_suffix(".gcno")
        if not beside.exists():
            beside.symlink_to(notes)
        done = subprocess.run(["gcov", "--json-format", "--stdout", str(counts)], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for text in done.stdout.splitlines():
            for part in json.loads(text)["files"]:
                if pathlib.PurePath(part["file"]).parts[-2:] == file.parts[-2:]:
                    yield from (line["line_number"] for line in part["lines"] if line["count"])

    def passes(self, trial):
        return self.kept["trials"][trial.name]["passes"]

    def seconds(self, trial):
        return self.kept["trials"][trial.name]["seconds"]

    def limit(self, trial):
        return int(self.seconds(trial) * LOOSE) + 5

    def note_killer(self, trial, file):
        killers = self.kept["killers"].setdefault(str(file), {})
        killers[trial.name] = killers.get(trial.name, 0) + 1

    def is_slow(self, trial):
        return trial.kind == "e2e" or trial.name in LAST or self.seconds(trial) > 5

    def order(self, trials, file):
        """Cheap ones first, those that noticed mutants of the same file before all; then LAST, and end-to-end tests."""
        killers = self.kept["killers"].get(str(file), {})
        return sorted(trials, key=lambda trial: (trial.kind == "e2e", trial.name in LAST, self.seconds(trial) / (1 + 4 * killers.get(trial.name, 0))))
