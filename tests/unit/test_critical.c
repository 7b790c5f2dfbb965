/* SPDX-License-Identifier: Apache-2.0 */
/* The critical path: a part of a made-up job is really shortened, and the job gains what was said of it. */
#include "format/layout.h"
#include "model/ranks/critical.h"
#include "scratch.h"

enum { RANKS = 3, STEPS = 10 };

/* Microseconds of each part of a step. */
struct plan {
    uint64_t loading[RANKS], compute[RANKS], backward[RANKS], host[RANKS], transfer;
};

static const struct plan plan = {
    { 50, 50, 50 }, { 300, 500, 310 }, { 200, 200, 420 }, { 20, 30, 10 }, 80
};

struct rank {
    struct synth *s;
    uint32_t      main, engine, gloo, loading, mm, backward, call, work, said;
    uint64_t      ns;
};

static struct rank make_rank(uint32_t number)
{
    char                 name[32], said[256];
    struct synth_options options = {
        .pid = 100 + number, .rank = number, .world_size = RANKS, .start_ns = 0
    };

    snprintf(name, sizeof name, "job/rank%u.sonde", number);
    struct rank r = { .s = synth_new(scratch_path(name), &options), .ns = 1000 };
    r.main = synth_thread_of(r.s, "main", 100 + number, 0);
    r.engine = synth_thread_of(r.s, "pt_autograd_0", 200 + number, 0);
    r.gloo = synth_thread_of(r.s, "pt_gloo_runloop", 300 + number, 0);
    r.loading = synth_string(r.s, "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__");
    r.mm = synth_string(r.s, "aten::mm");
    r.backward = synth_string(r.s, "MmBackward0");
    r.call = synth_string(r.s, "c10d::allreduce_");
    r.work = synth_string(r.s, "gloo:all_reduce");
    snprintf(
        said, sizeof said,
        "{\"Collective name\": \"allreduce_\", \"Group size\": %d, \"In msg nelems\": 9, \"Out "
        "msg nelems\": 9, \"Process Group Name\": \"0\", \"Rank\": %u, \"dtype\": \"Float\"}",
        RANKS, number);
    r.said = synth_string(r.s, said);
    synth_meta(r.s, "job.group 0", "{\"size\": 3, \"backend\": \"gloo\"}");
    return r;
}

static void run(struct rank *r, uint32_t thread, uint32_t name, uint64_t scope, uint64_t us)
{
    if (us == 0)
        return;
    synth_begin(r->s, thread, r->ns, name, 0);
    synth_attr(r->s, thread, SND_ATTR_SCOPE, scope);
    r->ns += us * 1000;
    synth_end(r->s, thread, r->ns);
}

static void say(struct rank *r, uint32_t thread, uint64_t step)
{
    synth_attr(r->s, thread, SND_ATTR_COLLECTIVE, r->said);
    synth_attr(r->s, thread, SND_ATTR_COLLECTIVE_SEQUENCE, step);
}

/* Loads, computes, lets autograd's thread do the backward pass, does something of its own, meets the others. */
static void run_step(struct rank *ranks, const struct plan *p, uint64_t step)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < RANKS; i++) {
        struct rank *r = &ranks[i];
        synth_step(r->s, r->main, r->ns, step);
        run(r, r->main, r->loading, 8, p->loading[i]);
        run(r, r->main, r->mm, 1, p->compute[i]);
        run(r, r->engine, r->backward, 2, p->backward[i]);
        r->ns += p->host[i] * 1000;
        last = r->ns > last ? r->ns : last;
    }
    for (uint32_t i = 0; i < RANKS; i++) {
        struct rank *r = &ranks[i];
        synth_begin(r->s, r->main, r->ns, r->call, 0);
        synth_attr(r->s, r->main, SND_ATTR_SCOPE, 1);
        say(r, r->main, step);
        synth_end(r->s, r->main, r->ns + 1);
        synth_begin(r->s, r->gloo, r->ns, r->work, 0);
        synth_attr(r->s, r->gloo, SND_ATTR_SCOPE, 8);
        synth_attr(r->s, r->gloo, SND_ATTR_ASYNC, 1);
        say(r, r->gloo, step);
        r->ns = last + p->transfer * 1000;
        synth_end(r->s, r->gloo, r->ns);
    }
}

