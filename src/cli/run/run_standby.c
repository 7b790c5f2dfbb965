/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_standby.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count_of.h"
#include "cli/commands.h"
#include "cli/process/child.h"
#include "cli/run/autostart.h"

int snd_run_standby_check(const struct snd_command *self, const struct snd_run_args *args)
{
    struct snd_run_probes asked = args->probes;
    const struct {
        bool        given;
        const char *name;
    } others[] = {
        { args->after.print, "--print" },
        { args->after.view != NULL, "--view" },
        { args->schedule != NULL, "--schedule" },
        { args->max_size != 0, "--max-size" },
        { args->roof, "--roof" },
        { args->repeat > 1, "--repeat" },
    };

    snd_run_probes_default(&asked, NULL);
    if (!asked.unasked)
        return snd_usage_error(self, "--standby records nothing by itself: what is to be recorded "
                                     "is said later, as in sonde record FOLDER --ops --memory");
    for (size_t i = 0; i < SND_COUNT_OF(others); i++)
        if (others[i].given)
            return snd_usage_error(self, "--standby and %s exclude each other", others[i].name);
    return -1;
}

/* Absolute in `full`; -1, or the exit status after saying why. */
static int make_folder(const char *path, char full[PATH_MAX])
{
    struct stat st;

    if (mkdir(path, 0700) != 0 && (errno != EEXIST || stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
        return snd_failure("run: cannot make the folder %s: %s", path, strerror(errno));
    return realpath(path, full) ? -1 : snd_failure("run: %s: %s", path, strerror(errno));
}

static int set_environment(const char *full)
{
    struct sonde_buffer package = { 0 };
    int                 status = -1;

    snd_run_probes_clear(); /* of a run that we may be part of */
    unsetenv("SONDE_FIRST_PROCESS");
    setenv(SND_STANDBY_VARIABLE, full, 1);
    if (!snd_autostart_find(&package) || !snd_autostart_set(package.bytes, "standby"))
        status = snd_failure(
            "run: --standby needs sonde's Python package, which is not beside this "
            "program; install it (make, or pip install .) or set SONDE_PYTHON to "
            "its folder");
    sonde_buffer_release(&package);
    return status;
}

/* Sockets that processes left when they were killed; those that are still there listen on. */
static void remove_sockets(const char *full)
{
    char           path[PATH_MAX + sizeof SND_STANDBY_FOLDER + 1], host[HOST_NAME_MAX + 1] = "";
    struct dirent *entry;

    gethostname(host, sizeof host - 1);
    snprintf(path, sizeof path, "%s/" SND_STANDBY_FOLDER, full);
    DIR *folder = opendir(path);
    if (!folder)
        return;
    while ((entry = readdir(folder)) != NULL) {
        const char *dash = strrchr(entry->d_name, '-');
        char        process[32];
        if (!dash || strncmp(entry->d_name, host, strlen(host)) != 0 ||
            entry->d_name + strlen(host) != dash)
            continue; /* of another host: its own run removes it */
        snprintf(process, sizeof process, "/proc/%d", atoi(dash + 1));
        if (access(process, F_OK) != 0)
            unlinkat(dirfd(folder), entry->d_name, 0);
    }
    closedir(folder);
    rmdir(path);
}

int snd_run_standby(const struct snd_run_args *args, const char *name, size_t length,
                    char **program)
{
    struct snd_child child = { 0 };
    char             path[PATH_MAX], full[PATH_MAX];

    if (args->after.output)
        snprintf(path, sizeof path, "%s", args->after.output);
    else
        snprintf(path, sizeof path, "%.*s.sonde", (int)length, name);
    int status = make_folder(path, full);
    if (status < 0)
        status = set_environment(full);
    if (status >= 0)
        return status;
    if (!args->quiet)
        fprintf(stderr, "sonde: standing by; to record: sonde record %s --steps 5 --ops\n", path);
    status = snd_child_run(program, &child);
    remove_sockets(full);
    rmdir(full); /* if nothing was ever asked for */
    snd_child_leave(&child);
    return status < 0 ? snd_child_status(&child) : status;
}
