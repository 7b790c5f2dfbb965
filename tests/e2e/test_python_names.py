# SPDX-License-Identifier: Apache-2.0
"""Functions by name (`--lines F`), and the options of `python -m sonde`."""
import functools
import sys

import pytest
from sonde.python import _names, _runner

SOURCE = """
def function():
    def inner():
        return [x for x in range(3)]
    return inner

class Class:
    def method(self):
        pass

    class Inner:
        @property
        def value(self):
            return (lambda: 1)()

    async def later(self):
        yield 1

shorthand = lambda: 0

if function:
    def twice():
        pass
else:
    def twice():
        pass
"""


def found(name, path="/app/pkg/mod.py", roots=("/app",)):
    code = compile(SOURCE, path, "exec")
    return sorted(inner.co_name for inner in _names.Name(name).codes(code, set(roots)))


EVERY = ["<lambda>", "function", "later", "method", "twice", "twice", "value"]


@pytest.mark.parametrize("name, functions", [
    ("pkg.mod.function", ["function"]),
    ("mod.function", ["function"]),  # the program's own file, by the end of its name
    ("pkg.mod.Class.method", ["method"]),
    ("pkg.mod.Class", ["later", "method", "value"]),
    ("pkg.mod", EVERY),
    ("function", ["function"]),
    ("function.inner", ["inner"]),
    ("function.<locals>.inner", ["inner"]),
    ("Class.Inner.value", ["value"]),
    ("Class", ["later", "method", "value"]),
    ("twice", ["twice", "twice"]),
    ("__main__.function", ["function"]),
    ("mod.py:function", ["function"]),
    ("pkg/mod.py:Class.method", ["method"]),
    ("/app/pkg/mod.py:twice", ["twice", "twice"]),
    ("./mod.py:function", ["function"]),
    ("mod.py", EVERY),
    ("method", []),
    ("other.function", []),
    ("pkg.function", []),
    ("od.py:function", []),
    ("other/mod.py:function", []),
    ("pkg.mod.nothing", []),
    ("", []),
])
def test_a_name_means(name, functions):
    assert found(name) == functions


def test_a_package_is_its_init_file():
    assert found("pkg.function", "/app/pkg/__init__.py") == ["function"]


def test_installed_packages_need_their_name_in_full():
    path, roots = "/usr/lib/python3/site-packages/torch/nn/mod.py", ("/usr/lib/python3/site-packages",)
    assert found("torch.nn.mod.function", path, roots) == ["function"]
    assert found("mod.function", path, roots) == []
    assert found("function", path, roots) == []
    assert found("mod.py:function", path, roots) == ["function"]


def test_what_is_not_a_file_is_not_looked_into(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["prog.py"])  # a worker of pytest-xdist is itself a `python -c`
    assert found("function", "<string>") == found("function", "<frozen importlib>") == []


def test_what_is_loaded_already():
    import json
    names = _names.parse("json.dumps, json.JSONEncoder,json.no, @profile")
    assert [name.text for name in names] == ["json.dumps", "json.JSONEncoder", "json.no"]
    codes = [name.loaded(sys.modules) for name in names]
    assert codes[0] == [json.dumps.__code__]
    assert json.JSONEncoder.encode.__code__ in codes[1] and len(codes[1]) > 2
    assert codes[2] == [] and [name.found for name in names] == [True, True, False]


def test_code_of_what_can_be_decorated():
    class Thing:
        def method(self): pass
        @staticmethod
        def static(): pass
        @classmethod
        def klass(cls): pass
        @property
        def value(self): pass
        @functools.lru_cache
        def cached(self): pass

    def names(thing):
        return sorted(code.co_name for code in _names.functions_of(thing))

    assert names(Thing) == ["cached", "klass", "method", "static", "value"]
    for part, name in (("static", "static"), ("klass", "klass"), ("value", "value")):
        assert names(vars(Thing)[part]) == [name]
    assert names(Thing().method) == ["method"] and names(functools.partial(Thing.method)) == ["method"]
    assert names(len) == [] and names(3) == []


# ------------------------------------------------------------------- python -m sonde

@pytest.mark.parametrize("words, run", [
    ("x.py", "--print --functions"),
    ("-s tottime x.py -s y", "--print --sort=tottime --functions"),
    ("-o out.prof x.py", "--output out.prof --functions"),
    ("-oout.prof -v x.py", "--output out.prof --print --functions"),
    ("-l x.py", "--output x.py.lprof --lines=@profile"),
    ("-lv dir/x.py", "--output x.py.lprof --print --lines=@profile"),
    ("-lvz -u 1e-3 -p a.b -p c x.py", "--output x.py.lprof --print --skip-zero "
                                      "--lines=a.b,c,@profile --time-unit=ms"),
    ("--line-by-line --outfile=o.lprof x.py", "--output o.lprof --lines=@profile"),
    ("--lines a,b --lines c x.py", "--print --lines=a,b,c"),
    ("--line-memory f --ops --shapes x.py", "--print --line-memory=f --ops --shapes"),
    ("--sample x.py", "--print --sample"),
    ("--sample 250 x.py 3", "--print --sample=250"),
    ("--sample=250 --functions -m mod -o x", "--print --sample=250 --functions"),
    ("-m mod", "--print --functions"),
    ("-- x.py", "--print --functions"),
])
def test_options_of_cprofile_and_kernprof(words, run):
    options, rest = _runner.parse(words.split())
    assert rest[0] == ("mod" if "mod" in words and "-m" in words else rest[0])
    rows = ["--rows=-1"] if "--print" in run else []
    assert _runner.translate(options, rest[0]) == run.split() + rows
    assert _runner.is_ours(words.split()) or words.startswith("--")


@pytest.mark.parametrize("words", ["--nothing x.py", "-o", "--functions=3 x.py", "-p a x.py", "-q x.py",
                                   "-l -u 2 x.py"])
def test_wrong_options_are_refused(words):
    with pytest.raises(_runner.UsageError):
        options, rest = _runner.parse(words.split())
        _runner.translate(options, rest[0] if rest else "")


def test_commands_are_the_other_programs():
    for words in ([], ["report", "x.sonde"], ["--help"], ["-h"], ["--version"], ["run", "--", "x.py"]):
        assert not _runner.is_ours(words)
