/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/interpreter/frames.h"

#include <string.h>

#define LOOKS 2     /* that must agree */
#define LOOKS_FAR 4 /* the same, of frames in several pages */
#define SHOTS 4     /* until what the hint says is right */
#define ROOM 512    /* bytes above the frames that are read with them */

/* ------------------------------------------------------------------ walking */

/* The address of the pointer to the innermost frame; false if it cannot be read. */
static bool find_link(const struct snd_python *python, uint64_t state, uint64_t *link)
{
    *link = state + python->layout.thread_frame;
    if (!python->layout.has_cframe)
        return true;
    if (!snd_memory_word(python->pid, *link, link) || *link == 0)
        return false;
    *link += python->layout.cframe_frame;
    return true;
}

/*
 * Marks the frame stored last, or the one before it when an entry frame of C was reached, as called
 * from C code. In 3.11 each run of the evaluation loop has a block on the C stack (`*cframe`).
 */
static void mark_entry(const struct snd_python *python, const char *bytes, uint64_t frame,
                       bool is_c, uint64_t *cframe, struct snd_py_stack *stack)
{
    const struct snd_py_layout *l = &python->layout;

    if (stack->count == 0)
        return;
    uint64_t *entry = &stack->frames[stack->count - 1].entry;
    if (l->has_entries) {
        if (is_c && *entry == 0)
            *entry = frame;
    } else if (!l->frame_entry) {
        *entry = SND_PY_ENTRY;
    } else if (bytes[l->frame_entry]) {
        *entry = *cframe;
        if (!snd_memory_word(python->pid, *cframe + l->cframe_previous, cframe))
            *cframe = 0;
    }
}

/* Walks from `frame` to its callers. A page is read when the first frame in it is reached. */
static enum snd_py_read walk(const struct snd_python *python, uint64_t link, uint64_t frame,
                             struct snd_py_stack *stack)
{
    const struct snd_py_layout *l = &python->layout;
    uint64_t                    cframe = link - l->cframe_frame, top = frame;

    stack->count = 0;
    stack->cut = stack->far = false;
    stack->ends = true;
    for (unsigned steps = 0; frame != 0; steps++) {
        const char *bytes = snd_pages_at(&stack->pages, python->pid, frame, l->frame_size);
        if (steps >= 2 * SND_PYTHON_FRAMES_MAX || stack->count == SND_PYTHON_FRAMES_MAX) {
            stack->cut = true;
            break;
        }
        if (!bytes)
            return stack->count == 0 ? SND_PY_UNREAD : SND_PY_TORN;
        stack->far |= (frame ^ top) >= SND_PAGE;
        bool is_c = l->frame_owner && bytes[l->frame_owner] >= SND_PY_OWNED_BY_C;
        if (l->has_entries)
            stack->ends = is_c;
        else if (l->frame_owner) /* a generator that has yielded has no caller */
            stack->ends = bytes[l->frame_owner] != SND_PY_OWNED_BY_GENERATOR;
        if (!is_c)
            stack->frames[stack->count++] = (struct snd_py_frame){
                .address = frame,
                .code = snd_u64(bytes + l->frame_code) & ~(uint64_t)l->ref_tags,
                .instr = l->code_first_instr ? snd_u64(bytes + l->frame_instr)
                                             : snd_u32(bytes + l->frame_instr),
            };
        if (stack->whole)
            mark_entry(python, bytes, frame, is_c, &cframe, stack);
        frame = snd_u64(bytes + l->frame_previous);
    }
    return SND_PY_READ;
}

enum snd_py_read snd_python_frames(const struct snd_python *python, uint64_t state,
                                   struct snd_py_stack *stack)
{
    uint64_t link, top;

    if (!find_link(python, state, &link) || !snd_memory_word(python->pid, link, &top))
        return SND_PY_UNREAD;
    snd_pages_clear(&stack->pages);
    stack->still = false;
    stack->switches = 0;
    enum snd_py_read read = walk(python, link, top, stack);
    /*
     * Between two instructions, a generator may already be unlinked from its caller and still be
     * innermost.
     */
    return read == SND_PY_READ && !stack->cut && !stack->ends ? SND_PY_TORN : read;
}

#define LOCK_READ \
    24 /* bytes of the lock: who had it last, whether it is locked, how often it went on */

/*
 * What one call to the kernel reads, in this order; the pages of the hint after `before`. Of two looks in
 * one call, also the pages once more after `after`, then `later` and `cframe_later`, and no lock.
 */
struct shot {
    char     lock_before[LOCK_READ];
    uint64_t cframe, before, after;
    uint64_t later, cframe_later;
    char     lock_after[LOCK_READ];
};

