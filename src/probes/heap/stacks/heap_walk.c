/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/heap/stacks/heap_walk.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "base/hints.h"
#include "probes/heap/stacks/frame_rules.h"
#include "probes/heap/locks.h"
#include "probes/heap/heap_pages.h"
#include "probes/heap/stacks/heap_interpreter.h"
#include "probes/heap/stacks/heap_python.h"
#include "probes/heap/stacks/stack_tallies.h"
#include "pystack/unwind/unwind.h"

#define PAGE ((uint64_t)4096)
#define FRAMES_KEPT (SND_HEAP_FRAMES + 16) /* some are hidden */
#define MIX 0x9e3779b97f4a7c15u

/* A frame of an earlier walk. */
struct frame {
    uint64_t pc, sp, fp; /* the registers there */
    uint64_t return_slot,
        fp_slot;        /* where its caller's were read; fp_slot 0: still in the register */
    uint64_t low, high; /* stand for this frame and all further out */
    uint16_t flags;     /* enum snd_heap_frame_flags, and those below */
    uint8_t  count;     /* of this frame and all further out, those that are shown */
};
#define OWN_FLAGS 255u         /* of the frame itself: snd_heap_frame_flags */
#define FP_MATTERS 256u        /* this frame or one further out uses this frame's fp */
#define CALLED_BY_US 512u      /* this frame or one further out is the recorder's */
#define CALLED_BY_PYTHON 1024u /* this frame or one further out is the Python interpreter's */

/* A walk, to be compared with the next one. */
struct snd_heap_walked {
    uint64_t     generation;
    uint32_t     count;
    struct frame frames[1 + FRAMES_KEPT]; /* outermost first, from 1; 0: an end, above all */
};

/* Of a thread: its latest walks. Those of a loop that allocates at several depths in turn are all there. */
#define WALKS 4u
struct snd_heap_walks {
    struct snd_heap_walks *next;          /* in the list of unused ones */
    uint64_t               begins[WALKS]; /* where each began: stack pointer ^ return address */
    uint32_t               oldest;
    struct snd_heap_walked walks[WALKS];
    struct frame           fresh[FRAMES_KEPT]; /* during a walk: new frames, innermost first */
    struct snd_py_stack    python;             /* Python frames of the latest */
};

static uint64_t             generation; /* of loaded libraries */
static struct snd_heap_lock lock;
/* Under the lock: too large for a program's stack. */
static struct {
    struct snd_unwind   unwind;
    struct snd_py_stack stack;
    ucontext_t          context;
} * slow;

static struct snd_heap_lock   list_lock;
static struct snd_heap_walks *unused;      /* of threads that have ended */
static struct snd_heap_lock   shared_lock; /* around the use of: */
static struct snd_heap_walks *shared;      /* for threads that have none, or are ending */
static pthread_key_t          end_key;
static bool                   has_end_key;

/* ---------------------------------------------------------- one for each thread */

static void forget(struct snd_heap_walks *mine)
{
    for (uint32_t i = 0; i < WALKS; i++) {
        mine->walks[i].count = 0;
        mine->walks[i].frames[0].sp = UINT64_MAX;
    }
}

static void end_thread(void *walked)
{
    struct snd_heap_walks *mine = walked;

    snd_heap_self.walks = NULL;
    snd_heap_self.is_ending = true;
    snd_heap_lock(&list_lock);
    mine->next = unused;
    unused = mine;
    snd_heap_unlock(&list_lock);
}

/* NULL: this thread uses the shared one. Storage of threads that have ended is used again. */
static SND_NOINLINE struct snd_heap_walks *begin_thread(void)
{
    struct snd_heap_thread *self = &snd_heap_self;

    if (!has_end_key || self->is_ending)
        return NULL;
    snd_heap_lock(&list_lock);
    struct snd_heap_walks *mine = unused;
    if (mine)
        unused = mine->next;
    snd_heap_unlock(&list_lock);
    if (!mine)
        mine = snd_heap_pages(sizeof *mine);
    if (!mine)
        return NULL;
    forget(mine);
    if (pthread_setspecific(end_key, mine) == 0)
        return self->walks = mine;
    end_thread(mine);
    return NULL;
}

