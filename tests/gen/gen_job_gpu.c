/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/gen_job_gpu.c - a job of four ranks, each with a GPU, that communicate by nccl: kernels beside kernels, copies, groups
 * of some ranks, a message from one rank to another, and at the end collectives to which the last rank does not come.
 *
 * N 1: without steps, and the last rank does not say which it is: the text of its calls does.
 */
#include "cases.h"

#include <stdio.h>

#include "format/layout.h"
#include "synth.h"

enum { RANKS = 4, STEPS = 3, US = 1000 };
enum { ALL, ODD, EVEN, CUT };

/* The groups: all ranks; 1 and 3, as a fact says; 0 and 2, as the call says; one whose list is not whole. */
static const struct {
    const char *collective, *dtype, *group;
    uint32_t    in, out;
    bool        of[RANKS];
} calls[] = {
    [ALL] = { "allreduce",
              "Float",
              "\"Group size\": 4, \"Process Group Description\": \"default_pg\", "
              "\"Process Group Name\": \"0\"",
              1000000,
              1000000,
              { true, true, true, true } },
    [ODD] = { "_allgather_base",
              "BFloat16",
              "\"Group size\": 2, \"Process Group Description\": \"odd\", "
              "\"Process Group Name\": \"1\"",
              500,
              1000,
              { false, true, false, true } },
    [EVEN] = { "reduce_scatter",
               "float16",
               "\"Process Group Description\": \"even\", \"Process Group Name\": \"2\", "
               "\"Process Group Ranks\": [0, 2]",
               800,
               400,
               { true, false, true, false } },
    [CUT] = { "mystery",
              "of_a_later_version",
              "\"Group size\": 4, \"Process Group Description\": \"cut\", "
              "\"Process Group Name\": \"3\", \"Process Group Ranks\": [0, 1]",
              300,
              300,
              { true, true, true, true } },
};

struct rank {
    struct synth *s;
    uint32_t      number, main, gpu;
    uint32_t      compute, other; /* streams */
    uint32_t      gemm, nccl, copy, launch, call, correlation;
};

static struct rank make_rank(const char *path, uint32_t number, bool says)
{
    struct synth_options options = { .pid = 7000 + number,
                                     .rank = number,
                                     .world_size = says ? RANKS : 0 };
    char                 file[1024];

