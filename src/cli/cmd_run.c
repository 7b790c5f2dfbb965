/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sonde run: runs a program that uses <sonde/record.h>, or a Python program with PyTorch, and
 * has it record.
 *
 * The program is told through its environment; nothing is put into it, but that its Python
 * processes find a sitecustomize of ours before their own (autostart.h). Each process of it
 * writes its file into the folder TRACE; a single one then becomes the file TRACE itself.
 * The program has the terminal, stdin, stdout and stderr as if it had been run alone, and its
 * exit status becomes ours; a signal that ends it ends us too.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/autostart.h"
#include "cli/child.h"
#include "cli/commands.h"

struct run_args {
    const char *output, *schedule;
    uint64_t    max_size;
    bool        keep_last, verbose;
    bool        ops, shapes, memory, modules, stacks;
};

#define AT(member) offsetof(struct run_args, member)
static const struct snd_option options[] = {
    { 'o', "output", "TRACE", "the trace to write (PROGRAM.sonde in the current folder)",
      SND_OPTION_TEXT, AT(output), 0 },
    { 0, "ops", NULL, "record PyTorch's operators (without any of these: if the program has them)",
      SND_OPTION_FLAG, AT(ops), 0 },
    { 0, "shapes", NULL, "operators with the shapes of their inputs", SND_OPTION_FLAG, AT(shapes),
      0 },
    { 0, "memory", NULL, "tensors' memory, taken and given back", SND_OPTION_FLAG, AT(memory), 0 },
    { 0, "modules", NULL, "operators with the module that they belong to", SND_OPTION_FLAG,
      AT(modules), 0 },
    { 0, "stacks", NULL, "operators with the Python stack that called them", SND_OPTION_FLAG,
      AT(stacks), 0 },
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

/* ----------------------------------------------------------------- probes */

/*
 * The probes that were asked for, or the operators if none was: a program that has none is
 * not disturbed. -1, or an exit status when what was asked for cannot be had.
 */
static int set_probes(const struct run_args *args)
{
    const struct {
        const char *name;
        bool        is_on;
    } probes[] = { { "shapes", args->shapes },
                   { "memory", args->memory },
                   { "modules", args->modules },
                   { "stacks", args->stacks } };
    struct sonde_buffer list = { 0 }, folder = { 0 };
    bool                asked = args->ops;
    int                 status = -1;

    snd_buf_text(&list, "ops");
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        if (!probes[i].is_on)
            continue;
        asked = true;
        snd_buf_format(&list, ",%s", probes[i].name);
    }
    if (!snd_autostart_find(&folder)) {
        if (asked)
            status = snd_failure("run: cannot record operators: no Python package of sonde is "
                                 "beside this program; install it (make, or pip install .) or "
                                 "set SONDE_PYTHON to its folder");
    } else if (list.failed || !snd_autostart_set(folder.bytes, list.bytes)) {
        status = snd_failure("run: out of memory");
    }
    sonde_buffer_release(&list);
    sonde_buffer_release(&folder);
    return status;
}

/* ------------------------------------------------------------- the folder */

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static void remove_folder(const char *path)
{
    DIR *dir = opendir(path);

    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;)
        if (!is_dots(entry->d_name))
            unlinkat(dirfd(dir), entry->d_name, 0);
    closedir(dir);
    rmdir(path);
}

/* Where an older trace waits until there is a newer one. */
static void name_aside(const char *path, struct sonde_buffer *aside)
{
    snd_buf_format(aside, "%s.%ld.old", path, (long)getpid());
}

/* Makes the empty folder `path` and puts an older trace aside. -1 or an exit status. */
static int make_folder(const char *path, const char *aside)
{
    enum snd_path_kind kind = snd_path_kind(path);

    if (kind == SND_PATH_OTHER)
        return snd_failure("run: will not replace %s, which is not a trace; give another name "
                           "with -o",
                           path);
    if (kind != SND_PATH_NONE && rename(path, aside) != 0)
        return snd_failure("run: cannot replace %s: %s", path, strerror(errno));
    if (mkdir(path, 0700) == 0)
        return -1;
    int status = snd_failure("run: cannot create %s: %s; give another place with -o", path,
                             strerror(errno));
    if (kind != SND_PATH_NONE && rename(aside, path) != 0)
        snd_failure("run: the older trace is in %s", aside);
    return status;
}