void snd_heap_walk_init(void)
{
    bool has_tables = snd_unwind_init();

    slow = snd_heap_pages(sizeof *slow);
    shared = snd_heap_pages(sizeof *shared);
    snd_heap_rules_init(has_tables && slow);
}

void snd_heap_walk_threads(void)
{
    has_end_key = pthread_key_create(&end_key, end_thread) == 0;
}

void snd_heap_walk_forget(void)
{
    snd_heap_rules_forget();
    __atomic_fetch_add(&generation, 1, __ATOMIC_RELAXED);
}

/* ----------------------------------------------------------- reading the stack */

/* Probes by a system call that reads its second argument before it rejects its first. */
static bool is_readable(uint64_t page)
{
    int  before = errno;
    long result = syscall(SYS_rt_sigprocmask, ~0L, page, 0L, 8L);
    bool readable = result == 0 || errno != EFAULT;

    errno = before;
    return readable;
}

/* Callers lie above: `high` moves up page by page. */
static SND_NOINLINE bool extend(struct snd_heap_thread *self, uint64_t sp, uint64_t address)
{
    if (address % 8 != 0 || address < sp)
        return false;
    if (sp < self->low || sp >= self->high) { /* another stack, or further down in this one */
        bool is_near = self->low > sp && self->low - sp < PAGE * 16;
        self->low = sp & ~(PAGE - 1);
        if (!is_near)
            self->high = self->low + PAGE;
    }
    if (address < self->low || address - self->low > PAGE << 20)
        return false;
    while (address >= self->high) {
        if (!is_readable(self->high))
            return false;
        self->high += PAGE;
    }
    return true;
}

/* `sp`: of the innermost frame, on whose stack this is. */
static inline bool load(struct snd_heap_thread *self, uint64_t sp, uint64_t address,
                        uint64_t *value)
{
    bool known = sp >= self->low && address >= sp && address < self->high && address % 8 == 0;

    if (SND_UNLIKELY(!known) && !extend(self, sp, address))
        return false;
    *value = *(const uint64_t *)(uintptr_t)address; /* NOLINT(performance-no-int-to-ptr) */
    return true;
}

static inline uint64_t read_slot(uint64_t slot)
{
    return *(const uint64_t *)(uintptr_t)slot; /* NOLINT(performance-no-int-to-ptr) */
}

/* The CFA of a function that aligned its stack; 0: it cannot be read. */
static SND_NOINLINE uint64_t read_cfa(uint64_t start, uint64_t at, uint64_t *fp)
{
    uint64_t cfa;

    return load(&snd_heap_self, start, at, &cfa) && load(&snd_heap_self, start, *fp, fp) ? cfa : 0;
}

/* From a frame to its caller; false at the end. `from` gets where the caller's registers were read. */
static inline bool go_out(const struct snd_heap_row *row, uint64_t start, struct frame *from,
                          struct snd_heap_caller *at)
{
    const struct snd_heap_thread *self = &snd_heap_self;
    uint64_t cfa = (row->rule == SND_RULE_SP ? at->sp : at->fp) + (uint64_t)row->cfa;

    if (SND_UNLIKELY(row->rule == SND_RULE_AT_FP))
        cfa = read_cfa(start, cfa, &at->fp);
    /* Callers have higher addresses, and a frame's slots lie above its stack pointer. */
    uint64_t size = cfa - at->sp, lowest = (uint64_t)0 - (uint64_t)row->lowest, ignored;
    if (cfa < at->sp || size < lowest || cfa % 8 != 0)
        return false;
    if (SND_UNLIKELY(start < self->low || cfa > self->high) &&
        !load(&snd_heap_self, start, cfa - 8, &ignored))
        return false;
    from->return_slot = cfa + (uint64_t)row->return_at;
    at->pc = snd_cfi_strip(read_slot(from->return_slot));
    if (row->fp_at != 0) {
        from->fp_slot = cfa + (uint64_t)row->fp_at;
        at->fp = read_slot(from->fp_slot);
    }
    at->sp = cfa;
    return at->pc != 0;
}

