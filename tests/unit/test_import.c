/* SPDX-License-Identifier: Apache-2.0 */
/* src/import: numbers by their digits, order, what a file that breaks off leaves. */
#include <fcntl.h>
#include <sys/stat.h>

#include "scratch.h" /* before it, cmocka and what that needs */
#include "base/text/buf.h"
#include "import/import.h"
#include "import/out/sorted_items.h"
#include "import/text/scan.h"
#include "read/reader.h"

static struct snd_span span(const char *text)
{
    return (struct snd_span){ text, strlen(text) };
}

static void test_times_are_read_by_their_digits(void **state)
{
    static const struct {
        const char *text;
        int64_t     ns;
        bool        inexact;
    } cases[] = {
        { "0", 0, false },
        { "1700000000000000.125", 1700000000000000125, false },
        { "3924225109420.452", 3924225109420452, false },
        { "1.5", 1500, false },
        { "1.50000", 1500, false },
        { "-1.5", -1500, false },
        { "0.0005", 0, true },
        { "\"12\"", 12000, false },
        { "1e3", 1000000, false },
        { "1.7e+15", 1700000000000000000, false },
        { "12345e-4", 1234, true },
        { "25E-3", 25, false },
        { "9223372036854775.807", INT64_MAX, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int64_t ns = -1;
        bool    inexact = false;
        assert_true(snd_scan_us(span(cases[i].text), &ns, &inexact));
        assert_int_equal(ns, cases[i].ns);
        assert_int_equal(inexact, cases[i].inexact);
    }
}

static void test_what_is_no_time(void **state)
{
    static const char *const none[] = { "",   "\"\"", "-",      "NaN",   "true",
                                        "[]", "1.5x", "1e9999", "1e400", "9223372036854775.808" };

    (void)state;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        int64_t ns;
        bool    inexact = false;
        assert_false(snd_scan_us(span(none[i]), &ns, &inexact));
    }
}

/* `odd`: it is read, though JSON does not allow it. */
static void test_values(void **state)
{
    static const struct {
        const char *text;
        int         answer; /* 1 a value, 0 it is cut off, -1 it is none */
        bool        odd;
    } cases[] = {
        { "\"a\\\"b\" ", 1, false }, { "\"a\tb\" ", 1, true },
        { "\"abc", 0, false },       { "[1, [2, {\"a\": []}]] ", 1, false },
        { "[1, 2,] ", 1, true },     { "[1 2] ", -1, false },
        { "{\"a\" 1} ", -1, false }, { "{a: 1} ", -1, false },
        { "[} ", -1, false },        { "NaN ", 1, true },
        { "-Infinity,", 1, true },   { "01 ", -1, false },
        { "1.5e3]", 1, false },      { "nul ", -1, false },
        { "1.", 0, false },          { "[[[", 0, false },
        { "{\"a\": ", 0, false },    { "{\"a\": 1", 0, false },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char        text[128] = { 0 };
        bool        odd = false;
        const char *after;
        strcpy(text, cases[i].text);
        after = snd_scan_value(text, text + strlen(text), &odd);
        assert_int_equal(after == NULL ? 0 : after == SND_SCAN_BAD ? -1 : 1, cases[i].answer);
        assert_int_equal(odd, cases[i].odd);
    }
}

static void test_nesting_is_bounded(void **state)
{
    char text[4096 + SND_SCAN_PAD] = { 0 };
    bool odd = false;

    (void)state;
    memset(text, '[', 4096);
    assert_ptr_equal(snd_scan_value(text, text + 4096, &odd), SND_SCAN_BAD);
}

static void test_texts(void **state)
{
    struct sonde_buffer text = { 0 };

    (void)state;
    snd_scan_text(span("\"a\\u00e9\\ud83d\\ude00\\n\\/\\udc80\\ud800x\""), &text);
    assert_string_equal(text.bytes, "a\xc3\xa9\xf0\x9f\x98\x80\n/\x80\xed\xa0\x80x");
    sonde_buffer_release(&text);
}

struct order {
    struct snd_item last;
    uint64_t        count, wrong;
};

static void look_at(void *user, const struct snd_item *item)
{
    struct order *order = user;

    if (order->count++ > 0) {
        const struct snd_item *x = &order->last;
        order->wrong += x->lane != item->lane     ? x->lane > item->lane
                        : x->start != item->start ? x->start > item->start
                        : x->rank != item->rank   ? x->rank > item->rank
                                                  : x->index >= item->index;
    }
    order->last = *item;
}

