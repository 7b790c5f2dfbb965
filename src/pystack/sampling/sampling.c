/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/sampling/sampling_inside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SHARE 200u     /* of a period is spent on threads that do not hold the lock */
#define DEBT_MOST 2    /* rounds without a look at them, after one that took long */
#define RESTIVE_MOST 2 /* of those that run without it or want it: asked in each round */
#define OWN_ROUNDS 16u /* the sampler's own clock is read so often: that is a call to the kernel */
#define STOP_NS 100000000u /* a round later than this has its cause looked up */

/* ------------------------------------------------------------------- making */

enum sonde_status snd_sampling_new(const struct snd_python   *python,
                                   const struct snd_recorder *recorder, uint64_t period_ns,
                                   struct snd_sampling **out, struct sonde_error *err)
{
    struct snd_sampling *s = calloc(1, sizeof *s);

    snd_memory_know_own();
    *out = s;
    if (!s)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the sampler");
    s->self =
        (struct snd_task){ .sched_fd = -1, .waiting = SND_OWNFD_NONE, .stat = SND_OWNFD_NONE };
    s->python = *python;
    s->recorder = *recorder;
    s->period_ns = period_ns;
    s->counts.words[SND_SAMPLER_PERIOD_NS] = period_ns;
    snd_codes_init(&s->codes, python->pid, &s->python.layout, python->code_type);
    return SONDE_OK;
}

void snd_sampling_on_running(struct snd_sampling *s, snd_running_fn *function, void *user)
{
    s->read_running = function;
    s->user = user;
}

void snd_sampling_own_table(struct snd_sampling *s)
{
    s->own_table = true;
    for (uint32_t i = 0; i < s->thread_count; i++)
        s->threads[i].task.own_table = true;
}

void snd_sampling_own_codes(struct snd_sampling *s, const uint64_t *codes, size_t count)
{
    s->own_codes = codes;
    s->own_code_count = count;
    memset(s->own_filter, 0, sizeof s->own_filter);
    for (size_t i = 0; i < count; i++) {
        uint64_t bit = snd_sampling_own_bit_(codes[i]);
        s->own_filter[bit / 64] |= (uint64_t)1 << bit % 64;
    }
}

bool snd_sampling_with_native(struct snd_sampling *s)
{
    s->native = snd_native_new();
    return s->native != NULL;
}

struct snd_sampling_counts snd_sampling_counts(const struct snd_sampling *s)
{
    return s->counts;
}

/*
 * Another thread may call this, or a forked child: what `self` has open is in the table of the sampling
 * thread, and ends with it. That number here is a file of the program's.
 */
static void release(struct snd_sampling *s)
{
    snd_codes_release(&s->codes);
    snd_names_release(&s->names);
    snd_native_free(s->native);
    free(s->threads);
    free(s->states);
    free(s->list);
    free(s->known);
    free(s);
}

void snd_sampling_free(struct snd_sampling *s)
{
    if (!s)
        return;
    while (s->thread_count > 0)
        snd_sampling_close_thread_(s, s->thread_count - 1);
    release(s);
}

void snd_sampling_drop(struct snd_sampling *s)
{
    if (!s)
        return;
    for (uint32_t i = 0; i < s->thread_count; i++)
        snd_task_close(&s->threads[i].task);
    release(s);
}

/* ------------------------------------------------------------------- rounds */

/*
 * A thread that has not ended counts as it was found last, until now, as far as its clock agrees; the
 * time after now belongs to the next sample, whose event is later than those that are written here.
 */
uint64_t snd_sampling_flush(struct snd_sampling *s)
{
    bool moved;

    snd_sampling_set_now_(s);
    for (uint32_t i = 0; i < s->thread_count; i++) {
        struct snd_sampling_thread *t = &s->threads[i];
        if (t->run.samples == 0) /* not found in anything since the last time */
            continue;
        if (!t->held)
            t->free_ns = s->round_ns;
        if (s->now_ns > t->seen_ns && snd_sampling_ask_clock_(s, t, &moved))
            snd_sampling_account_(s, t, &t->stack, t->state);
        snd_sampling_write_run_(s, t);
        snd_sampling_start_anew_(s, t);
    }
    s->first_ns = s->now_ns;
    s->first_clock = s->now_clock + 1;
    return s->now_clock;
}

