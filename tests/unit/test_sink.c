/* SPDX-License-Identifier: Apache-2.0 */
/* base/files/sink.c: the buffered writer, and writes that fail. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/files/behind_sink.h"
#include "base/text/buf.h"
#include "base/files/sink.h"
#include "full_disk.h"

static void keeps_the_order(void **state)
{
    struct sonde_buffer buffer = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&buffer);
    struct snd_out      out;
    char               *large = calloc(1, 3 * SND_OUT_BYTES);

    (void)state;
    memset(large, 'x', 3 * SND_OUT_BYTES);
    snd_out_init(&out, &sink);
    snd_out_text(&out, "<");
    snd_out_put(&out, large, 3 * SND_OUT_BYTES);
    snd_out_format(&out, "%d>", 42);
    snd_out_repeat(&out, '-', 100);
    assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
    assert_int_equal(buffer.length, 1 + 3 * SND_OUT_BYTES + 3 + 100);
    assert_memory_equal(buffer.bytes, "<xx", 3);
    assert_memory_equal(buffer.bytes + 3 * SND_OUT_BYTES, "x42>--", 6);
    sonde_buffer_release(&buffer);
    free(large);
}

static void reports_a_failure_once_and_late(void **state)
{
    size_t             room = 10;
    struct sonde_sink  sink = { full_disk_write, &room };
    struct snd_out     out;
    struct sonde_error err;

    (void)state;
    snd_out_init(&out, &sink);
    snd_out_repeat(&out, 'x', 2 * SND_OUT_BYTES);
    assert_true(out.failed);
    errno = 0;
    assert_int_equal(snd_out_finish(&out, &err), SONDE_E_IO);
    assert_int_equal(err.os_error, ENOSPC);
    assert_non_null(strstr(err.message, "No space left"));
}

static void writes_to_a_descriptor(void **state)
{
    int               ends[2];
    char              got[8] = "";
    struct sonde_sink sink;

    (void)state;
    assert_int_equal(pipe(ends), 0);
    sink = sonde_sink_fd(ends[1]);
    assert_true(sink.write(sink.user, "abc", 3));
    assert_int_equal(read(ends[0], got, sizeof got), 3);
    assert_string_equal(got, "abc");
    close(ends[0]);
    close(ends[1]);
    assert_false(sink.write(sink.user, "abc", 3));
}

static void quotes_csv(void **state)
{
    static const struct {
        const char *in, *expected;
    } cases[] = { { "", "" },
                  { "plain", "plain" },
                  { "a,b", "\"a,b\"" },
                  { "a\"b", "\"a\"\"b\"" },
                  { "a\nb", "a\\nb" },
                  { "a\x1b[0m", "a\\x1b[0m" },
                  { "\xff\xc3\xa9", "\\xff\xc3\xa9" },
                  { "=1+1", "'=1+1" },
                  { "+x,y", "\"'+x,y\"" },
                  { "-x", "'-x" },
                  { "@x", "'@x" },
                  { "a-b", "a-b" },
                  { " a", "\" a\"" },
                  { "a b", "a b" } };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct sonde_buffer buffer = { 0 };
        struct sonde_sink   sink = sonde_sink_buffer(&buffer);
        struct snd_out      out;
        snd_out_init(&out, &sink);
        snd_out_csv(&out, cases[i].in, strlen(cases[i].in));
        assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
        assert_string_equal(buffer.bytes ? buffer.bytes : "", cases[i].expected);
        sonde_buffer_release(&buffer);
    }
}

static void keeps_the_lines_of_a_stack(void **state)
{
    struct sonde_buffer buffer = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&buffer);
    struct snd_out      out;

    (void)state;
    snd_out_init(&out, &sink);
    snd_out_csv_lines(&out, "f\t\ng", 4);
    assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
    assert_string_equal(buffer.bytes, "\"f\\t\ng\"");
    sonde_buffer_release(&buffer);
}

/* Where numbers get one digit more. */
static void writes_powers_of_ten(void **state)
{
    char expected[64];

    (void)state;
    for (uint64_t power = 1; power <= 10000000000000000000u / 10; power *= 10)
        for (uint64_t value = power - 1; value <= power + 1; value++) {
            struct sonde_buffer buffer = { 0 };
            struct sonde_sink   sink = sonde_sink_buffer(&buffer);
            struct snd_out      out;
            snd_out_init(&out, &sink);
            snd_out_uint(&out, value);
            snd_out_us(&out, -(int64_t)value);
            assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
            snprintf(expected, sizeof expected, "%" PRIu64 "%s%" PRIu64 ".%03u", value,
                     value ? "-" : "", value / 1000, (unsigned)(value % 1000));
            assert_string_equal(buffer.bytes, expected);
            sonde_buffer_release(&buffer);
        }
}

