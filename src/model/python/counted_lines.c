/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/python/counted_lines.c - what was counted for the lines of functions.
 *
 * A tally's key is the frame of a line, which names its function, where that begins, and the
 * file: these three group the lines. A tally of no runs at all registers a function that was
 * asked for and never ran.
 */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/map.h"
#include "base/data/sort.h"
#include "read/said/trace_metadata.h"
#include "read/reader.h"
#include "sonde/model.h"

struct counted {
    struct sonde_line line;
    uint32_t          function;
};

struct sonde_lines {
    struct sonde_trace         *trace;
    struct sonde_line_function *functions;
    uint32_t                    function_count, function_room;
    struct counted             *counted; /* while they are gathered */
    uint32_t                    count, room;
    struct sonde_line          *lines; /* function after function, by line */
    struct snd_map              by_place, by_line;
};

static uint32_t find_function(struct sonde_lines *l, const struct sonde_frame *frame)
{
    struct snd_key place = { (uint64_t)(uintptr_t)frame->file.bytes,
                             frame->first_line ? frame->first_line : frame->line,
                             (uint64_t)(uintptr_t)frame->function.bytes };
    uint32_t       at;

    if (snd_map_get(&l->by_place, place, &at))
        return at;
    if (!snd_grow(&l->functions, &l->function_room, l->function_count, sizeof *l->functions) ||
        !snd_map_put(&l->by_place, place, l->function_count))
        return UINT32_MAX;
    l->functions[l->function_count] = (struct sonde_line_function){
        .file = frame->file, .name = frame->function, .line = (uint32_t)place.b, .source = { "", 0 }
    };
    return l->function_count++;
}

static struct sonde_line *find_line(struct sonde_lines *l, uint32_t function, uint32_t line)
{
    struct snd_key key = { function, line, 0 };
    uint32_t       at;

    if (snd_map_get(&l->by_line, key, &at))
        return &l->counted[at].line;
    if (!snd_grow(&l->counted, &l->room, l->count, sizeof *l->counted) ||
        !snd_map_put(&l->by_line, key, l->count))
        return NULL;
    l->counted[l->count] = (struct counted){ .line = { .line = line }, .function = function };
    return &l->counted[l->count++].line;
}

/* Of several processes: runs and bytes are added up, the greatest usage and peak is shown. */
static void add_words(struct sonde_line *line, enum sonde_line_kind kind, const uint64_t *words,
                      const struct snd_scale *scale)
{
    static_assert((int)SND_LINE_RUNS == (int)SND_LINE_MEMORY_RUNS, "of either kind");

    line->hits = snd_count_add(line->hits, words[SND_LINE_RUNS]);
    if (kind == SONDE_LINES_TIME) {
        line->time_ns = snd_add(line->time_ns, snd_scale_ticks(scale, words[SND_LINE_TICKS]));
        return;
    }
    line->increment_bytes = snd_add(line->increment_bytes, (int64_t)words[SND_LINE_MEMORY_NET]);
    line->allocated_bytes += words[SND_LINE_MEMORY_TAKEN];
    line->freed_bytes += words[SND_LINE_MEMORY_FREED];
    if (line->usage_bytes < words[SND_LINE_MEMORY_IN_USE])
        line->usage_bytes = words[SND_LINE_MEMORY_IN_USE];
    if (line->peak_bytes < words[SND_LINE_MEMORY_PEAK])
        line->peak_bytes = words[SND_LINE_MEMORY_PEAK];
}

static bool add_tally(struct sonde_lines *l, uint32_t process, enum sonde_line_kind kind,
                      const struct sonde_tally_row *row)
{
    struct sonde_frame frame;

    sonde_trace_frame(l->trace, process, row->key, &frame);
    uint32_t function = find_function(l, &frame);
    if (function == UINT32_MAX)
        return false;
    if (row->words[SND_LINE_RUNS] == 0)
        return true;
    struct sonde_line *line = find_line(l, function, frame.line);
    if (!line)
        return false;
    add_words(line, kind, row->words, &l->trace->processes[process].scale);
    return true;
}

static bool gather(struct sonde_lines *l, enum sonde_line_kind kind)
{
    uint32_t wanted = kind == SONDE_LINES_TIME ? SND_TALLY_LINE : SND_TALLY_LINE_MEMORY;
    struct sonde_tally_row row;

    for (uint32_t p = 0; p < l->trace->process_count; p++)
        for (uint32_t n = 0; sonde_trace_tally(l->trace, p, n, &row); n++)
            if (row.kind == wanted && !add_tally(l, p, kind, &row))
                return false;
    return true;
}

static int compare_counted(const void *left, const void *right)
{
    const struct counted *x = left, *y = right;

    return SND_ORDER(SND_RISING(x->function, y->function), SND_RISING(x->line.line, y->line.line));
}

