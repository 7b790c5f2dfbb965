/* SPDX-License-Identifier: Apache-2.0 */
/* model/samples/sample_places.c: sampled instructions, by function and in order. */
#include "model/samples/sample_places.h"

#include "format/layout.h"
#include "scratch.h"

struct place {
    const char *function, *object;
    uint64_t    address;
    uint32_t    samples;
};

static struct sonde_trace *trace_of(const struct place *places, size_t count)
{
    struct synth *s = synth_new(scratch_path("places.sonde"), NULL);
    uint32_t      sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);

    for (size_t i = 0; i < count; i++) {
        uint32_t                      frame = synth_address(s, synth_string(s, places[i].object),
                                                            synth_string(s, "0011"), places[i].address);
        const struct snd_symbol_entry at = { synth_string(s, places[i].function), 0, 0, 0 };
        synth_symbol(s, frame, &at, 1);
        synth_sample(s, sampler, 1000000 * (i + 1), synth_stack(s, 0, frame),
                     10 | places[i].samples << 8, t, 1000 * places[i].samples);
    }
    synth_close(s, true);
    return scratch_open(scratch_path("places.sonde"));
}

/* The function with most time first, then by name and object; its instructions by their addresses. */
static void they_have_an_order(void **state)
{
    static const struct place given[] = {
        { "same", "/b.so", 0x30, 1 }, { "sam", "/a.so", 0x50, 3 },  { "same", "/b.so", 0x10, 1 },
        { "most", "/a.so", 0x90, 2 }, { "same", "/a.so", 0x20, 3 }, { "same", "/b.so", 0x20, 1 },
        { "most", "/a.so", 0x80, 9 },
    };
    static const size_t      expected[] = { 6, 3, 1, 4, 2, 5, 0 };
    struct sonde_trace      *trace = trace_of(given, sizeof given / sizeof given[0]);
    struct snd_sample_places places;

    (void)state;
    assert_int_equal(snd_sample_places_make(&places, trace, NULL), SONDE_OK);
    assert_int_equal(places.count, 7);
    assert_int_equal(places.whole_ns, 20000);
    for (size_t i = 0; i < 7; i++) {
        const struct place *p = &given[expected[i]];
        assert_true(text_is(places.rows[i].function, p->function));
        assert_true(text_is(places.rows[i].object, p->object));
        assert_int_equal(places.rows[i].address, p->address);
        assert_int_equal(places.rows[i].samples, p->samples);
        assert_int_equal(places.rows[i].self_ns, 1000 * p->samples);
        assert_int_equal(places.rows[i].function_ns, i < 2 ? 11000 : 3000);
    }
    snd_sample_places_release(&places);
    sonde_trace_close(trace);
}

/* An instruction that several stacks end at is one place. */
static void they_are_added_up(void **state)
{
    static const struct place given[] = { { "f", "/a.so", 0x10, 2 }, { "f", "/a.so", 0x10, 5 } };
    struct sonde_trace       *trace = trace_of(given, 2);
    struct snd_sample_places  places;

    (void)state;
    assert_int_equal(snd_sample_places_make(&places, trace, NULL), SONDE_OK);
    assert_int_equal(places.count, 1);
    assert_int_equal(places.rows[0].samples, 7);
    assert_int_equal(places.rows[0].self_ns, 7000);
    snd_sample_places_release(&places);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_have_an_order),
        cmocka_unit_test(they_are_added_up),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
