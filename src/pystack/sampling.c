/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/sampling.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <time.h>

#include "base/map.h"
#include "pystack/codes.h"
#include "pystack/names.h"
#include "pystack/threadnames.h"
#include "pystack/native.h"
#include "pystack/task.h"

#define REFRESH_NS 50000000u     /* how often the list of threads is read, if no new one is seen */
#define WRITE_NS 100000000u      /* a run of equal samples is written at least so often */
#define WRITE_FIRST_NS 10000000u /* the same, of a new thread: it may be killed soon */
#define SHARE 200u               /* of a period is spent on threads that do not hold the lock */
#define DEBT_MOST 2              /* rounds without a look at them, after one that took long */
#define THREADS_FIRST 64u
#define OWN_ROUNDS 16u /* the sampler's own clock is read so often: that is a call to the kernel */
#define TICK_NS 20000000 /* another process's clocks may lag behind by a tick of the kernel's */
#define ASK_NS 4000000u  /* so often they are read, of a thread that is seen to run */

/* What a thread was doing, in a run of equal samples. */
struct run {
    uint32_t stack, state, samples;
    uint64_t covered_ns;
};

struct thread {
    /* What every round looks at, of every thread: in one cache line. */
    struct snd_py_thread python;
    uint64_t             free_ns; /* the last round in which it did not hold the lock */
    uint32_t             record;  /* the recorder's number, 0: not asked yet */
    bool                 looked;  /* at, in this round */
    bool                 held;    /* it holds the lock, in this round */

    struct snd_task    task;
    struct snd_py_hint hint;
    uint64_t           cpu_ns, asked_ns;  /* its clock, and when that was read */
    uint64_t           ran_ns;            /* by its clock, between the last two times */
    uint64_t           top_at, top_instr; /* its innermost frame, when it was last read */
    uint64_t           seen_ns;           /* up to when its time is accounted for */
    uint64_t           write_ns;          /* its longest run; doubled with each, up to WRITE_NS */
    uint32_t           off;               /* its state while it is ready but does not run */
    int64_t            debt_ns; /* what was accounted for as run, and has not been by its clock */
    bool               known;   /* stack and state are those it has now, if it has not run */
    bool               blocked; /* when last asked, it waited */
    bool               listed;
    bool               native; /* the stack has native frames */
    uint32_t           stack, state;
    struct run         run;
};

struct snd_sampling {
    struct snd_python     python;
    struct snd_recorder   recorder;
    struct snd_codes      codes;
    struct snd_names      names;
    struct snd_py_active  active; /* where the names of threads are */
    struct snd_native    *native; /* owned; NULL: native frames are not wanted */
    uint64_t              period_ns;
    struct thread        *threads; /* owned */
    uint32_t              thread_count, thread_room;
    struct snd_py_thread *list, *known; /* owned; as read last, and the time before */
    size_t                list_count, list_room, known_count;
    struct snd_py_interp  interps[SND_INTERPRETERS_MAX];
    size_t                interp_count;
    uint64_t              list_ns, list_sign;
    uint64_t        switches, switches_of; /* of the lock, when codes were compared, and whose */
    uint64_t        own_ns;                /* of the sampling thread's clock, when last read */
    uint32_t        own_rounds;            /* since then */
    uint64_t        round_ns;              /* the round before */
    uint32_t        tid_offset, epoch, turn;
    int64_t         credit_ns;  /* for looks at threads that do not hold the lock */
    uint64_t        last_clock; /* the recorder's, of the round before */
    uint64_t       *tally;      /* in the trace, or NULL */
    uint64_t        counts[SND_SAMPLER_WORDS];
    snd_running_fn *read_running;
    void           *user;
    bool            own_table; /* of descriptors */
    struct snd_py_stack stack, spare[2];
};

static uint64_t now_ns(clockid_t clock)
{
    struct timespec at;

    clock_gettime(clock, &at);
    return (uint64_t)at.tv_sec * 1000000000u + (uint64_t)at.tv_nsec;
}

/* ------------------------------------------------------------------- making */

