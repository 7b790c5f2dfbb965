/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/torch/plain.c - the torch probe where there is no C++ compiler: names and times alone.
 *
 * Has the interface of shim.h, but calls torch by its mangled names, from C, so it is built once
 * for a CPython and goes with every torch that has them. Of an at::RecordFunction only the name can
 * be had that way: no inputs, memory, stacks, modules or sequence numbers. The ledger says so
 * ("torch.names_only"). Which kind of range it is (SCOPE) is known by which of the callbacks is
 * called. Python's frames are not torch's: how many a range that Python opens lies in is recorded,
 * or samples would put it below the function that it has in it.
 *
 * What C++ does here, as C (the Itanium ABI): a class of this size is passed like a struct of C; a
 * std::unique_ptr is returned through a pointer that comes as the first argument.
 *
 * Layer: probes (sees <sonde/record.h> alone).
 */
#include "pystack/interpreter/range_depth.h" /* first: it includes Python.h */

#include "probes/torch/shim.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "format/layout.h"
#include "format/metadata.h"
#include "sonde/record.h"

#define KEY_MASK ((UINT64_C(1) << 48) - 1)

enum { CALLBACKS = 4, SCOPES_ROOM = 40 };

/*
 * at::RecordFunctionCallback. Behind its scopes come "needs inputs, outputs, ids"; how many scopes
 * there are depends on the torch, but all of it is zero here.
 */
struct callback {
    void *(*start)(void **context, const void *function);
    void (*end)(const void *function, void *context);
    double        probability;
    unsigned char scopes[SCOPES_ROOM];
};

static struct {
    uint64_t (*add)(struct callback);
    void (*remove)(uint64_t handle);
    const char *(*name)(const void *function);
    uint64_t (*thread)(void);
} torch;

static pthread_mutex_t  control = PTHREAD_MUTEX_INITIALIZER;
static uint64_t         handles[CALLBACKS];
static bool             is_on;
static char           **notes; /* owned: key, value, .., NULL */
static _Atomic uint32_t noted_epoch;
static char             error_text[256], description[512];

static _Thread_local uint32_t thread_epoch;

/* ---------------------------------------------------------------- callbacks */

/* Each trace file says what the probe did for it; once an epoch, by the first thread there. */
static void write_notes(uint32_t epoch)
{
    if (atomic_exchange(&noted_epoch, epoch) == epoch)
        return;
    pthread_mutex_lock(&control);
    sonde_metadata(snd_meta_key(SND_META_TORCH_PROBE), description);
    sonde_metadata(snd_meta_key(SND_META_TORCH_NAMES_ONLY), "1");
    for (size_t i = 0; notes && notes[i]; i += 2)
        sonde_metadata(notes[i], notes[i + 1]);
    pthread_mutex_unlock(&control);
}

static void renew(uint32_t epoch)
{
    char key[40], value[24];

    thread_epoch = epoch;
    sonde_intern("torch", 5); /* a forked child has no file, to note things in, before this */
    write_notes(epoch);
    snprintf(key, sizeof key, "%s%ld", snd_meta_key(SND_META_TORCH_THREAD),
             (long)syscall(SYS_gettid));
    snprintf(value, sizeof value, "%llu", (unsigned long long)torch.thread());
    sonde_metadata(key, value);
}

static uint64_t key_of(const void *function)
{
    return (uintptr_t)function & KEY_MASK;
}

#ifndef SND_PYFRAMES_MISSING
static void note_depth(void)
{
    unsigned depth = snd_range_depth();

    if (depth != 0)
        sonde_attr(SONDE_ATTR_PYTHON_DEPTH, depth);
}
#else
static void note_depth(void)
{
}
#endif

/* Any range may end on another thread: the thread that began it cannot be read from C. */
static void begin(const void *function, enum snd_scope scope)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0)
        return;
    if (thread_epoch != epoch)
        renew(epoch);
    sonde_begin_text(torch.name(function));
    sonde_attr(SONDE_ATTR_KEY, key_of(function));
    sonde_attr(SONDE_ATTR_SCOPE, (uint64_t)scope + 1); /* of an operator too: it is torch's */
    if (scope == SND_SCOPE_USER)
        note_depth();
}

