# SPDX-License-Identifier: Apache-2.0
"""The table of where CPython keeps what a stack is made of, against the headers of each version."""
import os
import pathlib
import shutil
import subprocess

import pytest

from python_tools import interpreters

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc")

PROGRAM = r"""
#define Py_BUILD_CORE 1
#include <Python.h>
#include "internal/pycore_runtime.h"
#include "internal/pycore_interp.h"
#include "internal/pycore_gil.h"
#if PY_VERSION_HEX >= 0x030c0000
#include "internal/pycore_obmalloc.h"
#endif
#if PY_VERSION_HEX >= 0x030e0000
#include "internal/pycore_interpframe.h"
#endif
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#include "internal/pycore_code.h"
#define FRAME _PyInterpreterFrame
#else
#include "frameobject.h"
#define FRAME PyFrameObject
#endif
#include <stdio.h>
#include "pystack/interpreter/py_layout.h"

static int wrong;

static void check(const char *name, size_t table, size_t header)
{
    if (table != header) {
        printf("%s: %zu in the table, %zu in the headers\n", name, table, header);
        wrong = 1;
    }
}
#define AT(member, type, field) check(#member, l.member, offsetof(type, field))

#ifdef Py_GIL_DISABLED
#define FREE_THREADED true
#else
#define FREE_THREADED false
#endif
#if PY_VERSION_HEX >= 0x030e0000
#define GENERATOR struct _PyGenObject
#else
#define GENERATOR PyGenObject
#endif

/* What a version that is not in the table says of itself: all that stacks are made of but the thread's number. */
static int check_new(const struct snd_py_layout *l, const char *told)
{
    struct snd_py_layout new;

    if (!snd_py_layout_refine(&new, 99, told, SND_PY_OFFSETS_SIZE)) {
        puts("the offsets of a new version are not understood");
        return 1;
    }
#define SAME(member) check("new version's " #member, new.member, l->member)
    SAME(runtime_interpreters); SAME(interp_next); SAME(interp_threads); SAME(thread_next); SAME(thread_interp);
    SAME(thread_frame); SAME(frame_previous); SAME(frame_code); SAME(frame_instr); SAME(frame_owner);
    SAME(frame_locals); SAME(frame_size); SAME(code_file); SAME(code_name); SAME(code_qualname); SAME(code_lines);
    SAME(code_firstline); SAME(code_first_instr); SAME(object_type); SAME(unicode_state); SAME(unicode_ascii);
    check("new version is free-threaded", new.free_threaded, FREE_THREADED);
    return wrong;
}

int main(int argc, char **argv)
{
    struct snd_py_layout l = *snd_py_layout(PY_MINOR_VERSION, FREE_THREADED);

    if (argc > 1) { /* what the interpreter says of itself, which is the same */
        char told[SND_PY_OFFSETS_SIZE];
        struct snd_py_layout table = l;
        memset(&l, 0xff, sizeof l);
        if (fread(told, 1, sizeof told, fopen(argv[1], "rb")) != sizeof told ||
            !snd_py_layout_refine(&l, PY_MINOR_VERSION, told, sizeof told)) {
            puts("the offsets are not understood");
            return 1;
        }
        table.code_size = l.code_size; /* of what is stated, no more is read than is used */
        table.frame_size = l.frame_size;
        check("all the rest", memcmp(&table, &l, sizeof l) != 0, 0);
        if (check_new(&l, told))
            return 1;
    }
    AT(runtime_interpreters, _PyRuntimeState, interpreters.head);
    AT(interp_next, PyInterpreterState, next);
    AT(type_cached_keys, PyHeapTypeObject, ht_cached_keys);
#if PY_VERSION_HEX >= 0x030c0000
    AT(interp_modules, PyInterpreterState, imports.modules);
#else
    AT(interp_modules, PyInterpreterState, modules);
#endif
#if PY_VERSION_HEX >= 0x030b0000
    AT(interp_threads, PyInterpreterState, threads.head);
    AT(interp_made, PyInterpreterState, threads.next_unique_id);
    AT(thread_native, PyThreadState, native_thread_id);
    AT(frame_previous, FRAME, previous);
    AT(frame_owner, FRAME, owner);
    AT(frame_locals, FRAME, localsplus);
    AT(object_frame, PyFrameObject, f_frame);
    AT(code_qualname, PyCodeObject, co_qualname);
    AT(code_first_instr, PyCodeObject, co_code_adaptive);
    check("owner of C", SND_PY_OWNED_BY_C, 3);
    AT(gen_frame, GENERATOR, gi_iframe);
    AT(gen_state, GENERATOR, gi_frame_state);
    check("least state of a suspended generator", l.gen_least <= FRAME_SUSPENDED, 1);
    check("a generator that runs", l.gen_most < FRAME_EXECUTING, 1);
#else
    AT(interp_threads, PyInterpreterState, tstate_head);
    AT(interp_made, PyInterpreterState, tstate_next_unique_id);
    AT(frame_previous, FRAME, f_back);
    AT(frame_instr, FRAME, f_lasti);
    AT(code_flags, PyCodeObject, co_flags);
#endif
#if PY_MINOR_VERSION == 11
    AT(frame_entry, FRAME, is_entry);
    AT(cframe_previous, _PyCFrame, previous);
#endif
#if PY_VERSION_HEX >= 0x030c0000
    AT(interp_gil, PyInterpreterState, ceval.gil);
    AT(pool_class, struct pool_header, szidx);
    check("pool_size", l.pool_size, POOL_SIZE);
    AT(code_version, PyCodeObject, co_version);
#if PY_VERSION_HEX >= 0x030e0000
    check("FRAME_OWNED_BY_INTERPRETER", SND_PY_OWNED_BY_C, FRAME_OWNED_BY_INTERPRETER);
    check("bits of references", l.ref_tags, Py_TAG_BITS | 3);
#else
    check("FRAME_OWNED_BY_CSTACK", SND_PY_OWNED_BY_C, FRAME_OWNED_BY_CSTACK);
    check("bits of references", l.ref_tags, 0);
#endif
#if PY_VERSION_HEX >= 0x030e0000 && defined(Py_GIL_DISABLED)
    AT(frame_tlbc, FRAME, tlbc_index);
    AT(code_tlbc, PyCodeObject, co_tlbc);
#endif
    {
        PyASCIIObject text = { 0 };
        unsigned state;
        text.state.kind = 1, text.state.compact = 1, text.state.ascii = 1;
        memcpy(&state, &text.state, sizeof state);
        check("unicode_kind", state >> l.unicode_kind, 1 | 1 << 3 | 1 << 4);
    }
#else
    AT(runtime_gil, _PyRuntimeState, ceval.gil);
#endif
    AT(gil_holder, struct _gil_runtime_state, last_holder);
    AT(gil_locked, struct _gil_runtime_state, locked);
    AT(gil_switches, struct _gil_runtime_state, switch_number);
    check("gil_size", l.gil_size, sizeof(struct _gil_runtime_state));
    AT(thread_next, PyThreadState, next);
    AT(thread_interp, PyThreadState, interp);
    AT(thread_ident, PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030d0000
    AT(thread_frame, PyThreadState, current_frame);
    AT(frame_code, FRAME, f_executable);
    AT(frame_instr, FRAME, instr_ptr);
    check("has_cframe", l.has_cframe, 0);
#elif PY_VERSION_HEX >= 0x030b0000
    AT(thread_frame, PyThreadState, cframe);
    AT(cframe_frame, _PyCFrame, current_frame);
    AT(frame_code, FRAME, f_code);
    AT(frame_instr, FRAME, prev_instr);
    check("has_cframe", l.has_cframe, 1);
#else
    AT(thread_frame, PyThreadState, frame);
    AT(frame_code, FRAME, f_code);
#endif
#if PY_VERSION_HEX >= 0x030b0000
    check("FRAME_OWNED_BY_GENERATOR", SND_PY_OWNED_BY_GENERATOR, FRAME_OWNED_BY_GENERATOR);
#endif
    check("has_entries", l.has_entries, PY_VERSION_HEX >= 0x030c0000);
    AT(code_firstline, PyCodeObject, co_firstlineno);
    AT(code_file, PyCodeObject, co_filename);
    AT(code_name, PyCodeObject, co_name);
#if PY_VERSION_HEX >= 0x030a0000
    AT(code_lines, PyCodeObject, co_linetable);
#else
    AT(code_lines, PyCodeObject, co_lnotab);
#endif
    AT(object_type, PyObject, ob_type);
    AT(var_size, PyVarObject, ob_size);
    AT(bytes_data, PyBytesObject, ob_sval);
    AT(unicode_length, PyASCIIObject, length);
    AT(unicode_state, PyASCIIObject, state);
    check("unicode_ascii", l.unicode_ascii, sizeof(PyASCIIObject));
    check("unicode_compact", l.unicode_compact, sizeof(PyCompactUnicodeObject));
    check("what is read of a frame ends behind it", l.frame_size > sizeof(FRAME), 0);
    check("what is read of a frame ends too soon",
          l.frame_size <= l.frame_instr + 3 || l.frame_size <= l.frame_owner, 0);
    check("what is read of a code object ends behind it", l.code_size > sizeof(PyCodeObject), 0);
    check("what is read of a code object ends too soon", l.code_size < l.code_lines + 8, 0);
    return wrong;
}
"""

