/* SPDX-License-Identifier: Apache-2.0 */
/* 18 ranges of 100 FLOPs from two threads. */
#include <pthread.h>
#include <sonde/record.h>

static void *layers(void *count)
{
    for (int i = 0; i < *(int *)count; i++) {
        SONDE_RANGE("layer");
        sonde_flops(100);
    }
    return NULL;
}

int main(void)
{
    int       counts[2] = { 7, 11 };
    pthread_t other;
    pthread_create(&other, NULL, layers, &counts[0]);
    layers(&counts[1]);
    return pthread_join(other, NULL);
}