/* Nothing was recorded: the older trace, if there was one, stays. */
static void undo_folder(const char *path, const char *aside)
{
    rmdir(path);
    if (rename(aside, path) != 0 && errno != ENOENT)
        snd_failure("run: the older trace is in %s", aside);
}

/* snd_path_kind has seen that there is nothing but a trace. */
static void drop_aside(const char *aside)
{
    if (unlink(aside) != 0 && errno != ENOENT)
        remove_folder(aside);
}

/* How many files are in the folder; the name of the last one seen in `name`. */
static size_t count_files(const char *folder, char name[NAME_MAX + 1])
{
    DIR   *dir = opendir(folder);
    size_t count = 0;

    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        if (is_dots(entry->d_name))
            continue;
        count++;
        snprintf(name, NAME_MAX + 1, "%s", entry->d_name);
    }
    closedir(dir);
    return count;
}

/* TRACE/PID.sonde becomes TRACE. If any step fails the folder stays, which reads as well. */
static void flatten(const char *folder, const char *name)
{
    struct sonde_buffer from = { 0 }, aside = { 0 };

    snd_buf_format(&from, "%s/%s", folder, name);
    snd_buf_format(&aside, "%s.%ld.sonde", folder, (long)getpid());
    if (!from.failed && !aside.failed && rename(from.bytes, aside.bytes) == 0) {
        if (rmdir(folder) != 0) {
            if (rename(aside.bytes, from.bytes) != 0)
                snd_failure("run: the trace is in %s", aside.bytes);
        } else if (rename(aside.bytes, folder) != 0) {
            snd_failure("run: the trace is in %s", aside.bytes);
        }
    }
    sonde_buffer_release(&from);
    sonde_buffer_release(&aside);
}

static void finish(const char *path, const char *aside, const char *program, bool verbose)
{
    char   name[NAME_MAX + 1] = "";
    size_t count = count_files(path, name);

    if (count == 0) {
        undo_folder(path, aside);
        fprintf(stderr,
                "sonde: run: %s recorded nothing: it neither imports torch nor uses "
                "<sonde/record.h>, or ended before its first event; see 'man sonde-run'\n",
                program);
        return;
    }
    drop_aside(aside);
    if (count == 1)
        flatten(path, name);
    if (verbose || isatty(STDERR_FILENO))
        fprintf(stderr, "sonde: recorded %s; next: sonde report %s\n", path, path);
}

/* ------------------------------------------------------------------ whole */

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

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

static int record_into(const struct run_args *args, const char *path, const char *aside,
                       char **program)
{
    struct sonde_buffer folder = { 0 };
    struct snd_child    child;

    int status = make_folder(path, aside);
    if (status >= 0)
        return status;
    if (!absolute_folder(path, &folder)) {
        status = snd_failure("run: cannot tell the current folder: %s", strerror(errno));
    } else {
        set_environment(args, folder.bytes);
        status = set_probes(args);
        if (status < 0)
            status = snd_child_run(program, &child);
    }
    sonde_buffer_release(&folder);
    if (status >= 0) {
        undo_folder(path, aside);
        return status;
    }
    finish(path, aside, program[0], args->verbose);
    return snd_child_status(&child);
}

static int record(const struct run_args *args, const char *path, char **program)
{
    struct sonde_buffer aside = { 0 };

    name_aside(path, &aside);
    int status = aside.failed ? snd_failure("run: out of memory")
                              : record_into(args, path, aside.bytes, program);
    sonde_buffer_release(&aside);
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
    if (args.schedule && (status = check_schedule(self, args.schedule)) >= 0)
        return status;
    argv[operands] = NULL; /* operands are fewer than arguments, so there is room */
    if (args.output)
        snd_buf_text(&path, args.output);
    else
        snd_buf_format(&path, "%s.sonde", last_part(argv[0]));
    while (path.length > 1 && path.bytes[path.length - 1] == '/')
        path.bytes[--path.length] = '\0';
    status = path.failed || path.length == 0 ? snd_usage_error(self, "the trace needs a name")
                                             : record(&args, path.bytes, argv);
    sonde_buffer_release(&path);
    return status;
}

const struct snd_command snd_command_run = {
    "run",
    "[--] PROGRAM [ARGS]",
    "run a program and record it: PyTorch, or what uses <sonde/record.h>",
    options,
    SND_OPTION_COUNT(options),
    true,
    run,
};
