/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde attach: samples a running process and its descendants, from outside.
 *
 * Nothing is put into it. A program of any language is sampled by the kernel (native/watch.h). Of a
 * Python the memory is read (process_vm_readv), and a thread that runs is halted
 * for a moment where its stack cannot be read otherwise (ptrace). The kernel permits both to its
 * user and to root (ptrace(2), "Ptrace access mode checking").
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "cli/after/after_run.h"
#include "cli/commands.h"
#include "cli/after/losses.h"
#include "cli/process/observers.h"
#include "cli/run/run_folder.h"
#include "cli/run/run_probes.h"
#include "cli/process/outside.h"
#include "native/watch.h"
#include "pystack/outside/observe.h"

#define HZ_DEFAULT 100
#define START_TRIES 50 /* to find the interpreter of a Python that is starting: half a second */
#define START_REST_NS 10000000

struct attach_args {
    const char          *duration;
    int64_t              hz;
    bool                 nonblocking, off_cpu, quiet, verbose;
    bool                 native; /* it runs no Python */
    struct snd_after_run after;
};

#define AT(member) offsetof(struct attach_args, member)
#define SHOWN(member) AT(after.shown.member)
static const struct snd_option options[] = {
    { 'o', "output", "TRACE",
      "trace to write (PID.sonde in the current folder); an extension selects another format: "
      ".speedscope.json, .folded, .json",
      SND_OPTION_TEXT, AT(after.output), 0 },
    { 0, "sample", "[HZ]", "sample the stack of every thread at HZ (Python: 100, others: 1000)",
      SND_OPTION_MAYBE, AT(hz), 0 },
    { 'd', "duration", "SECONDS", "stop after SECONDS (default: when the process ends, or Ctrl-C)",
      SND_OPTION_TEXT, AT(duration), 0 },
    { 0, "off-cpu", NULL,
      "of a program without Python: where its threads wait, too, and for how long", SND_OPTION_FLAG,
      AT(off_cpu), 0 },
    { 0, "nonblocking", NULL,
      "never stop a thread; stacks that change while they are read are dropped", SND_OPTION_FLAG,
      AT(nonblocking), 0 },
    { 'p', "print", NULL,
      "show what was recorded; without -o, the trace is kept until the next --print",
      SND_OPTION_FLAG, AT(after.print), 0 },
    { 0, "view", "LIST", "with --print: the views to show (samples, functions)", SND_OPTION_LIST,
      AT(after.view), 0 },
    SND_VIEW_OPTIONS(SHOWN),
    { 'q', "quiet", NULL, "do not print where the trace is", SND_OPTION_FLAG, AT(quiet), 0 },
    { 'v', "verbose", NULL, "print where the trace is (the default)", SND_OPTION_FLAG, AT(verbose),
      0 },
};

static volatile int quit;

static void on_signal(int signal)
{
    (void)signal;
    quit = 1;
}

static void take_signals(void)
{
    static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
    struct sigaction action = { .sa_handler = on_signal };

    for (size_t i = 0; i < SND_COUNT_OF(numbers); i++)
        sigaction(numbers[i], &action, NULL);
}

static bool parse_pid(const char *text, pid_t *pid)
{
    char *end;
    long  value = strtol(text, &end, 10);

    *pid = (pid_t)value;
    return *text != '\0' && *end == '\0' && value > 0 && value <= INT32_MAX;
}

static bool parse_duration(const char *text, uint64_t *ns)
{
    char  *end;
    double seconds = strtod(text, &end);

    if (*text == '\0' || *end != '\0' || !(seconds > 0 && seconds < 1e9))
        return false;
    *ns = (uint64_t)(seconds * 1e9);
    return true;
}

/* Checks before anything is created: does it exist, is it Python, may it be read? */
static int check(const struct snd_command *self, const char *name, pid_t pid, bool *native)
{
    const struct timespec rest = { 0, START_REST_NS };
    struct snd_python     python;
    struct sonde_error    err = { 0 };

    if (pid == getpid())
        return snd_failure("attach %s: cannot attach to itself", name);
    enum sonde_status status = snd_python_find(&python, pid, &err);
    for (int i = 0; status == SONDE_E_STATE && i < START_TRIES; i++) {
        clock_nanosleep(CLOCK_MONOTONIC, 0, &rest, NULL);
        status = snd_python_find(&python, pid, &err);
    }
    *native = status == SONDE_E_UNSUPPORTED && snd_is_other_program(pid);
    if (*native)
        status = snd_watch_check(pid, &err);
    else if (status == SONDE_OK)
        status = snd_observe_check(&err);
    return status == SONDE_OK ? -1 : snd_report_error(self, name, &err);
}

