/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/lines/line_memory.c - memory that a line allocates and frees: counters of its thread, read
 * when it begins and when it ends.
 *
 * The lines of a function and of what is defined in it are one table, and each byte counts in one
 * of its lines: that of the innermost frame. So increments add up to what is in use at the end,
 * the line of `def` having what was in use at the function's first call, and what changed between
 * calls. That is memory_profiler's rule, on exact bytes. What is in use is the process's, though, and
 * increments are the thread's: what another thread allocates meanwhile is in the one and in no line.
 */
#include "probes/python/lines/line_events.h"
#include "probes/python/memory/memory_counts.h"

#define OUTER_LOOKED_AT 64

/*
 * What the interpreter took for the function between its call and its first line is the `def`'s: 3.9 and 3.10
 * make a cache for the code at its 1024th call, there.
 */
static void count_entry(struct snd_line_entry *entry, struct snd_line_table *table)
{
    int64_t   bytes = snd_memory_mine_.net_bytes - entry->net_bytes;
    uint64_t *place = bytes ? snd_line_place(table, entry->line, SND_LINE_MEMORY) : NULL;

    if (place)
        place[SND_LINE_MEMORY_NET] += (uint64_t)bytes;
    if (bytes && table->shares)
        snd_line_share_more(table, entry->line, bytes);
    entry->frame = NULL;
}

static void begin_line(struct snd_line_run *run)
{
    struct snd_memory_thread *mine = &snd_memory_mine_;
    struct snd_line_entry    *entry = &snd_line_thread_->entry;

    if (entry->frame == run->frame)
        count_entry(entry, run->table);
    run->memory = (struct snd_line_memory){
        mine->allocated_bytes, mine->freed_bytes, mine->net_bytes, mine->peak_bytes, 0, 0, true
    };
    mine->peak_bytes = mine->net_bytes;
}

/* The innermost run, from `run` on outwards, of lines of `owner`; NULL if there is none. */
static struct snd_line_run *find_outer(const struct snd_line_thread *mine, struct snd_line_run *run,
                                       const PyCodeObject *owner)
{
    for (int i = 0; i < OUTER_LOOKED_AT && run >= mine->base; i++, run--)
        if (run->table->owner == owner)
            return run;
    return NULL;
}

static void end_line(struct snd_line_run *run, uint64_t *place)
{
    struct snd_memory_thread *mine = &snd_memory_mine_;
    struct snd_line_memory   *began = &run->memory;

    if (!began->is_begun)
        return;
    uint64_t allocated = mine->allocated_bytes - began->allocated_bytes;
    uint64_t freed = mine->freed_bytes - began->freed_bytes;
    int64_t  peak = mine->peak_bytes - began->net_bytes;

    if (mine->peak_bytes < began->outer_peak_bytes)
        mine->peak_bytes = began->outer_peak_bytes;
    struct snd_line_run *outer = find_outer(snd_line_thread_, run - 1, run->table->owner);
    if (outer) {
        outer->memory.inner_allocated_bytes += allocated;
        outer->memory.inner_freed_bytes += freed;
    }
    allocated -= began->inner_allocated_bytes;
    freed -= began->inner_freed_bytes;
    snd_memory_look_again();
    const struct snd_line_bytes bytes = { allocated, freed, snd_memory_in_use(), peak };
    if (place)
        snd_line_add_bytes(place, &bytes);
    if (run->table->shares)
        snd_line_share_memory(run, &bytes);
}

void snd_line_begin_more_(struct snd_line_run *run)
{
    run->stamp = snd_line_stamp;
    if (run->table->wanted & SND_LINE_MEMORY)
        begin_line(run);
}

void snd_line_close_more_(struct snd_line_run *run, uint64_t now)
{
    struct snd_line_table *table = run->table;

    if (table->shares && table->wanted & SND_LINE_TIME && run->since)
        snd_line_share_time(run, now - run->since);
    if (table->wanted & SND_LINE_MEMORY)
        end_line(run, snd_line_place(table, run->line, SND_LINE_MEMORY));
}

static struct snd_line_left *find_left(struct snd_line_thread      *mine,
                                       const struct snd_line_table *table)
{
    for (uint32_t i = 0; i < SND_LINE_LEFT; i++)
        if (mine->left[i].table == table && mine->left[i].epoch == table->epoch)
            return &mine->left[i];
    return NULL;
}

