/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/stacks/heap_interpreter.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "probes/heap/stacks/frame_rules.h"
#include "probes/heap/heap_pages.h"
#include "probes/heap/locks.h"
#include "pystack/unwind/cfi.h"
#include "pystack/unwind/loaded_symbols.h"

#define SHOWN_MOST 65536u
#define TRIES 1000u /* to understand its memory, while it starts */

typedef void *state_call(void);

/* As Python.h declares PyObjectArenaAllocator. */
struct arena_allocator {
    void *context;
    void *(*alloc)(void *context, size_t size);
    void (*free)(void *context, void *block, size_t size);
};
typedef void arena_call(struct arena_allocator *allocator);

/* Written once, before `begin` is: under the lock of the rules. */
static struct {
    uint64_t begin, end; /* of its file; 0: none was found */
    struct range {
        uint64_t begin, size;
    } * shown; /* functions that a library linked into it has */
    uint32_t    shown_count;
    uint64_t    eval, eval_end, arena, runtime, code_type;
    unsigned    minor;
    state_call *current;   /* the state that the thread runs with; NULL: not thread-local */
    state_call *of_thread; /* the thread's, with or without the interpreter lock */
} found;

static struct snd_heap_lock lock; /* of these: */
static struct snd_python    python;
static uint32_t             tries;
static bool                 is_open;

/* -------------------------------------------------------------------- finding */

static void *call_at(const struct snd_loaded *file, const char *name)
{
    return (void *)(uintptr_t)snd_loaded_find(file, name, NULL); /* NOLINT */
}

/* 3.MINOR; 0: it is not another 3. Before 3.11 only the text states it. */
static unsigned read_minor(const struct snd_loaded *file)
{
    uint64_t version = snd_loaded_find(file, "Py_Version", NULL);
    const char *(*text)(void) = NULL;
    void *call = call_at(file, "Py_GetVersion");

    if (version != 0) {
        uint64_t hex = snd_u64((const char *)(uintptr_t)version); /* NOLINT */
        return hex >> 24 == 3 ? hex >> 16 & 0xff : 0;
    }
    __builtin_memcpy(&text, &call, sizeof text);
    const char *words = text ? text() : "";
    return words[0] == '3' && words[1] == '.' ? (unsigned)strtoul(words + 2, NULL, 10) : 0;
}

static uint64_t read_arena(const struct snd_loaded *file)
{
    struct arena_allocator allocator = { 0 };
    arena_call            *get;
    void                  *call = call_at(file, "PyObject_GetArenaAllocator");

    __builtin_memcpy(&get, &call, sizeof get);
    if (get)
        get(&allocator);
    return (uint64_t)(uintptr_t)allocator.alloc;
}

static void take_call(state_call **to, const struct snd_loaded *file, const char *name)
{
    void *call = call_at(file, name);

    __builtin_memcpy(to, &call, sizeof *to);
}

static void keep_range(void *user, const char *name, uint64_t address, uint64_t size)
{
    (void)user;
    if (!snd_loops_is_plumbing(name) && found.shown_count < SHOWN_MOST)
        found.shown[found.shown_count++] = (struct range){ address, size };
}

/* Lists the functions of its file that are not its own, which are few. */
static void list_shown(const struct snd_loaded *file)
{
    if (!found.shown)
        found.shown = snd_heap_pages(SHOWN_MOST * sizeof *found.shown);
    found.shown_count = 0;
    if (found.shown)
        snd_loaded_functions(file, keep_range, NULL);
}

static bool is_shown(uint64_t address)
{
    for (uint32_t i = 0; i < found.shown_count; i++)
        if (address - found.shown[i].begin < found.shown[i].size)
            return true;
    return false;
}

static bool look(const struct snd_cfi_object *object)
{
    struct snd_loaded file;
    uint64_t          size = 0;

    if (!snd_loaded_open(&file, object->map))
        return false;
    uint64_t eval = snd_loaded_find(&file, SND_LOOPS_EVAL, &size);
    if (eval == 0)
        return false;
    list_shown(&file);
    found.eval = eval;
    found.eval_end = eval + size;
    found.runtime = snd_loaded_find(&file, "_PyRuntime", NULL);
    found.code_type = snd_loaded_find(&file, "PyCode_Type", NULL);
    found.minor = read_minor(&file);
    found.arena = read_arena(&file);
    found.current = NULL;
    if (found.minor >= 12) /* before that version, the state of the thread that holds the lock */
        take_call(&found.current, &file, "_PyThreadState_UncheckedGet");
    take_call(&found.of_thread, &file, "PyGILState_GetThisThreadState");
    found.end = object->end;
    __atomic_store_n(&found.begin, object->begin, __ATOMIC_RELEASE);
    return true;
}

