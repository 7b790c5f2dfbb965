/* SPDX-License-Identifier: Apache-2.0 */
/* sonde export: a trace as a file for another program. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/aside_file.h"
#include "base/text/buf.h"
#include "base/text/nearest.h"
#include "base/text/compare.h"
#include "cli/commands.h"
#include "cli/path_kind.h"
#include "cli/after/losses.h"

struct export_args {
    const char *to, *output, *heap, *counter;
    bool        list, off_cpu, no_source, gil;
    int         bytes; /* enum sonde_heap_bytes */
};

#define AT(member) offsetof(struct export_args, member)
static const struct snd_option options[] = {
    { 't', "to", "FORMAT", "format to write (see --list)", SND_OPTION_TEXT, AT(to), 0 },
    { 'o', "output", "FILE",
      "output file, or folder; '-' is standard output, NAME.gz is compressed (TRACE with the "
      "format's extension)",
      SND_OPTION_TEXT, AT(output), 0 },
    { 0, "off-cpu", NULL, "folded: of samples, the time off the CPU alone", SND_OPTION_FLAG,
      AT(off_cpu), 0 },
    { 0, "heap", "WHAT",
      "stacks of allocations, with the bytes held at the peak, allocated or leaked: folded, "
      "speedscope, pprof",
      SND_OPTION_TEXT, AT(heap), 0 },
    { 0, "counter", "NAME",
      "stacks of a counter's events, or of 'all': folded, speedscope, pprof, perf-script, "
      "callgrind",
      SND_OPTION_TEXT, AT(counter), 0 },
    { 0, "gil", NULL,
      "only samples of threads that held the interpreter's lock: folded, speedscope, pprof, "
      "perf-script, callgrind",
      SND_OPTION_FLAG, AT(gil), 0 },
    { 0, "no-source", NULL, "html: leave out the text of source files", SND_OPTION_FLAG,
      AT(no_source), 0 },
    { 'l', "list", NULL, "list the formats", SND_OPTION_FLAG, AT(list), 0 },
};

static int list_formats(const struct snd_command *self)
{
    const struct sonde_exporter_info *info;

    for (size_t i = 0; (info = sonde_exporter_info(i)) != NULL; i++)
        printf("%-14s  %-16s  %s%s%s%s\n", info->name, info->suffix, info->summary,
               info->missing ? " (" : "", info->missing ? info->missing : "",
               info->missing ? ")" : "");
    return snd_finish_stdout(self);
}

/* The trace's name and the format's ending; of a job's Chrome traces, that of a folder. */
static void default_name(const char *trace, const char *format, bool is_job,
                         struct sonde_buffer *name)
{
    const struct sonde_exporter_info *info;
    size_t                            length = strlen(trace);

    while (length > 1 && trace[length - 1] == '/')
        length--;
    snd_buf_put(name, trace, length);
    for (size_t i = 0; (info = sonde_exporter_info(i)) != NULL; i++)
        if (strcmp(info->name, format) == 0)
            snd_buf_text(name, is_job && strcmp(format, "chrome") == 0 ? ".chrome" : info->suffix);
}

static struct sonde_export_options options_of(const struct export_args *args)
{
    struct sonde_export_options exporting = SONDE_EXPORT_OPTIONS_INIT;

    exporting.off_cpu = args->off_cpu;
    exporting.heap = (enum sonde_heap_bytes)args->bytes;
    exporting.no_source = args->no_source;
    exporting.counter = args->counter;
    exporting.gil = args->gil;
    return exporting;
}

static int write_stdout(const struct snd_command *self, struct sonde_trace *trace,
                        const struct export_args *args, const char *object)
{
    struct sonde_sink           out = sonde_sink_file(stdout);
    struct sonde_export_options exporting = options_of(args);
    struct sonde_error          err;

    if (sonde_export(trace, args->to, &exporting, &out, &err) != SONDE_OK)
        return snd_report_error(self, object, &err);
    return snd_finish_stdout(self);
}

/* Writes a temporary file and renames it, so that a failure leaves the old file in place. */
static int write_file(const struct snd_command *self, struct sonde_trace *trace,
                      const struct export_args *args, const char *path, const char *object)
{
    struct sonde_export_options exporting = options_of(args);
    struct sonde_error          err;
    struct stat                 st;
    char                       *aside = NULL;

    /* A pipe or a device is written in place. */
    bool direct = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
    int  fd = direct ? open(path, O_WRONLY | O_CLOEXEC) : snd_aside_open(path, 0666, &aside);
    if (fd < 0)
        return snd_failure("%s: cannot create %s: %s", self->name, path, strerror(errno));
    struct sonde_sink out = sonde_sink_fd(fd);
    exporting.gzip = snd_ends_with(path, ".gz");
    bool good = sonde_export(trace, args->to, &exporting, &out, &err) == SONDE_OK;
    int  status = good ? SND_EXIT_OK : snd_report_error(self, object, &err);
    if (!(direct ? close(fd) == 0 : snd_aside_end(fd, aside, path, good, false)) && good)
        status = snd_failure("%s: cannot write %s: %s", self->name, path, strerror(errno));
    free(aside);
    return status;
}

