/* SPDX-License-Identifier: Apache-2.0 */
/* A flight recorder of a program that never stops making names: the last events have theirs. */
#include <pthread.h>

#include "unit/recorded.h"

#define THREADS 3
#define NAMES 350000u /* a thread: over a million in all */
#define LIMIT ((uint64_t)1 << 20)

static char known[] = "in the tables before they are full";

static void make_name(char *name, size_t size, unsigned thread, unsigned i)
{
    /* Every seventh is longer than one event holds. */
    snprintf(name, size, "%u/%u%s", thread, i,
             i % 7 ? ""
                   : " with a long tail of words that no single event of forty-eight bytes holds");
}

static void *work(void *argument)
{
    unsigned thread = *(unsigned *)argument;
    char     name[160];

    for (unsigned i = 0; i < NAMES; i++) {
        make_name(name, sizeof name, thread, i);
        sonde_begin(name);
        if (i % 100 == 0) {
            sonde_mark(name);
            sonde_mark(known);
        }
        {
            SONDE_RANGE("the same each time");
        }
        sonde_end();
    }
    return NULL;
}

struct seen {
    struct sonde_trace *trace;
    unsigned            next[THREADS]; /* number that the next range of the thread must have */
    uint64_t            named, same, known;
};

static bool on_event(const struct sonde_event *event, void *user)
{
    struct seen *seen = user;
    unsigned     thread, i;
    char         text[256], expected[160];

    if (event->kind != SONDE_EVENT_BEGIN && event->kind != SONDE_EVENT_MARK)
        return true;
    uint32_t          id = event->kind == SONDE_EVENT_BEGIN ? event->begin.name : event->mark.name;
    struct sonde_text name = sonde_trace_string(seen->trace, event->process, id);
    snprintf(text, sizeof text, "%.*s", (int)name.length, name.bytes);
    if (strcmp(text, "the same each time") == 0) {
        seen->same++;
        return true;
    }
    if (strcmp(text, known) == 0) {
        seen->known++;
        return true;
    }
    assert_int_equal(sscanf(text, "%u/%u", &thread, &i), 2);
    assert_true(thread < THREADS);
    make_name(expected, sizeof expected, thread, i);
    assert_string_equal(text, expected);
    if (event->kind == SONDE_EVENT_MARK)
        return true;
    if (seen->next[thread] != 0 && seen->next[thread] != i)
        fail_msg("thread %u: range %u comes after %u", thread, i, seen->next[thread] - 1);
    seen->next[thread] = i + 1;
    seen->named++;
    return true;
}

static struct seen look(const char *file)
{
    struct seen seen = { .trace = recorded_open(file) };

    recorded_walk(seen.trace, on_event, &seen);
    recorded_check_kept_last(seen.trace);
    sonde_trace_close(seen.trace);
    return seen;
}

static void the_last_events_have_their_names(void **state)
{
    struct sonde_options options = recorded_options("names.sonde");
    pthread_t            threads[THREADS];
    unsigned             numbers[THREADS];
    struct stat          st;
    char                 from[PATH_MAX];

    (void)state;
    options.max_bytes = LIMIT;
    options.limit = SONDE_LIMIT_KEEP_LAST;
    recorded_start(&options);
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    recorded_stop();
    snprintf(from, sizeof from, "%s", recorded_path("names.sonde"));
    assert_int_equal(stat(from, &st), 0);
    assert_true((uint64_t)st.st_size <= LIMIT);

    struct seen seen = look("names.sonde");
    unsigned    whole = 0;
    for (unsigned i = 0; i < THREADS; i++)
        whole += seen.next[i] == NAMES;
    assert_true(whole >= 1); /* the thread that ended last, at least, is there to its end */
    assert_true(seen.named > 1000);
    assert_true(seen.same > 1000);
    assert_true(seen.known > 10);
    if (sonde_pack(from, recorded_path("packed.sonde"), 0, NULL) == SONDE_OK) {
        struct seen packed = look("packed.sonde");
        assert_int_equal(packed.named, seen.named);
        assert_int_equal(packed.same, seen.same);
        assert_int_equal(packed.known, seen.known);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_events_have_their_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
