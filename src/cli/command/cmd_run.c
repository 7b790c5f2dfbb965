/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde run: runs a program and records it.
 *
 * What a process records of itself (marks of <sonde/record.h>, Python, PyTorch, GPUs, allocations)
 * is started by its environment: Python processes find a sitecustomize of ours before their own,
 * others load a library (run_probes.h). Native programs are sampled and counted from outside
 * (outside.h, run_parents.h). Each process writes its file into the folder TRACE; a single one then
 * becomes the file TRACE itself.
 *
 * The program has the terminal, stdin, stdout and stderr as if it had been run alone, and its
 * exit status becomes ours; a signal that ends it ends us too.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "cli/process/child.h"
#include "cli/commands.h"
#include "cli/run/preloadable.h"
#include "cli/process/find_python.h"
#include "cli/run/run_args.h"
#include "cli/run/run_finish.h"
#include "cli/run/run_folder.h"
#include "cli/run/run_name.h"
#include "cli/run/run_others.h"
#include "cli/run/run_standby.h"

#define AT(member) offsetof(struct snd_run_args, member)
#define SHOWN(member) AT(after.shown.member)
static const struct snd_option options[] = {
    { 'o', "output", "TRACE",
      "trace to write (PROGRAM.sonde in the current folder); an extension selects another format: "
      ".prof, .lprof, .json",
      SND_OPTION_TEXT, AT(after.output), 0 },
#define SND_PROBE(id, option, value, argument, most, records, view, without, also, usual, start, \
                  folder, check, help)                                                           \
    { 0, option, argument, help, SND_PROBE_OPTION_##value, AT(probes.id), 0 },
#define SND_PROBE_DETAIL(id, option, of, help) \
    { 0, option, NULL, help, SND_OPTION_FLAG, AT(probes.id), 0 },
#include "probes/probes.def"
#undef SND_PROBE
#undef SND_PROBE_DETAIL
    { 'p', "print", NULL,
      "show what was recorded; without -o, the trace is kept until the next --print",
      SND_OPTION_FLAG, AT(after.print), 0 },
    { 0, "view", "LIST", "with --print: the views to show (those of what was recorded)",
      SND_OPTION_LIST, AT(after.view), 0 },
    SND_VIEW_OPTIONS(SHOWN),
    { 0, "max-size", "SIZE", "stop recording when a trace file has this size: 500M, 2G",
      SND_OPTION_SIZE, AT(max_size), 0 },
    { 0, "keep-last", NULL, "at --max-size, overwrite the oldest events instead of stopping",
      SND_OPTION_FLAG, AT(keep_last), 0 },
    { 0, "schedule", "LIST",
      "record some steps: wait=N,warmup=N,active=N,repeat=N,skip_first=N,"
      "skip_first_wait=N",
      SND_OPTION_LIST, AT(schedule), 0 },
    { 0, "standby", NULL,
      "record nothing until `sonde record` asks the program's PyTorch processes to",
      SND_OPTION_FLAG, AT(standby), 0 },
    { 0, "roof", NULL,
      "measure what this machine can do at most (0.2 s, before the program), for --view roofline",
      SND_OPTION_FLAG, AT(roof), 0 },
    { 'r', "repeat", "N", "with --counters: run the program N times, and print mean and spread",
      SND_OPTION_NUMBER, AT(repeat), 1 },
    { 'q', "quiet", NULL, "do not print where the trace is, nor the counters", SND_OPTION_FLAG,
      AT(quiet), 0 },
    { 'v', "verbose", NULL, "print where the trace is (the default)", SND_OPTION_FLAG, AT(verbose),
      0 },
};

static const struct snd_option_group groups[] = {
    { "ops", "what to record (default: samples, and operators once torch is imported)" },
    { "print", "what to show when the program has ended (with --print)" },
    { "max-size", "how to record" },
    { NULL, NULL },
};

/* ------------------------------------------------------------ environment */

