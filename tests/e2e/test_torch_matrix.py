# SPDX-License-Identifier: Apache-2.0
"""docs/TORCH.md names every public name of torch's profilers, and what it says of them is so."""
import dataclasses
import inspect
import pathlib
import re

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: there is nothing to walk")

import sonde  # noqa: E402
import torch.profiler  # noqa: E402
from torch.autograd import profiler_util  # noqa: E402
from torch_tools import CPU, X, quiet  # noqa: E402

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/TORCH.md"
VERDICTS = ("same", "better", "different")


def read_matrix(text):
    """{section: {(name, argument or None): verdict}}."""
    found = {}
    part = text.split("\n## Every name\n")[1].split("\n## ")[0]
    for section in part.split("\n### ")[1:]:
        title, *lines = section.splitlines()
        names = found.setdefault(title.strip(), {})
        for line in lines:
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            if not line.startswith("| `"):
                continue
            assert len(cells) == 3 and cells[1] in VERDICTS, line
            assert cells[1] == "same" or cells[2], f"no reason: {line}"
            for name, arguments in re.findall(r"`(\w+)(?:\(([^)]*)\))?`", cells[0]):
                for argument in [None, *re.findall(r"\w+", arguments)]:
                    names.setdefault((name, argument), cells[1])
    return found


MATRIX = read_matrix(PAGE.read_text())


def arguments_of(function):
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return []
    return [name for name in parameters if name not in ("self", "cls") and name[0] != "_"]


def names_of_module(module):
    for name in module.__all__:
        yield name, None
        if inspect.isfunction(getattr(module, name)):
            yield from ((name, argument) for argument in arguments_of(getattr(module, name)))


def names_of_class(kind, made=None, inherited=object):
    """Methods with their arguments, attributes of the class and of an object of it."""
    for name in dir(kind):
        value = getattr(kind, name)
        if name == "__init__" and value is not object.__init__:
            yield from ((name, argument) for argument in arguments_of(value))
        elif not name.startswith("_"):
            yield name, None
            if callable(value) and not hasattr(inherited, name):
                yield from ((name, argument) for argument in arguments_of(value))
    yield from ((name, None) for name in vars(made or object) if not name.startswith("_"))


def theirs():
    """What torch and Accelerate have, by section."""
    with quiet():
        prof = torch.profiler.profile(activities=[CPU])
        with torch.autograd.profiler.profile() as older:
            X.mul(X)
        event, average = older.function_events[0], older.key_averages()[0]
    yield "torch.profiler", names_of_module(torch.profiler)
    yield "torch.autograd.profiler", names_of_module(torch.autograd.profiler)
    yield "torch.profiler.profile", names_of_class(torch.profiler.profile, prof)
    yield "torch.autograd.profiler.profile", names_of_class(torch.autograd.profiler.profile, older)
    yield "EventList", names_of_class(profiler_util.EventList, inherited=list)
    yield "FunctionEvent", ((name, argument) for name, argument in
                            names_of_class(profiler_util.FunctionEvent, event)
                            if argument is None)  # those of its __init__ are its attributes
    yield "FunctionEventAvg", names_of_class(profiler_util.FunctionEventAvg, average)


def check(section, names):
    rows = MATRIX[section]
    missing = sorted({name if argument is None else f"{name}({argument})"
                      for name, argument in names if (name, argument) not in rows})
    assert not missing, f"docs/TORCH.md, {section}: no word of {', '.join(missing)}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", ["torch.profiler", "torch.autograd.profiler",
                                     "torch.profiler.profile", "torch.autograd.profiler.profile",
                                     "EventList", "FunctionEvent", "FunctionEventAvg"])
def test_every_name_is_in_the_matrix(section):
    check(section, dict(theirs())[section])


def test_accelerate_is_in_the_matrix():
    kind = pytest.importorskip("accelerate", reason="accelerate is not installed").ProfileKwargs
    fields = [field.name for field in dataclasses.fields(kind)]
    check("accelerate.ProfileKwargs", [("__init__", name) for name in fields]
          + [(name, None) for name in dir(kind) if not name.startswith("_")])


def test_a_name_that_is_not_there_is_found():
    with pytest.raises(AssertionError, match="FunctionEvent: no word of nothing_like_it"):
        check("FunctionEvent", [("name", None), ("nothing_like_it", None)])
    with pytest.raises(AssertionError, match=r"profile: no word of __init__.colour"):
        check("torch.profiler.profile", [("__init__", "colour")])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("section", list(MATRIX))
def test_what_is_called_same_is_there(section):
    """Names and arguments; what they do has tests of its own."""
    with quiet(), sonde.profile(activities=[CPU], record_shapes=True) as prof:
        X.mul(X)
    with quiet(), sonde.autograd_profiler.profile() as older:
        X.mul(X)
    if section.startswith("accelerate"):
        pytest.importorskip("accelerate", reason="accelerate is not installed")
        ours = sonde.ProfileKwargs()
    else:
        ours = {"torch.profiler": sonde, "torch.autograd.profiler": sonde.autograd_profiler,
                "torch.profiler.profile": prof, "torch.autograd.profiler.profile": older,
                "EventList": prof.events(), "FunctionEvent": prof.events()[0],
                "FunctionEventAvg": prof.key_averages()[0]}[section]
    of_torch = {name for name, _ in dict(theirs()).get(section, ())}
    for (name, argument), verdict in MATRIX[section].items():
        if verdict == "different" or section.startswith("torch.") and name not in of_torch:
            continue  # or this torch has no such name
        value = getattr(ours, name)
        taken = arguments_of(value) if argument is not None else []
        assert not taken or argument in taken or "kwargs" in taken, (name, argument)
