/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_library.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/system/package.h"

#define BETWEEN ": " /* what separates the paths of LD_PRELOAD */

static bool is_list(const struct snd_run_library *library)
{
    return strcmp(library->variable, "LD_PRELOAD") == 0;
}

/* Whether the path, of this length, is that of our library. */
static bool is_ours(const struct snd_run_library *library, const char *path, size_t length)
{
    char   end[128];
    size_t least = (size_t)snprintf(end, sizeof end, "/_native/probe_%s.so", library->name);

    return length >= least && memcmp(path + length - least, end, least) == 0;
}

void snd_run_library_clear(const struct snd_run_library *library)
{
    const char         *at = getenv(library->variable), *between = is_list(library) ? BETWEEN : "";
    struct sonde_buffer rest = { 0 };
    bool                found = false;

    while (at && *at) {
        size_t length = strcspn(at, between);
        bool   ours = is_ours(library, at, length);
        if (!ours && length > 0)
            snd_buf_format(&rest, "%s%.*s", rest.length ? ":" : "", (int)length, at);
        found |= ours;
        at += length + (at[length] != '\0');
    }
    if (found && rest.length > 0)
        setenv(library->variable, snd_buf_string(&rest), 1);
    else if (found)
        unsetenv(library->variable);
    sonde_buffer_release(&rest);
}

static enum sonde_status put(const struct snd_run_library *library, struct sonde_buffer *path,
                             struct sonde_error *err)
{
    const char *before = getenv(library->variable);
    bool        is_used = before && *before;

    if (is_used && !is_list(library))
        return snd_fail(err, SONDE_E_STATE, "cannot record %s: %s is set already, to %s; unset it",
                        library->records, library->variable, before);
    if (is_list(library) && strpbrk(path->bytes, BETWEEN))
        return snd_fail(err, SONDE_E_STATE,
                        "cannot record %s: %s: %s takes no path with a space or a colon; install "
                        "sonde elsewhere",
                        library->records, path->bytes, library->variable);
    if (is_used)
        snd_buf_format(path, ":%s", before);
    if (path->failed || setenv(library->variable, path->bytes, 1) != 0)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for %s", library->variable);
    return SONDE_OK;
}

enum sonde_status snd_run_library_set(const struct snd_run_library *library,
                                      struct sonde_error           *err)
{
    struct sonde_buffer path = { 0 };
    char                file[128];
    enum sonde_status   status;

    snd_run_library_clear(library);
    snprintf(file, sizeof file, "_native/probe_%s.so", library->name);
    if (snd_package_find(file, &path))
        status = put(library, &path, err);
    else
        status = snd_fail(err, SONDE_E_STATE,
                          "cannot record %s: sonde/%s is not installed; install sonde (pip install "
                          "sonde), or set SONDE_PYTHON to the folder of its Python package",
                          library->records, file);
    sonde_buffer_release(&path);
    return status;
}
