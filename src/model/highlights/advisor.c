/* SPDX-License-Identifier: Apache-2.0 */
#include "model/highlights/advisor.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "model/summary/steps.h"
#include "read/file/scale.h"
#include "read/reader.h"

#define FRAMES_MOST 256u /* in which a line of the program is looked for */

static const struct {
    const char *name, *tries;
} patterns[] = {
#define SND_ADVICE(NAME, name, when, tries) { name, tries },
#include "model/highlights/advice.def"
#undef SND_ADVICE
};

/* --------------------------------------------------------------------- places */

static const char *last_part(struct sonde_text path)
{
    const char *slash = path.length ? memrchr(path.bytes, '/', path.length) : NULL;

    return slash ? slash + 1 : path.bytes;
}

const char *snd_spot_short(const struct snd_spot *spot, char text[static SND_SPOT_TEXT])
{
    if (spot->line)
        snprintf(text, SND_SPOT_TEXT, "%.100s:%" PRIu32, last_part(spot->file), spot->line);
    else
        snprintf(text, SND_SPOT_TEXT, "%.*s",
                 (int)(spot->function.length < 100 ? spot->function.length : 100),
                 spot->function.bytes); /* it may be a part of a text: a module without its class */
    return text;
}

bool snd_spot_of_frames(const struct sonde_trace *trace, const struct snd_library_paths *libraries,
                        uint32_t process, uint32_t stack, struct snd_spot *spot)
{
    const struct snd_tables *t = &trace->processes[process].tables;
    struct sonde_frame       frame;

    for (uint32_t i = 0; i < FRAMES_MOST && stack != 0 && stack < t->stack_count; i++) {
        uint32_t id = t->stacks[stack].frame;
        if (sonde_trace_frame(trace, process, id, &frame) &&
            snd_library_paths_own(libraries, &frame, snd_frame_is_native(t, id))) {
            *spot = (struct snd_spot){ frame.file, frame.function, frame.line };
            return true;
        }
        stack = t->stacks[stack].parent;
    }
    return false;
}

bool snd_spot_of_stack(const struct snd_advisor *advisor, uint32_t process, uint32_t stack,
                       struct snd_spot *spot)
{
    return snd_spot_of_frames(advisor->trace, &advisor->libraries, process, stack, spot);
}

/*
 * Texts of a trace are each there once: the same bytes have the same address. A line is one place, whatever functions
 * share it: a comprehension and the function around it, whose name is the shorter one.
 */
static struct snd_key key_of(const struct snd_spot *at)
{
    return (struct snd_key){ (uint64_t)(uintptr_t)at->file.bytes,
                             at->line ? 0 : (uint64_t)(uintptr_t)at->function.bytes, at->line };
}

bool snd_spots_add(struct snd_spots *spots, const struct snd_spot *at, int64_t ns, uint64_t count)
{
    struct snd_key key = key_of(at);
    uint32_t       i;

    if (!snd_map_get(&spots->numbers, key, &i)) {
        i = spots->count;
        if (!snd_grow(&spots->items, &spots->room, spots->count, sizeof *spots->items) ||
            !snd_map_put(&spots->numbers, key, i))
            return false;
        spots->items[spots->count++] = (struct snd_spot_sum){ .at = *at };
    }
    if (at->function.length < spots->items[i].at.function.length)
        spots->items[i].at.function = at->function;
    spots->items[i].ns = snd_add(spots->items[i].ns, ns);
    spots->items[i].count += count;
    return true;
}

const struct snd_spot_sum *snd_spots_most(const struct snd_spots *spots)
{
    const struct snd_spot_sum *most = NULL;

    for (uint32_t i = 0; i < spots->count; i++)
        if (!most || spots->items[i].ns > most->ns)
            most = &spots->items[i];
    return most;
}

int64_t snd_spots_ns(const struct snd_spots *spots, const struct snd_spot *at)
{
    uint32_t i;

    return snd_map_get(&spots->numbers, key_of(at), &i) ? spots->items[i].ns : 0;
}

void snd_spots_release(struct snd_spots *spots)
{
    free(spots->items);
    snd_map_release(&spots->numbers);
    *spots = (struct snd_spots){ 0 };
}

/* ---------------------------------------------------------- ranges by samples */

bool snd_sampled_ranges_add(struct snd_sampled_ranges *sampled, const char *name,
                            const struct snd_spot *at, int64_t ns, uint64_t count)
{
    struct snd_key key = { (uint64_t)(uintptr_t)name, 0, 0 };
    uint32_t       i;

    if (!snd_map_get(&sampled->numbers, key, &i)) {
        i = sampled->count;
        if (!snd_grow(&sampled->spots, &sampled->room, i, sizeof *sampled->spots) ||
            !snd_map_put(&sampled->numbers, key, i))
            return false;
        sampled->spots[sampled->count++] = (struct snd_spots){ 0 };
    }
    return snd_spots_add(&sampled->spots[i], at, ns, count);
}

