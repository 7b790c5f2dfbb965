/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/callcount.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/metadata.h"

#define FUNCTIONS_MAX (1u << 18) /* the limit for a program that keeps making functions */
#define STACK_FIRST 256u
#define EDGES_A_BLOCK 256u

struct snd_calls_state                       snd_calls;
SONDE_THREAD_LOCAL_ struct snd_calls_thread *snd_calls_self_;

/* Where counts go while nothing records. */
static uint64_t void_words[SND_CALLS_WORDS];

struct snd_calls_thread *snd_calls_threads_; /* those that ended are used again */
struct snd_calls_session snd_calls_process_;
static pthread_key_t     end_key;

/* ------------------------------------------------------------------- functions */

/* A function's texts lie in `texts`, one after the other; what is interned depends on the epoch. */
static struct function {
    uint32_t epoch, frame, name;
    uint32_t name_length, file_length, line;
    bool     outside, module;
} * functions;
static uint32_t         function_room;
static struct snd_texts texts;

uint32_t snd_calls_function(const struct snd_calls_name *name)
{
    static const struct snd_calls_name lost = {
        "(functions lost)", "~", 16, 1, 0, 0, false, false
    };

    if (texts.count >= FUNCTIONS_MAX)
        name = &lost;
    struct {
        uint64_t body;
        uint32_t line, name_length;
    } tail = { name->body, name->line, (uint32_t)name->name_length };
    size_t length = name->name_length + name->file_length + sizeof tail;
    char  *text = malloc(length);
    if (!text)
        return 0;
    memcpy(text, name->name, name->name_length);
    memcpy(text + name->name_length, name->file, name->file_length);
    memcpy(text + length - sizeof tail, &tail, sizeof tail);
    uint32_t id, before = texts.count;
    bool     added = snd_grow(&functions, &function_room, before, sizeof *functions) &&
                 snd_texts_add(&texts, text, length, &id);
    free(text);
    if (!added)
        return 0;
    if (id == before)
        functions[id] = (struct function){ .name_length = (uint32_t)name->name_length,
                                           .file_length = (uint32_t)name->file_length,
                                           .line = name->line,
                                           .outside = name->outside,
                                           .module = name->module };
    return id + 1;
}

bool snd_calls_is_outside_(const struct snd_calls_thread *t, uint32_t function)
{
    const struct function *f = &functions[function - 1];

    if (!snd_calls.whole || !t->is_main)
        return false;
    snd_calls.begun |= f->module;
    return f->outside || !snd_calls.begun;
}

/* Its ids in the recording that is on. */
static const struct function *interned(uint32_t number, uint32_t epoch)
{
    struct function *f = &functions[number - 1];
    const char      *text = texts.items[number - 1].bytes;

    if (f->epoch != epoch) {
        f->name = sonde_intern(text, f->name_length);
        f->frame = sonde_intern_frame_in(f->name, f->line,
                                         sonde_intern(text + f->name_length, f->file_length),
                                         f->line);
        f->epoch = f->frame != 0 ? epoch : 0;
    }
    return f;
}

uint32_t snd_calls_frame_(uint32_t function)
{
    return interned(function, sonde_epoch())->frame;
}

/* ----------------------------------------------------------------------- edges */

struct block {
    struct block         *next;
    uint32_t              used;
    struct snd_calls_edge edges[EDGES_A_BLOCK];
};

struct snd_calls_edges {
    struct snd_map map; /* (caller, callee) to a number: block and place, newest block first */
    struct block  *blocks;
    struct block **by_number;
    uint32_t       block_count, block_room;
};

uint64_t *snd_calls_words_(uint32_t number, uint32_t caller, uint32_t callee)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0)
        return NULL;
    uint32_t caller_frame = caller ? interned(caller, epoch)->frame : 0;
    uint32_t callee_frame = interned(callee, epoch)->frame;
    return sonde_tally(SONDE_TALLY_OF(SONDE_TALLY_CALLS, number), callee_frame, caller_frame,
                       SND_CALLS_WORDS);
}

static uint32_t owner; /* snd_calls_set_owner() */

/* Each recording is told, a forked child's own too. */
static void tell_owner(bool again)
{
    static uint32_t told; /* epoch */
    char            text[16];

    if (sonde_epoch() == 0 || (told == sonde_epoch() && !again))
        return;
    told = sonde_epoch();
    snprintf(text, sizeof text, "%u", owner);
    sonde_metadata(snd_meta_key(SND_META_PYTHON_FUNCTIONS_SESSION), text);
}

