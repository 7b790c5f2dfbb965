/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/walk/merge.c - the walk by time: chunks of all threads and processes merged on one axis.
 *
 * A chunk is opened when the merge reaches its first event and closed after its last, so that
 * only chunks that overlap in time are open, each with a small window. A thread's next chunk
 * waits for its present one to end, whatever the clock says: the order within a thread holds.
 *
 * Where the visitor has `settled`, time is cut into stretches, and within each one process follows the other: the same
 * heap, by stretch, process, time. A process then runs through hundreds of events before the next one is looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "base/data/sort.h"
#include "format/fields.h"
#include "read/walk/deliver.h"

#define NOBODY UINT32_MAX
#define PEEK_WORDS 64 /* as far as the first timed event is looked for */

struct entry { /* one lane chunk of the trace */
    int64_t  first_ns;
    uint32_t process, chunk;
    uint32_t next; /* waits after this one: an index into entries */
};

struct stream {
    struct snd_cursor cursor;
    struct snd_place  place;
    int64_t           ns; /* of the next event */
    uint32_t          entry;
    uint32_t          waiting; /* first of the chunks that follow this one, or NOBODY */
    uint32_t          waiting_last;
};

struct merge {
    struct snd_walker *walker;
    struct entry      *entries;
    uint32_t           count, next; /* entries: how many, which is to be opened next */
    struct stream    **heap;
    uint32_t           heap_count, heap_room;
    bool               by_process; /* within a stretch */
    int64_t            stretch;    /* that is under way */
};

static int64_t stretch_of(int64_t ns)
{
    return ns / SND_STRETCH_NS - (ns % SND_STRETCH_NS < 0);
}

static int64_t stretch_begin(int64_t stretch)
{
    return stretch > INT64_MAX / SND_STRETCH_NS ? INT64_MAX : stretch * SND_STRETCH_NS;
}

/* -------------------------------------------------------------------- heap */

static bool is_before(const struct merge *m, const struct stream *a, const struct stream *b)
{
    if (m->by_process && a->place.process != b->place.process) {
        int64_t x = stretch_of(a->ns), y = stretch_of(b->ns);
        return x != y ? x < y : a->place.process < b->place.process;
    }
    return a->ns != b->ns ? a->ns < b->ns : a->entry < b->entry;
}

static void sift_down(struct merge *m, uint32_t i)
{
    for (;;) {
        uint32_t least = i;
        for (uint32_t child = 2 * i + 1; child <= 2 * i + 2 && child < m->heap_count; child++)
            if (is_before(m, m->heap[child], m->heap[least]))
                least = child;
        if (least == i)
            return;
        struct stream *moved = m->heap[i];
        m->heap[i] = m->heap[least];
        m->heap[least] = moved;
        i = least;
    }
}

static bool push(struct merge *m, struct stream *s)
{
    if (!snd_grow(&m->heap, &m->heap_room, m->heap_count, sizeof *m->heap))
        return false;
    uint32_t i = m->heap_count++;
    m->heap[i] = s;
    for (; i > 0 && is_before(m, m->heap[i], m->heap[(i - 1) / 2]); i = (i - 1) / 2) {
        m->heap[i] = m->heap[(i - 1) / 2];
        m->heap[(i - 1) / 2] = s;
    }
    return true;
}

static void pop(struct merge *m)
{
    m->heap[0] = m->heap[--m->heap_count];
    sift_down(m, 0);
}

/* ----------------------------------------------------------------- entries */

static bool peek_packed(const struct snd_process *p, const struct snd_chunk_ref *chunk,
                        uint64_t *time56)
{
    uint8_t                bytes[sizeof(struct snd_packed_head)];
    struct snd_packed_head head;

    if (snd_source_read(&p->source, chunk->offset + chunk->header_size, bytes, sizeof bytes) !=
        sizeof bytes)
        return false;
    memcpy(&head, bytes, sizeof head);
    *time56 = head.first_time & SND_TIME_MASK;
    return true;
}

