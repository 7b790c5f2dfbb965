/* SPDX-License-Identifier: Apache-2.0 */
/* read/tables/late_records.c: records in lane chunks, whole, in parts, and as no recorder writes them. */
#include "format/fields.h"
#include "read/reader.h"
#include "scratch.h"

#define LATE(number) (SND_LATE_ID | (number))

static const struct synth_options late = { .flags = SND_FILE_LATE };

/* One RECORD, or RECORD_SHORT, with as much of `bytes` as it has room for; returns how much. */
static size_t put_part(struct synth *s, uint32_t t, bool is_short, uint8_t type, uint32_t id,
                       uint32_t size, const char *bytes, size_t left)
{
    size_t   room = is_short ? SND_RECORD_SHORT_BYTES : SND_RECORD_BYTES;
    uint64_t words[8] = { is_short ? SND_EV_RECORD_SHORT : SND_EV_RECORD,
                          SND_PAIR(id, size) | (uint64_t)type << 56 };

    memcpy(&words[2], bytes, left < room ? left : room);
    synth_event(s, t, 10, words, is_short ? 4 : 8);
    return left < room ? left : room;
}

static void put_record(struct synth *s, uint32_t t, uint8_t type, uint32_t id, const void *payload,
                       uint32_t size)
{
    for (size_t at = 0; at < size;)
        at += put_part(s, t, size - at <= SND_RECORD_SHORT_BYTES, type, id, size,
                       (const char *)payload + at, size - at);
}

/* The payload of a string. */
static uint32_t string(char payload[256], const char *text)
{
    uint32_t length = (uint32_t)strlen(text);

    memcpy(payload, &length, sizeof length);
    memcpy(payload + sizeof length, text, length);
    return length + (uint32_t)sizeof length;
}

static void put_string(struct synth *s, uint32_t t, uint32_t id, const char *text)
{
    char payload[256];

    put_record(s, t, SND_REC_STRING, id, payload, string(payload, text));
}

static struct sonde_trace *finish(struct synth *s, const char *name)
{
    synth_close(s, true);
    return scratch_open(scratch_path(name));
}

static struct sonde_text name_of(const struct sonde_trace *trace, uint32_t id)
{
    return sonde_trace_string(trace, 0,
                              snd_late_replace(&trace->processes[0].tables, SND_REC_STRING,
                                               LATE(id)));
}

#define LONG                                                                                    \
    "a name that is too long for one event, and for two of them as well, so that it has three " \
    "parts"

/* A range, a frame and a stack of late records have their names; an id that is defined twice has its first. */
static void late_records_are_read(void **state)
{
    struct synth  *s = synth_new(scratch_path("late"), &late);
    uint32_t       t = synth_thread(s, "main", 0);
    const uint32_t frame[4] = { LATE(1), LATE(2), 7, 0 }, stack[2] = { 0, LATE(3) };

    (void)state;
    put_string(s, t, LATE(1), LONG);
    put_string(s, t, LATE(2), "f.py");
    put_string(s, t, LATE(1), "another");
    put_record(s, t, SND_REC_FRAME, LATE(3), frame, sizeof frame);
    put_record(s, t, SND_REC_STACK, LATE(4), stack, sizeof stack);
    synth_begin(s, t, 20, LATE(1), 0);
    synth_attr(s, t, SND_ATTR_STACK, LATE(4));
    synth_end(s, t, 30);
    struct sonde_trace           *trace = finish(s, "late");
    struct sonde_averages        *r;
    struct sonde_averages_options options = { .struct_size = sizeof options,
                                              .groups = SONDE_GROUP_STACK };
    assert_int_equal(sonde_averages_new(trace, &options, &r, NULL), SONDE_OK);
    assert_true(text_is(find_average(r, LONG)->stack, "f.py(7): " LONG));
    assert_int_equal(trace->processes[0].damage.bad_ids, 0);
    sonde_averages_free(r);
    sonde_trace_close(trace);
}

