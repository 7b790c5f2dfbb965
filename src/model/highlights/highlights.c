/* SPDX-License-Identifier: Apache-2.0 */
#include "model/highlights/highlights.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/sort.h"
#include "base/text/buf.h"
#include "base/text/plural.h"
#include "model/gpu/gpu.h"
#include "model/highlights/advisor.h"
#include "model/memory/heap_stacks.h"
#include "model/summary/summary.h"
#include "read/said/trace_facts.h"
#include "read/said/trace_metadata.h"

#define NAMES_SHOWN 3        /* of the rows that a highlight is about */
#define HALF 50.0            /* per cent of the time that "most of it" is */
#define ROWS_MOST 8          /* more rows than that are no concentration */
#define SLOW_TIMES 2.0       /* a step is slow that takes this many times the median: "twice" */
#define ODD_TIMES 10.0       /* one call is odd that takes this many times the mean ... */
#define ODD_PERCENT 2.0      /* ... and this much of the time */
#define GPU_IDLE_PERCENT 1.0 /* of its time: a GPU that is never idle has nothing to be told of */

/* The next one, or NULL when there are enough. */
static struct snd_highlight *add(struct snd_highlights *highlights, const char *link)
{
    if (highlights->count == SND_HIGHLIGHTS_MAX)
        return NULL;
    struct snd_highlight *highlight = &highlights->items[highlights->count++];
    highlight->text[0] = highlight->detail[0] = '\0';
    highlight->advice = NULL;
    snprintf(highlight->link, sizeof highlight->link, "%s", link);
    return highlight;
}

#define SAY(member, ...) snprintf(member, sizeof(member), __VA_ARGS__)
#define SHORT(string) (int)((string).length < 60 ? (string).length : 60), (string).bytes

/* -------------------------------------------------------------------- ledger */

static enum sonde_status find_losses(struct sonde_trace *trace, struct snd_highlights *highlights,
                                     struct sonde_error *err)
{
    struct sonde_summary *summary;
    enum sonde_status     st = sonde_summary_new(trace, &summary, err);

    for (size_t i = 0; st == SONDE_OK && i < sonde_summary_ledger_count(summary); i++) {
        const struct sonde_ledger_item *item = sonde_summary_ledger(summary, i);
        struct snd_highlight *highlight = item->is_note ? NULL : add(highlights, "table/ledger");
        if (!highlight)
            continue;
        SAY(highlight->text, "Not all is in the trace: %s", item->text);
        SAY(highlight->detail, "The ledger has %" PRIu64 " of %s.", item->count, item->key);
        break; /* the ledger has the others */
    }
    if (st == SONDE_OK)
        sonde_summary_free(summary);
    return st;
}

/* ------------------------------------------------------------------ operators */

static int by_self(const void *x, const void *y)
{
    const struct sonde_average *a = x, *b = y;

    return SND_FALLING(a->self_ns, b->self_ns);
}

static void name_rows(char *text, size_t size, const struct sonde_average *rows, size_t count,
                      int64_t whole_ns)
{
    size_t length = 0;

    for (size_t i = 0; i < count && i < NAMES_SHOWN && length < size; i++)
        length += (size_t)snprintf(text + length, size - length, "%s%.*s %.1f %%", i ? ", " : "",
                                   SHORT(rows[i].name), snd_percent(rows[i].self_ns, whole_ns));
    if (count > NAMES_SHOWN && length < size)
        snprintf(text + length, size - length, ", and %zu more", count - NAMES_SHOWN);
}

static void find_most(struct snd_highlights *highlights, const struct sonde_average *rows,
                      size_t count, int64_t whole_ns)
{
    int64_t sum = 0;
    size_t  used = 0;

    while (used < count && used < ROWS_MOST && snd_percent(sum, whole_ns) < HALF)
        sum += rows[used++].self_ns;
    struct snd_highlight *highlight = sum > 0 ? add(highlights, "table/ops") : NULL;
    if (!highlight)
        return;
    SAY(highlight->text, "%.0f %% of the time is spent in %zu of %zu range%s",
        snd_percent(sum, whole_ns), used, count, snd_plural(count));
    name_rows(highlight->detail, sizeof highlight->detail, rows, used, whole_ns);
}