/* The full unwinder, from here on; frames of this library are skipped. */
static SND_NOINLINE void walk_slowly(const struct snd_heap_caller *caller,
                                     struct snd_heap_stack        *stack)
{
    stack->is_ours = stack->has_python = false;
    snd_heap_lock(&lock);
    getcontext(&slow->context);
    snd_unwind(&slow->unwind, &slow->context, &slow->stack);
    size_t from = 0, count = slow->stack.native_count;
    while (from < count && slow->stack.native[from].pc != caller->pc)
        from++;
    stack->count = 0;
    for (; from < count; from++) {
        stack->sps[stack->count] = slow->stack.native[from].stack;
        stack->pcs[stack->count++] = slow->stack.native[from].pc;
        stack->has_python |= snd_heap_is_python(slow->stack.native[from].pc);
        stack->is_ours |= snd_heap_is_ours(slow->stack.native[from].pc);
    }
    stack->cut = slow->stack.native_cut;
    if (stack->count == 0) {
        stack->sps[stack->count] = caller->sp;
        stack->pcs[stack->count++] = caller->pc;
    }
    snd_heap_unlock(&lock);
}

/* ---------------------------------------------------------------- the walk */

static void hash_all(struct snd_heap_stack *stack, uint64_t now)
{
    stack->low = now + 1;
    stack->high = MIX ^ stack->low;
    for (uint32_t i = stack->count; i-- > 0;)
        snd_heap_hash(stack->pcs[i], &stack->low, &stack->high);
}

static inline bool is_same(const struct frame *frame, const struct snd_heap_caller *at)
{
    return frame->pc == at->pc && frame->sp == at->sp &&
           (!(frame->flags & FP_MATTERS) || frame->fp == at->fp);
}

/*
 * Compares the callers of `frame` with those of the earlier walk: every slot from which one was read
 * must have its value still. Returns NULL if all are the same, else the first frame that may have
 * another caller. Frame pointers are brought up to date on the way: those that do not matter may
 * have changed.
 */
static inline struct frame *compare(struct frame *frame, const struct frame *outermost, uint64_t fp)
{
    for (frame->fp = fp; frame > outermost; frame--) {
        struct frame *outer = frame - 1;
        if (frame->fp_slot)
            fp = read_slot(frame->fp_slot);
        if (snd_cfi_strip(read_slot(frame->return_slot)) != outer->pc ||
            SND_UNLIKELY(frame->flags & SND_FRAME_READ) ||
            ((outer->flags & FP_MATTERS) && outer->fp != fp))
            return frame;
        outer->fp = fp;
    }
    return frame->flags & SND_FRAME_LAST ? NULL : frame;
}

/* Puts the new frames behind those that are kept. */
static inline void keep(struct snd_heap_walked *w, struct frame *innermost,
                        const struct frame *fresh, uint32_t count)
{
    struct frame *outer = innermost;
    uint64_t      low = outer->low, high = outer->high;

    if (outer == w->frames) {
        low = w->generation + 1;
        high = MIX ^ low;
    }
    while (count-- > 0) {
        struct frame *frame = outer + 1;
        *frame = fresh[count];
        unsigned inherited = outer->flags &
                             (CALLED_BY_US | CALLED_BY_PYTHON | (frame->fp_slot ? 0 : FP_MATTERS));
        unsigned own = (frame->flags & SND_FRAME_USES_FP ? FP_MATTERS : 0) |
                       (frame->flags & SND_FRAME_OURS ? CALLED_BY_US : 0) |
                       (frame->flags & SND_FRAME_PYTHON ? CALLED_BY_PYTHON : 0);
        frame->flags = (uint16_t)(frame->flags | inherited | own);
        frame->count = outer->count;
        if (SND_LIKELY(!(frame->flags & SND_FRAME_HIDDEN))) {
            frame->count++;
            snd_heap_hash(frame->pc, &low, &high);
        }
        frame->low = low;
        frame->high = high;
        outer = frame;
    }
    w->count = (uint32_t)(outer - w->frames);
}

