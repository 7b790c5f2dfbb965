/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/interpreter/py_layout.h - where CPython keeps what a stack is made of, by version.
 *
 * All numbers are offsets in bytes; py_layouts.def has the table. They come from the headers of the
 * version, which tests/e2e/test_python_layout.py asks again for every version it finds; from 3.13 on
 * the interpreter carries most of them itself (_Py_DebugOffsets), and they replace the table's. So a
 * version that the table does not have can be read, too.
 *
 * Layer: pystack (sees base/). No state.
 */
#ifndef SND_PYSTACK_INTERPRETER_PY_LAYOUT_H
#define SND_PYSTACK_INTERPRETER_PY_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of a thread state, of a code object and of a frame that are read, at most. */
#define SND_PY_THREAD_READ 256
#define SND_PY_CODE_READ 240
#define SND_PY_FRAME_READ 112
/* Likewise of a str and of a bytes object, before their contents. */
#define SND_PY_TEXT_READ 80
#define SND_PY_BYTES_READ 64

/* How a version writes down which line an instruction belongs to. */
enum snd_py_lines {
    SND_PY_LNOTAB,    /* 3.9: increments of address and line */
    SND_PY_LINETABLE, /* 3.10: ranges of addresses */
    SND_PY_LOCATIONS, /* 3.11 on: ranges with columns */
};

struct snd_py_layout {
    unsigned          minor;         /* 3.MINOR */
    bool              free_threaded; /* it has no interpreter lock, or one that is off */
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
    uint32_t frame_tlbc; /* which copy of the instructions it runs: a thread has its own; 0: none */
    uint32_t object_frame; /* from 3.11 on: of a frame object, the frame it belongs to */
    uint32_t gen_frame;    /* from 3.11 on: of a generator, its frame */
    uint32_t gen_state;    /* a byte; from `least` to `most`: the generator is suspended */
    int32_t  gen_least, gen_most;
    bool     has_entries; /* from 3.12 on: where C code enters Python there is a frame of its own */
    uint32_t ref_tags;    /* bits of a frame's code and locals that are not of their addresses */
    uint32_t frame_size;  /* of the part that is read */
    uint32_t code_flags;  /* before 3.11 only: marks generators; else 0 */
    uint32_t code_firstline, code_file, code_name, code_lines;
    uint32_t code_qualname;    /* 0: none */
    uint32_t code_first_instr; /* 0: the instructions lie elsewhere */
    uint32_t code_tlbc;        /* copies of the instructions: a pointer to their number and them */
    uint32_t code_version;     /* a number that no other code object has; 0: none */
    uint32_t code_size;
    uint32_t object_type, var_size, bytes_data;
    uint32_t unicode_length, unicode_state, unicode_ascii, unicode_compact;
    uint32_t unicode_kind; /* in its state: the bit at which width, compact and ascii begin */
    uint32_t extras_words; /* of what co_extra leads to: the words, after their number */
    uint32_t pool_size;    /* of the small blocks' allocator: pools lie at multiples of this */
    uint32_t pool_class;   /* in a pool's head: which sizes it holds, 16 bytes apart */
};

/* frame_owner */
#define SND_PY_OWNED_BY_GENERATOR 1
#define SND_PY_OWNED_BY_C 3 /* this or above: a frame of the interpreter's own, with no function */

/* The table's layout of 3.`minor`; NULL when it is not known. Static. */
const struct snd_py_layout *snd_py_layout(unsigned minor, bool free_threaded);
extern const unsigned       snd_py_minor_least, snd_py_minor_most;

#define SND_PY_OFFSETS_SIZE 1024 /* bytes at the beginning of _PyRuntime that hold them, at most */

/*
 * The layout of 3.`minor`, 13 or above, by the offsets at the start of its _PyRuntime; what they do
 * not say is the table's, of a later version that of the last one. False if they are not valid
 * offsets, or point outside of what is read (another process wrote them: untrusted).
 */
bool snd_py_layout_refine(struct snd_py_layout *layout, unsigned minor, const void *offsets,
                          size_t size);

#endif
