/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/dwarf/dwarf_walk.c - see dwarf_walk.h
 *
 * Addresses are grouped by compilation unit. A unit's tree is walked once: its functions, and what
 * is inlined into them, become ranges of addresses in which the innermost wins.
 */
#include <stdlib.h>
#include <string.h>

#include "base/data/map.h"
#include "symbols/dwarf/dwarf_walk.h"
#include "symbols/elf/segments.h"

#define DEPTH_MOST 512u /* of nested entries */
#define NO_SCOPE UINT32_MAX

struct unit {
    struct dw_die die; /* of the unit that has the functions */
};

/* A function, or a place where one is inlined. */
struct scope {
    struct dw_die die;
    uint32_t      parent; /* that it is inlined into; NO_SCOPE: a function of its own */
};

struct walk {
    const struct snd_libdw *dw;
    struct unit            *units;
    uint32_t                unit_count, unit_room;
    struct snd_span        *spans; /* of units, then of the scopes of one unit */
    uint32_t                span_count, span_room;
    struct scope           *scopes;
    uint32_t                scope_count, scope_room;
    struct snd_segments     by_unit, by_scope;
    uint32_t                unit; /* whose scopes are there */
};

/* The ranges of an entry become spans of `item`. */
static bool take_ranges(struct walk *w, struct dw_die *die, uint32_t item)
{
    uint64_t  base, start, end;
    ptrdiff_t at = 0;

    while ((at = w->dw->dwarf_ranges(die, at, &base, &start, &end)) > 0) {
        if (start == 0 || start >= end) /* 0: the linker dropped the function */
            continue;
        if (!snd_grow(&w->spans, &w->span_room, w->span_count, sizeof *w->spans))
            return false;
        w->spans[w->span_count++] = (struct snd_span){ start, end, item, item };
    }
    return true;
}

static bool take_units(struct walk *w, struct dw *dwarf)
{
    struct dw_unit *unit = NULL;
    struct dw_die   die, sub;
    uint8_t         type = 0;
    uint16_t        version;

    w->span_count = 0;
    while (w->dw->dwarf_get_units(dwarf, unit, &unit, &version, &type, &die, &sub) == 0) {
        if (w->unit_count >= SND_NO_ITEM - 1 ||
            !snd_grow(&w->units, &w->unit_room, w->unit_count, sizeof *w->units) ||
            !take_ranges(w, &die, w->unit_count))
            return false;
        bool is_split = type == DW_UNIT_SKELETON && sub.address;
        w->units[w->unit_count++].die = is_split ? sub : die;
    }
    return snd_segments_build(&w->by_unit, w->spans, w->span_count);
}

/* ---------------------------------------------------------------- scopes of a unit */

static bool take_scope(struct walk *w, struct dw_die *die, uint32_t parent, uint32_t *scope)
{
    if (w->scope_count >= SND_NO_ITEM - 1 ||
        !snd_grow(&w->scopes, &w->scope_room, w->scope_count, sizeof *w->scopes))
        return false;
    *scope = w->scope_count;
    w->scopes[w->scope_count++] = (struct scope){ *die, parent };
    return take_ranges(w, die, *scope);
}

static bool take_children(struct walk *w, struct dw_die *parent, uint32_t scope, unsigned depth)
{
    struct dw_die die;

    if (depth > DEPTH_MOST || w->dw->dwarf_child(parent, &die) != 0)
        return true;
    do {
        uint32_t inner = scope;
        int      tag = w->dw->dwarf_tag(&die);
        if ((tag == DW_TAG_FUNCTION && !take_scope(w, &die, NO_SCOPE, &inner)) ||
            (tag == DW_TAG_INLINED && !take_scope(w, &die, scope, &inner)) ||
            !take_children(w, &die, inner, depth + 1))
            return false;
    } while (w->dw->dwarf_siblingof(&die, &die) == 0);
    return true;
}

static bool open_unit(struct walk *w, uint32_t unit)
{
    if (w->unit == unit)
        return true;
    w->unit = unit;
    w->scope_count = w->span_count = 0;
    snd_segments_release(&w->by_scope);
    return take_children(w, &w->units[unit].die, NO_SCOPE, 0) &&
           snd_segments_build(&w->by_scope, w->spans, w->span_count);
}

/* ------------------------------------------------------------------------- answers */

static const char *function_name(const struct snd_libdw *dw, struct dw_die *die, bool *is_bare)
{
    struct dw_attribute attribute;
    const char         *name = NULL;

    if (dw->dwarf_attr_integrate(die, DW_AT_LINKAGE_NAME, &attribute) ||
        dw->dwarf_attr_integrate(die, DW_AT_LINKAGE_NAME_OLD, &attribute))
        name = dw->dwarf_formstring(&attribute);
    *is_bare = !name;
    if (!name)
        name = dw->dwarf_diename(die);
    return name ? name : "";
}

