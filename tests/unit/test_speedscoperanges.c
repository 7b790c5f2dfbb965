/* SPDX-License-Identifier: Apache-2.0 */
/* Ranges that end before what lies in them; the texts are in tests/golden. */
#include "format/layout.h"
#include "scratch.h"
#include "sonde/export.h"

#define DEEP 1000u
#define ROUNDS 2000u

struct count {
    size_t opened, closed, bytes;
};

/* Of what is written, only the two types of events have these letters. */
static bool count_events(void *user, const void *data, size_t length)
{
    struct count *count = user;
    const char   *bytes = data;

    for (size_t i = 0; i < length; i++) {
        count->opened += bytes[i] == 'O';
        count->closed += bytes[i] == 'C';
    }
    count->bytes += length;
    return true;
}

/* Each end opens a thousand again: without a bound, two events of a trace are two thousand. */
static void bounds_what_is_opened_again(void **state)
{
    struct sonde_export_options options = SONDE_EXPORT_OPTIONS_INIT;
    struct synth               *s = synth_new(scratch_path("deep"), NULL);
    uint32_t                    t = synth_thread(s, "main", 0), name = synth_string(s, "x");
    struct count                count = { 0, 0, 0 };
    struct sonde_sink           sink = { .write = count_events, .user = &count };
    uint64_t                    ns = 0;

    (void)state;
    for (uint32_t i = 0; i < DEEP; i++)
        synth_begin(s, t, ++ns, name, 0);
    for (uint32_t i = 0; i < ROUNDS; i++) {
        synth_begin(s, t, ++ns, name, 0);
        synth_end_at(s, t, ++ns, DEEP);
    }
    /* what is told of a range that is no longer shown */
    synth_attr(s, t, SND_ATTR_FRAME, synth_frame(s, name, name, 7));
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("deep"));
    assert_int_equal(sonde_export(trace, "speedscope", &options, &sink, NULL), SONDE_OK);
    assert_int_equal(count.opened, count.closed);
    assert_true(count.opened > (1u << 20) - DEEP);
    assert_true(count.opened <= (1u << 20) + DEEP + ROUNDS);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bounds_what_is_opened_again),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
