/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/tables/record_tables.c and symbol_frames.c: each record at the edges of what it may be. Payloads are in blocks of their own
 * size, so that a sanitizer sees a read beyond.
 */
#include "base/count_of.h"
#include "read/reader.h"
#include "scratch.h"

#define ID_SLACK 65536u

static struct sonde_trace *open_empty(void)
{
    struct synth *s = synth_new(scratch_path("empty"), NULL);

    synth_close(s, true);
    return scratch_open(scratch_path("empty"));
}

static void parse(struct sonde_trace *trace, uint8_t type, uint32_t id, const void *payload,
                  size_t size)
{
    uint8_t *block = malloc(size ? size : 1);

    assert_non_null(block);
    memcpy(block, payload, size);
    assert_true(snd_record_parse(trace, &trace->processes[0], type, id, block, size));
    free(block);
}

static uint32_t count_of(const struct snd_tables *t, uint8_t type)
{
    switch (type) {
    case SND_REC_THREAD:
        return t->thread_count;
    case SND_REC_TALLY:
        return t->tally_count;
    default:
        return type == SND_REC_META     ? t->meta_count
               : type == SND_REC_FACT   ? t->fact_bytes_count
               : type == SND_REC_SYMBOL ? t->symbol_count
                                        : snd_table_next_id(t, type);
    }
}

/* The least that a record of each type must have. */
static const struct {
    uint8_t type;
    size_t  least;
} types[] = {
    { SND_REC_STRING, 4 },
    { SND_REC_SHAPES, 8 },
    { SND_REC_FRAME, SND_FRAME_PLAIN_SIZE },
    { SND_REC_STACK, 8 },
    { SND_REC_THREAD, sizeof(struct snd_thread_record) },
    { SND_REC_META, 8 },
    { SND_REC_TALLY, sizeof(struct snd_tally_record) },
    { SND_REC_CALL, SND_CALL_PLAIN },
    { SND_REC_FACT, sizeof(struct snd_fact_record) },
    { SND_REC_QUEUE, sizeof(struct snd_queue_record) },
    { SND_REC_WORK, sizeof(struct snd_work_record) },
};

static bool has_id(uint8_t type)
{
    return type != SND_REC_META && type != SND_REC_FACT;
}

/* A record that is too short is passed over; one of the least size is taken. */
static void short_records(void **state)
{
    static const uint8_t zeros[256];

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(types); i++) {
        struct sonde_trace *trace = open_empty();
        struct snd_tables  *t = &trace->processes[0].tables;
        uint64_t            bad = trace->processes[0].damage.bad_ids;
        uint32_t            before = count_of(t, types[i].type);
        parse(trace, types[i].type, before, zeros, types[i].least - 1);
        assert_int_equal(count_of(t, types[i].type), before);
        parse(trace, types[i].type, before ? before : 1, zeros, types[i].least);
        if (count_of(t, types[i].type) <= before)
            fail_msg("type %u: not taken", types[i].type);
        assert_int_equal(trace->processes[0].damage.bad_ids, bad);
        parse(trace, types[i].type, before ? before : 1, zeros, sizeof zeros);
        sonde_trace_close(trace);
    }
}

/* An id may be a little ahead of those that were seen: what is between them was in a damaged chunk. */
static void ids_in_reach(void **state)
{
    static const uint8_t zeros[256];

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(types); i++) {
        uint8_t type = types[i].type;
        if (!has_id(type))
            continue;
        struct sonde_trace *trace = open_empty();
        struct snd_process *p = &trace->processes[0];
        uint32_t            first = count_of(&p->tables, type) > 1 ? count_of(&p->tables, type) : 0;
        uint64_t            bad = p->damage.bad_ids;
        parse(trace, type, 0, zeros, types[i].least);
        assert_int_equal(p->damage.bad_ids, bad + 1);
        parse(trace, type, 2 * first + ID_SLACK + 1, zeros, types[i].least);
        assert_int_equal(p->damage.bad_ids, bad + 2);
        parse(trace, type, 2 * first + ID_SLACK, zeros, types[i].least);
        assert_int_equal(p->damage.bad_ids, bad + 2);
        assert_int_equal(count_of(&p->tables, type), 2 * first + ID_SLACK + 1);
        /* twice as many are in reach now */
        parse(trace, type, 2 * (2 * first + ID_SLACK + 1) + ID_SLACK + 1, zeros, types[i].least);
        assert_int_equal(p->damage.bad_ids, bad + 3);
        sonde_trace_close(trace);
    }
}