/* What is read of a thread in one call, and where to. */
struct wanted {
    uint64_t             state, gil;
    struct snd_py_hint  *hint;
    struct snd_py_stack *stack, *again; /* again: two looks, and `gil` is 0; or NULL */
    struct snd_py_rider *rider;         /* or NULL */
    bool                 halted;        /* the thread does not change its frames meanwhile */
};

static size_t add_pages(const struct snd_py_hint *hint, struct snd_pages *pages,
                        struct snd_piece *pieces, size_t n)
{
    snd_pages_clear(pages);
    for (uint32_t i = 0; i < hint->count; i++) {
        struct snd_part part = hint->parts[i];
        if (part.to == 0) /* not known yet */
            part.to = SND_PAGE;
        pieces[n++] = snd_pages_expect(pages, part);
    }
    return n;
}

static size_t add_frames(const struct snd_py_layout *l, const struct wanted *w, struct shot *shot,
                         struct snd_piece *pieces, size_t n)
{
    const uint64_t link = w->hint->link;

    if (l->has_cframe)
        pieces[n++] = (struct snd_piece){ w->state + l->thread_frame, &shot->cframe, 8 };
    pieces[n++] = (struct snd_piece){ link, &shot->before, 8 };
    n = add_pages(w->hint, &w->stack->pages, pieces, n);
    if (!w->halted)
        pieces[n++] = (struct snd_piece){ link, &shot->after, 8 };
    if (w->again) {
        n = add_pages(w->hint, &w->again->pages, pieces, n);
        pieces[n++] = (struct snd_piece){ link, &shot->later, 8 };
        if (l->has_cframe)
            pieces[n++] = (struct snd_piece){ w->state + l->thread_frame, &shot->cframe_later, 8 };
    }
    return n;
}

static size_t add_rider(const struct snd_py_rider *rider, struct snd_piece *pieces, size_t n)
{
    if (!rider)
        return n;
    if (rider->last.size > 0)
        pieces[n++] = rider->last;
    if (rider->count > 0)
        memcpy(pieces + n, rider->pieces, rider->count * sizeof *pieces);
    return n + rider->count;
}

static void note_rider(struct snd_py_rider *rider, size_t whole)
{
    size_t first = rider->last.size > 0;

    rider->has_last = first > 0 && whole > 0;
    rider->whole = whole > first ? whole - first : 0;
}

static bool take_shot(const struct snd_python *python, const struct wanted *w, struct shot *shot)
{
    const struct snd_py_layout *l = &python->layout;
    struct snd_piece            pieces[2 * SND_PAGES_MAX + 8 + SND_RIDER_MAX];
    size_t                      n = 0;

    if (w->gil != 0)
        pieces[n++] = (struct snd_piece){ w->gil + l->gil_holder, shot->lock_before, LOCK_READ };
    n = add_frames(l, w, shot, pieces, n);
    if (w->gil != 0)
        pieces[n++] = (struct snd_piece){ w->gil + l->gil_holder, shot->lock_after, LOCK_READ };
    size_t whole = snd_memory_read_many(python->pid, pieces, add_rider(w->rider, pieces, n));
    if (w->rider)
        note_rider(w->rider, whole > n ? whole - n : 0);
    if (w->halted)
        shot->after = shot->before;
    if (whole >= n)
        return true;
    snd_pages_clear(&w->stack->pages);
    return false;
}

/*
 * Has this thread not had the lock between the two readings? Another had it last, both times, and it
 * went to nobody else meanwhile: the number of switches counts each thread that takes it after another.
 */
static void note_lock(const struct snd_python *python, uint64_t state, const struct shot *shot,
                      struct snd_py_stack *stack)
{
    uint32_t at = python->layout.gil_switches - python->layout.gil_holder;

    stack->switches = snd_u64(shot->lock_before + at);
    stack->still = snd_u64(shot->lock_before) != state && snd_u64(shot->lock_after) != state &&
                   snd_u64(shot->lock_after + at) == stack->switches && !stack->pages.late;
}

/* Corrects the hint by what was read with it. True if it was right: the innermost frame is there. */
static bool follow_shot(const struct snd_python *python, const struct shot *shot,
                        struct snd_py_hint *hint)
{
    uint64_t page = shot->before & ~(SND_PAGE - 1);
    uint64_t link = python->layout.has_cframe ? shot->cframe + python->layout.cframe_frame
                                              : hint->link;

    if (link != hint->link) {
        hint->link = shot->cframe ? link : 0;
        return false;
    }
    for (uint32_t i = 0; i < hint->count; i++)
        if (hint->parts[i].page == page)
            return true;
    if (shot->before == 0 || shot->before != shot->after)
        return true;
    hint->parts[0] = (struct snd_part){ .page = page }; /* its callers are often where they were */
    hint->count += hint->count == 0;
    return false;
}

/*
 * The parts that were looked at, in the order of their places. A stack goes up and down: they keep
 * what was looked at before, and have room for some calls more.
 */