/* Are there several ranks? */
static bool is_job(const struct sonde_trace *trace)
{
    uint32_t found = SONDE_NONE;

    for (uint32_t i = 0; i < sonde_trace_process_count(trace); i++) {
        uint32_t rank = sonde_trace_process(trace, i)->rank;
        if (rank != SONDE_NONE && found != SONDE_NONE && rank != found)
            return true;
        found = rank != SONDE_NONE ? rank : found;
    }
    return false;
}

/* A format of files that can be one for each rank is that where a folder was asked for; of a job, unless a file was. */
static bool wants_ranks(const struct sonde_trace *trace, const char *format, const char *path)
{
    struct stat st;

    if (strcmp(format, "chrome") != 0)
        return false;
    if (stat(path, &st) == 0)
        return S_ISDIR(st.st_mode);
    bool is_file = snd_ends_with(path, ".json") || snd_ends_with(path, ".gz");
    return snd_ends_with(path, "/") || (is_job(trace) && !is_file);
}

/* The library writes beside the folder and renames by itself. */
static int write_folder(const struct snd_command *self, struct sonde_trace *trace,
                        const struct export_args *args, const char *path, const char *object)
{
    struct sonde_export_options exporting = options_of(args);
    struct sonde_error          err;

    if (sonde_export_folder(trace, args->to, &exporting, path, &err) != SONDE_OK)
        return snd_report_error(self, object, &err);
    return SND_EXIT_OK;
}

static int export_trace(const struct snd_command *self, struct sonde_trace *trace,
                        const struct export_args *args, const char *object)
{
    struct sonde_buffer name = { 0 };

    if (args->output && strcmp(args->output, "-") == 0)
        return write_stdout(self, trace, args, object);
    if (args->output)
        snd_buf_text(&name, args->output);
    else
        default_name(object, args->to, is_job(trace), &name);
    int status;
    if (name.failed)
        status = snd_failure("%s: out of memory", self->name);
    else if (snd_path_kind(name.bytes) == SND_PATH_TRACE)
        status = snd_failure("%s: refusing to overwrite the trace %s; give another name with -o",
                             self->name, name.bytes);
    else if (sonde_exporter_is_folder(args->to) || wants_ranks(trace, args->to, name.bytes))
        status = write_folder(self, trace, args, name.bytes, object);
    else
        status = write_file(self, trace, args, name.bytes, object);
    /* A name that nobody gave is said to whoever reads; one that was given, to a person alone. */
    if (status == SND_EXIT_OK && (!args->output || isatty(STDERR_FILENO)))
        fprintf(stderr, "sonde: wrote %s\n", name.bytes);
    sonde_buffer_release(&name);
    return status;
}

/* -1 if there is such a format, or the exit status. */
static int check_format(const struct snd_command *self, const char *name)
{
    const struct sonde_exporter_info *info;
    struct snd_nearest                nearest = { .word = name, .length = strlen(name) };
    char                              hint[SND_HINT_MAX];

    for (size_t i = 0; (info = sonde_exporter_info(i)) != NULL; i++) {
        if (strcmp(info->name, name) == 0)
            return -1;
        snd_nearest_try(&nearest, info->name);
    }
    return snd_usage_error(self, "unknown format '%s'%s; 'sonde export --list' lists the formats",
                           name, snd_nearest_hint(&nearest, hint));
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct export_args  args = { 0 };
    struct sonde_trace *trace;
    struct sonde_error  err;
    int                 operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (args.list)
        return list_formats(self);
    if (!args.to)
        return snd_usage_error(self,
                               "missing --to FORMAT; 'sonde export --list' lists the formats");
    if ((status = check_format(self, args.to)) >= 0)
        return status;
    if (args.off_cpu && strcmp(args.to, "folded") != 0)
        return snd_usage_error(self, "--off-cpu requires --to folded, got '%s'", args.to);
    if (args.no_source && strcmp(args.to, "html") != 0)
        return snd_usage_error(self, "--no-source requires --to html, got '%s'", args.to);
    if (args.heap && sonde_word_value(SONDE_WORDS_HEAP, args.heap, &args.bytes, &err) != SONDE_OK)
        return snd_usage_error(self, "--heap: %s", err.message);
    if (args.heap && args.counter)
        return snd_usage_error(self, "--heap and --counter cannot be combined");
    if (args.gil && (args.heap || args.counter))
        return snd_usage_error(self, "--gil is about samples of time: leave out --%s",
                               args.heap ? "heap" : "counter");
    status = snd_open_trace(self, operands, argv, &trace);
    if (status >= 0)
        return status;
    snd_progress_start("sonde: exporting");
    const char *slash = operands == 0 ? strrchr(argv[0], '/') : NULL;
    status = export_trace(self, trace, &args,
                          slash ? slash + 1 : argv[0]); /* beside us: not in a cache */
    snd_progress_stop();
    if (status == SND_EXIT_OK)
        snd_say_losses(self->name, trace);
    sonde_trace_close(trace);
    return status;
}

const struct snd_command snd_command_export = {
    .name = "export",
    .operands = "[TRACE] --to FORMAT",
    .summary = "write a trace for another program",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
