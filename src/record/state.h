/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/state.h - the recording of this process, and who may touch what.
 *
 * A process has one recording at a time, kept in the one global `snd_rec`.
 *
 *   control lock   held through start, stop, step, pause, resume: one at a time.
 *   lock           guards everything in struct snd_recording. Held for memory work only:
 *                  whoever must make a system call on the file counts itself `in_flight`
 *                  and lets go of the lock meanwhile (snd_chunk_reserve).
 *
 * A thread that marks takes neither: it writes into its own chunk (sonde/record.h). It comes
 * here, by the slow path, to attach, to change chunks and to intern a new name. Whoever ends
 * a recording does not wait for the markers: it lays anonymous memory over their chunks
 * ("parks" them), so that a late event goes to discarded memory, never to a closed file.
 *
 * The files of this folder, lowest first. A file includes its own header and those of files listed
 * before it, so that nothing goes in a circle; tools/check_layers reads this list.
 *
 *   record_schema           the numbers of the public header are those of format/
 *   say                     a line to standard error
 *   given                   structs that probes pass
 *   clock                   the clock that stamps events
 *   own_pages               memory of the recorder's own
 *   unload                  whether its code may be unmapped
 *   state                   the recording's data and its two locks
 *   epoch                   marking is on or off
 *   options/step_schedule   which steps are recorded
 *   options/environment     what is read from the environment
 *   options/start_options   what sonde_start() was given
 *   file/bus_errors         stores into the file that the file system cannot take
 *   file/trace_paths        where the files are: names, folder
 *   file/apart_file         work on the file by a thread with descriptors of its own
 *   file/trace_file         one file: made, grown, mapped, trimmed
 *   file/chunk              its parts: reserved, sealed, recycled
 *   tables/intern           its tables
 *   tables/late_table       records for which the tables have no room, in memory
 *   tables/run_metadata     key/value pairs about the run
 *   tables/sampled_threads  records of threads that do not mark for themselves
 *   file/supply             the helper thread
 *   thread/pmc_page         an event's value from its mapped page
 *   thread/thread_events    a thread's events of perf_event_open
 *   thread/thread           a thread: attach, change chunks, detach, park
 *   thread/thread_counts    counters of a thread, for ranges and functions
 *   session/recording       all of these opened and closed together
 *   session/fork            a new process in the middle of a recording
 *   thread/lane             enter, write, leave: the slow path of an event
 *   tables/naming           ids of names, for events and for probes
 *   thread/mark             events
 *   thread/plain_marks      the inline ones as functions, for other languages
 *   thread/thread_naming    names of threads, the own and those that a sampler tells of
 *   tables/typed_facts      what is said of the run, typed
 *   tables/frame_symbols    the functions at the addresses of frames
 *   session/session         start, stop, step, pause
 *   session/lifecycle       load, fork, exit
 *
 * Layer: record (sees base/, format/).
 */
#ifndef SND_RECORD_STATE_H
#define SND_RECORD_STATE_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/data/hash.h"
#include "base/files/own_fd.h"
#include "format/layout.h"
#include "sonde/record.h"

#define SND_NO_CHUNK UINT32_MAX
#define SND_NOTES_SIZE ((size_t)65536)

/* A chunk of the file that this process still cares about. Indices, since the array moves. */
struct snd_chunk {
    uint64_t                 offset, size;
    struct snd_chunk_header *map;     /* NULL once unmapped */
    uint64_t                 used;    /* set when retired */
    uint64_t                 events;  /* in it, once sealed; then they are in snd_rec.events */
    uint32_t                 next;    /* in one list */
    uint64_t                 left;    /* snd_rec.seq when its thread left it: its age */
    bool                     tallied; /* probes add to words in it, without a lock */
    bool                     sealing; /* without the lock, at this moment */
};

/* A queue of chunks, by index. */
struct snd_chunk_list {
    uint32_t head, tail, count;
};

#define SND_COUNTS_MOST 8u /* counters of a thread that ranges have */
#define SND_CACHE_SLOTS 256
#define SND_OWN_SLOTS 64
#define SND_LATE_SLOTS 1024
#define SND_SPARE_SIZE (4 + SND_STRING_MAX)