/* More than fits in memory, through the temporary file. */
static void test_items_in_order(void **state)
{
    const uint32_t   counts[] = { 0, 1, 1000, 49152, 49153, 300000 };
    struct snd_items items;
    uint64_t         random = 7;

    (void)state;
    for (size_t n = 0; n < sizeof counts / sizeof *counts; n++) {
        struct order order = { .count = 0 };
        assert_true(snd_items_begin(&items));
        for (uint32_t i = 0; i < counts[n]; i++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            struct snd_item item = { .lane = random >> 62,
                                     .start = (int64_t)(random >> 44 & 0xfff),
                                     .rank = random >> 60 };
            assert_true(snd_items_add(&items, &item));
        }
        assert_true(snd_items_walk(&items, look_at, &order));
        assert_int_equal(order.count, counts[n]);
        assert_int_equal(order.wrong, 0);
        snd_items_release(&items);
    }
}

/* Imports text, and says how many events readers find; -1: it is refused. */
static int64_t import_and_count(const char *text, size_t length, uint64_t *lost)
{
    const char         *path = scratch_path("imported");
    struct sonde_error  err;
    int                 fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct sonde_trace *trace;

    assert_true(fd >= 0);
    enum sonde_status status = snd_import_text(text, length, "text", fd, -1, &err);
    close(fd);
    if (status != SONDE_OK)
        return -1;
    assert_int_equal(sonde_trace_open(path, &trace, &err), SONDE_OK);
    assert_int_equal(trace->processes[0].damage.chunks + trace->processes[0].damage.bad_ids, 0);
    struct sonde_tally_row row;
    int64_t                events = -1;
    for (uint32_t i = 0; sonde_trace_tally(trace, 0, i, &row); i++)
        if (row.kind == SND_TALLY_IMPORT) {
            events = (int64_t)row.words[SND_IMPORT_EVENTS];
            *lost = row.words[SND_IMPORT_LOST];
        }
    sonde_trace_close(trace);
    return events;
}

/* Cut at any byte: each event that is whole is there, and one that is not counts. */
static void test_cut_at_any_byte(void **state)
{
    char     text[1024];
    size_t   ends[4], length = (size_t)sprintf(text, "{\"traceEvents\": [");
    uint64_t lost = 0;

    (void)state;
    for (int i = 0; i < 4; i++) {
        length += (size_t)sprintf(
            text + length,
            "%s{\"ph\": \"X\", \"name\": \"n%d\", \"pid\": 1, \"tid\": 1, \"ts\": %d, \"dur\": 1}",
            i ? ",\n" : "", i, i);
        ends[i] = length;
    }
    for (size_t cut = 0; cut <= length; cut++) {
        int64_t events = import_and_count(text, cut, &lost);
        int     whole = 0;
        while (whole < 4 && ends[whole] <= cut)
            whole++;
        if (whole == 0)
            continue; /* refused, or the one that breaks off is known well enough */
        assert_true(events >= whole && events <= whole + 1);
        assert_true((uint64_t)events - lost >= (uint64_t)whole);
    }
    assert_int_equal(import_and_count(text, length, &lost), 4);
}

/* An event that is longer than the window may be is left out; those around it are there. */
static void test_an_event_without_end(void **state)
{
    size_t   room = (size_t)9 << 20;
    char    *text = malloc(room);
    uint64_t lost;
    size_t   at;

    (void)state;
    assert_non_null(text);
    at = (size_t)sprintf(text,
                         "[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"dur\":1},{\"args\":{\"x\":\"");
    memset(text + at, 'x', (size_t)8 << 20);
    at += (size_t)8 << 20;
    at += (size_t)sprintf(text + at, "\"},\"ph\":\"X\",\"name\":\"b\",\"ts\":2,\"dur\":1},{\"ph\":"
                                     "\"X\",\"name\":\"c\",\"ts\":3,\"dur\":1}]");
    assert_int_equal(import_and_count(text, at, &lost), 3);
    assert_int_equal(lost, 1);
    free(text);
}

