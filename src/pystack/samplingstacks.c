/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/samplinginside.h"

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

    if (!follow_lock(s, gil))
        snd_codes_round(&s->codes);
    snd_codes_compare(&s->codes, riders);
    for (size_t i = 0; i < s->stack.count; i++)
        addresses[i] = s->stack.frames[i].code;
    snd_codes_check(&s->codes, addresses, s->stack.count);
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
 * Names the frames of s->stack: its id; TORN when a frame is not what it should be. Its native
 * frames have been matched if `native`.
 */
static enum snd_py_read name_stack(struct snd_sampling *s, struct snd_sampling_thread *t,
                                   bool native, uint32_t *id)
{
    uint32_t stack = 0;

    t->code_count = 0;
    if (s->stack.cut)
        stack = snd_names_cut(&s->names, &s->recorder);
    for (size_t i = s->stack.count; i-- > 0;) {
        const struct snd_code *code = snd_codes_get(&s->codes, s->stack.frames[i].code);
        int64_t                offset;
        if (!code)
            return s->codes.no_memory ? SND_PY_NO_MEMORY : SND_PY_TORN;
        if (!snd_code_offset(&s->codes, code, s->stack.frames[i].instr, &offset) ||
            (i + 1 == s->stack.count && !s->stack.cut && !snd_code_may_begin(&s->codes, code)))
            return SND_PY_TORN;
        expect_code(t, code->address);
        stack = snd_names_stack(&s->names, &s->recorder, s->python.layout.lines, stack, code,
                                offset);
        if (native)
            stack = snd_native_stack(s->native, &s->recorder, &s->stack, i, stack);
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

/*
 * The code objects of the thread's last stack, to be read along with this one. Where the lock stays,
 * those that have been compared need not be once more.
 */
static struct snd_py_rider expect_codes(struct snd_sampling *s, const struct snd_sampling_thread *t,
                                        bool running)
{
    size_t count = snd_codes_ask(&s->codes, t->codes, t->code_count, running || !s->lock_stayed,
                                 SND_RIDER_MAX);

    return (struct snd_py_rider){ .pieces = s->codes.pieces, .count = count };
}

/*
 * The thread, which runs, reads its stack itself, or is halted meanwhile. *riders: how many pieces of
 * s->codes have been read along with the frames.
 */
static enum snd_py_read interrupt(struct snd_sampling *s, struct snd_sampling_thread *t,
                                  size_t *riders)
{
    struct snd_py_rider rider = expect_codes(s, t, true);

    s->stack.still = false;
    s->stack.switches = 0;
    s->stack.native_count = 0;
    enum snd_py_read read = s->read_running(s->user, t->task.tid, t->python.state, &t->hint, &rider,
                                            &s->stack);
    *riders = rider.whole;
    return read;
}

static enum snd_py_read look_from_outside(struct snd_sampling *s, struct snd_sampling_thread *t,
                                          bool running, size_t *riders)
{
    uint64_t            gil = running ? 0 : snd_sampling_interp_(s, t)->gil;
    struct snd_py_rider rider = expect_codes(s, t, running);
    enum snd_py_read    read = snd_python_stack(&s->python, t->python.state, gil, &t->hint, &rider,
                                                &s->stack, s->spare);

    *riders = rider.whole;
    return read;
}

enum snd_py_read snd_sampling_read_stack_(struct snd_sampling *s, struct snd_sampling_thread *t,
                                          bool running, bool on_cpu)
{
    size_t           riders = 0;
    enum snd_py_read read = on_cpu && s->native ? interrupt(s, t, &riders) : SND_PY_UNREAD;
    bool             native = read == SND_PY_READ && snd_native_match(s->native, &s->stack);
    uint64_t         gil = snd_sampling_interp_(s, t)->gil;

    if (s->native && on_cpu && !native)
        snd_sampling_count_(s, SND_SAMPLER_UNMATCHED, 1);
    if (read != SND_PY_READ)
        read = look_from_outside(s, t, running, &riders);
    /*
     * Only what cannot be read from outside is worth an interruption. A thread that changes its frames has
     * the lock, if not when the round began.
     */
    for (int tries = 0; tries < 3 && read == SND_PY_TORN && s->read_running; tries++) {
        if (running || snd_python_has_lock(&s->python, snd_sampling_interp_(s, t), t->python.state))
            read = interrupt(s, t, &riders);
        if (read != SND_PY_READ)
            read = look_from_outside(s, t, running, &riders);
    }
    for (int tries = 0; tries < 3 && read != SND_PY_READ; tries++)
        read = look_from_outside(s, t, running, &riders);
    if (read == SND_PY_READ) {
        check_codes(s, gil, riders);
        read = name_stack(s, t, native, &t->stack);
    }
    t->native = read == SND_PY_READ && native;
    return read;
}
