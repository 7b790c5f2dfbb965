/* SPDX-License-Identifier: Apache-2.0 */
/* snd_parent_counters: `sonde run --counters`. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/runparents.h"
#include "native/counterruns.h"

/*
 * SONDE_RANGE_COUNTERS: those that a thread can read of itself without a descriptor, which the program
 * might close or miss. -1, or an exit status.
 */
static int set_per_range(const struct snd_command *self, const struct snd_counter_list *list,
                         bool is_named)
{
    struct sonde_buffer names = { 0 }, others = { 0 };
    int                 status = -1;

    for (size_t i = 0; i < list->count; i++) {
        const struct snd_counter_event *event = &list->items[i];
        bool can = event->known && event->known->thread != SND_COUNTER_BY_EVENT && !event->user &&
                   !event->kernel;
        struct sonde_buffer *to = can ? &names : &others;
        snd_buf_format(to, "%s%s", to->length ? "," : "", event->name);
    }
    if (names.length == 0)
        status = snd_usage_error(self,
                                 "--per-range: ranges cannot have %s; name task-clock, "
                                 "page-faults, minor-faults, major-faults or context-switches",
                                 snd_buf_string(&others));
    else if (others.length > 0 && is_named)
        (void)snd_failure("run: --per-range: ranges have no %s, the whole program has",
                          snd_buf_string(&others));
    if (status < 0 && (names.failed || setenv("SONDE_RANGE_COUNTERS", names.bytes, 1) != 0))
        status = snd_failure("run: out of memory");
    sonde_buffer_release(&names);
    sonde_buffer_release(&others);
    return status;
}

static int prepare(const struct snd_command *self, const struct snd_run_probes *chosen,
                   void **state)
{
    struct snd_counter_runs *runs = calloc(1, sizeof *runs);
    struct sonde_error       err;

    *state = runs;
    if (!runs)
        return snd_failure("run: out of memory");
    const char *names = chosen->counters ? chosen->counters : "";
    int         status = -1;
    if (snd_counters_parse(names, &runs->list, &err) != SONDE_OK)
        status = snd_usage_error(self, "--counters: %s", err.message);
    else if (chosen->per_range)
        status = set_per_range(self, &runs->list, *names != '\0');
    if (status >= 0)
        free(runs);
    return status;
}

static void forked(void *state, pid_t pid)
{
    snd_counter_runs_begin(state, pid);
}

static void ended(void *state, const struct snd_child *child)
{
    snd_counter_runs_end(state, child->elapsed_ns, &child->usage);
}

/* As a person would type it, roughly: words with blanks between them. */
static void join(char **program, struct sonde_buffer *command)
{
    for (char **word = program; *word; word++)
        snd_buf_format(command, "%s%s", word == program ? "" : " ", *word);
}

/* Does not return. */
static void write_apart(const struct snd_counter_runs *runs, const char *folder, char **program)
{
    struct sonde_buffer command = { 0 };
    struct sonde_error  err;

    join(program, &command);
    if (snd_counter_runs_write(runs, folder, snd_buf_string(&command), &err) != SONDE_OK)
        _exit(snd_failure("run: the counters are not recorded: %s", err.message));
    _exit(SND_EXIT_OK);
}

/* In a process of its own: the recorder is loaded there. */
static void write_runs(void *state, const char *folder, char **program)
{
    const struct snd_counter_runs *runs = state;

    if (runs->failed)
        (void)snd_failure("run: out of memory: the counters of a run are missing");
    if (runs->count == 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        write_apart(runs, folder, program);
    if (pid < 0)
        (void)snd_failure("run: the counters are not recorded: cannot start a process: %s",
                          strerror(errno));
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

static void release(void *state)
{
    snd_counter_runs_free(state);
}

const struct snd_run_parent snd_parent_counters = { prepare, forked, ended, write_runs, release };