enum sonde_status snd_sampling_new(const struct snd_python   *python,
                                   const struct snd_recorder *recorder, uint64_t period_ns,
                                   struct snd_sampling **out, struct sonde_error *err)
{
    struct snd_sampling *s = calloc(1, sizeof *s);

    *out = s;
    if (!s)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the sampler");
    s->python = *python;
    s->recorder = *recorder;
    s->period_ns = period_ns;
    s->counts[SND_SAMPLER_PERIOD_NS] = period_ns;
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

bool snd_sampling_with_native(struct snd_sampling *s)
{
    s->native = snd_native_new();
    return s->native != NULL;
}

void snd_sampling_counts(const struct snd_sampling *s, uint64_t words[SND_SAMPLER_WORDS])
{
    memcpy(words, s->counts, sizeof s->counts);
}

static void count(struct snd_sampling *s, enum snd_tally_word word, uint64_t n)
{
    s->counts[word] += n;
    if (s->tally)
        s->tally[word] += n;
}

/* ------------------------------------------------------------------ writing */

static void write_run(struct snd_sampling *s, struct thread *t, uint64_t at)
{
    const struct sonde_sample sample = { t->run.stack,   t->record,         t->run.state,
                                         t->run.samples, t->run.covered_ns, at };

    if (t->run.samples > 0 && t->record != 0)
        s->recorder.sample(&sample);
    t->run = (struct run){ 0 };
}

/*
 * Charges the time since `seen_ns` to the thread's stack and state: it extends the run of equal
 * samples, which is written when it ends or has become long.
 */
static void account(struct snd_sampling *s, struct thread *t, uint64_t now)
{
    struct run *run = &t->run;

    /* All events of a round have the timestamp of the previous round, which is when they end. */
    bool is_long = run->covered_ns >= t->write_ns;
    if (run->samples > 0 && (run->stack != t->stack || run->state != t->state || is_long))
        write_run(s, t, s->last_clock);
    if (is_long && t->write_ns < WRITE_NS)
        t->write_ns *= 2;
    run->stack = t->stack;
    run->state = t->state;
    run->samples++;
    run->covered_ns += now - t->seen_ns;
    t->seen_ns = now;
}

/*
 * Time since the previous sample that is charged to the previous state, not to `state`. A thread
 * holds the lock only since the round after the last one in which it did not, so that no time counts
 * for two threads; and it ran no longer than its CPU clock says. Less than a period is deferred, so
 * that a run of equal samples is not split for it.
 */
static uint64_t find_rest(const struct snd_sampling *s, struct thread *t, uint32_t state,
                          uint64_t now)
{
    uint64_t rest = 0, whole = now - t->seen_ns;
    int64_t  slack = (int64_t)s->period_ns;

    if ((state & SONDE_SAMPLED_GIL) && t->free_ns > t->seen_ns)
        rest = t->free_ns - t->seen_ns;
    if (!t->task.own && slack < TICK_NS)
        slack = TICK_NS;
    if (!(state & SONDE_SAMPLED_ON_CPU))
        return rest;
    t->debt_ns += (int64_t)(whole - rest);
    if (t->debt_ns > slack) {
        /* Charges what is owed; all of it if that is no more than one round. */
        int64_t left = (int64_t)(whole - rest),
                paid = left <= slack || left < t->debt_ns ? left : t->debt_ns;
        rest += (uint64_t)paid;
        t->debt_ns -= paid;
    }
    return rest;
}

/* The thread was found with this stack and state; before that it was as its fields say. */
static void account_both(struct snd_sampling *s, struct thread *t, uint32_t stack, uint32_t state,
                         uint64_t now)
{
    bool held = t->free_ns < t->seen_ns;

    if (t->stack == 0) { /* nothing is known of the time before but what it ran */
        t->stack = stack;
        t->state = 0;
        t->debt_ns = -(int64_t)(t->ran_ns < now - t->seen_ns ? t->ran_ns : now - t->seen_ns);
    }
    uint64_t rest = find_rest(s, t, state, now);
    if (rest > 0) {
        const uint32_t told = SONDE_SAMPLED_GIL | SONDE_SAMPLED_ON_CPU | SONDE_SAMPLED_GIL_WAIT;
        t->state = (t->state & ~told) | (held ? SONDE_SAMPLED_GIL : t->off);
        account(s, t, t->seen_ns + rest);
    }
    /*
     * A thread that lost the lock, is runnable and has not run is about to request the lock again.
     */
    if (state & SONDE_SAMPLED_GIL)
        t->off = SONDE_SAMPLED_GIL_WAIT;
    else if (!(state & SONDE_SAMPLED_ON_CPU))
        t->off = state & SONDE_SAMPLED_GIL_WAIT;
    t->stack = stack;
    if (t->seen_ns == now) { /* all of it: it is ready to run, and still as it was */
        const uint32_t native = SONDE_SAMPLED_NATIVE;
        t->state = (t->state & ~native) | (state & native); /* but for the stack */
        return;
    }
    t->state = state;
    account(s, t, now);
}

static void close_thread(struct snd_sampling *s, uint32_t at)
{
    write_run(s, &s->threads[at], s->last_clock);
    snd_task_close(&s->threads[at].task);
    s->threads[at] = s->threads[--s->thread_count];
}

static void release(struct snd_sampling *s)
{
    snd_codes_release(&s->codes);
    snd_names_release(&s->names);
    snd_native_free(s->native);
    free(s->threads);
    free(s->list);
    free(s->known);
    free(s);
}

void snd_sampling_free(struct snd_sampling *s)
{
    if (!s)
        return;
    while (s->thread_count > 0)
        close_thread(s, s->thread_count - 1);
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

/* ------------------------------------------------------------------ threads */

static struct thread *find_thread(struct snd_sampling *s, const struct snd_py_thread *found)
{
    for (uint32_t i = 0; i < s->thread_count; i++)
        if (s->threads[i].python.state == found->state &&
            s->threads[i].python.ident == found->ident && s->threads[i].python.tid == found->tid)
            return &s->threads[i];
    return NULL;
}

/* Until a new thread runs, its thread state has the name and id of the thread that created it. */
static bool has_begun(const struct snd_sampling *s, size_t n, size_t at)
{
    const struct snd_py_thread *t = &s->list[at];

    for (size_t i = at + 1; i < n; i++) /* newest first */
        if (s->list[i].ident == t->ident || (t->tid != 0 && s->list[i].tid == t->tid))
            return false;
    return t->ident != 0;
}

/*
 * After fork() from C code, a child's thread state keeps the parent's thread id unless Python is
 * notified. The child's only thread is its main thread, whose id the C library knows. 0: it has not
 * begun to run, or has ended.
 */
static uint32_t find_number(struct snd_sampling *s, const struct snd_py_thread *found)
{
    uint32_t told = found->tid ? snd_task_number(s->python.pid, found->tid) : 0;

    if (told != 0)
        return told;
    uint32_t number = snd_task_tid(s->python.pid, found->ident, &s->tid_offset);
    return found->tid == 0 || number == (uint32_t)s->python.pid ? number : 0;
}

static struct thread *add_thread(struct snd_sampling *s, const struct snd_py_thread *found,
                                 uint64_t now)
{
    uint32_t tid = find_number(s, found);

    if (tid == 0 || !snd_grow(&s->threads, &s->thread_room, s->thread_count, sizeof *s->threads))
        return NULL;
    struct thread *t = &s->threads[s->thread_count++];
    *t = (struct thread){
        .python = *found,
        .seen_ns = now - s->period_ns,
        .free_ns = s->round_ns,
        .write_ns = WRITE_FIRST_NS,
    };
    snd_task_open(&t->task, s->python.pid, tid);
    t->task.own_table |= s->own_table;
    return t;
}

/* A number that changes when a thread state is created or the newest one is freed. */
static uint64_t sign_threads(const struct snd_sampling *s)
{
    uint64_t sign = 0;

    for (size_t i = 0; i < s->interp_count; i++)
        sign = (sign * 1000003u + s->interps[i].head) * 1000003u + s->interps[i].made;
    return sign;
}

static size_t read_list(struct snd_sampling *s, bool *whole)
{
    struct snd_py_thread *known = s->list;

    s->list = s->known;
    s->known = known;
    s->known_count = s->list_count;
    s->list_count = 0;
    return snd_python_threads(&s->python, s->interps, s->interp_count, s->known, s->known_count,
                              s->list, s->list_room, whole);
}

static bool grow_lists(struct snd_sampling *s, size_t room)
{
    struct snd_py_thread **lists[] = { &s->list, &s->known };

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        struct snd_py_thread *list = realloc(*lists[i], room * sizeof *list);
        if (!list)
            return false;
        *lists[i] = list;
    }
    s->list_room = room;
    return true;
}

/* Reads the lists of the interpreters' threads; false when they are empty, or cannot be read. */
static bool list_threads(struct snd_sampling *s, uint64_t now)
{
    bool   whole;
    size_t n = read_list(s, &whole);

    if (n > s->list_room) {
        if (!grow_lists(s, n + THREADS_FIRST))
            return true;
        n = read_list(s, &whole);
        n = n < s->list_room ? n : s->list_room;
    }
    s->list_count = n;
    bool pending = !whole;
    for (uint32_t i = 0; i < s->thread_count; i++)
        s->threads[i].listed = false;
    for (size_t i = 0; i < n; i++) {
        struct thread *t = find_thread(s, &s->list[i]);
        if (!t && whole && has_begun(s, n, i))
            t = add_thread(s, &s->list[i], now);
        else
            pending |= !t;
        if (t)
            t->listed = true;
    }
    for (uint32_t i = 0; i < s->thread_count;)
        if (s->threads[i].listed || !whole)
            i++;
        else
            close_thread(s, i);
    s->list_ns = pending ? 0 : now; /* one that is about to begin is looked for in the next round */
    s->list_sign = sign_threads(s);
    return n > 0;
}

static bool refresh(struct snd_sampling *s, uint64_t now)
{
    s->interp_count = snd_python_interpreters(&s->python, s->interps, SND_INTERPRETERS_MAX);
    return snd_python_update(&s->python, s->interps, s->interp_count) && list_threads(s, now);
}

/* The recording changed: ids of the previous one are not valid. */
static bool follow_epoch(struct snd_sampling *s)
{
    uint32_t epoch = __atomic_load_n(&s->recorder.epoch->value, __ATOMIC_RELAXED) - 1;

    if (epoch == s->epoch)
        return epoch != 0;
    s->epoch = epoch;
    s->tally = NULL;
    snd_names_clear(&s->names);
    snd_native_clear(s->native);
    for (uint32_t i = 0; i < s->thread_count; i++) {
        s->threads[i].record = 0;
        s->threads[i].known = false;
        s->threads[i].run = (struct run){ 0 };
        s->threads[i].seen_ns = now_ns(CLOCK_MONOTONIC);
        s->threads[i].stack = 0;
    }
    if (epoch == 0)
        return false;
    s->tally = s->recorder.tally(SONDE_TALLY_SAMPLER, 0, 0, SND_SAMPLER_WORDS);
    if (s->tally)
        s->tally[SND_SAMPLER_PERIOD_NS] = s->period_ns;
    return true;
}

/* ------------------------------------------------------------------- stacks */

/*
 * Are the code objects of s->stack, as far as they have been compared, still the same? A thread without the
 * lock keeps its own alive, and has had them since another thread took the lock.
 */
static bool follow_lock(struct snd_sampling *s, uint64_t gil)
{
    bool same = s->stack.still && s->stack.switches == s->switches && gil == s->switches_of;

    s->switches = s->stack.switches;
    s->switches_of = s->switches != 0 ? gil : 0;
    return same;
}

/*
 * Names the frames of s->stack: its id; false when a frame is not what it should be. Its native
 * frames have been matched if `native`.
 */
static bool name_stack(struct snd_sampling *s, uint64_t gil, bool native, uint32_t *id)
{
    uint64_t *addresses =
        (uint64_t *)(void *)s->spare[0].frames; /* its content is of no more use */
    uint32_t stack = 0;

    for (size_t i = 0; i < s->stack.count; i++)
        addresses[i] = s->stack.frames[i].code;
    snd_codes_check(&s->codes, addresses, s->stack.count, follow_lock(s, gil));
    if (s->stack.cut)
        stack = snd_names_cut(&s->names, &s->recorder);
    for (size_t i = s->stack.count; i-- > 0;) {
        const struct snd_code *code = snd_codes_get(&s->codes, s->stack.frames[i].code);
        int64_t                offset;
        if (!code || !snd_code_offset(&s->codes, code, s->stack.frames[i].instr, &offset) ||
            (i + 1 == s->stack.count && !s->stack.cut && !snd_code_may_begin(&s->codes, code)))
            return false;
        stack = snd_names_stack(&s->names, &s->recorder, s->python.layout.lines, stack, code,
                                offset);
        if (native)
            stack = snd_native_stack(s->native, &s->recorder, &s->stack, i, stack);
    }
    *id = stack;
    return true;
}

static const struct snd_py_interp *interp_of(const struct snd_sampling *s, const struct thread *t)
{
    for (size_t i = 1; i < s->interp_count; i++)
        if (s->interps[i].address == t->python.interp)
            return &s->interps[i];
    return &s->interps[0];
}

/* The thread, which runs, reads its stack itself. */
static enum snd_py_read interrupt(struct snd_sampling *s, const struct thread *t)
{
    s->stack.still = false;
    s->stack.switches = 0;
    s->stack.native_count = 0;
    return s->read_running(s->user, t->task.tid, t->python.state, &s->stack);
}

static enum snd_py_read look_from_outside(struct snd_sampling *s, struct thread *t, bool running)
{
    return snd_python_stack(&s->python, t->python.state, running ? 0 : interp_of(s, t)->gil,
                            &t->hint, &s->stack, s->spare);
}

static enum snd_py_read read_stack(struct snd_sampling *s, struct thread *t, bool running,
                                   bool on_cpu)
{
    enum snd_py_read read = on_cpu && s->native ? interrupt(s, t) : SND_PY_UNREAD;
    bool             native = read == SND_PY_READ && snd_native_match(s->native, &s->stack);

    if (s->native && on_cpu && !native)
        count(s, SND_SAMPLER_UNMATCHED, 1);
    if (read != SND_PY_READ)
        read = look_from_outside(s, t, running);
    /*
     * Only what cannot be read from outside is worth an interruption. A thread that changes its frames has
     * the lock, if not when the round began.
     */
    for (int tries = 0; tries < 3 && read == SND_PY_TORN && s->read_running; tries++) {
        if (running || snd_python_has_lock(&s->python, interp_of(s, t), t->python.state))
            read = interrupt(s, t);
        if (read != SND_PY_READ)
            read = look_from_outside(s, t, running);
    }
    for (int tries = 0; tries < 3 && read != SND_PY_READ; tries++)
        read = look_from_outside(s, t, running);
    if (read == SND_PY_READ && !name_stack(s, interp_of(s, t)->gil, native, &t->stack))
        read = SND_PY_TORN;
    t->native = read == SND_PY_READ && native;
    return read;
}

/* ------------------------------------------------------------------- states */

static uint32_t tell_state(struct snd_sampling *s, struct thread *t, bool holds)
{
    uint64_t futex;

    t->blocked = !snd_task_is_running(&t->task, &futex);
    if (!t->blocked)
        return SONDE_SAMPLED_ON_CPU | (holds ? SONDE_SAMPLED_GIL : 0u);
    if (holds)
        return SONDE_SAMPLED_GIL;
    return futex != 0 && snd_python_is_gil(&s->python, interp_of(s, t), futex)
               ? SONDE_SAMPLED_GIL_WAIT
               : 0u;
}

/* Reads the thread's CPU clock: has it run since that was last read? False: the thread has ended. */
static bool ask_clock(struct thread *t, uint64_t now, bool *moved)
{
    uint64_t cpu_ns;

    if (!snd_task_cpu_ns(&t->task, &cpu_ns))
        return false;
    *moved = cpu_ns != t->cpu_ns;
    t->ran_ns = cpu_ns - t->cpu_ns;
    t->debt_ns -= (int64_t)t->ran_ns;
    if (t->debt_ns < -(int64_t)WRITE_NS)
        t->debt_ns = -(int64_t)WRITE_NS;
    t->cpu_ns = cpu_ns;
    t->asked_ns = now;
    return true;
}

/*
 * Another process's clocks are read through files, and move with the kernel's tick: in between, that its
 * innermost frame is at another instruction says that a thread with the lock has run.
 */
static bool need_not_ask(const struct thread *t, bool holds, uint64_t now)
{
    const uint32_t running = SONDE_SAMPLED_GIL | SONDE_SAMPLED_ON_CPU;

    return !t->task.own && holds && t->stack != 0 && (t->state & running) == running &&
           now - t->asked_ns < ASK_NS;
}

/* The stack that was read last is this thread's. True: it has gone on since the one before. */
static bool follow_top(const struct snd_sampling *s, struct thread *t)
{
    struct snd_py_frame        none = { 0 };
    const struct snd_py_frame *top = s->stack.count > 0 ? &s->stack.frames[0] : &none;
    bool                       went_on = top->address != t->top_at || top->instr != t->top_instr;

    t->top_at = top->address;
    t->top_instr = top->instr;
    return went_on;
}

/* False: the thread has ended. */
static bool look_at(struct snd_sampling *s, struct thread *t, bool holds, uint64_t now)
{
    bool assumed = need_not_ask(t, holds, now), moved = true;

    if (!assumed && !ask_clock(t, now, &moved))
        return false;
    bool     ran = moved || !t->known;
    uint32_t before = t->stack, state = t->state & ~(uint32_t)SONDE_SAMPLED_NATIVE;
    if (holds && moved)
        state = SONDE_SAMPLED_GIL | SONDE_SAMPLED_ON_CPU;
    else if (ran || holds || !t->blocked)
        state = tell_state(s, t, holds);
    if (ran || (holds && (state & SONDE_SAMPLED_ON_CPU))) {
        bool             on_cpu = state & SONDE_SAMPLED_ON_CPU, running = holds && on_cpu;
        enum snd_py_read read = read_stack(s, t, running, on_cpu);
        t->known = read == SND_PY_READ && !running;
        if (read != SND_PY_READ) {
            t->stack = before;
            count(s, read == SND_PY_TORN ? SND_SAMPLER_TORN : SND_SAMPLER_UNREAD, 1);
            return true;
        }
        if (!follow_top(s, t) && assumed) {
            if (!ask_clock(t, now, &moved))
                return false;
            state = moved ? state : tell_state(s, t, holds);
        }
    }
    uint32_t stack = t->stack;
    t->stack = before;
    account_both(s, t, stack, state | (t->native ? SONDE_SAMPLED_NATIVE : 0u), now);
    return true;
}

/*
 * A thread that has not ended counts as it was found last, until now, as far as its clock agrees; the
 * time after now belongs to the next sample, whose event is later than those that are written here.
 */
uint64_t snd_sampling_flush(struct snd_sampling *s)
{
    uint64_t now = now_ns(CLOCK_MONOTONIC), clock = s->recorder.clock();
    bool     moved;

    for (uint32_t i = 0; i < s->thread_count; i++) {
        struct thread *t = &s->threads[i];
        if (t->run.samples == 0) /* not found in anything since the last time */
            continue;
        if (now > t->seen_ns && ask_clock(t, now, &moved))
            account_both(s, t, t->stack, t->state, now);
        t->seen_ns = now;
        write_run(s, t, clock);
        t->stack = 0;
        t->known = false;
    }
    s->last_clock = clock + 1;
    return clock;
}

static void introduce(struct snd_sampling *s, struct thread *t)
{
    char  name[17];
    char *told = NULL; /* by Python: a process that samples itself records their names itself */

    if (s->python.pid != getpid())
        told = snd_python_thread_name(&s->python, &t->python, &s->active);
    snd_task_name(&t->task, name);
    t->record = s->recorder.thread(t->task.tid, told ? told : name[0] ? name : NULL);
    free(told);
}

/*
 * The threads that hold a lock, which are those that run Python, or did in the round before: in
 * every round. True when one of them has ended.
 */
static bool look_at_holders(struct snd_sampling *s, uint64_t now)
{
    bool ended = false;

    for (uint32_t i = 0; i < s->thread_count;) {
        struct thread *t = &s->threads[i];
        if (t->looked) {
            i++;
            continue;
        }
        bool did = t->held; /* what it does without the lock must not wait for its turn */
        t->held = t->python.state == interp_of(s, t)->holder;
        if (!t->held)
            t->free_ns = now;
        if (t->held && t->record == 0)
            introduce(s, t);
        t->looked = t->held || (did && t->record);
        if (!t->looked || look_at(s, t, t->held, now)) {
            i++;
        } else {
            close_thread(s, i);
            ended = true;
        }
    }
    return ended;
}

/*
 * The others in turn, as many as there is time for: each round gives some, and what one look took too much is
 * missing in the next. Where there are many, each has fewer samples; a sample stands for the time since the
 * one before it, whenever that was. True when one of them has ended.
 */
static bool look_at_others(struct snd_sampling *s, uint64_t now)
{
    uint64_t before = now_ns(CLOCK_MONOTONIC);
    int64_t  share = (int64_t)(s->period_ns / SHARE);
    bool     ended = false;

    s->credit_ns = s->credit_ns + share < share ? s->credit_ns + share : share;
    if (s->credit_ns < -DEBT_MOST * share) /* other programs ran meanwhile */
        s->credit_ns = -DEBT_MOST * share;
    for (uint32_t left = s->thread_count; left > 0 && s->thread_count > 0 && s->credit_ns > 0;
         left--) {
        if (s->turn >= s->thread_count)
            s->turn = 0;
        struct thread *t = &s->threads[s->turn];
        if (t->looked) {
            s->turn++;
            continue;
        }
        t->looked = true;
        bool is_new = t->record == 0;
        if (is_new)
            introduce(s, t);
        if (look_at(s, t, false, now)) {
            s->turn++;
        } else {
            close_thread(s, s->turn);
            ended = true;
        }
        if (is_new) /* costs more, once: one in a round, and it takes no other's turn */
            break;
        uint64_t after = now_ns(CLOCK_MONOTONIC);
        s->credit_ns -= (int64_t)(after - before);
        before = after;
    }
    return ended;
}

static bool look_at_all(struct snd_sampling *s, uint64_t now)
{
    bool ended = look_at_holders(s, now);

    return look_at_others(s, now) || ended;
}

/* What the rounds since the last call cost, and the wakings for them. */
void snd_sampling_count_own(struct snd_sampling *s)
{
    uint64_t own = now_ns(CLOCK_THREAD_CPUTIME_ID);

    if (s->own_ns != 0 && own > s->own_ns)
        count(s, SND_SAMPLER_CPU_NS, own - s->own_ns);
    s->own_ns = own;
    s->own_rounds = 0;
}

bool snd_sampling_round(struct snd_sampling *s, uint64_t missed)
{
    if (!follow_epoch(s))
        return true;
    if (s->own_ns == 0 || ++s->own_rounds == OWN_ROUNDS)
        snd_sampling_count_own(s);
    uint64_t now = now_ns(CLOCK_MONOTONIC); /* no thread was seen later */
    bool read = s->interp_count > 0 && snd_python_update(&s->python, s->interps, s->interp_count);
    if ((!read || sign_threads(s) != s->list_sign || now - s->list_ns >= REFRESH_NS) &&
        !refresh(s, now))
        return false;
    count(s, SND_SAMPLER_ROUNDS, 1);
    count(s, SND_SAMPLER_MISSED, missed);
    for (uint32_t i = 0; i < s->thread_count; i++)
        s->threads[i].looked = false;
    /*
     * A thread that began at the address of an ended one may have been mistaken for it: look at it,
     * too.
     */
    if (look_at_all(s, now) && list_threads(s, now))
        look_at_all(s, now);
    s->last_clock = s->recorder.clock();
    s->round_ns = now;
    return true;
}