void snd_calls_set_owner(uint32_t number)
{
    if (number != 0) /* its own counts are what the process has counted from here on */
        snd_map_release(&snd_calls_process_.pairs);
    owner = number;
    tell_owner(true);
}

static void fetch_words(const struct snd_calls_thread *t, struct snd_calls_edge *edge)
{
    struct snd_calls_session *session = t->owner ? t->owner : &snd_calls_process_;
    struct snd_key            pair = { edge->caller, edge->callee, 0 };
    uint32_t                  unused;
    uint64_t                 *words = NULL;

    if (t->epoch != 0 &&
        (snd_calls.mode == SND_CALLS_COUNTED || snd_calls.mode == SND_CALLS_COUNTERS)) {
        words = snd_calls_words_(session->number, edge->caller, edge->callee);
        tell_owner(false);
        if (words && !snd_map_get(&session->pairs, pair, &unused) &&
            !snd_map_put(&session->pairs, pair, 0))
            words = NULL; /* no memory: it would be mixed with another session's */
    }
    edge->words = words ? words : void_words;
    edge->epoch = t->epoch;
}

static struct snd_calls_edge *new_edge(struct snd_calls_edges *edges, uint32_t caller,
                                       uint32_t callee)
{
    if (!edges->blocks || edges->blocks->used == EDGES_A_BLOCK) {
        if (!snd_grow(&edges->by_number, &edges->block_room, edges->block_count,
                      sizeof *edges->by_number))
            return NULL;
        struct block *block = malloc(sizeof *block);
        if (!block)
            return NULL;
        block->next = edges->blocks;
        block->used = 0;
        edges->blocks = block;
        edges->by_number[edges->block_count++] = block;
    }
    struct block *block = edges->blocks;
    uint32_t      number = (edges->block_count - 1) * EDGES_A_BLOCK + block->used;
    if (!snd_map_put(&edges->map, (struct snd_key){ caller, callee, 0 }, number))
        return NULL;
    struct snd_calls_edge *edge = &block->edges[block->used++];
    *edge = (struct snd_calls_edge){ .words = void_words, .caller = caller, .callee = callee };
    return edge;
}

struct snd_calls_edge *snd_calls_edge_(struct snd_calls_thread *t, uint32_t caller, uint32_t callee)
{
    struct snd_calls_edges *edges = t->edges;
    struct snd_calls_edge  *edge;
    uint32_t                number;

    if (snd_map_get(&edges->map, (struct snd_key){ caller, callee, 0 }, &number)) {
        edge = &edges->by_number[number / EDGES_A_BLOCK]->edges[number % EDGES_A_BLOCK];
    } else {
        edge = new_edge(edges, caller, callee);
        if (!edge) {
            snd_calls.lost++;
            return NULL;
        }
        edge->epoch = t->epoch + 1;
    }
    if (edge->epoch != t->epoch)
        fetch_words(t, edge);
    t->functions[callee].edge = edge;
    t->functions[callee].caller = caller + 1;
    return edge;
}

static void drop_edges(struct snd_calls_edges *edges)
{
    while (edges->blocks) {
        struct block *block = edges->blocks;
        edges->blocks = block->next;
        free(block);
    }
    snd_map_release(&edges->map);
    free(edges->by_number);
    memset(edges, 0, sizeof *edges);
}

/* --------------------------------------------------------------------- threads */

/* Without the interpreter's lock: only says that the context may be used again. */
static void end_thread(void *context)
{
    struct snd_calls_thread *t = context;

    __atomic_store_n(&t->ended, 1, __ATOMIC_RELEASE);
}

/* Only the thread that forked lives on. */
static void forget_others_in_child(void)
{
    for (struct snd_calls_thread *t = snd_calls_threads_; t; t = t->next)
        if (t != snd_calls_self_) {
            t->session = snd_calls.session - 1; /* their open calls are the parent's */
            t->ended = 1;
            snd_calls_sessions_in_child_(t);
        }
}

static bool make_key(void)
{
    static int made; /* 1 yes, -1 failed */

    if (made == 0)
        made = pthread_key_create(&end_key, end_thread) == 0 &&
                       pthread_atfork(NULL, NULL, forget_others_in_child) == 0
                   ? 1
                   : -1;
    return made > 0;
}

