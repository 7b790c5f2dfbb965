/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/find_program.h"
#include "cli/run/run_name.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count_of.h"

static const char *last_part(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash && slash[1] ? slash + 1 : path;
}

static bool ends_in_py(const char *path, size_t length)
{
    return length > 3 && strncmp(path + length - 3, ".py", 3) == 0;
}

/* "python", "python3.13t", "pypy3": the interpreter's name and nothing but a version. */
static bool is_python(const char *path)
{
    static const char *const names[] = { "python", "pypy" };
    const char              *name = last_part(path);

    for (size_t i = 0; i < SND_COUNT_OF(names); i++) {
        size_t length = strlen(names[i]);
        if (strncmp(name, names[i], length) == 0 &&
            strspn(name + length, "0123456789.td") == strlen(name + length))
            return true;
    }
    return false;
}

/* The name without slashes at its end, folders before it, and .py. */
static void set_name(struct snd_run_name *run, const char *path)
{
    const char *name = last_part(path);
    size_t      length = strcspn(name, "/");

    if (ends_in_py(name, length))
        length -= 3;
    if (length == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return;
    run->name = name;
    run->length = length;
}

/* Reads one of Python's options; false: the script or module is found. `at` moves past its value. */
static bool read_option(struct snd_run_name *run, char *const *words, size_t *at)
{
    const char *word = words[*at];

    if (word[0] != '-') {
        set_name(run, word);
        return false;
    }
    if (word[1] == '\0') /* the script is on standard input */
        return false;
    if (word[1] == '-') {
        *at += strcmp(word, "--check-hash-based-pycs") == 0 && words[*at + 1];
        return true;
    }
    for (const char *letter = word + 1; *letter; letter++) {
        if (strchr("IES", *letter))
            run->deaf = *letter;
        if (*letter == 'c')
            return false;
        const char *value = letter[1] ? letter + 1 : words[*at + 1];
        if (*letter == 'm' && value)
            set_name(run, value);
        if (*letter == 'm')
            return false;
        if (strchr("WX", *letter)) {
            *at += !letter[1] && value;
            return true;
        }
    }
    return true;
}

struct snd_run_name snd_run_name(char *const *program)
{
    struct snd_run_name run = { .name = "program", .length = strlen("program") };

    set_name(&run, program[0]);
    run.is_python = is_python(program[0]);
    for (size_t at = 1; run.is_python && program[at]; at++)
        if (!read_option(&run, program, &at))
            break;
    return run;
}

bool snd_runs_python(char *const *program)
{
    char line[256] = "", path[PATH_MAX];

    if (is_python(program[0]))
        return true;
    int     fd = snd_find_program(program[0], path) ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t n = fd >= 0 ? read(fd, line, sizeof line - 1) : 0;
    if (fd >= 0)
        close(fd);
    line[n > 0 ? n : 0] = '\0';
    line[strcspn(line, "\n")] = '\0';
    if (strncmp(line, "#!", 2) != 0)
        return false;
    return strstr(line, "python") || strstr(line, "pypy");
}

bool snd_is_bare_script(const char *path)
{
    struct stat st;
    char        head[2] = "";

    if (!ends_in_py(path, strlen(path)) || stat(path, &st) != 0 || !S_ISREG(st.st_mode))
        return false;
    if (!strchr(path, '/'))
        return !snd_find_on_path(path, NULL);
    if (access(path, X_OK) != 0)
        return true;
    int  fd = open(path, O_RDONLY | O_CLOEXEC);
    bool has_head = fd >= 0 && read(fd, head, 2) == 2 && memcmp(head, "#!", 2) == 0;
    if (fd >= 0)
        close(fd);
    return !has_head;
}
