/* SPDX-License-Identifier: Apache-2.0 */
/* export/common/shared.c - what several exporters need; declared in exporter.h. */
#include <inttypes.h>
#include <string.h>

#include "base/struct_size.h"
#include "base/text/buf.h"
#include "export/common/exporter.h"
#include "read/said/trace_metadata.h"

enum sonde_status snd_export_functions(struct sonde_trace *trace, snd_functions_write *write,
                                       struct snd_out *out, struct sonde_error *err)
{
    struct sonde_functions *functions;
    enum sonde_status       st = sonde_functions_new(trace, &functions, err);

    if (st != SONDE_OK)
        return st;
    if (sonde_functions_count(functions) == 0)
        st = snd_fail(err, SONDE_E_STATE,
                      "the trace has no Python functions; record them with --functions");
    else
        st = write(trace, functions, out, err);
    sonde_functions_free(functions);
    return st;
}

uint64_t snd_export_pid(const struct sonde_trace *trace, uint32_t process)
{
    const struct sonde_process *own = sonde_trace_process(trace, process);

    for (uint32_t i = 0; i < process; i++) {
        const struct sonde_process *other = sonde_trace_process(trace, i);
        if (other->pid == own->pid && strcmp(other->host, own->host) != 0)
            return own->pid + (uint64_t)process * 10000000;
    }
    return own->pid;
}

void snd_export_name(const struct sonde_trace *trace, uint32_t process, struct sonde_buffer *name)
{
    char        text[SND_RANK_TEXT];
    const char *rank = snd_meta_rank(trace, process, text);

    snd_buf_clear(name);
    snd_buf_format(name, "%s%s%s", sonde_trace_process(trace, process)->program,
                   rank[0] ? ", " : "", rank);
}

void snd_export_owner(const struct sonde_trace *trace, uint32_t process, struct sonde_buffer *name)
{
    char        text[SND_RANK_TEXT];
    const char *rank = snd_meta_rank(trace, process, text);

    snd_buf_format(name, "%s%s", rank, rank[0] ? ", " : "");
    if (sonde_trace_process_count(trace) > 1)
        snd_buf_format(name, "process %" PRIu32 ", ", sonde_trace_process(trace, process)->pid);
}

enum sonde_status snd_export_options(const struct sonde_export_options *given,
                                     struct sonde_export_options *used, struct sonde_error *err)
{
    static const struct sonde_export_options unset = SONDE_EXPORT_OPTIONS_INIT;

    *used = unset;
    return snd_struct_take(given, used, sizeof *used, "SONDE_EXPORT_OPTIONS_INIT", err);
}

/* torch's probe says so in a process's metadata. */
bool snd_export_is_torch(const struct sonde_trace *trace, uint32_t process)
{
    struct sonde_text value;

    return snd_meta_find(trace, process, SND_META_TORCH_PROBE, &value);
}
