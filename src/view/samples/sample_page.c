/* SPDX-License-Identifier: Apache-2.0 */
#include "view/samples/sample_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/data/sort.h"
#include "read/reader.h"
#include "read/said/trace_metadata.h"
#include "snd_config.h"
#include "view/render/format.h"

#define BANNER 36 /* characters before the first field, as in Pyinstrument's */

/* -------------------------------------------------------------- what is shown */

enum sonde_samples_by snd_samples_by(const struct sonde_report_options *options)
{
    return options->groups & SONDE_GROUP_THREAD    ? SONDE_SAMPLES_BY_THREAD
           : options->groups & SONDE_GROUP_PROCESS ? SONDE_SAMPLES_BY_PROCESS
                                                   : SONDE_SAMPLES_MERGED;
}

struct whole {
    uint64_t samples;
    int64_t  cpu_ns, gil_wait_ns, wait_ns, first_ns, last_ns;
    bool     any_busy;
    uint32_t processes;
};

static int64_t add(int64_t x, int64_t y)
{
    return (int64_t)((uint64_t)x + (uint64_t)y);
}

static struct whole add_up(const struct sonde_trace *trace, const struct sonde_samples *samples)
{
    struct whole w = { .first_ns = INT64_MAX, .last_ns = INT64_MIN };
    uint32_t     process = UINT32_MAX;

    for (size_t i = 0; i < sonde_samples_thread_count(samples); i++) {
        const struct sonde_sample_thread *t = sonde_samples_thread(samples, i);
        uint32_t                          of = sonde_trace_thread(trace, t->thread)->process;
        w.samples += t->samples;
        w.cpu_ns = add(w.cpu_ns, t->cpu_ns);
        int64_t wait_ns = add(t->idle_ns, t->gil_wait_ns);
        w.gil_wait_ns = add(w.gil_wait_ns, t->gil_wait_ns);
        w.wait_ns = add(w.wait_ns, wait_ns);
        w.any_busy |= t->time_ns > wait_ns;
        w.first_ns = t->first_ns < w.first_ns ? t->first_ns : w.first_ns;
        w.last_ns = t->last_ns > w.last_ns ? t->last_ns : w.last_ns;
        w.processes += of != process; /* threads of one process stand together */
        process = of;
    }
    return w;
}

bool snd_samples_has_waits(const struct sonde_trace *trace)
{
    struct sonde_text value;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++)
        if (snd_meta_find(trace, i, SND_META_NATIVE_OFF_CPU, &value) && value.bytes[0] == 'y')
            return true;
    return false;
}

/* One thread's waiting is shown: it is what its program does. So is each thread's by itself. */
static bool skips_idle(const struct sonde_trace *trace, const struct sonde_report_options *options,
                       const struct sonde_samples *samples, const struct whole *whole)
{
    return !snd_samples_has_waits(trace) && sonde_samples_thread_count(samples) > 1 &&
           whole->any_busy && !options->show_all &&
           snd_samples_by(options) != SONDE_SAMPLES_BY_THREAD;
}

static void free_data(void *object)
{
    struct snd_samples_data *data = object;

    sonde_sample_functions_free(data->functions);
    sonde_samples_free(data->samples);
    sonde_samples_free(data->shown);
    free(data);
}

enum sonde_status snd_samples_load(struct sonde_trace                *trace,
                                   const struct sonde_report_options *options, bool merged,
                                   struct snd_doc *doc, struct sonde_error *err)
{
    struct sonde_samples_options how = { .struct_size = sizeof how,
                                         .by = SONDE_SAMPLES_BY_THREAD,
                                         .hide_imports = !options->show_all };
    struct snd_samples_data     *data = calloc(1, sizeof *data);

    if (!data)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the samples");
    doc->data = data;
    snd_doc_keep(doc, data, free_data);
    enum sonde_status st = sonde_samples_new(trace, &how, &data->samples, err);
    if (st != SONDE_OK || !merged)
        return st;
    struct whole whole = add_up(trace, data->samples);
    how.by = snd_samples_by(options);
    how.fold_recursion = !options->show_all;
    how.skip_idle = skips_idle(trace, options, data->samples, &whole);
    return sonde_samples_merge(data->samples, &how, &data->shown, err);
}

