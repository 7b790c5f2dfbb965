/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/run/run_folder.h - the folder that the processes of a `sonde run` write their files into.
 *
 * Whoever holds the lock (flock) of what is at the path owns the path: a trace that is being
 * recorded is never replaced, however many runs begin at once. A trace that nobody holds, and no
 * process still writes, is replaced by the next run of its name.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_RUN_RUN_FOLDER_H
#define SND_CLI_RUN_RUN_FOLDER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text/buf.h"

struct snd_run_folder {
    struct sonde_buffer path;   /* as the user sees it; owned, as is the next */
    struct sonde_buffer full;   /* absolute, with a slash at its end: SONDE_TRACE */
    struct sonde_buffer aside;  /* where an older trace waits until there is a newer one */
    struct sonde_buffer others; /* run_others.h: absolute, with a slash; empty: there is none */
    char                others_name[48];
    int    others_fd, others_parent; /* while it has a name: it, and the folder it is in */
    int    fd;                       /* the folder, locked */
    size_t files;                    /* this and the rest: set by _settle */
    size_t living;                   /* processes that may still write: then it stays a folder */
    bool   moved;                    /* it is not at `path` any more */
};

/*
 * Makes the empty folder `path`. If another run still records there: PATH-2, PATH-3 and so on
 * before the ending, if `numbered`; PATH/HOST-PID.sonde, if that run is of another host or both are
 * parts of a job; or else it is refused. -1, or an exit status after saying why;
 * in both cases the caller releases it.
 */
int  snd_run_folder_make(struct snd_run_folder *folder, const char *path, bool numbered);
void snd_run_folder_release(struct snd_run_folder *folder);

/* Nothing was recorded: the older trace, if there was one, stays. */
void snd_run_folder_undo(struct snd_run_folder *folder);

/*
 * The program has ended: the older trace is removed, and a single file that no process writes to
 * any more becomes `path` itself. If there is no file, and no process that could still make one,
 * nothing is done: the caller may find out why, and calls _undo.
 */
void snd_run_folder_settle(struct snd_run_folder *folder);

#define SND_RUN_HOST ".host"       /* in the folder: the name of the host that records into it */
#define SND_INNER_RUN ".inner-run" /* the file of the next two */
/* A `sonde run` inside another run leaves its trace's name there, for the outer one's messages. */
void snd_run_folder_note_inner(const char *outer, const char *inner);
/* What an inner run has left; "" if there was none. */
void snd_run_folder_read_inner(const struct snd_run_folder *folder, char *inner, size_t size);

/* Is there a trace in the folder beside the one of this name? */
bool snd_run_folder_has_others(const struct snd_run_folder *folder, const char *name);

/* Why no file can be made in the folder, as an errno; 0 if one can be. */
int snd_run_folder_try(const struct snd_run_folder *folder);

/* Removes a trace, file or folder. */
void snd_run_folder_drop(const char *path);

#endif