static void find_odd(struct snd_highlights *highlights, const struct sonde_average *rows,
                     size_t count, int64_t whole_ns)
{
    const struct sonde_average *worst = NULL;

    for (size_t i = 0; i < count; i++)
        if (rows[i].count > 2 && snd_percent(rows[i].max_ns, whole_ns) >= ODD_PERCENT &&
            (double)rows[i].max_ns * (double)rows[i].count >=
                ODD_TIMES * (double)rows[i].total_ns &&
            (!worst || rows[i].max_ns > worst->max_ns))
            worst = &rows[i];
    struct snd_highlight *highlight = worst ? add(highlights, "table/ops") : NULL;
    if (!highlight)
        return;
    double mean = (double)worst->total_ns / (double)worst->count;
    SAY(highlight->text, "One call of %.*s takes %s, %.0f times its mean", SHORT(worst->name),
        snd_amount_time(worst->max_ns).text, (double)worst->max_ns / mean);
    SAY(highlight->detail,
        "Of %" PRIu64 " calls, which take %s in the mean; the first one often pays for set-up.",
        worst->count, snd_amount_time((int64_t)mean).text);
}

static enum sonde_status find_operators(struct sonde_trace    *trace,
                                        struct snd_highlights *highlights, struct sonde_error *err)
{
    struct sonde_averages *averages;
    enum sonde_status      st = sonde_averages_new(trace, NULL, &averages, err);

    if (st != SONDE_OK)
        return st;
    size_t                count = 0, all = sonde_averages_count(averages);
    struct sonde_average *rows = calloc(all + 1, sizeof *rows);
    int64_t               whole_ns = sonde_averages_totals(averages)->self_ns;
    for (size_t i = 0; rows && i < all; i++) {
        struct sonde_average row = sonde_averages_get(averages, i);
        if (!row.on_device && row.count > 0)
            rows[count++] = row;
    }
    if (!rows) {
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for what is worth knowing");
    } else if (count > 0) {
        snd_sort(rows, count, sizeof *rows, by_self);
        find_most(highlights, rows, count, whole_ns);
        find_odd(highlights, rows, count, whole_ns);
    }
    free(rows);
    sonde_averages_free(averages);
    return st;
}

/* ------------------------------------------------------------------------ GPU */

static enum sonde_status find_gpu(struct sonde_trace *trace, struct snd_highlights *highlights,
                                  struct sonde_error *err)
{
    struct snd_gpu           *gpu;
    const struct snd_devices *devices;
    enum sonde_status         st = snd_trace_devices(trace, &devices, err);

    if (st != SONDE_OK || !devices || devices->count == 0)
        return st;
    st = snd_gpu_new(trace, &gpu, err);
    if (st != SONDE_OK)
        return st;
    const struct snd_gpu_device *device = gpu->device_count ? &gpu->devices[0] : NULL;
    int64_t                      span = device ? device->last_ns - device->first_ns : 0;
    bool is_idle = device && 100 - snd_percent(device->kernel_ns, span) >= GPU_IDLE_PERCENT;
    struct snd_highlight *highlight = span > 0 && is_idle ? add(highlights, "table/gpu") : NULL;
    if (highlight) {
        unsigned most = 0;
        for (unsigned i = 1; i < SND_IDLE_REASONS; i++)
            if (device->idle_ns[i] > device->idle_ns[most])
                most = i;
        highlight->advice = snd_pattern_name(SND_ADVICE_GPU_IDLE);
        SAY(highlight->text, "The GPU runs no kernel %.0f %% of the time",
            100 - snd_percent(device->kernel_ns, span));
        if (most == SND_IDLE_UNKNOWN && snd_gpu_is_light(trace, device->process))
            SAY(highlight->detail,
                "%s of %s; why is not known: CUDA's calls were not asked for (--gpu=light).",
                snd_amount_time(span - device->kernel_ns).text, snd_amount_time(span).text);
        else
            SAY(highlight->detail, "%s of %s; most of it: %s, %s.",
                snd_amount_time(span - device->kernel_ns).text, snd_amount_time(span).text,
                snd_gpu_reason_words[most], snd_amount_time(device->idle_ns[most]).text);
    }
    snd_gpu_free(gpu);
    return SONDE_OK;
}

/* --------------------------------------------------------------------- memory */

