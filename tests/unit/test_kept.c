/* SPDX-License-Identifier: Apache-2.0 */
/* model/kept.c: models that are kept for the next view, from a begin to an end, and not after it. */
#include "model/kept.h"

#include "scratch.h"

static unsigned freed[3]; /* of each model */

static void free_one(void *model)
{
    freed[*(int *)model]++;
}

static void free_other(void *model)
{
    freed[*(int *)model] += 10;
}

/* What is kept is known by who frees it and by its options. */
static void models_are_lent(void **state)
{
    int                 models[] = { 0, 1, 2 };
    struct synth       *s = synth_new(scratch_path("kept"), NULL);
    struct sonde_trace *trace;

    (void)state;
    synth_close(s, true);
    trace = scratch_open(scratch_path("kept"));
    snd_kept_add(trace, free_one, 0, &models[0]);
    assert_null(snd_kept_lend(trace, free_one, 0)); /* nobody keeps yet */
    snd_kept_begin(trace);
    snd_kept_add(trace, free_one, 0, &models[0]);
    snd_kept_add(trace, free_one, 7, &models[1]);
    snd_kept_add(trace, free_other, 7, &models[2]);
    assert_ptr_equal(snd_kept_lend(trace, free_one, 0), &models[0]);
    assert_ptr_equal(snd_kept_lend(trace, free_one, 7), &models[1]);
    assert_ptr_equal(snd_kept_lend(trace, free_other, 7), &models[2]);
    assert_null(snd_kept_lend(trace, free_other, 0));
    assert_true(snd_kept_return(trace, &models[0]) && snd_kept_return(trace, &models[2]));
    assert_false(snd_kept_return(trace, &trace));
    snd_kept_end(trace);
    assert_true(freed[0] == 1 && freed[1] == 1 && freed[2] == 10);
    assert_false(snd_kept_return(trace, &models[0]));
    snd_kept_add(trace, free_one, 0, &models[0]); /* the caller's own again */
    assert_null(snd_kept_lend(trace, free_one, 0));
    sonde_trace_close(trace);
    assert_int_equal(freed[0], 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(models_are_lent) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
