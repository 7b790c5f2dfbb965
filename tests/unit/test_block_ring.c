/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks from one thread to another: in order, larger than they were, and no longer wanted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/data/block_ring.h"
#include "base/system/quiet_thread.h"

#define BLOCKS 2000u /* many more than there are at once */

struct course {
    struct snd_ring *ring;
    uint32_t         count;  /* of blocks to be handed on; those of numbers by 97 are large */
    uint32_t         handed; /* until nobody wanted more */
};

static size_t length_of(uint32_t number)
{
    return number % 97 == 96 ? SND_BLOCK_BYTES + number : sizeof number;
}

static void *fill(void *user)
{
    struct course *course = user;

    for (; course->handed < course->count; course->handed++) {
        struct snd_block *block = snd_ring_empty(course->ring);
        if (!block)
            break;
        if (block->length != 0)
            abort();
        block->length = length_of(course->handed);
        if (block->length > block->capacity && !snd_ring_grow(block, block->length))
            abort();
        memset(block->bytes, 'x', block->length);
        memcpy(block->bytes, &course->handed, sizeof course->handed);
        snd_ring_hand_on(course->ring);
    }
    snd_ring_end(course->ring);
    return NULL;
}

static pthread_t begin(struct course *course, uint32_t count)
{
    pthread_t thread;

    *course = (struct course){ .ring = snd_ring_new(), .count = count };
    assert_non_null(course->ring);
    assert_true(snd_quiet_thread(&thread, fill, course));
    return thread;
}

static void expect_block(struct course *course, uint32_t number)
{
    const struct snd_block *block = snd_ring_full(course->ring);
    uint32_t                got;

    assert_non_null(block);
    assert_int_equal(block->length, length_of(number));
    memcpy(&got, block->bytes, sizeof got);
    assert_int_equal(got, number);
    if (block->length > sizeof got)
        assert_int_equal(block->bytes[block->length - 1], 'x');
}

static void blocks_come_in_order(void **state)
{
    struct course course;
    pthread_t     thread = begin(&course, BLOCKS);

    (void)state;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        expect_block(&course, i);
        snd_ring_done(course.ring);
    }
    assert_null(snd_ring_full(course.ring));
    assert_null(snd_ring_full(course.ring)); /* and stays so */
    pthread_join(thread, NULL);
    snd_ring_free(course.ring);
}

/* Who fills would wait for ever otherwise. */
static void who_takes_may_end_it(void **state)
{
    struct course course;
    pthread_t     thread = begin(&course, BLOCKS);

    (void)state;
    for (uint32_t i = 0; i < 10; i++) {
        expect_block(&course, i);
        snd_ring_done(course.ring);
    }
    expect_block(&course, 10); /* its bytes stay where they are */
    snd_ring_stop(course.ring);
    pthread_join(thread, NULL);
    expect_block(&course, 10);
    assert_in_range(course.handed, 11, 10 + 4);
    snd_ring_free(course.ring);
}

static void nothing_may_come(void **state)
{
    struct course course;
    pthread_t     thread = begin(&course, 0);

    (void)state;
    assert_null(snd_ring_full(course.ring));
    pthread_join(thread, NULL);
    snd_ring_free(course.ring);
    snd_ring_free(NULL);
}

/* Handlers of the program run in its own threads: the new one has all signals blocked but SIGPIPE. */
static void *ask_mask(void *user)
{
    pthread_sigmask(SIG_SETMASK, NULL, user);
    return NULL;
}

static void the_thread_is_quiet(void **state)
{
    sigset_t  before, there, after;
    pthread_t thread;

    (void)state;
    pthread_sigmask(SIG_SETMASK, NULL, &before);
    assert_true(snd_quiet_thread(&thread, ask_mask, &there));
    pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, NULL, &after);
    assert_true(sigismember(&there, SIGINT) && sigismember(&there, SIGCHLD));
    assert_false(sigismember(&there, SIGPIPE));
    assert_int_equal(sigismember(&after, SIGINT), sigismember(&before, SIGINT));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_in_order),
        cmocka_unit_test(who_takes_may_end_it),
        cmocka_unit_test(nothing_may_come),
        cmocka_unit_test(the_thread_is_quiet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
