/* SPDX-License-Identifier: Apache-2.0 */
/* What a GPU's work tells of a program: why it stood still, what it ran, what was copied. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/plural.h"
#include "format/layout.h"
#include "model/gpu/gpu.h"
#include "model/gpu/kernels.h"
#include "model/highlights/advisor.h"
#include "read/file/scale.h"

#define SYNC_PERCENT 5.0
#define SYNC_TIMES 3u
#define IDLE_PERCENT 20.0
#define TINY_KERNELS 100u
#define TINY_NS 10000
#define TINY_IDLE_PERCENT 25.0
#define COPY_PERCENT 2.0
#define COPY_BYTES (1u << 20)
#define PRODUCT_PERCENT 10.0
#define LAUNCHED_TEXT (SND_SPOT_TEXT + 32)
#define PAGEABLE 1u /* CUPTI's kinds of memory: CUPTI_ACTIVITY_MEMORY_KIND_PAGEABLE */

/* Where the host was: its line, else the range, else the call. */
static struct snd_spot find_spot(const struct snd_advisor *advisor, const struct snd_gpu *gpu,
                                 uint32_t device, uint32_t where, uint32_t call, uint32_t frame)
{
    const struct snd_where *place = where == SONDE_NONE ? NULL : &gpu->launches->places[where];
    struct snd_spot         spot = { .function = { "(not known)", 11 } };
    struct sonde_frame      in;

    if (place && snd_spot_of_stack(advisor, place->process, place->stack, &spot))
        return spot;
    if (call != SONDE_NONE &&
        snd_spot_of_samples(advisor, advisor->trace->names.items[call].bytes, &spot))
        return spot;
    if (place && place->name != SONDE_NONE &&
        snd_spot_of_samples(advisor, snd_where_name(gpu->launches, place).bytes, &spot))
        return spot;
    if (frame && sonde_trace_frame(advisor->trace, gpu->devices[device].process, frame, &in))
        return (struct snd_spot){ in.file, in.function, in.first_line ? in.first_line : in.line };
    if (place && place->name != SONDE_NONE) {
        spot.function = snd_where_name(gpu->launches, place);
    } else if (call != SONDE_NONE) {
        const struct snd_text *name = &advisor->trace->names.items[call];
        spot.function = (struct sonde_text){ name->bytes, name->length };
    } else if (place) {
        spot.function = (struct sonde_text){ "code outside of any range", 25 };
    }
    return spot;
}

/* Operators that read a value of the GPU, to go on by it. */
static bool reads_a_value(struct sonde_text name)
{
    static const char *const operators[] = { "aten::item", "aten::_local_scalar_dense",
                                             "aten::nonzero", "aten::is_nonzero", "aten::equal" };

    for (size_t i = 0; i < SND_COUNT_OF(operators); i++)
        if (name.length == strlen(operators[i]) &&
            memcmp(name.bytes, operators[i], name.length) == 0)
            return true;
    return false;
}

static bool is_item(const struct snd_gpu *gpu, const struct snd_gpu_cause *cause)
{
    return cause->where != SONDE_NONE &&
           reads_a_value(snd_where_name(gpu->launches, &gpu->launches->places[cause->where]));
}

static int64_t lost_ns(const struct snd_gpu_cause *cause)
{
    return snd_add(cause->total_ns, cause->drained_ns);
}

/* All waits of one sort; the place is that of the longest. */
static void tell_waits(struct snd_advisor *advisor, const struct snd_gpu *gpu, uint32_t device,
                       bool item)
{
    const struct snd_gpu_device *d = &gpu->devices[device];
    const struct snd_gpu_cause  *most = NULL;
    int64_t                      sum_ns = 0, span = snd_sub(d->last_ns, d->first_ns);
    uint64_t                     gaps = 0;
    char                         place[SND_SPOT_TEXT];

    for (uint32_t i = 0; i < gpu->cause_count; i++) {
        const struct snd_gpu_cause *cause = &gpu->causes[i];
        if (cause->device != device || cause->reason != SND_IDLE_SYNC ||
            is_item(gpu, cause) != item)
            continue;
        sum_ns = snd_add(sum_ns, lost_ns(cause));
        gaps += cause->gaps;
        if (!most || lost_ns(cause) > lost_ns(most))
            most = cause;
    }
    if (gaps < SYNC_TIMES || snd_percent(sum_ns, span) < SYNC_PERCENT)
        return;
    struct snd_spot spot = find_spot(advisor, gpu, device, most->where, most->call, most->frame);
    snd_advise(advisor, item ? SND_ADVICE_ITEM : SND_ADVICE_SYNCHRONISE, snd_percent(sum_ns, span),
               "table/gpu", &spot,
               "The GPU runs dry %" PRIu64 " times while the host waits %s: %s, %.0f %% of its "
               "time; most at %s",
               gaps, item ? "to read a value of it" : "for it to finish",
               snd_amount_time(sum_ns).text, snd_percent(sum_ns, span),
               snd_spot_short(&spot, place));
}

