/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/native.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"

#define KNOWN_MAX 1000000u /* more than a program has; then the cache is emptied */
#define NOBODY UINT32_MAX  /* of a native frame: it is not shown */
#define EVAL "_PyEval_EvalFrameDefault"

static const char gap_text[] = "(no unwind data)"; /* stands for frames that were not found */

struct snd_native {
    uint64_t       eval, eval_end;          /* the evaluation loop's function */
    const void    *interpreter;             /* where the file that has it is loaded */
    struct snd_map frames;                  /* function to the recorder's frame, 0: left out */
    struct snd_map stacks;                  /* (parent, frame) to id */
    uint32_t       callers[SND_NATIVE_MAX]; /* by native frame: the Python frame that called it */
    size_t         left;                    /* native frames that have not been put yet */
    uint32_t       gap;                     /* the Python frame that called what was not found */
};

/* ------------------------------------------------------------------- making */

/* The size of the function at `address`, or 0: glibc alone hands out an entry of the symbol table. */
static uint64_t function_size(const void *address, Dl_info *info)
{
#ifdef __GLIBC__
    const ElfW(Sym) *symbol = NULL;

    if (dladdr1(address, info, (void **)&symbol, RTLD_DL_SYMENT) != 0 && symbol)
        return symbol->st_size;
#else
    (void)address, (void)info;
#endif
    return 0;
}

struct snd_native *snd_native_new(void)
{
    struct snd_native *n = calloc(1, sizeof *n);
    const void        *eval = dlsym(RTLD_DEFAULT, EVAL);
    Dl_info            info = { 0 };
    uint64_t           size = n && eval ? function_size(eval, &info) : 0;

    if (size > 0) {
        n->eval = (uint64_t)(uintptr_t)eval;
        n->eval_end = n->eval + size;
        n->interpreter = info.dli_fbase;
    }
    return n;
}

void snd_native_clear(struct snd_native *n)
{
    if (!n)
        return;
    snd_map_release(&n->frames);
    snd_map_release(&n->stacks);
    n->frames = n->stacks = (struct snd_map){ 0 };
}

void snd_native_free(struct snd_native *n)
{
    snd_native_clear(n);
    free(n);
}

/* ----------------------------------------------------------------- matching */

static bool is_eval(const struct snd_native *n, uint64_t pc)
{
    return pc > n->eval && pc <= n->eval_end;
}

/* Is native frame `at` the evaluation loop's that began with `entry`? */
static bool is_loop_of(const struct snd_native *n, const struct snd_py_stack *stack, size_t at,
                       uint64_t entry)
{
    const struct snd_native_frame *f = &stack->native[at];

    if (entry == SND_PY_ENTRY)
        return is_eval(n, f->pc);
    return at + 1 < stack->native_count && f->stack <= entry && entry < f[1].stack;
}

/* Is the loop that began with `entry` further out than the native frames that were taken? */
static bool is_beyond(const struct snd_py_stack *stack, uint64_t entry)
{
    return stack->native_cut &&
           (entry == SND_PY_ENTRY || entry >= stack->native[stack->native_count - 1].stack);
}

static bool has_loop(const struct snd_native *n, const struct snd_py_stack *stack, size_t from)
{
    for (size_t i = from; i < stack->native_count; i++)
        if (is_eval(n, stack->native[i].pc))
            return true;
    return false;
}

/*
 * The loop of Python frame `first` is not among the native frames from `at` on. If the walk broke off,
 * the last of them has callers that were not found, of which the loop is one.
 */
static bool match_gap(struct snd_native *n, const struct snd_py_stack *stack, size_t at,
                      uint32_t first)
{
    if (!stack->native_broken || at == stack->native_count || has_loop(n, stack, at))
        return false;
    for (; at < stack->native_count; at++)
        n->callers[at] = first;
    n->gap = first;
    return true;
}

