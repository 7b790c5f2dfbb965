/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/find_python.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "base/system/package.h"
#include "cli/run/autostart.h"
#include "cli/process/child.h"

#define PYTHONS_MAX 3u

/* -c leaves the user's folder first on the path, as `python -m` does; our package comes last. */
static const char starter[] = "import sys; sys.path.append(sys.argv.pop(1)); "
                              "from importlib import import_module; "
                              "sys.exit(import_module('sonde.' + sys.argv[1]).main(sys.argv[2:]))";

/* The folder that holds the package: two above its `_autostart`. */
static bool find_package(struct sonde_buffer *folder)
{
    return snd_autostart_find(folder) && snd_path_up(folder) && snd_path_up(folder);
}

/* PREFIX/bin/python3, of the program PREFIX/bin/sonde; "" if there is none. */
static void find_beside(char path[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 16);

    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash) {
        path[0] = '\0';
        return;
    }
    memcpy(slash, "/python3", sizeof "/python3");
    if (access(path, X_OK) != 0)
        path[0] = '\0';
}

char *snd_python_for_script(char beside[PATH_MAX])
{
    static char usual[] = "python3";
    char       *given = getenv("SONDE_PYTHON_EXE");

    if (given && *given)
        return given;
    if (getenv("VIRTUAL_ENV") || getenv("CONDA_PREFIX"))
        return usual;
    find_beside(beside);
    return beside[0] ? beside : usual;
}

/* The exit status of one try; 128 + N if signal N ended it. */
static int run_one(const char *python, const char *package, const char *module, char *const *args)
{
    const char      *head[] = { python, "-c", starter, package, module };
    struct snd_child child = { 0 };
    size_t           n = 0, count = 0;

    while (args[count])
        count++;
    char **command = calloc(SND_COUNT_OF(head) + count + 1, sizeof *command);
    if (!command)
        return snd_failure("out of memory for the command line");
    for (size_t i = 0; i < SND_COUNT_OF(head); i++)
        command[n++] = (char *)(uintptr_t)head[i];
    memcpy(command + n, args, count * sizeof *command);
    int status = snd_child_run(command, &child);
    snd_child_leave(&child);
    free(command);
    if (status >= 0)
        return status;
    if (WIFSIGNALED(child.wait_status)) { /* what was measured until then is still shown */
        (void)snd_failure("%s was ended by signal %d (%s)", python, WTERMSIG(child.wait_status),
                          strsignal(WTERMSIG(child.wait_status)));
        return 128 + WTERMSIG(child.wait_status);
    }
    return snd_child_status(&child);
}

/* For the recorder in that Python (record/tables/run_metadata.c), which sees no more than the starter's own command line. */
static void tell_command(const struct snd_command *self, char *const *args)
{
    struct sonde_buffer text = { 0 };

    snd_buf_format(&text, "%ld sonde %s", (long)getpid(), self->name);
    for (; *args; args++) {
        snd_buf_text(&text, " ");
        snd_buf_text(&text, *args);
    }
    if (!text.failed)
        setenv("SONDE_TYPED_COMMAND", snd_buf_string(&text), 1);
    sonde_buffer_release(&text);
}

int snd_python_run(const struct snd_command *self, const char *module, const char *needs,
                   char *const *args)
{
    struct sonde_buffer package = { 0 };
    char                beside[PATH_MAX];
    const char         *given = getenv("SONDE_PYTHON_EXE"), *pythons[PYTHONS_MAX];
    size_t              count = 0;
    int                 status = SND_EXIT_LACKING;

    find_beside(beside);
    if (given && *given) {
        pythons[count++] = given;
    } else {
        if (beside[0])
            pythons[count++] = beside;
        pythons[count++] = "python3";
    }
    if (!find_package(&package)) {
        sonde_buffer_release(&package);
        return snd_failure("%s: sonde's Python package is not beside this program; install it "
                           "(make, or pip install .) or set SONDE_PYTHON to its folder",
                           self->name);
    }
    tell_command(self, args);
    for (size_t i = 0; i < count && status == SND_EXIT_LACKING; i++)
        status = run_one(pythons[i], package.bytes, module, args);
    sonde_buffer_release(&package);
    if (status == SND_EXIT_LACKING)
        status = snd_failure("%s: %s has no %s: pip install %s there, or name another "
                             "Python with SONDE_PYTHON_EXE",
                             self->name, pythons[count - 1], needs, needs);
    return status;
}
