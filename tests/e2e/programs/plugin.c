/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin that has libsonde_record.a in it: unloads.c loads and unloads it. */
#include <stdio.h>

#include <sonde/record.h>

__attribute__((constructor)) static void load(void)
{
    puts("loaded");
}

__attribute__((destructor)) static void unload(void)
{
    puts("unloaded");
}

int plugin_start(const char *path)
{
    const struct sonde_options options = { .struct_size = sizeof options, .path = path };
    struct sonde_error         err;

    if (sonde_start(&options, &err) == SONDE_OK)
        return 0;
    fprintf(stderr, "%s\n", err.message);
    return 1;
}

void plugin_work(int count)
{
    for (int i = 0; i < count; i++) {
        SONDE_RANGE("step");
    }
}

void plugin_stop(void)
{
    struct sonde_error err;

    sonde_stop(&err);
}
