/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde record: has the processes of a `sonde run --standby`, or one that runs, record some steps, all of them the same.
 *
 * In two parts, so that no rank is late: first each opens its file and attaches its probes, which
 * may take a while; then all are told the step to begin with, which none has reached. Every program runs on
 * meanwhile: its thread does no more at the end of a step than to begin and end the marking.
 */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/proc_files.h"
#include "base/text/buf.h"
#include "cli/commands.h"
#include "cli/process/ask_running.h"
#include "cli/process/listeners.h"
#include "cli/run/run_args.h"
#include "cli/run/run_standby.h"

#define STEPS_DEFAULT 5
#define CANCEL_SECONDS 10
#define PREPARE_SECONDS 180 /* the probe of this torch may have to be compiled first */
#define AHEAD_STEPS 2       /* how far ahead the first step is; more where steps are short: */
#define AHEAD_SECONDS 0.3
#define TRIES 4 /* to name a step that no rank has reached */
#define NUMBERS_MOST 100000
#define ENVIRONMENT_MOST (4 << 20) /* what execve takes at most, by default */

struct record_args {
    int64_t     steps;
    const char *seconds, *timeout, *gpu;
    bool        ops, shapes, memory, modules, stacks;
    bool        list, quiet;
};

#define AT(member) offsetof(struct record_args, member)
static const struct snd_option options[] = {
    { 0, "steps", "N",
      "record N steps (5); optimizers, step() of profiles and sonde.step() end one",
      SND_OPTION_NUMBER, AT(steps), 1 },
    { 0, "seconds", "S", "record S seconds from now instead", SND_OPTION_TEXT, AT(seconds), 0 },
    { 0, "ops", NULL, "operators of PyTorch (always)", SND_OPTION_FLAG, AT(ops), 0 },
    { 0, "shapes", NULL, "operators with the shapes of their inputs", SND_OPTION_FLAG, AT(shapes),
      0 },
    { 0, "memory", NULL, "allocations and frees of tensors", SND_OPTION_FLAG, AT(memory), 0 },
    { 0, "modules", NULL, "operators with the module that they belong to", SND_OPTION_FLAG,
      AT(modules), 0 },
    { 0, "stacks", NULL, "operators with the Python stack that called them", SND_OPTION_FLAG,
      AT(stacks), 0 },
    { 0, "gpu", "[=HOW]",
      "CUDA kernels, copies and fills: full (the default), or light: without CUDA's calls",
      SND_OPTION_WORDS, AT(gpu), 0 },
    { 0, "timeout", "S", "give up after S seconds (600)", SND_OPTION_TEXT, AT(timeout), 0 },
    { 0, "list", NULL, "print who listens, its step, and what it recorded last", SND_OPTION_FLAG,
      AT(list), 0 },
    { 'q', "quiet", NULL, "print errors only", SND_OPTION_FLAG, AT(quiet), 0 },
};

static volatile int quit;

static void on_signal(int signal)
{
    (void)signal;
    quit = 1;
}

/* -------------------------------------------------------------------- which folder */

/* Of the program with this number: what `sonde run --standby` put into its environment. */
static bool folder_of_process(pid_t pid, char folder[PATH_MAX])
{
    static const char name[] = SND_STANDBY_VARIABLE "=";
    char             *all = malloc(ENVIRONMENT_MOST);
    size_t            length = all ? snd_proc_read(pid, "environ", all, ENVIRONMENT_MOST) : 0;
    bool              found = false;

    for (const char *at = all; length > 0 && !found && at < all + length; at += strlen(at) + 1)
        if (strncmp(at, name, strlen(name)) == 0)
            found = snprintf(folder, PATH_MAX, "%s", at + strlen(name)) < PATH_MAX;
    free(all);
    return found;
}