/* Steps take turns with the plans. */
static struct snd_critical *find_paths(const struct plan *plans, uint64_t count, bool by_step)
{
    struct rank          ranks[RANKS];
    struct snd_critical *critical = NULL;
    char                 command[300];

    snprintf(command, sizeof command, "mkdir -p %s", scratch_path("job"));
    assert_int_equal(system(command), 0);
    for (uint32_t i = 0; i < RANKS; i++)
        ranks[i] = make_rank(i);
    for (uint64_t step = 0; step < STEPS; step++)
        run_step(ranks, &plans[step % count], step);
    for (uint32_t i = 0; i < RANKS; i++) {
        run(&ranks[i], ranks[i].main, ranks[i].mm, 1, 1);
        synth_close(ranks[i].s, true);
    }
    struct sonde_trace *trace = scratch_open(scratch_path("job"));
    assert_int_equal(snd_critical_make(trace, by_step, &critical, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return critical;
}

static struct snd_critical *find_path(const struct plan *p)
{
    return find_paths(p, 1, false);
}

static const struct snd_critical_row *find_row(const struct snd_critical *c, uint32_t rank,
                                               enum snd_part_kind kind, int64_t least)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->rows[i].rank == rank && c->rows[i].kind == kind && c->rows[i].ns >= least)
            return &c->rows[i];
    return NULL;
}

static int64_t us(uint64_t each)
{
    return (int64_t)each * 1000 * STEPS;
}

/* Rank 2 is the last: 50 + 310 + 420 + 10 = 790 us, and rank 1 comes at 780. */
static void parts_of_the_path(void **state)
{
    struct snd_critical *c = find_path(&plan);

    (void)state;
    assert_int_equal(c->span_ns, us(870) + 1000);
    assert_int_equal(find_row(c, 2, SND_PART_LOADING, 0)->ns, us(50));
    assert_int_equal(find_row(c, 2, SND_PART_LOADING, 0)->win_ns, us(10));
    assert_int_equal(find_row(c, 2, SND_PART_OPERATOR, us(400))->ns, us(420));
    assert_int_equal(find_row(c, 2, SND_PART_OPERATOR, us(400))->win_ns, us(10));
    assert_int_equal(find_row(c, 2, SND_PART_HOST, 0)->ns, us(10));
    assert_null(find_row(c, 1, SND_PART_OPERATOR, us(1)));
    int64_t sum = 0;
    for (uint32_t i = 0; i < c->count; i++)
        sum += c->rows[i].ns;
    assert_int_equal(sum, c->span_ns);
    snd_critical_free(c);
}

/* Rank 2 is last in one step by 10 us, rank 0 in the next by 700. */
static void steps_have_paths(void **state)
{
    struct plan plans[] = { plan, plan };

    (void)state;
    plans[1].compute[0] = 1210;
    struct snd_critical *c = find_paths(plans, 2, true);
    assert_int_equal(c->steps, STEPS);
    for (uint64_t step = 0; step < STEPS; step++) {
        uint32_t slow = step % 2 == 0 ? 2 : 0;
        int64_t  sum = 0, computed = 0, won_ns = 0, after = step + 1 == STEPS ? 1000 : 0;
        for (uint32_t i = 0; i < c->count; i++) {
            const struct snd_critical_row *row = &c->rows[i];
            if (row->step != step)
                continue;
            assert_int_equal(row->path_ns, (slow == 2 ? 870000 : 1560000) + after);
            sum += row->ns;
            if (row->rank == slow && row->kind == SND_PART_LOADING)
                won_ns = row->win_ns;
            if (row->rank == slow && row->kind == SND_PART_OPERATOR && row->ns > computed)
                computed = row->ns;
        }
        assert_int_equal(sum, (slow == 2 ? 870000 : 1560000) + after);
        assert_in_range(computed, slow == 2 ? 420000 : 1210000, slow == 2 ? 420000 : 1211000);
        assert_int_equal(won_ns, slow == 2 ? 10000 : 50000);
    }
    snd_critical_free(c);
}

static int64_t won(const struct snd_critical *c, enum snd_part_kind kind, int64_t ns)
{
    int64_t sum = 0;

    for (uint32_t i = 0; i < c->count; i++)
        sum += c->rows[i].kind == kind && (ns == 0 || c->rows[i].ns == ns) ? c->rows[i].win_ns : 0;
    return sum;
}

