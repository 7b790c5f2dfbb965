/* SPDX-License-Identifier: Apache-2.0 */
/* record/file/supply.c: how many chunks are kept ready for threads that fill theirs. */
#include <pthread.h>
#include <time.h>

#include "record/file/chunk.h"
#include "record/state.h"
#include "recorded.h"

enum { MOST = 9 };

static pthread_barrier_t begun, done;

static void wait_ms(long ms)
{
    nanosleep(&(struct timespec){ ms / 1000, ms % 1000 * 1000000 }, NULL);
}

static void *mark_and_wait(void *unused)
{
    sonde_mark("mark");
    pthread_barrier_wait(&begun);
    pthread_barrier_wait(&done);
    return unused;
}

static uint32_t chunks_ready(void)
{
    pthread_mutex_lock(&snd_rec.lock);
    uint32_t count = snd_rec.ready.count;
    pthread_mutex_unlock(&snd_rec.lock);
    return count;
}

/* One more than threads, so that one of them can take two in a row; of many threads, as many as may lie unused. */
static void the_stock_is_for_all_threads(void **state)
{
    static const unsigned counts[] = { 1, 2, SND_READY_MAX - 1, SND_READY_MAX, MOST };

    (void)state;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        struct sonde_options options = recorded_options("stock");
        uint32_t             wanted = counts[i] + 1 < SND_READY_MAX ? counts[i] + 1 : SND_READY_MAX;
        pthread_t            threads[MOST];
        recorded_start(&options);
        assert_int_equal(pthread_barrier_init(&begun, NULL, counts[i] + 1), 0);
        assert_int_equal(pthread_barrier_init(&done, NULL, counts[i] + 1), 0);
        for (unsigned t = 0; t < counts[i]; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, mark_and_wait, NULL), 0);
        pthread_barrier_wait(&begun);
        for (int tries = 0; chunks_ready() < wanted && tries < 2000; tries++)
            wait_ms(10);
        assert_int_equal(chunks_ready(), wanted);
        wait_ms(20);
        assert_int_equal(chunks_ready(), wanted); /* and no more */
        pthread_barrier_wait(&done);
        for (unsigned t = 0; t < counts[i]; t++)
            pthread_join(threads[t], NULL);
        pthread_barrier_destroy(&begun);
        pthread_barrier_destroy(&done);
        recorded_stop();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(the_stock_is_for_all_threads) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
