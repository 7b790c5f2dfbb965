/* SPDX-License-Identifier: Apache-2.0 */
/* gen/gen_lost.c - cases about what is missing, or unknown. */
#include "cases.h"

#include <errno.h>

#include "format/layout.h"
#include "synth.h"

/* --------------------------------------------------------------- what went missing */

void make_unfinished(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      outer = synth_string(s, "outer"), inner = synth_string(s, "inner");

    (void)n;
    synth_begin(s, t, 1000, outer, 0);
    for (uint64_t i = 0; i < 4; i++) {
        synth_begin(s, t, 2000 + i * 1000, inner, 0);
        synth_end(s, t, 2500 + i * 1000);
    }
    synth_begin(s, t, 9000, inner, 0);
    synth_mark(s, t, 9500, outer, 0);
    synth_reserve(s);
    synth_close(s, false);
}

/* In a closed file what is open ends where its thread stopped. */
void make_left_open(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "worker", 0);
    uint32_t      outer = synth_string(s, "outer"), inner = synth_string(s, "inner");
    uint32_t      call = synth_string(s, "call"), step = synth_string(s, "step");

    (void)n;
    synth_begin(s, t, 1000, outer, 0);
    synth_begin(s, t, 2000, call, 0);
    synth_begin(s, t, 2100, step, 0);
    synth_begin(s, t, 2200, step, 0);
    synth_gap(s, t, 5000, 0, 2); /* a jump out of both */
    synth_end(s, t, 5000);
    synth_begin(s, t, 6000, inner, 0);
    synth_begin(s, u, 3000, outer, 0);
    synth_begin(s, u, 4000, inner, 0);
    synth_end(s, u, 5000);
    synth_thread_done(s, t, 100000, 0);
    synth_thread_done(s, u, 50000, 0);
    synth_close(s, true);
}

void make_gaps(const char *path, uint64_t n)
{
    struct synth_options    options = { .flags = SND_FILE_LIMIT, .max_bytes = 1 << 20 };
    struct synth           *s = synth_new(path, &options);
    uint32_t                t = synth_thread(s, "main", 0);
    uint32_t                outer = synth_string(s, "outer"), inner = synth_string(s, "inner");
    struct snd_file_header *h = synth_header(s);

    (void)n;
    synth_begin(s, t, 1000, outer, 0);
    synth_begin(s, t, 2000, inner, 0);
    synth_gap(s, t, 3000, 7, 1); /* inner's end was lost */
    synth_begin(s, t, 4000, inner, 0);
    synth_end(s, t, 5000);
    synth_begin(s, t, 6000, inner, 0);
    synth_gap(s, t, 7000, 0, SND_GAP_ALL); /* a pause: all is closed */
    synth_begin(s, t, 8000, outer, 0);
    synth_end(s, t, 9000);
    synth_thread_done(s, t, 10000, 12);
    h->lost_events = 5;
    h->refused_events = 6;
    h->lost_children = 2;
    h->cut_files = 1;
    h->lost_children_why = EACCES;
    h->lost_names = 2;
    h->cut_names = 1;
    h->late_chunks = 3;
    h->failed_reserves = 4;
    h->last_os_error = ENOSPC;
    synth_close(s, true);
}

/* A flight recorder whose first chunks are gone: ends come without a begin. */
void make_keep_last(const char *path, uint64_t n)
{
    struct synth_options options = { .flags = SND_FILE_KEEP_LAST | SND_FILE_LIMIT,
                                     .max_bytes = 1 << 20 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0);
    uint32_t             outer = synth_string(s, "outer"), inner = synth_string(s, "inner");

    (void)n;
    synth_end(s, t, 1000000);
    synth_begin(s, t, 1001000, inner, 0);
    synth_end(s, t, 1002000);
    synth_end(s, t, 1003000);
    synth_end(s, t, 1004000);
    for (uint64_t i = 0; i < 3; i++) {
        synth_begin(s, t, 1010000 + i * 10000, outer, 0);
        synth_begin(s, t, 1011000 + i * 10000, inner, 0);
        synth_end(s, t, 1012000 + i * 10000);
        synth_end(s, t, 1015000 + i * 10000);
    }
    synth_thread_done(s, t, 1050000, 0);
    synth_header(s)->recycled_chunks = 9;
    synth_header(s)->recycled_events = 12345;
    synth_close(s, true);
}

/* A schedule's warm-up: what is older than valid_from is not shown. */
void make_warmup(const char *path, uint64_t n)
{
    struct synth_options options = { .cycle = 2 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0);
    uint32_t             warm = synth_string(s, "warming"), astride = synth_string(s, "astride"),
             shown = synth_string(s, "shown");

    (void)n;
    synth_begin(s, t, 1000, warm, 0);
    synth_end(s, t, 2000);
    synth_span(s, t, 2500, warm, 400);
    synth_begin(s, t, 3000, astride, 0);
    synth_mark(s, t, 4999, warm, 0);
    synth_mark(s, t, 5000, shown, 0); /* the first that is shown */
    synth_span(s, t, 5000, shown, 100);
    synth_end(s, t, 6000);
    synth_step(s, t, 6500, 3);
    synth_begin(s, t, 7000, shown, 0);
    synth_end(s, t, 8000);
    synth_header(s)->valid_from = synth_raw_clock(s, 5000);
    synth_close(s, true);
}

