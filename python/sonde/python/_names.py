# SPDX-License-Identifier: Apache-2.0
"""Functions by name, in programs that are not loaded yet.

    module.function     module.Class.method     module          of a module that is imported
    function            Class.method            Class           of the program's own files
    file.py:function    file.py                                 of a file, also the script itself

A module's, file's or class's name stands for every function that it defines. A name is looked for
in the code of each file before that code runs, so that a function is known before its first call;
nothing of the program is run, imported or changed to find it.
"""
import os
import sys

from ._kinds import CodeType, MethodType, ModuleType

_FUNCTION = 0x1  # CO_OPTIMIZED: code of a function, not of a module or class
_MOST_SIMILAR = 3  # names that a message lists
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
# Programs without a file: the first word of sys.argv, and the file name of their code.
_WITHOUT_FILE = {"-c": "<string>", "-": "<stdin>", "": "<stdin>"}


def is_own(path):
    """A file of the program itself, not of the standard library nor of installed packages."""
    return not (path.startswith(("<frozen", _LIBRARY)) or "/site-packages/" in path
                or "/dist-packages/" in path)


def walk(code, outer=()):
    """(qualified name as a tuple, code) of what `code` defines, inner ones after their outer."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            name = (*outer, inner.co_name)
            yield name, inner
            yield from walk(inner, name)


def _defined_in(code):
    """The functions of a module or class itself, those of its classes too."""
    nested = set()
    for found, inner in walk(code):
        if not inner.co_flags & _FUNCTION:
            continue
        if not any(found[:n] in nested for n in range(1, len(found))) \
                and (not inner.co_name.startswith("<") or inner.co_name == "<lambda>"):
            yield inner
        nested.add(found)


def functions_in(code, wanted):
    """Code of the function `wanted` (a tuple) of a module, or of all that a class or () has."""
    if not wanted:
        yield from _defined_in(code)
        return
    for found, inner in walk(code):
        if found == wanted:
            if inner.co_flags & _FUNCTION:
                yield inner
            else:
                yield from _defined_in(inner)


def functions_of(thing):
    """Code of a function, method, property, wrapper, class or module that is there."""
    if isinstance(thing, (staticmethod, classmethod, MethodType)):
        return functions_of(thing.__func__)
    if isinstance(thing, property):
        return [code for part in (thing.fget, thing.fset, thing.fdel) if part
                for code in functions_of(part)]
    if isinstance(thing, type) or isinstance(thing, ModuleType):
        home = thing.__module__ if isinstance(thing, type) else thing.__name__
        return [code for part in vars(thing).values()
                if isinstance(part, (staticmethod, classmethod, property))
                or getattr(part, "__module__", None) == home and callable(part)
                for code in functions_of(part)]
    thing = getattr(thing, "__wrapped__", thing)
    thing = getattr(thing, "func", thing)  # functools.partial, cached_property
    code = getattr(thing, "__code__", None)
    return [code] if isinstance(code, CodeType) else []


def _absolute(path):
    """Of a code's file; "" where it has none, or a relative one and the current folder is gone."""
    try:
        return os.path.abspath(path) if path[:1] != "<" else ""
    except (OSError, ValueError):
        return ""


class Name:
    """One name that a user gave."""

    def __init__(self, text):
        self.text = text
        self.found = False
        self.similar = []  # of the program's functions, while none is found: the same name in a class or function
        file, colon, function = text.rpartition(":")
        if not colon and text.endswith(".py"):
            file, function = text, ""
        self.file = tuple(part for part in file.split("/") if part not in ("", ".")) or None
        words = [word for word in function.split(".") if word and word != "<locals>"]
        if not self.file and words[:1] == ["__main__"]:
            del words[0]
        self.words = tuple(words)

    def where(self):
        """What may be meant; else where it was looked for, if not everywhere."""
        if self.similar:
            return f"; did you mean {' or '.join(self.similar)}?"
        if self.file or len(self.words) != 1:
            return ""
        return f" in files of its own; of an installed package write module.{self.text} or file.py:{self.text}"

    def codes(self, code, roots):
        """Of a file's code: what the name means there. `roots`: folders of sys.path."""
        found = []
        path = _absolute(code.co_filename)
        if self.file:
            if path and tuple(path.split("/"))[-len(self.file):] == self.file:
                found = list(functions_in(code, self.words))
        elif path:
            found = self._by_module(code, path, roots)
        elif self.words and code.co_name == "<module>" \
                and code.co_filename == _WITHOUT_FILE.get((sys.argv or ["?"])[0]):
            found = list(functions_in(code, self.words))
        self.found = self.found or bool(found)
        if not self.found and self.words and (self.file or not path or is_own(path)):
            self._note_similar(code, path)
        return found

    def _note_similar(self, code, path):
        """What a file of the program has of this last name: `Class.name` where `name` was asked for."""
        if self.file and tuple(path.split("/"))[-len(self.file):] != self.file:
            return
        for found, inner in walk(code):
            name = ".".join(found)
            if self.file:
                name = f"{self.text.rpartition(':')[0]}:{name}"
            if found[-1] == self.words[-1] and inner.co_flags & _FUNCTION and name not in self.similar \
                    and len(self.similar) < _MOST_SIMILAR:
                self.similar.append(name)

    def _by_module(self, code, path, roots):
        stem = path[:-3] if path.endswith(".py") else path
        parts = stem.split("/")
        if parts[-1] == "__init__":
            del parts[-1]
        for length in range(len(self.words), 0, -1):
            if tuple(parts[-length:]) == self.words[:length] \
                    and ("/".join(parts[:-length]) in roots or is_own(path)):
                found = list(functions_in(code, self.words[length:]))
                if found:
                    return found
        return list(functions_in(code, self.words)) if self.words and is_own(path) else []

    def loaded(self, modules):
        """The code that it names among modules that are already loaded."""
        for length in range(len(self.words), 0, -1) if not self.file else ():
            thing = modules.get(".".join(self.words[:length]))
            for word in self.words[length:]:
                thing = getattr(thing, word, None)
            if thing is not None and functions_of(thing):
                self.found = True
                return functions_of(thing)
        return []


def parse(text):
    """The names of a list with commas; `@profile`, which is no name, is left out."""
    return [Name(part.strip()) for part in text.split(",")
            if part.strip() and part.strip() != "@profile"]
