/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/unwind/loops.h"

#include <string.h>

static bool is_eval(const struct snd_loops *n, uint64_t pc)
{
    return pc > n->eval && pc <= n->eval_end;
}

/* Is native frame `at` the evaluation loop's that began with `entry`? */
static bool is_loop_of(const struct snd_loops *n, const struct snd_py_stack *stack, size_t at,
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

static bool has_loop(const struct snd_loops *n, const struct snd_py_stack *stack, size_t from)
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
static bool match_gap(struct snd_loops *n, const struct snd_py_stack *stack, size_t at,
                      uint32_t first)
{
    if (!stack->native_broken || at == stack->native_count || has_loop(n, stack, at))
        return false;
    for (; at < stack->native_count; at++)
        n->callers[at] = first;
    n->gap = first;
    return true;
}

bool snd_loops_match(struct snd_loops *n, const struct snd_py_stack *stack)
{
    size_t   at = 0;    /* native frames before it have their callers */
    uint32_t first = 0; /* of the Python frames that the next loop runs */
    bool     by_name = false;

    n->gap = SND_LOOPS_NOBODY;
    for (size_t i = 0; i < stack->native_count; i++)
        n->callers[i] = SND_LOOPS_NOBODY;
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

bool snd_loops_is_plumbing(const char *name)
{
    return !name || strncmp(name, "Py", 2) == 0 || strncmp(name, "_Py", 3) == 0;
}