/* ----------------------------------------------------------------- nothing, or strange */

void make_empty(const char *path, uint64_t n)
{
    (void)n;
    synth_close(synth_new(path, NULL), true);
}

/* Chunks and events of a later version, a reserved chunk, ids that nothing defines. */
void make_unknown(const char *path, uint64_t n)
{
    struct synth  *s = synth_new(path, NULL);
    uint32_t       t = synth_thread(s, "main", 0), known = synth_string(s, "known");
    const uint64_t later[5] = { SND_KIND(31, 5) | 1500 << 8, 1, 2, 3, 4 };

    (void)n;
    synth_begin(s, t, 1000, known, 0);
    synth_raw(s, t, later, 5);
    synth_attr(s, t, 200, 1);
    synth_end(s, t, 2000);
    synth_chunk(s, 77, "later", 5);
    synth_reserve(s);
    synth_record(s, 99, 1, "later", 6);
    synth_begin(s, t, 3000, 4000, 4000);
    synth_end(s, t, 4000);
    synth_close(s, true);
}

/* ------------------------------------------------------------ asked for, and nothing came */

/* What probes write when they start; n 0: PyTorch's was asked for neither modules nor memory. */
void make_asked(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);

    synth_meta(s, "python.sample", "from inside");
    synth_meta(s, "python.functions", "aggregate");
    synth_meta(s, "python.lines", "sys.monitoring");
    synth_meta(s, "python.line_memory", "pymalloc");
    synth_meta(s, "counters.ranges", "cycles");
    synth_meta(s, "counters.functions", "cycles");
    synth_meta(s, "torch.options",
               n ? "{\"with_modules\": true, \"profile_memory\": true}"
                 : "{\"with_modules\": false, \"profile_memory\": false}");
    synth_close(s, true);
}

/* ------------------------------------------------------------------- killed while at work */

/* Two threads of a process that was killed: the file is as the kill left it. */
void make_killed(const char *path, uint64_t n)
{
    struct synth *s = synth_new(path, NULL);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "worker", 0);
    uint32_t      waits = synth_string(s, "waits"), works = synth_string(s, "works");
    uint32_t      part = synth_string(s, "part");

    (void)n;
    synth_begin(s, t, 1000, waits, 0);
    synth_span(s, t, 2000, part, 500); /* the last that is known of this thread */
    synth_begin(s, u, 3000, works, 0);
    for (uint64_t i = 0; i < 5; i++)
        synth_span(s, u, 4000 + i * 1000, part, 700);
    synth_close(s, false);
}

/* ------------------------------------------------------------------- records cut short */

/*
 * Of every type a record that is too short, with an id that nothing else has, and one that says it is longer than it is; what is
 * whole beside them is read.
 */
void make_short_records(const char *path, uint64_t n)
{
    struct synth  *s = synth_new(path, NULL);
    uint32_t       t = synth_thread(s, "main", 0), name = synth_string(s, "whole");
    const uint32_t long_text[2] = { 1000, 0x61616161 };
    const uint64_t words[2] = { 3, 3000 };
    const uint32_t symbols[4] = { 1, 100, 0, 0 }, no_symbols[4] = { 1, 0, 0, 0 };
    const uint32_t tally[6] = { SND_TALLY_LINE, 1, 0, 7, 1, 1 }, cycle[2] = { 50, 1 };

    (void)n;
    uint32_t frame = python_frame(s, "f", 1, "f.py", 2), shapes = synth_shapes(s, "2,3");
    uint32_t stack = synth_stack(s, 0, frame);
    for (uint8_t type = 1; type < SND_REC_TYPES; type++) {
        synth_record(s, type, 40, "", 0);
        synth_record(s, type, 41, long_text, 4);
    }
    synth_record(s, SND_REC_STRING, 42, long_text, sizeof long_text);
    synth_record(s, SND_REC_SYMBOL, 1, symbols, sizeof symbols);
    synth_record(s, SND_REC_SYMBOL, 1, no_symbols, sizeof no_symbols);
    synth_record(s, SND_REC_TALLY, 9, tally, sizeof tally);  /* seven words, it says, and has one */
    synth_record(s, SND_REC_STACK, 50, cycle, sizeof cycle); /* its own parent */
    synth_record(s, SND_REC_STRING, UINT32_MAX - 1, long_text, 8);
    synth_tally(s, SND_TALLY_LINE, frame, 0, words, 2);
    synth_begin(s, t, 1000, name, shapes);
    synth_attr(s, t, SND_ATTR_STACK, stack);
    synth_end(s, t, 2000);
    synth_begin(s, t, 3000, 42, 41); /* what is not there has no name */
    synth_attr(s, t, SND_ATTR_STACK, 50);
    synth_end(s, t, 4000);
    synth_close(s, true);
}