/* What one thread knows beyond its lane; it lives as long as the thread does. */
struct snd_thread {
    struct sonde_lane        *lane;
    uint32_t                  serial; /* of the recording it is attached to, 0 none */
    uint32_t                  id;     /* in that recording */
    uint32_t                  chunk;  /* its chunk, or SND_NO_CHUNK */
    struct snd_chunk_header  *map;    /* that chunk's memory, the file's or parked */
    size_t                    map_size;
    struct snd_thread_record *record;      /* valid under the lock while attached */
    uint32_t                  lost_since;  /* events dropped since the lane ran dry */
    uint32_t                  ends_since;  /* of those, ends of ranges that were recorded */
    uint32_t                  skip_depth;  /* dropped begins whose ends are to be dropped too */
    uint32_t                  supply_seen; /* snd_rec.supplies when there was no chunk to be had */
    uint64_t                  gap_at; /* time of the pause that the next gap stands for, or 0 */
    uint64_t                 *gap;    /* the gap in its chunk that losses are counted in, or NULL */
    uint32_t           counts_serial; /* snd_rec.serial when `counts` was read: thread_counts.c */
    uint64_t           counts[SND_COUNTS_MOST]; /* at the last begin or end */
    struct snd_thread *next, **back;            /* list of attached threads; back NULL: not in it */
    struct snd_thread *older, **younger;        /* list of all that have not ended */
    char              *spare;                   /* SND_SPARE_SIZE bytes for long names, or NULL */
    struct {
        struct snd_hash hash;
        uint32_t        epoch, id;
    } cache[SND_CACHE_SLOTS]; /* interned lately */
    uint32_t own_chunk;       /* sonde_lane.chunks while own_count was counted */
    uint32_t own_count;       /* names written into that chunk */
    struct {
        struct snd_hash hash;
        uint32_t        chunk, number; /* chunk: as own_chunk */
    } own[SND_OWN_SLOTS];              /* written lately */
    struct {
        uint32_t chunk, id; /* chunk: as own_chunk */
    } late[SND_LATE_SLOTS]; /* late records that the chunk has */
};

struct snd_intern_slot {
    struct snd_hash hash;
    uint32_t        id, type;
};

enum snd_phase {
    SND_IDLE,    /* no recording */
    SND_WAITING, /* between cycles of a schedule: no file */
    SND_OPEN,    /* a file is being written */
    SND_FORKED,  /* in a forked child: the file is made at the first event */
};

/* Which process of a job it is; numbers may be SND_UNKNOWN. */
struct snd_job {
    uint32_t    rank, world_size, local_rank;
    const char *source;    /* who said so: a variable of the environment, or options */
    char        name[256]; /* of the job, plain ASCII, as is the next */
    char        backend[64];
};

struct snd_recording {
    pthread_mutex_t lock;
    pthread_cond_t  wake;    /* of the supply thread */
    pthread_cond_t  settled; /* in_flight fell to 0 */

    enum snd_phase phase;
    uint32_t       serial; /* counts files opened in this process */
    bool           paused;
    bool           usable; /* the library was set up: threads can be detached */
    struct {
        uint32_t epoch;
        uint64_t at; /* raw clock */
    } pauses[64];    /* when an epoch was paused, by epoch: where its open ranges end */
    bool from_run;   /* begun by the environment: sonde run */

    /* options, as given */
    char                  path[PATH_MAX]; /* a file, or a folder ending in '/' */
    size_t                folder_length;  /* index in `path` of the name in the folder */
    struct snd_ownfd      folder;         /* used by trace_paths.c alone */
    uint64_t              max_bytes;
    size_t                chunk_bytes;
    bool                  keep_last, overwrite;
    struct snd_job        job;
    uint32_t              subject_pid;          /* the process that the recording is about */
    char                  subject_program[256]; /* what it runs; empty: /proc says */
    struct sonde_schedule schedule;
    void (*on_cycle)(const struct sonde_cycle *cycle, void *user);
    void    *user;
    uint8_t  session[16];
    uint32_t parent_pid; /* of a forked child, else 0 */
    /* in a forked child without a file: the header of its parent's, for its counts. Owned */
    struct snd_file_header *parent_header;
    bool                    barred; /* the child could not make its file */
    bool                    said;   /* reported that a cycle's file could not be made */
    uint64_t                step;
    uint32_t                cycle;
    char  *notes; /* what sonde_metadata() recorded, for later files: run_metadata.c */
    size_t note_bytes;
    size_t notes_lost; /* not kept: no room for them */

