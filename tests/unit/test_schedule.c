/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The schedule: its states for a grid of arguments, and what its cycles leave on disk.
 */
#include "recorded.h"

/* The rule once more, as a walk through the steps instead of arithmetic. */
static void walk_states(const struct sonde_schedule *s, enum sonde_action *out, size_t count)
{
    size_t   step = 0;
    uint32_t done = 0;

    for (uint32_t i = 0; i < s->skip_first && step < count; i++)
        out[step++] = SONDE_ACTION_NONE;
    while (step < count) {
        if (s->repeat > 0 && done == s->repeat) {
            out[step++] = SONDE_ACTION_NONE;
            continue;
        }
        for (uint32_t i = 0; i < s->wait && step < count && !(done == 0 && s->skip_first_wait); i++)
            out[step++] = SONDE_ACTION_NONE;
        for (uint32_t i = 0; i < s->warmup && step < count; i++)
            out[step++] = SONDE_ACTION_WARMUP;
        for (uint32_t i = 0; i < s->active && step < count; i++)
            out[step++] = i + 1 < s->active ? SONDE_ACTION_RECORD : SONDE_ACTION_RECORD_AND_SAVE;
        done++;
    }
}

static void test_grid(void **state)
{
    (void)state;
    enum { STEPS = 40 };
    enum sonde_action expected[STEPS];

    for (unsigned n = 0; n < 3 * 3 * 3 * 3 * 3 * 2; n++) {
        unsigned              k = n;
        struct sonde_schedule s = { 0, 0, 1, 0, 0, 0 };
        s.wait = k % 3;
        s.warmup = (k /= 3) % 3;
        s.active = (k /= 3) % 3 + 1;
        s.repeat = (k /= 3) % 3;
        s.skip_first = (k /= 3) % 3 * 2;
        s.skip_first_wait = (k / 3) % 2;
        walk_states(&s, expected, STEPS);
        for (uint64_t step = 0; step < STEPS; step++)
            if (sonde_schedule_action(&s, step) != expected[step])
                fail_msg("wait %u warmup %u active %u repeat %u skip %u/%u: step %u is %d, not %d",
                         s.wait, s.warmup, s.active, s.repeat, s.skip_first, s.skip_first_wait,
                         (unsigned)step, sonde_schedule_action(&s, step), expected[step]);
    }
    const struct sonde_schedule none = { 0, 0, 0, 0, 0, 0 };
    assert_int_equal(sonde_schedule_action(&none, 7), SONDE_ACTION_RECORD);
}

struct cycles {
    uint32_t count;
    char     paths[4][PATH_MAX];
    uint64_t steps[4];
};

static void on_cycle(const struct sonde_cycle *cycle, void *user)
{
    struct cycles *cycles = user;
    char           path[PATH_MAX];

    assert_int_equal(cycle->index, cycles->count);
    sonde_trace_path(path, sizeof path); /* may be asked from here */
    assert_string_equal(path, cycle->path);
    snprintf(cycles->paths[cycles->count], PATH_MAX, "%s", cycle->path);
    cycles->steps[cycles->count++] = cycle->step;
}

static bool collect_steps(const struct sonde_event *event, void *user)
{
    char *text = user;

    if (event->kind == SONDE_EVENT_STEP)
        snprintf(text + strlen(text), 32, "S%u ", (unsigned)event->step.number);
    else if (event->kind == SONDE_EVENT_BEGIN)
        snprintf(text + strlen(text), 32, "B%u ", event->begin.shapes);
    return true;
}

static void read_steps(const char *path, char *text)
{
    struct sonde_trace *trace;

    text[0] = '\0';
    assert_int_equal(sonde_trace_open(path, &trace, NULL), SONDE_OK);
    recorded_walk(trace, collect_steps, text);
    sonde_trace_close(trace);
}

