/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/lines/line_tallies.c - words of lines in the trace, for the process and for sessions. */
#include "probes/python/lines/line_events.h"
#include "base/count_of.h"
#include "probes/python/memory/memory_counts.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint32_t
    owners[2]; /* the one session that all counts belong to, for time and for memory; 0: none */

/* Writes into the recording, a forked child's too, which session the process's counts belong to. */
static void tell_owners(bool again)
{
    static const enum snd_meta keys[] = { SND_META_PYTHON_LINES_SESSION,
                                          SND_META_PYTHON_LINE_MEMORY_SESSION };
    static uint32_t            told; /* epoch */
    char                       text[16];

    if (sonde_epoch() == 0 || (told == sonde_epoch() && !again))
        return;
    told = sonde_epoch();
    for (size_t i = 0; i < SND_COUNT_OF(keys); i++) {
        snprintf(text, sizeof text, "%u", owners[i]);
        sonde_metadata(snd_meta_key(keys[i]), text);
    }
}

void snd_line_set_owner(bool memory, uint32_t session)
{
    owners[memory] = session;
    tell_owners(true);
}

static PyObject *name_of(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030B0000
    return code->co_qualname; /* as line_profiler names it */
#else
    return code->co_name;
#endif
}

/* Another recording: every tally is looked up again. */
void snd_line_renew(struct snd_line_table *table)
{
    PyObject *error[3];

    memset(table->time, 0, table->count * sizeof *table->time);
    memset(table->memory, 0, table->count * sizeof *table->memory);
    if (table->process == getpid()) /* a forked child continues its parent's counts */
        table->has_base = false;
    table->process = getpid();
    PyErr_Fetch(&error[0], &error[1], &error[2]); /* a frame may be left by an exception */
    snd_memory_mine_.inside++;
    table->epoch = sonde_epoch();
    table->function = table->epoch ? snd_py_intern(name_of(table->owner)) : 0;
    table->file = table->epoch ? snd_py_intern(table->owner->co_filename) : 0;
    tell_owners(false);
    snd_memory_mine_.inside--;
    PyErr_Restore(error[0], error[1], error[2]);
}

static const struct {
    enum sonde_tally_kind kind;
    unsigned              words;
} kinds[] = {
    [SND_LINE_TIME] = { SONDE_TALLY_LINE, SND_LINE_WORDS },
    [SND_LINE_MEMORY] = { SONDE_TALLY_LINE_MEMORY, SND_LINE_MEMORY_WORDS },
};

unsigned snd_line_word_count(unsigned use)
{
    return kinds[use].words;
}

uint64_t *snd_line_words(const struct snd_line_table *table, uint32_t line, unsigned use,
                         uint32_t session)
{
    if (table->epoch == 0)
        return NULL;
    snd_memory_mine_.inside++; /* memory allocated here does not count for the line */
    uint32_t  frame = sonde_intern_frame_in(table->function, (uint32_t)table->owner->co_firstlineno,
                                            table->file, table->first + line);
    uint64_t *words = sonde_tally(SONDE_TALLY_OF(kinds[use].kind, session), frame, 0,
                                  kinds[use].words);
    snd_memory_mine_.inside--;
    return words;
}

uint64_t *snd_line_place(struct snd_line_table *table, uint32_t line, unsigned use)
{
    uint64_t **places = use == SND_LINE_TIME ? table->time : table->memory;

    if (!places[line])
        places[line] = snd_line_words(table, line, use, 0);
    return places[line];
}

void snd_line_add_bytes(uint64_t *place, const struct snd_line_bytes *bytes)
{
    place[SND_LINE_MEMORY_RUNS]++;
    place[SND_LINE_MEMORY_NET] += bytes->allocated - bytes->freed;
    place[SND_LINE_MEMORY_TAKEN] += bytes->allocated;
    place[SND_LINE_MEMORY_FREED] += bytes->freed;
    place[SND_LINE_MEMORY_IN_USE] = bytes->in_use;
    if (bytes->peak > (int64_t)place[SND_LINE_MEMORY_PEAK])
        place[SND_LINE_MEMORY_PEAK] = (uint64_t)bytes->peak;
}
