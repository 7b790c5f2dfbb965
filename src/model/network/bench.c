/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/network/bench.c - what a model costs as a whole: from marked runs and passes to numbers.
 *
 * Ranges are told by their names, "model.PART batch=N":
 *
 *     total, to_device, forward, to_host   parts of a timed run
 *     gpu_ns                               a counter: forward, as the GPU's own clock has it
 *     pass                                 forward, with operators, shapes and memory recorded
 *     train, backward                      the same keeping gradients, and the backward pass
 *     peak flops=N                         a matrix product of N floating-point operations
 *
 * What happens between the begin and the end of a pass, on any thread of its process, is the
 * pass's: operators' FLOPs, and memory. Only blocks that were taken in it count, so that what
 * others give back meanwhile does not make it smaller. A backward pass belongs to the pass
 * before it: what that one has not given back is still held.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/sort.h"
#include "format/fields.h"
#include "format/known.h"
#include "model/network/bench.h"
#include "model/spread.h"

static void give_up(struct sonde_bench *b)
{
    snd_assembly_stop(&b->assembly);
}

/* ---------------------------------------------------------------------- names */

static const struct {
    enum snd_known name;
    uint8_t        part;
} parts[] = {
    { SND_KNOWN_MODEL_FORWARD, SONDE_BENCH_ON_DEVICE },
    { SND_KNOWN_MODEL_TO_DEVICE, SONDE_BENCH_TO_DEVICE },
    { SND_KNOWN_MODEL_TO_HOST, SONDE_BENCH_TO_HOST },
    { SND_KNOWN_MODEL_TOTAL, SONDE_BENCH_TOTAL },
    { SND_KNOWN_MODEL_GPU, SONDE_BENCH_GPU },
    { SND_KNOWN_MODEL_PASS, PART_PASS },
    { SND_KNOWN_MODEL_TRAIN, PART_TRAIN },
    { SND_KNOWN_MODEL_BACKWARD, PART_BACKWARD },
    { SND_KNOWN_MODEL_PEAK, PART_PEAK },
};

static struct label read_label(const struct snd_text *name)
{
    for (size_t i = 0; i < SND_COUNT_OF(parts); i++) {
        const char *prefix = snd_known_name(parts[i].name);
        size_t      length = strlen(prefix);
        char       *end;
        if (name->length <= length || memcmp(name->bytes, prefix, length) != 0)
            continue;
        unsigned long long number = strtoull(name->bytes + length, &end, 10);
        if (*end == '\0' && number > 0)
            return (struct label){ parts[i].part, number };
    }
    return (struct label){ PART_NONE, 0 };
}

/* --------------------------------------------------------------------- passes */

static void begin_pass(struct sonde_bench *b, struct pass *p, const struct label *label)
{
    uint32_t index;

    if (!snd_bench_find_batch(b, label->number, &index))
        return;
    p->part = label->part;
    if (p->part != PART_BACKWARD) {
        snd_map_release(&p->blocks);
        memset(&p->blocks, 0, sizeof p->blocks);
        p->size_count = 0;
        p->live_bytes = p->peak_bytes = 0;
    }
    p->batch = index + 1;
    p->flops = p->macs = 0;
}

static bool is_pass(const struct label *label)
{
    return label->part >= PART_PASS && label->part <= PART_BACKWARD;
}

static void add_mean(double *mean, uint64_t before, double value)
{
    *mean += (value - *mean) / (double)(before + 1);
}

static void end_pass(struct sonde_bench *b, struct pass *p, bool is_whole)
{
    struct sonde_bench_batch *batch = &b->batches[p->batch - 1];

    p->batch = 0;
    if (!is_whole)
        return;
    if (p->part == PART_TRAIN)
        return;
    if (p->part == PART_BACKWARD) {
        add_mean(&batch->backward_flops, batch->backward_passes, p->flops);
        add_mean(&batch->backward_macs, batch->backward_passes++, p->macs);
        if (p->peak_bytes > batch->backward_peak_bytes)
            batch->backward_peak_bytes = p->peak_bytes;
        return;
    }
    add_mean(&batch->flops, batch->passes, p->flops);
    add_mean(&batch->macs, batch->passes++, p->macs);
    if (p->peak_bytes >= batch->peak_bytes) {
        batch->peak_bytes = p->peak_bytes;
        batch->held_bytes = p->live_bytes;
    }
}