bool snd_heap_is_python(uint64_t pc)
{
    uint64_t begin = __atomic_load_n(&found.begin, __ATOMIC_ACQUIRE);

    return begin != 0 && pc - begin < found.end - begin;
}

uint8_t snd_heap_interpreter_flags(uint64_t pc, uint64_t function)
{
    static uint64_t       other_begin, other_end; /* the file that was looked at last */
    struct snd_cfi_object object;

    if (found.begin == 0) {
        if (pc - other_begin < other_end - other_begin || !snd_cfi_object(pc, &object))
            return 0;
        other_begin = object.begin;
        other_end = object.end;
        if (!look(&object))
            return 0;
    }
    if (!snd_heap_is_python(pc))
        return 0;
    uint8_t flags = SND_FRAME_PYTHON;
    if (!is_shown(pc - 1))
        flags |= SND_FRAME_PLUMBING;
    if (function != 0 && function == found.arena)
        flags |= SND_FRAME_ARENA;
    return flags;
}

void snd_heap_interpreter_forget(void)
{
    struct snd_cfi_object object;

    if (found.begin == 0 || (snd_cfi_object(found.eval, &object) && object.begin == found.begin &&
                             object.end == found.end))
        return;
    __atomic_store_n(&found.begin, 0, __ATOMIC_RELEASE);
    snd_heap_lock(&lock);
    is_open = false;
    tries = 0;
    python.pid = 0;
    snd_heap_unlock(&lock);
}

/* -------------------------------------------------------------------- reading */

static uint64_t state_now(void)
{
    void *state = found.current ? found.current() : NULL;

    if (!state && found.of_thread)
        state = found.of_thread();
    return (uint64_t)(uintptr_t)state;
}

/* Has the interpreter started, and is its memory laid out as it should be? */
static bool is_laid_out(void)
{
    struct sonde_error err;

    if (python.pid != 0)
        return true;
    if (snd_python_open(&python, getpid(), found.minor, found.runtime, found.code_type, &err) !=
        SONDE_OK)
        python.pid = 0;
    return python.pid != 0;
}

static bool are_codes(const struct snd_py_stack *frames)
{
    uint64_t type;

    for (size_t i = 0; i < frames->count; i++)
        if (!snd_memory_word(python.pid, frames->frames[i].code + python.layout.object_type,
                             &type) ||
            type != python.code_type)
            return false;
    return true;
}

/*
 * The first stack is read by the kernel, and counts only if it is one: a CPython that somebody has changed must
 * not end the program.
 */
static SND_NOINLINE bool open_now(uint64_t state, struct snd_py_stack *frames)
{
    int before = errno;

    snd_heap_lock(&lock);
    if (!is_open && tries < TRIES && found.minor != 0 && found.runtime && found.code_type) {
        enum snd_py_read read = SND_PY_UNREAD;
        frames->count = 0;
        if (is_laid_out())
            read = snd_python_frames(&python, state, frames);
        if (read == SND_PY_READ && frames->count > 0 && are_codes(frames)) {
            python.pid = SND_MEMORY_OWN;
            __atomic_store_n(&is_open, true, __ATOMIC_RELEASE);
        } else if (read != SND_PY_READ || frames->count > 0) { /* not while it runs no function */
            tries++;
        }
    }
    snd_heap_unlock(&lock);
    errno = before;
    return is_open;
}

bool snd_heap_interpreter_frames(struct snd_py_stack *frames)
{
    uint64_t state = state_now();

    frames->whole = true;
    if (state == 0 || (!__atomic_load_n(&is_open, __ATOMIC_ACQUIRE) && !open_now(state, frames)))
        return false;
    return snd_python_frames(&python, state, frames) == SND_PY_READ && frames->count > 0;
}

const struct snd_python *snd_heap_interpreter_layout(void)
{
    return &python;
}

bool snd_heap_interpreter_is_code(uint64_t code)
{
    uint64_t type;

    return snd_memory_word(SND_MEMORY_OWN, code + python.layout.object_type, &type) &&
           type == python.code_type;
}

void snd_heap_interpreter_loop(struct snd_loops *loops)
{
    loops->eval = found.eval;
    loops->eval_end = found.eval_end;
}