static void tell_holder(struct snd_highlights *highlights, const struct sonde_memory *memory,
                        size_t index)
{
    const struct sonde_memory_device *device = sonde_memory_device(memory, index);
    const struct sonde_memory_holder *most = NULL;

    for (size_t i = 0; i < sonde_memory_holder_count(memory); i++) {
        const struct sonde_memory_holder *holder = sonde_memory_holder(memory, i);
        if (holder->device == index && (!most || holder->peak_bytes > most->peak_bytes))
            most = holder;
    }
    struct snd_highlight *highlight = most && device->peak_bytes > 0 ? add(highlights, "memory")
                                                                     : NULL;
    if (!highlight)
        return;
    struct sonde_text holder = most->module.length ? most->module : most->name;
    highlight->advice = snd_pattern_name(SND_ADVICE_MEMORY_PEAK);
    SAY(highlight->text, "Memory peaks at %s; %.*s holds %.0f %% of it",
        snd_amount_bytes(device->peak_bytes).text, SHORT(holder),
        snd_percent(most->peak_bytes, device->peak_bytes));
    if (most->peak_count == 0) /* its blocks are not known one by one */
        SAY(highlight->detail, "%s from before the recording; the peak is %s after the start.",
            snd_amount_bytes(most->peak_bytes).text, snd_amount_time(device->peak_time_ns).text);
    else
        SAY(highlight->detail, "%s in %" PRIu64 " block%s allocated by %.*s, %s after the start.",
            snd_amount_bytes(most->peak_bytes).text, most->peak_count, snd_plural(most->peak_count),
            SHORT(most->name), snd_amount_time(device->peak_time_ns).text);
}

static enum sonde_status find_memory(struct sonde_trace *trace, struct snd_highlights *highlights,
                                     struct sonde_error *err)
{
    struct sonde_memory *memory;
    /* Without modules, the one that the memory view has shown. */
    unsigned          groups = highlights->content & SND_HAS_MODULES ? SONDE_GROUP_MODULE : 0;
    enum sonde_status st = sonde_memory_new_by(trace, groups, 0, &memory, err);

    if (st != SONDE_OK)
        return st;
    size_t most = SIZE_MAX;
    for (size_t i = 0; i < sonde_memory_device_count(memory); i++)
        if (most == SIZE_MAX || sonde_memory_device(memory, i)->peak_bytes >
                                    sonde_memory_device(memory, most)->peak_bytes)
            most = i;
    if (most != SIZE_MAX)
        tell_holder(highlights, memory, most);
    sonde_memory_free(memory);
    return SONDE_OK;
}

/* ----------------------------------------------------------------------- heap */

/* Where a stack allocates: the function that does, and the line of the program itself that asks for it. */
static void put_place(char *text, size_t size, const struct snd_library_paths *libraries,
                      const struct sonde_trace *trace, const struct snd_heap *heap, uint32_t stack)
{
    struct sonde_frame frame;
    struct snd_spot    own;
    char               place[SND_SPOT_TEXT];

    text[0] = '\0';
    bool has_own = snd_spot_of_frames(trace, libraries, heap->process, stack, &own) && own.line;
    if (sonde_trace_stack(trace, heap->process, stack, &frame, 1) > 0 && frame.line &&
        !(has_own && own.line == frame.line && own.file.bytes == frame.file.bytes)) {
        struct snd_spot at = { frame.file, frame.function, frame.line };
        snprintf(text, size, " at %s%s", snd_spot_short(&at, place), has_own ? ", called" : "");
    }
    size_t length = strlen(text);
    if (has_own)
        snprintf(text + length, size - length, " %s %.*s:%" PRIu32, length ? "from" : "at",
                 (int)(own.file.length < 120 ? own.file.length : 120), own.file.bytes, own.line);
}

/* The stack that holds most at the peak, by the function that allocates. */
static void tell_heap(struct snd_highlights *highlights, const struct sonde_trace *trace,
                      const struct snd_library_paths *libraries, const struct snd_heaps *heaps,
                      const struct snd_heap *heap)
{
    const struct snd_heap_row *most = NULL;
    struct sonde_frame         frame = { .function = { "(not known)", 11 }, .file = { "", 0 } };
    char                       place[SND_SPOT_TEXT + 140];

    for (uint32_t i = 0; i < heap->count; i++) {
        const struct snd_heap_row *row = snd_heaps_row(heaps, heap->first + i);
        if (!most || row->sums.peak_bytes > most->sums.peak_bytes)
            most = row;
    }
    struct snd_highlight *highlight = most && heap->sums.peak_bytes > 0
                                          ? add(highlights, "flame/heap-peak")
                                          : NULL;
    if (!highlight)
        return;
    (void)sonde_trace_stack(trace, heap->process, most->stack, &frame, 1);
    put_place(place, sizeof place, libraries, trace, heap, most->stack);
    highlight->advice = snd_pattern_name(SND_ADVICE_MEMORY_PEAK);
    SAY(highlight->text, "The heap peaks at %s; %.*s allocated %.0f %% of it",
        snd_amount_bytes((int64_t)heap->sums.peak_bytes).text, SHORT(frame.function),
        snd_percent((int64_t)most->sums.peak_bytes, (int64_t)heap->sums.peak_bytes));
    SAY(highlight->detail, "%s in %" PRIu64 " block%s%s. ",
        snd_amount_bytes((int64_t)most->sums.peak_bytes).text, most->sums.peak_blocks,
        snd_plural(most->sums.peak_blocks), place);
    size_t length = strlen(highlight->detail), room = sizeof highlight->detail - length;
    if (heap->sums.live_blocks == 0)
        snprintf(highlight->detail + length, room, "All was freed at the end.");
    else
        snprintf(highlight->detail + length, room,
                 "Of all, %s in %" PRIu64 " block%s %s not freed at the end.",
                 snd_amount_bytes((int64_t)heap->sums.live_bytes).text, heap->sums.live_blocks,
                 snd_plural(heap->sums.live_blocks), heap->sums.live_blocks == 1 ? "was" : "were");
}

