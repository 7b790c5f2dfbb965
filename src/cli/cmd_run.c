/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde run: runs a program that uses <sonde/record.h>, or a Python program, and has it record.
 *
 * The program is told through its environment; nothing is put into it, but that its Python
 * processes find a sitecustomize of ours before their own (runprobes.h). Each process of it
 * writes its file into the folder TRACE; a single one then becomes the file TRACE itself.
 * The program has the terminal, stdin, stdout and stderr as if it had been run alone, and its
 * exit status becomes ours; a signal that ends it ends us too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/afterrun.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/runfolder.h"
#include "cli/runprobes.h"

struct run_args {
    const char           *schedule;
    uint64_t              max_size;
    bool                  keep_last, verbose;
    struct snd_run_probes probes;
    struct snd_after_run  after;
};

#define AT(member) offsetof(struct run_args, member)
static const struct snd_option options[] = {
    { 'o', "output", "TRACE",
      "the trace to write (PROGRAM.sonde in the current folder), or a file of "
      "another format by its ending: .prof, .lprof, .json",
      SND_OPTION_TEXT, AT(after.output), 0 },
    { 0, "ops", NULL, "record PyTorch's operators (without any of these: they and samples)",
      SND_OPTION_FLAG, AT(probes.ops), 0 },
    { 0, "shapes", NULL, "operators with the shapes of their inputs", SND_OPTION_FLAG,
      AT(probes.shapes), 0 },
    { 0, "memory", NULL, "tensors' memory, taken and given back", SND_OPTION_FLAG,
      AT(probes.memory), 0 },
    { 0, "modules", NULL, "operators with the module that they belong to", SND_OPTION_FLAG,
      AT(probes.modules), 0 },
    { 0, "stacks", NULL, "operators with the Python stack that called them", SND_OPTION_FLAG,
      AT(probes.stacks), 0 },
    { 0, "functions", NULL, "every call of a Python function (cProfile's job)", SND_OPTION_FLAG,
      AT(probes.functions), 0 },
    { 0, "timeline", NULL, "functions: each call with its time, not only what they add up to",
      SND_OPTION_FLAG, AT(probes.timeline), 0 },
    { 0, "python-only", NULL, "functions: none of those that are written in C", SND_OPTION_FLAG,
      AT(probes.python_only), 0 },
    { 0, "lines", "LIST",
      "time of each line of these Python functions (line_profiler's job): "
      "module.function, Class.method, file.py:function, @profile",
      SND_OPTION_TEXT, AT(probes.lines), 0 },
    { 0, "line-memory", "LIST", "bytes of each line of these (memory_profiler's job)",
      SND_OPTION_TEXT, AT(probes.line_memory), 0 },
    { 0, "sample", "[HZ]", "Python stacks of every thread, so many times a second",
      SND_OPTION_MAYBE, AT(probes.sample), 0 },
    { 0, "native", NULL, "samples: with the C functions between the Python ones", SND_OPTION_FLAG,
      AT(probes.native), 0 },
    { 'p', "print", NULL, "show what was recorded; the trace is kept only with -o", SND_OPTION_FLAG,
      AT(after.print), 0 },
    { 0, "view", "LIST", "with --print: the views to show (those of what was recorded)",
      SND_OPTION_TEXT, AT(after.view), 0 },
    { 's', "sort", "KEY", "with --print: as report's, of the first view", SND_OPTION_TEXT,
      AT(after.sort), 0 },
    { 'n', "rows", "N", "with --print: as report's", SND_OPTION_NUMBER, AT(after.rows), -1 },
    { 0, "time-unit", "UNIT", "with --print: as report's", SND_OPTION_TEXT, AT(after.time_unit),
      0 },
    { 0, "skip-zero", NULL, "with --print: as report's", SND_OPTION_FLAG, AT(after.skip_zero), 0 },
    { 0, "max-size", "SIZE", "stop recording when a trace file has this size: 500M, 2G",
      SND_OPTION_SIZE, AT(max_size), 0 },
    { 0, "keep-last", NULL, "at --max-size, give up the oldest instead of stopping",
      SND_OPTION_FLAG, AT(keep_last), 0 },
    { 0, "schedule", "LIST",
      "record some steps: wait=N,warmup=N,active=N,repeat=N,skip_first=N,"
      "skip_first_wait=N",
      SND_OPTION_TEXT, AT(schedule), 0 },
    { 'v', "verbose", NULL, "say where the trace is, also when stderr is no terminal",
      SND_OPTION_FLAG, AT(verbose), 0 },
};

/* ---------------------------------------------------------------- options */

/* Checks "wait=1,active=3": the recorder, in another process, has no one to complain to. */
static int check_schedule(const struct snd_command *self, const char *list)
{
    static const char *const keys[] = { "wait",   "warmup",     "active",
                                        "repeat", "skip_first", "skip_first_wait" };
    bool                     has_active = false;

    for (const char *at = list; *at;) {
        size_t length = strcspn(at, ","), name = strcspn(at, "=");
        size_t digits = name < length ? strspn(at + name + 1, "0123456789") : 0;
        bool   known = false;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
            known |= strlen(keys[i]) == name && strncmp(keys[i], at, name) == 0;
        if (!known || digits == 0 || digits > 9 || name + 1 + digits != length)
            return snd_usage_error(self,
                                   "--schedule: '%.*s' is not one of wait=N, warmup=N, "
                                   "active=N, repeat=N, skip_first=N, skip_first_wait=N",
                                   (int)length, at);
        if (strncmp(at, "active=", 7) == 0)
            has_active = strtol(at + 7, NULL, 10) > 0;
        at += length + (at[length] == ',');
    }
    return has_active ? -1 : snd_usage_error(self, "--schedule needs active=N, N from 1");
}

