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
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "export/exporter.h"
#include "model/mixed.h"
#include "read/reader.h"

#define FRAMES_MAX (SND_STACK_MAX + 1024u) /* of one stack, ranges included */

struct script {
    struct sonde_trace     *trace;
    struct snd_mixed        mixed;
    struct snd_mixed_frame *frames;
    struct sonde_buffer     stack; /* the text of a sample's frames */
    struct snd_out         *out;
    uint64_t                count;
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

static void put_stack(struct script *s, uint32_t process, uint32_t stack, uint32_t chain)
{
    size_t count = snd_mixed_frames(&s->mixed, process, stack, chain, s->frames, FRAMES_MAX);

    snd_buf_clear(&s->stack);
    for (size_t i = 0; i < count && i < FRAMES_MAX; i++) {
        uint64_t          address;
        struct sonde_text file = file_of(s, process, &s->frames[i], &address);
        snd_buf_format(&s->stack, "\t%16" PRIx64 " ", address);
        put_text(&s->stack, s->frames[i].frame.function, true);
        snd_buf_text(&s->stack, " (");
        put_text(&s->stack, file.length > 0 ? file : (struct sonde_text){ "unknown", 7 }, false);
        snd_buf_text(&s->stack, ")\n");
    }
    snd_buf_text(&s->stack, "\n");
}

static void put_head(struct script *s, const struct sonde_event *sample, int64_t ns,
                     uint64_t period)
{
    const struct sonde_thread *t = &s->trace->threads[sample->thread].shown;
    struct sonde_buffer        name = { 0 };

    if (t->name.length > 0)
        put_text(&name, t->name, true);
    else
        snd_buf_text(&name, "thread");
    ns = ns > 0 ? ns : 0;
    snd_out_format(s->out,
                   "%s %7" PRIu32 "/%-7" PRIu32 " %5" PRId64 ".%06" PRId64 ": %10" PRIu64
                   " cpu-clock: \n",
                   snd_buf_string(&name), s->trace->processes[t->process].shown.pid, t->tid,
                   ns / 1000000000, ns % 1000000000 / 1000, period);
    s->failed |= name.failed;
    sonde_buffer_release(&name);
}

/* How many samples were merged into this one: none is less than a microsecond apart, so that a damaged
 * count of billions does not fill the disk. */
static uint64_t merged_count(const struct sonde_event *sample, uint64_t total_ns)
{
    uint64_t most = total_ns / 1000 + 1, count = sample->name ? sample->name : 1;

    return count < most ? count : most;
}

static bool on_sample(void *user, const struct sonde_event *sample, uint32_t chain)
{
    struct script *s = user;
    uint64_t       total = sample->value & UINT32_MAX, count = merged_count(sample, total);

    if (!(sample->size & SONDE_SAMPLE_ON_CPU))
        return true;
    put_stack(s, sample->process, sample->aux, chain);
    for (uint64_t i = 0; i < count && !s->out->failed; i++) {
        uint64_t end = total * (i + 1) / count;
        put_head(s, sample, snd_sub(sample->time_ns, (int64_t)(total - end)),
                 end - total * i / count);
        snd_out_put(s->out, s->stack.bytes, s->stack.length);
    }
    s->count += count;
    s->failed |= s->stack.failed;
    return !s->out->failed && !s->failed;
}

SND_EXPORT_WRITE(snd_export_perf_script)
{
    struct script     s = { .trace = trace, .out = out };
    enum sonde_status st = SONDE_OK;

    (void)options;
    s.frames = malloc(FRAMES_MAX * sizeof *s.frames);
    if (s.frames)
        st = snd_mixed_walk(&s.mixed, trace, on_sample, NULL, &s, err);
    if (st == SONDE_OK && (!s.frames || s.failed))
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the stacks");
    if (st == SONDE_OK && s.count == 0 && !out->failed)
        st = snd_fail(err, SONDE_E_STATE,
                      "the trace has no samples of running threads; record them with sonde run "
                      "--sample");
    if (s.mixed.trace)
        snd_mixed_release(&s.mixed);
    sonde_buffer_release(&s.stack);
    free(s.frames);
    return st;
}