static void strings_end_in_their_record(void **state)
{
    struct sonde_trace *trace = open_empty();
    struct snd_process *p = &trace->processes[0];
    uint8_t             record[4 + 3] = { 3, 0, 0, 0, 'a', 'b', 'c' };
    uint32_t            id = snd_table_next_id(&p->tables, SND_REC_STRING);
    uint64_t            bad = p->damage.bad_ids;

    (void)state;
    parse(trace, SND_REC_STRING, id, record, sizeof record);
    assert_true(text_is(sonde_trace_string(trace, 0, id), "abc"));
    assert_int_equal(p->tables.file_names, id + 1);
    parse(trace, SND_REC_STRING, id + 1, record, sizeof record - 1);
    assert_true(text_is(sonde_trace_string(trace, 0, id + 1), "(unknown)"));
    assert_int_equal(p->damage.bad_ids, bad + 1);
    record[4] = 'x'; /* the first one of an id counts */
    parse(trace, SND_REC_STRING, id, record, sizeof record);
    assert_true(text_is(sonde_trace_string(trace, 0, id), "abc"));
    assert_int_equal(p->damage.bad_ids, bad + 1);
    sonde_trace_close(trace);
}

static void stacks_have_parents_before_them(void **state)
{
    struct sonde_trace *trace = open_empty();
    struct snd_process *p = &trace->processes[0];
    const uint32_t      root[2] = { 0, 5 }, child[2] = { 1, 6 }, own[2] = { 3, 7 };

    (void)state;
    parse(trace, SND_REC_STACK, 1, root, sizeof root);
    parse(trace, SND_REC_STACK, 2, child, sizeof child);
    assert_int_equal(p->damage.bad_ids, 0);
    assert_int_equal(p->tables.stacks[2].parent, 1);
    assert_int_equal(p->tables.stacks[2].frame, 6);
    parse(trace, SND_REC_STACK, 3, own, sizeof own);
    assert_int_equal(p->damage.bad_ids, 1);
    assert_int_equal(p->tables.stacks[3].parent, 0);
    assert_int_equal(p->tables.stacks[3].frame, 7);
    sonde_trace_close(trace);
}

/* A frame with an address is longer; of one in between, only what all frames have is known. */
static void frames_of_two_sizes(void **state)
{
    struct sonde_trace           *trace = open_empty();
    const struct snd_frame_record frame = { 1, 2, 3, 4, 5, 6, 0 };
    static const size_t sizes[] = { SND_FRAME_PLAIN_SIZE, SND_FRAME_PLAIN_SIZE + 8, sizeof frame };

    (void)state;
    for (uint32_t i = 0; i < SND_COUNT_OF(sizes); i++) {
        parse(trace, SND_REC_FRAME, i + 1, &frame, sizes[i]);
        const struct snd_frame_record *read = &trace->processes[0].tables.frames[i + 1];
        assert_int_equal(read->function, 1);
        assert_int_equal(read->flags, 4);
        assert_int_equal(read->address, sizes[i] == sizeof frame ? 5 : 0);
        assert_int_equal(read->build_id, sizes[i] == sizeof frame ? 6 : 0);
    }
    sonde_trace_close(trace);
}

static void metadata_replaces(void **state)
{
    struct sonde_trace *trace = open_empty();
    struct snd_tables  *t = &trace->processes[0].tables;
    uint32_t            before = t->meta_count;
    const uint32_t      said[3][2] = { { 901, 1 }, { 902, 2 }, { 901, 3 } };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(said); i++)
        parse(trace, SND_REC_META, 0, said[i], sizeof said[i]);
    assert_int_equal(t->meta_count, before + 2);
    assert_int_equal(t->metas[before].value, 3);
    assert_int_equal(t->metas[before + 1].value, 2);
    sonde_trace_close(trace);
}