static bool is_number(const char *text)
{
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* The folder in which a process listens; it is asked to, unless that is only to be listed. -1, or the exit status. */
static int find_folder(const char *operand, pid_t pid, bool may_ask, char folder[PATH_MAX])
{
    struct sonde_error err = { 0 };

    if (folder_of_process(pid, folder))
        return -1;
    if (kill(pid, 0) != 0 && errno == ESRCH)
        return snd_failure("record %s: no such process", operand);
    if (!may_ask)
        return snd_failure("record %s: it was not started by sonde run --standby, or is another "
                           "user's",
                           operand);
    return snd_running_listen(pid, folder, &quit, &err) == SONDE_OK
               ? -1
               : snd_failure("record %s: it was not started by sonde run --standby: %s", operand,
                             err.message);
}

/* FOLDER or PID. -1, or the exit status after saying why. */
static int find_listeners(const struct snd_command *self, const char *operand, bool may_ask,
                          struct snd_listeners *all, char folder[PATH_MAX])
{
    struct sonde_error err = { 0 };
    pid_t              pid = 0;
    struct stat        st;

    if (is_number(operand) && stat(operand, &st) != 0) {
        pid = (pid_t)strtol(operand, NULL, 10);
        int status = find_folder(operand, pid, may_ask, folder);
        if (status >= 0)
            return status;
    } else if (!realpath(operand, folder)) {
        return snd_failure("record %s: %s", operand, strerror(errno));
    }
    enum sonde_status status = snd_listeners_find(all, folder, pid, &err);
    if (status == SONDE_OK && pid != 0 && all->count == 0) /* torchrun's, say: all of its job */
        status = snd_listeners_find(all, folder, 0, &err);
    if (status == SONDE_OK && all->count == 0)
        return snd_failure(
            "record %s: no process listens: none has imported torch yet, or all have ended",
            operand);
    return status == SONDE_OK ? -1 : snd_report_error(self, operand, &err);
}

/* ------------------------------------------------------------------------- --list */

static void print_name(FILE *out, const struct snd_listener *one)
{
    if (one->rank >= 0)
        fprintf(out, "rank %lld  pid %d", (long long)one->rank, (int)one->pid);
    else
        fprintf(out, "pid %d", (int)one->pid);
}

static int list(const struct snd_command *self, const struct snd_listeners *all)
{
    for (size_t i = 0; i < all->count; i++) {
        const struct snd_listener *one = &all->items[i];
        print_name(stdout, one);
        printf("  step %lld  %.2f steps/s  %s  %s%s\n", (long long)one->step, one->rate,
               snd_buf_string(&one->doing), snd_buf_string(&one->last),
               one->worker ? "  (loads data)" : "");
    }
    return snd_finish_stdout(self);
}

/* --------------------------------------------------------------- who takes part */

/*
 * Those that have ended a step; if there is none yet, the ranks of the job; else all. So neither a
 * launcher that has imported torch nor a process that loads data is waited for.
 */
static size_t choose(struct snd_listeners *all)
{
    bool   steps = false, ranks = false;
    size_t count = 0;

    for (size_t i = 0; i < all->count; i++) {
        steps |= all->items[i].step > 0;
        ranks |= all->items[i].rank >= 0;
    }
    for (size_t i = 0; i < all->count; i++) {
        struct snd_listener *one = &all->items[i];
        one->chosen = !one->worker && (steps ? one->step > 0 : !ranks || one->rank >= 0);
        count += one->chosen;
    }
    return count;
}

static void say_who(const struct snd_listeners *all, size_t chosen, const char *folder)
{
    int64_t world = 0;
    size_t  ranks = 0;

    for (size_t i = 0; i < all->count; i++) {
        const struct snd_listener *one = &all->items[i];
        ranks += one->chosen && one->rank >= 0;
        world = one->world > world ? one->world : world;
    }
    fprintf(stderr, "sonde: %zu process%s in %s", chosen, chosen == 1 ? "" : "es", folder);
    if (world > 0)
        fprintf(stderr, ", %zu of %lld ranks%s", ranks, (long long)world,
                (int64_t)ranks < world ? "; the others are on other hosts, or not ready yet" : "");
    fputc('\n', stderr);
}

/* --------------------------------------------------------------------- preparing */

/* The first number that no folder has; -1, or the exit status. */
static int make_folder(const char *folder, char made[PATH_MAX])
{
    for (int i = 1; i < NUMBERS_MOST; i++) {
        if (snprintf(made, PATH_MAX, "%s/%d", folder, i) >= PATH_MAX)
            break;
        if (mkdir(made, 0700) == 0)
            return -1;
        if (errno != EEXIST)
            break;
    }
    return snd_failure("record: cannot make a folder in %s: %s", folder, strerror(errno));
}

static void list_words(const struct record_args *args, struct sonde_buffer *words)
{
    const struct {
        bool        wanted;
        const char *word;
    } all[] = { { args->shapes, ",shapes" },
                { args->memory, ",memory" },
                { args->modules, ",modules" },
                { args->stacks, ",stacks" },
                { args->gpu && !*args->gpu, ",gpu" },
                { args->gpu && strcmp(args->gpu, "full") == 0, ",gpu=full" },
                { args->gpu && strcmp(args->gpu, "light") == 0, ",gpu=light" } };

    snd_buf_text(words, "ops");
    for (size_t i = 0; i < SND_COUNT_OF(all); i++)
        if (all[i].wanted)
            snd_buf_text(words, all[i].word);
}

/* Says why each that did not answer with `word` did not; how many did. */
static size_t count_answers(struct snd_listeners *all, const char *word)
{
    size_t count = 0;

    for (size_t i = 0; i < all->count; i++) {
        struct snd_listener *one = &all->items[i];
        if (!one->chosen)
            continue;
        if (snd_listener_said(one, word)) {
            count++;
            continue;
        }
        const char *why = snd_listener_said(one, "failed");
        one->chosen = false;
        fprintf(stderr, "sonde: record: ");
        print_name(stderr, one);
        fprintf(stderr, ": %s\n",
                why                               ? why
                : one->state == SND_LISTENER_GONE ? "it has ended"
                                                  : "it does not answer");
    }
    return count;
}

static size_t prepare(struct snd_listeners *all, const struct record_args *args, const char *folder)
{
    struct sonde_buffer words = { 0 };

    list_words(args, &words);
    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].chosen)
            snd_listener_say(&all->items[i], "prepare %s %s/%s.sonde", snd_buf_string(&words),
                             folder, all->items[i].name);
    sonde_buffer_release(&words);
    snd_progress_start("sonde: attaching");
    snd_listeners_wait(all, PREPARE_SECONDS, &quit);
    snd_progress_stop();
    return count_answers(all, "ready");
}

