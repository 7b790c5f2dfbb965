/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/sampling/sampling_inside.h"

#include <stddef.h>
#include <string.h>

#define LANE_LOOKS 3 /* at a thread that records: until it does nothing meanwhile */
#define VAIN_LOOKS 2 /* stacks in a row that needed an interruption: the next has one at once */
#define TRY_AGAIN 8  /* but one of so many: the thread may be in longer functions by now */

/*
 * Are the code objects of s->stack, as far as they have been compared, still the same? A thread without the
 * lock keeps its own alive, and has had them since another thread took the lock.
 */
static bool follow_lock(struct snd_sampling *s, uint64_t gil)
{
    bool same = s->stack.still && s->stack.switches == s->switches && gil == s->switches_of;

    s->switches = s->stack.switches;
    s->switches_of = s->switches != 0 ? gil : 0;
    s->lock_stayed = same;
    return same;
}

/* Compares the code objects of s->stack with what is known of them; `riders` have been read along with it. */
static void check_codes(struct snd_sampling *s, uint64_t gil, size_t riders)
{
    uint64_t *addresses =
        (uint64_t *)(void *)s->spare[0].frames; /* its content is of no more use */
    size_t count = 0;

    if (!follow_lock(s, gil))
        snd_codes_round(&s->codes);
    snd_codes_compare(&s->codes, riders);
    for (size_t i = 0; i < s->stack.count; i++) /* of a function that calls itself one is enough */
        if (count == 0 || addresses[count - 1] != s->stack.frames[i].code)
            addresses[count++] = s->stack.frames[i].code;
    snd_codes_check(&s->codes, addresses, count);
}

/* This code is of the stack that is being named: it is expected in the thread's next one. */
static void expect_code(struct snd_sampling_thread *t, uint64_t address)
{
    uint32_t i = 0;

    while (i < t->code_count && t->codes[i] != address)
        i++;
    if (i == t->code_count && i < SND_CODES_EXPECTED)
        t->codes[t->code_count++] = address;
}

/*
 * The id of the stack from the outermost frame to this one, the `depth`th, as it was in the thread's last stack; 0: it is
 * another. A stack most often differs from the one before in its innermost frames alone.
 */
static uint32_t find_named(const struct snd_sampling_thread *t, uint32_t depth,
                           const struct snd_py_frame *frame, const struct snd_code *code)
{
    const struct snd_sampling_named *n = &t->named[depth];

    return depth < t->named_count && n->code == frame->code && n->instr == frame->instr &&
                   n->serial == code->serial
               ? n->id
               : 0;
}

static void keep_named(struct snd_sampling_thread *t, uint32_t depth,
                       const struct snd_py_frame *frame, const struct snd_code *code, uint32_t id)
{
    if (depth >= SND_FRAMES_NAMED)
        return;
    t->named[depth] = (struct snd_sampling_named){ frame->code, frame->instr, code->serial, id };
    t->named_count = depth + 1;
}

/* Goes on from `stack` into this frame of s->stack. False: it is not what it should be. */
static bool name_frame(struct snd_sampling *s, const struct snd_code *code, size_t i, bool native,
                       uint32_t *stack)
{
    int64_t offset;

    if (!snd_code_offset(s->python.pid, &s->python.layout, code, s->stack.frames[i].instr,
                         &offset) ||
        (i + 1 == s->stack.count && !s->stack.cut && !snd_code_may_begin(&s->python.layout, code)))
        return false;
    *stack = snd_names_stack(&s->names, &s->recorder, s->python.layout.lines, *stack, code, offset);
    if (native)
        *stack = snd_native_stack(s->native, &s->recorder, &s->stack, i, *stack);
    return true;
}

/*
 * Names the frames of s->stack: its id; TORN when a frame is not what it should be. Its native
 * frames have been matched if `native`.
 */