static void tell_idle(struct snd_advisor *advisor, const struct snd_gpu *gpu, uint32_t device)
{
    const struct snd_gpu_device *d = &gpu->devices[device];
    const struct snd_gpu_cause  *most = NULL;
    int64_t                      span = snd_sub(d->last_ns, d->first_ns);
    char                         place[SND_SPOT_TEXT];

    for (uint32_t i = 0; i < gpu->cause_count; i++)
        if (gpu->causes[i].device == device && gpu->causes[i].reason == SND_IDLE_HOST &&
            (!most || gpu->causes[i].total_ns > most->total_ns))
            most = &gpu->causes[i];
    if (!most || snd_percent(d->idle_ns[SND_IDLE_HOST], span) < IDLE_PERCENT)
        return;
    struct snd_spot spot = find_spot(advisor, gpu, device, most->where, most->call, most->frame);
    snd_advise(advisor, SND_ADVICE_GPU_IDLE, snd_percent(d->idle_ns[SND_IDLE_HOST], span),
               "table/gpu", &spot,
               "The GPU waits for the host %.0f %% of its time, %s; most of it, %s, at %s",
               snd_percent(d->idle_ns[SND_IDLE_HOST], span),
               snd_amount_time(d->idle_ns[SND_IDLE_HOST]).text,
               snd_amount_time(most->total_ns).text, snd_spot_short(&spot, place));
}

static struct snd_spot find_launcher(const struct snd_advisor    *advisor,
                                     const struct snd_kernels    *kernels,
                                     const struct snd_kernel_row *row)
{
    struct snd_spot spot = { .function = row->name };

    if (row->launched && !snd_spot_of_stack(advisor, row->where.process, row->where.stack, &spot)) {
        struct sonde_text name = snd_where_name(kernels->launches, &row->where);
        if (name.length && snd_spot_of_samples(advisor, name.bytes, &spot))
            return spot;
        spot.function = name.length ? name : row->name;
    }
    return spot;
}

/* "; most at train.py:42": nothing if the calls that asked for the work are not in the trace. */
static const char *launched_at(const struct snd_kernel_row *row, const struct snd_spot *spot,
                               const char *word, char text[LAUNCHED_TEXT])
{
    char place[SND_SPOT_TEXT];

    text[0] = '\0';
    if (row->launched)
        snprintf(text, LAUNCHED_TEXT, "; %s at %s", word, snd_spot_short(spot, place));
    return text;
}

static void tell_tiny(struct snd_advisor *advisor, const struct snd_gpu *gpu, uint32_t device,
                      const struct snd_kernels *kernels)
{
    const struct snd_gpu_device *d = &gpu->devices[device];
    const struct snd_kernel_row *most = NULL;
    int64_t                      span = snd_sub(d->last_ns, d->first_ns), sum_ns = 0;
    uint64_t                     count = 0;
    int64_t idle_ns = snd_add(d->idle_ns[SND_IDLE_HOST], d->idle_ns[SND_IDLE_LAUNCH]);
    char    place[SND_SPOT_TEXT];

    for (uint32_t i = 0; i < kernels->count; i++) {
        const struct snd_kernel_row *row = &kernels->rows[i];
        if (row->kind != SND_WORK_KERNEL)
            continue;
        count += row->count - row->graph_count; /* a graph is launched at once */
        sum_ns = snd_add(sum_ns, row->total_ns);
        if (!most || row->count > most->count)
            most = row;
    }
    if (count < TINY_KERNELS || d->kernels == 0 || (double)sum_ns / (double)d->kernels >= TINY_NS ||
        snd_percent(idle_ns, span) < TINY_IDLE_PERCENT)
        return;
    struct snd_spot spot = find_launcher(advisor, kernels, most);
    snd_advise(advisor, SND_ADVICE_TINY_KERNELS, snd_percent(idle_ns, span), "table/kernels", &spot,
               "%" PRIu64 " kernels of %s in the mean: the GPU waits %.0f %% of its time for the "
               "next; %" PRIu64 " of them are launched at %s",
               d->kernels, snd_amount_time((int64_t)((double)sum_ns / (double)d->kernels)).text,
               snd_percent(idle_ns, span), most->count, snd_spot_short(&spot, place));
}