/* ---------------------------------------------------------------- what is said */

/* A program that waited has no samples then: the observer noted how long it looked. */
/*
 * Of the processes that a sampler of Python stacks looked at, as their clocks had it: a thread that waits for a processor
 * looks to that sampler as if it ran. Of others, whose samples are taken by their processor time: that of the samples.
 */
static double find_cpu(const struct sonde_trace *trace, const struct whole *whole)
{
    uint64_t measured = 0;

    for (uint32_t i = 0; i < trace->process_count; i++) {
        const struct snd_tables *tables = &trace->processes[i].tables;
        for (uint32_t k = 1; k < tables->tally_count; k++)
            if (tables->tallies[k].head.kind == SND_TALLY_SAMPLER)
                measured += tables->tallies[k].words[SND_SAMPLER_PROCESS_NS];
    }
    return measured ? (double)measured : (double)whole->cpu_ns;
}

static double find_duration(const struct sonde_trace *trace, const struct whole *whole)
{
    double            longest = (double)whole->last_ns - (double)whole->first_ns;
    struct sonde_text value;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        if (!snd_meta_find(trace, i, SND_META_NATIVE_DURATION, &value))
            continue;
        double ns = (double)strtoull(value.bytes, NULL, 10);
        longest = ns > longest ? ns : longest;
    }
    return longest;
}

static void put_banner(const struct snd_doc *doc, const struct whole *whole, struct snd_out *out)
{
    const struct sonde_sample_thread *first = sonde_samples_thread(snd_samples_data(doc)->samples,
                                                                   0);
    uint32_t                          process = snd_meta_root(doc->trace,
                                                              sonde_trace_thread(doc->trace, first->thread)->process);
    time_t start = (time_t)(sonde_trace_process(doc->trace, process)->start_real_ns / 1000000000);
    struct tm           local;
    char                when[16] = "", number[SND_NUMBER_MAX];
    struct sonde_buffer text = { 0 };
    struct sonde_text   command = snd_meta_command(doc->trace, process);

    if (localtime_r(&start, &local))
        strftime(when, sizeof when, "%H:%M:%S", &local);
    snd_out_format(out, "\n%-*s Recorded: %-9s Samples:  %" PRIu64 "\n", BANNER, "  sonde", when,
                   whole->samples);
    snd_number_fixed(number, 3, find_duration(doc->trace, whole) / 1e9);
    snd_out_format(out, "%-*s Duration: %-9s", BANNER, "  " SND_VERSION, number);
    snd_out_format(out, " CPU time: %s\n\n",
                   snd_number_fixed(number, 3, find_cpu(doc->trace, whole) / 1e9));
    snd_format_text(&text, command.bytes, command.length);
    snd_out_text(out, "Program: ");
    snd_out_put(out, snd_buf_string(&text), text.length);
    snd_out_text(out, "\n");
    sonde_buffer_release(&text);
}

static void put_root(const struct snd_pypaths *paths, struct snd_out *out)
{
    struct sonde_buffer text = { 0 };

    snd_format_text(&text, paths->root.bytes, paths->root.length);
    snd_out_text(out, text.length > 0 ? "Paths:   relative to " : "Paths:   ");
    snd_out_put(out, snd_buf_string(&text), text.length);
    snd_out_format(out, "%sin libraries, relative to where they are installed\n",
                   text.length > 0 ? "; " : "");
    sonde_buffer_release(&text);
}

static void put_idle(const struct whole *whole, struct snd_out *out)
{
    char number[SND_NUMBER_MAX];

    snd_out_format(out, "Idle:    %s s of waiting threads left out",
                   snd_number_fixed(number, 3, (double)whole->wait_ns / 1e9));
    if (whole->gil_wait_ns > 0)
        snd_out_format(out, ", %s s of it for the GIL",
                       snd_number_fixed(number, 3, (double)whole->gil_wait_ns / 1e9));
    snd_out_text(out, "; --show-all shows it\n");
}

#define HOLDERS_MAX 10

