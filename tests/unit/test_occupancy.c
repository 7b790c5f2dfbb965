/* SPDX-License-Identifier: Apache-2.0 */
/* model/gpu/occupancy.c: warps that a multiprocessor holds, and what limits them. */
#include "model/gpu/occupancy.h"
#include "scratch.h"

/* An H200, as torch describes it. */
static const struct snd_gpu_limits h200 = { .capability_major = 9,
                                            .sms = 132,
                                            .warp = 32,
                                            .threads_per_sm = 2048,
                                            .registers_per_sm = 65536,
                                            .registers_per_block = 65536,
                                            .shared_per_sm = 233472,
                                            .shared_reserved = 1024,
                                            .blocks_per_sm = 32 };

/* NVIDIA's occupancy calculator has the same numbers. */
static void the_least_of_four_limits_decides(void **state)
{
    static const struct {
        uint32_t                 threads, registers, shared;
        uint32_t                 blocks;
        double                   percent;
        enum snd_occupancy_limit limit;
    } cases[] = {
        { 128, 16, 0, 16, 100, SND_LIMIT_THREADS },
        { 32, 16, 0, 32, 50, SND_LIMIT_BLOCKS },
        { 128, 122, 16384, 4, 25, SND_LIMIT_REGISTERS },
        { 384, 168, 213016, 1, 18.75, SND_LIMIT_REGISTERS },
        { 128, 40, 100000, 2, 12.5, SND_LIMIT_SHARED },
        { 100, 16, 0, 16, 100, SND_LIMIT_THREADS },  /* four warps, the last not full */
        { 1024, 255, 0, 0, 0, SND_LIMIT_REGISTERS }, /* cannot run at all */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct snd_work_record work = { .kind = SND_WORK_KERNEL,
                                        .grid = { 1, 1, 1 },
                                        .block = { cases[i].threads, 1, 1 },
                                        .registers = cases[i].registers,
                                        .shared_dynamic = cases[i].shared };
        struct snd_occupancy   o;
        assert_true(snd_occupancy(&h200, &work, &o));
        assert_int_equal(o.blocks, cases[i].blocks);
        assert_true(o.percent == cases[i].percent);
        assert_int_equal(o.limit, cases[i].limit);
    }
}

static void what_is_not_known_is_not_guessed(void **state)
{
    struct snd_work_record work = { .kind = SND_WORK_KERNEL, .block = { 128, 1, 1 } };
    struct snd_gpu_limits  none = { 0 };
    struct snd_occupancy   o;

    (void)state;
    assert_false(snd_occupancy(&none, &work, &o));
    work.block[1] = 0; /* no threads */
    assert_false(snd_occupancy(&h200, &work, &o));
    work = (struct snd_work_record){ .kind = SND_WORK_COPY, .block = { 128, 1, 1 } };
    assert_false(snd_occupancy(&h200, &work, &o));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_least_of_four_limits_decides),
        cmocka_unit_test(what_is_not_known_is_not_guessed),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
