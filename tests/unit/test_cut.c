/* SPDX-License-Identifier: Apache-2.0 */
/* A closed file that was cut, or lost a part, says so: at every 64 KiB, recorded and packed. */
#include <fcntl.h>
#include <pthread.h>

#include "format/layout.h"
#include "unit/recorded.h"

#define GRAIN ((off_t)65536)
#define THREADS 3

static void *work(void *rounds)
{
    for (size_t i = 0; i < *(size_t *)rounds; i++) {
        SONDE_RANGE("outer");
        SONDE_RANGE("inner");
    }
    return NULL;
}

static void record(const char *name, size_t rounds, uint64_t max_bytes, enum sonde_limit limit)
{
    struct sonde_options options = recorded_options(name);
    pthread_t            threads[THREADS];

    options.chunk_bytes = (size_t)GRAIN;
    options.max_bytes = max_bytes;
    options.limit = limit;
    recorded_start(&options);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, &rounds), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    recorded_stop();
}

static struct sonde_check check(const char *name)
{
    struct sonde_check found;

    assert_int_equal(sonde_check(recorded_path(name), &found, NULL), SONDE_OK);
    return found;
}

/* A chunk that goes over to another thread says so, in an event that is not shown. */
static void assert_about(uint64_t found, uint64_t expected)
{
    assert_in_range(found, expected, expected + THREADS);
}

static off_t size_of(const char *name)
{
    struct stat st;

    assert_int_equal(stat(recorded_path(name), &st), 0);
    return st.st_size;
}

static void copy(const char *from, const char *to)
{
    char command[2 * PATH_MAX + 16], source[PATH_MAX];

    snprintf(source, sizeof source, "%s", recorded_path(from));
    snprintf(command, sizeof command, "cp '%s' '%s'", source, recorded_path(to));
    assert_int_equal(system(command), 0);
}

/* `name` at every multiple of `step` short of its end. */
static void cut_everywhere(const char *name, off_t step)
{
    off_t size = size_of(name);

    assert_int_equal(check(name).missing_bytes, 0);
    assert_int_equal(check(name).missing_events, 0);
    copy(name, "cut.sonde");
    for (off_t at = (size - 1) / step * step; at >= (off_t)SND_HEADER_SIZE; at -= step) {
        assert_int_equal(truncate(recorded_path("cut.sonde"), at), 0);
        struct sonde_check found = check("cut.sonde");
        assert_true(found.closed);
        assert_int_equal(found.missing_bytes, size - at);
    }
}

static void a_cut_is_seen_wherever_it_is(void **state)
{
    (void)state;
    record("whole.sonde", 30000, 0, SONDE_LIMIT_STOP);
    assert_true(size_of("whole.sonde") > 20 * GRAIN);
    cut_everywhere("whole.sonde", GRAIN);
    struct sonde_trace *trace = recorded_open("cut.sonde"); /* nothing but the header */
    assert_about(recorded_ledger(trace, "missing_events"), THREADS * 30000 * 4);
    assert_true(recorded_ledger(trace, "missing_bytes") > 0);
    sonde_trace_close(trace);
}

static void a_cut_of_a_packed_file_is_seen(void **state)
{
    char from[PATH_MAX];

    (void)state;
    snprintf(from, sizeof from, "%s", recorded_path("whole.sonde"));
    if (sonde_pack(from, recorded_path("packed.sonde"), 0, NULL) == SONDE_E_UNSUPPORTED)
        skip();
    assert_int_equal(check("packed.sonde").events, check("whole.sonde").events);
    cut_everywhere("packed.sonde", 4096);
    /* Packing what is left of a cut file does not make it whole. */
    copy("whole.sonde", "half.sonde");
    assert_int_equal(truncate(recorded_path("half.sonde"), 10 * GRAIN), 0);
    snprintf(from, sizeof from, "%s", recorded_path("half.sonde"));
    assert_int_equal(sonde_pack(from, recorded_path("packed.sonde"), 0, NULL), SONDE_OK);
    assert_int_equal(check("packed.sonde").missing_bytes, 0);
    assert_int_equal(check("packed.sonde").missing_events, check("half.sonde").missing_events);
    assert_true(check("packed.sonde").missing_events > 0);
}

/* A file of the right length that has zeroes where its chunks were, as a broken copy leaves it. */
static void zeroes_for_chunks_are_seen(void **state)
{
    (void)state;
    off_t size = size_of("whole.sonde");
    copy("whole.sonde", "zeroes.sonde");
    assert_int_equal(truncate(recorded_path("zeroes.sonde"), size / 2 / GRAIN * GRAIN), 0);
    assert_int_equal(truncate(recorded_path("zeroes.sonde"), size), 0);
    struct sonde_check found = check("zeroes.sonde");
    assert_int_equal(found.missing_bytes, 0);
    assert_true(found.missing_events > 0);
    assert_about(found.missing_events + found.events, check("whole.sonde").events);
}

static void recycled_chunks_are_not_missing(void **state)
{
    (void)state;
    record("last.sonde", 60000, (uint64_t)1 << 20, SONDE_LIMIT_KEEP_LAST);
    struct sonde_trace *trace = recorded_open("last.sonde");
    assert_true(recorded_ledger(trace, "recycled_chunks") > 0);
    assert_int_equal(recorded_ledger(trace, "missing_events"), 0);
    assert_int_equal(recorded_ledger(trace, "missing_bytes"), 0);
    sonde_trace_close(trace);
    cut_everywhere("last.sonde", GRAIN);
}

/* Older files do not tell how long they were. */
static void files_that_do_not_tell_are_whole(void **state)
{
    const uint64_t none[2] = { 0, 0 };

    (void)state;
    copy("whole.sonde", "old.sonde");
    int fd = open(recorded_path("old.sonde"), O_RDWR | O_CLOEXEC);
    assert_int_equal(pwrite(fd, none, sizeof none, offsetof(struct snd_file_header, closed_bytes)),
                     sizeof none);
    close(fd);
    assert_int_equal(truncate(recorded_path("old.sonde"), 10 * GRAIN), 0);
    assert_int_equal(check("old.sonde").missing_bytes, 0);
    assert_int_equal(check("old.sonde").missing_events, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_is_seen_wherever_it_is),
        cmocka_unit_test(a_cut_of_a_packed_file_is_seen),
        cmocka_unit_test(zeroes_for_chunks_are_seen),
        cmocka_unit_test(recycled_chunks_are_not_missing),
        cmocka_unit_test(files_that_do_not_tell_are_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
