/* SPDX-License-Identifier: Apache-2.0 */
/* python/read/write_file.c - a file that is written whole, or not left behind. */
#include "python/read/core.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text/compare.h"

/*
 * A file that could not be written whole is removed: half an export looks like a whole one.
 * Others may read it as far as the umask lets them; only our own traces are 0600.
 */
static enum sonde_status write_to(const char *path, core_write_fn *write, void *user,
                                  struct sonde_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

    if (fd < 0)
        goto fail_open;
    struct sonde_sink sink = sonde_sink_fd(fd);
    enum sonde_status status = write(&sink, snd_ends_with(path, ".gz"), user, err);
    if (status != SONDE_OK) {
        close(fd);
        unlink(path);
        return status;
    }
    if (close(fd) == 0)
        return SONDE_OK;
fail_open:
    err->status = SONDE_E_IO;
    err->os_error = errno;
    snprintf(err->message, sizeof err->message, "cannot write %.300s: %s", path, strerror(errno));
    return SONDE_E_IO;
}

PyObject *core_write_file(PyObject *path, core_write_fn *write, void *user)
{
    struct sonde_error err = { 0 };
    enum sonde_status  status;
    const char        *bytes = PyBytes_AsString(path);

    Py_BEGIN_ALLOW_THREADS
    status = write_to(bytes, write, user, &err);
    Py_END_ALLOW_THREADS
    if (status != SONDE_OK) {
        core_set_error(&err);
        return NULL;
    }
    Py_RETURN_NONE;
}