/* At every place of the buffer, so that numbers meet its end as well. */
static void writes_numbers_of_any_length(void **state)
{
    struct sonde_buffer buffer = { 0 }, expected = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&buffer);
    struct snd_out      out;
    uint64_t            value = 0;

    (void)state;
    snd_out_init(&out, &sink);
    for (int i = 0; i < 3000; i++, value = i % 60 ? value * 3 + (uint64_t)i : 0) {
        snd_out_uint(&out, value);
        snd_out_text(&out, ",");
        snd_out_int(&out, -(int64_t)(value >> 1));
        snd_out_text(&out, ",");
        snd_out_us(&out, (int64_t)value);
        snd_out_text(&out, "\n");
        uint64_t size = (int64_t)value < 0 ? 0 - value : value;
        snd_buf_format(&expected, "%" PRIu64 ",%" PRId64 ",%s%" PRIu64 ".%03u\n", value,
                       -(int64_t)(value >> 1), (int64_t)value < 0 ? "-" : "", size / 1000,
                       (unsigned)(size % 1000));
    }
    assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
    assert_true(buffer.length > 2 * SND_OUT_BYTES);
    assert_string_equal(buffer.bytes, expected.bytes);
    sonde_buffer_release(&buffer);
    sonde_buffer_release(&expected);
}

static void has_back_what_was_put(void **state)
{
    struct sonde_buffer buffer = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&buffer);
    struct snd_out      out;

    (void)state;
    snd_out_init(&out, &sink);
    snd_out_text(&out, "before ");
    struct snd_out_mark mark = snd_out_mark(&out);
    assert_int_equal(snd_out_since(&out, mark), 0);
    snd_out_text(&out, "since");
    assert_int_equal(snd_out_since(&out, mark), 5);
    assert_memory_equal(mark.at, "since", 5);
    snd_out_repeat(&out, '-', SND_OUT_BYTES - 4); /* the begin of it has left the buffer */
    assert_int_equal(snd_out_since(&out, mark), 0);
    assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
    sonde_buffer_release(&buffer);
}

/* ------------------------------------------------------------ by another thread */

struct sum {
    struct sonde_buffer buffer;
    pthread_t           writer; /* of the last bytes */
    size_t              room;
};

static bool write_there(void *user, const void *data, size_t length)
{
    struct sum *sum = user;

    sum->writer = pthread_self();
    snd_buf_put(&sum->buffer, data, length);
    return full_disk_write(&sum->room, data, length);
}

/* What is put, where to, and what is expected there. */
struct course {
    struct sum          sum;
    struct sonde_buffer expected;
    struct sonde_sink   sink;
    struct snd_out      out;
};

static void begin_ahead(struct course *course, size_t room, size_t ahead)
{
    *course = (struct course){ .sum = { .room = room } };
    course->sink = (struct sonde_sink){ write_there, &course->sum };
    snd_out_init(&course->out, &course->sink);
    snd_out_apart(&course->out, ahead);
}

static void begin_apart(struct course *course, size_t room)
{
    begin_ahead(course, room, SND_AHEAD_FEW);
}

static void release(struct course *course)
{
    sonde_buffer_release(&course->sum.buffer);
    sonde_buffer_release(&course->expected);
}

static void put_numbers(struct course *course, int count)
{
    for (int i = 0; i < count; i++) {
        snd_out_int(&course->out, i);
        snd_out_text(&course->out, "\n");
        snd_buf_format(&course->expected, "%d\n", i);
    }
}

static void another_thread_writes_the_same(void **state)
{
    struct course course;
    size_t        size = 3 * SND_BEHIND_BYTES + 7;
    char         *large = malloc(size);

    (void)state;
    memset(large, 'x', size);
    begin_apart(&course, SIZE_MAX);
    put_numbers(&course, 200000);
    snd_out_put(&course.out, large, size);
    snd_buf_put(&course.expected, large, size);
    put_numbers(&course, 300000);
    assert_int_equal(snd_out_finish(&course.out, NULL), SONDE_OK);
    assert_false(pthread_equal(course.sum.writer, pthread_self()));
    assert_int_equal(course.sum.buffer.length, course.expected.length);
    assert_memory_equal(course.sum.buffer.bytes, course.expected.bytes, course.expected.length);
    release(&course);
    free(large);
}