static void take(struct sonde_bench *b, struct pass *p, struct snd_key key, int64_t bytes)
{
    if (!snd_grow(&p->sizes, &p->size_room, p->size_count, sizeof *p->sizes) ||
        !snd_map_put(&p->blocks, key, p->size_count)) {
        give_up(b);
        return;
    }
    p->sizes[p->size_count++] = bytes;
    p->live_bytes = snd_add(p->live_bytes, bytes);
    if (p->live_bytes > p->peak_bytes)
        p->peak_bytes = p->live_bytes;
}

static void on_memory(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words,
                      struct snd_open_range *innermost)
{
    struct sonde_bench *b = user;
    struct pass        *p = &b->passes[lane->process];
    struct snd_key      key = { SND_LOW(words[1]), words[2], 0 };
    uint32_t            place;

    (void)ns, (void)innermost;
    if (SND_DEVICE_TYPE(SND_LOW(words[1])) != b->device_type || p->batch == 0)
        return;
    bool known = snd_map_get(&p->blocks, key, &place);
    if (known) { /* given back; or taken anew, its free not in the trace */
        p->live_bytes = snd_sub(p->live_bytes, p->sizes[place]);
        snd_map_remove(&p->blocks, key);
    }
    if (SND_EVENT_KIND(words[0]) == SND_EV_ALLOC)
        take(b, p, key, snd_net_bytes(words));
}

/* --------------------------------------------------------------------- ranges */

static void on_open(void *user, struct snd_lane *lane, struct snd_open_range *range,
                    struct snd_open_range *parent)
{
    struct sonde_bench *b = user;
    const struct label *label = &b->labels[range->range.name];

    (void)parent;
    if (is_pass(label))
        begin_pass(b, &b->passes[lane->process], label);
}

static void add_sample(struct sonde_bench *b, const struct label *label, int64_t ns)
{
    uint32_t index;

    if (!snd_bench_find_batch(b, label->number, &index))
        return;
    struct samples *s = &b->samples[index][label->part];
    if (s->count >= SAMPLES_MAX)
        return;
    if (!snd_grow(&s->ns, &s->room, s->count, sizeof *s->ns)) {
        give_up(b);
        return;
    }
    s->ns[s->count++] = ns;
}

static void on_close(void *user, struct snd_lane *lane, struct snd_open_range *range,
                     struct snd_open_range *parent)
{
    struct sonde_bench     *b = user;
    struct pass            *p = &b->passes[lane->process];
    const struct snd_range *r = &range->range;
    const struct label     *label = &b->labels[r->name];

    (void)parent;
    if (label->part <= PART_RUN_LAST) {
        if (!r->unfinished && r->total_ns > 0)
            add_sample(b, label, r->total_ns);
    } else if (is_pass(label)) {
        if (p->batch != 0)
            end_pass(b, p, !r->unfinished);
    } else if (label->part == PART_PEAK) {
        double rate = r->total_ns > 0 ? (double)label->number * 1e9 / (double)r->total_ns : 0;
        if (!r->unfinished && rate > b->model.peak_flops)
            b->model.peak_flops = rate;
    } else if (p->batch != 0) {
        p->flops += r->flops;
        p->macs += r->macs;
    }
}

/* Times that a GPU measured are counters. */
static void on_other(void *user, struct snd_lane *lane, int64_t ns, const uint64_t *words)
{
    struct sonde_bench *b = user;
    uint32_t            name;
    double              value;

    (void)ns;
    if (SND_EVENT_KIND(words[0]) != SND_EV_COUNTER ||
        (name = snd_name_of(lane->from, SND_LOW(words[1]))) == UINT32_MAX ||
        b->labels[name].part != SONDE_BENCH_GPU)
        return;
    memcpy(&value, &words[2], sizeof value);
    if (value >= 1 && value < 1e18)
        add_sample(b, &b->labels[name], (int64_t)value);
}

/* ---------------------------------------------------------------------- sums */

static void sum_rates(struct sonde_bench_time *time, const struct samples *s)
{
    double squares = 0;

    time->sigma_ns = time->spread.std_ns * sqrt((double)(s->count - 1) / (double)s->count);
    time->rate_max = 1e9 / (double)s->ns[0];
    time->rate_min = 1e9 / (double)s->ns[s->count - 1];
    for (uint32_t i = 0; i < s->count; i++)
        time->rate_mean += 1e9 / (double)s->ns[i] / (double)s->count;
    for (uint32_t i = 0; i < s->count; i++) {
        double away = 1e9 / (double)s->ns[i] - time->rate_mean;
        squares += away * away;
    }
    time->rate_sigma = sqrt(squares / (double)s->count);
}

