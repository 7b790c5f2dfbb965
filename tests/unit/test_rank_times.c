/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranks/rank_times.c and collectives.c: the time of ranks that have GPUs, calls whose work is a kernel's, sends and receives,
 * and what no other rank came to. tests/golden/view-ranks and view-collectives have jobs without GPUs.
 */
#include "model/ranks/collective_rows.h"
#include "model/ranks/rank_times.h"

#include <sys/stat.h>

#include "base/count_of.h"
#include "format/layout.h"
#include "scratch.h"

#define RANKS 4u

struct rank {
    struct synth *s;
    uint32_t      thread, stream, other_stream, number;
};

struct job {
    struct rank ranks[RANKS];
    char        folder[64];
};

static struct job make_job(const char *folder)
{
    struct job job;

    snprintf(job.folder, sizeof job.folder, "%s", folder);
    assert_int_equal(mkdir(scratch_path(folder), 0700), 0);
    for (uint32_t i = 0; i < RANKS; i++) {
        struct synth_options options = { .pid = 100 + i, .rank = i, .world_size = RANKS };
        char                 path[96], said[96];
        struct rank         *r = &job.ranks[i];
        snprintf(path, sizeof path, "%s/%u.sonde", folder, i);
        r->s = synth_new(scratch_path(path), &options);
        snprintf(said, sizeof said, "{\"rank\": %u, \"world_size\": %u, \"job\": \"j\"}", i, RANKS);
        synth_meta(r->s, "job.rank", said);
        r->number = i;
        r->thread = synth_thread(r->s, "main", 0);
        r->stream = synth_queue(r->s, &(struct snd_queue_record){ SND_DEVICE(1, 0), 1, 7, 0 });
        r->other_stream = synth_queue(r->s,
                                      &(struct snd_queue_record){ SND_DEVICE(1, 0), 1, 8, 0 });
    }
    return job;
}

static struct sonde_trace *finish(struct job *job)
{
    for (uint32_t i = 0; i < RANKS; i++)
        synth_close(job->ranks[i].s, true);
    return scratch_open(scratch_path(job->folder));
}

static void work(struct rank *r, const char *name, uint32_t kind, bool other, uint64_t from,
                 uint64_t to, uint32_t correlation)
{
    uint32_t made = synth_work(r->s, &(struct snd_work_record){ .name = synth_string(r->s, name),
                                                                .kind = kind });

    synth_device(r->s, r->thread, from, made, other ? r->other_stream : r->stream, to - from,
                 correlation, 0);
}

/* A call of a collective; `more`: members of its description, after a comma. With a launch if `correlation` is not 0. */
static unsigned elements = 10; /* of the calls that follow */

static void call(struct rank *r, uint64_t from, uint64_t to, const char *name, const char *group,
                 const char *more, uint64_t sequence, uint32_t correlation)
{
    char said[512];

    snprintf(said, sizeof said,
             "{\"Collective name\": \"%s\", \"Group size\": %u, \"In msg nelems\": %u, \"Out msg "
             "nelems\": 1, \"Process Group Name\": \"%s\", \"Rank\": %u, \"dtype\": \"Float\"%s}",
             name, RANKS, elements, group, r->number, more);
    synth_begin(r->s, r->thread, from, synth_string(r->s, "c10d::call"), 0);
    synth_attr(r->s, r->thread, SND_ATTR_SCOPE, 1);
    synth_attr(r->s, r->thread, SND_ATTR_COLLECTIVE, synth_string(r->s, said));
    synth_attr(r->s, r->thread, SND_ATTR_COLLECTIVE_SEQUENCE, sequence);
    if (correlation) {
        synth_begin(r->s, r->thread, from + 1, synth_string(r->s, "cudaLaunchKernel"), 0);
        synth_attr(r->s, r->thread, SND_ATTR_API, correlation);
        synth_end(r->s, r->thread, from + 2);
    }
    synth_end(r->s, r->thread, to);
}

/* ------------------------------------------------------------- time of a GPU */

