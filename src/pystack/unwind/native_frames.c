/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/unwind/native_frames.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "pystack/unwind/loops.h"

#define KNOWN_MAX 1000000u /* more than a program has; then the cache is emptied */

struct snd_native {
    struct snd_loops loops;
    const void      *interpreter; /* where the file that has the evaluation loop is loaded */
    struct snd_map   frames;      /* function to the recorder's frame, 0: left out */
    struct snd_map   stacks;      /* (parent, frame) to id */
    size_t           left;        /* native frames that have not been put yet */
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
    const void        *eval = dlsym(RTLD_DEFAULT, SND_LOOPS_EVAL);
    Dl_info            info = { 0 };
    uint64_t           size = n && eval ? function_size(eval, &info) : 0;

    if (size > 0) {
        n->loops.eval = (uint64_t)(uintptr_t)eval;
        n->loops.eval_end = n->loops.eval + size;
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

bool snd_native_match(struct snd_native *n, const struct snd_py_stack *stack)
{
    n->left = stack->native_count;
    return snd_loops_match(&n->loops, stack);
}

/* ------------------------------------------------------------------- naming */

static bool is_plumbing(const struct snd_native *n, const Dl_info *info)
{
    return info->dli_fbase == n->interpreter && snd_loops_is_plumbing(info->dli_sname);
}

/* A function without a name is shown as its library. */
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
        frame = recorder->native(recorder->intern(SND_LOOPS_GAP, sizeof SND_LOOPS_GAP - 1),
                                 recorder->intern("", 0));
        snd_map_put(&n->frames, key, frame);
    }
    return find_stack(n, recorder, id, frame);
}

uint32_t snd_native_stack(struct snd_native *n, const struct snd_recorder *recorder,
                          const struct snd_py_stack *stack, size_t at, uint32_t id)
{
    uint32_t before = 0;

    if (n->loops.gap == at)
        id = put_gap(n, recorder, id);
    for (; n->left > 0; n->left--) {
        size_t i = n->left - 1;
        if (n->loops.callers[i] == SND_LOOPS_NOBODY || n->loops.callers[i] >= stack->count)
            continue;
        if (n->loops.callers[i] != at)
            break;
        /* A return address is after the call, and may be the next function's. */
        const struct snd_native_frame *f = &stack->native[i];
        uint32_t                       frame = find_frame(n, recorder, f, f->pc - f->called);
        if (frame != 0 && frame != before)
            id = find_stack(n, recorder, id, frame);
        before = frame ? frame : before;
    }
    return id;
}