static void sum_up(struct sonde_bench *b)
{
    for (uint32_t i = 0; i < b->batch_count; i++) {
        for (unsigned part = 0; part < SONDE_BENCH_PARTS; part++) {
            struct samples          *s = &b->samples[i][part];
            struct sonde_bench_time *time = &b->batches[i].time[part];
            snd_spread(s->ns, s->count, &time->spread);
            if (s->count > 0)
                sum_rates(time, s);
        }
    }
}

static int compare_batches(const void *left, const void *right)
{
    const struct sonde_bench_batch *x = left, *y = right;

    return SND_RISING(x->size, y->size);
}

/* ----------------------------------------------------------------- the whole */

/* Ranges and counters of a benchmark have names that only it gives: without one there is nothing to walk for. */
static bool has_labels(const struct sonde_bench *b)
{
    for (uint32_t i = 0; i < b->trace->names.count; i++)
        if (b->labels[i].part != PART_NONE)
            return true;
    return false;
}

static enum sonde_status build(struct sonde_bench *b, struct sonde_error *err)
{
    const struct snd_consumer consumer = { .user = b,
                                           .flops = SONDE_FLOPS_FULL,
                                           .open = on_open,
                                           .close = on_close,
                                           .memory = on_memory,
                                           .other = on_other };

    snd_bench_read_facts(b);
    bool              failed = b->assembly.out_of_memory;
    enum sonde_status status = SONDE_OK;
    if (has_labels(b)) {
        status = snd_assemble(&b->assembly, b->trace, SONDE_BY_TIME, &consumer, 1, err);
        snd_assembly_release(&b->assembly);
    }
    if (status != SONDE_OK)
        return status;
    if (failed || b->assembly.out_of_memory)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the benchmark");
    sum_up(b);
    snd_sort(b->batches, b->batch_count, sizeof b->batches[0], compare_batches);
    return SONDE_OK;
}

enum sonde_status sonde_bench_new(struct sonde_trace *trace, struct sonde_bench **out,
                                  struct sonde_error *err)
{
    const struct sonde_text none = { "", 0 };
    enum sonde_status       status = SONDE_E_NOMEM;

    *out = NULL;
    struct sonde_bench *b = calloc(1, sizeof *b);
    if (b) {
        b->trace = trace;
        b->model = (struct sonde_bench_model){ .name = none,
                                               .kind = none,
                                               .device = none,
                                               .dtype = none,
                                               .machine = { .system = none,
                                                            .node = none,
                                                            .release = none,
                                                            .cpu = none,
                                                            .architecture = none },
                                               .energy = none,
                                               .failure = none,
                                               .parameters = -1,
                                               .trainable = -1,
                                               .parameter_bytes = -1,
                                               .buffer_bytes = -1 };
        b->passes = calloc((size_t)trace->process_count + 1, sizeof *b->passes);
        b->labels = calloc((size_t)trace->names.count + 1, sizeof *b->labels);
    }
    if (b && b->passes && b->labels) {
        for (uint32_t i = 0; i < trace->names.count; i++)
            b->labels[i] = read_label(&trace->names.items[i]);
        status = build(b, err);
    } else {
        snd_fail(err, SONDE_E_NOMEM, "out of memory for the benchmark");
    }
    if (status == SONDE_OK)
        *out = b;
    else
        sonde_bench_free(b);
    return status;
}

void sonde_bench_free(struct sonde_bench *b)
{
    if (!b)
        return;
    for (uint32_t i = 0; b->passes && i < b->trace->process_count; i++) {
        snd_map_release(&b->passes[i].blocks);
        free(b->passes[i].sizes);
    }
    for (uint32_t i = 0; i < BATCHES_MAX; i++)
        for (unsigned part = 0; part < SONDE_BENCH_PARTS; part++)
            free(b->samples[i][part].ns);
    free(b->passes);
    free(b->labels);
    free(b->gpus);
    snd_texts_release(&b->texts);
    free(b);
}

const struct sonde_bench_model *sonde_bench_model(const struct sonde_bench *bench)
{
    return &bench->model;
}

size_t sonde_bench_count(const struct sonde_bench *bench)
{
    return bench->batch_count;
}

const struct sonde_bench_batch *sonde_bench_batch(const struct sonde_bench *bench, size_t index)
{
    return index < bench->batch_count ? &bench->batches[index] : NULL;
}