/* Kernels and copies as unions: 100 to 250 and 400 to 420 compute, 220 to 320 communicates, 450 to 500 and 120 to 130 copies. */
static void gpus_divide_the_time(void **state)
{
    struct job             job = make_job("gpus");
    struct rank           *r = &job.ranks[1];
    struct snd_rank_times *times;

    (void)state;
    for (uint32_t i = 0; i < RANKS; i++)
        call(&job.ranks[i], 1000, 1010, "allreduce", "0", "", 1, 0);
    work(r, "gemm", SND_WORK_KERNEL, false, 100, 200, 0);
    work(r, "HtoD", SND_WORK_COPY, true, 120, 130, 0);
    work(r, "relu", SND_WORK_KERNEL, true, 150, 250, 0);
    work(r, "inside", SND_WORK_KERNEL, false, 210, 215, 0);
    work(r, "ncclDevKernel_AllReduce", SND_WORK_KERNEL, false, 220, 320, 0);
    work(r, "gemm", SND_WORK_KERNEL, false, 400, 420, 0);
    work(r, "DtoH", SND_WORK_COPY, true, 450, 500, 0);
    struct sonde_trace *trace = finish(&job);
    assert_int_equal(snd_rank_times_make(trace, false, &times, NULL), SONDE_OK);
    assert_int_equal(times->count, RANKS);
    for (uint32_t i = 0; i < RANKS; i++) {
        const struct snd_rank_row *row = &times->rows[i];
        assert_int_equal(row->collectives, 1);
        if (row->rank != 1) { /* without a GPU: its own ranges */
            assert_int_equal(row->span_ns, 10);
            assert_int_equal(row->copy_ns, 0);
            continue;
        }
        assert_int_equal(row->start_ns, 100);
        assert_int_equal(row->span_ns, 400);
        assert_int_equal(row->compute_ns, 150 + 20);
        assert_int_equal(row->communication_ns, 100);
        assert_int_equal(row->exposed_ns, 70);
        assert_int_equal(row->copy_ns, 10 + 50);
        assert_int_equal(row->idle_ns, 400 - 220 - 20 - 50);
    }
    snd_rank_times_free(times);
    sonde_trace_close(trace);
}

/* Kernels of nccl communicate: those with its prefix that say that they are kernels. */
static void names_tell_which_kernels_communicate(void **state)
{
    static const struct {
        const char *name;
        bool        communicates;
    } kernels[] = {
        { "ncclDevKernel_AllReduce", true },
        { "ncclKernel", true },
        { "ncclSetup", false },
        { "reluKernel", false },
        { "ncc", false },
        { "my_ncclKernel", false },
        { "nccl", false },
        { "ncclKerne", false },
    };

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(kernels); i++) {
        char folder[16];
        snprintf(folder, sizeof folder, "named%zu", i);
        struct job             job = make_job(folder);
        struct snd_rank_times *times;
        call(&job.ranks[0], 1000, 1010, "allreduce", "0", "", 1, 0);
        work(&job.ranks[0], kernels[i].name, SND_WORK_KERNEL, false, 100, 200, 0);
        struct sonde_trace *trace = finish(&job);
        assert_int_equal(snd_rank_times_make(trace, false, &times, NULL), SONDE_OK);
        if (times->rows[0].communication_ns != (kernels[i].communicates ? 100 : 0) ||
            times->rows[0].compute_ns != (kernels[i].communicates ? 0 : 100))
            fail_msg("%s", kernels[i].name);
        snd_rank_times_free(times);
        sonde_trace_close(trace);
    }
}

/* ------------------------------------------------------------------ steps */

static void operate(struct rank *r, uint64_t from, uint64_t to)
{
    synth_begin(r->s, r->thread, from, synth_string(r->s, "aten::mm"), 0);
    synth_attr(r->s, r->thread, SND_ATTR_SCOPE, 1);
    synth_end(r->s, r->thread, to);
}