/* Each part of the path taken out of the job, one after the other: it is shorter by what was said. */
static void shortened_as_said(void **state)
{
    struct snd_critical *c = find_path(&plan);
    struct plan          without[] = { plan, plan, plan, plan, plan };
    const int64_t        said[] = {
               won(c, SND_PART_LOADING, us(50)),   won(c, SND_PART_OPERATOR, us(420)),
               won(c, SND_PART_HOST, us(10)),      won(c, SND_PART_COLLECTIVE, 0),
               won(c, SND_PART_OPERATOR, us(310)),
    };

    (void)state;
    without[0].loading[2] = 0;
    without[1].backward[2] = 0;
    without[2].host[2] = 0;
    without[3].transfer = 0;
    without[4].compute[2] = 0;
    for (size_t i = 0; i < 5; i++) {
        struct snd_critical *shorter = find_path(&without[i]);
        assert_true(said[i] > 0);
        assert_int_equal(c->span_ns - shorter->span_ns, said[i]);
        snd_critical_free(shorter);
    }
    snd_critical_free(c);
}

/* ----------------------------------------------------------------------- a GPU */

enum { LATENCY = 10 }; /* us from a launch's call to the begin of a kernel, at least */

static void call_api(struct synth *s, uint32_t thread, uint64_t from, uint64_t to, const char *name,
                     uint64_t number)
{
    synth_begin(s, thread, from * 1000, synth_string(s, name), 0);
    synth_attr(s, thread, SND_ATTR_API, number);
    synth_end(s, thread, to * 1000);
}

/* An operator launches a kernel, and again; then the thread waits for them. Microseconds. */
static struct snd_critical *run_gpu(uint64_t first, uint64_t second, uint64_t host)
{
    struct synth        *s = synth_new(scratch_path("gpu"), NULL);
    struct snd_critical *critical = NULL;
    uint32_t             main_thread = synth_thread(s, "main", 0), cupti = synth_thread(s, "c", 0);
    uint32_t queue = synth_queue(s, &(struct snd_queue_record){ 0x100, 1, 7, 0 }), works[2];
    uint64_t took[] = { first, second }, at = 10, idle = 0;

    for (uint32_t i = 0; i < 2; i++) {
        uint64_t begin = at;
        works[i] = synth_work(s, &(struct snd_work_record){
                                     .name = synth_string(s, i ? "second" : "first"),
                                     .kind = SND_WORK_KERNEL });
        synth_begin(s, main_thread, begin * 1000, synth_string(s, "aten::mm"), 0);
        synth_attr(s, main_thread, SND_ATTR_SCOPE, 1);
        at += host;
        call_api(s, main_thread, at, at + 5, "cudaLaunchKernel", (uint64_t)211 << 32 | (i + 1));
        uint64_t start = at + LATENCY > idle ? at + LATENCY : idle;
        at += 5;
        synth_end(s, main_thread, at * 1000);
        if (took[i] > 0)
            synth_device(s, cupti, start * 1000, works[i], queue, took[i] * 1000, i + 1, 0);
        idle = start + took[i];
    }
    uint64_t done = idle > at ? idle : at;
    call_api(s, main_thread, at, done + 3, "cudaStreamSynchronize", (uint64_t)131 << 32 | 9);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("gpu"));
    assert_int_equal(snd_critical_make(trace, false, &critical, NULL), SONDE_OK);
    sonde_trace_close(trace);
    return critical;
}

static const struct snd_critical_row *find_longest(const struct snd_critical *c,
                                                   enum snd_part_kind kind, int64_t us_at_most)
{
    for (uint32_t i = 0; i < c->count; i++)
        if (c->rows[i].kind == kind && c->rows[i].ns <= us_at_most * 1000)
            return &c->rows[i];
    return NULL;
}