/* Only samples are recorded: a format that needs other data would be empty. */
static int check_format(const struct snd_command *self, const struct snd_after_run *after)
{
    if (!after->format || !after->format->view)
        return -1;
    return snd_usage_error(self, "--output %s: format %s needs %s; attach records samples only",
                           after->output, after->format->name, after->format->view);
}

/* Samples by the kernel, in this process: it has nothing else to do. */
static void watch(const struct attach_args *args, const struct snd_observers *o)
{
    struct sonde_buffer path = { 0 }, command = { 0 };
    struct sonde_error  err = { 0 };

    snd_buf_format(&path, "%s%d.sonde", o->folder, (int)o->root);
    snd_read_command(o->root, &command);
    struct snd_watch watch = {
        .pid = o->root,
        .path = path.bytes,
        .command = command.length ? command.bytes : NULL,
        .way = "by sonde attach",
        .period_ns = 1000000000u / (uint64_t)(args->hz > 0 ? args->hz : SND_OUTSIDE_HZ),
        .duration_ns = o->duration_ns,
        .off_cpu = args->off_cpu,
        .stop = -1,
        .quit = &quit,
    };
    if (path.failed)
        (void)snd_failure("attach: out of memory");
    else if (snd_watch(&watch, &err) != SONDE_OK)
        (void)snd_failure("attach %d: %s", (int)o->root, err.message);
    sonde_buffer_release(&path);
    sonde_buffer_release(&command);
}

static int observe(const struct attach_args *args, const char *path, struct snd_observers *o)
{
    struct snd_run_folder folder;
    int                   status = snd_run_folder_make(&folder, path, !args->after.output);

    if (status < 0) {
        o->folder = folder.full.bytes;
        take_signals();
        if (args->native)
            watch(args, o);
        else
            snd_observers_run(o);
        status = SND_EXIT_OK;
        snd_run_folder_settle(&folder);
        if (folder.files == 0) {
            snd_run_folder_undo(&folder);
            status = snd_failure("attach %d: nothing was recorded: %s", (int)o->root,
                                 args->native
                                     ? "it used no processor time, or ended before its first sample"
                                     : "it ended before its first sample");
        } else if (!snd_after_run_finish(&args->after, folder.path.bytes, false)) {
            status = SND_EXIT_FAILED;
        } else if (args->after.is_kept) {
            if (!args->quiet)
                fprintf(stderr, "sonde: recorded %s; next: sonde report --view samples %s\n",
                        folder.path.bytes, folder.path.bytes);
            snd_say_losses_at("attach", folder.path.bytes);
        }
    }
    snd_run_folder_release(&folder);
    return status;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct attach_args   args = { .after.shown = SND_VIEW_ARGS_INIT };
    struct snd_observers o = { .quit = &quit };
    struct sonde_buffer  path = { 0 };
    int                  operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands != 1)
        return snd_usage_error(self, operands == 0 ? "missing PID" : "expected one PID");
    if (!parse_pid(argv[0], &o.root))
        return snd_usage_error(self, "expected a process ID, got '%s'", argv[0]);
    if (args.duration && !parse_duration(args.duration, &o.duration_ns))
        return snd_usage_error(self, "--duration: expected a number of seconds > 0, got '%s'",
                               args.duration);
    int64_t hz = args.hz > 0 ? args.hz : HZ_DEFAULT;
    if (hz > SND_SAMPLE_HZ_MOST)
        return snd_usage_error(self, "--sample: rate must be 1..%d Hz, got %lld",
                               SND_SAMPLE_HZ_MOST, (long long)hz);
    o.nonblocking = args.nonblocking;
    o.period_ns = 1000000000u / (uint64_t)hz;
    status = snd_after_run_check(self, &args.after);
    if (status >= 0)
        return status;
    if (!snd_after_run_place(&args.after, argv[0], strlen(argv[0]), &path))
        return SND_EXIT_FAILED;
    status = path.failed || path.length == 0
                 ? snd_usage_error(self, "--output: expected a file name, got ''")
                 : check_format(self, &args.after);
    if (status < 0)
        status = check(self, argv[0], o.root, &args.native);
    if (status < 0)
        status = observe(&args, path.bytes, &o);
    snd_after_run_release(&args.after);
    sonde_buffer_release(&path);
    return status;
}

const struct snd_command snd_command_attach = {
    .name = "attach",
    .operands = "PID",
    .summary = "sample a running process of any language and its children, from outside",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
