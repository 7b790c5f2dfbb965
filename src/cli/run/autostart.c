/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/autostart.h"

#include <stdlib.h>

#include "base/system/package.h"

bool snd_autostart_find(struct sonde_buffer *folder)
{
    return snd_package_find("_autostart/sitecustomize.py", folder) && snd_path_up(folder);
}

bool snd_autostart_set(const char *folder, const char *probes)
{
    struct sonde_buffer list = { 0 };
    const char         *before = getenv("PYTHONPATH");

    snd_buf_text(&list, folder);
    if (before && *before)
        snd_buf_format(&list, ":%s", before);
    bool done = !list.failed && setenv("PYTHONPATH", list.bytes, 1) == 0 &&
                setenv("SONDE_PROBES", probes, 1) == 0;
    sonde_buffer_release(&list);
    return done;
}
