/* SPDX-License-Identifier: Apache-2.0 */
/*
 * callgrind: functions and calls in nanoseconds, for KCachegrind, QCachegrind, callgrind_annotate.
 *
 *     fl=(1) file          the first time with its name, then by number alone
 *     fn=(2) function
 *     12 3400              at its first line, its own time
 *     cfi=(1)
 *     cfn=(3) callee
 *     calls=5 40           how often, and where the callee begins
 *     12 7000              the time of these calls
 *
 * Callgrind knows a function by file and name: where a file has several of one name, the line is
 * part of it. Of a trace whose functions were not counted, its samples: callgrind_samples.c.
 */
#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "base/data/map.h"
#include "export/stacks/callgrind.h"
#include "export/common/exporter.h"
#include "read/file/scale.h"
#include "snd_config.h"
#include "sonde/model.h"

struct writer {
    const struct sonde_functions *functions;
    struct snd_out               *out;
    struct snd_map                files, names; /* by text: file; (file, name): how many */
    uint32_t                      file_count;
    bool                         *told; /* by function: whether its name was written */
    bool                          failed;
};

static struct snd_key name_key(const struct sonde_function *f)
{
    return (struct snd_key){ (uint64_t)(uintptr_t)f->file.bytes, (uint64_t)(uintptr_t)f->name.bytes,
                             1 };
}

static void put_file(struct writer *w, const char *tag, const struct sonde_function *f)
{
    struct snd_key key = { (uint64_t)(uintptr_t)f->file.bytes, 0, 0 };
    uint32_t       number;
    bool           known = snd_map_get(&w->files, key, &number);

    if (!known) {
        number = ++w->file_count;
        w->failed |= !snd_map_put(&w->files, key, number);
    }
    snd_out_format(w->out, "%s=(%" PRIu32 ")", tag, number);
    if (!known) {
        snd_out_text(w->out, " ");
        snd_callgrind_text(w->out, f->file);
    }
    snd_out_text(w->out, "\n");
}

static void put_name(struct writer *w, const char *tag, uint32_t function)
{
    const struct sonde_function *f = sonde_functions_row(w->functions, function);
    uint32_t                     count = 0;

    snd_out_format(w->out, "%s=(%" PRIu32 ")", tag, function + 1);
    if (!w->told[function]) {
        w->told[function] = true;
        snd_out_text(w->out, " ");
        snd_callgrind_text(w->out, f->name);
        if (snd_map_get(&w->names, name_key(f), &count) && count > 1)
            snd_out_format(w->out, ":%" PRIu32, f->line);
    }
    snd_out_text(w->out, "\n");
}

static void put_function(struct writer *w, uint32_t function)
{
    const struct sonde_function *f = sonde_functions_row(w->functions, function);

    put_file(w, "fl", f);
    put_name(w, "fn", function);
    snd_out_format(w->out, "%" PRIu32 " %" PRId64 "\n", f->line, f->self_ns);
    for (uint32_t i = 0; i < f->callee_count; i++) {
        const struct sonde_call *call = sonde_functions_callee(w->functions, f->first_callee + i);
        const struct sonde_function *callee = sonde_functions_row(w->functions, call->callee);
        put_file(w, "cfi", callee);
        put_name(w, "cfn", call->callee);
        snd_out_format(w->out, "calls=%" PRIu64 " %" PRIu32 "\n%" PRIu32 " %" PRId64 "\n",
                       call->calls, callee->line, f->line, call->total_ns);
    }
    snd_out_text(w->out, "\n");
}

static void put_head(struct writer *w, const struct sonde_trace *trace)
{
    struct snd_callgrind_event time = SND_CALLGRIND_TIME;

    for (size_t i = 0; i < sonde_functions_count(w->functions); i++)
        time.total = snd_add(time.total, sonde_functions_row(w->functions, i)->self_ns);
    snd_callgrind_head(w->out, trace, &time, 1);
}

static bool count_names(struct writer *w)
{
    for (uint32_t i = 0; i < sonde_functions_count(w->functions); i++) {
        struct snd_key key = name_key(sonde_functions_row(w->functions, i));
        uint32_t       count = 0;
        (void)snd_map_get(&w->names, key, &count);
        if (!snd_map_put(&w->names, key, count + 1))
            return false;
    }
    return true;
}

static enum sonde_status write_callgrind(struct sonde_trace           *trace,
                                         const struct sonde_functions *functions,
                                         struct snd_out *out, struct sonde_error *err)
{
    struct writer     w = { .functions = functions, .out = out };
    size_t            count = sonde_functions_count(functions);
    enum sonde_status st = SONDE_OK;

    w.told = calloc(count + 1, sizeof *w.told);
    if (w.told && count_names(&w)) {
        put_head(&w, trace);
        for (uint32_t i = 0; i < count; i++)
            put_function(&w, i);
    } else {
        w.failed = true;
    }
    if (w.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions");
    free(w.told);
    snd_map_release(&w.files);
    snd_map_release(&w.names);
    return st;
}

SND_EXPORT_WRITE(snd_export_callgrind)
{
    struct sonde_functions *functions;
    enum sonde_status       st = sonde_functions_new(trace, &functions, err);

    (void)options;
    if (st != SONDE_OK)
        return st;
    st = sonde_functions_count(functions) > 0 ? write_callgrind(trace, functions, out, err)
                                              : snd_callgrind_samples(trace, out, err);
    sonde_functions_free(functions);
    return st;
}