static int by_gil(const void *a, const void *b)
{
    const struct sonde_sample_thread *x = *(const struct sonde_sample_thread *const *)a,
                                     *y = *(const struct sonde_sample_thread *const *)b;

    return SND_FALLING(x->gil_ns, y->gil_ns);
}

static void put_holder(const struct snd_doc *doc, const struct sonde_sample_thread *t,
                       double whole_ns, struct snd_out *out)
{
    const struct sonde_thread *thread = sonde_trace_thread(doc->trace, t->thread);
    struct sonde_buffer        name = { 0 };
    char                       share[SND_NUMBER_MAX], seconds[SND_NUMBER_MAX];

    snd_format_text(&name, thread->name.bytes, thread->name.length);
    char        text[SND_RANK_TEXT];
    const char *rank = snd_meta_rank(doc->trace, thread->process, text);
    snd_out_format(out, "%8s %%  %s s  thread %" PRIu32 "%s%s of process %" PRIu32 "%s%s\n",
                   snd_number_fixed(share, 1, 100 * (double)t->gil_ns / whole_ns),
                   snd_number_fixed(seconds, 3, (double)t->gil_ns / 1e9), thread->tid,
                   name.length ? " " : "", snd_buf_string(&name),
                   sonde_trace_process(doc->trace, thread->process)->pid, rank[0] ? ", " : "",
                   rank);
    sonde_buffer_release(&name);
}

/* Who held the interpreter's lock: its threads, the longest first. */
static void put_holders(const struct snd_doc *doc, const struct whole *whole, struct snd_out *out)
{
    const struct sonde_samples        *samples = snd_samples_data(doc)->samples;
    size_t                             count = sonde_samples_thread_count(samples);
    const struct sonde_sample_thread **order = calloc(count + 1, sizeof *order);
    int64_t                            held_ns = 0;
    char                               number[SND_NUMBER_MAX];

    for (size_t i = 0; order && i < count; i++) {
        order[i] = sonde_samples_thread(samples, i);
        held_ns = add(held_ns, order[i]->gil_ns);
    }
    if (!order) {
        snd_out_fail(out, ENOMEM);
        return;
    }
    snd_sort(order, count, sizeof *order, by_gil);
    snd_number_fixed(number, 3, (double)held_ns / 1e9);
    snd_out_format(out, "GIL:     held for %s s", number);
    snd_number_fixed(number, 3, ((double)whole->last_ns - (double)whole->first_ns) / 1e9);
    snd_out_format(out, " of %s s; all times are of samples that held it\n", number);
    for (size_t i = 0; i < count && i < HOLDERS_MAX && held_ns > 0; i++)
        put_holder(doc, order[i], (double)held_ns, out);
    if (count > HOLDERS_MAX)
        snd_out_format(out, "%8s    %zu more threads: --json has them\n", "", count - HOLDERS_MAX);
    free(order);
}

void snd_samples_head(const struct snd_doc *doc, const struct sonde_report_options *options,
                      const struct snd_pypaths *paths, struct snd_out *out)
{
    struct whole whole = add_up(doc->trace, snd_samples_data(doc)->samples);
    size_t       threads = sonde_samples_thread_count(snd_samples_data(doc)->samples);
    char         number[SND_NUMBER_MAX];

    put_banner(doc, &whole, out);
    put_root(paths, out);
    if (threads > 1 && snd_samples_by(options) == SONDE_SAMPLES_MERGED) {
        snd_out_format(out,
                       "Threads: %zu of %" PRIu32 " %s, merged; %s--group-by %sthread shows each\n",
                       threads, whole.processes, whole.processes == 1 ? "process" : "processes",
                       strcmp(doc->view, "samples") == 0 ? "" : "--view samples ",
                       whole.processes == 1 ? "" : "process or ");
    }
    if (options->gil)
        put_holders(doc, &whole, out);
    if (snd_samples_has_waits(doc->trace))
        snd_out_format(out, "Off CPU: %s s in which threads waited, in the stacks where they did\n",
                       snd_number_fixed(number, 3, (double)whole.wait_ns / 1e9));
    if (whole.wait_ns > 0 &&
        skips_idle(doc->trace, options, snd_samples_data(doc)->samples, &whole))
        put_idle(&whole, out);
    snd_out_text(out, "\n");
}