static char *find_stack_low(void)
{
    pthread_attr_t attr;
    void          *low = NULL;
    size_t         size;

    if (pthread_getattr_np(pthread_self(), &attr) == 0) {
        if (pthread_attr_getstack(&attr, &low, &size) != 0)
            low = NULL;
        pthread_attr_destroy(&attr);
    }
    return low;
}

void snd_calls_reset_(struct snd_calls_thread *t)
{
    drop_edges(t->edges);
    free(t->functions);
    t->functions = NULL;
    t->function_room = 0;
    t->depth = 0;
    t->epoch = sonde_epoch();
    t->session = t->owner ? t->owner->session : snd_calls.session;
}

struct snd_calls_thread *snd_calls_new_thread_(struct snd_calls_session *session)
{
    struct snd_calls_thread *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->edges = calloc(1, sizeof *t->edges);
    t->stack = calloc(STACK_FIRST, sizeof *t->stack);
    t->room = STACK_FIRST;
    t->owner = session;
    t->session = (session ? session->session : snd_calls.session) - 1;
    if (!t->edges || !t->stack) {
        snd_calls_free_thread_(t);
        return NULL;
    }
    return t;
}

void snd_calls_free_thread_(struct snd_calls_thread *t)
{
    if (t->edges)
        drop_edges(t->edges);
    snd_calls_counters_free_(t);
    free(t->edges);
    free(t->functions);
    free(t->stack);
    free(t);
}

/* Calls left open by a thread that ended are not of the next one. */
void snd_calls_close_all_(struct snd_calls_thread *t)
{
    while (t->depth > 0)
        snd_calls_pop_(t, true);
}

struct snd_calls_thread *snd_calls_attach_(bool entering)
{
    struct snd_calls_thread *t = snd_calls_self_;

    if (!t) {
        if (!make_key())
            return NULL;
        for (t = snd_calls_threads_; t && !__atomic_load_n(&t->ended, __ATOMIC_ACQUIRE);
             t = t->next)
            ;
        if (!t && (t = snd_calls_new_thread_(NULL))) {
            t->next = snd_calls_threads_;
            snd_calls_threads_ = t;
        }
        if (!t || pthread_setspecific(end_key, t) != 0)
            return NULL;
        t->stack_low = find_stack_low();
        t->tid = (uint32_t)syscall(SYS_gettid);
        t->is_main = t->tid == (uint32_t)getpid();
        if (t->ended)
            snd_calls_sessions_ended_(t);
        if (t->ended && t->session == snd_calls.session)
            snd_calls_close_all_(t);
        t->ended = 0;
        snd_calls_self_ = t;
    }
    if (t->session != snd_calls.session) {
        snd_calls_reset_(t);
        if (snd_calls.adopt)
            snd_calls.adopt(t, entering);
    }
    return t;
}

bool snd_calls_room_(struct snd_calls_thread *t, uint32_t function)
{
    if (t->depth + 1 >= t->room) {
        size_t                  room = (size_t)t->room * 2;
        struct snd_calls_entry *stack = realloc(t->stack, room * sizeof *stack);
        if (!stack)
            goto fail;
        t->stack = stack;
        t->room = (uint32_t)room;
    }
    if (function >= t->function_room) {
        size_t room = function_room > function ? function_room : (size_t)function + 1;
        struct snd_calls_function *list = realloc(t->functions, room * sizeof *list);
        if (!list)
            goto fail;
        memset(list + t->function_room, 0, (room - t->function_room) * sizeof *list);
        t->functions = list;
        t->function_room = (uint32_t)room;
    }
    return true;

fail:
    snd_calls.lost++;
    return false;
}

/* After a pause it has it already; words of another recording may lie at the same address. */
static bool is_counted(const struct snd_calls_entry *entry)
{
    const uint64_t *words = entry->edge->words;

    return words == void_words ||
           (words == entry->counted && words[SND_CALLS_CALLS] + words[SND_CALLS_RESUMPTIONS] != 0);
}

/*
 * Another recording, or none: what is open goes on from now, and is a call of that one too. Edges
 * are found anew when they are used next.
 */
