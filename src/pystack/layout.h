/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/layout.h - where CPython keeps what a stack is made of, by version.
 *
 * All numbers are offsets in bytes; layouts.def has the table. Those of 3.9 to 3.12 come from the
 * headers of the version, which tests/e2e/test_python_layout.py asks again for every version it
 * finds; from 3.13 on the interpreter carries them itself (_Py_DebugOffsets), and they replace the
 * table's.
 *
 * Layer: pystack (sees base/). No state.
 */
#ifndef SND_PYSTACK_LAYOUT_H
#define SND_PYSTACK_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a thread state, of a code object and of a frame of 3.13 that are read, at most. */
#define SND_PY_THREAD_READ 256
#define SND_PY_CODE_READ 192
#define SND_PY_FRAME_READ 72

/* How a version writes down which line an instruction belongs to. */
enum snd_py_lines {
    SND_PY_LNOTAB,    /* 3.9: increments of address and line */
    SND_PY_LINETABLE, /* 3.10: ranges of addresses */
    SND_PY_LOCATIONS, /* 3.11 on: ranges with columns */
};

struct snd_py_layout {
    unsigned          minor; /* 3.MINOR */
    enum snd_py_lines lines;
    uint32_t          runtime_interpreters;
    uint32_t          interp_next, interp_threads;
    uint32_t          interp_made;      /* how many thread states were ever made */
    uint32_t          interp_modules;   /* sys.modules */
    uint32_t          type_cached_keys; /* of a class: the names of its instances' attributes */
    uint32_t runtime_gil, interp_gil;   /* one of them: in the runtime itself, or a pointer to it */
    uint32_t gil_holder, gil_locked;
    uint32_t
        gil_switches; /* counts each time that another thread takes the lock than had it last */
    uint32_t gil_size;
    uint32_t thread_next, thread_interp, thread_ident;
    uint32_t thread_native; /* 0: the version does not keep the thread's number */
    uint32_t thread_frame;
    bool     has_cframe; /* thread_frame leads to a block on the C stack, cframe_frame there */
    uint32_t cframe_frame;
    uint32_t cframe_previous; /* 3.11 only: where frame_entry is not enough; else 0 */
    uint32_t frame_previous, frame_code;
    uint32_t frame_instr;  /* a pointer, or before 3.11 a number */
    uint32_t frame_owner;  /* 0: frames have no owner */
    uint32_t frame_entry;  /* 3.11 only: a flag, where C code enters Python */
    uint32_t frame_locals; /* from 3.11 on: its local variables; before, a header declares them */
    uint32_t object_frame; /* from 3.11 on: of a frame object, the frame it belongs to */
    bool     has_entries; /* from 3.12 on: where C code enters Python there is a frame of its own */
    uint32_t frame_size;  /* of the part that is read */
    uint32_t code_flags;  /* before 3.11 only: marks generators; else 0 */
    uint32_t code_firstline, code_file, code_name, code_lines;
    uint32_t code_qualname;    /* 0: none */
    uint32_t code_first_instr; /* 0: the instructions lie elsewhere */
    uint32_t code_version;     /* a number that no other code object has; 0: none */
    uint32_t code_size;
    uint32_t object_type, var_size, bytes_data;
    uint32_t unicode_length, unicode_state, unicode_ascii, unicode_compact;
    uint32_t extras_words; /* of what co_extra leads to: the words, after their number */
    uint32_t pool_size;    /* of the small blocks' allocator: pools lie at multiples of this */
    uint32_t pool_class;   /* in a pool's head: which sizes it holds, 16 bytes apart */
};

/* frame_owner */
#define SND_PY_OWNED_BY_GENERATOR 1
#define SND_PY_OWNED_BY_C 3 /* a frame of the interpreter's own, with no function */

/* The table's layout of 3.`minor`; NULL when it is not known. Static. */
const struct snd_py_layout *snd_py_layout(unsigned minor);
extern const unsigned       snd_py_minor_least, snd_py_minor_most;

#define SND_PY_OFFSETS_SIZE 600 /* bytes at the beginning of _PyRuntime that hold them, at most */

/*
 * Copies the offsets at the start of _PyRuntime into the layout. False if they are not valid
 * offsets, or point outside of what is read (another process wrote them: untrusted), or belong to a
 * free-threaded interpreter; *free_threaded is then true.
 */
bool snd_py_layout_refine(struct snd_py_layout *layout, const void *offsets, size_t size,
                          bool *free_threaded);

#endif
