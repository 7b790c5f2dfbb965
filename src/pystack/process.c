/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/process.h"

#include <string.h>

#define THREADS_MAX 65536 /* more is a loop */
#define LOOKS 1           /* further ones, that must agree */
#define LOOKS_FAR 3       /* the same, of frames that were not read at one go */

static bool read_word(const struct snd_python *python, uint64_t address, uint64_t *value)
{
    return snd_memory_read(python->pid, address, value, sizeof *value);
}

/* ------------------------------------------------------------------ opening */

/* The offsets are right if the first interpreter's first thread state points back to it. */
static bool is_plausible(const struct snd_python *python)
{
    const struct snd_py_layout *l = &python->layout;
    uint64_t                    interp, thread, back, type;

    return read_word(python, python->runtime + l->runtime_interpreters, &interp) && interp &&
           read_word(python, interp + l->interp_threads, &thread) && thread &&
           read_word(python, thread + l->thread_interp, &back) && back == interp &&
           read_word(python, python->code_type + l->object_type, &type) && type != 0;
}

enum sonde_status snd_python_open(struct snd_python *python, pid_t pid, unsigned minor,
                                  uint64_t runtime, uint64_t code_type, struct sonde_error *err)
{
    const struct snd_py_layout *known = snd_py_layout(minor);
    char                        offsets[SND_PY_OFFSETS_SIZE];
    bool                        free_threaded = false;

    if (!known)
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "Python 3.%u is not supported; expected 3.%u to 3.%u", minor,
                        snd_py_minor_least, snd_py_minor_most);
    *python = (struct snd_python){ pid, runtime, code_type, *known };
    bool refined = minor < 13 ||
                   (snd_memory_read(pid, runtime, offsets, sizeof offsets) &&
                    snd_py_layout_refine(&python->layout, offsets, sizeof offsets, &free_threaded));
    if (free_threaded)
        return snd_fail(err, SONDE_E_UNSUPPORTED, "free-threaded Python 3.%u is not supported",
                        minor);
    if (!refined || !is_plausible(python))
        return snd_fail(err, SONDE_E_STATE,
                        "Python 3.%u: unexpected memory layout, or not started yet", minor);
    return SONDE_OK;
}

/* ------------------------------------------------------------------ threads */

static uint64_t find_gil(const struct snd_python *python, uint64_t interp)
{
    uint64_t gil = 0;

    if (!python->layout.interp_gil)
        return python->runtime + python->layout.runtime_gil;
    return read_word(python, interp + python->layout.interp_gil, &gil) ? gil : 0;
}

size_t snd_python_interpreters(const struct snd_python *python, struct snd_py_interp *interps,
                               size_t size)
{
    uint64_t interp;
    size_t   count = 0;

    if (!read_word(python, python->runtime + python->layout.runtime_interpreters, &interp))
        return 0;
    while (interp != 0 && count < size) {
        interps[count++] = (struct snd_py_interp){ .address = interp,
                                                   .gil = find_gil(python, interp) };
        if (!read_word(python, interp + python->layout.interp_next, &interp))
            break;
    }
    return count;
}

bool snd_python_update(const struct snd_python *python, struct snd_py_interp *interps, size_t count)
{
    const struct snd_py_layout *l = &python->layout;
    struct snd_piece            pieces[3 * SND_INTERPRETERS_MAX + 1];
    char                        locks[SND_INTERPRETERS_MAX][16];
    uint64_t                    newest = 0;
    size_t                      n = 0;

    pieces[n++] = (struct snd_piece){ python->runtime + l->runtime_interpreters, &newest, 8 };
    for (size_t i = 0; i < count && i < SND_INTERPRETERS_MAX; i++) {
        memset(locks[i], 0, sizeof locks[i]);
        pieces[n++] = (struct snd_piece){ interps[i].address + l->interp_threads, &interps[i].head,
                                          8 };
        pieces[n++] = (struct snd_piece){ interps[i].address + l->interp_made, &interps[i].made,
                                          8 };
        if (interps[i].gil != 0)
            pieces[n++] = (struct snd_piece){ interps[i].gil + l->gil_holder, locks[i], 16 };
    }
    if (count == 0 || snd_memory_read_many(python->pid, pieces, n) != n ||
        newest != interps[0].address)
        return false;
    for (size_t i = 0; i < count && i < SND_INTERPRETERS_MAX; i++) {
        /*
         * The field of the last holder is kept when the lock is free; -1: the lock does not exist
         * yet.
         */
        uint32_t locked = snd_u32(locks[i] + (l->gil_locked - l->gil_holder));
        interps[i].holder = locked == 1 ? snd_u64(locks[i]) : 0;
    }
    return true;
}

