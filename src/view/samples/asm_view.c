/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The asm view: the instructions at which samples found native code. As text a block for each function, from its
 * first instruction with samples to its last; as data a row for each with samples.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/text/plural.h"
#include "model/samples/sample_places.h"
#include "view/source/disassembly.h"
#include "view/render/format.h"
#include "view/source/native_names.h"
#include "view/render/view.h"

#define LEAST_SHARE \
    0.01                /* of all samples: functions with less are left out, unless all are shown */
#define AFTER 16u       /* bytes after the last address: its instruction is in them */
#define BLOCK_MAX 1000u /* instructions of one function; beyond, those with samples alone */

static const struct snd_column columns[] = {
    { "function", "Function", SND_TEXT, SND_FIT_CONTENT },
    { "object", "Object", SND_TEXT, SND_FIT_CONTENT },
    { "address", "Address", SND_TEXT, SND_FIT_CONTENT },
    { "samples", "Samples", SND_COUNT, SND_FIT_FIXED },
    { "self_ns", "Self", SND_TIME, SND_FIT_FIXED },
    { "self_share", "Self %", SND_SHARE, SND_FIT_FIXED },
    { "function_share", "Of Function %", SND_SHARE, SND_FIT_FIXED },
    { "instruction", "Instruction", SND_TEXT, SND_FIT_CONTENT },
};

/* The rows of one function: from `first` to the one before the result. */
static uint32_t end_of(const struct snd_sample_places *places, uint32_t first)
{
    const struct snd_sample_place *rows = places->rows;
    uint32_t                       end = first + 1;

    while (end < places->count && rows[end].function.bytes == rows[first].function.bytes &&
           rows[end].object.bytes == rows[first].object.bytes)
        end++;
    return end;
}

static void open_code(struct snd_disassembly *code, const struct snd_sample_places *places,
                      uint32_t first, uint32_t end)
{
    const struct snd_sample_place *rows = places->rows;
    struct sonde_buffer            path = { 0 }, build_id = { 0 };

    snd_buf_put(&path, rows[first].object.bytes, rows[first].object.length);
    snd_buf_put(&build_id, rows[first].build_id.bytes, rows[first].build_id.length);
    snd_disassemble(code, snd_buf_string(&path), snd_buf_string(&build_id), rows[first].address,
                    rows[end - 1].address + AFTER);
    sonde_buffer_release(&path);
    sonde_buffer_release(&build_id);
}

static bool is_shown(const struct snd_sample_places *places, uint32_t first, bool all)
{
    return all || (double)places->rows[first].function_ns >= LEAST_SHARE * (double)places->whole_ns;
}

/* ------------------------------------------------------------------------ text */

static double percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

static void put_clean(struct snd_out *out, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        snd_out_put(out, (unsigned char)bytes[i] < ' ' ? " " : &bytes[i], 1);
}

static void put_line(struct snd_out *out, const struct snd_sample_place *place, uint64_t address,
                     const struct snd_disassembly *code, const struct snd_instruction *at)
{
    char number[SND_NUMBER_MAX];

    snd_out_format(out, "%7s %10" PRIx64 "  ",
                   place ? snd_number_fixed(number, 2, percent(place->self_ns, place->function_ns))
                         : "",
                   address);
    if (at)
        put_clean(out, code->text.bytes + at->from, at->length);
    snd_out_text(out, "\n");
}

static void put_function(const struct snd_sample_places *places, uint32_t first, uint32_t end,
                         struct snd_out *out)
{
    const struct snd_sample_place *rows = places->rows;
    struct sonde_text              name = snd_native_name(rows[first].function);
    struct snd_disassembly         code;
    char                           number[SND_NUMBER_MAX];