static void few_bytes_are_written_at_once(void **state)
{
    struct course course;

    (void)state;
    begin_apart(&course, SIZE_MAX);
    put_numbers(&course, 10000);
    assert_int_equal(snd_out_finish(&course.out, NULL), SONDE_OK);
    assert_true(pthread_equal(course.sum.writer, pthread_self()));
    assert_string_equal(course.sum.buffer.bytes, course.expected.bytes);
    release(&course);
}

/* Whether the disk is full before the thread begins, in its first block, or in its last. */
static void a_failure_of_another_thread_is_reported(void **state)
{
    static const size_t rooms[] = { 1000, (size_t)600 << 10, (size_t)3 << 20 };
    struct course       course;
    struct sonde_error  err;

    (void)state;
    for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
        begin_apart(&course, rooms[i]);
        put_numbers(&course, 500000);
        assert_true(course.expected.length > rooms[i]);
        errno = 0;
        assert_int_equal(snd_out_finish(&course.out, &err), SONDE_E_IO);
        assert_int_equal(err.os_error, ENOSPC);
        release(&course);
    }
}

/* A sink whose first write by another thread lasts until `enough` is put meanwhile, or nothing for some rounds. */
struct slow {
    atomic_size_t put;
    size_t        enough, rounds, put_meanwhile;
};

static bool write_slowly(void *user, const void *data, size_t length)
{
    struct slow *slow = user;
    size_t       before = 0;

    (void)data, (void)length;
    if (slow->put == 0 || slow->put_meanwhile > 0)
        return true;
    for (size_t still = 0; slow->put < slow->enough && still < slow->rounds; still++) {
        if (slow->put != before)
            still = 0;
        before = slow->put;
        nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
    }
    slow->put_meanwhile = slow->put;
    return true;
}

static size_t put_while_it_writes(size_t ahead, struct slow slow)
{
    static const char piece[4096] = { 0 };
    struct sonde_sink sink = { write_slowly, &slow };
    struct snd_out    out;

    snd_out_init(&out, &sink);
    snd_out_apart(&out, ahead);
    for (size_t put = 0; put < 40 * SND_BEHIND_BYTES; put += sizeof piece) {
        snd_out_put(&out, piece, sizeof piece);
        if (out.behind)
            slow.put += sizeof piece;
    }
    assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
    return slow.put_meanwhile;
}

static void as_many_bytes_wait_as_may(void **state)
{
    const size_t enough = 30 * SND_BEHIND_BYTES, few = 8 * SND_BEHIND_BYTES;

    (void)state;
    assert_true(put_while_it_writes(2 * enough, (struct slow){ 0, enough, 1000, 0 }) >= enough);
    assert_in_range(put_while_it_writes(few, (struct slow){ 0, enough, 10, 0 }), 1,
                    few + SND_BEHIND_BYTES);
}

static void what_is_of_no_use_ends_the_thread(void **state)
{
    struct course course;

    (void)state;
    begin_apart(&course, SIZE_MAX);
    put_numbers(&course, 300000);
    assert_int_equal(snd_out_end(&course.out, SONDE_E_NOMEM, NULL), SONDE_E_NOMEM);
    assert_true(course.sum.buffer.length > 0 && course.sum.buffer.length < course.expected.length);
    assert_memory_equal(course.sum.buffer.bytes, course.expected.bytes, course.sum.buffer.length);
    release(&course);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_the_order),
        cmocka_unit_test(writes_powers_of_ten),
        cmocka_unit_test(writes_numbers_of_any_length),
        cmocka_unit_test(has_back_what_was_put),
        cmocka_unit_test(reports_a_failure_once_and_late),
        cmocka_unit_test(writes_to_a_descriptor),
        cmocka_unit_test(quotes_csv),
        cmocka_unit_test(keeps_the_lines_of_a_stack),
        cmocka_unit_test(another_thread_writes_the_same),
        cmocka_unit_test(few_bytes_are_written_at_once),
        cmocka_unit_test(a_failure_of_another_thread_is_reported),
        cmocka_unit_test(as_many_bytes_wait_as_may),
        cmocka_unit_test(what_is_of_no_use_ends_the_thread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