bool snd_spot_of_samples(const struct snd_advisor *advisor, const char *name, struct snd_spot *spot)
{
    const struct snd_sampled_ranges *sampled = &advisor->sampled;
    uint32_t                         i;

    if (!snd_map_get(&sampled->numbers, (struct snd_key){ (uint64_t)(uintptr_t)name, 0, 0 }, &i) ||
        sampled->spots[i].count == 0)
        return false;
    *spot = snd_spots_most(&sampled->spots[i])->at;
    return true;
}

void snd_sampled_release(struct snd_sampled_ranges *sampled)
{
    for (uint32_t i = 0; i < sampled->count; i++)
        snd_spots_release(&sampled->spots[i]);
    free(sampled->spots);
    snd_map_release(&sampled->numbers);
    *sampled = (struct snd_sampled_ranges){ 0 };
}

/* --------------------------------------------------------------- torch's ranges */

enum snd_torch_range snd_torch_range(const char *name, size_t length)
{
    static const struct {
        const char          *start;
        enum snd_torch_range range;
    } known[] = {
        { "enumerate(DataLoader)#_SingleProcess", SND_TORCH_LOADS_ALONE },
        { "enumerate(DataLoader)#_MultiProcess", SND_TORCH_LOADS_WITH_WORKERS },
        { "_compile.compile_inner (dynamo_timed)", SND_TORCH_COMPILES },
    };

    for (size_t i = 0; i < SND_COUNT_OF(known); i++)
        if (length >= strlen(known[i].start) &&
            memcmp(name, known[i].start, strlen(known[i].start)) == 0)
            return known[i].range;
    return snd_steps_is_compilation(name, length) ? SND_TORCH_COMPILES_PART : SND_TORCH_NONE;
}

/* ------------------------------------------------------------------ sentences */

static bool is_advised(const struct snd_advisor *advisor, enum snd_pattern pattern)
{
    for (size_t i = 0; i < advisor->found.count; i++)
        if (advisor->found.items[i].pattern == pattern)
            return true;
    return false;
}

void snd_advise(struct snd_advisor *advisor, enum snd_pattern pattern, double share,
                const char *link, const struct snd_spot *spot, const char *format, ...)
{
    va_list args;

    if (is_advised(advisor, pattern))
        return;
    struct snd_advice *advice = &advisor->found.items[advisor->found.count++];
    *advice = (struct snd_advice){ .pattern = pattern,
                                   .name = patterns[pattern].name,
                                   .tries = patterns[pattern].tries,
                                   .share = share };
    snprintf(advice->link, sizeof advice->link, "%s", link);
    if (spot && spot->line)
        snprintf(advice->place, sizeof advice->place, "%.*s:%" PRIu32,
                 (int)(spot->file.length < 300 ? spot->file.length : 300), spot->file.bytes,
                 spot->line);
    else if (spot)
        snprintf(advice->place, sizeof advice->place, "%.*s",
                 (int)(spot->function.length < 300 ? spot->function.length : 300),
                 spot->function.bytes);
    va_start(args, format);
    vsnprintf(advice->text, sizeof advice->text, format, args);
    va_end(args);
}

const char *snd_pattern_name(enum snd_pattern pattern)
{
    return patterns[pattern].name;
}

/* ------------------------------------------------------------------ amounts */

struct snd_amount snd_amount_time(int64_t ns)
{
    struct snd_amount amount;
    char              text[SND_NUMBER_MAX];

    snprintf(amount.text, sizeof amount.text, "%s", snd_time_text(text, (double)ns / 1e3, ""));
    return amount;
}

struct snd_amount snd_amount_bytes(int64_t bytes)
{
    static const struct {
        double      size;
        const char *name;
    } units[] = { { 1073741824.0, "GB" }, { 1048576.0, "MB" }, { 1024.0, "KB" }, { 1.0, "B" } };
    struct snd_amount amount = { "0 B" };

    for (size_t i = 0; i < SND_COUNT_OF(units); i++) {
        if ((double)bytes >= units[i].size) {
            snprintf(amount.text, sizeof amount.text, i < 3 ? "%.2f %s" : "%.0f %s",
                     (double)bytes / units[i].size, units[i].name);
            break;
        }
    }
    return amount;
}

double snd_percent(int64_t part, int64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}