static bool peek_words(const struct snd_process *p, const struct snd_chunk_ref *chunk,
                       uint64_t *time56)
{
    uint64_t words[PEEK_WORDS];
    size_t   got =
        snd_source_read(&p->source, chunk->offset + chunk->header_size, words, sizeof words) / 8;

    for (size_t at = 0; at < got && words[at] != 0; at += SND_KIND_WORDS(SND_EVENT_KIND(words[at])))
        if (snd_event_class[SND_EVENT_KIND(words[at])] == 1) {
            *time56 = SND_EVENT_TIME56(words[at]);
            return true;
        }
    return false;
}

/* When a chunk begins; too early does no harm. */
static int64_t find_first(const struct snd_process *p, const struct snd_chunk_ref *chunk)
{
    uint64_t time56;
    bool     found = chunk->kind == SND_CHUNK_LANE ? peek_words(p, chunk, &time56)
                                                   : peek_packed(p, chunk, &time56);

    if (!found)
        return INT64_MIN;
    return snd_scale_ns(&p->scale, snd_time_extend(time56, p->header.start.raw));
}

static int compare_entry(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return SND_ORDER(SND_RISING(x->first_ns, y->first_ns), SND_RISING(x->process, y->process),
                     SND_RISING(x->chunk, y->chunk));
}

static bool list_entries(struct merge *m)
{
    const struct sonde_trace *trace = m->walker->trace;
    size_t                    total = 0;

    for (uint32_t i = 0; i < trace->process_count; i++)
        total += trace->processes[i].lane_count;
    if (total >= NOBODY)
        return false;
    m->entries = malloc((total + 1) * sizeof *m->entries);
    if (!m->entries)
        return false;
    for (uint32_t i = 0; i < trace->process_count; i++)
        for (uint32_t k = 0; k < trace->processes[i].lane_count; k++)
            m->entries[m->count++] = (struct entry){
                find_first(&trace->processes[i], &trace->processes[i].lanes[k]), i, k, NOBODY
            };
    snd_sort(m->entries, m->count, sizeof *m->entries, compare_entry);
    return true;
}

/* ----------------------------------------------------------------- streams */

static void claim_thread(struct stream *s)
{
    if (s->place.thread && !s->place.thread->stream)
        s->place.thread->stream = s;
}

static void leave_thread(struct stream *s)
{
    if (s->place.thread && s->place.thread->stream == s)
        s->place.thread->stream = NULL;
}

static void reach(struct stream *s, uint64_t raw)
{
    int64_t ns = snd_scale_ns(&s->place.process->scale, raw);

    s->ns = ns > s->ns ? ns : s->ns;
}

/* Finds the time of the stream's next event; false at the end of its chunk. */
static bool look_ahead(struct stream *s)
{
    struct snd_cursor *c = &s->cursor;

    if (s->place.span_end != 0) {
        reach(s, s->place.span_end);
        return true;
    }
    for (;;) {
        if (c->at < c->count) {
            uint64_t word = c->words[c->at];
            if (word == 0) {
                c->damaged |= c->has_used;
                return false;
            }
            if (SND_KIND_WORDS(SND_EVENT_KIND(word)) <= c->count - c->at) {
                if (snd_event_class[SND_EVENT_KIND(word)] != 1 || !s->place.thread)
                    return true; /* belongs to what came before it */
                reach(s, snd_time_extend(SND_EVENT_TIME56(word), s->place.thread->last_raw));
                return true;
            }
        }
        if (!snd_cursor_fill(c)) {
            c->damaged |= c->at < c->count;
            return false;
        }
    }
}

static void free_stream(struct stream *s)
{
    if (s) {
        leave_thread(s);
        snd_cursor_release(&s->cursor);
        free(s);
    }
}

/* At the end of a stream: count its damage, notify the visitor. */
static void end_stream(struct merge *m, struct stream *s)
{
    if (s->cursor.damaged && !m->walker->visitor->stop) {
        m->walker->stats.damaged_chunks++;
        snd_deliver_break(m->walker, &s->place);
    }
}

/* Points `s` at an entry; true if it has an event, false if it is at its end at once. */
static enum sonde_status point_at(struct merge *m, struct stream *s, uint32_t entry, bool *alive,
                                  struct sonde_error *err)
{
    const struct entry       *e = &m->entries[entry];
    const struct snd_process *p = &m->walker->trace->processes[e->process];
    struct snd_chunk_ref     *chunk = &p->lanes[e->chunk];

