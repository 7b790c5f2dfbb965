/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pstats: what cProfile's dump_stats writes, and pstats.Stats, snakeviz and gprof2dot read: marshal
 * of {(file, line, function): (primitive calls, calls, self, total, {caller: the same four})}.
 */
#include "export/common/exporter.h"
#include "export/encode/py_bytes.h"
#include "sonde/model.h"

struct writer {
    const struct sonde_functions *functions;
    struct snd_out               *out;
    struct sonde_buffer           text;
};

static void put_key(struct writer *w, uint32_t function)
{
    const struct sonde_function *f = sonde_functions_row(w->functions, function);

    snd_marshal_tuple(w->out, 3);
    snd_marshal_text(w->out, f->file, &w->text);
    snd_marshal_int(w->out, f->line);
    snd_marshal_text(w->out, f->name, &w->text);
}

/* A caller's four are in another order than a function's: calls come before primitive ones. */
static void put_callers(struct writer *w, const struct sonde_function *f)
{
    snd_out_text(w->out, "{");
    for (uint32_t i = 0; i < f->caller_count; i++) {
        const struct sonde_call *call = sonde_functions_caller(w->functions, f->first_caller + i);
        if (call->caller == SONDE_NONE)
            continue;
        put_key(w, call->caller);
        snd_marshal_tuple(w->out, 4);
        snd_marshal_int(w->out, call->calls);
        snd_marshal_int(w->out, call->primitive_calls);
        snd_marshal_real(w->out, (double)call->self_ns / 1e9);
        snd_marshal_real(w->out, (double)call->total_ns / 1e9);
    }
    snd_out_text(w->out, "0");
}

static void put_functions(struct writer *w)
{
    snd_out_text(w->out, "{");
    for (uint32_t i = 0; i < sonde_functions_count(w->functions); i++) {
        const struct sonde_function *f = sonde_functions_row(w->functions, i);
        put_key(w, i);
        snd_marshal_tuple(w->out, 5);
        snd_marshal_int(w->out, f->primitive_calls);
        snd_marshal_int(w->out, f->calls);
        snd_marshal_real(w->out, (double)f->self_ns / 1e9);
        snd_marshal_real(w->out, (double)f->total_ns / 1e9);
        put_callers(w, f);
    }
    snd_out_text(w->out, "0");
}

static enum sonde_status write_pstats(struct sonde_trace           *trace,
                                      const struct sonde_functions *functions, struct snd_out *out,
                                      struct sonde_error *err)
{
    struct writer     w = { .functions = functions, .out = out };
    enum sonde_status st = SONDE_OK;

    (void)trace;
    put_functions(&w);
    if (w.text.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the functions");
    sonde_buffer_release(&w.text);
    return st;
}

SND_EXPORT_WRITE(snd_export_pstats)
{
    (void)options;
    return snd_export_functions(trace, write_pstats, out, err);
}