/* More words than are known are a later version's; words that the record does not have are damage. */
static void tallies_with_words(void **state)
{
    struct sonde_trace *trace = open_empty();
    struct snd_process *p = &trace->processes[0];
    struct {
        struct snd_tally_record head;
        uint64_t                words[SND_TALLY_WORDS_MAX + 1];
    } record = { { 1, 2, 3, 0 }, { 10, 11, 12, 13, 14, 15, 16, 17, 18 } };

    (void)state;
    record.head.count = SND_TALLY_WORDS_MAX + 1;
    parse(trace, SND_REC_TALLY, 1, &record, sizeof record);
    assert_int_equal(p->tables.tallies[1].head.count, SND_TALLY_WORDS_MAX);
    assert_int_equal(p->tables.tallies[1].words[SND_TALLY_WORDS_MAX - 1], 17);
    record.head.count = 2;
    parse(trace, SND_REC_TALLY, 2, &record, sizeof record.head + 16);
    assert_int_equal(p->tables.tallies[2].head.count, 2);
    assert_int_equal(p->tables.tallies[2].words[1], 11);
    assert_int_equal(p->tables.tallies[2].words[2], 0);
    assert_int_equal(p->damage.bad_ids, 0);
    parse(trace, SND_REC_TALLY, 3, &record, sizeof record.head + 15);
    assert_int_equal(p->damage.bad_ids, 1);
    assert_int_equal(p->tables.tally_count, 3);
    sonde_trace_close(trace);
}

/* ------------------------------------------------------------------ symbols */

static void parse_symbol(struct sonde_trace *trace, uint32_t frame, uint32_t count, uint32_t there)
{
    static const struct snd_symbol_entry none;
    size_t                   size = sizeof(struct snd_symbol_record) + there * sizeof none;
    struct snd_symbol_record head = { frame, count };
    uint8_t                 *block = calloc(1, size);

    assert_non_null(block);
    memcpy(block, &head, sizeof head);
    for (uint32_t i = 0; i < there; i++) {
        const struct snd_symbol_entry entry = { 100 + i, 200 + i, 300 + i, 400 + i };
        memcpy(block + sizeof head + i * sizeof entry, &entry, sizeof entry);
    }
    parse(trace, SND_REC_SYMBOL, 0, block, size);
    free(block);
}

static void symbols_of_a_record(void **state)
{
    struct sonde_trace *trace = open_empty();
    struct snd_process *p = &trace->processes[0];
    static const struct {
        uint32_t count, there;
        bool     good;
    } cases[] = {
        { 0, 1, false }, { 1, 1, true },     { 2, 1, false },
        { 1, 2, true },  { 256, 256, true }, { 257, 257, false },
    };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(cases); i++) {
        uint32_t before = p->tables.symbol_count;
        uint64_t bad = p->damage.bad_ids;
        parse_symbol(trace, 1, cases[i].count, cases[i].there);
        assert_int_equal(p->tables.symbol_count, before + cases[i].good);
        assert_int_equal(p->damage.bad_ids, bad + !cases[i].good);
    }
    assert_int_equal(p->tables.symbols[2].entries[255].function, 355);
    sonde_trace_close(trace);
}