    s->entry = entry;
    enum sonde_status status = snd_cursor_open(&s->cursor, p, chunk, SND_WINDOW_MERGE,
                                               &m->walker->codec, err);
    if (status != SONDE_OK)
        return status;
    leave_thread(s);
    snd_place_start(m->walker, &s->place, p, chunk);
    s->place.defers_ends = true;
    claim_thread(s);
    *alive = look_ahead(s);
    if (!*alive)
        end_stream(m, s);
    return SONDE_OK;
}

/* Goes on with the chunks that wait for this one; false when there are none left. */
static enum sonde_status go_on(struct merge *m, struct stream *s, bool *alive,
                               struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    *alive = false;
    while (!*alive && s->waiting != NOBODY && status == SONDE_OK) {
        uint32_t entry = s->waiting;
        s->waiting = m->entries[entry].next;
        status = point_at(m, s, entry, alive, err);
    }
    return status;
}

/* Opens an entry, or lets it wait for the chunk that its thread is still in. */
static enum sonde_status open_entry(struct merge *m, uint32_t entry, struct sonde_error *err)
{
    const struct entry       *e = &m->entries[entry];
    const struct snd_process *p = &m->walker->trace->processes[e->process];
    struct snd_place          place;
    bool                      alive;

    snd_place_start(m->walker, &place, p, &p->lanes[e->chunk]);
    struct stream *busy = place.thread ? place.thread->stream : NULL;
    if (busy) {
        if (busy->waiting == NOBODY)
            busy->waiting = entry;
        else
            m->entries[busy->waiting_last].next = entry;
        busy->waiting_last = entry;
        return SONDE_OK;
    }
    struct stream *s = calloc(1, sizeof *s);
    if (!s)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the chunks of the trace");
    s->ns = e->first_ns;
    s->waiting = NOBODY;
    enum sonde_status status = point_at(m, s, entry, &alive, err);
    if (status == SONDE_OK && alive && !push(m, s))
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the chunks of the trace");
    else if (status == SONDE_OK && alive)
        return SONDE_OK;
    free_stream(s);
    return status;
}

/* A leaf in order has ended before anything else begins. */
static uint64_t leaf_end_until(const struct snd_walker *w, uint64_t until)
{
    return w->visitor->leaf_in_order ? until : UINT64_MAX;
}

static bool deliver_next(struct merge *m, struct stream *s, uint64_t until)
{
    const uint64_t *words = s->cursor.words + s->cursor.at;
    uint8_t         kind = SND_EVENT_KIND(words[0]);
    bool            switches = kind == SND_EV_THREAD;

    if (s->place.run_limit != 0 && snd_is_run(kind) &&
        snd_deliver_run(m->walker, &s->place, words, SND_KIND_WORDS(kind), UINT64_MAX,
                        leaf_end_until(m->walker, until)) > 0) {
        s->cursor.at += SND_KIND_WORDS(kind);
        return true;
    }
    if (switches)
        leave_thread(s);
    bool good = snd_deliver(m->walker, &s->place, words);
    if (switches)
        claim_thread(s);
    s->cursor.at += SND_KIND_WORDS(kind);
    return good;
}

/*
 * Delivers the events whose raw clock is below `until`: those before it whatever their nanoseconds, so
 * that none are made to compare them. False when the chunk is damaged or the walk is to stop.
 */
static bool run_below(struct merge *m, struct stream *s, uint64_t until)
{
    struct snd_cursor *c = &s->cursor;
    struct snd_walker *w = m->walker;
    bool               good = true;

    while (good && !w->visitor->stop && s->place.span_end < until) {
        if (s->place.span_end != 0) {
            good = snd_deliver_end(w, &s->place);
            continue;
        }
        const uint64_t *words = c->words + c->at;
        if (c->at >= c->count || words[0] == 0 || !s->place.thread)
            return true;
        uint8_t kind = SND_EVENT_KIND(words[0]);
        if (s->place.run_limit != 0 && snd_is_run(kind)) {
            size_t taken = snd_deliver_run(w, &s->place, words, c->count - c->at, until,
                                           leaf_end_until(w, until));
            c->at += taken;
            if (taken > 0 || w->visitor->stop)
                continue;
        }
        if (kind == SND_EV_THREAD || SND_KIND_WORDS(kind) > c->count - c->at ||
            (snd_event_class[kind] == 1 &&
             snd_time_extend(SND_EVENT_TIME56(words[0]), s->place.thread->last_raw) >= until))
            return true;
        good = snd_deliver(w, &s->place, words);
        c->at += SND_KIND_WORDS(kind);
    }
    c->damaged |= !good;
    return good && !w->visitor->stop;
}

