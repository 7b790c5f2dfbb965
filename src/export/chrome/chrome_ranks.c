/* SPDX-License-Identifier: Apache-2.0 */
/* A Chrome trace for each rank of a job, as HTA and TensorBoard read them. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/aside_file.h"
#include "base/text/buf.h"
#include "export/common/exporter.h"
#include "export/encode/gzip.h"
#include "read/part.h"

struct ranks {
    struct sonde_trace                *trace;
    const struct sonde_export_options *options;
    const char                        *folder;
    bool                              *is_chosen; /* by process */
    struct sonde_buffer                path;
    struct sonde_error                *err;
};

/* Processes of the rank; SONDE_NONE: those that have none. */
static void choose(struct ranks *r, uint32_t rank)
{
    for (uint32_t i = 0; i < r->trace->process_count; i++)
        r->is_chosen[i] = r->trace->processes[i].shown.rank == rank;
}

/* A folder for processes that have no rank, beside those that have: HTA would take them for rank 0. */
static void name_apart(struct ranks *r)
{
    snd_buf_clear(&r->path);
    snd_buf_format(&r->path, "%s%s", r->folder,
                   r->trace->processes[0].shown.rank == SONDE_NONE ? "" : "/no-rank");
}

/* TensorBoard finds a worker's file by this ending; a rank's name does not change from one run to the next. */
static bool name_file(struct ranks *r, uint32_t rank)
{
    name_apart(r);
    if (rank != SONDE_NONE) {
        snd_buf_clear(&r->path);
        snd_buf_format(&r->path, "%s/rank%" PRIu32, r->folder, rank);
    } else {
        snd_buf_text(&r->path, "/trace");
    }
    snd_buf_format(&r->path, ".pt.trace.json%s", r->options->gzip ? ".gz" : "");
    return !r->path.failed;
}

static enum sonde_status make_apart(struct ranks *r)
{
    name_apart(r);
    if (!r->path.failed && mkdir(r->path.bytes, 0777) != 0 && errno != EEXIST)
        return snd_fail_os(r->err, SONDE_E_IO, "cannot create %.300s", r->path.bytes);
    return SONDE_OK;
}

static enum sonde_status write_plain(struct ranks *r, struct sonde_trace *part,
                                     const struct sonde_sink *sink)
{
    struct snd_out out;

    snd_out_init(&out, sink);
    return snd_out_end(&out, snd_export_chrome(part, r->options, &out, r->err), r->err);
}

static enum sonde_status write_stream(struct ranks *r, struct sonde_trace *part, int fd)
{
    struct sonde_sink file = sonde_sink_fd(fd), inner;
    struct snd_gzip  *gzip;

    if (!r->options->gzip)
        return write_plain(r, part, &file);
    enum sonde_status st = snd_gzip_new(&file, SND_GZIP_TEXT, &gzip, r->err);
    if (st == SONDE_OK) {
        inner = snd_gzip_sink(gzip);
        st = write_plain(r, part, &inner);
        st = st == SONDE_OK ? snd_gzip_finish(gzip, r->err) : st;
        snd_gzip_free(gzip);
    }
    return st;
}

static enum sonde_status write_part(struct ranks *r)
{
    struct snd_part   part;
    char             *aside = NULL;
    enum sonde_status st = snd_part_open(&part, r->trace, r->is_chosen, r->err);
    int               fd = st == SONDE_OK ? snd_aside_open(r->path.bytes, 0666, &aside) : -1;

    if (st == SONDE_OK && fd < 0)
        st = snd_fail_os(r->err, SONDE_E_IO, "cannot create %.300s", r->path.bytes);
    if (st == SONDE_OK) {
        st = write_stream(r, &part.trace, fd);
        if (!snd_aside_end(fd, aside, r->path.bytes, st == SONDE_OK, false) && st == SONDE_OK)
            st = snd_fail_os(r->err, SONDE_E_IO, "cannot write %.300s", r->path.bytes);
    }
    free(aside);
    snd_part_close(&part);
    return st;
}

/* The rank of the n-th process, if it is the first that has this one: processes are sorted by rank, guests after them. */
static bool is_first(const struct sonde_trace *trace, uint32_t n)
{
    const struct snd_process *p = &trace->processes[n];

    return !p->is_guest && (n == 0 || p->shown.rank != trace->processes[n - 1].shown.rank);
}

static enum sonde_status write_ranks(struct ranks *r)
{
    enum sonde_status st = SONDE_OK;

    for (uint32_t i = 0; i < r->trace->process_count && st == SONDE_OK; i++) {
        uint32_t rank = r->trace->processes[i].shown.rank;
        if (!is_first(r->trace, i))
            continue;
        choose(r, rank);
        st = rank == SONDE_NONE ? make_apart(r) : SONDE_OK;
        if (st != SONDE_OK)
            break;
        if (!name_file(r, rank))
            st = snd_fail(r->err, SONDE_E_NOMEM, "out of memory for the name of a file");
        else
            st = write_part(r);
    }
    return st;
}

/* A failure leaves no file of this call. */
static void remove_files(struct ranks *r, bool is_new)
{
    for (uint32_t i = 0; i < r->trace->process_count; i++)
        if (is_first(r->trace, i) && name_file(r, r->trace->processes[i].shown.rank))
            unlink(r->path.bytes);
    if (is_new)
        rmdir(r->folder);
}

SND_EXPORT_FOLDER(snd_export_chrome_ranks)
{
    struct ranks r = { .trace = trace, .options = options, .folder = path, .err = err };
    bool         is_new = mkdir(path, 0777) == 0;

    if (!is_new && errno != EEXIST)
        return snd_fail_os(err, SONDE_E_IO, "cannot create %.300s", path);
    r.is_chosen = calloc((size_t)trace->process_count + 1, sizeof *r.is_chosen);
    enum sonde_status st = r.is_chosen
                               ? write_ranks(&r)
                               : snd_fail(err, SONDE_E_NOMEM, "out of memory for the ranks");
    if (st != SONDE_OK)
        remove_files(&r, is_new);
    free(r.is_chosen);
    sonde_buffer_release(&r.path);
    return st;
}