# From 3.13 on _PyRuntime begins with its own offsets.
TELL = """
import ctypes, sys
if sys.version_info >= (3, 13):
    runtime = (ctypes.c_char * 1024).in_dll(ctypes.pythonapi, "_PyRuntime")
    sys.stdout.buffer.write(bytes(runtime))
"""


@pytest.mark.skipif(not COMPILER, reason="no C compiler")
@pytest.mark.parametrize("python, include", interpreters())
def test_table_is_the_headers(tmp_path, python, include):
    if not os.path.exists(os.path.join(include, "internal/pycore_runtime.h")):
        pytest.skip(f"no internal headers in {include}")
    (tmp_path / "layout.c").write_text(PROGRAM)
    subprocess.run([COMPILER, "-w", "-D_GNU_SOURCE", "-isystem", include, "-isystem", f"{include}/internal",
                    "-I", ROOT / "src", "-I", ROOT / "include", tmp_path / "layout.c",
                    ROOT / "src/pystack/interpreter/py_layout.c", "-o", tmp_path / "layout"], check=True)
    done = subprocess.run([tmp_path / "layout"], stdout=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stdout
    told = subprocess.run([python, "-c", TELL], stdout=subprocess.PIPE, check=True).stdout
    if told:
        (tmp_path / "told").write_bytes(told)
        done = subprocess.run([tmp_path / "layout", tmp_path / "told"], stdout=subprocess.PIPE,
                              text=True)
        assert done.returncode == 0, done.stdout


# Opens a process as that of a version that the table does not have, and prints a line for each thread.
READER = r"""
#include <stdio.h>
#include <stdlib.h>
#include "pystack/interpreter/code_objects.h"
#include "pystack/interpreter/frames.h"
#include "pystack/interpreter/stack_ids.h"

int main(int argc, char **argv)
{
    static struct snd_py_stack stack, spare[2];
    static struct snd_codes codes;
    static struct snd_python python;
    struct snd_py_interp interps[SND_INTERPRETERS_MAX];
    struct snd_py_thread threads[64];
    struct sonde_error err = { 0 };
    bool whole;

    (void)argc;
    if (snd_python_open(&python, atoi(argv[1]), 99, strtoull(argv[2], NULL, 10), strtoull(argv[3], NULL, 10), &err) !=
        SONDE_OK) {
        puts(err.message);
        return 1;
    }
    size_t count = snd_python_interpreters(&python, interps, SND_INTERPRETERS_MAX, &whole);
    count = snd_python_threads(&python, interps, count, NULL, 0, threads, 64, &whole);
    snd_codes_init(&codes, python.pid, &python.layout, python.code_type);
    for (size_t i = 0; i < count; i++) {
        struct snd_py_hint hint = { 0 };
        printf("%u", threads[i].tid);
        if (snd_python_stack(&python, threads[i].state, 0, &hint, NULL, &stack, spare) == SND_PY_READ)
            for (size_t k = 0; k < stack.count; k++) {
                const struct snd_code *code = snd_codes_get(&codes, stack.frames[k].code);
                int64_t offset;
                if (code && snd_code_offset(python.pid, &python.layout, code, stack.frames[k].instr, &offset))
                    printf(" %s", code->function);
            }
        puts("");
    }
    return 0;
}
"""
WAITING = """
import ctypes, os, threading
def inside(): gate.acquire()
def outside(): inside()
gate = threading.Lock()
gate.acquire()
thread = threading.Thread(target=outside); thread.start()
def symbol(name): return ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, name))
def main():
    print(os.getpid(), thread.native_id, symbol("_PyRuntime"), symbol("PyCode_Type"), flush=True)
    input()
main()
gate.release()
"""


@pytest.mark.skipif(not COMPILER, reason="no C compiler")
@pytest.mark.parametrize("python, include", interpreters(since=13, but=("3.13t",)))  # whose strings no later one has
def test_a_version_that_is_not_in_the_table_is_read(tmp_path, python, include):
    """By what it states of itself, and where its main thread has the number of the process."""
    (tmp_path / "reader.c").write_text(READER)
    sources = [ROOT / "src" / f"{name}.c" for name in (
        "pystack/interpreter/code", "pystack/interpreter/code_objects", "pystack/interpreter/frames",
        "pystack/interpreter/interpreters", "pystack/interpreter/py_layout", "pystack/process_memory", "pystack/task",
        "base/error", "base/data/arena", "base/data/map")]
    subprocess.run([COMPILER, "-w", "-std=c17", "-D_GNU_SOURCE", "-I", ROOT / "src", "-I", ROOT / "include",
                    tmp_path / "reader.c", *sources, "-o", tmp_path / "reader", "-lpthread"], check=True)
    (tmp_path / "waiting.py").write_text(WAITING)
    with subprocess.Popen([python, tmp_path / "waiting.py"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as program:
        pid, tid, runtime, code_type = program.stdout.readline().split()
        done = subprocess.run([tmp_path / "reader", pid, runtime, code_type], stdout=subprocess.PIPE, text=True)
        program.stdin.write("\n")
        program.stdin.close()
        program.wait()
    found = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert done.returncode == 0, done.stdout
    assert found[pid][-2:] == ["main", "<module>"] and found[tid][:2] == ["inside", "outside"], done.stdout
