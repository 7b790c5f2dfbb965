/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perf-script: sampled stacks as `perf script` prints them, for FlameGraph's stackcollapse-perf.pl, hotspot and
 * other readers of that text:
 *
 *     thread  4242/4243     0.010000:    1000000 cpu-clock:
 *     TAB          1139 main (/app/prog)
 *
 * Each sample that was taken on a CPU is one of them; the number before the event is the time in
 * nanoseconds that it stands for. Samples of waiting threads are left out, as perf takes none. Frames of
 * Python and ranges have the address 0.
 *
 * Of counters, a sample for each stack and counter: its number is that of the events, its time 0, since only
 * their sums are known.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/buf.h"
#include "export/stacks/counted_stacks.h"
#include "export/common/exporter.h"
#include "model/samples/mixed_stacks.h"
#include "read/reader.h"

struct script {
    struct sonde_trace     *trace;
    struct snd_mixed        mixed;
    struct snd_mixed_frame *frames;
    struct sonde_buffer     stack; /* the text of a sample's frames */
    struct snd_out         *out;
    bool                    any;    /* a sample of a running thread came */
    bool                    failed; /* memory ran out */
};

/* What ends a line or a word of the format cannot be in a name. */
static void put_text(struct sonde_buffer *buf, struct sonde_text text, bool blanks)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        bool bad = (unsigned char)c < ' ' || (c == ' ' && !blanks);
        snd_buf_put(buf, bad ? "_" : &c, 1);
    }
}

/* The object file of a native frame; of Python's the source. */
static struct sonde_text file_of(const struct script *s, uint32_t process,
                                 const struct snd_mixed_frame *f, uint64_t *address)
{
    const struct snd_tables *t = &s->trace->processes[process].tables;

    *address = 0;
    if (f->is_range)
        return (struct sonde_text){ "range", 5 };
    if (f->id == 0 || f->id >= t->frame_count)
        return f->frame.file;
    *address = t->frames[f->id].address;
    return t->frames[f->id].reserved
               ? sonde_trace_string(s->trace, process, t->frames[f->id].reserved)
               : f->frame.file;
}

static void put_stack(struct script *s, uint32_t process, const struct snd_mixed_frame *frames,
                      size_t count)
{
    snd_buf_clear(&s->stack);
    for (size_t i = 0; i < count; i++) {
        uint64_t          address;
        struct sonde_text file = file_of(s, process, &frames[i], &address);
        snd_buf_format(&s->stack, "\t%16" PRIx64 " ", address);
        put_text(&s->stack, frames[i].frame.function, true);
        snd_buf_text(&s->stack, " (");
        put_text(&s->stack, file.length > 0 ? file : (struct sonde_text){ "unknown", 7 }, false);
        snd_buf_text(&s->stack, ")\n");
    }
    snd_buf_text(&s->stack, "\n");
}

/* The line before a stack. */
struct head {
    struct sonde_text thread;
    uint32_t          process, tid;
    int64_t           ns;
    uint64_t          period;
    struct sonde_text event;
};

static void put_head(struct script *s, const struct head *head)
{
    struct sonde_buffer name = { 0 };
    int64_t             ns = head->ns > 0 ? head->ns : 0;

    if (head->thread.length > 0)
        put_text(&name, head->thread, true);
    else
        snd_buf_text(&name, "thread");
    snd_out_format(s->out,
                   "%s %7" PRIu32 "/%-7" PRIu32 " %5" PRId64 ".%06" PRId64 ": %10" PRIu64
                   " %.*s: \n",
                   snd_buf_string(&name), s->trace->processes[head->process].shown.pid, head->tid,
                   ns / 1000000000, ns % 1000000000 / 1000, head->period, (int)head->event.length,
                   head->event.bytes);
    s->failed |= name.failed;
    sonde_buffer_release(&name);
}

/* How many samples were merged into this one: none is less than a microsecond apart, so that a damaged
 * count of billions does not fill the disk. */
static uint64_t merged_count(const struct sonde_event *sample, uint64_t total_ns)
{
    uint64_t most = total_ns / 1000 + 1, count = sample->sample.count ? sample->sample.count : 1;

    return count < most ? count : most;
}

static bool on_sample(void *user, const struct sonde_event *sample, uint32_t chain)
{
    struct script *s = user;
    uint64_t total = sample->sample.covered_ns & UINT32_MAX, count = merged_count(sample, total);

    if (!(sample->sample.state & SONDE_SAMPLE_ON_CPU))
        return true;
    const struct sonde_thread *t = &s->trace->threads[sample->thread].shown;
    size_t frames = snd_mixed_frames(&s->mixed, sample->process, sample->sample.stack, chain,
                                     s->frames, SND_MIXED_FRAMES_MAX);
    put_stack(s, sample->process, s->frames,
              frames < SND_MIXED_FRAMES_MAX ? frames : SND_MIXED_FRAMES_MAX);
    for (uint64_t i = 0; i < count && !s->out->failed; i++) {
        uint64_t    end = total * (i + 1) / count;
        struct head head = { t->name,
                             t->process,
                             t->tid,
                             snd_sub(sample->time_ns, (int64_t)(total - end)),
                             end - total * i / count,
                             { "cpu-clock", 9 } };
        put_head(s, &head);
        snd_out_put(s->out, s->stack.bytes, s->stack.length);
    }
    s->any = true;
    s->failed |= s->stack.failed;
    return !s->out->failed && !s->failed;
}

SND_EXPORT_WRITE(snd_export_perf_script)
{
    struct script     s = { .trace = trace, .out = out };
    enum sonde_status st = SONDE_OK;

    (void)options;
    s.frames = malloc(SND_MIXED_FRAMES_MAX * sizeof *s.frames);
    if (s.frames)
        st = snd_mixed_walk(&s.mixed, trace, on_sample, &s, err);
    if (st == SONDE_OK && (!s.frames || s.failed))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
    if (st == SONDE_OK && !s.any && !out->failed)
        st = snd_fail(err, SONDE_E_STATE,
                      "the trace has no samples of running threads; record them with sonde run "
                      "--sample");
    if (s.mixed.trace)
        snd_mixed_release(&s.mixed);
    sonde_buffer_release(&s.stack);
    free(s.frames);
    return st;
}

static void put_counted(struct script *s, const struct snd_counted_export *counted,
                        const struct snd_counted_stack *stack)
{
    const struct sonde_process *process = sonde_trace_process(s->trace, stack->process);

    put_stack(s, stack->process, counted->frames, counted->frame_count);
    for (uint32_t n = 0; n < counted->counter_count; n++) {
        struct head head = {
            .thread = { process->program, strlen(process->program) },
            .process = stack->process,
            .tid = process->pid,
            .period = snd_counted_events(counted, stack, n),
            .event = snd_counted_name(counted, n),
        };
        if (head.period == 0)
            continue;
        put_head(s, &head);
        snd_out_put(s->out, s->stack.bytes, s->stack.length);
    }
    s->failed |= s->stack.failed;
}

SND_EXPORT_WRITE(snd_counted_perf_script)
{
    struct script                   s = { .trace = trace, .out = out };
    struct snd_counted_export       counted;
    const struct snd_counted_stack *stack;
    enum sonde_status               st = snd_counted_open(&counted, trace, options->counter, err);

    while (st == SONDE_OK && !s.failed && !out->failed &&
           (stack = snd_counted_next(&counted)) != NULL)
        put_counted(&s, &counted, stack);
    if (st == SONDE_OK && s.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
    sonde_buffer_release(&s.stack);
    snd_counted_release(&counted);
    return st;
}