bool snd_native_match(struct snd_native *n, const struct snd_py_stack *stack)
{
    size_t   at = 0;    /* native frames before it have their callers */
    uint32_t first = 0; /* of the Python frames that the next loop runs */
    bool     by_name = false;

    n->left = stack->native_count;
    n->gap = NOBODY;
    for (size_t i = 0; i < stack->native_count; i++)
        n->callers[i] = NOBODY;
    for (size_t i = 0; i < stack->count; i++) {
        uint64_t entry = stack->frames[i].entry;
        size_t   loop = at;
        if (entry == 0)
            continue;
        by_name |= entry == SND_PY_ENTRY;
        while (loop < stack->native_count && !is_loop_of(n, stack, loop, entry))
            loop++;
        if (loop == stack->native_count && !(stack->native_count > 0 && is_beyond(stack, entry)))
            return match_gap(n, stack, at, first);
        for (; at < loop; at++)
            n->callers[at] = first;
        if (loop == stack->native_count)
            return true;
        at = loop + 1;
        first = (uint32_t)i + 1;
    }
    return at > 0 && (!by_name || stack->cut || !has_loop(n, stack, at));
}

/* ------------------------------------------------------------------- naming */

/* Is it a function of the interpreter itself: without a symbol, or with a name that begins with Py? */
static bool is_plumbing(const struct snd_native *n, const Dl_info *info)
{
    const char *name = info->dli_sname;

    return info->dli_fbase == n->interpreter &&
           (!name || strncmp(name, "Py", 2) == 0 || strncmp(name, "_Py", 3) == 0);
}

/* A function without a name is its library's. */
static uint32_t name_frame(const struct snd_native *n, const struct snd_recorder *recorder,
                           uint64_t address)
{
    Dl_info info = { 0 };
    char    text[256];

    if (dladdr((const void *)(uintptr_t)address, &info) == 0 || !info.dli_fname ||
        is_plumbing(n, &info))
        return 0;
    const char *slash = strrchr(info.dli_fname, '/'), *name = info.dli_sname;
    if (!name) {
        snprintf(text, sizeof text, "[%s]", slash ? slash + 1 : info.dli_fname);
        name = text;
    }
    return recorder->native(recorder->intern(name, strlen(name)),
                            recorder->intern(info.dli_fname, strlen(info.dli_fname)));
}

/* Cached by function, not by address: dladdr() searches all symbols of a library, which is slow. */
static uint32_t find_frame(struct snd_native *n, const struct snd_recorder *recorder,
                           const struct snd_native_frame *f, uint64_t address)
{
    struct snd_key key = { f->function ? f->function : address, 0, 0 };
    uint32_t       frame;

    if (snd_map_get(&n->frames, key, &frame))
        return frame;
    if (n->frames.count > KNOWN_MAX)
        snd_native_clear(n);
    frame = name_frame(n, recorder, address);
    snd_map_put(&n->frames, key, frame);
    return frame;
}

static uint32_t find_stack(struct snd_native *n, const struct snd_recorder *recorder,
                           uint32_t parent, uint32_t frame)
{
    struct snd_key key = { parent, frame, 0 };
    uint32_t       id;

    if (snd_map_get(&n->stacks, key, &id))
        return id;
    if (n->stacks.count > KNOWN_MAX)
        snd_native_clear(n);
    id = recorder->stack(parent, frame);
    snd_map_put(&n->stacks, key, id);
    return id;
}

static uint32_t put_gap(struct snd_native *n, const struct snd_recorder *recorder, uint32_t id)
{
    struct snd_key key = { 0, 0, 0 }; /* no function is there */
    uint32_t       frame;

    if (!snd_map_get(&n->frames, key, &frame)) {
        frame = recorder->native(recorder->intern(gap_text, sizeof gap_text - 1),
                                 recorder->intern("", 0));
        snd_map_put(&n->frames, key, frame);
    }
    return find_stack(n, recorder, id, frame);
}

uint32_t snd_native_stack(struct snd_native *n, const struct snd_recorder *recorder,
                          const struct snd_py_stack *stack, size_t at, uint32_t id)
{
    uint32_t before = 0;

    if (n->gap == at)
        id = put_gap(n, recorder, id);
    for (; n->left > 0; n->left--) {
        size_t i = n->left - 1;
        if (n->callers[i] == NOBODY || n->callers[i] >= stack->count)
            continue;
        if (n->callers[i] != at)
            break;
        /* A return address is after the call, and may be the next function's. */
        uint32_t frame = find_frame(n, recorder, &stack->native[i], stack->native[i].pc - (i > 0));
        if (frame != 0 && frame != before)
            id = find_stack(n, recorder, id, frame);
        before = frame ? frame : before;
    }
    return id;
}
