/* SPDX-License-Identifier: Apache-2.0 */
/* A flight recorder whose names use up their share of the limit: NAME events, recycled chunks. */
#include <stdio.h>

#include <sonde/record.h>

int main(void)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;
    options.path = "flight.sonde";
    options.max_bytes = 1 << 19;
    options.limit = SONDE_LIMIT_KEEP_LAST;
    options.chunk_bytes = 1 << 16;
    if (sonde_start(&options, NULL) != SONDE_OK)
        return 1;
    for (int i = 0; i < 12000; i++) {
        char name[64];
        snprintf(name, sizeof name, "request %d of a great many, each with its own name", i / 2);
        SONDE_RANGE("loop");
        sonde_begin_text(name);
        sonde_end();
    }
    return sonde_stop(NULL) != SONDE_OK;
}
