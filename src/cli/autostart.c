/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/autostart.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Is `folder` one that Python would run at its start? */
static bool is_there(const char *folder)
{
    struct sonde_buffer file = { 0 };

    snd_buf_format(&file, "%s/sitecustomize.py", folder);
    bool found = !file.failed && access(file.bytes, R_OK) == 0;
    sonde_buffer_release(&file);
    return found;
}

static bool take(struct sonde_buffer *folder, const char *path)
{
    snd_buf_clear(folder);
    snd_buf_text(folder, path);
    return !folder->failed && is_there(folder->bytes);
}

/* The package serves every Python from 3.9 on, so that of any version will do. */
static bool find_below(struct sonde_buffer *folder, const char *prefix)
{
    static const char *const places[] = {
        "lib/python3*/site-packages",       "lib64/python3*/site-packages",
        "local/lib/python3*/dist-packages", "local/lib/python3*/site-packages",
        "lib/python3*/dist-packages",
    };
    bool found = false;

    for (size_t i = 0; i < sizeof places / sizeof places[0] && !found; i++) {
        struct sonde_buffer pattern = { 0 };
        glob_t              matches;
        snd_buf_format(&pattern, "%s/%s/sonde/_autostart", prefix, places[i]);
        if (!pattern.failed && glob(pattern.bytes, 0, NULL, &matches) == 0) {
            for (size_t k = matches.gl_pathc; k-- > 0 && !found;)
                found = take(folder, matches.gl_pathv[k]);
            globfree(&matches);
        }
        sonde_buffer_release(&pattern);
    }
    return found;
}

bool snd_autostart_find(struct sonde_buffer *folder)
{
    const char *given = getenv("SONDE_PYTHON");
    char        path[PATH_MAX];

    if (given && *given) {
        snprintf(path, sizeof path, "%s/_autostart", given);
        return take(folder, path);
    }
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0)
        return false;
    path[length] = '\0';
    for (int up = 0; up < 2; up++) { /* PREFIX/bin/sonde */
        char *slash = strrchr(path, '/');
        if (!slash)
            return false;
        *slash = '\0';
    }
    return find_below(folder, path);
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
