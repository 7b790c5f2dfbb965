/* SPDX-License-Identifier: Apache-2.0 */
/* model/file/import_trace.c - a file of another tool's as a packed trace with a name. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/fd_io.h"
#include "import/import.h"
#include "snd_config.h"
#include "sonde/model.h"

#define LEVEL_DEFAULT 3
#define LEVEL_MAX 19

/* Imports into a hidden name beside the target, which it then gets. */
static enum sonde_status import_to(int from, const char *path, const char *out_path, int level,
                                   struct sonde_error *err)
{
    const char *slash = strrchr(out_path, '/');
    int         folder = slash ? (int)(slash - out_path) + 1 : 0;
    char       *aside;

    if (asprintf(&aside, "%.*s.%s.XXXXXX", folder, out_path, out_path + folder) < 0)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for importing");
    int               fd = mkostemp(aside, O_CLOEXEC); /* 0600 */
    enum sonde_status status =
        fd < 0 ? snd_fail_os(err, SONDE_E_IO, "cannot create a temporary file beside %s", out_path)
               : snd_import(from, path, fd, level, err);
    if (status == SONDE_OK && (fsync(fd) != 0 || rename(aside, out_path) != 0))
        status = snd_fail_os(err, SONDE_E_IO, "cannot rename the trace to %s", out_path);
    if (fd >= 0) {
        close(fd);
        if (status == SONDE_OK)
            snd_sync_folder(out_path);
        else
            unlink(aside);
    }
    free(aside);
    return status;
}

enum sonde_status sonde_import(const char *path, const char *out_path, int level,
                               struct sonde_error *err)
{
    struct stat st;

    level = level == 0 ? LEVEL_DEFAULT : level < LEVEL_MAX ? level : LEVEL_MAX;
    if (!SND_HAVE_ZSTD)
        level = -1; /* stored as it is: as valid */
    int from = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (from < 0 || fstat(from, &st) != 0 || S_ISDIR(st.st_mode)) {
        enum sonde_status status =
            from < 0 ? snd_fail_os(err, SONDE_E_IO, "cannot open %s", path)
                     : snd_fail(err, SONDE_E_IO, "cannot read %s: a folder; name its files", path);
        if (from >= 0)
            close(from);
        return status;
    }
    enum sonde_status status = import_to(from, path, out_path, level, err);
    close(from);
    return status;
}