static void on_end(const void *function, void *context)
{
    (void)context;
    if (sonde_epoch() != 0)
        sonde_end_key(key_of(function));
}

#define ON_BEGIN(name, scope)                               \
    static void *name(void **context, const void *function) \
    {                                                       \
        *context = NULL;                                    \
        begin(function, scope);                             \
        return (void *)context;                             \
    }
ON_BEGIN(on_function, SND_SCOPE_FUNCTION)
ON_BEGIN(on_backward, SND_SCOPE_BACKWARD)
ON_BEGIN(on_script, SND_SCOPE_SCRIPT)
ON_BEGIN(on_user, SND_SCOPE_USER)

static const struct {
    enum snd_scope scope;
    void *(*start)(void **context, const void *function);
} callbacks[CALLBACKS] = { { SND_SCOPE_FUNCTION, on_function },
                           { SND_SCOPE_BACKWARD, on_backward },
                           { SND_SCOPE_SCRIPT, on_script },
                           { SND_SCOPE_USER, on_user } };

/* ----------------------------------------------------------- start and stop */

static bool find_torch(void)
{
    static const char *const names[] = {
        "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE",
        "_ZN2at14removeCallbackEm",
        "_ZNK2at14RecordFunction4nameEv",
        "_ZN2at14RecordFunction15currentThreadIdEv",
    };
    void *library = dlopen("libtorch_cpu.so", RTLD_NOLOAD | RTLD_LAZY);
    void *found[4];

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        found[i] = library ? dlsym(library, names[i]) : NULL;
        if (!found[i]) {
            snprintf(error_text, sizeof error_text,
                     "the torch probe cannot start: libtorch_cpu.so%s%s",
                     library ? " has no " : " is not loaded", library ? names[i] : "");
            return false;
        }
    }
    memcpy(&torch.add, &found[0], sizeof found[0]);
    memcpy(&torch.remove, &found[1], sizeof found[1]);
    memcpy(&torch.name, &found[2], sizeof found[2]);
    memcpy(&torch.thread, &found[3], sizeof found[3]);
    return true;
}

static void free_notes(void)
{
    for (size_t i = 0; notes && notes[i]; i++)
        free(notes[i]);
    free(notes);
    notes = NULL;
}

static void copy_notes(const char *const *from)
{
    size_t count = 0;

    free_notes();
    while (from && from[count] && from[count + 1])
        count += 2;
    notes = calloc(count + 1, sizeof *notes);
    for (size_t i = 0; notes && i < count; i++) {
        notes[i] = strdup(from[i]);
        if (!notes[i]) { /* out of memory: without notes */
            free_notes();
            return;
        }
    }
}

static void stop(void)
{
    for (size_t i = 0; is_on && i < CALLBACKS; i++)
        torch.remove(handles[i]);
    is_on = false;
}

static void start(const struct sonde_torch_options *options)
{
    copy_notes(options->notes);
    noted_epoch = 0;
    snprintf(
        description, sizeof description,
        "{\"records\": [\"ops\"], \"missing\": \"%sall but names and times: no C++ compiler, and "
        "no built probe for this torch\"}",
        options->flags ? "what was asked for, " : "");
    for (size_t i = 0; i < CALLBACKS; i++) {
        struct callback callback = { .start = callbacks[i].start,
                                     .end = on_end,
                                     .probability = 1.0 };
        callback.scopes[callbacks[i].scope] = 1;
        handles[i] = torch.add(callback);
    }
    is_on = true;
}

int sonde_torch_start(const struct sonde_torch_options *options)
{
    int result = -1;

    pthread_mutex_lock(&control);
    error_text[0] = '\0';
    if (!options || options->struct_size != sizeof *options) {
        snprintf(error_text, sizeof error_text,
                 "the torch probe cannot start: options of another version");
    } else if (find_torch()) {
        stop();
        start(options);
        result = 0;
    }
    pthread_mutex_unlock(&control);
    return result;
}

void sonde_torch_stop(void)
{
    pthread_mutex_lock(&control);
    stop();
    pthread_mutex_unlock(&control);
}

const char *sonde_torch_error(void)
{
    return error_text;
}

const char *sonde_torch_describe(void)
{
    return description;
}