/* Memory that was held before the steps, and before the recording, is a part of each step's peak. */
static void allocate(struct job *job)
{
    struct rank *cpu = &job->ranks[0], *gpu = &job->ranks[1];
    uint32_t     count = synth_string(gpu->s, "device.allocated cuda:0");

    synth_alloc(cpu->s, cpu->thread, 900, SND_DEVICE(0, 0xffff), 0x10, 100);
    synth_counter(gpu->s, gpu->thread, 940, synth_string(gpu->s, "device.allocated cuda:"), 7000);
    synth_counter(gpu->s, gpu->thread, 941, synth_string(gpu->s, "device.allocated cuda:65535"),
                  7000);
    synth_counter(gpu->s, gpu->thread, 942, count, -1); /* none of the three says anything */
    synth_alloc(gpu->s, gpu->thread, 950, SND_DEVICE(1, 0), 0x20, 200);
    synth_counter(gpu->s, gpu->thread, 951, count, 1000);
}

static void steps_are_divided(void **state)
{
    struct job             job = make_job("steps");
    struct rank           *r = &job.ranks[1];
    struct snd_rank_times *times;

    (void)state;
    allocate(&job);
    for (uint32_t i = 0; i < RANKS; i++) {
        struct rank *one = &job.ranks[i];
        synth_step(one->s, one->thread, 1000, 4);
        operate(one, 1010, 1100);
        if (i == 0) {
            synth_alloc(one->s, one->thread, 1110, SND_DEVICE(0, 0xffff), 0x11, 50);
            synth_free(one->s, one->thread, 1120, SND_DEVICE(0, 0xffff), 0x11, 50);
        }
        call(one, i == 1 ? 1250 : 1200, 1300, "allreduce", "0", "", 1, 0);
        synth_step(one->s, one->thread, 1500, 5);
        if (i == 0)
            synth_alloc(one->s, one->thread, 1510, SND_DEVICE(0, 0xffff), 0x12, 30);
        if (i == 1) {
            synth_free(one->s, one->thread, 1550, SND_DEVICE(1, 0), 0x99, 300); /* of before */
            synth_alloc(one->s, one->thread, 1560, SND_DEVICE(1, 0), 0x21, 500);
            /* A free is lost between. */
            synth_alloc(one->s, one->thread, 1570, SND_DEVICE(1, 0), 0x21, 500);
        }
        operate(one, 1600, 2000);
    }
    work(r, "gemm", SND_WORK_KERNEL, false, 1100, 1300, 0);
    work(r, "gemm", SND_WORK_KERNEL, false, 1450, 1600, 0); /* in both */
    work(r, "HtoD", SND_WORK_COPY, true, 1700, 1750, 0);
    struct sonde_trace *trace = finish(&job);
    assert_int_equal(snd_rank_times_make(trace, true, &times, NULL), SONDE_OK);
    assert_int_equal(times->step_count, 2 * RANKS);
    for (uint32_t i = 0; i < times->step_count; i++) {
        const struct snd_rank_row *row = &times->steps[i];
        bool                       is_first = i < RANKS, has_gpu = row->rank == 1;
        assert_int_equal(row->rank, i % RANKS);
        assert_int_equal(row->step, is_first ? 4 : 5);
        assert_int_equal(row->span_ns, 500);
        assert_int_equal(row->collectives, is_first);
        assert_int_equal(row->wait_ns, is_first && !has_gpu ? 50 : 0);
        assert_int_equal(row->caused_ns, is_first && has_gpu ? 50 : 0);
        assert_int_equal(row->last, is_first && has_gpu);
        assert_int_equal(row->compute_ns, has_gpu ? (is_first ? 250 : 100) : is_first ? 90 : 400);
        assert_int_equal(row->copy_ns, has_gpu && !is_first ? 50 : 0);
        assert_int_equal(row->idle_ns, has_gpu    ? (is_first ? 250 : 350)
                                       : is_first ? 500 - 190
                                                  : 100);
    }
    assert_int_equal(times->steps[0].peak_bytes, 150);
    assert_int_equal(times->steps[1].peak_bytes, 1000);
    assert_int_equal(times->steps[2].peak_bytes, -1);
    assert_int_equal(times->steps[RANKS].peak_bytes, 130);
    assert_int_equal(times->steps[RANKS + 1].peak_bytes, 1200);
    assert_int_equal(times->rows[0].peak_bytes, 150);
    assert_int_equal(times->rows[1].peak_bytes, 1200);
    assert_int_equal(times->rows[0].compute_ns, 490);
    snd_rank_times_free(times);
    sonde_trace_close(trace);
}

