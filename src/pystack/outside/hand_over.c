/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/outside/hand_over.h"

#include <string.h>

#include "pystack/interpreter/py_script.h"

#define THREADS_MAX 4096

/* Of the main thread: its state's address, and its interpreter's; false: there is none. */
static bool find_main(const struct snd_python *python, struct snd_py_thread *main)
{
    struct snd_py_interp interps[SND_INTERPRETERS_MAX];
    bool                 whole;
    size_t count = snd_python_interpreters(python, interps, SND_INTERPRETERS_MAX, &whole);
    struct snd_py_thread threads[THREADS_MAX];
    size_t found = snd_python_threads(python, interps, count, NULL, 0, threads, THREADS_MAX,
                                      &whole);

    for (size_t i = 0; i < found && i < THREADS_MAX; i++)
        if (threads[i].tid == (uint32_t)python->pid) {
            *main = threads[i];
            return true;
        }
    return false;
}

/* The request last: it is seen with what it needs. */
static bool write_all(pid_t pid, const struct snd_py_script *script, uint64_t state,
                      const char *path)
{
    uint64_t      place = state + script->place, breaker = 0;
    const int32_t pending = 1;

    if (!snd_memory_write(pid, place + script->path, path, strlen(path) + 1) ||
        !snd_memory_write(pid, place + script->pending, &pending, sizeof pending) ||
        !snd_memory_word(pid, state + script->breaker, &breaker))
        return false;
    breaker |= SND_PY_SCRIPT_WAITS;
    return snd_memory_write(pid, state + script->breaker, &breaker, sizeof breaker);
}

enum sonde_status snd_python_hand_over(const struct snd_python *python, const char *path,
                                       struct sonde_error *err)
{
    struct snd_py_script script;
    struct snd_py_thread main;
    unsigned char        offsets[SND_PY_OFFSETS_SIZE];
    int32_t              allowed = 0;

    if (!snd_memory_read(python->pid, python->runtime, offsets, sizeof offsets) ||
        !snd_py_script_read(&script, python->layout.minor, offsets, sizeof offsets))
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "Python 3.%u takes no script from outside; 3.14 and later do",
                        python->layout.minor);
    if (strlen(path) >= script.path_size)
        return snd_fail(err, SONDE_E_ARGUMENT, "the path %s is longer than Python takes: %u bytes",
                        path, script.path_size);
    if (!find_main(python, &main))
        return snd_fail(err, SONDE_E_STATE, "no main thread that runs Python was found");
    if (!snd_memory_read(python->pid, main.interp + script.allowed, &allowed, sizeof allowed) ||
        allowed == 0)
        return snd_fail(err, SONDE_E_STATE,
                        "it takes no script from outside: PYTHON_DISABLE_REMOTE_DEBUG is set, or "
                        "it was started with -X disable-remote-debug");
    if (!write_all(python->pid, &script, main.state, path))
        return snd_fail_os(err, SONDE_E_IO, "cannot write its memory");
    return SONDE_OK;
}