/* The recording changed: ids of the previous one are not valid. */
static bool follow_epoch(struct snd_sampling *s)
{
    uint32_t epoch = __atomic_load_n(&s->recorder.epoch->value, __ATOMIC_RELAXED) - 1;

    if (epoch == s->epoch)
        return epoch != 0;
    s->epoch = epoch;
    s->tally = s->gaps = NULL;
    snd_names_clear(&s->names);
    snd_native_clear(s->native);
    snd_sampling_set_now_(s);
    s->first_ns = s->now_ns;
    s->first_clock = s->now_clock;
    for (uint32_t i = 0; i < s->thread_count; i++) {
        s->threads[i].record = 0;
        s->threads[i].named_count = 0;
        s->threads[i].held = false;
        s->threads[i].run = (struct snd_sampling_run){ 0 };
        snd_sampling_start_anew_(s, &s->threads[i]);
    }
    if (epoch == 0)
        return false;
    s->tally = s->recorder.tally(SONDE_TALLY_SAMPLER, 0, 0, SND_SAMPLER_WORDS);
    if (s->tally)
        s->tally[SND_SAMPLER_PERIOD_NS] = s->period_ns;
    return true;
}

static void introduce(struct snd_sampling *s, struct snd_sampling_thread *t)
{
    char  name[17];
    char *told = NULL; /* by Python: a process that samples itself records their names itself */

    if (s->python.pid != getpid())
        told = snd_python_thread_name(&s->python, &t->python, &s->active);
    snd_task_name(&t->task, name);
    t->record = s->recorder.thread(t->task.tid, told ? told : name[0] ? name : NULL);
    free(told);
}

/* A look at a thread that holds a lock, or did in the round before. False: it has ended. */
static bool look_at_holder(struct snd_sampling *s, uint64_t state, bool holds, uint64_t now)
{
    struct snd_sampling_thread *t = state != 0 ? snd_sampling_find_(s, state) : NULL;

    if (!t || t->looked_ns == now)
        return true;
    if (holds && t->record == 0)
        introduce(s, t);
    if (t->record == 0 || snd_sampling_look_(s, t, holds, now))
        return true;
    snd_sampling_close_thread_(s, (uint32_t)(t - s->threads));
    return false;
}

/*
 * The threads that hold a lock, which are those that run Python, in every round; and those that did in
 * the round before: what one does without the lock must not wait for its turn. True when one of them has
 * ended.
 */
static bool look_at_holders(struct snd_sampling *s, uint64_t now)
{
    uint64_t before[SND_INTERPRETERS_MAX];
    size_t   count = s->holder_count;
    bool     ended = false;

    memcpy(before, s->holders, count * sizeof *before);
    s->holder_count = s->interp_count;
    for (size_t i = 0; i < s->interp_count; i++) {
        s->holders[i] = s->interps[i].holder;
        ended |= !look_at_holder(s, s->holders[i], true, now);
    }
    for (size_t i = 0; i < count; i++)
        ended |= !look_at_holder(s, before[i], false, now);
    return ended;
}

/* When it was looked at last it ran without the lock, or waited for it: it may have gone on since. */
static bool is_restive(const struct snd_sampling_thread *t, uint64_t now)
{
    const uint32_t lockless = SONDE_SAMPLED_ON_CPU | SONDE_SAMPLED_GIL_WAIT;

    return (t->state & lockless) && !(t->state & SONDE_SAMPLED_GIL) && t->stack.id != 0 &&
           t->looked_ns != now;
}

/* One that ran and still does need not be looked at; one that waited is not, if its clock has not moved. */
static bool has_changed(struct snd_sampling_thread *t)
{
    uint64_t futex;

    return !(t->state & SONDE_SAMPLED_ON_CPU) || !snd_task_is_running(&t->task, &futex);
}

/*
 * Threads of another process that are about to get the lock or to wait, some in each round: their turn may be many rounds
 * away, and which part of them a thread ran could then only be told by its clock, which is late by up to a tick, and when
 * not at all. To ask whether it has gone on is a fifth of a look. True when one of them has ended.
 */