/* --------------------------------------------------------------- collectives */

struct done {
    char     group[16];
    int64_t  sequence, start_ns[RANKS], end_ns[RANKS];
    uint32_t ranks[RANKS], count;
    bool     is_whole;
};

struct all {
    struct done list[16];
    size_t      count;
};

/* What a person named, a call of Python, a call of a GPU's API: a range's attributes tell, which follow its begin. */
static void only_operators_compute(void **state)
{
    struct job             job = make_job("named");
    struct snd_rank_times *times;

    (void)state;
    for (uint32_t i = 0; i < RANKS; i++) {
        struct rank *r = &job.ranks[i];
        uint32_t     mine = synth_string(r->s, "mine");
        uint32_t called = synth_call(r->s, &(struct snd_call_record){ .name = mine, .scope = 8 });
        uint32_t other = synth_thread(r->s, "other", 0);
        static const uint8_t keys[RANKS] = { SND_ATTR_SCOPE, SND_ATTR_FRAME, SND_ATTR_API, 0 };
        if (keys[i] != 0) {
            synth_begin(r->s, r->thread, 1000, mine, 0);
            synth_attr(r->s, r->thread, keys[i], 8);
        } else {
            synth_call_range(r->s, r->thread, 1000, called, 0);
        }
        operate(r, 1100, 1200);
        synth_call_range(r->s, other, 1150, called, 0); /* while the first computes */
        synth_end(r->s, other, 1400);
        synth_end(r->s, r->thread, 1500);
    }
    struct sonde_trace *trace = finish(&job);
    assert_int_equal(snd_rank_times_make(trace, false, &times, NULL), SONDE_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(times->rows[i].span_ns, 500);
        assert_int_equal(times->rows[i].compute_ns, 100);
        assert_int_equal(times->rows[i].idle_ns, 400);
    }
    snd_rank_times_free(times);
    sonde_trace_close(trace);
}

/* Ranges that are one event each, of two threads, one of which goes on while the other's is under way. */
static void leaves_overlap(void **state)
{
    struct job             job = make_job("leaves");
    struct snd_rank_times *times;

    (void)state;
    for (uint32_t i = 0; i < RANKS; i++) {
        struct rank *r = &job.ranks[i];
        uint32_t     other = synth_thread(r->s, "other", 0);
        uint32_t     mm = synth_string(r->s, "aten::mm");
        uint32_t     called = synth_call(r->s, &(struct snd_call_record){ .name = mm, .scope = 1 });
        synth_call_range(r->s, r->thread, 1000, called, 400);
        synth_call_range(r->s, other, 1100, called, 100);
        synth_span(r->s, other, 1300, synth_string(r->s, "gloo:all_reduce"), 300);
        synth_call_range(r->s, r->thread, 1500, called, 50);
        synth_begin(r->s, r->thread, 2000, mm, 0);
        synth_call_range(r->s, r->thread, 2100, called, 100);
        synth_end(r->s, r->thread, 2300);
        synth_span(r->s, other, 2400, synth_string(r->s, "enumerate(DataLoader)#x"), 600);
    }
    struct sonde_trace *trace = finish(&job);
    assert_int_equal(snd_rank_times_make(trace, false, &times, NULL), SONDE_OK);
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(times->rows[i].span_ns, 2000);
        assert_int_equal(times->rows[i].compute_ns, 400 + 50 + 300);
        assert_int_equal(times->rows[i].communication_ns, 300);
        assert_int_equal(times->rows[i].exposed_ns, 300 - 100 - 50);
        assert_int_equal(times->rows[i].loading_ns, 600);
        assert_int_equal(times->rows[i].idle_ns, 2000 - 600 - 400 - 500);
    }
    snd_rank_times_free(times);
    sonde_trace_close(trace);
}

