/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/memory/memory_blocks.c: the table of live blocks and their sizes. */
#include "probes/python/memory/memory_blocks.h"

#include <pthread.h>

#include "scratch.h"

#define BLOCKS 200000u

/* Addresses as an allocator gives them: 16 apart, in runs. */
static const void *block_at(uint32_t i)
{
    return (const void *)(uintptr_t)(0x7f0000000000 + (i / 1000) * 0x100000 + (i % 1000) * 16);
}

static void put_take(void **state)
{
    size_t size;

    (void)state;
    assert_false(snd_blocks_take(block_at(1), &size));
    assert_int_equal(snd_blocks_size(block_at(1)), 0);
    for (uint32_t i = 0; i < BLOCKS; i++)
        assert_true(snd_blocks_put(block_at(i), i + 1));
    for (uint32_t i = 0; i < BLOCKS; i += 3) {
        assert_true(snd_blocks_take(block_at(i), &size));
        assert_int_equal(size, i + 1);
    }
    for (uint32_t i = 0; i < BLOCKS; i++)
        assert_int_equal(snd_blocks_size(block_at(i)), i % 3 == 0 ? 0 : i + 1);
    assert_true(snd_blocks_put(block_at(1), 77)); /* grown in its place */
    assert_int_equal(snd_blocks_size(block_at(1)), 77);
    snd_blocks_forget();
    assert_int_equal(snd_blocks_size(block_at(1)), 0);
}

/* As programs do it: much is taken, much given back, for long. */
static void churn(uint32_t first, uint32_t *wrong)
{
    for (uint32_t round = 0; round < 40; round++) {
        for (uint32_t i = 0; i < 2000; i++)
            *wrong += !snd_blocks_put(block_at(first + i), first + i + round + 1);
        for (uint32_t i = 0; i < 2000; i++) {
            size_t   size = 0;
            uint32_t at = (i * 7 + round) % 2000;
            *wrong += !snd_blocks_take(block_at(first + at), &size);
            *wrong += size != first + at + round + 1;
        }
    }
}

static void *run_churn(void *number)
{
    uint32_t *wrong = number;
    uint32_t  first = *wrong;

    *wrong = 0;
    churn(first, wrong);
    return NULL;
}

static void threads_at_once(void **state)
{
    pthread_t threads[4];
    uint32_t  numbers[4];

    (void)state;
    for (uint32_t i = 0; i < 4; i++) {
        numbers[i] = i * 10000;
        assert_int_equal(pthread_create(&threads[i], NULL, run_churn, &numbers[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(numbers[i], 0);
    }
    snd_blocks_unlock(); /* harmless where none is held */
    for (uint32_t i = 0; i < 40000; i++)
        assert_int_equal(snd_blocks_size(block_at(i)), 0);
    snd_blocks_forget();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_take),
        cmocka_unit_test(threads_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