/* Too many frames: the innermost are kept, new ones and those of the earlier walk. */
static SND_NOINLINE void cut(struct snd_heap_walked *w, struct frame *kept,
                             const struct frame *fresh, uint32_t count,
                             struct snd_heap_stack *stack)
{
    const struct frame *frame = fresh;

    stack->walked = NULL;
    stack->cut = true;
    stack->is_ours = stack->has_python = false;
    stack->count = 0;
    w->count = (uint32_t)(kept - w->frames);
    while (stack->count < SND_HEAP_FRAMES) {
        if (frame == fresh + count) {
            frame = kept;
            fresh = NULL;
        }
        if (!fresh && frame == w->frames)
            break;
        stack->is_ours |= (frame->flags & SND_FRAME_OURS) != 0;
        stack->has_python |= (frame->flags & SND_FRAME_PYTHON) != 0;
        if (!(frame->flags & SND_FRAME_HIDDEN)) {
            stack->sps[stack->count] = frame->sp;
            stack->pcs[stack->count++] = frame->pc;
        }
        frame = fresh ? frame + 1 : frame - 1;
    }
    hash_all(stack, w->generation);
}

/* The innermost frame of the earlier walk, if its slots can be read. */
static inline struct frame *usable(struct snd_heap_walked *w, uint64_t now, uint64_t sp)
{
    const struct snd_heap_thread *self = &snd_heap_self;
    bool known = sp >= self->low && sp < self->high && w->frames[1].sp <= self->high;

    if (SND_UNLIKELY(w->generation != now || !known))
        w->count = 0;
    return &w->frames[w->count];
}

static SND_NOINLINE void walk_odd(const struct snd_heap_caller *caller, struct snd_heap_walked *w,
                                  struct snd_heap_stack *stack)
{
    walk_slowly(caller, stack);
    stack->walked = NULL;
    w->count = 0;
    hash_all(stack, w->generation);
}

static inline void stand_for(struct snd_heap_stack *stack, const struct snd_heap_walked *w)
{
    const struct frame *innermost = &w->frames[w->count];

    stack->walked = w;
    stack->cut = false;
    stack->is_ours = (innermost->flags & CALLED_BY_US) != 0;
    stack->has_python = (innermost->flags & CALLED_BY_PYTHON) != 0;
    stack->low = innermost->low;
    stack->high = innermost->high;
}

/*
 * Walks until it meets a frame of the earlier walk whose callers are unchanged; those are not walked
 * again. The result is that of a whole walk: each value that one would read was compared.
 */
