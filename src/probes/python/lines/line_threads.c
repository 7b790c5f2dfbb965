/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/lines/line_threads.c - threads, and the stack of each: frames with a line under way. */
#include "probes/python/lines/line_events.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define RUNS_AT_FIRST 64u
#define RUNS_LOOKED_AT 64 /* a frame further out is only found after ends were missed */

Py_ssize_t                       snd_line_index = -1;
bool                             snd_lines_on;
uint64_t                         snd_line_stamp = 1;
__thread struct snd_line_thread *snd_line_thread_ __attribute__((tls_model("initial-exec")));

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