static uint64_t number_of(const struct snd_libdw *dw, struct dw_die *die, unsigned code)
{
    struct dw_attribute attribute;
    uint64_t            number = 0;

    if (!dw->dwarf_attr(die, code, &attribute) || dw->dwarf_formudata(&attribute, &number) != 0)
        return 0;
    return number;
}

/* Where an inlined function is called: a place in the one around it. */
static void take_call(const struct walk *w, struct dw_die *die, struct snd_dwarf_frame *frame)
{
    struct dw_files *files;
    size_t           count;
    uint64_t         file = number_of(w->dw, die, DW_AT_CALL_FILE);

    frame->line = (uint32_t)number_of(w->dw, die, DW_AT_CALL_LINE);
    if (file != 0 && w->dw->dwarf_getsrcfiles(&w->units[w->unit].die, &files, &count) == 0 &&
        file < count)
        frame->file = w->dw->dwarf_filesrc(files, (size_t)file, NULL, NULL);
    if (!frame->file)
        frame->file = "";
}

static void take_line(const struct walk *w, uint64_t address, struct snd_dwarf_frame *frame)
{
    struct dw_line *line = w->dw->dwarf_getsrc_die(&w->units[w->unit].die, address);
    int             number;

    if (!line)
        return;
    if (w->dw->dwarf_lineno(line, &number) == 0 && number > 0)
        frame->line = (uint32_t)number;
    const char *file = w->dw->dwarf_linesrc(line, NULL, NULL);
    frame->file = file ? file : "";
}

/*
 * Where a function begins whose DWARF does not say it, as that of an assembler does not: the line of its
 * first instruction, if that is in the same file.
 */
static uint32_t entry_line(const struct walk *w, struct dw_die *die, const char *file)
{
    struct snd_dwarf_frame entry = { .file = "" };
    uint64_t               base, start, end;

    if (w->dw->dwarf_ranges(die, 0, &base, &start, &end) > 0)
        take_line(w, start, &entry);
    return strcmp(entry.file, file) == 0 ? entry.line : 0;
}

static uint32_t answer(const struct walk *w, uint64_t address, struct snd_dwarf_frame *frames)
{
    uint32_t scope = snd_segments_find(&w->by_scope, address), count = 0;

    if (scope == SND_NO_ITEM)
        return 0;
    frames[0] = (struct snd_dwarf_frame){ .function = "", .file = "" };
    take_line(w, address, &frames[0]);
    for (;;) {
        struct dw_die *die = &w->scopes[scope].die;
        int            first;
        frames[count].function = function_name(w->dw, die, &frames[count].is_bare);
        if (w->dw->dwarf_decl_line(die, &first) == 0 && first > 0)
            frames[count].first_line = (uint32_t)first;
        else if (w->scopes[scope].parent == NO_SCOPE)
            frames[count].first_line = entry_line(w, die, frames[count].file);
        scope = w->scopes[scope].parent;
        if (scope == NO_SCOPE || ++count == SND_DWARF_FRAMES_MOST)
            return scope == NO_SCOPE ? count + 1 : count;
        frames[count] = (struct snd_dwarf_frame){ .function = "", .file = "" };
        take_call(w, die, &frames[count]);
    }
}

static int compare_queries(const void *a, const void *b)
{
    const struct snd_dwarf_query *x = a, *y = b;

    if (x->unit != y->unit)
        return x->unit < y->unit ? -1 : 1;
    if (x->address != y->address)
        return x->address < y->address ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

bool snd_dwarf_walk(const struct snd_libdw *dw, int fd, struct snd_dwarf_query *queries,
                    uint32_t count, uint32_t first, void (*began)(void *, uint32_t),
                    snd_dwarf_fn *found, void *user)
{
    struct walk            w = { .dw = dw, .unit = SND_NO_ITEM };
    struct snd_dwarf_frame frames[SND_DWARF_FRAMES_MOST];
    struct dw             *dwarf = dw->dwarf_begin(fd, 0);
    bool                   ok = true;

    if (!dwarf)
        return true;
    ok = take_units(&w, dwarf);
    for (uint32_t i = 0; ok && i < count; i++)
        queries[i].unit = snd_segments_find(&w.by_unit, queries[i].address);
    if (ok)
        qsort(queries, count, sizeof *queries, compare_queries);
    for (uint32_t i = first; ok && i < count && queries[i].unit != SND_NO_ITEM; i++) {
        began(user, i);
        ok = open_unit(&w, queries[i].unit);
        uint32_t frame_count = ok ? answer(&w, queries[i].address, frames) : 0;
        if (frame_count > 0)
            ok = found(user, queries[i].index, frames, frame_count);
    }
    snd_segments_release(&w.by_unit);
    snd_segments_release(&w.by_scope);
    free(w.units);
    free(w.spans);
    free(w.scopes);
    dw->dwarf_end(dwarf);
    return ok;
}