static void test_cycles(void **state)
{
    (void)state;
    struct cycles        cycles = { .count = 0 };
    struct sonde_options options = recorded_options("cycles.sonde");

    options.schedule = (struct sonde_schedule){ 1, 1, 2, 2, 1, 0 };
    options.on_cycle = on_cycle;
    options.user = &cycles;
    recorded_start(&options);
    for (uint32_t step = 0; step < 12; step++) {
        sonde_begin_id(sonde_intern("work", 4), step); /* the tensor list carries the number */
        sonde_end();
        sonde_step();
    }
    recorded_stop();

    /* skip 0; wait 1, warm up 2, record 3 and 4; wait 5, warm up 6, record 7 and 8 */
    char text[256];
    assert_int_equal(cycles.count, 2);
    read_steps(cycles.paths[0], text);
    assert_string_equal(text, "S3 B3 S4 B4 ");
    assert_int_equal(cycles.steps[0], 5);
    read_steps(cycles.paths[1], text);
    assert_string_equal(text, "S7 B7 S8 B8 ");
    assert_string_not_equal(cycles.paths[0], cycles.paths[1]);
}

static void test_numbered_steps(void **state)
{
    (void)state;
    struct cycles        cycles = { .count = 0 };
    struct sonde_options options = recorded_options("numbers.sonde");
    char                 text[256];

    options.on_cycle = on_cycle;
    options.user = &cycles;
    recorded_start(&options);
    assert_false(sonde_under_run());
    sonde_step_number(5);
    sonde_step();
    sonde_step_number(2);
    recorded_stop();
    sonde_step_number(9); /* nothing records */
    read_steps(cycles.paths[0], text);
    assert_string_equal(text, "S5 S6 S2 ");

    cycles.count = 0;
    options.schedule = (struct sonde_schedule){ 1, 0, 2, 1, 0, 0 };
    recorded_start(&options);
    for (int i = 0; i < 4; i++)
        sonde_step_number(7); /* a schedule counts for itself */
    recorded_stop();
    assert_int_equal(cycles.count, 1);
    read_steps(cycles.paths[0], text);
    assert_string_equal(text, "S1 S2 ");
}

static void test_stop_in_the_middle(void **state)
{
    (void)state;
    struct cycles        cycles = { .count = 0 };
    struct sonde_options options = recorded_options("middle.sonde");
    char                 text[256];

    options.schedule = (struct sonde_schedule){ 0, 2, 5, 1, 0, 0 };
    options.on_cycle = on_cycle;
    options.user = &cycles;
    recorded_start(&options); /* stopped while warming up: no trace, no callback */
    sonde_step();
    recorded_stop();
    assert_int_equal(cycles.count, 0);
    assert_int_equal(access(recorded_path("middle.sonde"), F_OK), -1);

    recorded_start(&options); /* stopped while recording: what there is */
    for (int i = 0; i < 3; i++)
        sonde_step();
    recorded_stop();
    assert_int_equal(cycles.count, 1);
    read_steps(cycles.paths[0], text);
    assert_string_equal(text, "S2 S3 ");
}

static void stop_on_cycle(const struct sonde_cycle *cycle, void *user)
{
    (void)cycle;
    (*(int *)user)++;
    assert_int_equal(sonde_stop(NULL), SONDE_OK);
}

static void test_stop_in_the_callback(void **state)
{
    (void)state;
    int                  calls = 0;
    struct sonde_options options = recorded_options("callback.sonde");

    options.schedule = (struct sonde_schedule){ 0, 0, 1, 0, 0, 0 };
    options.on_cycle = stop_on_cycle;
    options.user = &calls;
    recorded_start(&options);
    for (int i = 0; i < 5; i++)
        sonde_step();
    assert_int_equal(calls, 1);
    assert_int_equal(sonde_stop(NULL), SONDE_E_STATE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_grid),
        cmocka_unit_test(test_cycles),
        cmocka_unit_test(test_numbered_steps),
        cmocka_unit_test(test_stop_in_the_middle),
        cmocka_unit_test(test_stop_in_the_callback),
    };
    return cmocka_run_group_tests_name("schedule", tests, NULL, NULL);
}
