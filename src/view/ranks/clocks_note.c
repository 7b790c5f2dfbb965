/* SPDX-License-Identifier: Apache-2.0 */
#include "view/ranks/clocks_note.h"

#include "base/text/buf.h"
#include "model/ranks/host_clocks.h"
#include "view/render/format.h"

static const char *format_error(struct snd_doc *doc, int64_t ns)
{
    return snd_doc_format(doc, "%.1f us", (double)ns / 1e3);
}

static const char *describe(struct snd_doc *doc, const struct snd_host_clocks *clocks)
{
    if (clocks->aligned == clocks->hosts)
        return snd_doc_format(doc,
                              "of %u hosts aligned, \xc2\xb1%s; waiting below that is not known",
                              clocks->hosts, format_error(doc, clocks->error_ns));
    if (clocks->aligned > 1)
        return snd_doc_format(
            doc,
            "of %u of %u hosts aligned, \xc2\xb1%s; no collective ties the others "
            "to them",
            clocks->aligned, clocks->hosts, format_error(doc, clocks->error_ns));
    if (clocks->claimed_ns >= 0)
        return snd_doc_format(doc,
                              "of %u hosts as they are, no collective ties them; by their own "
                              "account \xc2\xb1%s",
                              clocks->hosts, format_error(doc, clocks->claimed_ns));
    return snd_doc_format(doc, "of %u hosts as they are, no collective ties them", clocks->hosts);
}

void snd_clocks_note(struct snd_doc *doc)
{
    const struct snd_host_clocks *clocks = doc->trace->host_clocks;

    if (!clocks || clocks->hosts < 2)
        return;
    snd_doc_total(doc, "clocks", "Clocks", SND_TEXT, snd_cell_string(describe(doc, clocks)));
    snd_doc_total(doc, "host_count", NULL, SND_COUNT, snd_cell_number(clocks->hosts));
    snd_doc_total(doc, "aligned_host_count", NULL, SND_COUNT, snd_cell_number(clocks->aligned));
    snd_doc_total(doc, "clock_error_ns", NULL, SND_TIME,
                  clocks->aligned > 1 ? snd_cell_number(clocks->error_ns) : snd_cell_none());
}
