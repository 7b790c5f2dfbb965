/* SPDX-License-Identifier: Apache-2.0 */
/* sonde import: traces of other tools, kept as packed traces of sonde. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "cli/commands.h"
#include "cli/path_kind.h"

struct import_args {
    const char *output;
    int64_t     level;
    bool        verbose;
};

#define AT(member) offsetof(struct import_args, member)
static const struct snd_option options[] = {
    { 'o', "output", "TRACE", "output file; of several FILEs a folder", SND_OPTION_TEXT, AT(output),
      0 },
    { 0, "level", "N", "compression level, 1 to 19 (3)", SND_OPTION_NUMBER, AT(level), 1 },
    { 'v', "verbose", NULL, "print the new size, even if stderr is not a terminal", SND_OPTION_FLAG,
      AT(verbose), 0 },
};

static int import_file(const struct snd_command *self, const char *path, const char *to,
                       const struct import_args *args)
{
    struct sonde_error err;
    struct stat        before, after;

    if (sonde_import(path, to, (int)args->level, &err) != SONDE_OK)
        return snd_report_error(self, path, &err);
    if ((args->verbose || isatty(STDERR_FILENO)) && stat(path, &before) == 0 &&
        stat(to, &after) == 0)
        fprintf(stderr, "sonde: imported %s: %lld bytes, %.1f %% of %lld\n", to,
                (long long)after.st_size,
                before.st_size > 0 ? 100 * (double)after.st_size / (double)before.st_size : 0,
                (long long)before.st_size);
    return SND_EXIT_OK;
}

/* FOLDER/NAME.sonde, without the endings of the file's name. */
static void name_in(struct sonde_buffer *to, const char *folder, const char *path)
{
    static const char *const ends[] = { ".gz", ".json", ".trace", ".pt" };
    const char              *slash = strrchr(path, '/');
    const char              *name = slash ? slash + 1 : path;
    size_t                   length = strlen(name);

    for (size_t i = 0; i < SND_COUNT_OF(ends); i++) {
        size_t end = strlen(ends[i]);
        if (length > end && strncmp(name + length - end, ends[i], end) == 0)
            length -= end;
    }
    snd_buf_format(to, "%s/%.*s.sonde", folder, (int)length, name);
}

static int import_several(const struct snd_command *self, char **paths, int count,
                          const struct import_args *args)
{
    if (mkdir(args->output, 0700) != 0 && errno != EEXIST)
        return snd_failure("import: cannot create %s: %s", args->output, strerror(errno));
    for (int i = 0; i < count; i++) {
        struct sonde_buffer to = { 0 };
        name_in(&to, args->output, paths[i]);
        int status = to.failed ? snd_failure("import: out of memory")
                               : import_file(self, paths[i], to.bytes, args);
        sonde_buffer_release(&to);
        if (status != SND_EXIT_OK)
            return status;
    }
    return SND_EXIT_OK;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct import_args args = { .level = 3 };
    struct stat        st;
    int                operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands == 0)
        return snd_usage_error(self, "missing FILE");
    if (!args.output)
        return snd_usage_error(self, "missing -o TRACE");
    if (args.level > 19)
        return snd_usage_error(self, "--level: expected 1..19, got %lld", (long long)args.level);
    bool is_folder = operands > 1 || (stat(args.output, &st) == 0 && S_ISDIR(st.st_mode));
    if (!is_folder && snd_path_kind(args.output) == SND_PATH_OTHER)
        return snd_failure(
            "import: refusing to overwrite %s, which is not a trace; give another name with -o",
            args.output);
    snd_progress_start("sonde: importing");
    status = is_folder ? import_several(self, argv, operands, &args)
                       : import_file(self, argv[0], args.output, &args);
    snd_progress_stop();
    return status;
}

const struct snd_command snd_command_import = {
    .name = "import",
    .operands = "FILE..",
    .summary = "keep traces of torch.profiler, Chrome or Perfetto (JSON) as packed traces",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