static void set_or_clear(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* The trace is as good without it. */
static void measure_roof(char text[SONDE_ROOF_TEXT])
{
    struct sonde_roof  roof;
    struct sonde_error err;

    text[0] = '\0';
    if (sonde_roof_measure(&roof, &err) == SONDE_OK)
        sonde_roof_text(&roof, text);
    else
        fprintf(stderr, "sonde: run: --roof: %s; the trace will not have it\n", err.message);
}

/* What the recorder reads when the program loads it. */
static void set_environment(const struct snd_run_args *args, const struct snd_run_folder *folder)
{
    char size[32], roof[SONDE_ROOF_TEXT] = "";

    snprintf(size, sizeof size, "%llu", (unsigned long long)args->max_size);
    setenv("SONDE_TRACE", folder->full.bytes, 1);
    set_or_clear("SONDE_TRACE_OTHERS", folder->others_name[0] ? folder->others.bytes : NULL);
    set_or_clear("SONDE_MAX_BYTES", args->max_size ? size : NULL);
    set_or_clear("SONDE_LIMIT", args->keep_last ? "keep-last" : NULL);
    set_or_clear("SONDE_SCHEDULE", args->schedule);
    if (args->roof)
        measure_roof(roof);
    set_or_clear("SONDE_ROOF", *roof ? roof : NULL);
}

/* ------------------------------------------------------------------ whole */

/*
 * Programs of any language are sampled from outside, unless they begin in Python: its processes
 * sample themselves, and know their Python frames. With --native, those of their threads that run no
 * Python (a BLAS's, OpenMP's) are sampled from outside, too.
 */
static void choose_outside(struct snd_run_args *args, char **program)
{
    struct snd_outside *o = &args->outside;

    const struct snd_run_probes *p = &args->probes;
    bool                         samples = p->sample != 0 || p->native || p->off_cpu;

    bool is_python = snd_runs_python(program);

    o->clock = samples && (!is_python || p->native);
    o->per_function = p->per_function && !is_python;
    o->wanted = (o->clock || o->per_function) && !args->schedule;
    o->beside_python = p->native;
    o->unasked = p->unasked;
    args->probes.outside = o->wanted && !is_python && !p->ops && !p->functions && !p->lines &&
                           !p->line_memory;
    o->hz = args->probes.sample > 0 ? args->probes.sample : 0;
    o->max_bytes = args->max_size;
    o->keep_last = args->keep_last;
    o->off_cpu = p->off_cpu;
}

/* The process waits before exec, while the probes outside it get ready. */
static void on_forked(void *user, pid_t pid)
{
    struct snd_run_args *args = user;

    snd_run_parents_forked(&args->parents, pid);
    snd_outside_start(&args->outside, pid);
}

static bool failed(const struct snd_child *child)
{
    return child->wait_status != 0;
}

/*
 * Once, or --repeat times unless a signal ends it. `child` has how the last run ended, or the first
 * that failed. -1, or the exit status when it could not be run.
 */
static int run_times(struct snd_run_args *args, char **program, struct snd_child *child)
{
    struct snd_child first = { 0 };
    int              status = -1;

    for (int64_t i = 0; status < 0; i++) {
        *child = (struct snd_child){ .user = args };
        child->forked = args->parents.count > 0 || args->outside.wanted ? on_forked : NULL;
        status = snd_child_run(program, child);
        snd_outside_end(&args->outside);
        if (status < 0)
            snd_run_parents_ended(&args->parents, child);
        if (i == 0 || (!failed(&first) && failed(child)))
            first = *child;
        if (i + 1 >= args->repeat || child->interrupted || WIFSIGNALED(child->wait_status))
            break;
        snd_child_leave(child);
    }
    child->wait_status = first.wait_status;
    return status;
}

/* Runs the program; -1, or the exit status when it could not be. */
static int run_program(struct snd_run_args *args, struct snd_run_folder *folder, char **program,
                       struct snd_child *child)
{
    const char        *outer = getenv("SONDE_TRACE");
    struct sonde_error err;

    if (args->probes.heap && snd_preloadable(program[0], &err) != SONDE_OK)
        return snd_failure("run: cannot record allocations of %s", err.message);
    if (outer)
        snd_run_folder_note_inner(outer, folder->full.bytes);
    if (args->probes.heap)
        snd_run_others_make(folder);
    set_environment(args, folder);
    int status = snd_run_probes_set(&args->probes);
    if (status >= 0)
        return status;
    if (args->outside.wanted)
        snd_outside_prepare(&args->outside, folder->full.bytes, program);
    status = run_times(args, program, child);
    if (status >= 0)
        snd_child_leave(child);
    else
        snd_run_parents_write(&args->parents, folder->full.bytes, program);
    return status;
}

/* -1 when the program ran: `child` has how it ended. */
static int record(struct snd_run_args *args, const char *path, char **program,
                  struct snd_child *child)
{
    struct snd_run_folder folder;

    int status = snd_run_folder_make(&folder, path, !args->after.output);
    if (status < 0) {
        status = run_program(args, &folder, program, child);
        if (status >= 0)
            snd_run_folder_undo(&folder);
        else
            snd_run_finish(args, &folder, program, child);
    }
    snd_run_folder_release(&folder);
    return status;
}

/* No folder for a temporary trace could be made: runs the program without recording. */
static int run_unrecorded(char **program)
{
    struct snd_child child = { 0 };

    snd_run_probes_clear();
    int status = snd_child_run(program, &child);
    snd_child_leave(&child);
    return status < 0 ? snd_child_status(&child) : status;
}

/* Puts a Python before a bare script; `program` has room for one more word. */
static void add_python(char **program, char beside[PATH_MAX])
{
    size_t count = 0;

    if (!snd_is_bare_script(program[0]))
        return;
    while (program[count])
        count++;
    memmove(program + 1, program, (count + 1) * sizeof *program);
    program[0] = snd_python_for_script(beside);
}

static int run_checked(const struct snd_command *self, struct snd_run_args *args, char **program)
{
    struct sonde_buffer path = { 0 }, views = { 0 };
    struct snd_run_name name = snd_run_name(program);
    struct snd_child    child = { 0 };
    int                 status;

    if (args->standby) {
        status = snd_run_standby_check(self, args);
        return status < 0 ? snd_run_standby(args, name.name, name.length, program) : status;
    }
    if (!snd_after_run_place(&args->after, name.name, name.length, &path))
        return run_unrecorded(program);
    args->probes.functions |= args->probes.per_function; /* whose counters they are */
    snd_run_probes_default(&args->probes, args->after.format ? args->after.format->view : NULL);
    snd_run_probes_views(&args->probes, &views);
    status = snd_run_args_check_recorded(self, args);
    if (status < 0)
        status = snd_after_run_check_sort(self, &args->after, snd_buf_string(&views));
    if (status < 0 && (path.failed || path.length == 0))
        status = snd_usage_error(self, "--output: expected a file name, got ''");
    args->after.unasked = !args->after.view;
    if (!args->after.view && !args->probes.unasked)
        args->after.view = snd_buf_string(&views);
    args->after.quiet = args->quiet;
    if (args->probes.counters && !args->quiet)
        args->after.aside = "counters"; /* where perf stat prints them */
    choose_outside(args, program);
    if (status < 0)
        status = snd_run_parents_prepare(self, &args->probes, &args->parents);
    if (status < 0)
        status = record(args, path.bytes, program, &child);
    snd_run_parents_release(&args->parents);
    snd_outside_release(&args->outside);
    snd_after_run_release(&args->after);
    sonde_buffer_release(&path);
    sonde_buffer_release(&views);
    return status < 0 ? snd_child_status(&child) : status;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct snd_run_args args = { .after.shown = SND_VIEW_ARGS_INIT };
    char                beside[PATH_MAX];
    int                 operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status < 0)
        status = snd_run_args_check(self, &args, operands);
    if (status >= 0)
        return status;
    char **program = calloc((size_t)operands + 2, sizeof *program);
    if (!program)
        return snd_failure("run: out of memory");
    memcpy(program, argv, (size_t)operands * sizeof *program);
    add_python(program, beside);
    status = run_checked(self, &args, program);
    free(program);
    return status;
}

const struct snd_command snd_command_run = {
    .name = "run",
    .operands = "[--] PROGRAM [ARGS]",
    .summary = "run a program and record it: of any language, Python, PyTorch",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .groups = groups,
    .program_follows = true,
    .run = run,
};