/* A part that another record follows is forgotten, though they agree in all but one. */
static void parts_of_different_records(void **state)
{
    static const struct {
        uint32_t id, size;
        uint8_t  type;
    } first[] = {
        { LATE(8), 4 + sizeof LONG - 1, SND_REC_STRING },
        { LATE(7), 4 + sizeof LONG, SND_REC_STRING },
        { LATE(7), 4 + sizeof LONG - 1, SND_REC_SHAPES },
    };

    (void)state;
    for (size_t i = 0; i < sizeof first / sizeof first[0]; i++) {
        struct synth *s = synth_new(scratch_path("parts"), &late);
        uint32_t      t = synth_thread(s, "main", 0);
        char          other[SND_RECORD_BYTES];
        memset(other, 'x', sizeof other);
        put_part(s, t, false, first[i].type, first[i].id, first[i].size, other, sizeof other);
        put_string(s, t, LATE(7), LONG);
        struct sonde_trace *trace = finish(s, "parts");
        assert_true(text_is(name_of(trace, 7), LONG));
        assert_int_equal(trace->processes[0].damage.bad_ids, 0);
        sonde_trace_close(trace);
    }
}

/* What is left of a record at the end of its chunk is not the begin of one in the next. */
static void parts_in_two_chunks(void **state)
{
    struct synth *s = synth_new(scratch_path("chunks"), &late);
    uint32_t      t = synth_thread(s, "main", 0);
    char          payload[256];
    uint32_t      size = string(payload, LONG);

    (void)state;
    put_part(s, t, false, SND_REC_STRING, LATE(7), size, payload, SND_RECORD_BYTES);
    synth_seal(s, t);
    put_string(s, t, LATE(7), LONG);
    struct sonde_trace *trace = finish(s, "chunks");
    assert_true(text_is(name_of(trace, 7), LONG));
    sonde_trace_close(trace);
}

static void records_that_cannot_be(void **state)
{
    static char zeros[SND_LATE_SIZE_MAX + 64];
    const struct {
        uint32_t id, size;
        uint8_t  type;
        bool     good;
    } cases[] = {
        { 7, 8, SND_REC_STRING, false },                           /* an id of the tables */
        { LATE(7), 0, SND_REC_STRING, false },                     /* nothing */
        { LATE(7), SND_LATE_SIZE_MAX + 1, SND_REC_STRING, false }, /* too much */
        { LATE(7), SND_LATE_SIZE_MAX, SND_REC_STRING, true },
        { LATE(7), 8, SND_REC_THREAD, false }, /* a type that is in tables alone */
        { LATE(7), 8, 99, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct synth *s = synth_new(scratch_path("bad"), &late);
        uint32_t      t = synth_thread(s, "main", 0), replaced;
        if (cases[i].size == 0)
            put_part(s, t, true, cases[i].type, cases[i].id, 0, zeros, 16);
        else if (cases[i].good || cases[i].size == 8)
            put_record(s, t, cases[i].type, cases[i].id, zeros, cases[i].size);
        else
            put_part(s, t, false, cases[i].type, cases[i].id, cases[i].size, zeros, 48);
        put_string(s, t, LATE(9), "after");
        struct sonde_trace *trace = finish(s, "bad");
        if (trace->processes[0].damage.bad_ids != !cases[i].good)
            fail_msg("case %zu: %u bad ids", i, (unsigned)trace->processes[0].damage.bad_ids);
        replaced = snd_late_replace(&trace->processes[0].tables, cases[i].type, LATE(7));
        assert_int_equal(replaced != LATE(7), cases[i].good);
        assert_true(text_is(name_of(trace, 9), "after"));
        sonde_trace_close(trace);
    }
}

/* Without the flag of the file nothing is looked for; other ids stay as they are. */
static void ids_that_are_not_late(void **state)
{
    struct synth *s = synth_new(scratch_path("plain"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    put_string(s, t, LATE(7), "late");
    struct sonde_trace      *trace = finish(s, "plain");
    const struct snd_tables *tables = &trace->processes[0].tables;
    assert_int_equal(snd_late_replace(tables, SND_REC_STRING, LATE(7)), LATE(7));
    assert_int_equal(snd_late_replace(tables, SND_REC_STRING, 7), 7);
    assert_int_equal(snd_late_replace(tables, SND_REC_STRING, SND_OWN_NAME | LATE(7)),
                     SND_OWN_NAME | LATE(7));
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(late_records_are_read), cmocka_unit_test(parts_of_different_records),
        cmocka_unit_test(parts_in_two_chunks),   cmocka_unit_test(records_that_cannot_be),
        cmocka_unit_test(ids_that_are_not_late),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
