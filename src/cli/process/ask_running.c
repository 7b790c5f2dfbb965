/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/process/ask_running.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/text/buf.h"
#include "cli/process/listeners.h"
#include "cli/run/autostart.h"
#include "base/system/package.h"
#include "pystack/outside/hand_over.h"
#include "pystack/outside/locate.h"

#define SECONDS 20 /* until the main thread runs Python again, and has imported the package */
#define LOOKS_A_SECOND 50
#define REASON_MOST 400

/* What the program runs. Both paths are of bytes, in hexadecimal digits. Whatever fails is told in a file, never to the program. */
static const char script[] =
    "import os, sys\n"
    "def listen(folder, package):\n"
    "    try:\n"
    "        try:\n"
    "            import sonde\n"
    "        except ImportError:\n"
    "            sys.path.append(package)\n"
    "        from sonde.torch import _standby\n"
    "        _standby.join(folder)\n"
    "    except BaseException as error:\n"
    "        with open(folder + '/failed.part', 'w', errors='replace') as file:\n"
    "            file.write(' '.join(str(error).split()) or type(error).__name__)\n"
    "        os.rename(folder + '/failed.part', folder + '/failed')\n"
    "listen(*(os.fsdecode(bytes.fromhex(path)) for path in ('%s', '%s')))\n";

struct places {
    char script[PATH_MAX], failed[PATH_MAX];
};

static void put_hex(struct sonde_buffer *out, const char *bytes)
{
    for (; *bytes != '\0'; bytes++)
        snd_buf_format(out, "%02x", (unsigned char)*bytes);
}

static enum sonde_status make_folder(pid_t pid, char folder[static PATH_MAX], struct places *places,
                                     struct sonde_error *err)
{
    char   here[PATH_MAX];
    size_t room = PATH_MAX - sizeof "/listen.py";

    if (!getcwd(here, sizeof here))
        return snd_fail_os(err, SONDE_E_IO, "cannot find the current folder");
    int length = snprintf(folder, PATH_MAX, "%s/record-%d", here, (int)pid);
    if (length < 0 || (size_t)length >= room)
        return snd_fail(err, SONDE_E_ARGUMENT, "the path of the current folder is too long");
    if (mkdir(folder, 0700) != 0 && errno != EEXIST)
        return snd_fail_os(err, SONDE_E_IO, "cannot make the folder %s", folder);
    snprintf(places->script, PATH_MAX, "%.*s/listen.py", (int)room, folder);
    snprintf(places->failed, PATH_MAX, "%.*s/failed", (int)room, folder);
    return SONDE_OK;
}

static enum sonde_status write_script(const char *folder, const struct places *places,
                                      struct sonde_error *err)
{
    struct sonde_buffer package = { 0 }, folder_hex = { 0 }, package_hex = { 0 };
    enum sonde_status   st = SONDE_OK;

    if (!snd_autostart_find(&package) || !snd_path_up(&package) || !snd_path_up(&package))
        st = snd_fail(err, SONDE_E_STATE,
                      "sonde's Python package is not beside this program; install it (make, or "
                      "pip install .) or set SONDE_PYTHON to its folder");
    put_hex(&folder_hex, folder);
    put_hex(&package_hex, snd_buf_string(&package));
    FILE *file = st == SONDE_OK ? fopen(places->script, "we") : NULL;
    if (st == SONDE_OK && !file)
        st = snd_fail_os(err, SONDE_E_IO, "cannot write %s", places->script);
    if (file) {
        fprintf(file, script, snd_buf_string(&folder_hex), snd_buf_string(&package_hex));
        if (fclose(file) != 0)
            st = snd_fail_os(err, SONDE_E_IO, "cannot write %s", places->script);
    }
    sonde_buffer_release(&package);
    sonde_buffer_release(&folder_hex);
    sonde_buffer_release(&package_hex);
    return st;
}

static bool listens(const char *folder, pid_t pid)
{
    struct snd_listeners all = { 0 };
    bool found = snd_listeners_find(&all, folder, pid, NULL) == SONDE_OK && all.count > 0;

    snd_listeners_release(&all);
    return found;
}

/* The one line of the file, if there is one. */
static bool read_reason(const char *path, char reason[static REASON_MOST])
{
    FILE *file = fopen(path, "re");

    if (!file)
        return false;
    size_t length = fread(reason, 1, REASON_MOST - 1, file);
    reason[length] = '\0';
    fclose(file);
    return true;
}

static enum sonde_status wait_for_it(pid_t pid, const char *folder, const struct places *places,
                                     const volatile int *quit, struct sonde_error *err)
{
    const struct timespec pause = { 0, 1000000000 / LOOKS_A_SECOND };
    char                  reason[REASON_MOST];

    for (int i = 0; i < SECONDS * LOOKS_A_SECOND && !*quit; i++) {
        if (listens(folder, pid))
            return SONDE_OK;
        if (read_reason(places->failed, reason))
            return snd_fail(err, SONDE_E_STATE, "%s", reason);
        nanosleep(&pause, NULL);
    }
    return snd_fail(err, SONDE_E_STATE,
                    *quit ? "interrupted"
                          : "its main thread has not run Python for %d s: it waits, or runs C code",
                    SECONDS);
}

static enum sonde_status ask(const struct snd_python *python, const char *folder,
                             const struct places *places, const volatile int *quit,
                             struct sonde_error *err)
{
    enum sonde_status st = write_script(folder, places, err);

    unlink(places->failed);
    if (st == SONDE_OK)
        st = snd_python_hand_over(python, places->script, err);
    if (st == SONDE_OK)
        st = wait_for_it(python->pid, folder, places, quit, err);
    unlink(places->script);
    unlink(places->failed);
    return st;
}

enum sonde_status snd_running_listen(pid_t pid, char folder[static PATH_MAX],
                                     const volatile int *quit, struct sonde_error *err)
{
    struct snd_python python;
    struct places     places;
    enum sonde_status st = snd_python_find(&python, pid, err);

    if (st == SONDE_OK)
        st = make_folder(pid, folder, &places, err);
    if (st != SONDE_OK || listens(folder, pid))
        return st;
    st = ask(&python, folder, &places, quit, err);
    if (st != SONDE_OK)
        rmdir(folder); /* unless it has traces of another time */
    return st;
}