bool snd_python_is_gil(const struct snd_python *python, const struct snd_py_interp *interp,
                       uint64_t address)
{
    return interp->gil != 0 && address >= interp->gil &&
           address < interp->gil + python->layout.gil_size;
}

/* How much of a thread state is read: up to the last of what is wanted. */
static size_t thread_size(const struct snd_py_layout *l)
{
    const uint32_t ends[] = { l->thread_next, l->thread_interp, l->thread_ident, l->thread_native };
    size_t         most = 0;

    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
        most = ends[i] > most ? ends[i] : most;
    return most + 8;
}

static size_t list_threads(const struct snd_python *python, const struct snd_py_interp *interp,
                           struct snd_py_thread *threads, size_t size, size_t count, bool *whole)
{
    const struct snd_py_layout *l = &python->layout;
    uint64_t                    state;
    char                        bytes[SND_PY_THREAD_READ];
    size_t                      need = thread_size(l);

    if (!read_word(python, interp->address + l->interp_threads, &state) || need > sizeof bytes)
        return count;
    while (state != 0 && count < THREADS_MAX && snd_memory_read(python->pid, state, bytes, need)) {
        if (snd_u64(bytes + l->thread_interp) != interp->address)
            break; /* freed while we read the list */
        if (count < size)
            threads[count] = (struct snd_py_thread){
                .state = state,
                .interp = interp->address,
                .ident = snd_u64(bytes + l->thread_ident),
                .tid = l->thread_native ? snd_u32(bytes + l->thread_native) : 0,
            };
        count++;
        state = snd_u64(bytes + l->thread_next);
    }
    *whole &= state == 0;
    return count;
}

size_t snd_python_threads(const struct snd_python *python, const struct snd_py_interp *interps,
                          size_t interp_count, struct snd_py_thread *threads, size_t size,
                          bool *whole)
{
    size_t count = 0;

    *whole = true;
    for (size_t i = 0; i < interp_count; i++)
        count = list_threads(python, &interps[i], threads, size, count, whole);
    return count;
}

/* ------------------------------------------------------------------- frames */

/* The address of the pointer to the innermost frame; false if it cannot be read. */
static bool find_link(const struct snd_python *python, uint64_t state, uint64_t *link)
{
    *link = state + python->layout.thread_frame;
    if (!python->layout.has_cframe)
        return true;
    if (!read_word(python, *link, link) || *link == 0)
        return false;
    *link += python->layout.cframe_frame;
    return true;
}

/* The page with the innermost frame, and the pointer to it before and after. */
static enum snd_py_read open_window(const struct snd_python *python, uint64_t link,
                                    struct snd_py_stack *stack, uint64_t *top)
{
    struct snd_window *w = &stack->window;
    uint64_t           before, after, size = python->layout.frame_size;

    if (!read_word(python, link, top))
        return SND_PY_UNREAD;
    w->from = w->to = 0;
    if (*top == 0)
        return SND_PY_READ;
    uint64_t from = *top & ~(uint64_t)4095, to = *top + size;
    if (to - from > sizeof w->bytes)
        from = *top;
    const struct snd_piece pieces[] = { { link, &before, 8 },
                                        { from, w->bytes, (size_t)(to - from) },
                                        { link, &after, 8 } };
    if (snd_memory_read_many(python->pid, pieces, 3) != 3)
        return SND_PY_TORN;
    w->from = from;
    w->to = to;
    return before == *top && after == *top ? SND_PY_READ : SND_PY_TORN;
}

/*
 * Marks the frame stored last, or the one before it when an entry frame of C was reached, as called
 * from C code. In 3.11 each run of the evaluation loop has a block on the C stack (`*cframe`).
 */
