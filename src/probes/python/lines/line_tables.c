/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/python/lines/line_tables.c - tables of chosen functions, stacks of threads.
 */
#include "probes/python/lines/line_events.h"
#include "probes/python/memory/memory_counts.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RUNS_AT_FIRST 64u
#define RUNS_LOOKED_AT 64 /* a frame further out is only found after ends were missed */

Py_ssize_t                       snd_line_index = -1;
__thread struct snd_line_thread *snd_line_thread_ __attribute__((tls_model("initial-exec")));

/* ------------------------------------------------------------------------- threads */

static struct {
    pthread_mutex_t         lock; /* of the list: a thread ends without the interpreter lock */
    struct snd_line_thread *all;
    pthread_key_t           ending;
    pthread_once_t          once;
} threads = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void free_thread(void *thread)
{
    struct snd_line_thread *mine = thread;

    pthread_mutex_lock(&threads.lock);
    *mine->link = mine->next;
    if (mine->next)
        mine->next->link = mine->link;
    pthread_mutex_unlock(&threads.lock);
    snd_line_thread_ = NULL;
    free(mine->base);
    free(mine);
}

static void list_thread(struct snd_line_thread *mine)
{
    pthread_mutex_lock(&threads.lock);
    mine->next = threads.all;
    mine->link = &threads.all;
    if (mine->next)
        mine->next->link = &mine->next;
    threads.all = mine;
    pthread_mutex_unlock(&threads.lock);
}

/* The child has one thread, this one; the lock may have been held by one that ended. */
static void renew_in_child(void)
{
    struct snd_line_thread *mine = snd_line_thread_;

    pthread_mutex_init(&threads.lock, NULL);
    threads.all = NULL;
    if (mine)
        list_thread(mine);
}

static void prepare(void)
{
    pthread_key_create(&threads.ending, free_thread);
    pthread_atfork(NULL, NULL, renew_in_child);
}

struct snd_line_thread *snd_line_thread_new(void)
{
    struct snd_line_thread *mine = calloc(1, sizeof *mine);

    pthread_once(&threads.once, prepare);
    if (mine)
        mine->base = malloc(RUNS_AT_FIRST * sizeof *mine->base);
    if (!mine || !mine->base) {
        free(mine);
        return NULL;
    }
    mine->top = mine->base - 1;
    mine->end = mine->base + RUNS_AT_FIRST;
    snd_line_thread_ = mine;
    list_thread(mine);
    pthread_setspecific(threads.ending, mine);
    return mine;
}

/*
 * At once and in all threads: a table is freed with its code object, and a new frame may have the
 * same address long before its thread looks at its stack.
 */
void snd_line_give_up(const struct snd_line_table *table)
{
    snd_py_lock();
    pthread_mutex_lock(&threads.lock);
    for (struct snd_line_thread *one = threads.all; one; one = one->next) {
        struct snd_line_run *kept = one->base;
        for (struct snd_line_run *run = one->base; table && run <= one->top; run++)
            if (run->table != table)
                *kept++ = *run;
        one->top = kept - 1;
    }
    pthread_mutex_unlock(&threads.lock);
    snd_py_unlock();
}

void snd_line_tables_renew(void)
{
    snd_line_index = -1;
    snd_line_give_up(NULL);
    pthread_mutex_lock(&threads.lock);
    for (struct snd_line_thread *one = threads.all; one; one = one->next) {
        one->outer = NULL;
        one->adopted = NULL;
        memset(one->left, 0, sizeof one->left);
    }
    pthread_mutex_unlock(&threads.lock);
}

static bool grow(struct snd_line_thread *mine)
{
    size_t               used = (size_t)(mine->end - mine->base);
    struct snd_line_run *more = realloc(mine->base, 2 * used * sizeof *more);

    if (!more)
        return false;
    mine->base = more;
    mine->top = more + used - 1;
    mine->end = more + 2 * used;
    return true;
}

bool snd_line_push(struct snd_line_thread *mine, const void *frame, struct snd_line_table *table)
{
    if (mine->top + 1 == mine->end && !grow(mine))
        return false;
    struct snd_line_run *run = ++mine->top;
    memset(run, 0, sizeof *run);
    run->frame = frame;
    run->table = table;
    return true;
}

void snd_line_begin_more_(struct snd_line_run *run)
{
    run->stamp = snd_line_stamp;
    if (run->table->wanted & SND_LINE_MEMORY)
        snd_line_memory_begin(run);
}

void snd_line_close_more_(struct snd_line_run *run, uint64_t now)
{
    struct snd_line_table *table = run->table;

    if (table->shares && table->wanted & SND_LINE_TIME && run->since)
        snd_line_share_time(run, now - run->since);
    if (table->wanted & SND_LINE_MEMORY)
        snd_line_memory_end(run, snd_line_place(table, run->line, SND_LINE_MEMORY));
}

/* Entries above it ended unseen, and are dropped. */
bool snd_line_find(struct snd_line_thread *mine, const void *frame)
{
    struct snd_line_run *run = mine->top;

    for (int i = 0; i < RUNS_LOOKED_AT && run >= mine->base; i++, run--) {
        if (run->frame == frame) {
            mine->top = run;
            return true;
        }
    }
    return false;
}