/* ---------------------------------------------------------------------- the steps */

/* A step that no rank should have reached when it hears of it. */
static int64_t step_ahead(const struct snd_listeners *all, int tries)
{
    int64_t step = 0;
    double  rate = 0;

    for (size_t i = 0; i < all->count; i++) {
        const struct snd_listener *one = &all->items[i];
        const char                *said = snd_listener_said(one, "ready");
        if (!said)
            said = snd_listener_said(one, "late");
        int64_t at = said ? strtoll(said, NULL, 10) : one->step;
        if (one->chosen && at > step)
            step = at;
        if (one->chosen && one->rate > rate)
            rate = one->rate;
    }
    return step + AHEAD_STEPS + (int64_t)ceil(rate * AHEAD_SECONDS * tries);
}

/* Tells all the first step, anew if one of them was further than thought. 0: that did not work. */
static int64_t arm(struct snd_listeners *all, int64_t count)
{
    for (int tries = 1; tries <= TRIES && !quit; tries++) {
        int64_t first = step_ahead(all, tries * tries);
        bool    late = false;
        for (size_t i = 0; i < all->count; i++)
            if (all->items[i].chosen)
                snd_listener_say(&all->items[i], "from %lld %lld", (long long)first,
                                 (long long)count);
        snd_listeners_wait(all, PREPARE_SECONDS, &quit);
        for (size_t i = 0; i < all->count; i++)
            late |= all->items[i].chosen && snd_listener_said(&all->items[i], "late") != NULL;
        if (!late)
            return first;
    }
    return 0;
}

static void print_result(const struct snd_listener *one)
{
    const char *said = snd_listener_said(one, "done");
    long long   first = 0, last = 0, bytes = 0;

    print_name(stderr, one);
    if (said && sscanf(said, "%lld %lld %lld", &first, &last, &bytes) == 3)
        fprintf(stderr, "  steps %lld to %lld  %.2f MB\n", first, last, (double)bytes / 1e6);
    else if (snd_listener_said(one, "canceled"))
        fprintf(stderr, "  canceled\n");
    else if (one->state == SND_LISTENER_GONE)
        fprintf(stderr, "  ended meanwhile; its trace has what was recorded until then\n");
    else
        fprintf(stderr, "  goes on recording\n");
}

