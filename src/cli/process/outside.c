/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/outside.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/system/proc_files.h"
#include "cli/process/find_program.h"
#include "cli/options/options.h"
#include "native/watch.h"

#define EXIT_LIVES 4        /* of the sampler: processes of the program live on */
#define EXIT_OTHER_RIGHTS 3 /* of the sampler: set by snd_watch() when the program has ended */

/* Quotes a word where a shell would need it. */
static void add_word(struct sonde_buffer *out, const char *word)
{
    bool plain = *word != '\0' && strcspn(word, " \t\n'\"\\$&|;<>()*?[]#~`!{}") == strlen(word);

    snd_buf_format(out, "%s", out->length ? " " : "");
    if (plain) {
        snd_buf_format(out, "%s", word);
        return;
    }
    snd_buf_format(out, "'");
    for (; *word; word++)
        snd_buf_format(out, *word == '\'' ? "'\\''" : "%c", *word);
    snd_buf_format(out, "'");
}

void snd_outside_prepare(struct snd_outside *o, const char *folder, char *const *program)
{
    o->folder = folder;
    snd_buf_format(&o->path, "%ssamples.sonde", folder);
    snd_program_file(program[0], o->program);
    for (size_t i = 0; program[i]; i++)
        add_word(&o->command, program[i]);
}

void snd_read_command(pid_t pid, struct sonde_buffer *out)
{
    char   words[4096];
    size_t n = snd_proc_read(pid, "cmdline", words, sizeof words);

    for (size_t at = 0; at < n; at += strlen(words + at) + 1)
        add_word(out, words + at);
}

/* By its mapped files: an interpreter, or its library. */
bool snd_is_other_program(pid_t pid)
{
    char   path[64], *line = NULL;
    size_t room = 0;
    bool   has_python = false;

    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    while (!has_python && getline(&line, &room, file) > 0) {
        const char *name = strrchr(line, '/');
        has_python = name &&
                     (strncmp(name, "/python", 7) == 0 || strncmp(name, "/libpython", 10) == 0);
    }
    free(line);
    fclose(file);
    return !has_python;
}

struct pipes {
    int ready, stop; /* the sampler's ends */
};

static void tell_ready(void *user)
{
    struct pipes *pipes = user;

    if (write(pipes->ready, "", 1) == 1)
        close(pipes->ready);
    pipes->ready = -1;
}

/* Among them is the gate of the program, which opens when all have closed it. Keeps stderr. */
static void close_others(struct pipes keep)
{
    long most = sysconf(_SC_OPEN_MAX);

    for (int fd = 0; fd < (most > 0 && most < 4096 ? (int)most : 4096); fd++)
        if (fd != STDERR_FILENO && fd != keep.ready && fd != keep.stop)
            close(fd);
}

/* Does not return. The reason of a failure goes through the pipe instead of the first byte. */
static void work(const struct snd_outside *o, pid_t program, struct pipes pipes)
{
    struct sonde_error err = { 0 };
    bool               lives = false;
    struct snd_watch   watch = {
          .pid = program,
          .program = o->program,
          .path = o->path.bytes,
          .command = o->command.bytes,
          .way = "by sonde run",
          .period_ns = o->clock ? 1000000000u / (uint64_t)(o->hz > 0 ? o->hz : SND_OUTSIDE_HZ) : 0,
          .counters = o->per_function ? getenv("SONDE_FUNCTION_COUNTERS") : NULL,
          .max_bytes = o->max_bytes,
          .keep_last = o->keep_last,
          .off_cpu = o->off_cpu,
          .beside_python = o->beside_python || o->per_function, /* which count for themselves */
          .traces = o->folder,
          .on_exec = true,
          .stop = pipes.stop,
          .ready = tell_ready,
          .user = &pipes,
          .lives = &lives,
    };
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, NULL);
    close_others(pipes);
    enum sonde_status status = snd_watch(&watch, &err);
    if (status == SONDE_E_UNSUPPORTED && pipes.ready < 0)
        _exit(EXIT_OTHER_RIGHTS);
    if (status != SONDE_OK && write(pipes.ready, err.message, strlen(err.message)) < 0)
        _exit(2);
    _exit(status != SONDE_OK ? 1 : lives ? EXIT_LIVES : 0);
}

/* Its first message: a zero byte, or why it cannot sample. */
static void read_ready(struct snd_outside *o, int fd)
{
    size_t  have = 0;
    ssize_t n;

    while (have < sizeof o->why - 1) {
        n = read(fd, o->why + have, sizeof o->why - 1 - have);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        have += (size_t)n;
        if (o->why[0] == '\0')
            break; /* it goes on sampling */
    }
    o->why[have] = '\0';
    if (have == 0)
        snprintf(o->why, sizeof o->why, "its sampler ended at once");
}

void snd_outside_start(struct snd_outside *o, pid_t program)
{
    int ready[2], stop[2];

    if (o->runs++ > 0) {
        snd_buf_clear(&o->path);
        snd_buf_format(&o->path, "%ssamples-%u.sonde", o->folder, o->runs);
    }
    if (!o->wanted || o->path.failed || o->command.failed || pipe2(ready, O_CLOEXEC) != 0)
        return;
    if (pipe2(stop, O_CLOEXEC) != 0) {
        close(ready[0]);
        close(ready[1]);
        return;
    }
    o->pid = fork();
    if (o->pid == 0) {
        close(ready[0]);
        close(stop[1]);
        work(o, program, (struct pipes){ ready[1], stop[0] });
    }
    close(ready[1]);
    close(stop[0]);
    o->stop = stop[1];
    if (o->pid > 0)
        read_ready(o, ready[0]);
    else
        o->pid = 0;
    close(ready[0]);
    if (o->why[0] && !o->unasked)
        (void)snd_failure("run: %s not sampled: %s",
                          o->beside_python ? "threads that run no Python are" : "the program is",
                          o->why);
}

void snd_outside_end(struct snd_outside *o)
{
    int status = 0;

    if (o->pid == 0)
        return;
    close(o->stop);
    while (waitpid(o->pid, &status, 0) < 0 && errno == EINTR)
        ;
    o->pid = 0;
    o->left = WIFEXITED(status) && WEXITSTATUS(status) == EXIT_LIVES;
    if (o->left)
        return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == EXIT_OTHER_RIGHTS) {
        snprintf(o->why, sizeof o->why,
                 "it runs with other rights than this user has (setuid, or a file that may not be "
                 "read), and the kernel does not let it be sampled: run sonde as root");
        return;
    }
    if (o->why[0] == '\0' && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
        (void)snd_failure("run: the sampler of the program failed; what it had recorded is kept");
}

void snd_outside_drop(const struct snd_outside *o)
{
    if (o->path.bytes)
        unlink(o->path.bytes);
}

void snd_outside_release(struct snd_outside *o)
{
    sonde_buffer_release(&o->path);
    sonde_buffer_release(&o->command);
}