static void on_done(void *user, const struct snd_collective *c)
{
    struct all  *all = user;
    struct done *done = &all->list[all->count++];

    assert_true(all->count <= SND_COUNT_OF(all->list) && c->count <= RANKS);
    *done = (struct done){ .sequence = c->sequence, .count = c->count, .is_whole = c->is_whole };
    snprintf(done->group, sizeof done->group, "%.*s", (int)c->group->name.length,
             c->group->name.bytes);
    for (uint32_t i = 0; i < c->count; i++) {
        done->ranks[i] = c->members[i].rank;
        done->start_ns[i] = c->members[i].start_ns;
        done->end_ns[i] = c->members[i].end_ns;
    }
}

static struct all collectives_of(struct job *job)
{
    struct all                    all = { .count = 0 };
    struct snd_groups             groups;
    struct snd_collective_watcher watcher = { .user = &all, .done = on_done };
    struct sonde_trace           *trace = finish(job);

    assert_int_equal(snd_collectives_walk(trace, &groups, &watcher, NULL), SONDE_OK);
    snd_groups_release(&groups);
    sonde_trace_close(trace);
    return all;
}

/* A collective ends with the last kernel that its call launched, or with the call, whichever is later. */
static void kernels_end_collectives(void **state)
{
    struct job job = make_job("kernels");

    (void)state;
    for (uint32_t i = 0; i < RANKS; i++)
        call(&job.ranks[i], 1000, 1100, "allreduce", "0", "", 1, i < 3 ? 5 : 0);
    work(&job.ranks[0], "ncclKernel", SND_WORK_KERNEL, false, 1050, 1500, 5);
    work(&job.ranks[1], "ncclKernel", SND_WORK_KERNEL, false, 1020, 1090, 5);
    work(&job.ranks[2], "ncclKernel", SND_WORK_KERNEL, false, 1150, 1300, 5);
    work(&job.ranks[2], "ncclKernel", SND_WORK_KERNEL, true, 1050, 1200, 5);
    work(&job.ranks[3], "ncclKernel", SND_WORK_KERNEL, false, 1150, 1900, 6); /* another call's */
    struct all all = collectives_of(&job);
    assert_int_equal(all.count, 1);
    assert_true(all.list[0].is_whole);
    static const int64_t ends[RANKS] = { 1500, 1100, 1300, 1100 };
    for (uint32_t i = 0; i < RANKS; i++) {
        assert_int_equal(all.list[0].ranks[i], i);
        assert_int_equal(all.list[0].start_ns[i], 1000);
        assert_int_equal(all.list[0].end_ns[i], ends[i]);
    }
}

/* A send and its receive are one; those of other pairs, and the other way, are others. */
static void sends_meet_receives(void **state)
{
    struct job job = make_job("pairs");

    (void)state;
    call(&job.ranks[0], 1000, 1100, "send", "0", ", \"Dst Rank\": 1", 5, 0);
    call(&job.ranks[1], 1010, 1110, "recv", "0", ", \"Src Rank\": 0", 5, 0);
    call(&job.ranks[2], 1020, 1120, "send", "0", ", \"Dst Rank\": 3", 5, 0);
    call(&job.ranks[3], 1030, 1130, "recv", "0", ", \"Src Rank\": 2", 5, 0);
    call(&job.ranks[1], 1200, 1210, "send", "0", ", \"Dst Rank\": 0", 5, 0);
    call(&job.ranks[0], 1205, 1215, "recv", "0", ", \"Src Rank\": 1", 5, 0);
    struct all all = collectives_of(&job);
    assert_int_equal(all.count, 3);
    for (size_t i = 0; i < all.count; i++) {
        assert_int_equal(all.list[i].count, 2);
        assert_true(all.list[i].is_whole);
        assert_int_equal(all.list[i].ranks[0] / 2, all.list[i].ranks[1] / 2);
    }
}