/* ------------------------------------------------------------------------- tallies */

static PyObject *name_of(PyCodeObject *code)
{
#if PY_VERSION_HEX >= 0x030B0000
    return code->co_qualname; /* as line_profiler names it */
#else
    return code->co_name;
#endif
}

/* Another recording: every tally is looked up again. */
void snd_line_renew(struct snd_line_table *table)
{
    PyObject *error[3];

    memset(table->time, 0, table->count * sizeof *table->time);
    memset(table->memory, 0, table->count * sizeof *table->memory);
    if (table->process == getpid()) /* a forked child goes on with its parent's counts */
        table->has_base = false;
    table->process = getpid();
    PyErr_Fetch(&error[0], &error[1], &error[2]); /* a frame may be left by an exception */
    snd_memory_mine_.inside++;
    table->epoch = sonde_epoch();
    table->function = table->epoch ? snd_py_intern(name_of(table->owner)) : 0;
    table->file = table->epoch ? snd_py_intern(table->owner->co_filename) : 0;
    snd_line_tell_owners(false);
    snd_memory_mine_.inside--;
    PyErr_Restore(error[0], error[1], error[2]);
}

static const struct {
    enum sonde_tally_kind kind;
    unsigned              words;
} kinds[] = {
    [SND_LINE_TIME] = { SONDE_TALLY_LINE, SND_LINE_WORDS },
    [SND_LINE_MEMORY] = { SONDE_TALLY_LINE_MEMORY, SND_LINE_MEMORY_WORDS },
};

unsigned snd_line_word_count(unsigned use)
{
    return kinds[use].words;
}

uint64_t *snd_line_words(const struct snd_line_table *table, uint32_t line, unsigned use,
                         uint32_t session)
{
    if (table->epoch == 0)
        return NULL;
    snd_memory_mine_.inside++; /* memory allocated here does not count for the line */
    uint32_t  frame = sonde_intern_frame_in(table->function, (uint32_t)table->owner->co_firstlineno,
                                            table->file, table->first + line);
    uint64_t *words = sonde_tally(SONDE_TALLY_OF(kinds[use].kind, session), frame, 0,
                                  kinds[use].words);
    snd_memory_mine_.inside--;
    return words;
}

uint64_t *snd_line_place(struct snd_line_table *table, uint32_t line, unsigned use)
{
    uint64_t **places = use == SND_LINE_TIME ? table->time : table->memory;

    if (!places[line])
        places[line] = snd_line_words(table, line, use, 0);
    return places[line];
}

/* -------------------------------------------------------------------------- tables */

/* CPython also calls this for code that has only another tool's word: then ours is NULL. */
static void free_table(void *word)
{
    struct snd_line_table *table = word;

    if (!table)
        return;
    free(table->time);
    free(table->memory);
    snd_line_free_shares(table);
    free(table);
}

/* A table lives as long as its code object, which a running frame keeps alive. */
static struct snd_line_table *new_table(PyCodeObject *code, PyCodeObject *owner, uint32_t first,
                                        uint32_t last)
{
    struct snd_line_table *table = calloc(1, sizeof *table);

    if (!table)
        return NULL;
    table->code = code;
    table->owner = owner;
    table->first = first;
    table->count = last - first + 1;
    table->time = calloc(table->count, sizeof *table->time);
    table->memory = calloc(table->count, sizeof *table->memory);
    if (!table->time || !table->memory) {
        free_table(table);
        return NULL;
    }
    return table;
}

/* The lines that its instructions have; False with an exception set. */
static bool find_lines(PyCodeObject *code, uint32_t *first, uint32_t *last)
{
    PyObject *bytes = PyObject_GetAttrString((PyObject *)code, "co_code");
    if (!bytes)
        return false;
    int size = (int)PyBytes_GET_SIZE(bytes), low = code->co_firstlineno, high = low;
    Py_DECREF(bytes);
    for (int at = 0; at < size; at += 2) {
        int line = PyCode_Addr2Line(code, at);
        if (line > high)
            high = line;
        if (line > 0 && line < low)
            low = line;
    }
    *first = (uint32_t)low;
    *last = (uint32_t)high;
    return true;
}

struct snd_line_table *snd_line_table_get(PyCodeObject *code, PyCodeObject *owner)
{
    uint32_t first = 0, last = 0;

    if (snd_line_index < 0)
        snd_line_index = snd_py_extra_index(free_table);
    if (snd_line_index < 0) {
        PyErr_SetString(snd_py_error_class(),
                        "cannot record lines: other tools use all extra slots of code objects");
        return NULL;
    }
    struct snd_line_table *table = snd_py_extra(code, snd_line_index);
    if (table || !find_lines(code, &first, &last))
        return table;
    table = new_table(code, owner, first, last);
    if (!table) {
        PyErr_NoMemory();
        return NULL;
    }
    if (!snd_py_set_extra(code, snd_line_index, table)) {
        free_table(table);
        return NULL;
    }
    return table;
}
