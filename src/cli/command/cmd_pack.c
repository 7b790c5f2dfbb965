/* SPDX-License-Identifier: Apache-2.0 */
/* sonde pack: a smaller copy of a trace, or the trace itself made smaller. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "cli/path_kind.h"
#include "cli/commands.h"

struct pack_args {
    const char *output;
    int64_t     level;
    bool        verbose;
};

#define AT(member) offsetof(struct pack_args, member)
static const struct snd_option options[] = {
    { 'o', "output", "FILE", "output file (default: replace TRACE)", SND_OPTION_TEXT, AT(output),
      0 },
    { 0, "level", "N", "compression level, 1 to 19 (3)", SND_OPTION_NUMBER, AT(level), 1 },
    { 'v', "verbose", NULL, "print the new size, even if stderr is not a terminal", SND_OPTION_FLAG,
      AT(verbose), 0 },
};

static double file_size(const char *path)
{
    struct stat st;

    return stat(path, &st) == 0 ? (double)st.st_size : 0;
}

static int pack_file(const struct snd_command *self, const char *path, const char *to,
                     const struct pack_args *args)
{
    struct sonde_error err;
    double             before = file_size(path);

    if (sonde_pack(path, to, (int)args->level, &err) != SONDE_OK)
        return snd_report_error(self, path, &err);
    double after = file_size(to);
    if (args->verbose || isatty(STDERR_FILENO))
        fprintf(stderr, "sonde: packed %s: %.0f bytes, %.1f %% of %.0f\n", to, after,
                before > 0 ? 100 * after / before : 0, before);
    return SND_EXIT_OK;
}

/* Every file of a folder, in order of their names. */
static int pack_folder(const struct snd_command *self, const char *folder, const char *to,
                       const struct pack_args *args)
{
    struct dirent **entries = NULL;
    int             count = scandir(folder, &entries, NULL, alphasort);
    int             status = SND_EXIT_OK;

    if (count < 0)
        return snd_failure("pack: cannot read %s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        struct sonde_buffer from = { 0 }, into = { 0 };
        snd_buf_format(&from, "%s/%s", folder, entries[i]->d_name);
        snd_buf_format(&into, "%s/%s", to, entries[i]->d_name);
        if (from.failed || into.failed)
            status = snd_failure("pack: out of memory");
        else if (status == SND_EXIT_OK && snd_path_kind(from.bytes) == SND_PATH_TRACE)
            status = pack_file(self, from.bytes, into.bytes, args);
        sonde_buffer_release(&from);
        sonde_buffer_release(&into);
        free(entries[i]);
    }
    free(entries);
    return status;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct pack_args args = { .level = 3 };
    struct stat      st;
    int              operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands != 1)
        return snd_usage_error(self, operands == 0 ? "missing TRACE" : "expected one trace");
    if (args.level > 19)
        return snd_usage_error(self, "--level: expected 1..19, got %lld", (long long)args.level);

    const char *path = argv[0], *to = args.output ? args.output : path;
    bool        is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
    if (args.output && snd_path_kind(to) == SND_PATH_OTHER)
        return snd_failure(
            "pack: refusing to overwrite %s, which is not a trace; give another name with -o", to);
    if (is_folder && args.output && mkdir(to, 0700) != 0 && errno != EEXIST)
        return snd_failure("pack: cannot create %s: %s", to, strerror(errno));
    snd_progress_start("sonde: packing");
    status = is_folder ? pack_folder(self, path, to, &args) : pack_file(self, path, to, &args);
    snd_progress_stop();
    return status;
}

const struct snd_command snd_command_pack = {
    .name = "pack",
    .operands = "TRACE",
    .summary = "make a trace smaller, and leave out what is damaged",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