void snd_line_memory_leave(struct snd_line_thread *mine, struct snd_line_table *table)
{
    if (table->code != table->owner || find_outer(mine, mine->top, table->owner))
        return;
    struct snd_line_left *left = find_left(mine, table);
    if (!left)
        left = &mine->left[mine->left_next++ % SND_LINE_LEFT];
    *left = (struct snd_line_left){ table, table->epoch, snd_line_stamp,
                                    snd_memory_mine_.net_bytes };
}

/*
 * What the line of `def` has: at the function's first call all that is in use, at others what the
 * thread allocated and freed since it left the function, its local variables for one.
 */
static uint64_t count_since(struct snd_line_table *table, const struct snd_line_left *left,
                            uint64_t in_use)
{
    if (!table->has_base) {
        table->has_base = true;
        return in_use;
    }
    return left ? (uint64_t)(snd_memory_mine_.net_bytes - left->net_bytes) : 0;
}

void snd_line_enter(struct snd_line_thread *mine, const void *frame, struct snd_line_table *table,
                    int line, bool resumed)
{
    uint32_t index = (uint32_t)(line - (int)table->first);

    if (table->epoch != sonde_epoch())
        snd_line_renew(table);
    if (index >= table->count)
        return;
    if (resumed) { /* the rest of the line that yielded */
        if (snd_line_push(mine, frame, table)) {
            mine->top->line = index;
            mine->top->stamp = snd_line_stamp;
            begin_line(mine->top);
        }
        return;
    }
    bool is_outermost = table->code == table->owner && !find_outer(mine, mine->top, table->owner);
    const struct snd_line_left *left = is_outermost ? find_left(mine, table) : NULL;
    uint64_t                    in_use = snd_memory_in_use();
    uint64_t                   *place = snd_line_place(table, index, SND_LINE_MEMORY);
    if (place) {
        table->has_base |= place[SND_LINE_MEMORY_RUNS] >
                           0; /* by the code of a Python that has ended since */
        place[SND_LINE_MEMORY_RUNS]++;
        place[SND_LINE_MEMORY_IN_USE] = in_use;
        place[SND_LINE_MEMORY_NET] += is_outermost ? count_since(table, left, in_use) : 0;
    }
    if (table->shares)
        snd_line_share_call(table, index, in_use, is_outermost, left);
    mine->entry = (struct snd_line_entry){ is_outermost ? frame : NULL, index,
                                           snd_memory_mine_.net_bytes };
}

/* ------------------------------------------------------------------------ the module */

/* Allocations of threads that run at the same time cannot be distinguished yet. False with an exception set. */
static bool is_supported(void)
{
#ifdef Py_GIL_DISABLED
    PyErr_SetString(snd_py_error_class(),
                    "cannot record the memory of lines in a Python without the "
                    "interpreter lock; use one that has it");
    return false;
#else
    return true;
#endif
}

static PyObject *memory_start(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    if (!is_supported())
        return NULL;
    snd_memory_start();
    sonde_metadata(snd_meta_key(SND_META_PYTHON_LINE_MEMORY), "Python's allocators, malloc");
    Py_RETURN_NONE;
}

static PyObject *memory_stop(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    snd_memory_stop();
    Py_RETURN_NONE;
}

/* Calls a function; most bytes in use meanwhile, and before. */
static PyObject *memory_peak(PyObject *module, PyObject *function)
{
    struct snd_memory_thread *mine = &snd_memory_mine_;

    (void)module;
    if (!is_supported())
        return NULL;
    snd_memory_start();
    int64_t  outer = mine->peak_bytes, base = mine->net_bytes;
    uint64_t before = snd_memory_in_use();
    mine->peak_bytes = base;
    PyObject *result = PyObject_CallObject(function, NULL);
    uint64_t  most = (uint64_t)(mine->peak_bytes - base);
    if (outer > mine->peak_bytes)
        mine->peak_bytes = outer;
    snd_memory_stop();
    if (!result)
        return NULL;
    unsigned long long base_bytes = before, most_bytes = before + most;
    return Py_BuildValue("NKK", result, most_bytes, base_bytes);
}

void snd_py_line_memory_renew(void)
{
    while (snd_memory_on > 0)
        snd_memory_stop();
}

PyMethodDef snd_py_line_memory_methods[] = {
    { "memory_start", memory_start, METH_NOARGS, "memory_start(): allocations are counted" },
    { "memory_stop", memory_stop, METH_NOARGS, "memory_stop(): takes one start back" },
    { "memory_peak", memory_peak, METH_O,
      "memory_peak(function) -> (result, most, before): bytes in use while it runs, and before" },
    { NULL, NULL, 0, NULL },
};