    /* the file */
    char             file_path[PATH_MAX];
    struct snd_ownfd file;      /* used by trace_file.c and trace_paths.c alone */
    uint64_t         file_end;  /* end of what is reserved, or is being reserved */
    uint64_t         file_made; /* atomic: size that the file has been given */
    uint32_t         in_flight;

    /* chunks */
    struct snd_chunk     *chunks;
    uint32_t              chunk_count, chunk_capacity;
    struct snd_chunk_list unused;  /* descriptors */
    struct snd_chunk_list ready;   /* reserved, mapped, faulted in */
    struct snd_chunk_list retired; /* full: to be sealed and unmapped */
    struct snd_chunk_list partial; /* of threads that ended, with room left */
    struct snd_chunk_list sealed;  /* keep-last: oldest first */
    uint64_t              seq;
    uint64_t              events;    /* in sealed chunks */
    bool                  exhausted; /* the limit is reached: no more chunks, ever */
    uint64_t              retry_at;  /* CLOCK_MONOTONIC ns: no reserving before */
    uint32_t              supplies;  /* atomic: counts chunks made ready */

    /* supply thread */
    bool     has_supplier;
    bool     is_alone;    /* no helper is wanted: snd_environment_is_heap() */
    uint32_t supply_turn; /* the current helper's: one of another turn ends when it reads this */
    uint32_t helpers;     /* that have not ended, earlier ones included */

    /* tables */
    uint32_t                table_chunk;   /* the one being filled */
    bool                    table_growing; /* a thread reserves the next one */
    size_t                  table_used;
    struct snd_chunk_list   tables;
    struct snd_intern_slot *slots;
    size_t                  slot_count, slot_used;
    uint64_t   table_bytes, name_bytes; /* name_bytes: of names, of which there may be any number */
    bool       own_names; /* atomic; keep-last: new names go into the chunks that use them */
    uint32_t   next_id[SND_REC_TYPES];
    uint64_t **tallies; /* by id: the words in the file */
    size_t     tally_room;
    struct snd_parked {
        void  *map;
        size_t size;
    } * parked; /* memory of the last recording's tallies: late writers may store into it */
    size_t parked_count;

    /* threads */
    struct snd_thread *threads;
    uint32_t           thread_count;
};

extern struct snd_recording snd_rec;

/*
 * Takes and gives back snd_rec.lock. Meanwhile the thread's lane is busy (a signal handler that
 * marks is refused instead of waiting for its own thread), and it cannot be cancelled (the lock
 * and in_flight would never be given back).
 */
void snd_lock(void);
void snd_unlock(void);
void snd_lock_forget(void); /* in a forked child, where the lock is made anew */

/* The control lock. Recursive: the user's callback runs under it, and may ask for the path or stop. */
extern pthread_mutex_t snd_control;

void snd_wake_init(void);    /* once for the process: snd_rec.wake */
void snd_locks_remake(void); /* in a forked child */

/* The process that the recording is about: this one, unless the options name another. */
uint32_t snd_subject(void);

/* What sonde_epoch() is in a new process that nobody has told the recorder of: fork.h. */
#define SND_EPOCH_WIPED UINT32_MAX

/*
 * The header page of the file, at an address that stays valid for ever (anonymous memory
 * between recordings), so that its counters can be bumped without the lock. NULL before the
 * first recording.
 */
extern struct snd_file_header *snd_header;

static inline void snd_count(uint64_t *counter, uint64_t n)
{
    __atomic_fetch_add(counter, n, __ATOMIC_RELAXED);
}

#endif
