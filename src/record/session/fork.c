/* SPDX-License-Identifier: Apache-2.0 */
#include "record/session/fork.h"

#include <errno.h>
#include <sched.h>
#include <unistd.h>

#include "record/file/chunk.h"
#include "record/epoch.h"
#include "record/file/trace_file.h"
#include "record/tables/intern.h"
#include "record/tables/late_table.h"
#include "record/session/recording.h"
#include "record/tables/sampled_threads.h"
#include "record/say.h"
#include "record/options/step_schedule.h"

/* Counts the child in its parent's file; the first of them is also reported on stderr. */
static void count_lost_child(const struct sonde_error *err)
{
    struct snd_file_header *family = snd_rec.parent_header;
    uint64_t                before = 0;

    if (family) {
        __atomic_store_n(&family->lost_children_why, (uint32_t)err->os_error, __ATOMIC_RELAXED);
        before = __atomic_fetch_add(&family->lost_children, 1, __ATOMIC_RELAXED);
    }
    if (before == 0)
        snd_say("%s; the forked process %d runs unrecorded, and so will others like it",
                err->message, (int)getpid());
}

/* Control or the lock held. */
static void leave_parent_header(void)
{
    if (snd_rec.parent_header)
        snd_file_unmap(snd_rec.parent_header, SND_HEADER_SIZE);
    snd_rec.parent_header = NULL;
}

void snd_fork_open_child(void)
{
    struct sonde_error err = { .os_error = 0 };

    if (snd_recording_open(&err) != SONDE_OK) {
        snd_epoch_off();
        snd_rec.phase = SND_WAITING;
        snd_rec.barred = true;
        count_lost_child(&err);
        return;
    }
    leave_parent_header();
    if (snd_schedule_is_warming_up())
        __atomic_store_n(&snd_header->valid_from, UINT64_MAX, __ATOMIC_RELAXED);
}

void snd_fork_lock(void)
{
    pthread_mutex_lock(&snd_control);
    snd_lock();
}

void snd_fork_unlock(void)
{
    snd_unlock();
    pthread_mutex_unlock(&snd_control);
}

/* What a thread that is not in this process was in the middle of is left as it is, for ever. */
static void forget_file(enum snd_survivor survivor)
{
    bool at_rest = survivor != SND_SURVIVOR_UNKNOWN;

    leave_parent_header();
    snd_rec.parent_header = snd_file_header_again();
    if (!at_rest)
        snd_chunks_abandon();
    snd_threads_forget(survivor);
    if (at_rest) {
        snd_chunks_clear();
        snd_sampled_clear();
        snd_late_clear();
        snd_table_stop();
    } else {
        snd_sampled_abandon();
        snd_late_abandon();
        snd_table_abandon();
    }
    snd_file_leave();
    snd_rec.file_path[0] = '\0'; /* that is the parent's */
}

/* The epoch last: until then other threads of the new process wait, or are not there yet. */
void snd_fork_in_child(enum snd_survivor survivor)
{
    bool on = snd_epoch_is_on() || snd_rec.barred;
    bool records = snd_rec.phase == SND_OPEN || snd_rec.phase == SND_FORKED || snd_rec.barred;

    snd_locks_remake();
    snd_rec.has_supplier = false;
    snd_rec.helpers = 0;
    snd_rec.parent_pid = (uint32_t)getppid();
    snd_rec.subject_pid = 0;
    snd_rec.subject_program[0] = '\0';
    if (snd_rec.phase == SND_OPEN)
        forget_file(survivor);
    if (records) {
        snd_rec.phase = SND_FORKED;
        snd_rec.barred = false;
        snd_rec.serial++;
    }
    if (records && on)
        snd_epoch_on();
    else
        snd_epoch_off();
}

/* The options themselves may be half set: another thread held the control lock. */
static void give_up_child(void)
{
    struct sonde_error err;

    snd_fail(&err, SONDE_E_BUSY,
             "a process was made by clone() while another thread started or stopped the recording");
    err.os_error = EBUSY;
    if (snd_rec.phase == SND_OPEN)
        forget_file(SND_SURVIVOR_UNKNOWN);
    if (snd_rec.phase != SND_IDLE)
        count_lost_child(&err);
    snd_rec.phase = SND_IDLE;
    snd_rec.barred = false;
    snd_fork_in_child(SND_SURVIVOR_UNKNOWN);
}

/* Of the parent's threads one is here. If another held a lock, what that guards may be half done. */
static void enter_new_process(void)
{
    bool controlled = pthread_mutex_trylock(&snd_control) != 0;
    bool locked = pthread_mutex_trylock(&snd_rec.lock) != 0;

    if (controlled)
        give_up_child();
    else
        snd_fork_in_child(locked ? SND_SURVIVOR_UNKNOWN : SND_SURVIVOR_ANY);
}

void snd_fork_notice(void)
{
    if (sonde_epoch() != SND_EPOCH_WIPED || !snd_rec.usable)
        return;
    /* It, too, was wiped: this is the new process's own. */
    while (__atomic_exchange_n(&sonde_epoch_.noticing, 1, __ATOMIC_ACQUIRE))
        sched_yield();
    if (sonde_epoch() == SND_EPOCH_WIPED)
        enter_new_process();
    __atomic_store_n(&sonde_epoch_.noticing, 0, __ATOMIC_RELEASE);
}