/* An interrupt, or the time is over: what has not begun is not to begin. */
static void cancel(struct snd_listeners *all)
{
    static const int never = 0;

    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].chosen && all->items[i].state == SND_LISTENER_ASKED)
            snd_listener_say(&all->items[i], "cancel");
    snd_listeners_wait(all, CANCEL_SECONDS, &never);
}

/* Waits for all; the exit status. */
static int finish(struct snd_listeners *all, double timeout, const char *folder, bool quiet)
{
    size_t missing = 0;

    for (size_t i = 0; i < all->count; i++)
        if (all->items[i].state == SND_LISTENER_ANSWERED)
            all->items[i].state = SND_LISTENER_ASKED;
    if (!snd_listeners_wait(all, timeout, &quit))
        cancel(all);
    for (size_t i = 0; i < all->count; i++) {
        const struct snd_listener *one = &all->items[i];
        if (!one->chosen)
            continue;
        bool done = snd_listener_said(one, "done") != NULL;
        missing += !done;
        if (!quiet || !done)
            print_result(one);
    }
    if (missing > 0 && rmdir(folder) == 0)
        return snd_failure("record: nothing was recorded");
    if (!quiet)
        fprintf(stderr, "sonde: recorded: %s\n", folder);
    return missing > 0 ? SND_EXIT_FAILED : SND_EXIT_OK;
}

static int record(struct snd_listeners *all, const struct record_args *args, const char *folder,
                  double seconds, double timeout)
{
    char   into[PATH_MAX];
    size_t chosen = choose(all);

    if (!args->quiet)
        say_who(all, chosen, folder);
    int status = make_folder(folder, into);
    if (status >= 0)
        return status;
    if (prepare(all, args, into) == 0) {
        rmdir(into);
        return snd_failure("record: nothing was recorded");
    }
    if (args->seconds) {
        for (size_t i = 0; i < all->count; i++)
            if (all->items[i].chosen)
                snd_listener_say(&all->items[i], "seconds %.9g", seconds);
        snd_listeners_wait(all, PREPARE_SECONDS, &quit);
        timeout += seconds;
    } else {
        int64_t first = arm(all, args->steps);
        if (first == 0 && !quit) {
            cancel(all);
            rmdir(into);
            return snd_failure("record: the steps are too short to begin with the same one on all "
                               "ranks; --seconds S records a span of time");
        }
        if (!args->quiet && !quit)
            fprintf(stderr, "sonde: recording steps %lld to %lld\n", (long long)first,
                    (long long)(first + args->steps - 1));
    }
    count_answers(all, "armed");
    return finish(all, timeout, into, args->quiet);
}

/* ---------------------------------------------------------------------- the command */

static bool parse_seconds(const char *text, double *seconds)
{
    char *end;

    *seconds = strtod(text, &end);
    return *text != '\0' && *end == '\0' && *seconds > 0 && *seconds < 1e9;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct record_args   args = { 0 };
    struct snd_listeners all = { 0 };
    struct sigaction     action = { .sa_handler = on_signal };
    char                 folder[PATH_MAX];
    double               seconds = 0, timeout = 600;
    int                  operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands != 1)
        return snd_usage_error(self, operands == 0 ? "missing FOLDER or PID"
                                                   : "expected one folder or PID");
    if (args.seconds && args.steps)
        return snd_usage_error(self, "--steps and --seconds exclude each other");
    if ((status = snd_run_args_check_gpu(self, args.gpu)) >= 0)
        return status;
    if (args.seconds && !parse_seconds(args.seconds, &seconds))
        return snd_usage_error(self, "--seconds: expected a number > 0, got '%s'", args.seconds);
    if (args.timeout && !parse_seconds(args.timeout, &timeout))
        return snd_usage_error(self, "--timeout: expected a number > 0, got '%s'", args.timeout);
    if (args.steps == 0)
        args.steps = STEPS_DEFAULT;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    status = find_listeners(self, argv[0], !args.list, &all, folder);
    if (status < 0)
        status = args.list ? list(self, &all) : record(&all, &args, folder, seconds, timeout);
    snd_listeners_release(&all);
    return status;
}

const struct snd_command snd_command_record = {
    .name = "record",
    .operands = "FOLDER|PID",
    .summary = "have a program that stands by record some steps, the same on all ranks",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