    snd_out_format(out, "%s %% in ",
                   snd_number_fixed(number, 2, percent(rows[first].function_ns, places->whole_ns)));
    put_clean(out, name.bytes, name.length);
    snd_out_text(out, "  ");
    put_clean(out, rows[first].object.bytes, rows[first].object.length);
    snd_out_text(out, "\n");
    open_code(&code, places, first, end);
    if (code.missing)
        snd_out_format(out, "%s\n", code.missing);
    snd_out_text(out, " Self %    Address  Instruction\n");
    if (code.missing || code.count > BLOCK_MAX) {
        for (uint32_t i = first; i < end; i++)
            put_line(out, &rows[i], rows[i].address, &code,
                     snd_disassembly_at(&code, rows[i].address));
    } else {
        uint64_t last = rows[end - 1].address;
        for (uint32_t i = 0; i < code.count && code.list[i].address <= last; i++) {
            while (first < end && rows[first].address < code.list[i].address)
                first++;
            bool has_samples = first < end && rows[first].address == code.list[i].address;
            put_line(out, has_samples ? &rows[first] : NULL, code.list[i].address, &code,
                     &code.list[i]);
        }
    }
    snd_out_text(out, "\n");
    snd_disassembly_release(&code);
}

static void put_page(const struct snd_doc *doc, const struct sonde_report_options *options,
                     struct snd_out *out)
{
    const struct snd_sample_places *places = doc->data;
    uint32_t                        hidden = 0;

    for (uint32_t at = 0, end; at < places->count && !out->failed; at = end) {
        end = end_of(places, at);
        if (is_shown(places, at, options->show_all))
            put_function(places, at, end, out);
        else
            hidden++;
    }
    if (hidden > 0)
        snd_out_format(out,
                       "%" PRIu32
                       " function%s with less than 1 %% left out; --show-all shows all\n",
                       hidden, snd_plural(hidden));
}

/* ------------------------------------------------------------------------ data */

static void add_rows(struct snd_doc *doc, const struct snd_sample_places *places, bool all)
{
    for (uint32_t at = 0, end; at < places->count; at = end) {
        struct snd_disassembly code = { 0 };
        end = end_of(places, at);
        if (is_shown(places, at, all))
            open_code(&code, places, at, end);
        for (uint32_t i = at; i < end; i++) {
            const struct snd_sample_place *row = &places->rows[i];
            const struct snd_instruction  *found = snd_disassembly_at(&code, row->address);
            struct snd_cell               *cell = snd_table_add(&doc->rows);
            *cell++ = snd_cell_text(row->function);
            *cell++ = snd_cell_text(row->object);
            *cell++ = snd_cell_string(snd_doc_format(doc, "0x%" PRIx64, row->address));
            *cell++ = snd_cell_number((int64_t)row->samples);
            *cell++ = snd_cell_number(row->self_ns);
            *cell++ = snd_cell_share(row->self_ns, places->whole_ns);
            *cell++ = snd_cell_share(row->self_ns, row->function_ns);
            *cell = found ? snd_cell_string(snd_doc_format(doc, "%.*s", (int)found->length,
                                                           code.text.bytes + found->from))
                          : snd_cell_none();
        }
        snd_disassembly_release(&code);
    }
}

static void release(void *object)
{
    snd_sample_places_release(object);
    free(object);
}

SND_VIEW_BUILD(snd_view_asm)
{
    struct snd_sample_places *places = calloc(1, sizeof *places);

    if (!places)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the instructions");
    enum sonde_status st = snd_sample_places_make(places, trace, err);
    snd_doc_keep(doc, places, release);
    if (st != SONDE_OK)
        return st;
    snd_table_init(&doc->rows, columns, SND_COUNT_OF(columns));
    doc->empty =
        "The trace has no samples of native code: record them with sonde run -- ./program.";
    if (places->count == 0)
        return SONDE_OK;
    if (options->format != SONDE_REPORT_TEXT)
        add_rows(doc, places, options->show_all);
    else
        snd_table_add(&doc->rows); /* not empty: the text is the page's */
    snd_doc_total(doc, "time_ns", NULL, SND_TIME, snd_cell_number(places->whole_ns));
    doc->data = places;
    doc->text = put_page;
    return SONDE_OK;
}
