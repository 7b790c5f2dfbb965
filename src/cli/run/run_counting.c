/* SPDX-License-Identifier: Apache-2.0 */
/* snd_parent_counters: `sonde run --counters`. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count_of.h"
#include "cli/process/find_program.h"
#include "cli/run/run_parents.h"
#include "model/counters/counter_names.h"
#include "native/counters/counter_runs.h"

/* Who has counters of threads besides the whole program. */
struct holder {
    const char *option, *what, *variable;
};

/*
 * Can a thread read this one of its own? As getrusage(2) and its clock have it; or as an event. One that
 * needs a descriptor in every thread is read if the list has no "default" in it. `as` is what the program
 * is to count.
 */
static bool can_read(const struct snd_counter_event *event, bool is_named, char *as, size_t size,
                     char why[160])
{
    struct snd_counter_opened opened;

    snprintf(as, size, "%s", event->name);
    if (event->known && event->known->thread != SND_COUNTER_BY_EVENT && !event->user &&
        !event->kernel)
        return true;
    snprintf(why, 160, "events by number are of the whole program");
    if (!event->known)
        return false;
    snd_counter_open(event, 0, SND_COUNT_THREAD, -1, &opened);
    if (opened.fd < 0) {
        snprintf(why, 160, "%s", opened.why);
        return false;
    }
    bool fits = is_named || snd_counter_is_mapped(opened.fd);
    close(opened.fd);
    if (opened.user_only)
        snprintf(as, size, "%s:u", event->name);
    return fits;
}

/* Those that a thread can read of itself, in the environment. -1, or an exit status. */
static int set_holder(const struct snd_command *self, const struct holder *holder,
                      const struct snd_counter_list *list, bool is_named)
{
    struct sonde_buffer names = { 0 }, others = { 0 };
    char                as[SND_COUNTER_NAME + 2], why[160];
    size_t              count = 0;
    int                 status = -1;

    for (size_t i = 0; i < list->count; i++) {
        const char *name = list->items[i].name;
        snprintf(why, sizeof why, "there are %u before it, and no more are read",
                 SND_THREAD_COUNTERS_MOST);
        if (count < SND_THREAD_COUNTERS_MOST &&
            can_read(&list->items[i], is_named, as, sizeof as, why))
            snd_buf_format(&names, "%s%s", count++ ? "," : "", as);
        else
            snd_buf_format(&others, "%s%s (%s)", others.length ? ", " : "", name, why);
    }
    if (names.length == 0)
        status = snd_usage_error(self,
                                 "%s: %s cannot have %s; name task-clock, page-faults, "
                                 "minor-faults, major-faults or context-switches",
                                 holder->option, holder->what, snd_buf_string(&others));
    else if (others.length > 0 && is_named)
        (void)snd_failure("run: %s: %s have no %s", holder->option, holder->what,
                          snd_buf_string(&others));
    if (status < 0 && (names.failed || setenv(holder->variable, names.bytes, 1) != 0))
        status = snd_failure("run: out of memory");
    sonde_buffer_release(&names);
    sonde_buffer_release(&others);
    return status;
}

static int set_holders(const struct snd_command *self, const struct snd_run_probes *chosen,
                       const struct snd_counter_list *list)
{
    const struct {
        bool          asked;
        struct holder holder;
    } holders[] = {
        { chosen->per_range, { "--per-range", "ranges", "SONDE_RANGE_COUNTERS" } },
        { chosen->per_function, { "--per-function", "functions", "SONDE_FUNCTION_COUNTERS" } },
    };
    const char *words = chosen->counters ? chosen->counters : "";
    bool        is_named = *words != '\0' && !strstr(words, "default");
    int         status = -1;

    if (chosen->per_function && chosen->timeline)
        return snd_usage_error(self, "--per-function adds up over calls, and --timeline has each "
                                     "call by itself: leave one off");
    for (size_t i = 0; i < SND_COUNT_OF(holders) && status < 0; i++)
        if (!holders[i].asked)
            unsetenv(holders[i].holder.variable); /* an outer run's */
        else
            status = set_holder(self, &holders[i].holder, list, is_named);
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
    else
        status = set_holders(self, chosen, &runs->list);
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
    char                file[PATH_MAX];

    snd_program_file(program[0], file);
    join(program, &command);
    if (snd_counter_runs_write(runs, folder, file, snd_buf_string(&command), &err) != SONDE_OK)
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
