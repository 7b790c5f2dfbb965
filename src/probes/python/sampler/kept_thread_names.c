/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/python/sampler/kept_thread_names.h"

#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "sonde/record.h"

/* One for each thread number modulo this: threads that begin together have numbers in a row. */
#define PLACES 256u
#define NAME_MOST 95u /* bytes; what is alive when sampling ends is named in full then */

struct place {
    uint32_t tid;
    bool     introduced, late; /* late: named after its record was written */
    char     name[NAME_MOST + 1];
};

static struct place    places[PLACES];
static bool            some_late;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* An earlier thread of this place has its name already, or gets it when sampling ends. */
static struct place *place_of(uint32_t tid)
{
    struct place *p = &places[tid % PLACES];

    if (p->tid != tid)
        *p = (struct place){ .tid = tid };
    return p;
}

/* Not within a character. */
static size_t cut(const char *name)
{
    size_t length = strlen(name);

    if (length > NAME_MOST)
        for (length = NAME_MOST; length > 0 && ((unsigned char)name[length] & 0xc0) == 0x80;)
            length--;
    return length;
}

void snd_threadname_tell(uint32_t tid, const char *name)
{
    size_t length = cut(name);

    pthread_mutex_lock(&lock);
    struct place *p = place_of(tid);
    memcpy(p->name, name, length);
    p->name[length] = '\0';
    p->late = p->introduced;
    if (p->late)
        __atomic_store_n(&some_late, true, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
}

uint32_t snd_threadname_introduce(uint32_t tid, const char *system)
{
    char name[NAME_MOST + 1];

    pthread_mutex_lock(&lock);
    struct place *p = place_of(tid);
    memcpy(name, p->name, sizeof name);
    p->introduced = true;
    pthread_mutex_unlock(&lock);
    return sonde_thread_of(tid, name[0] ? name : system);
}

void snd_threadname_catch_up(void)
{
    if (!__atomic_load_n(&some_late, __ATOMIC_RELAXED))
        return;
    __atomic_store_n(&some_late, false, __ATOMIC_SEQ_CST); /* before the places are looked at */
    for (uint32_t i = 0; i < PLACES; i++) {
        pthread_mutex_lock(&lock);
        struct place p = places[i];
        places[i].late = false;
        pthread_mutex_unlock(&lock);
        if (p.late)
            sonde_thread_of(p.tid, p.name);
    }
}

void snd_threadname_clear(void)
{
    pthread_mutex_init(&lock, NULL);
    memset(places, 0, sizeof places);
    some_late = false;
}

/*
 * Without the lock, which a thread lost in fork() may hold: a name that was just being stored may
 * be cut.
 */
void snd_threadname_in_child(uint32_t before, uint32_t now)
{
    struct place was = places[before % PLACES];

    snd_threadname_clear();
    was.name[NAME_MOST] = '\0';
    if (was.tid == before && was.name[0])
        snd_threadname_tell(now, was.name);
}
