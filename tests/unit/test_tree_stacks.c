/* SPDX-License-Identifier: Apache-2.0 */
/* Paths as stacks: those that are deeper than any stack of samples. What they look like is in tests/golden. */
#include "export/stacks/tree_stacks.h"

#include "format/limits.h"
#include "scratch.h"

#define DEEP (SND_MIXED_FRAMES_MAX + 10u)

static void no_stack_has_more_frames_than_there_is_room_for(void **state)
{
    struct synth          *s = synth_new(scratch_path("deep"), NULL);
    uint32_t               t = synth_thread(s, "main", 0), name = synth_string(s, "x");
    struct snd_tree_stacks stacks;

    (void)state;
    for (uint32_t i = 0; i < DEEP; i++)
        synth_begin(s, t, 1 + i, name, 0);
    for (uint32_t i = 0; i < DEEP; i++)
        synth_end(s, t, 1 + DEEP + i);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("deep"));
    assert_int_equal(snd_tree_stacks_open(&stacks, trace, NULL), SONDE_OK);
    assert_int_equal(sonde_tree_count(stacks.ranges), DEEP + 1);
    stacks.at = SND_MIXED_FRAMES_MAX - 1; /* a range is made after the one that it is in */
    for (uint32_t frames = SND_MIXED_FRAMES_MAX - 1; stacks.at <= DEEP; frames++) {
        assert_true(snd_tree_stacks_next(&stacks));
        assert_int_equal(stacks.count,
                         frames < SND_MIXED_FRAMES_MAX ? frames : SND_MIXED_FRAMES_MAX);
        assert_string_equal(stacks.frames[stacks.count - 1].frame.function.bytes, "x");
    }
    assert_false(snd_tree_stacks_next(&stacks));
    snd_tree_stacks_release(&stacks);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_stack_has_more_frames_than_there_is_room_for),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
