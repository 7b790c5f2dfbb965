/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/stacks/heap_python.h"

#include "probes/heap/stacks/frame_rules.h"
#include "probes/heap/stacks/heap_interpreter.h"

#define ARENA_LEAST \
    ((size_t)256 << 10) /* 256 KiB in 3.9, 1 MiB since; a part of the frames' stack: 16 KiB */

/* -------------------------------------------------------------------- reading */

void snd_heap_python_read(struct snd_py_stack *frames, struct snd_heap_stack *stack)
{
    if (!snd_heap_interpreter_frames(frames))
        return;
    const struct snd_py_layout *l = &snd_heap_interpreter_layout()->layout;
    for (size_t i = frames->count; i-- > 0;) {
        const struct snd_py_frame *f = &frames->frames[i];
        snd_heap_hash(snd_heap_pycode(l, f->code), &stack->low, &stack->high);
        snd_heap_hash(f->instr << 1 | (f->entry != 0), &stack->low, &stack->high);
    }
    stack->python = frames;
}

/* ------------------------------------------------------------- where frames go */

/* Under the lock of the stacks: too large for a program's stack. */
static struct snd_loops loops;
static uint64_t         places[SND_HEAP_PLACES];

static void take_native(const struct snd_heap_stack *stack, struct snd_py_stack *frames)
{
    for (uint32_t i = 0; i < stack->count; i++)
        frames->native[i] = (struct snd_native_frame){ stack->pcs[i], 0, stack->sps[i], true };
    frames->native_count = stack->count;
    frames->native_cut = stack->cut;
    frames->native_broken = !stack->cut; /* if a loop is missing in it */
}

static bool is_shown(uint64_t pc)
{
    const struct snd_heap_row *row = snd_heap_row_find(pc);

    return !row || !(row->flags & SND_FRAME_PLUMBING);
}

struct snd_heap_places snd_heap_python_places(const struct snd_heap_stack *stack)
{
    struct snd_py_stack   *frames = stack->python;
    struct snd_heap_places plain = { stack->pcs, stack->count, stack->cut };
    uint32_t               count = 0, native = 0;

    if (!frames)
        return plain;
    take_native(stack, frames);
    snd_heap_interpreter_loop(&loops);
    bool fits = snd_loops_match(&loops, frames);
    for (size_t i = 0; i < frames->count; i++) {
        for (; fits && native < stack->count && loops.callers[native] <= i; native++)
            if (loops.callers[native] == i && is_shown(stack->pcs[native]))
                places[count++] = stack->pcs[native];
        while (fits && native < stack->count && loops.callers[native] == SND_LOOPS_NOBODY)
            native++;
        if (fits && loops.gap == i)
            places[count++] = snd_heap_pyplace(SND_PYPLACE_GAP);
        uint64_t place = snd_heap_pyplace_of(&frames->frames[i]);
        if (place == 0)
            return plain;
        places[count++] = place;
    }
    if (frames->cut)
        places[count++] = snd_heap_pyplace(SND_PYPLACE_CUT);
    return (struct snd_heap_places){ places, count, false };
}

/* ---------------------------------------------------------- the interpreter's own */

bool snd_heap_python_maps(const struct snd_heap_caller *caller, size_t size,
                          struct snd_heap_stack *stack)
{
    const struct snd_heap_row *row = snd_heap_row_find(caller->pc);

    if (!row)
        row = snd_heap_row_add(caller->pc);
    if (!(row->flags & SND_FRAME_ARENA))
        return false;
    uint64_t place = snd_heap_pyplace(size < ARENA_LEAST ? SND_PYPLACE_FRAMES : SND_PYPLACE_ARENA);
    stack->pcs[0] = place;
    stack->count = 1;
    stack->cut = stack->is_ours = false;
    stack->walked = NULL;
    stack->python = NULL;
    stack->low = stack->high = place;
    snd_heap_hash(place, &stack->low, &stack->high);
    return true;
}