static void tell_copies(struct snd_advisor *advisor, const struct snd_gpu_device *d,
                        const struct snd_kernels *kernels)
{
    const struct snd_kernel_row *most = NULL;
    int64_t                      span = snd_sub(d->last_ns, d->first_ns), sum_ns = 0;
    uint64_t                     bytes = 0, count = 0;
    char                         at[LAUNCHED_TEXT];

    for (uint32_t i = 0; i < kernels->count; i++) {
        const struct snd_kernel_row *row = &kernels->rows[i];
        if (row->kind != SND_WORK_COPY ||
            (row->work.source_kind != PAGEABLE && row->work.target_kind != PAGEABLE))
            continue;
        bytes += row->bytes;
        count += row->count;
        sum_ns = snd_add(sum_ns, row->total_ns);
        if (!most || row->total_ns > most->total_ns)
            most = row;
    }
    if (!most || bytes < COPY_BYTES || snd_percent(sum_ns, span) < COPY_PERCENT)
        return;
    struct snd_spot spot = find_launcher(advisor, kernels, most);
    snd_advise(advisor, SND_ADVICE_PAGEABLE_COPY, snd_percent(sum_ns, span), "table/kernels", &spot,
               "%" PRIu64 " cop%s of %s from or to memory that is not pinned take%s %s, %.0f %% of "
               "the GPU's time%s",
               count, count == 1 ? "y" : "ies", snd_amount_bytes((int64_t)bytes).text,
               count == 1 ? "s" : "", snd_amount_time(sum_ns).text, snd_percent(sum_ns, span),
               launched_at(most, &spot, "most", at));
}

/*
 * As cuBLAS and CUTLASS call them: "ampere_sgemm_128x64_tn", "cutlass_80_simt_sgemm_128x32_8x5_tn"; on Hopper
 * "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_aligna4_alignc4_execute_kernel".
 */
static bool is_plain_product(struct sonde_text name)
{
    static const char *const plain[] = { "sgemm", "simt", "_ffma_" }, *const not [] = {
        "tf32", "tensorop"
    };
    bool found = false;

    for (size_t i = 0; i < SND_COUNT_OF(plain); i++)
        found |= memmem(name.bytes, name.length, plain[i], strlen(plain[i])) != NULL;
    for (size_t i = 0; i < SND_COUNT_OF(not ); i++)
        found &= memmem(name.bytes, name.length, not [i], strlen(not [i])) == NULL;
    return found;
}

static void tell_products(struct snd_advisor *advisor, const struct snd_kernels *kernels)
{
    const struct snd_kernel_row *most = NULL;
    int64_t                      sum_ns = 0, whole_ns = 0;
    char                         at[LAUNCHED_TEXT];

    for (uint32_t i = 0; i < kernels->count; i++) {
        const struct snd_kernel_row *row = &kernels->rows[i];
        if (row->kind != SND_WORK_KERNEL)
            continue;
        whole_ns = snd_add(whole_ns, row->total_ns);
        if (!is_plain_product(row->name))
            continue;
        sum_ns = snd_add(sum_ns, row->total_ns);
        if (!most || row->total_ns > most->total_ns)
            most = row;
    }
    if (!most || snd_percent(sum_ns, whole_ns) < PRODUCT_PERCENT)
        return;
    struct snd_spot spot = find_launcher(advisor, kernels, most);
    snd_advise(advisor, SND_ADVICE_NO_TENSOR_CORES, snd_percent(sum_ns, whole_ns), "table/kernels",
               &spot,
               "%.0f %% of the kernels' time, %s, are products of 32-bit floats without tensor "
               "cores (%.*s)%s",
               snd_percent(sum_ns, whole_ns), snd_amount_time(sum_ns).text,
               (int)(most->name.length < 60 ? most->name.length : 60), most->name.bytes,
               launched_at(most, &spot, "most launched", at));
}

enum sonde_status snd_advise_gpu(struct snd_advisor *advisor, struct sonde_error *err)
{
    const struct snd_gpu *gpu = advisor->gpu;
    struct snd_kernels   *kernels;
    enum sonde_status     st = snd_kernels_launched(gpu->launches, &kernels, err);

    uint32_t most = SONDE_NONE; /* the GPU that stood still longest */
    for (uint32_t i = 0; i < gpu->device_count; i++)
        if (most == SONDE_NONE ||
            snd_sub(snd_sub(gpu->devices[i].last_ns, gpu->devices[i].first_ns),
                    gpu->devices[i].kernel_ns) >
                snd_sub(snd_sub(gpu->devices[most].last_ns, gpu->devices[most].first_ns),
                        gpu->devices[most].kernel_ns))
            most = i;
    if (st == SONDE_OK && most != SONDE_NONE) {
        tell_waits(advisor, gpu, most, true);
        tell_waits(advisor, gpu, most, false);
        tell_idle(advisor, gpu, most);
        if (gpu->device_count == 1) /* kernels are of all GPUs */
            tell_tiny(advisor, gpu, most, kernels);
        tell_copies(advisor, &gpu->devices[most], kernels);
        tell_products(advisor, kernels);
    }
    snd_kernels_free(kernels);
    return st;
}