static bool look_at_restive(struct snd_sampling *s, uint64_t now)
{
    bool     ended = false;
    uint32_t asked = 0;

    for (uint32_t left = s->thread_count; left > 0 && asked < RESTIVE_MOST; left--, s->restive++) {
        if (s->restive >= s->thread_count)
            s->restive = 0;
        struct snd_sampling_thread *t = &s->threads[s->restive];
        if (!is_restive(t, now))
            continue;
        asked++;
        if (!has_changed(t) || snd_sampling_look_(s, t, false, now))
            continue;
        snd_sampling_close_thread_(s, s->restive);
        ended = true;
    }
    return ended;
}

/* The next of the others, from s->turn on, that has not been looked at; false if there is none. */
static bool find_turn(struct snd_sampling *s, uint64_t now)
{
    for (uint32_t left = s->thread_count; left > 0; left--, s->turn++) {
        if (s->turn >= s->thread_count)
            s->turn = 0;
        if (s->threads[s->turn].looked_ns != now)
            return true;
    }
    return false;
}

/* A look at the one whose turn it is. False: it has ended. */
static bool look_at_other(struct snd_sampling *s, uint64_t now)
{
    struct snd_sampling_thread *t = &s->threads[s->turn];

    if (t->record == 0)
        introduce(s, t);
    if (!snd_sampling_look_(s, t, false, now)) {
        snd_sampling_close_thread_(s, s->turn);
        return false;
    }
    s->turn++;
    return true;
}

/*
 * The others in turn, as many as there is time for: each round gives some, and what one look took too much is
 * missing in the next ones, up to a limit. Where there are many, each has fewer samples; a sample stands for
 * the time since the one before it, whenever that was. What a look took is the sampler's own processor time: the
 * wall's has that of other programs in it. True when one of them has ended.
 */
static bool look_at_others(struct snd_sampling *s, uint64_t now)
{
    int64_t share = (int64_t)(s->period_ns / SHARE);
    bool    ended = false;

    s->credit_ns = s->credit_ns + share < share ? s->credit_ns + share : share;
    /* With native frames a look takes many shares: its thread would have one stack for a second. */
    if (s->credit_ns < -DEBT_MOST * share)
        s->credit_ns = -DEBT_MOST * share;
    if (s->credit_ns <= 0 || !find_turn(s, now))
        return false;
    uint64_t before = snd_clock_ns(CLOCK_THREAD_CPUTIME_ID);
    do {
        bool is_new = s->threads[s->turn].record == 0;
        ended |= !look_at_other(s, now);
        if (is_new) /* costs more, once: one in a round, and it takes no other's turn */
            break;
        uint64_t after = snd_clock_ns(CLOCK_THREAD_CPUTIME_ID);
        s->credit_ns -= (int64_t)(after - before);
        before = after;
    } while (s->credit_ns > 0 && find_turn(s, now));
    return ended;
}

/* Where there is no lock, every thread may run Python: each in every round. True when one of them has ended. */
static bool look_at_lockless(struct snd_sampling *s, uint64_t now)
{
    bool ended = false;

    for (uint32_t i = s->thread_count; i-- > 0;) {
        struct snd_sampling_thread *t = &s->threads[i];
        if (t->looked_ns == now || !snd_python_is_lockless(&s->python, snd_sampling_interp_(s, t)))
            continue;
        if (t->record == 0)
            introduce(s, t);
        if (snd_sampling_look_(s, t, false, now))
            continue;
        snd_sampling_close_thread_(s, i);
        ended = true;
    }
    return ended;
}

static bool look_at_all(struct snd_sampling *s, uint64_t now)
{
    bool ended = look_at_holders(s, now);

    if (s->python.layout.free_threaded)
        ended |= look_at_lockless(s, now);
    else if (s->python.pid != getpid())
        ended |= look_at_restive(s, now);
    return look_at_others(s, now) || ended;
}

/*
 * Processor time of the process that is sampled; 0: not known. Samples cannot tell it: a thread that is ready to run and
 * waits for a processor looks as if it ran.
 */
static uint64_t ask_process(const struct snd_sampling *s)
{
    clockid_t clock = CLOCK_PROCESS_CPUTIME_ID;

    if (s->python.pid != getpid() && clock_getcpuclockid(s->python.pid, &clock) != 0)
        return 0;
    return snd_clock_ns(clock);
}

