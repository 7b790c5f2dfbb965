/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unit/flops_call.h - one call of an operator, as the reader has it, and what its formula gives.
 */
#ifndef UNIT_FLOPS_CALL_H
#define UNIT_FLOPS_CALL_H

#include "format/layout.h"
#include "model/flops/flops.h"
#include "scratch.h"

/* The shapes of an example, as the reader has them. */
static inline struct sonde_trace *open_shapes(const char *spec)
{
    struct synth *s = synth_new(scratch_path("shapes"), NULL);
    uint32_t      t = synth_thread(s, "main", 0);

    synth_begin(s, t, 1, synth_string(s, "x"), synth_shapes(s, spec));
    synth_end(s, t, 2);
    synth_close(s, true);
    return scratch_open(scratch_path("shapes"));
}

static inline enum snd_flops_answer count(const char *name, const char *shapes,
                                          const char *arguments, enum sonde_flops_mode mode,
                                          struct snd_work *work)
{
    struct sonde_argument items[64];
    struct sonde_trace   *trace = open_shapes(shapes);
    struct snd_call       call = { items,
                                   sonde_trace_arguments(trace, 0, 1, items, 64),
                                   { arguments ? arguments : "", arguments ? strlen(arguments) : 0 } };

    enum snd_flops_answer answer = snd_flops_call((struct sonde_text){ name, strlen(name) }, mode,
                                                  &call, work);
    sonde_trace_close(trace);
    return answer;
}

/* What a call computes and writes: `shapes` as synth_shapes() takes them, `arguments` as torch prints them, with ';' between. */
struct flops_row {
    const char *name, *shapes, *arguments;
    double      macs, other, written; /* elements, of four bytes each */
};

/* "a;b" as the list of JSON that a trace has. */
static inline const char *as_json(const char *arguments)
{
    static char text[512];
    size_t      at = (size_t)snprintf(text, sizeof text, "[\"");

    for (const char *c = arguments; *c && at < sizeof text - 8; c++)
        at += (size_t)snprintf(text + at, sizeof text - at, *c == ';' ? "\", \"" : "%c", *c);
    snprintf(text + at, sizeof text - at, "\"]");
    return arguments[0] ? text : "";
}

/* Elements of all tensors of a call, those in lists too. */
static inline double elements_read(const char *shapes)
{
    double all = 0, product = -1; /* of the tensor that it is in */

    for (const char *c = shapes; *c;) {
        char *end;
        if (*c >= '0' && *c <= '9')
            product = (product < 0 ? 1 : product) * strtod(c, &end);
        else
            end = (char *)c + 1;
        if (*end != ',' && product >= 0 && (*end < '0' || *end > '9')) {
            all += product;
            product = -1;
        }
        c = end;
    }
    return all;
}

static inline void check_rows(const struct flops_row *rows, size_t row_count)
{
    for (size_t i = 0; i < row_count; i++) {
        const struct flops_row *e = &rows[i];
        struct snd_work         work;
        if (count(e->name, e->shapes, as_json(e->arguments), SONDE_FLOPS_FULL, &work) !=
            SND_FLOPS_FOUND)
            fail_msg("%s %s: not counted", e->name, e->shapes);
        double written = work.moved_bytes / 4 - elements_read(e->shapes);
        if (work.macs != e->macs || work.flops != 2 * e->macs + e->other || written != e->written)
            fail_msg("%s %s: %g MACs, %g others, %g written; expected %g, %g, %g", e->name,
                     e->shapes, work.macs, work.flops - 2 * work.macs, written, e->macs, e->other,
                     e->written);
    }
}

/* Without what the count depends on there is none, rather than a wrong one. Of a row only the call is looked at. */
static inline void check_refused(const struct flops_row *rows, size_t row_count)
{
    for (size_t i = 0; i < row_count; i++) {
        const struct flops_row *e = &rows[i];
        struct snd_work         work;
        if (count(e->name, e->shapes, as_json(e->arguments), SONDE_FLOPS_FULL, &work) !=
            SND_FLOPS_UNKNOWN)
            fail_msg("%s %s %s: %g FLOPs", e->name, e->shapes, e->arguments, work.flops);
        if (work.flops != 0 || work.moved_bytes != 0)
            fail_msg("%s %s %s: not known, and %g FLOPs", e->name, e->shapes, e->arguments,
                     work.flops);
    }
}

#endif