    snprintf(file, sizeof file, "%s/rank%u.sonde", path, number);
    struct rank r = { .s = synth_new(file, &options), .number = number };
    synth_meta(r.s, "job.group 0",
               "{\"description\": \"default_pg\", \"size\": 4, \"backend\": \"nccl\"}");
    if (number % 2)
        synth_meta(
            r.s, "job.group 1",
            "{\"description\": \"odd\", \"size\": 2, \"backend\": \"nccl\", \"ranks\": [1, 3]}");
    r.main = synth_thread(r.s, "main", 0);
    r.gpu = synth_thread(r.s, "cupti", 0);
    r.compute = synth_queue(r.s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
    r.other = synth_queue(r.s, &(struct snd_queue_record){ CUDA0, 1, 8, 0 });
    r.gemm = synth_work(r.s, &(struct snd_work_record){ .name = synth_string(r.s, "gemm"),
                                                        .kind = SND_WORK_KERNEL });
    r.nccl = synth_work(r.s, &(struct snd_work_record){ .name = synth_string(r.s, "ncclDevKernel"),
                                                        .kind = SND_WORK_KERNEL });
    r.copy = synth_work(r.s, &(struct snd_work_record){ .name = synth_string(r.s, "Memcpy HtoD"),
                                                        .kind = SND_WORK_COPY,
                                                        .bytes = 4096 });
    r.launch = synth_string(r.s, "cudaLaunchKernel");
    r.call = synth_string(r.s, "record_param_comms");
    return r;
}

/* A call of the API, and the work that it asked for. */
static void launch(struct rank *r, uint64_t ns, uint32_t work, uint32_t queue, uint64_t begin,
                   uint64_t end)
{
    r->correlation++;
    synth_begin(r->s, r->main, ns, r->launch, 0);
    synth_attr(r->s, r->main, SND_ATTR_API, r->correlation);
    synth_end(r->s, r->main, ns + 2 * US);
    synth_device(r->s, r->gpu, begin, work, queue, end - begin, r->correlation, 0);
}

static void begin_call(struct rank *r, uint64_t ns, const char *text, int64_t sequence)
{
    synth_begin(r->s, r->main, ns, r->call, 0);
    synth_attr(r->s, r->main, SND_ATTR_SCOPE, 1);
    synth_attr(r->s, r->main, SND_ATTR_COLLECTIVE, synth_string(r->s, text));
    if (sequence >= 0)
        synth_attr(r->s, r->main, SND_ATTR_COLLECTIVE_SEQUENCE, (uint64_t)sequence);
}

static void describe(const struct rank *r, uint32_t call, char text[512])
{
    uint32_t own = call == ODD || call == EVEN ? r->number / 2 : r->number;

    snprintf(text, 512,
             "{\"Collective name\": \"%s\", \"In msg nelems\": %u, \"Out msg nelems\": %u, %s, "
             "\"Rank\": %u, \"dtype\": \"%s\"}",
             calls[call].collective, calls[call].in, calls[call].out, calls[call].group, own,
             calls[call].dtype);
}

/* The kernels of all members end together; that of the rank that came last begins last. */
static void communicate(struct rank *r, uint64_t ns, uint32_t call, int64_t sequence, uint64_t end)
{
    char     text[512];
    uint64_t late = r->number * 3 * US;

    describe(r, call, text);
    begin_call(r, ns + late, text, sequence);
    synth_begin(r->s, r->main, ns + late + US, r->call, 0); /* the same again, inside */
    synth_attr(r->s, r->main, SND_ATTR_COLLECTIVE, synth_string(r->s, text));
    launch(r, ns + late + 2 * US, r->nccl, r->other, ns + late + 10 * US, end);
    synth_end(r->s, r->main, ns + late + 5 * US);
    launch(r, ns + late + 6 * US, r->nccl, r->other, ns + late + 8 * US, ns + late + 9 * US);
    synth_end(r->s, r->main, ns + late + 12 * US);
}

/* From rank 0 to rank 1. */
static void pass_on(struct rank *r, uint64_t ns, int64_t sequence)
{
    char text[512];

    if (r->number > 1)
        return;
    snprintf(text, sizeof text,
             "{\"Collective name\": \"%s\", \"Group size\": 4, \"In msg nelems\": 64, \"Out msg "
             "nelems\": 64, "
             "\"Process Group Description\": \"default_pg\", \"Process Group Name\": \"0\", "
             "\"%s\": %u, \"Rank\": %u, \"dtype\": \"Long\"}",
             r->number ? "recv" : "send", r->number ? "Src Rank" : "Dst Rank", 1 - r->number,
             r->number);
    begin_call(r, ns + r->number * US, text, sequence);
    synth_end(r->s, r->main, ns + 10 * US);
}

static void run_step(struct rank *r, uint64_t ns, uint32_t step, bool has_steps)
{
    if (has_steps)
        synth_step(r->s, r->main, ns, step);
    launch(r, ns + 2 * US, r->gemm, r->compute, ns + 10 * US, ns + (110 + r->number) * US);
    communicate(r, ns + 40 * US, ALL, step,
                ns + 200 * US); /* beside the first kernel, then alone */
    launch(r, ns + 90 * US, r->copy, r->compute, ns + 190 * US, ns + 230 * US);
    launch(r, ns + 100 * US, r->copy, r->other, ns + 195 * US,
           ns + 220 * US); /* within the other */
    launch(r, ns + 110 * US, r->gemm, r->other, ns + 240 * US, ns + 250 * US);
    for (uint32_t call = ODD; call <= CUT; call++)
        if (calls[call].of[r->number])
            communicate(r, ns + 260 * US + (call - ODD) * 30 * US, call, step,
                        ns + 300 * US + (call - ODD) * 30 * US);
    pass_on(r, ns + 360 * US, 100 + step);
}

/* A DataLoader's worker of rank 1: no rank of its own. */
static void make_worker(const char *path)
{
    struct synth_options options = {
        .pid = 7100, .parent_pid = 7001, .rank = 1, .world_size = RANKS
    };
    char file[1024];

    snprintf(file, sizeof file, "%s/worker.sonde", path);
    struct synth *s = synth_new(file, &options);
    uint32_t      t = synth_thread(s, "worker", 0);
    synth_begin(s, t, 50 * US, synth_string(s, "reads"), 0);
    synth_end(s, t, 900 * US);
    synth_close(s, true);
}

void make_job_gpu(const char *path, uint64_t n)
{
    make_folder(path);
    make_worker(path);
    for (uint32_t i = 0; i < RANKS; i++) {
        bool        is_last = i == RANKS - 1;
        struct rank r = make_rank(path, i, n == 0 || !is_last);
        char        text[512];
        for (uint32_t step = 0; step < STEPS; step++)
            run_step(&r, 10 * US + step * 400 * US, step, n == 0);
        for (uint32_t call = ALL; call <= CUT && !is_last; call++) { /* it never comes */
            describe(&r, call, text);
            if (call == EVEN || !calls[call].of[i])
                continue;
            begin_call(&r, (1300 + call) * US, text, 50 - (int64_t)call);
            synth_end(r.s, r.main, (1310 + call) * US);
        }
        synth_mark(r.s, r.main, 1400 * US, r.call, 0);
        synth_close(r.s, true);
    }
}