/* The time at which something of this process that is next at `ns` comes before the stream. */
static int64_t stays_until(const struct merge *m, const struct stream *s,
                           const struct snd_process *process, int64_t ns)
{
    if (!m->by_process || process == s->place.process)
        return ns;
    int64_t stretch = stretch_of(ns);
    return stretch_begin(stretch_of(s->ns) < stretch ? stretch : stretch + 1);
}

static int64_t run_until(const struct merge *m, const struct stream *s)
{
    const struct snd_process *processes = m->walker->trace->processes;
    int64_t                   until = INT64_MAX;

    if (m->next < m->count)
        until = stays_until(m, s, &processes[m->entries[m->next].process],
                            m->entries[m->next].first_ns);
    for (uint32_t i = 1; i < 3 && i < m->heap_count; i++) {
        int64_t other = stays_until(m, s, m->heap[i]->place.process, m->heap[i]->ns);
        until = other < until ? other : until;
    }
    return until;
}

/* Delivers from the first stream while it stays first; false when its chunk is at its end. */
static bool run_first(struct merge *m)
{
    struct stream     *s = m->heap[0];
    struct snd_walker *w = m->walker;
    int64_t            until = run_until(m, s);

    uint64_t until_raw = snd_scale_raw_before(&s->place.process->scale, until);
    do {
        bool good = s->place.span_end != 0 ? snd_deliver_end(w, &s->place)
                                           : deliver_next(m, s, until_raw);
        s->cursor.damaged |= !good;
        if (!good || w->visitor->stop || !run_below(m, s, until_raw) || !look_ahead(s))
            return false;
    } while (s->ns < until);
    return true;
}

/* Whether the next entry has to be open before the first stream goes on. */
static bool is_due(const struct merge *m)
{
    if (m->next == m->count || m->heap_count == 0)
        return m->next < m->count;
    int64_t first_ns = m->entries[m->next].first_ns, ns = m->heap[0]->ns;
    return m->by_process ? stretch_of(first_ns) <= stretch_of(ns) : first_ns <= ns;
}

static void settle(struct merge *m)
{
    struct snd_visitor *v = m->walker->visitor;
    int64_t             stretch = stretch_of(m->heap[0]->ns);

    if (stretch <= m->stretch)
        return;
    m->stretch = stretch;
    v->settled(v->user, stretch_begin(stretch));
}

static enum sonde_status run(struct merge *m, struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    while (status == SONDE_OK && !m->walker->visitor->stop &&
           (m->heap_count > 0 || m->next < m->count)) {
        if (is_due(m)) {
            status = open_entry(m, m->next++, err);
            continue;
        }
        if (m->by_process)
            settle(m);
        bool alive = run_first(m);
        if (!alive) {
            end_stream(m, m->heap[0]);
            status = go_on(m, m->heap[0], &alive, err);
        }
        if (alive) {
            sift_down(m, 0);
        } else {
            free_stream(m->heap[0]);
            pop(m);
        }
    }
    return status;
}

enum sonde_status snd_walk_merged(struct snd_walker *walker, struct sonde_error *err)
{
    struct snd_visitor *v = walker->visitor;
    struct merge        m = { .walker = walker, .by_process = v->settled, .stretch = INT64_MIN };
    enum sonde_status   status;

    if (list_entries(&m))
        status = run(&m, err);
    else
        status = snd_fail(err, SONDE_E_NOMEM, "out of memory for the chunks of the trace");
    if (v->settled && status == SONDE_OK && !v->stop)
        v->settled(v->user, INT64_MAX);
    while (m.heap_count > 0)
        free_stream(m.heap[--m.heap_count]);
    free(m.heap);
    free(m.entries);
    return status;
}
