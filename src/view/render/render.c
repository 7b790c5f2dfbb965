/* SPDX-License-Identifier: Apache-2.0 */
/* view/render/render.c - see render.h: a document in the format that the options name. */
#include "view/render/render.h"

#include "base/count_of.h"
#include "base/struct_size.h"
#include "view/render/fit_lines.h"

static void (*const renderers[])(const struct snd_doc *, const struct sonde_report_options *,
                                 struct snd_out *) = {
    [SONDE_REPORT_TEXT] = snd_render_text,
    [SONDE_REPORT_JSON] = snd_render_json,
    [SONDE_REPORT_CSV] = snd_render_csv,
    [SONDE_REPORT_COLUMNS] = snd_render_columns,
};

/* A caller built against an older header knows fewer members. */
enum sonde_status snd_report_options(const struct sonde_report_options *given,
                                     struct sonde_report_options *used, struct sonde_error *err)
{
    static const struct sonde_report_options unset = SONDE_REPORT_OPTIONS_INIT;

    *used = unset;
    enum sonde_status st = snd_struct_take(given, used, sizeof *used, "SONDE_REPORT_OPTIONS_INIT",
                                           err);
    if (st != SONDE_OK)
        return st;
    if ((unsigned)used->format >= SND_COUNT_OF(renderers))
        return snd_fail(err, SONDE_E_ARGUMENT, "unknown report format %d", (int)used->format);
    return SONDE_OK;
}

enum sonde_status snd_render(const struct snd_doc *doc, const struct sonde_report_options *options,
                             const struct sonde_sink *sink, struct sonde_error *err)
{
    struct snd_line_fit fit;
    struct snd_out      out;
    bool                fits = options->format == SONDE_REPORT_TEXT && options->width > 0;

    snd_fit_init(&fit, sink, options->width, options->ascii);
    snd_out_init(&out, fits ? &fit.sink : sink);
    renderers[options->format](doc, options, &out);
    enum sonde_status st = snd_out_finish(&out, err);
    if (!snd_fit_finish(&fit) && st == SONDE_OK)
        st = snd_fail_os(err, SONDE_E_IO, "cannot write the output");
    return st;
}