/* The second kernel was launched while the first ran: without the first, it begins when it is launched, not before. */
static void kernels_and_launches(void **state)
{
    struct snd_critical *c = run_gpu(500, 300, 100), *no_first = run_gpu(0, 300, 100),
                        *no_second = run_gpu(500, 0, 100), *no_host = run_gpu(500, 300, 0);
    const struct snd_critical_row *first = find_longest(c, SND_PART_KERNEL, 500),
                                  *second = find_longest(c, SND_PART_KERNEL, 300),
                                  *host = find_longest(c, SND_PART_OPERATOR, 100);

    (void)state;
    assert_int_equal(c->span_ns, (100 + LATENCY + 500 + 300 + 3) * 1000);
    assert_int_equal(first->ns, 500000);
    assert_int_equal(second->ns, 300000);
    assert_int_equal(host->ns, 100000);
    assert_int_equal(c->span_ns - no_second->span_ns, second->win_ns);
    assert_int_equal(c->span_ns - no_host->span_ns, host->win_ns);
    /* How long a launch takes at least is not known: by that it may be more than is won. */
    int64_t won_by_first = c->span_ns - no_first->span_ns;
    assert_true(first->win_ns < first->ns && won_by_first <= first->win_ns &&
                first->win_ns <= won_by_first + LATENCY * 1000);
    snd_critical_free(c);
    snd_critical_free(no_first);
    snd_critical_free(no_second);
    snd_critical_free(no_host);
}

/* Attributes follow a begin: a person's range is the program's own code, and a collective need not have a collective's name. */
static void ranges_are_what_their_attributes_say(void **state)
{
    struct snd_critical *c = NULL;
    char                 command[300];

    (void)state;
    snprintf(command, sizeof command, "mkdir -p %s", scratch_path("job"));
    assert_int_equal(system(command), 0);
    struct rank r = make_rank(0);
    uint32_t    named = synth_string(r.s, "forward"), meets = synth_string(r.s, "meets");
    synth_begin(r.s, r.main, r.ns, named, 0);
    synth_attr(r.s, r.main, SND_ATTR_SCOPE, SONDE_SCOPE_USER + 1);
    r.ns += 30000;
    run(&r, r.main, r.mm, 1, 40);
    r.ns += 20000;
    synth_end(r.s, r.main, r.ns);
    synth_begin(r.s, r.main, r.ns, meets, 0);
    synth_attr(r.s, r.main, SND_ATTR_SCOPE, 1);
    say(&r, r.main, 0);
    r.ns += 7000;
    synth_end(r.s, r.main, r.ns);
    synth_close(r.s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("job/rank0.sonde"));
    assert_int_equal(snd_critical_make(trace, false, &c, NULL), SONDE_OK);
    sonde_trace_close(trace);
    assert_int_equal(c->count, 3);
    assert_int_equal(find_row(c, 0, SND_PART_HOST, 0)->ns, 50000);
    assert_int_equal(find_row(c, 0, SND_PART_OPERATOR, 0)->ns, 40000);
    assert_int_equal(find_row(c, 0, SND_PART_COLLECTIVE, 0)->ns, 7000);
    snd_critical_free(c);
}

/* What `ranks` counts as communication and loading is that on the path, too: of every backend, and FSDP2's own waits. */
static void names_mean_the_same_as_for_ranks(void **state)
{
    static const char *const names[] = { "c10d::all_gather_", "gloo:all_gather",
                                         "nccl:all_gather",   "ucc:all_gather",
                                         "mpi:all_gather",    "record_param_comms",
                                         "FSDP::all_gather" };
    struct snd_critical     *c = NULL;
    char                     command[300];

    (void)state;
    snprintf(command, sizeof command, "mkdir -p %s", scratch_path("job"));
    assert_int_equal(system(command), 0);
    struct rank r = make_rank(0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        run(&r, r.main, synth_string(r.s, names[i]), SONDE_SCOPE_USER + 1, 10 + i);
    run(&r, r.main, r.loading, SONDE_SCOPE_USER + 1, 40);
    synth_close(r.s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("job/rank0.sonde"));
    assert_int_equal(snd_critical_make(trace, false, &c, NULL), SONDE_OK);
    sonde_trace_close(trace);
    int64_t met_ns = 0;
    for (uint32_t i = 0; i < c->count; i++)
        met_ns += c->rows[i].kind == SND_PART_COLLECTIVE ? c->rows[i].ns : 0;
    assert_int_equal(met_ns, (10 + 11 + 12 + 13 + 14 + 15 + 16) * 1000);
    assert_int_equal(find_row(c, 0, SND_PART_LOADING, 0)->ns, 40000);
    snd_critical_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(parts_of_the_path),
                                        cmocka_unit_test(shortened_as_said),
                                        cmocka_unit_test(steps_have_paths),
                                        cmocka_unit_test(kernels_and_launches),
                                        cmocka_unit_test(ranges_are_what_their_attributes_say),
                                        cmocka_unit_test(names_mean_the_same_as_for_ranks) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