static void keep_parts(struct snd_py_hint *hint, const struct snd_pages *pages)
{
    const struct snd_py_hint before = *hint;

    hint->count = 0;
    for (uint32_t i = 0; i < pages->count; i++) {
        struct snd_part part = pages->used[i];
        uint32_t        had = 0;
        if (part.to == 0)
            continue;
        for (uint32_t k = 0; k < before.count && had == 0; k++)
            if (before.parts[k].page == part.page && (had = before.parts[k].to) > 0)
                snd_part_extend(&part, before.parts[k].from, had);
        if (part.to > had)
            part.to = part.to + ROOM < SND_PAGE ? part.to + ROOM : (uint32_t)SND_PAGE;
        hint->parts[hint->count++] = part;
    }
}

/* The innermost frame may have gone on to its next instruction: the same function, another line. */
static bool is_same(const struct snd_py_stack *a, const struct snd_py_stack *b)
{
    if (a->count != b->count || a->cut != b->cut)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (a->frames[i].address != b->frames[i].address ||
            a->frames[i].code != b->frames[i].code ||
            (i > 0 && a->frames[i].instr != b->frames[i].instr))
            return false;
    return true;
}

/* Nothing moved between the first and the last thing that was read. */
static bool is_steady(const struct snd_python *python, const struct shot *shot, bool twice)
{
    return shot->before == shot->after &&
           (!twice || (shot->later == shot->before &&
                       (!python->layout.has_cframe || shot->cframe_later == shot->cframe)));
}

/* The frames of one look at what a shot has read. */
static enum snd_py_read walk_shot(const struct snd_python *python, uint64_t link, uint64_t top,
                                  struct snd_py_stack *stack)
{
    enum snd_py_read read = walk(python, link, top, stack);
    uint64_t         after = top;

    if (read != SND_PY_READ)
        return read;
    if ((!stack->cut && !stack->ends) ||
        (stack->pages.late && (!snd_memory_word(python->pid, link, &after) || after != top)))
        return SND_PY_TORN;
    return SND_PY_READ;
}

/* With `again`, two looks in one call, which must agree. */
static enum snd_py_read look(const struct snd_python *python, const struct wanted *w)
{
    struct snd_py_hint *hint = w->hint;
    struct shot         shot;
    bool                is_right = false;

    w->stack->still = false;
    w->stack->switches = 0;
    for (int tries = 0; tries < SHOTS && !is_right; tries++) {
        if (hint->link == 0 && !find_link(python, w->state, &hint->link))
            return SND_PY_UNREAD;
        if (take_shot(python, w, &shot))
            is_right = follow_shot(python, &shot, hint);
        else if (hint->count == 0 && tries > 0)
            return SND_PY_UNREAD;
        else
            *hint = (struct snd_py_hint){ 0 }; /* of a page that is no more */
    }
    if (!is_right || !is_steady(python, &shot, w->again))
        return SND_PY_TORN;
    enum snd_py_read read = walk_shot(python, hint->link, shot.before, w->stack);
    if (read == SND_PY_READ && w->again) {
        read = walk_shot(python, hint->link, shot.before, w->again);
        if (read == SND_PY_READ && !is_same(w->stack, w->again))
            read = SND_PY_TORN;
    }
    if (read == SND_PY_READ)
        keep_parts(hint, &w->stack->pages);
    if (read == SND_PY_READ && w->gil != 0)
        note_lock(python, w->state, &shot, w->stack);
    return read;
}

enum snd_py_read snd_python_halted(const struct snd_python *python, uint64_t state,
                                   struct snd_py_hint *hint, struct snd_py_rider *rider,
                                   struct snd_py_stack *stack)
{
    const struct wanted w = { state, 0, hint, stack, NULL, rider, true };

    return look(python, &w);
}

enum snd_py_read snd_python_stack(const struct snd_python *python, uint64_t state, uint64_t gil,
                                  struct snd_py_hint *hint, struct snd_py_rider *rider,
                                  struct snd_py_stack *stack, struct snd_py_stack spare[2])
{
    struct wanted    w = { state, gil, hint, stack, gil == 0 ? &spare[0] : NULL, rider, false };
    unsigned         at_once = w.again ? 2 : 1, looks = at_once;
    enum snd_py_read read = look(python, &w);

    if (read == SND_PY_READ && stack->pages.late) /* now it is known where they all are */
        read = look(python, &w);
    unsigned wanted = stack->still ? 1 : stack->far ? LOOKS_FAR : LOOKS;
    w.stack = &spare[1];
    w.rider = NULL;
    for (; read == SND_PY_READ && looks < wanted; looks += at_once) {
        read = look(python, &w);
        if (read == SND_PY_READ && !is_same(stack, &spare[1]))
            read = SND_PY_TORN;
    }
    return read;
}