static void set_or_clear(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* What the recorder reads when the program loads it. */
static void set_environment(const struct run_args *args, const char *folder)
{
    char size[32];

    snprintf(size, sizeof size, "%llu", (unsigned long long)args->max_size);
    setenv("SONDE_TRACE", folder, 1);
    set_or_clear("SONDE_MAX_BYTES", args->max_size ? size : NULL);
    set_or_clear("SONDE_LIMIT", args->keep_last ? "keep-last" : NULL);
    set_or_clear("SONDE_SCHEDULE", args->schedule);
}

/* ------------------------------------------------------------------ whole */

/* The program may change its folder, so it is told an absolute path; it ends in '/': a folder. */
static bool absolute_folder(const char *path, struct sonde_buffer *out)
{
    if (path[0] != '/') {
        char *here = getcwd(NULL, 0);
        if (!here)
            return false;
        snd_buf_format(out, "%s/", here);
        free(here);
    }
    snd_buf_format(out, "%s/", path);
    return !out->failed;
}

static const char *why_nothing(const struct run_args *args)
{
    const struct snd_run_probes *probes = &args->probes;

    if (args->schedule)
        return "--schedule records no step that it reached: a step ends with sonde_step() in C, "
               "sonde.step(), step() of a profile or of an optimizer in Python";
    if (probes->unasked)
        return "it neither runs a Python that can be told to (python -I, -E and -S do not listen) "
               "nor uses <sonde/record.h>";
    return probes->ops ? "it neither imports torch nor uses <sonde/record.h>"
                       : "no Python of it could be told to (python -I, -E and -S do not listen)";
}

static void finish(const struct run_args *args, const char *path, const char *aside,
                   const char *program)
{
    if (snd_run_folder_settle(path, aside) == 0) {
        fprintf(stderr,
                "sonde: run: %s recorded nothing: %s, or it ended before its first event; "
                "see 'man sonde-run'\n",
                program, why_nothing(args));
        return;
    }
    snd_after_run_finish(&args->after, path);
    if (args->after.is_kept && (args->verbose || isatty(STDERR_FILENO)))
        fprintf(stderr, "sonde: recorded %s; next: sonde report %s\n", path, path);
}

/* Runs the program; -1, or the exit status when it could not be. */
static int run_program(struct run_args *args, const char *path, char **program,
                       struct sonde_buffer *views, struct snd_child *child)
{
    struct sonde_buffer folder = { 0 };
    int                 status;

    if (!absolute_folder(path, &folder)) {
        status = snd_failure("run: cannot tell the current folder: %s", strerror(errno));
    } else {
        set_environment(args, folder.bytes);
        status = snd_run_probes_set(&args->probes, views);
        if (!args->after.view && !args->probes.unasked)
            args->after.view = snd_buf_string(views);
        if (status < 0)
            status = snd_child_run(program, child);
    }
    sonde_buffer_release(&folder);
    return status;
}

static int record(struct run_args *args, const char *path, char **program)
{
    struct sonde_buffer aside = { 0 }, views = { 0 };
    struct snd_child    child;

    snd_buf_format(&aside, "%s.%ld.old", path, (long)getpid());
    int status = aside.failed ? snd_failure("run: out of memory")
                              : snd_run_folder_make(path, aside.bytes);
    if (status < 0) {
        status = run_program(args, path, program, &views, &child);
        if (status >= 0)
            snd_run_folder_undo(path, aside.bytes);
        else
            finish(args, path, aside.bytes, program[0]);
        if (status < 0)
            status = snd_child_status(&child);
    }
    sonde_buffer_release(&aside);
    sonde_buffer_release(&views);
    return status;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct run_args     args = { 0 };
    struct sonde_buffer path = { 0 };
    int                 operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands == 0)
        return snd_usage_error(self, "no program is given");
    if (args.keep_last && !args.max_size)
        return snd_usage_error(self, "--keep-last needs --max-size SIZE");
    if (args.probes.sample > SND_SAMPLE_HZ_MOST)
        return snd_usage_error(self, "--sample is from 1 to %d", SND_SAMPLE_HZ_MOST);
    if (args.schedule && (status = check_schedule(self, args.schedule)) >= 0)
        return status;
    if ((status = snd_after_run_check(self, &args.after)) >= 0)
        return status;
    argv[operands] = NULL; /* operands are fewer than arguments, so there is room */
    snd_after_run_place(&args.after, argv[0], &path);
    snd_run_probes_default(&args.probes, args.after.format ? args.after.format->view : NULL);
    status = path.failed || path.length == 0 ? snd_usage_error(self, "the trace needs a name")
                                             : record(&args, path.bytes, argv);
    sonde_buffer_release(&path);
    return status;
}

const struct snd_command snd_command_run = {
    "run",
    "[--] PROGRAM [ARGS]",
    "run a program and record it: Python, PyTorch, or what uses <sonde/record.h>",
    options,
    SND_OPTION_COUNT(options),
    true,
    run,
};