static void mark_entry(const struct snd_python *python, const char *bytes, uint64_t frame,
                       bool is_c, uint64_t *cframe, struct snd_py_stack *stack)
{
    const struct snd_py_layout *l = &python->layout;

    if (stack->count == 0)
        return;
    uint64_t *entry = &stack->frames[stack->count - 1].entry;
    if (l->has_entries) {
        if (is_c && *entry == 0)
            *entry = frame;
    } else if (!l->frame_entry) {
        *entry = SND_PY_ENTRY;
    } else if (bytes[l->frame_entry]) {
        *entry = *cframe;
        if (!read_word(python, *cframe + l->cframe_previous, cframe))
            *cframe = 0;
    }
}

/* Walks from `frame` to its callers. A page is read when the first frame in it is reached. */
static enum snd_py_read walk(const struct snd_python *python, uint64_t link, uint64_t frame,
                             struct snd_py_stack *stack)
{
    const struct snd_py_layout *l = &python->layout;
    uint64_t                    cframe = link - l->cframe_frame;

    stack->count = 0;
    stack->cut = stack->far = false;
    stack->ends = true;
    for (unsigned steps = 0; frame != 0; steps++) {
        uint64_t    from = stack->window.from;
        const char *bytes = snd_window_at(&stack->window, python->pid, frame, l->frame_size);
        if (steps >= 2 * SND_FRAMES_MAX || stack->count == SND_FRAMES_MAX) {
            stack->cut = true;
            break;
        }
        if (!bytes)
            return stack->count == 0 ? SND_PY_UNREAD : SND_PY_TORN;
        stack->far |= steps > 0 && from != stack->window.from;
        bool is_c = l->frame_owner && bytes[l->frame_owner] == SND_PY_OWNED_BY_C;
        if (l->has_entries)
            stack->ends = is_c;
        else if (l->frame_owner) /* a generator that has yielded has no caller */
            stack->ends = bytes[l->frame_owner] != SND_PY_OWNED_BY_GENERATOR;
        if (!is_c)
            stack->frames[stack->count++] = (struct snd_py_frame){
                .address = frame,
                .code = snd_u64(bytes + l->frame_code),
                .instr = l->code_first_instr ? snd_u64(bytes + l->frame_instr)
                                             : snd_u32(bytes + l->frame_instr),
            };
        if (stack->whole)
            mark_entry(python, bytes, frame, is_c, &cframe, stack);
        frame = snd_u64(bytes + l->frame_previous);
    }
    return SND_PY_READ;
}

enum snd_py_read snd_python_frames(const struct snd_python *python, uint64_t state,
                                   struct snd_py_stack *stack)
{
    uint64_t link, top;

    if (!find_link(python, state, &link) || !read_word(python, link, &top))
        return SND_PY_UNREAD;
    stack->window.from = stack->window.to = 0;
    enum snd_py_read read = walk(python, link, top, stack);
    /*
     * Between two instructions, a generator may already be unlinked from its caller and still be
     * innermost.
     */
    return read == SND_PY_READ && !stack->cut && !stack->ends ? SND_PY_TORN : read;
}

static enum snd_py_read look(const struct snd_python *python, uint64_t state,
                             struct snd_py_stack *stack)
{
    uint64_t link, top, after;

    if (!find_link(python, state, &link))
        return SND_PY_UNREAD;
    enum snd_py_read read = open_window(python, link, stack, &top);
    if (read == SND_PY_READ)
        read = walk(python, link, top, stack);
    if (read != SND_PY_READ)
        return read;
    if ((!stack->cut && !stack->ends) || !read_word(python, link, &after) || after != top)
        return SND_PY_TORN;
    return SND_PY_READ;
}

/* The innermost frame may have gone on to its next instruction: the same function, another line. */
static bool is_same(const struct snd_py_stack *a, const struct snd_py_stack *b)
{
    if (a->count != b->count || a->cut != b->cut)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->frames[i].address != b->frames[i].address ||
            a->frames[i].code != b->frames[i].code ||
            (i > 0 && a->frames[i].instr != b->frames[i].instr))
            return false;
    return true;
}

enum snd_py_read snd_python_stack(const struct snd_python *python, uint64_t state,
                                  struct snd_py_stack *stack, struct snd_py_stack *spare)
{
    enum snd_py_read read = look(python, state, stack);

    for (unsigned i = 0; read == SND_PY_READ && i < (stack->far ? LOOKS_FAR : LOOKS); i++) {
        read = look(python, state, spare);
        if (read == SND_PY_READ && !is_same(stack, spare))
            read = SND_PY_TORN;
    }
    return read;
}