static enum snd_py_read name_stack(struct snd_sampling *s, struct snd_sampling_thread *t,
                                   bool native, uint32_t *id)
{
    const struct snd_code *code = NULL;
    uint32_t               stack = 0, depth = 0, known;
    bool                   as_before = !s->native && !s->stack.cut;

    t->code_count = 0;
    if (s->stack.cut)
        stack = snd_names_cut(&s->names, &s->recorder);
    for (size_t i = s->stack.count; i-- > 0; depth++) {
        const struct snd_py_frame *frame = &s->stack.frames[i];
        if (!code || code->address != frame->code) {
            code = snd_codes_get(&s->codes, frame->code);
            if (!code)
                return s->codes.no_memory ? SND_PY_NO_MEMORY : SND_PY_TORN;
            expect_code(t, code->address);
        }
        known = as_before ? find_named(t, depth, frame, code) : 0;
        as_before = known != 0;
        if (as_before)
            stack = known;
        else if (!name_frame(s, code, i, native, &stack))
            return SND_PY_TORN;
        else if (!s->native && !s->stack.cut)
            keep_named(t, depth, frame, code, stack);
    }
    *id = stack;
    return SND_PY_READ;
}

const struct snd_py_interp *snd_sampling_interp_(const struct snd_sampling        *s,
                                                 const struct snd_sampling_thread *t)
{
    for (size_t i = 1; i < s->interp_count; i++)
        if (s->interps[i].address == t->python.interp)
            return &s->interps[i];
    return &s->interps[0];
}

/* ------------------------------------------------------------------- lanes */

/* The part of a lane that changes with every event of its thread. */
#define LANE_READ (offsetof(struct sonde_lane, depth))

static uint64_t lane_address(const struct snd_sampling *s, const struct snd_sampling_thread *t)
{
    if (s->recorder.lane_offset == 0 || t->python.ident == 0)
        return 0;
    return t->python.ident + (uint64_t)s->recorder.lane_offset;
}

/* A lane of another recording has nothing of this one. */
static struct snd_sampling_mark make_mark(const struct snd_sampling *s,
                                          const struct sonde_lane   *lane)
{
    if (lane->epoch != s->epoch)
        return (struct snd_sampling_mark){ 0 };
    return (struct snd_sampling_mark){ (uint64_t)(uintptr_t)lane->cur,
                                       (uint64_t)(uintptr_t)lane->leaf, lane->epoch, lane->chunks };
}

/* True: the thread has recorded nothing since its mark was last read. */
static bool follow_mark(struct snd_sampling *s, struct snd_sampling_thread *t)
{
    struct snd_sampling_mark mark = make_mark(s, &s->lane);
    bool                     same = memcmp(&mark, &t->mark, sizeof mark) == 0;

    t->mark = mark;
    return same;
}

/* Since its stack was last read. */
static bool is_recording(const struct snd_sampling_thread *t)
{
    return memcmp(&t->mark, &t->stack.mark, sizeof t->mark) != 0;
}

/*
 * Of a thread that is known to record: its mark is read by itself first, so that the first look at its
 * stack is not in vain.
 */
static void find_mark(struct snd_sampling *s, struct snd_sampling_thread *t)
{
    uint64_t address = t->moves ? lane_address(s, t) : 0;

    if (address != 0 && snd_memory_read(s->python.pid, address, &s->lane, LANE_READ))
        follow_mark(s, t);
}

/* ------------------------------------------------------------------- looks */

/*
 * The code objects of the thread's last stack, to be read along with this one, after its lane. Where the
 * lock stays, those that have been compared need not be once more.
 */
static struct snd_py_rider make_rider(struct snd_sampling *s, const struct snd_sampling_thread *t,
                                      bool running)
{
    size_t   count = snd_codes_ask(&s->codes, t->codes, t->code_count, running || !s->lock_stayed,
                                   SND_RIDER_MAX);
    uint64_t address = lane_address(s, t);

    return (struct snd_py_rider){ .pieces = s->codes.pieces,
                                  .count = count,
                                  .last = { address, &s->lane, address != 0 ? LANE_READ : 0 } };
}

/*
 * The thread, which runs, reads its stack itself, or is halted meanwhile: what it records stands still, too.
 * *riders: how many pieces of s->codes have been read along with the frames.
 */
