/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lprof: what kernprof -l writes and `python -m line_profiler` reads: a pickle of
 * LineStats(timings={(file, first line, function): [(line, hits, time)]}, unit=1e-09).
 */
#include "export/common/exporter.h"
#include "export/encode/py_bytes.h"
#include "sonde/model.h"

#define PROTO "\x80\x02"
#define TUPLE3 "\x87"
#define NEWOBJ "\x81"

static void put_function(const struct sonde_lines *lines, const struct sonde_line_function *f,
                         struct snd_out *out, struct sonde_buffer *text)
{
    snd_pickle_text(out, f->file, text);
    snd_pickle_int(out, f->line);
    snd_pickle_text(out, f->name, text);
    snd_out_text(out, TUPLE3 "](");
    for (uint32_t i = 0; i < f->count; i++) {
        const struct sonde_line *line = sonde_lines_line(lines, f->first + i);
        snd_pickle_int(out, line->line);
        snd_pickle_int(out, line->hits);
        snd_pickle_int(out, line->time_ns > 0 ? (uint64_t)line->time_ns : 0);
        snd_out_text(out, TUPLE3);
    }
    snd_out_text(out, "e"); /* all of them to the list */
}

static struct sonde_text text_of(const char *text, size_t length)
{
    return (struct sonde_text){ text, length };
}

SND_EXPORT_WRITE(snd_export_lprof)
{
    struct sonde_lines *lines;
    struct sonde_buffer text = { 0 };

    (void)options;
    enum sonde_status st = sonde_lines_new(trace, SONDE_LINES_TIME, &lines, err);
    if (st != SONDE_OK)
        return st;
    if (sonde_lines_function_count(lines) == 0) {
        sonde_lines_free(lines);
        return snd_fail(err, SONDE_E_STATE, "the trace counts no lines; record them with --lines");
    }
    snd_out_text(out, PROTO "cline_profiler.line_profiler\nLineStats\n)" NEWOBJ "}(");
    snd_pickle_text(out, text_of("timings", 7), &text);
    snd_out_text(out, "}(");
    for (size_t i = 0; i < sonde_lines_function_count(lines); i++)
        put_function(lines, sonde_lines_function(lines, i), out, &text);
    snd_out_text(out, "u");
    snd_pickle_text(out, text_of("unit", 4), &text);
    snd_pickle_real(out, 1e-9);
    snd_out_text(out, "ub.");
    if (text.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the lines");
    sonde_buffer_release(&text);
    sonde_lines_free(lines);
    return st;
}
