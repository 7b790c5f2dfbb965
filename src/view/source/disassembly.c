/* SPDX-License-Identifier: Apache-2.0 */
#include "view/source/disassembly.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/data/map.h"

#define NOTE_HEAD_BYTES 16u /* of a build id: three lengths and "GNU" */
#define TEXT_MAX ((size_t)16 << 20)

extern char **environ;

static void read_all(int fd, struct sonde_buffer *text)
{
    char    piece[8192];
    ssize_t got;

    while (((got = read(fd, piece, sizeof piece)) > 0 || (got < 0 && errno == EINTR)) &&
           text->length < TEXT_MAX)
        if (got > 0)
            snd_buf_put(text, piece, (size_t)got);
}

/* What a program prints. False: it is not installed, or failed. */
static bool run(char *const *arguments, struct sonde_buffer *text)
{
    posix_spawn_file_actions_t actions;
    int                        ends[2], status = -1;
    pid_t                      child = -1;

    snd_buf_clear(text);
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    if (posix_spawn_file_actions_init(&actions) == 0) {
        posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
        if (posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ) != 0)
            child = -1;
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    if (child > 0)
        read_all(ends[0], text);
    close(ends[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 && !text->failed;
}

/* Hexadecimal digits of objdump -s: an address, four groups, then the same as text. */
static void read_dump(const char *text, struct sonde_buffer *digits)
{
    for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
        const char *at = line;
        if (*at != ' ' || !isxdigit((unsigned char)at[1]))
            continue;
        for (at++; isxdigit((unsigned char)*at); at++) {
        }
        for (int group = 0; group < 4 && *at == ' ' && isxdigit((unsigned char)at[1]); group++)
            for (at++; isxdigit((unsigned char)*at); at++)
                snd_buf_put(digits, at, 1);
    }
}

static bool has_build_id(const char *path, const char *build_id)
{
    char *const         arguments[] = { "objdump", "-s",         "-j", ".note.gnu.build-id",
                                        "--",      (char *)path, NULL };
    struct sonde_buffer text = { 0 }, digits = { 0 };
    bool                ok = run(arguments, &text);

    if (ok)
        read_dump(snd_buf_string(&text), &digits);
    ok &= digits.length > 2u * NOTE_HEAD_BYTES &&
          strcmp(snd_buf_string(&digits) + (size_t)2 * NOTE_HEAD_BYTES, build_id) == 0;
    sonde_buffer_release(&text);
    sonde_buffer_release(&digits);
    return ok;
}

/* "  401139:\tpush   %rbp" */
static void read_line(struct snd_disassembly *d, size_t from, size_t end)
{
    const char *line = d->text.bytes + from, *after;
    char       *colon;
    uint64_t    address = strtoull(line, &colon, 16);

    if (line[0] != ' ' || colon[0] != ':' || colon[1] != '\t')
        return;
    after = colon + 2;
    if (!snd_grow(&d->list, &d->room, d->count, sizeof *d->list))
        return;
    size_t begin = (size_t)(after - d->text.bytes);
    d->list[d->count++] = (struct snd_instruction){ address, (uint32_t)begin,
                                                    (uint32_t)(end > begin ? end - begin : 0) };
}

static void read_lines(struct snd_disassembly *d)
{
    for (size_t at = 0, end; at < d->text.length; at = end + 1) {
        const char *stop = memchr(d->text.bytes + at, '\n', d->text.length - at);
        end = stop ? (size_t)(stop - d->text.bytes) : d->text.length;
        read_line(d, at, end);
    }
}

static bool is_installed(void)
{
    char *const         arguments[] = { "objdump", "--version", NULL };
    struct sonde_buffer text = { 0 };
    bool                ok = run(arguments, &text);

    sonde_buffer_release(&text);
    return ok;
}

void snd_disassemble(struct snd_disassembly *d, const char *path, const char *build_id,
                     uint64_t from, uint64_t to)
{
    char        first[64], last[64];
    struct stat st;
    char *const arguments[] = { "objdump", "-d", "--no-show-raw-insn", first,
                                last,      "--", (char *)path,         NULL };

    *d = (struct snd_disassembly){ 0 };
    snprintf(first, sizeof first, "--start-address=0x%" PRIx64, from);
    snprintf(last, sizeof last, "--stop-address=0x%" PRIx64, to);
    if (path[0] != '/' || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        d->missing = "the file is not here: addresses alone";
    else if (!is_installed())
        d->missing = "objdump is not installed (package binutils): addresses alone";
    else if (*build_id && !has_build_id(path, build_id))
        d->missing = "the file has changed since: addresses alone";
    else if (!run(arguments, &d->text))
        d->missing = "objdump cannot read the file: addresses alone";
    else
        read_lines(d);
    if (!d->missing && d->count == 0)
        d->missing = "objdump finds no instructions there: addresses alone";
}

void snd_disassembly_release(struct snd_disassembly *d)
{
    sonde_buffer_release(&d->text);
    free(d->list);
    *d = (struct snd_disassembly){ 0 };
}

const struct snd_instruction *snd_disassembly_at(const struct snd_disassembly *d, uint64_t address)
{
    uint32_t low = 0, high = d->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (d->list[middle].address < address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < d->count && d->list[low].address == address ? &d->list[low] : NULL;
}