static enum snd_py_read interrupt(struct snd_sampling *s, struct snd_sampling_thread *t,
                                  size_t *riders, uint64_t *at)
{
    struct snd_py_rider rider = make_rider(s, t, true);

    s->stack.still = false;
    s->stack.switches = 0;
    s->stack.native_count = 0;
    enum snd_py_read read = s->read_running(s->user, &t->task, t->python.state, &t->hint, &rider,
                                            &s->stack);
    s->counts.interrupted++;
    *riders = rider.whole;
    *at = rider.at;
    if (rider.has_last)
        follow_mark(s, t);
    return read;
}

static enum snd_py_read look_from_outside(struct snd_sampling *s, struct snd_sampling_thread *t,
                                          bool running, size_t *riders, bool *stood)
{
    uint64_t            gil = running ? 0 : snd_sampling_interp_(s, t)->gil;
    struct snd_py_rider rider = make_rider(s, t, running);
    enum snd_py_read    read = snd_python_stack(&s->python, t->python.state, gil, &t->hint, &rider,
                                                &s->stack, s->spare);

    *riders = rider.whole;
    *stood = !rider.has_last || (follow_mark(s, t) && !s->stack.pages.late);
    return read;
}

/*
 * A stack belongs to the ranges that were open at a moment if the thread recorded nothing from before that
 * moment until its stack had been read.
 */
static enum snd_py_read look(struct snd_sampling *s, struct snd_sampling_thread *t, bool running,
                             size_t *riders, uint64_t *at)
{
    enum snd_py_read read = SND_PY_READ;
    bool             stood = false;

    for (int looks = 0; looks < LANE_LOOKS && read == SND_PY_READ && !stood; looks++) {
        *at = s->recorder.clock();
        read = look_from_outside(s, t, running, riders, &stood);
    }
    return read == SND_PY_READ && !stood ? SND_PY_TORN : read;
}

/* A thread that changes its frames all the time is not looked at from outside first: that would be in vain. */
static bool is_restless(const struct snd_sampling_thread *t)
{
    return t->vain_looks >= VAIN_LOOKS && t->vain_looks % TRY_AGAIN != 0;
}

enum snd_py_read snd_sampling_read_stack_(struct snd_sampling *s, struct snd_sampling_thread *t,
                                          bool running, bool on_cpu,
                                          struct snd_sampling_stack *found)
{
    size_t           riders = 0;
    uint64_t         interrupted = s->counts.interrupted;
    bool             at_once = s->native ? on_cpu : running && s->read_running && is_restless(t);
    enum snd_py_read read = at_once ? interrupt(s, t, &riders, &found->read) : SND_PY_UNREAD;
    bool     native = s->native && read == SND_PY_READ && snd_native_match(s->native, &s->stack);
    uint64_t gil = snd_sampling_interp_(s, t)->gil;

    if (s->native && on_cpu && !native)
        snd_sampling_count_(s, SND_SAMPLER_UNMATCHED, 1);
    if (read != SND_PY_READ) {
        find_mark(s, t);
        read = look(s, t, running, &riders, &found->read);
    }
    /*
     * Only what cannot be read from outside is worth an interruption. A thread that changes its frames has
     * the lock, if not when the round began; one that records need not.
     */
    for (int tries = 0; tries < 3 && read == SND_PY_TORN && s->read_running; tries++) {
        if (running || is_recording(t) ||
            snd_python_has_lock(&s->python, snd_sampling_interp_(s, t), t->python.state))
            read = interrupt(s, t, &riders, &found->read);
        if (read != SND_PY_READ)
            read = look(s, t, running, &riders, &found->read);
    }
    for (int tries = 0; tries < 3 && read != SND_PY_READ; tries++)
        read = look(s, t, running, &riders, &found->read);
    if (read == SND_PY_READ) {
        check_codes(s, gil, riders);
        read = name_stack(s, t, native, &found->id);
    }
    t->vain_looks = s->counts.interrupted != interrupted ? t->vain_looks + 1 : 0;
    t->moves = is_recording(t);
    found->mark = t->mark;
    t->native = read == SND_PY_READ && native;
    return read;
}