void snd_calls_renew_(struct snd_calls_thread *t)
{
    uint64_t now = sonde_clock();

    t->epoch = sonde_epoch();
    for (uint32_t i = 0; i < t->function_room; i++)
        t->functions[i].caller = 0;
    for (uint32_t i = 1; i <= t->depth; i++) {
        struct snd_calls_entry *entry = &t->stack[i];
        if (entry->edge && entry->edge->epoch != t->epoch)
            fetch_words(t, entry->edge);
        if (entry->edge && !is_counted(entry))
            snd_calls_count_(entry);
        entry->start = now;
        entry->inner = 0;
    }
    if (snd_calls.mode == SND_CALLS_COUNTERS)
        snd_calls_counters_renew_(t);
}

bool snd_calls_unwind_(struct snd_calls_thread *t, const void *key)
{
    uint32_t at = t->depth;

    while (at > 0 && t->stack[at].key != key)
        at--;
    if (at == 0)
        return false;
    for (; t->depth > at; snd_calls.unbalanced++)
        snd_calls_leave(t);
    return true;
}

/* ------------------------------------------------------------ ranges, counters, events */

static void begin_range(uint32_t function, bool resumed)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0)
        return;
    const struct function *f = interned(function, epoch);
    sonde_begin_id(f->name, 0);
    sonde_attr(SONDE_ATTR_FRAME, f->frame | (uint64_t)resumed << 32);
}

void snd_calls_begin_more_(struct snd_calls_thread *t, uint32_t function, bool resumed)
{
    if (snd_calls.mode == SND_CALLS_RANGES)
        begin_range(function, resumed);
    else
        snd_calls_counters_begin_(t);
}

/* What another thread has open ends when everything stops; the reader ends it. */
void snd_calls_end_more_(struct snd_calls_thread *t, const struct snd_calls_entry *entry)
{
    if (snd_calls.mode == SND_CALLS_COUNTERS)
        snd_calls_counters_end_(t, entry);
    else if (t == snd_calls_self_)
        sonde_end();
}

bool snd_calls_note_(struct snd_calls_thread *t, uint32_t function, const void *key, bool resumed)
{
    struct snd_calls_entry *entry = &t->stack[++t->depth];

    entry->edge = NULL;
    entry->key = key;
    entry->function = function;
    entry->calls = !resumed;
    entry->id = ++snd_calls.ids;
    entry->start = sonde_clock();
    return true;
}

void snd_calls_tell_(struct snd_calls_thread *t, const struct snd_calls_entry *entry, uint64_t now)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0)
        return;
    const struct function *f = &functions[entry->function - 1];
    if (SONDE_UNLIKELY_(f->epoch != epoch))
        f = interned(entry->function, epoch);
    const struct sonde_function_call call = {
        .frame = f->frame,
        .thread = t == snd_calls_self_ ? 0 : sonde_thread_of(t->tid, NULL),
        .start = entry->start,
        .end = now,
        .id = entry->id,
        .parent = entry[-1].id,
        .resumed = !entry->calls,
    };
    if (SONDE_LIKELY_(sonde_lane_take_(&sonde_lane_, epoch, 4 | (f->frame & SONDE_LATE_ID_)))) {
        sonde_function_at_(&sonde_lane_, &call);
        sonde_lane_leave_(&sonde_lane_);
    } else {
        sonde_function_called(&call);
    }
}

bool snd_calls_enter_more_(struct snd_calls_thread *t, uint32_t function, const void *key,
                           bool resumed)
{
    if (!snd_calls_push_(t, function, key, resumed, true))
        return false;
    if (snd_calls.sessions_on)
        snd_calls_sessions_enter_(t, function, key, resumed);
    return true;
}

void snd_calls_leave_more_(struct snd_calls_thread *t)
{
    if (snd_calls.sessions_on)
        snd_calls_sessions_leave_(t);
    snd_calls_pop_(t, true);
}

/* -------------------------------------------------------------------- on and off */

void snd_calls_start(enum snd_calls_mode mode, bool whole)
{
    snd_calls.whole = whole;
    snd_calls.begun = false;
    snd_calls.session++;
    snd_calls.mode = mode;
    snd_calls_set_more_();
    snd_calls.ids = 0;
    snd_calls.unbalanced = 0;
    snd_calls.lost = 0;
    snd_calls.on = true;
}

void snd_calls_stop(void)
{
    while (snd_calls.sessions_on)
        snd_calls_session_stop(snd_calls.sessions_on->number);
    snd_calls.on = false;
    for (struct snd_calls_thread *t = snd_calls_threads_; t; t = t->next) {
        if (t->session != snd_calls.session)
            continue;
        snd_calls_close_all_(t);
        snd_calls_reset_(t);
    }
    snd_calls_forget_suspended_();
}
