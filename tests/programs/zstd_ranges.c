/* SPDX-License-Identifier: Apache-2.0 */
/* zstd with ranges around it, in several threads of its own and of the program's. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sonde/record.h>
#include <zstd.h>

#define SIZE 1000000

static void *squeeze(void *user)
{
    size_t  *total = user, bound = ZSTD_compressBound(SIZE);
    char    *from = malloc(SIZE), *to = malloc(bound), *again = malloc(SIZE);
    uint32_t x = 1;

    for (size_t i = 0; i < SIZE; i++)
        from[i] = (char)((x = x * 1664525 + 1013904223) >> 29);
    for (int level = 1; level < 8; level++) {
        SONDE_RANGE("level");
        size_t size;
        {
            SONDE_RANGE("compress");
            size = ZSTD_compress(to, bound, from, SIZE, level);
        }
        SONDE_RANGE("decompress");
        if (ZSTD_decompress(again, SIZE, to, size) != SIZE || memcmp(again, from, SIZE) != 0)
            puts("not the same");
        *total += size;
    }
    free(from);
    free(to);
    free(again);
    return NULL;
}

int main(void)
{
    pthread_t threads[4];
    size_t    totals[4] = { 0 };

    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, squeeze, &totals[i]);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("%zu %zu %zu %zu\n", totals[0], totals[1], totals[2], totals[3]);
    return 6;
}