static enum sonde_status find_heap(struct sonde_trace *trace, struct snd_highlights *highlights,
                                   struct sonde_error *err)
{
    struct snd_heaps        *heaps;
    const struct snd_heap   *heap, *most = NULL;
    struct snd_library_paths libraries;
    enum sonde_status        st = snd_heaps_new(trace, false, &heaps, err);

    if (st != SONDE_OK)
        return st;
    for (uint32_t i = 0; (heap = snd_heaps_heap(heaps, i)) != NULL; i++)
        if (!heap->is_mapped && (!most || heap->sums.peak_bytes > most->sums.peak_bytes))
            most = heap;
    if (!snd_library_paths_read(&libraries, trace))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for what is worth knowing");
    if (most && st == SONDE_OK)
        tell_heap(highlights, trace, &libraries, heaps, most);
    snd_library_paths_release(&libraries);
    snd_heaps_free(heaps);
    return st;
}

/* ---------------------------------------------------------------------- steps */

static int by_size(const void *x, const void *y)
{
    const int64_t *a = x, *b = y;

    return SND_RISING(*a, *b);
}

static void tell_steps(struct snd_highlights *highlights, int64_t *ns, size_t count)
{
    size_t slow = 0;

    snd_sort(ns, count, sizeof *ns, by_size);
    int64_t median = ns[count / 2];
    for (size_t i = 0; i < count; i++)
        slow += (double)ns[i] >= SLOW_TIMES * (double)median;
    struct snd_highlight *highlight = median > 0 ? add(highlights, "table/steps") : NULL;
    if (!highlight)
        return;
    highlight->advice = snd_pattern_name(SND_ADVICE_SLOW_STEPS);
    if (slow > 0)
        SAY(highlight->text, "%zu of %zu steps take%s at least twice as long as the median step",
            slow, count, slow == 1 ? "s" : "");
    else
        SAY(highlight->text, "%zu steps of %s in the median; none takes twice as long", count,
            snd_amount_time(median).text);
    SAY(highlight->detail, "The median is %s, the shortest %s, the longest %s.",
        snd_amount_time(median).text, snd_amount_time(ns[0]).text,
        snd_amount_time(ns[count - 1]).text);
}

static enum sonde_status find_steps(struct sonde_trace *trace, struct snd_highlights *highlights,
                                    struct sonde_error *err)
{
    struct sonde_summary *summary;
    enum sonde_status     st = sonde_summary_new(trace, &summary, err);

    if (st != SONDE_OK)
        return st;
    size_t   all = sonde_summary_step_count(summary), count = 0;
    int64_t *ns = calloc(all + 1, sizeof *ns);
    for (size_t i = 0; ns && i < all; i++)
        if (sonde_summary_step(summary, i)->part == SONDE_STEP_WHOLE)
            ns[count++] = sonde_summary_step(summary, i)->duration_ns;
    if (!ns)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for what is worth knowing");
    else if (count > 2)
        tell_steps(highlights, ns, count);
    free(ns);
    sonde_summary_free(summary);
    return st;
}

/* --------------------------------------------------------- samples, functions */