static bool arrange(struct sonde_lines *l)
{
    l->lines = calloc((size_t)l->count + 1, sizeof *l->lines);
    if (!l->lines)
        return false;
    snd_sort(l->counted, l->count, sizeof *l->counted, compare_counted);
    for (uint32_t i = 0; i < l->count; i++) {
        struct sonde_line_function *f = &l->functions[l->counted[i].function];
        if (f->count++ == 0)
            f->first = i;
        f->hits = snd_count_add(f->hits, l->counted[i].line.hits);
        f->time_ns = snd_add(f->time_ns, l->counted[i].line.time_ns);
        l->lines[i] = l->counted[i].line;
    }
    return true;
}

/* ------------------------------------------------------------------ sources */

struct stat_read {
    bool              any;
    uint64_t          size;
    int64_t           mtime_ns;
    struct sonde_text text;
};

/* Size and time of a file as it ran, or its text. False: memory is out. */
static bool read_stat(struct snd_texts *files, struct stat_read *stats, uint32_t count,
                      enum snd_meta meta, struct sonde_text path, struct sonde_text value)
{
    uint32_t file;
    char    *end;

    if (!snd_texts_add(files, path.bytes, path.length, &file))
        return false;
    if (file >= count)
        return true;
    if (meta == SND_META_PYTHON_SOURCE_TEXT) {
        stats[file].text = value;
        return true;
    }
    stats[file].size = strtoull(value.bytes, &end, 10);
    stats[file].any = end != value.bytes && *end == ' ';
    stats[file].mtime_ns = strtoll(end, NULL, 10);
    return true;
}

static bool read_stats_of(struct sonde_lines *l, uint32_t process, struct snd_texts *files,
                          struct stat_read *stats, uint32_t count)
{
    static const enum snd_meta told[] = { SND_META_PYTHON_SOURCE, SND_META_PYTHON_SOURCE_TEXT };
    struct sonde_text          path, value;

    for (size_t i = 0; i < SND_COUNT_OF(told); i++)
        for (uint32_t n = 0; snd_meta_next(l->trace, process, told[i], &n, &path, &value);)
            if (!read_stat(files, stats, count, told[i], path, value))
                return false;
    return true;
}

/* Files are numbered first, so that the metadata is gone through once. */
static bool read_stats(struct sonde_lines *l)
{
    struct snd_texts  files = { 0 };
    uint32_t         *numbers = calloc((size_t)l->function_count + 1, sizeof *numbers);
    struct stat_read *stats = calloc((size_t)l->function_count + 1, sizeof *stats);
    bool              good = numbers && stats;

    for (uint32_t i = 0; good && i < l->function_count; i++)
        good = snd_texts_add(&files, l->functions[i].file.bytes, l->functions[i].file.length,
                             &numbers[i]);
    uint32_t count = files.count;
    for (uint32_t p = 0; good && p < l->trace->process_count; p++)
        good = read_stats_of(l, p, &files, stats, count);
    for (uint32_t i = 0; good && i < l->function_count; i++) {
        const struct stat_read *stat = &stats[numbers[i]];
        l->functions[i].source = stat->text.bytes ? stat->text : (struct sonde_text){ "", 0 };
        l->functions[i].has_stat = stat->any;
        l->functions[i].stat_size = stat->size;
        l->functions[i].stat_mtime_ns = stat->mtime_ns;
    }
    free(numbers);
    free(stats);
    snd_texts_release(&files);
    return good;
}

/* ---------------------------------------------------------------- the whole */

enum sonde_status sonde_lines_new(struct sonde_trace *trace, enum sonde_line_kind kind,
                                  struct sonde_lines **out, struct sonde_error *err)
{
    struct sonde_lines *l = calloc(1, sizeof *l);

    *out = NULL;
    if (l)
        l->trace = trace;
    bool good = l && gather(l, kind) && arrange(l) && read_stats(l);
    if (l) {
        free(l->counted);
        l->counted = NULL;
        snd_map_release(&l->by_place);
        snd_map_release(&l->by_line);
    }
    if (!good) {
        sonde_lines_free(l);
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the lines");
    }
    *out = l;
    return SONDE_OK;
}

void sonde_lines_free(struct sonde_lines *l)
{
    if (!l)
        return;
    free(l->functions);
    free(l->counted);
    free(l->lines);
    snd_map_release(&l->by_place);
    snd_map_release(&l->by_line);
    free(l);
}

size_t sonde_lines_function_count(const struct sonde_lines *lines)
{
    return lines->function_count;
}

const struct sonde_line_function *sonde_lines_function(const struct sonde_lines *lines,
                                                       size_t                    index)
{
    return index < lines->function_count ? &lines->functions[index] : NULL;
}

const struct sonde_line *sonde_lines_line(const struct sonde_lines *lines, size_t index)
{
    return index < lines->count ? &lines->lines[index] : NULL;
}