/* A symbol of a frame that is not there, or has a name already, is damage; so is one without a name. */
static void symbols_of_frames(void **state)
{
    struct sonde_trace           *trace = open_empty();
    struct snd_process           *p = &trace->processes[0];
    const struct snd_frame_record at = { 0, 2, 0, 0, 5, 6, 0 }, named = { 9, 2, 3, 0, 0, 0, 0 };
    static const struct {
        struct snd_symbol_record head;
        struct snd_symbol_entry  entry;
    } nameless = { { 3, 1 }, { 0, 1, 2, 3 } };

    (void)state;
    parse(trace, SND_REC_FRAME, 1, &at, sizeof at);
    parse(trace, SND_REC_FRAME, 2, &named, SND_FRAME_PLAIN_SIZE);
    parse(trace, SND_REC_FRAME, 3, &at, sizeof at);
    for (uint32_t i = 1; i <= 3; i++) {
        const uint32_t stack[2] = { i - 1, i };
        parse(trace, SND_REC_STACK, i, stack, sizeof stack);
    }
    assert_true(snd_symbols_expand(p)); /* there are none yet */
    assert_int_equal(p->tables.frame_count, 4);
    parse_symbol(trace, 0, 1, 1);
    parse_symbol(trace, 2, 1, 1);
    parse_symbol(trace, 4, 1, 1);
    parse(trace, SND_REC_SYMBOL, 0, &nameless, sizeof nameless);
    assert_int_equal(p->damage.bad_ids, 0);
    parse_symbol(trace, 1, 3, 3);
    assert_true(snd_symbols_expand(p));
    assert_int_equal(p->damage.bad_ids, 4);
    assert_int_equal(p->tables.frames[2].function, 9);
    assert_int_equal(p->tables.frames[3].function, 0);
    /* the innermost function is in the frame; those that it is inlined into follow, with stacks between it and its caller */
    assert_int_equal(p->tables.frame_count, 6);
    assert_int_equal(p->tables.stack_count, 6);
    for (uint32_t i = 0; i < 3; i++) {
        const struct snd_frame_record *f = &p->tables.frames[i == 0 ? 1 : 3 + i];
        assert_int_equal(f->function, 100 + i);
        assert_int_equal(f->file, 200 + i);
        assert_int_equal(f->line, 300 + i);
        assert_int_equal(f->flags, SND_FRAME_FLAGS(400 + i) | SND_FRAME_NATIVE);
        assert_int_equal(f->address, 5);
        assert_int_equal(f->reserved, 2);
    }
    assert_int_equal(p->tables.stacks[1].frame, 1);
    assert_int_equal(p->tables.stacks[1].parent, 5);
    assert_int_equal(p->tables.stacks[5].frame, 4);
    assert_int_equal(p->tables.stacks[5].parent, 4);
    assert_int_equal(p->tables.stacks[4].frame, 5);
    assert_int_equal(p->tables.stacks[4].parent, 0);
    assert_int_equal(p->tables.stacks[2].parent, 1);
    sonde_trace_close(trace);
}

/* Inlined functions of hundreds of thousands of stacks: beyond a limit they stand alone. */
static void symbols_of_many_stacks(void **state)
{
    enum { INLINED = 255, MOST = 1 << 24, STACKS = MOST / INLINED + 2 };
    struct sonde_trace           *trace = open_empty();
    struct snd_tables            *t = &trace->processes[0].tables;
    const struct snd_frame_record at = { 0, 2, 0, 0, 5, 6, 0 };

    (void)state;
    parse(trace, SND_REC_FRAME, 1, &at, sizeof at);
    for (uint32_t i = 1; i <= STACKS; i++) {
        const uint32_t stack[2] = { 0, 1 };
        parse(trace, SND_REC_STACK, i, stack, sizeof stack);
    }
    parse_symbol(trace, 1, INLINED + 1, INLINED + 1);
    assert_true(snd_symbols_expand(&trace->processes[0]));
    uint32_t whole = MOST / INLINED;
    assert_int_equal(t->stack_count, 1 + STACKS + whole * INLINED);
    assert_int_equal(t->stacks[whole].parent, STACKS + whole * INLINED);
    assert_int_equal(t->stacks[whole + 1].parent, 0);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(short_records),
        cmocka_unit_test(ids_in_reach),
        cmocka_unit_test(strings_end_in_their_record),
        cmocka_unit_test(stacks_have_parents_before_them),
        cmocka_unit_test(frames_of_two_sizes),
        cmocka_unit_test(metadata_replaces),
        cmocka_unit_test(tallies_with_words),
        cmocka_unit_test(symbols_of_a_record),
        cmocka_unit_test(symbols_of_frames),
        cmocka_unit_test(symbols_of_many_stacks),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
