/* SPDX-License-Identifier: Apache-2.0 */
/* The list of commands, in the order in which help names them; and what several of them need. */
#include "cli/commands.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "cli/run/run_folder.h"
#include "format/layout.h"

#define SND_STAMP(time) ((int64_t)(time).tv_sec * 1000000000 + (time).tv_nsec)

const struct snd_command *const snd_commands[] = {
    &snd_command_run,  &snd_command_attach, &snd_command_report,     &snd_command_view,
    &snd_command_diff, &snd_command_export, &snd_command_sql,        &snd_command_check,
    &snd_command_pack, &snd_command_model,  &snd_command_layers,     &snd_command_convert,
    &snd_command_plan, &snd_command_doctor, &snd_command_completion,
};
const size_t snd_command_count = sizeof snd_commands / sizeof snd_commands[0];

/* When a trace was last written; of a folder, the latest of its files. 0: not a trace. */
static int64_t written_at(const char *path)
{
    struct stat st;
    int64_t     latest = 0;

    switch (snd_path_kind(path)) {
    case SND_PATH_TRACE:
        return stat(path, &st) == 0 ? SND_STAMP(st.st_mtim) : 0;
    case SND_PATH_FOLDER:
        break;
    default:
        return 0;
    }
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;)
        if (entry->d_name[0] != '.' && fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
            SND_STAMP(st.st_mtim) > latest)
            latest = SND_STAMP(st.st_mtim);
    if (dir)
        closedir(dir);
    return latest;
}

/* The latest NAME.sonde of the current folder; NULL if there is none. */
static char *find_latest(void)
{
    static char name[NAME_MAX + 1];
    DIR        *dir = opendir(".");
    int64_t     latest = 0;

    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        size_t length = strlen(entry->d_name), tail = strlen(".sonde");
        if (length <= tail || strcmp(entry->d_name + length - tail, ".sonde") != 0)
            continue;
        int64_t at = written_at(entry->d_name);
        if (at > latest) {
            latest = at;
            snprintf(name, sizeof name, "%s", entry->d_name);
        }
    }
    if (dir)
        closedir(dir);
    return latest > 0 ? name : NULL;
}

int snd_take_trace(const struct snd_command *command, int operands, char **argv)
{
    if (operands > 1)
        return snd_usage_error(command, "expected one trace");
    if (operands == 1 && strcmp(argv[0], "-") == 0)
        return snd_usage_error(command, "cannot read a trace from standard input; give its name");
    if (operands == 1)
        return -1;
    argv[0] = find_latest();
    if (!argv[0])
        return snd_usage_error(command, "missing TRACE: there is none in the current folder");
    fprintf(stderr, "sonde: %s %s: the latest trace here\n", command->name, argv[0]);
    return -1;
}

int snd_open_trace(const struct snd_command *command, int operands, char **argv,
                   struct sonde_trace **trace)
{
    struct sonde_error err;
    int                status = snd_take_trace(command, operands, argv);

    if (status >= 0)
        return status;
    if (sonde_trace_open(argv[0], trace, &err) != SONDE_OK)
        return snd_report_error(command, argv[0], &err);
    return -1;
}

int snd_report_error(const struct snd_command *command, const char *object,
                     const struct sonde_error *err)
{
    if (err->status == SONDE_E_ARGUMENT)
        return snd_usage_error(command, "%s", err->message);
    if (strstr(err->message, object)) /* once is enough */
        return snd_failure("%s: %s", command->name, err->message);
    return snd_failure("%s %s: %s", command->name, object, err->message);
}

void snd_say_notes(const struct snd_command *command, const struct sonde_buffer *notes)
{
    for (char *line = notes->bytes; line && *line;) {
        char *end = line + strcspn(line, "\n");
        bool  more = *end != '\0';
        *end = '\0';
        fprintf(stderr, "sonde: %s: %s\n", command->name, snd_make_plain(line));
        line = end + more;
    }
}

struct snd_json *snd_stdout_json_begin(struct snd_stdout_json *output, unsigned lines)
{
    output->sink = sonde_sink_file(stdout);
    snd_out_init(&output->out, &output->sink);
    snd_json_init(&output->json, &output->out);
    snd_json_break_at(&output->json, lines);
    snd_json_object(&output->json, NULL);
    return &output->json;
}

void snd_stdout_json_end(struct snd_stdout_json *output)
{
    snd_json_end(&output->json);
    (void)snd_out_finish(&output->out, NULL); /* snd_finish_stdout reports it */
}

int snd_finish_stdout(const struct snd_command *command)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return snd_failure("%s: cannot write to standard output: %s", command->name,
                           strerror(errno));
    return SND_EXIT_OK;
}

/* ------------------------------------------------------------------ paths */

static bool is_trace_at(int folder, const char *name)
{
    char magic[sizeof SND_FILE_MAGIC - 1];
    /* Does not block on a pipe, nor follow a link out of the folder. */
    int  fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    bool is = false;

    if (fd >= 0) {
        is = read(fd, magic, sizeof magic) == (ssize_t)sizeof magic &&
             memcmp(magic, SND_FILE_MAGIC, sizeof magic) == 0;
        close(fd);
    }
    return is;
}

static bool holds_only_traces(const char *path)
{
    DIR *dir = opendir(path);
    bool only = dir != NULL;

    for (struct dirent *entry; only && (entry = readdir(dir)) != NULL;)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            strcmp(entry->d_name, SND_INNER_RUN) != 0)
            only = is_trace_at(dirfd(dir), entry->d_name);
    if (dir)
        closedir(dir);
    return only;
}

enum snd_path_kind snd_path_kind(const char *path)
{
    struct stat st;

    if (lstat(path, &st) != 0)
        return SND_PATH_NONE; /* or not accessible: creating it gives the actual reason */
    if (S_ISDIR(st.st_mode))
        return holds_only_traces(path) ? SND_PATH_FOLDER : SND_PATH_OTHER;
    return S_ISREG(st.st_mode) && is_trace_at(AT_FDCWD, path) ? SND_PATH_TRACE : SND_PATH_OTHER;
}

/* --------------------------------------------------------------- progress */

static volatile sig_atomic_t seconds;
static const char           *doing;

static void on_second(int signal)
{
    static const char erase[] = "\r\033[K";
    char              text[160];
    size_t            at = sizeof text, n = (size_t)++seconds, length = strlen(doing);
    int               saved = errno;

    (void)signal;
    if (n >= 2 && length < 100) {
        /* Only what is allowed in a signal handler: digits by hand. */
        memcpy(text + (at -= 2), " s", 2);
        do
            text[--at] = (char)('0' + n % 10);
        while ((n /= 10) > 0);
        memcpy(text + (at -= 2), ", ", 2);
        memcpy(text + (at -= length), doing, length);
        memcpy(text + (at -= sizeof erase - 1), erase, sizeof erase - 1);
        if (write(STDERR_FILENO, text + at, sizeof text - at) < 0)
            seconds = 0;
    }
    errno = saved;
}

void snd_progress_start(const char *what)
{
    struct sigaction action = { .sa_handler = on_second, .sa_flags = SA_RESTART };
    struct itimerval every = { { 1, 0 }, { 1, 0 } };

    if (!isatty(STDERR_FILENO))
        return;
    doing = what;
    seconds = 0;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
}

void snd_progress_stop(void)
{
    struct itimerval never = { { 0, 0 }, { 0, 0 } };

    if (!isatty(STDERR_FILENO))
        return;
    setitimer(ITIMER_REAL, &never, NULL);
    if (seconds >= 2)
        fprintf(stderr, "\r\033[K");
}
