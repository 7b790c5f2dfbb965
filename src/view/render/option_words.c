/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/render/option_words.c - the words for the values of a report's options, as the command line and Python
 * take them.
 */
#include <string.h>

#include <sonde/export.h>

#include "base/text/buf.h"
#include "base/error.h"
#include "base/text/nearest.h"
#include "view/render/view.h"

/* clang-format off */
static const struct sonde_word
    formats[] = {
        { "text", SONDE_REPORT_TEXT }, { "json", SONDE_REPORT_JSON }, { "csv", SONDE_REPORT_CSV },
    },
    groups[] = {
        { "shape", SONDE_GROUP_SHAPE }, { "stack", SONDE_GROUP_STACK },
        { "thread", SONDE_GROUP_THREAD }, { "process", SONDE_GROUP_PROCESS },
        { "module", SONDE_GROUP_MODULE }, { "overload", SONDE_GROUP_OVERLOAD },
        { "operator", SONDE_GROUP_OPERATOR }, { "grid", SONDE_GROUP_GRID },
        { "device", SONDE_GROUP_DEVICE }, { "step", SONDE_GROUP_STEP },
    },
    flops[] = {
        { "full", SONDE_FLOPS_FULL }, { "torch", SONDE_FLOPS_TORCH }, { "none", SONDE_FLOPS_NONE },
    },
    parts[] = {
        { "main", SONDE_PART_MAIN }, { "callers", SONDE_PART_CALLERS },
        { "callees", SONDE_PART_CALLEES }, { "tree", SONDE_PART_TREE },
        { "awaiting", SONDE_PART_AWAITING }, { "summary", SONDE_PART_SUMMARY },
    },
    units[] = {
        { "us", SONDE_TIME_US }, { "ms", SONDE_TIME_MS }, { "s", SONDE_TIME_S },
        { "auto", SONDE_TIME_AUTO },
    },
    metrics[] = {
        { "self_cpu_time_total", SONDE_METRIC_CPU }, { "self_cuda_time_total", SONDE_METRIC_CUDA },
        { "self_xpu_time_total", SONDE_METRIC_XPU },
        { "self_privateuse1_time_total", SONDE_METRIC_PRIVATEUSE1 },
    },
    heaps[] = {
        { "peak", SONDE_HEAP_PEAK }, { "allocated", SONDE_HEAP_ALLOCATED },
        { "leaked", SONDE_HEAP_LEAKED },
    };

#define LIST(words) words, SND_COUNT_OF(words)
static const struct {
    const struct sonde_word *words;
    size_t                   count;
    const char              *one, *all; /* what they are called in messages; NULL: nothing */
} lists[] = {
    [SONDE_WORDS_FORMAT]    = { LIST(formats), "format", "formats" },
    [SONDE_WORDS_GROUP]     = { LIST(groups), "group", "groups" },
    [SONDE_WORDS_FLOPS]     = { LIST(flops), NULL, NULL },
    [SONDE_WORDS_PART]      = { LIST(parts), "part", "parts" },
    [SONDE_WORDS_TIME_UNIT] = { LIST(units), "time unit", "units" },
    [SONDE_WORDS_METRIC]    = { LIST(metrics), "metric", "metrics" },
    [SONDE_WORDS_HEAP]      = { LIST(heaps), "heap", "heaps" },
};
/* clang-format on */

const struct sonde_word *sonde_word(enum sonde_word_list list, size_t index)
{
    return index < lists[list].count ? &lists[list].words[index] : NULL;
}

static enum sonde_status refuse(enum sonde_word_list list, const char *name, size_t length,
                                struct sonde_error *err)
{
    struct sonde_buffer names = { 0 };
    struct snd_nearest  nearest = { .word = name, .length = length };
    char                hint[SND_HINT_MAX];
    int                 shown = (int)(length < 60 ? length : 60);
    const char         *last = lists[list].one ? ", " : " or ";

    for (size_t i = 0; i < lists[list].count; i++) {
        snd_buf_format(&names, "%s%s",
                       i == 0                      ? ""
                       : i + 1 < lists[list].count ? ", "
                                                   : last,
                       lists[list].words[i].name);
        snd_nearest_try(&nearest, lists[list].words[i].name);
    }
    if (lists[list].one)
        snd_fail(err, SONDE_E_ARGUMENT, "unknown %s '%.*s'%s; %s: %s", lists[list].one, shown, name,
                 snd_nearest_hint(&nearest, hint), lists[list].all, snd_buf_string(&names));
    else
        snd_fail(err, SONDE_E_ARGUMENT, "expected %s, got '%.*s'", snd_buf_string(&names), shown,
                 name);
    sonde_buffer_release(&names);
    return SONDE_E_ARGUMENT;
}

enum sonde_status sonde_word_value(enum sonde_word_list list, const char *text, int *value,
                                   struct sonde_error *err)
{
    int sum = 0;

    do {
        size_t length = list == SONDE_WORDS_GROUP ? strcspn(text, ",") : strlen(text), i = 0;
        while (i < lists[list].count && (strlen(lists[list].words[i].name) != length ||
                                         memcmp(lists[list].words[i].name, text, length) != 0))
            i++;
        if (i == lists[list].count)
            return refuse(list, text, length, err);
        sum |= lists[list].words[i].value;
        text += length + (text[length] == ',');
    } while (*text);
    *value = sum;
    return SONDE_OK;
}
