/* SPDX-License-Identifier: Apache-2.0 */
/* What is worth knowing of steps: how many are slow, what the median is. */
#include "model/highlights/highlights.h"
#include "scratch.h"

/* Steps of so many milliseconds, one after the other; the mark after the last ends it. */
static struct snd_highlight *tell(const unsigned *ms, size_t count, struct snd_highlights *out)
{
    struct synth *s = synth_new(scratch_path("steps"), NULL);
    uint32_t      t = synth_thread(s, "main", 0), name = synth_string(s, "work");
    uint64_t      ns = 1000;

    for (size_t i = 0; i <= count; i++) {
        synth_step(s, t, ns, i);
        if (i == count)
            break;
        synth_begin(s, t, ns + 10, name, 0);
        synth_end(s, t, ns + 20);
        ns += ms[i] * 1000000u;
    }
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("steps"));
    *out = (struct snd_highlights){ .count = 0 };
    assert_int_equal(snd_highlights_find(trace, SND_HAS_STEPS, out, NULL), SONDE_OK);
    sonde_trace_close(trace);
    for (size_t i = 0; i < out->count; i++)
        if (strcmp(out->items[i].link, "table/steps") == 0)
            return &out->items[i];
    return NULL;
}

static void slow_steps(void **state)
{
    const unsigned two[] = { 10, 20, 10, 11, 30, 9, 10, 10 }, one[] = { 10, 10, 25, 10, 12 },
                   none[] = { 10, 19, 9, 10, 10 }, few[] = { 10, 30 };
    struct snd_highlights found;

    (void)state;
    struct snd_highlight *h = tell(two, 8, &found);
    assert_non_null(h);
    assert_string_equal(h->text, "2 of 8 steps take at least twice as long as the median step");
    assert_string_equal(h->detail,
                        "The median is 10.000ms, the shortest 9.000ms, the longest 30.000ms.");
    h = tell(one, 5, &found);
    assert_non_null(h);
    assert_string_equal(h->text, "1 of 5 steps takes at least twice as long as the median step");
    h = tell(none, 5, &found);
    assert_non_null(h);
    assert_string_equal(h->text, "5 steps of 10.000ms each; none takes twice as long");
    assert_null(tell(few, 2, &found));
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(slow_steps) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