/* Which functions of Python a file says were called in which: only what can be so is taken. */
static void test_callers_begin_before_what_they_call(void **state)
{
    static const struct {
        const char *name;
        int         ts, dur, id, parent;
    } calls[] = {
        { "early", 1, 2, 1, 2 },   { "outer", 10, 50, 2, 0 }, { "inner", 20, 10, 3, 2 },
        { "first", 70, 10, 4, 6 }, { "second", 70, 9, 5, 4 }, { "third", 70, 8, 6, 5 },
    };
    char                 text[2048];
    size_t               length = (size_t)sprintf(text, "[");
    const char          *path = scratch_path("callers");
    int                  fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    struct sonde_events *events;

    (void)state;
    assert_true(fd >= 0);
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        length +=
            (size_t)sprintf(text + length,
                            "%s{\"ph\":\"X\",\"cat\":\"python_function\",\"name\":\"%s\","
                            "\"pid\":1,\"tid\":1,\"ts\":%d,\"dur\":%d,\"args\":{\"Python id\":%d,"
                            "\"Python parent id\":%d}}",
                            i ? "," : "", calls[i].name, calls[i].ts, calls[i].dur, calls[i].id,
                            calls[i].parent);
    length += (size_t)sprintf(text + length, "]");
    assert_int_equal(snd_import_text(text, length, "text", fd, -1, NULL), SONDE_OK);
    close(fd);
    struct sonde_trace *trace = scratch_open(path);
    assert_int_equal(sonde_events_new(trace, NULL, &events, NULL), SONDE_OK);
    const struct sonde_events_columns *c = sonde_events_columns(events);
    assert_int_equal(c->count, sizeof calls / sizeof *calls);
    assert_int_equal(c->parent[0], -1); /* it began before what it says it was called by */
    assert_int_equal(c->parent[1], -1);
    assert_int_equal(c->parent[2], 1);
    assert_int_equal(c->self_ns[1], 40000);
    /* Three in a circle, of one moment: going up comes to an end. */
    for (int32_t i = 3; i < 6; i++) {
        int32_t at = i, steps = 0;
        while (at != -1 && steps < 6) {
            at = c->parent[at];
            steps++;
        }
        assert_int_equal(at, -1);
    }
    sonde_events_free(events);
    sonde_trace_close(trace);
}

/* What cannot be read or written, or is nothing to import: said, with no trace and nothing beside it. */
static void test_what_is_refused_leaves_nothing(void **state)
{
    static const struct {
        const char       *from, *to;
        enum sonde_status status;
        const char       *why;
    } cases[] = {
        { "missing", "made/t.sonde", SONDE_E_IO, "cannot open" },
        { "folder", "made/t.sonde", SONDE_E_IO, "a folder" },
        { "no_tool", "made/t.sonde", SONDE_E_FORMAT, "" },
        { "good", "nowhere/t.sonde", SONDE_E_IO, "temporary file" },
        { "good", "made/taken", SONDE_E_IO, "cannot rename" },
    };
    static const char good[] =
        "[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":1,\"dur\":1}]";

    (void)state;
    assert_int_equal(mkdir(scratch_path("folder"), 0700), 0);
    assert_int_equal(mkdir(scratch_path("made"), 0700), 0);
    assert_int_equal(mkdir(scratch_path("made/taken"), 0700), 0);
    scratch_save(scratch_path("no_tool"), "nothing\n", 8);
    scratch_save(scratch_path("good"), good, sizeof good - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sonde_error err = { 0 };
        assert_int_equal(sonde_import(scratch_path(cases[i].from), scratch_path(cases[i].to), 0,
                                      &err),
                         cases[i].status);
        if (!strstr(err.message, cases[i].why))
            fail_msg("%s to %s: %s", cases[i].from, cases[i].to, err.message);
        assert_int_equal(rmdir(scratch_path("made/taken")), 0); /* still empty, */
        assert_int_equal(rmdir(scratch_path("made")), 0);       /* and alone in its folder */
        assert_int_equal(mkdir(scratch_path("made"), 0700), 0);
        assert_int_equal(mkdir(scratch_path("made/taken"), 0700), 0);
    }
    assert_int_equal(sonde_import(scratch_path("good"), scratch_path("made/t.sonde"), 0, NULL),
                     SONDE_OK);
    struct sonde_trace *trace = scratch_open(scratch_path("made/t.sonde"));
    sonde_trace_close(trace);
    assert_int_equal(remove(scratch_path("made/t.sonde")), 0);
    assert_int_equal(rmdir(scratch_path("made/taken")), 0);
    assert_int_equal(rmdir(scratch_path("made")), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times_are_read_by_their_digits),
        cmocka_unit_test(test_what_is_no_time),
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_nesting_is_bounded),
        cmocka_unit_test(test_texts),
        cmocka_unit_test(test_items_in_order),
        cmocka_unit_test(test_cut_at_any_byte),
        cmocka_unit_test(test_an_event_without_end),
        cmocka_unit_test(test_callers_begin_before_what_they_call),
        cmocka_unit_test(test_what_is_refused_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