/* What the rounds since the last call cost, and the wakings for them; and what the process took meanwhile. */
void snd_sampling_count_own(struct snd_sampling *s)
{
    uint64_t own = snd_clock_ns(CLOCK_THREAD_CPUTIME_ID), process = ask_process(s);

    if (s->own_ns != 0 && own > s->own_ns) {
        uint64_t cost = own - s->own_ns;
        uint64_t sampler = s->python.pid == getpid() ? cost : 0;
        snd_sampling_count_(s, SND_SAMPLER_CPU_NS, cost);
        if (process > s->process_ns + sampler)
            snd_sampling_count_(s, SND_SAMPLER_PROCESS_NS, process - s->process_ns - sampler);
    }
    s->own_ns = own;
    s->process_ns = process;
    s->own_rounds = 0;
}

/* How long the sampling thread has been ready to run and did not. False: not known. */
static bool ask_delay(struct snd_sampling *s, uint64_t *ns)
{
    if (!s->own_table ||
        s->python.pid != getpid()) /* a descriptor that the program could see; another process */
        return false;
    if (s->self.tid == 0)
        snd_task_open(&s->self, getpid(), (uint32_t)syscall(SYS_gettid));
    return snd_task_delay_ns(&s->self, ns);
}

/*
 * A process that is stopped (SIGSTOP, a debugger) has its sampler stopped, too: a round comes late though its thread was
 * not kept from running. What a busy machine took is known, so that the rest is the stop.
 */
static void find_stop(struct snd_sampling *s)
{
    uint64_t late = s->round_ns != 0 && s->now_ns > s->round_ns + s->period_ns
                        ? s->now_ns - s->round_ns - s->period_ns
                        : 0;
    bool     is_due = s->own_rounds == 0;
    uint64_t before = s->delay_ns, delay;

    if ((late < STOP_NS && !is_due) || !ask_delay(s, &delay))
        return;
    s->delay_ns = delay;
    if (late >= STOP_NS && before != 0 && late > 2 * (delay - before))
        s->stopped_ns += late - (delay - before);
}

/*
 * Brings the lists of interpreters and threads up to date. They may change while they are read: two looks in a
 * row at a healthy interpreter do not fail.
 */
static enum snd_round find_threads(struct snd_sampling *s, uint64_t now)
{
    bool read = s->interp_count > 0 && snd_python_update(&s->python, s->interps, s->interp_count);

    if (read && snd_sampling_sign_(s) == s->list_sign && now < s->list_due_ns)
        return SND_ROUND_MADE;
    enum snd_round found = snd_sampling_refresh_(s, now);
    if (found == SND_ROUND_UNREAD)
        found = snd_sampling_refresh_(s, now);
    return found == SND_ROUND_UNREAD && snd_python_is_gone(&s->python) ? SND_ROUND_NO_PYTHON
                                                                       : found;
}

enum snd_round snd_sampling_round(struct snd_sampling *s, uint64_t missed)
{
    if (!follow_epoch(s))
        return SND_ROUND_MADE;
    if (s->own_ns == 0 || ++s->own_rounds == OWN_ROUNDS)
        snd_sampling_count_own(s);
    snd_sampling_set_now_(s); /* no thread was seen later */
    find_stop(s);
    uint64_t       now = s->now_ns;
    enum snd_round found = find_threads(s, now);
    if (found == SND_ROUND_UNREAD || (found == SND_ROUND_MADE && s->partial))
        snd_sampling_count_gap_(s, SND_SAMPLER_GAPS_UNLISTED);
    if (found != SND_ROUND_MADE)
        return found;
    snd_sampling_count_(s, SND_SAMPLER_ROUNDS, 1);
    snd_sampling_count_(s, SND_SAMPLER_MISSED, missed);
    /*
     * A thread that began at the address of an ended one may have been mistaken for it: look at it,
     * too.
     */
    if (look_at_all(s, now) && snd_sampling_list_(s, now) == SND_ROUND_MADE)
        look_at_all(s, now);
    s->round_ns = now;
    return SND_ROUND_MADE;
}