static void walk(struct snd_heap_walked *w, struct frame *fresh,
                 const struct snd_heap_caller *caller, struct snd_heap_stack *stack)
{
    struct snd_heap_caller at = *caller;
    uint64_t               now = __atomic_load_n(&generation, __ATOMIC_RELAXED);
    struct frame          *known = usable(w, now, caller->sp), *kept = w->frames;
    uint32_t               count = 0;

    w->generation = now;
    for (;; count++) {
        while (known->sp < at.sp)
            known--;
        if (is_same(known, &at)) {
            struct frame *other = compare(known, &w->frames[1], at.fp);
            if (SND_LIKELY(!other)) {
                kept = known;
                break;
            }
            for (; known > other && count < FRAMES_KEPT; known--) {
                fresh[count] = *known;
                fresh[count++].flags &= OWN_FLAGS;
            }
            known = other - 1;
            at = (struct snd_heap_caller){ other->pc, other->sp, other->fp };
        }
        if (SND_UNLIKELY(count >= FRAMES_KEPT)) {
            cut(w, kept, fresh, count, stack);
            return;
        }
        const struct snd_heap_row *row = snd_heap_row_find(at.pc);
        if (SND_UNLIKELY(!row))
            row = snd_heap_row_add(at.pc);
        if (SND_UNLIKELY(row->rule == SND_RULE_ODD)) {
            walk_odd(caller, w, stack);
            return;
        }
        fresh[count].pc = at.pc;
        fresh[count].sp = at.sp;
        fresh[count].fp = at.fp;
        fresh[count].fp_slot = 0;
        fresh[count].flags = row->flags;
        if (row->rule == SND_RULE_END || !go_out(row, caller->sp, &fresh[count], &at)) {
            count++;
            break;
        }
    }
    if (SND_UNLIKELY(kept - w->frames + count > FRAMES_KEPT)) {
        cut(w, kept, fresh, count, stack);
        return;
    }
    keep(w, kept, fresh, count);
    if (SND_UNLIKELY(w->frames[w->count].count > SND_HEAP_FRAMES)) {
        cut(w, &w->frames[w->count], fresh, 0, stack);
        return;
    }
    stand_for(stack, w);
}

void snd_heap_stack_fill(struct snd_heap_stack *stack)
{
    const struct snd_heap_walked *w = stack->walked;

    if (!w)
        return;
    stack->walked = NULL;
    stack->count = 0;
    for (uint32_t i = w->count; i > 0; i--)
        if (!(w->frames[i].flags & SND_FRAME_HIDDEN)) {
            stack->sps[stack->count] = w->frames[i].sp;
            stack->pcs[stack->count++] = w->frames[i].pc;
        }
}

static SND_NOINLINE void walk_shared(const struct snd_heap_caller *caller,
                                     struct snd_heap_stack        *stack)
{
    stack->walked = NULL;
    if (!shared) {
        stack->pcs[0] = caller->pc;
        stack->sps[0] = caller->sp;
        stack->count = 1;
        stack->cut = stack->is_ours = false;
        hash_all(stack, __atomic_load_n(&generation, __ATOMIC_RELAXED));
        return;
    }
    snd_heap_lock(&shared_lock);
    forget(shared); /* what another thread left */
    walk(&shared->walks[0], shared->fresh, caller, stack);
    snd_heap_stack_fill(stack);
    snd_heap_unlock(&shared_lock);
}

/* The walk that began at the same place, else the oldest. */
static inline struct snd_heap_walked *choose(struct snd_heap_walks        *mine,
                                             const struct snd_heap_caller *caller)
{
    uint64_t begin = caller->sp ^ caller->pc;

    for (uint32_t i = 0; i < WALKS; i++)
        if (mine->begins[i] == begin)
            return &mine->walks[i];
    uint32_t chosen = mine->oldest++ % WALKS;
    mine->begins[chosen] = begin;
    return &mine->walks[chosen];
}

void snd_heap_walk(const struct snd_heap_caller *caller, struct snd_heap_stack *stack)
{
    struct snd_heap_walks *mine = snd_heap_self.walks;

    if (SND_UNLIKELY(!mine))
        mine = begin_thread();
    stack->python = NULL;
    if (SND_UNLIKELY(!mine)) {
        walk_shared(caller, stack);
        return;
    }
    walk(choose(mine, caller), mine->fresh, caller, stack);
    if (SND_UNLIKELY(stack->has_python) && !stack->is_ours)
        snd_heap_python_read(&mine->python, stack);
}

void snd_heap_walk_lock(void)
{
    snd_heap_lock(&list_lock);
    snd_heap_lock(&shared_lock);
    snd_heap_rules_lock();
    snd_heap_lock(&lock);
}

void snd_heap_walk_unlock(void)
{
    snd_heap_unlock(&lock);
    snd_heap_rules_unlock();
    snd_heap_unlock(&shared_lock);
    snd_heap_unlock(&list_lock);
}
