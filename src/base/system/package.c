/* SPDX-License-Identifier: Apache-2.0 */
#include "base/system/package.h"

#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"

/* The package serves every Python from 3.9 on, so that of any version will do. */
static const char *const places[] = {
    "lib/python3*/site-packages",       "lib64/python3*/site-packages",
    "local/lib/python3*/dist-packages", "local/lib/python3*/site-packages",
    "lib/python3*/dist-packages",       ".", /* pip install --target */
};

static bool take(struct sonde_buffer *path, const char *folder, const char *file)
{
    snd_buf_clear(path);
    snd_buf_format(path, "%s/%s", folder, file);
    return !path->failed && access(path->bytes, R_OK) == 0;
}

/* Absolute, since the processes of a program may each work in another folder. */
static bool take_given(struct sonde_buffer *path, const char *given, const char *file)
{
    struct sonde_buffer folder = { 0 };
    char                here[PATH_MAX];

    if (given[0] != '/' && getcwd(here, sizeof here))
        snd_buf_format(&folder, "%s/", here);
    snd_buf_text(&folder, given);
    bool found = take(path, snd_buf_string(&folder), file);
    sonde_buffer_release(&folder);
    return found;
}

/* Of several Pythons the last in the order of names. */
static bool find_at(const char *prefix, const char *place, const char *file,
                    struct sonde_buffer *path)
{
    struct sonde_buffer pattern = { 0 };
    glob_t              matches;
    bool                found = false;

    snd_buf_format(&pattern, "%s/%s/sonde", prefix, place);
    if (!pattern.failed && glob(pattern.bytes, 0, NULL, &matches) == 0) {
        for (size_t k = matches.gl_pathc; k-- > 0 && !found;)
            found = take(path, matches.gl_pathv[k], file);
        globfree(&matches);
    }
    sonde_buffer_release(&pattern);
    return found;
}

bool snd_path_up(struct sonde_buffer *path)
{
    char *slash = path->failed || !path->bytes ? NULL : strrchr(path->bytes, '/');

    if (!slash || slash == path->bytes)
        return false;
    *slash = '\0';
    path->length = (size_t)(slash - path->bytes);
    return true;
}

bool snd_package_find(const char *file, struct sonde_buffer *path)
{
    const char         *given = getenv("SONDE_PYTHON");
    struct sonde_buffer prefix = { 0 };
    char                program[PATH_MAX];
    bool                found = false;

    if (given && *given)
        return take_given(path, given, file);
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    program[length > 0 ? length : 0] = '\0';
    snd_buf_text(&prefix, program);
    if (snd_path_up(&prefix) && snd_path_up(&prefix)) /* PREFIX/bin/sonde */
        for (size_t i = 0; i < SND_COUNT_OF(places) && !found; i++)
            found = find_at(prefix.bytes, places[i], file, path);
    sonde_buffer_release(&prefix);
    return found;
}
