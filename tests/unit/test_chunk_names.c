/* SPDX-License-Identifier: Apache-2.0 */
/* read/tables/late_records.c: names that one chunk alone has, whole, in parts, and as no recorder writes them. */
#include "format/fields.h"
#include "read/reader.h"
#include "scratch.h"

static const struct synth_options own = { .flags = SND_FILE_OWN_NAMES };

#define LONG "a name that is longer than the forty-eight bytes of it that one event has room for"

/* The part of a name from `at` on; `length`: what it says of the whole. */
static void put_part(struct synth *s, uint32_t t, uint32_t number, const char *text, size_t at,
                     uint32_t length)
{
    uint64_t words[8] = { SND_EV_NAME, SND_PAIR(number, length) };
    size_t   left = strlen(text + at);

    memcpy(&words[2], text + at, left < SND_NAME_BYTES ? left : SND_NAME_BYTES);
    synth_event(s, t, 10, words, 8);
}

static void put_name(struct synth *s, uint32_t t, uint32_t number, const char *text)
{
    for (size_t at = 0; at < strlen(text); at += SND_NAME_BYTES)
        put_part(s, t, number, text, at, (uint32_t)strlen(text));
}

static void put_range(struct synth *s, uint32_t t, uint64_t ns, uint32_t number)
{
    synth_begin(s, t, ns, SND_OWN_NAME | number, 0);
    synth_end(s, t, ns + 5);
}

struct seen {
    struct sonde_trace *trace;
    char                text[1024];
};

static bool list_name(const struct sonde_event *event, void *user)
{
    struct seen *seen = user;

    if (event->kind == SONDE_EVENT_BEGIN) {
        struct sonde_text name = sonde_trace_string(seen->trace, 0, event->begin.name);
        snprintf(seen->text + strlen(seen->text), sizeof seen->text - strlen(seen->text), "%.*s|",
                 (int)name.length, name.bytes);
    }
    return true;
}

/* The names of the ranges, in order. */
static void check_names(struct synth *s, const char *expected)
{
    struct seen seen = { .text = "" };

    synth_close(s, true);
    seen.trace = scratch_open(scratch_path("own"));
    assert_int_equal(sonde_trace_walk(seen.trace, SONDE_BY_THREAD, list_name, &seen, NULL),
                     SONDE_OK);
    assert_string_equal(seen.text, expected);
    sonde_trace_close(seen.trace);
}

static void names_of_a_chunk(void **state)
{
    struct synth *s = synth_new(scratch_path("own"), &own);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    put_name(s, t, 0, "first");
    put_range(s, t, 20, 0);
    put_name(s, t, 1, LONG);
    put_range(s, t, 30, 1);
    put_range(s, t, 40, 0);
    put_range(s, t, 50, 2); /* not defined yet */
    put_name(s, t, 2, "third");
    put_range(s, t, 60, 2);
    synth_seal(s, t);
    put_name(s, t, 0, "of the next chunk");
    put_range(s, t, 70, 0);
    put_range(s, t, 80, 1); /* the first chunk's */
    check_names(s, "first|" LONG "|first|(unknown)|third|of the next chunk|(unknown)|");
}

/* After a change of thread the numbers begin anew. */
static void names_after_a_thread(void **state)
{
    struct synth *s = synth_new(scratch_path("own"), &own);
    uint32_t      t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);

    (void)state;
    put_name(s, t, 0, "of main");
    put_range(s, t, 20, 0);
    synth_share(s, t, u);
    put_range(s, u, 30, 0);
    put_name(s, u, 0, LONG);
    put_range(s, u, 40, 0);
    put_name(s, u, 1, "second");
    put_range(s, u, 50, 1);
    check_names(s, "of main|(unknown)|" LONG "|second|");
}

/* A number that is skipped, or a part of a name that is over, is damage: the names around it are what they are. */
static void names_that_cannot_be(void **state)
{
    struct synth *s = synth_new(scratch_path("own"), &own);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    put_part(s, t, 5, "skipped", 0, 7);
    put_name(s, t, 0, "first");
    put_part(s, t, 0, LONG, 0, 7); /* one part more than it has */
    put_range(s, t, 20, 0);
    put_part(s, t, 7, "skipped", 0, 7);
    put_name(s, t, 1, "second");
    put_part(s, t, 0, "late", 0, 4);
    put_range(s, t, 30, 1);
    put_range(s, t, 40, 0);
    put_range(s, t, 50, 7);
    check_names(s, "first|second|first|(unknown)|");
}

/* A name is as long as its parts, and no longer than names may be. */
static void lengths_of_names(void **state)
{
    struct synth *s = synth_new(scratch_path("own"), &own);
    uint32_t      t = synth_thread(s, "main", 0);

    (void)state;
    put_part(s, t, 0, "abcdef", 0, 3);
    put_range(s, t, 20, 0);
    put_part(s, t, 1, LONG, 0, UINT32_MAX); /* what follows it never came */
    put_range(s, t, 30, 1);
    put_part(s, t, 2, LONG, 0, 48);
    put_range(s, t, 40, 2);
    check_names(s, "abc|a name that is longer than the forty-eight bytes|a name that is longer "
                   "than the forty-eight "
                   "bytes|");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_of_a_chunk),
        cmocka_unit_test(names_after_a_thread),
        cmocka_unit_test(names_that_cannot_be),
        cmocka_unit_test(lengths_of_names),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