static void tell_function(struct snd_highlights *highlights, const char *link,
                          struct sonde_text name, struct sonde_text file, uint32_t line,
                          double share, const char *of_what)
{
    struct snd_highlight *highlight = add(highlights, link);

    if (!highlight)
        return;
    SAY(highlight->text, "The function %.*s takes %.0f %% of %s itself", SHORT(name), share,
        of_what);
    /* Native functions have no line, ranges and unknown ones no file either; built-in ones have "~". */
    if (file.length == 1 && file.bytes[0] == '~')
        return;
    SAY(highlight->detail, "%.*s", (int)(file.length < 200 ? file.length : 200), file.bytes);
    size_t length = strlen(highlight->detail);
    if (length > 0 && line > 0)
        snprintf(highlight->detail + length, sizeof highlight->detail - length, ":%" PRIu32, line);
}

/* As the views of samples have it: what several threads wait for is left out, unless waits were asked for. */
static bool leaves_waits_out(const struct sonde_trace *trace, const struct sonde_samples *samples)
{
    struct sonde_text value;
    bool              any_busy = false;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++)
        if (snd_meta_find(trace, i, SND_META_NATIVE_OFF_CPU, &value) && value.bytes[0] == 'y')
            return false;
    size_t count = sonde_samples_thread_count(samples);
    for (size_t i = 0; i < count; i++)
        any_busy |= sonde_samples_thread(samples, i)->time_ns >
                    sonde_samples_thread(samples, i)->idle_ns;
    return count > 1 && any_busy;
}

static enum sonde_status find_samples(struct sonde_trace *trace, struct snd_highlights *highlights,
                                      struct sonde_error *err)
{
    struct sonde_samples_options   how = SONDE_SAMPLES_OPTIONS_INIT;
    struct sonde_samples          *samples, *shown = NULL;
    struct sonde_sample_functions *functions = NULL;

    how.hide_imports = true;
    enum sonde_status st = sonde_samples_new(trace, &how, &samples, err);
    if (st != SONDE_OK)
        return st;
    how.by = SONDE_SAMPLES_MERGED;
    how.skip_idle = leaves_waits_out(trace, samples);
    st = sonde_samples_merge(samples, &how, &shown, err);
    if (st == SONDE_OK)
        st = sonde_sample_functions_new(shown, &functions, err);
    if (st == SONDE_OK && functions->count > 0)
        tell_function(highlights, "flame/samples", functions->rows[0].function,
                      functions->rows[0].file, functions->rows[0].line,
                      snd_percent(functions->rows[0].self_ns, functions->whole_ns),
                      how.skip_idle ? "the running time" : "the time");
    sonde_sample_functions_free(functions);
    sonde_samples_free(shown);
    sonde_samples_free(samples);
    return st;
}

static enum sonde_status find_functions(struct sonde_trace    *trace,
                                        struct snd_highlights *highlights, struct sonde_error *err)
{
    struct sonde_functions      *functions;
    const struct sonde_function *most = NULL, *row;
    int64_t                      whole_ns = 0;
    enum sonde_status            st = sonde_functions_new(trace, &functions, err);

    if (st != SONDE_OK)
        return st;
    for (size_t i = 0; (row = sonde_functions_row(functions, i)) != NULL; i++) {
        whole_ns += row->self_ns;
        if (!most || row->self_ns > most->self_ns)
            most = row;
    }
    if (most && whole_ns > 0)
        tell_function(highlights, "table/functions", most->name, most->file, most->line,
                      snd_percent(most->self_ns, whole_ns), "the time of all threads");
    sonde_functions_free(functions);
    return st;
}

enum sonde_status snd_highlights_find(struct sonde_trace *trace, unsigned content,
                                      struct snd_highlights *out, struct sonde_error *err)
{
    /* In the order of what a person wants to know first; `needs`: all of it. */
    static const struct {
        unsigned needs;
        enum sonde_status (*find)(struct sonde_trace *, struct snd_highlights *,
                                  struct sonde_error *);
    } finders[] = {
        { 0, find_losses },
        { 0, find_operators },
        { SND_HAS_WORK, find_gpu },
        { SND_HAS_MEMORY, find_memory },
        { SND_HAS_HEAP, find_heap },
        { SND_HAS_STEPS, find_steps },
        { SND_HAS_SAMPLES, find_samples },
        { SND_HAS_FUNCTIONS, find_functions },
    };
    enum sonde_status st = SONDE_OK;

    out->content = content;
    out->count = 0;
    for (size_t i = 0;
         i < SND_COUNT_OF(finders) && st == SONDE_OK && out->count < SND_HIGHLIGHTS_MAX; i++)
        if ((finders[i].needs & ~content) == 0)
            st = finders[i].find(trace, out, err);
    return st;
}
