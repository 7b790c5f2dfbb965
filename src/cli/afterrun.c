/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/afterrun.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/runfolder.h"

/* -------------------------------------------------------------- the place */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static bool ends_with(const char *text, size_t length, const char *end)
{
    size_t tail = strlen(end);

    return length > tail && strncmp(text + length - tail, end, tail) == 0;
}

/* The format whose ending `path` has, the longest if several; NULL: it is to be a trace. */
static const struct sonde_exporter_info *format_of(const char *path)
{
    const struct sonde_exporter_info *info, *best = NULL;
    size_t                            length = strlen(path);

    if (ends_with(path, length, ".gz"))
        length -= strlen(".gz");
    for (size_t i = 0; (info = sonde_exporter_info(i)) != NULL; i++)
        if (ends_with(path, length, info->suffix) &&
            (!best || strlen(info->suffix) > strlen(best->suffix)))
            best = info;
    return best;
}

void snd_after_run_place(struct snd_after_run *after, const char *program,
                         struct sonde_buffer *trace)
{
    const char *temporary = getenv("TMPDIR");

    after->format = after->output ? format_of(after->output) : NULL;
    after->is_kept = after->output ? !after->format : !after->print;
    if (after->format)
        snd_buf_format(trace, "%s.%ld.sonde", after->output, (long)getpid());
    else if (after->output)
        snd_buf_text(trace, after->output);
    else if (after->print)
        snd_buf_format(trace, "%s/sonde-run-%ld.sonde",
                       temporary && *temporary ? temporary : "/tmp", (long)getpid());
    else
        snd_buf_format(trace, "%s.sonde", last_part(program));
    while (trace->length > 1 && trace->bytes[trace->length - 1] == '/')
        trace->bytes[--trace->length] = '\0';
}

/* ----------------------------------------------------------- what is done */

/* The words of a command line for one of the other commands. */
struct words {
    char *list[16];
    int   count;
};

static void add(struct words *words, const char *text)
{
    words->list[words->count++] = (char *)text; /* commands move the pointers, never the text */
}

static void add_option(struct words *words, const char *name, const char *value)
{
    if (value) {
        add(words, name);
        add(words, value);
    }
}

static bool run_command(const struct snd_command *command, struct words *words)
{
    return command->run(command, words->count, words->list) == SND_EXIT_OK;
}

static bool show_one(const struct snd_after_run *after, const char *trace, const char *view)
{
    struct words words = { 0 };
    char         rows[32];

    snprintf(rows, sizeof rows, "%lld", (long long)after->rows);
    add(&words, "report");
    add(&words, trace);
    add_option(&words, "--view", view);
    add_option(&words, "--sort", after->sort);
    add_option(&words, "--rows", after->rows ? rows : NULL);
    add_option(&words, "--time-unit", after->time_unit);
    if (after->skip_zero)
        add(&words, "--skip-zero");
    return run_command(&snd_command_report, &words);
}

static bool show(const struct snd_after_run *after, const char *trace)
{
    if (!after->view)
        return show_one(after, trace, NULL);
    char       *views = strdup(after->view), *rest = NULL;
    bool        done = views != NULL;
    const char *name = views ? strtok_r(views, ",", &rest) : NULL;

    for (; name; name = strtok_r(NULL, ",", &rest))
        done &= show_one(after, trace, name);
    free(views);
    return done;
}

static bool write_out(const struct snd_after_run *after, const char *trace)
{
    struct words words = { 0 };

    add(&words, "export");
    add(&words, trace);
    add_option(&words, "--to", after->format->name);
    add_option(&words, "--output", after->output);
    return run_command(&snd_command_export, &words);
}

void snd_after_run_finish(const struct snd_after_run *after, const char *trace)
{
    bool done = true;

    if (after->format)
        done &= write_out(after, trace);
    if (after->print)
        done &= show(after, trace);
    if (after->is_kept)
        return;
    if (done)
        snd_run_folder_drop(trace);
    else
        fprintf(stderr, "sonde: run: the trace is in %s\n", trace);
}
