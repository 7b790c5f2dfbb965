/* SPDX-License-Identifier: Apache-2.0 */
#include "record/file/apart_file.h"

#include <errno.h>
#include <signal.h>

#include "base/system/named_thread.h"
#include "base/files/own_table.h"
#include "record/file/trace_paths.h"

struct job {
    snd_apart_work *work;
    void           *user;
    int             result;
};

bool snd_apart_thread(pthread_t *thread, bool is_detached, void *(*start)(void *), void *argument,
                      const char *name)
{
    pthread_attr_t attributes;
    sigset_t       all, before;

    if (pthread_attr_init(&attributes) != 0)
        return false;
    if (is_detached)
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    sigdelset(&all, SIGBUS); /* its own fault: bus_errors.h */
    /* A new thread has the mask of its creator, which gets its own back at once. */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_created = snd_named_thread(thread, &attributes, start, argument, name) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return is_created;
}

/* The caller may be a thread with a table of its own: then the program still has the descriptor. */
static struct snd_ownfd open_again(void)
{
    int number = __atomic_load_n(&snd_rec.file.fd, __ATOMIC_ACQUIRE);

    struct snd_ownfd again = snd_ownfd_take(number >= 0 ? snd_owntable_borrow(number) : -1);
    if (!snd_ownfd_is(&snd_rec.file, again.fd)) {
        snd_ownfd_close(&again);
        again = snd_ownfd_take(snd_place_reopen());
    }
    return again;
}

static __thread int kept __attribute__((tls_model("initial-exec"))) = -1;

/* Of valgrind's own library: it looks up files by the numbers of the first thread, and ends. */
extern void _vgnU_freeres(void) __attribute__((weak)); /* NOLINT: its name */

void snd_apart_keep(void)
{
    if (!_vgnU_freeres && snd_owntable_enter())
        kept = open_again().fd;
}

int snd_apart_kept(void)
{
    return kept;
}

static void do_work(struct job *job)
{
    struct snd_ownfd again = open_again();

    job->result = EBADF;
    if (snd_ownfd_is(&snd_rec.file, again.fd))
        job->result = job->work(again.fd, job->user);
    snd_ownfd_close(&again);
}

static void *run(void *job)
{
    snd_owntable_enter(); /* if refused, the program may see the descriptor for a moment */
    do_work(job);
    return NULL;
}

int snd_apart(snd_apart_work *work, void *user)
{
    struct job job = { work, user, EBADF };
    pthread_t  thread;
    int        cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel); /* `job` is on this stack */
    if (snd_apart_thread(&thread, false, run, &job, "sonde-file"))
        pthread_join(thread, NULL);
    else
        do_work(&job);
    pthread_setcancelstate(cancel, NULL);
    return job.result;
}
