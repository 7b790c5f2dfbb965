/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of probes that were built against another header: a shorter one is taken, one of no size or too large is not. */
#include "recorded.h"

static bool keep_samples(const struct sonde_event *event, void *user)
{
    struct sonde_event **next = user;

    if (event->kind == SONDE_EVENT_SAMPLE)
        *(*next)++ = *event;
    return true;
}

static void older_structs_are_taken(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("older.sonde");
    struct sonde_event   seen[4], *end = seen;
    /* without `at`, which a header of before would not have: what lies there is not read */
    struct sonde_sample sample = {
        .struct_size = offsetof(struct sonde_sample, at), .samples = 5, .covered_ns = 50, .at = 1
    };

    recorded_start(&options);
    sonde_sample(&sample);
    recorded_stop();
    struct sonde_trace *trace = recorded_open("older.sonde");
    recorded_walk(trace, keep_samples, &end);
    assert_int_equal(end - seen, 1);
    assert_int_equal(seen[0].sample.count, 5);
    assert_int_equal(seen[0].sample.covered_ns, 50);
    assert_true(seen[0].time_ns >= 0); /* now, not at 1 */
    sonde_trace_close(trace);
}

static void wrong_sizes_are_refused(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("wrong.sonde");
    struct sonde_event   seen[4], *end = seen;
    const size_t         sizes[] = { 0, 4, 1024, SIZE_MAX };

    recorded_start(&options);
    for (size_t i = 0; i < 4; i++) {
        const size_t                size = sizes[i];
        struct sonde_sample         sample = { .struct_size = size, .samples = 1 };
        struct sonde_sample_run     run = { .struct_size = size, .samples = 1 };
        struct sonde_function_call  called = { .struct_size = size, .frame = 1, .id = 1 };
        struct sonde_device_run     ran = { .struct_size = size, .work = 1 };
        struct sonde_process_thread sampled = { .struct_size = size, .tid = 9 };
        struct sonde_op_call        call = { .struct_size = size, .name = sonde_intern("x", 1) };
        struct sonde_queue          queue = { .struct_size = size, .stream = 7 };
        struct sonde_work           work = { .struct_size = size, .kind = SONDE_WORK_COPY };
        sonde_sample(&sample);
        sonde_sample_run(&run);
        sonde_function_call(&called);
        sonde_device_run(&ran);
        assert_int_equal(sonde_thread_of_process(&sampled, NULL), 0);
        assert_int_equal(sonde_intern_call(&call), 0);
        assert_int_equal(sonde_intern_queue(&queue), 0);
        assert_int_equal(sonde_intern_work(&work), 0);
    }
    struct sonde_sample good = { .struct_size = sizeof good, .samples = 2 };
    sonde_sample(&good);
    recorded_stop();
    struct sonde_trace *trace = recorded_open("wrong.sonde");
    recorded_walk(trace, keep_samples, &end);
    assert_int_equal(end - seen, 1);
    assert_int_equal(seen[0].sample.count, 2);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(older_structs_are_taken),
                                        cmocka_unit_test(wrong_sizes_are_refused) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