/* What others never came to is handed over at the end: by group, number and begin. */
static void what_is_left_is_in_order(void **state)
{
    struct job   job = make_job("left");
    struct rank *r = &job.ranks[0];
    static const struct {
        const char *group;
        int64_t     sequence;
    } expected[] = { { "b", 2 }, { "b", 3 }, { "a", 1 }, { "a", 9 } };

    (void)state;
    call(r, 1000, 1010, "allreduce", "b", "", 3, 0);
    call(r, 1100, 1110, "allreduce", "a", "", 9, 0);
    call(r, 1200, 1210, "allreduce", "b", "", 2, 0);
    call(r, 1300, 1310, "allreduce", "a", "", 1, 0);
    struct all all = collectives_of(&job);
    assert_int_equal(all.count, SND_COUNT_OF(expected));
    for (size_t i = 0; i < all.count; i++) {
        assert_string_equal(all.list[i].group, expected[i].group);
        assert_int_equal(all.list[i].sequence, expected[i].sequence);
        assert_int_equal(all.list[i].count, 1);
        assert_false(all.list[i].is_whole);
    }
}

/* By time, and of equal ones by group, kind and size; with who came last, and how long the others waited. */
static void rows_of_collectives(void **state)
{
    static const struct {
        const char *group, *name;
        unsigned    elements, duration;
    } calls[] = { { "a", "broadcast", 10, 100 },
                  { "b", "allreduce", 10, 100 },
                  { "a", "allreduce", 20, 100 },
                  { "b", "gather", 10, 500 },
                  { "a", "allreduce", 10, 100 } };
    static const struct {
        uint32_t                 group;
        enum snd_collective_kind kind;
        uint64_t                 size_bytes;
    } expected[] = {
        { 1, SND_COLLECTIVE_GATHER, 40 },     { 0, SND_COLLECTIVE_ALL_REDUCE, 40 },
        { 0, SND_COLLECTIVE_ALL_REDUCE, 80 }, { 0, SND_COLLECTIVE_BROADCAST, 40 },
        { 1, SND_COLLECTIVE_ALL_REDUCE, 40 },
    };
    struct job                  job = make_job("rows");
    struct snd_collective_rows *rows;

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(calls); i++)
        for (uint32_t k = 0; k < RANKS; k++) {
            uint64_t at = 1000 * (i + 1) + (k == 2 ? 30 : 0);
            elements = calls[i].elements;
            call(&job.ranks[k], at, at + calls[i].duration, calls[i].name, calls[i].group, "", i,
                 0);
        }
    elements = 10;
    struct sonde_trace *trace = finish(&job);
    assert_int_equal(snd_collective_rows_make(trace, &rows, NULL), SONDE_OK);
    assert_int_equal(rows->count, SND_COUNT_OF(expected));
    assert_int_equal(rows->unfinished_count, 0);
    for (uint32_t i = 0; i < rows->count; i++) {
        const struct snd_collective_row *row = &rows->rows[i];
        int64_t                          duration = i == 0 ? 500 : 100;
        assert_int_equal(row->group, expected[i].group);
        assert_int_equal(row->kind, expected[i].kind);
        assert_int_equal(row->size_bytes, expected[i].size_bytes);
        assert_int_equal(row->count, 1);
        assert_int_equal(row->whole, 1);
        assert_int_equal(row->duration_ns, duration);
        assert_int_equal(row->transfer_ns, duration);
        assert_int_equal(row->last_rank, 2);
        assert_int_equal(row->last_count, 1);
        assert_int_equal(row->mismatched, 0);
    }
    snd_collective_rows_free(rows);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gpus_divide_the_time),
        cmocka_unit_test(kernels_end_collectives),
        cmocka_unit_test(sends_meet_receives),
        cmocka_unit_test(what_is_left_is_in_order),
        cmocka_unit_test(rows_of_collectives),
        cmocka_unit_test(steps_are_divided),
        cmocka_unit_test(names_tell_which_kernels_communicate),
        cmocka_unit_test(only_operators_compute),
        cmocka_unit_test(leaves_overlap),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
