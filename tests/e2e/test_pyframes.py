# SPDX-License-Identifier: Apache-2.0
"""The frames as the torch probe reads them are those that Python itself shows, in each CPython.

CPython does not promise the layouts, so they are tried with every interpreter of the machine.
"""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from python_tools import interpreters

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = shutil.which(os.environ.get("CC", "cc"))

EXTENSION = r"""
#include "pystack/interpreter/pyframes.h"
#ifdef SND_PYFRAMES_MISSING
#error "no frames for this Python"
#endif
static PyObject *walk(PyObject *module, PyObject *unused)
{
    struct snd_pyframe *frame;
    PyObject           *list = PyList_New(0);

    (void)module, (void)unused;
    /* As in torch's callbacks: without the lock. */
    Py_BEGIN_ALLOW_THREADS
    frame = snd_pyframe_real(snd_pyframe_mine());
    Py_END_ALLOW_THREADS
    for (; list && frame; frame = snd_pyframe_real(snd_pyframe_caller(frame))) {
        PyCodeObject *code = snd_pyframe_code(frame);
        PyObject     *self = code->co_nlocals > 0 ? snd_pyframe_self(frame) : NULL;
        PyObject     *item = Py_BuildValue("(OiiO)", code->co_name, snd_pyframe_line(frame),
                                           code->co_firstlineno, self ? self : Py_None);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}
static PyMethodDef methods[] = { { "walk", walk, METH_NOARGS, NULL }, { NULL, NULL, 0, NULL } };
static struct PyModuleDef module = { PyModuleDef_HEAD_INIT, "frames", NULL, -1, methods,
                                     NULL, NULL, NULL, NULL };
PyMODINIT_FUNC PyInit_frames(void) { return PyModule_Create(&module); }
"""

SCRIPT = r"""
import sys, threading
import frames

def shown():
    frame, found = sys._getframe(1), []
    while frame:
        code = frame.f_code
        first = frame.f_locals.get(code.co_varnames[0]) if code.co_nlocals else None
        found.append((code.co_name, frame.f_lineno, code.co_firstlineno, first))
        frame = frame.f_back
    return found

class Thing:
    def method(self, depth):
        if depth:
            return list(map(self.method, [depth - 1]))[0]
        return self.leaf()

    def leaf(self):
        def inner(x=1):
            seen, expected = frames.walk(), shown()
            # the call of shown() is on the same line as that of walk()
            return seen, expected
        return next(inner() for _ in range(1))

def generator():
    yield Thing().method(2)

def check():
    pairs = [next(generator()), sorted([1], key=lambda v: 0) and Thing().method(0),
             max([0], key=lambda v: 0) or Thing().method(5)]
    for seen, expected in pairs:
        assert len(seen) > 4
        assert [s[:3] for s in seen] == [e[:3] for e in expected], (seen, expected)
        methods = [(s[3], e[3]) for s, e in zip(seen, expected) if s[0] in ("method", "leaf")]
        assert methods and all(isinstance(a, Thing) and a is b for a, b in methods), methods

check()
failed = []
def run():
    try:
        check()
    except BaseException as error:
        failed.append(error)
thread = threading.Thread(target=run); thread.start(); thread.join()
assert not failed, failed
print("good")
"""


@pytest.mark.skipif(not COMPILER, reason="no C compiler")
@pytest.mark.parametrize("python, include", interpreters())
def test_frames(tmp_path, python, include):
    if not os.path.exists(os.path.join(include, "Python.h")):
        pytest.skip(f"no Python.h in {include}")
    (tmp_path / "frames.c").write_text(EXTENSION)
    (tmp_path / "script.py").write_text(SCRIPT)
    subprocess.run([COMPILER, "-O2", "-Wall", "-Wextra", "-Werror", "-Wno-unused-function", "-fPIC",
                    "-shared", "-isystem", include, "-I", ROOT / "src", tmp_path / "frames.c", "-o",
                    tmp_path / "frames.so"], check=True)
    done = subprocess.run([python, tmp_path / "script.py"], cwd=tmp_path, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": str(tmp_path)})
    assert done.stdout == "good\n", done.stderr
