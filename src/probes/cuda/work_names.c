/* SPDX-License-Identifier: Apache-2.0 */
#include "probes/cuda/work_names.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"

enum { NAMES = 4096, WORKS = 4096, QUEUES = 64, PROBES = 8, MANGLED_MOST = 8192 };
#define CUDA_DEVICE_TYPE (1u << 16) /* torch's number of the type, as in ALLOC */

/* ------------------------------------------------------------ names of kernels */

typedef char *demangler(const char *mangled, char *buffer, size_t *length, int *status);

static demangler *find_demangler(void)
{
    static demangler *found;
    static bool       looked;

    if (!looked) {
        void *symbol = dlsym(RTLD_DEFAULT, "__cxa_demangle");
        void *library = symbol ? NULL : dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
        if (library)
            symbol = dlsym(library, "__cxa_demangle");
        memcpy(&found, &symbol, sizeof found);
        looked = true;
    }
    return found;
}

static uint32_t intern_kernel(const char *mangled)
{
    demangler *demangle = strlen(mangled) <= MANGLED_MOST ? find_demangler() : NULL;
    int        status = -1;
    char      *text = demangle ? demangle(mangled, NULL, NULL, &status) : NULL;
    uint32_t   id = status == 0 && text ? sonde_intern(text, strlen(text))
                                        : sonde_intern(mangled, strlen(mangled));

    free(text);
    return id;
}

/*
 * By the name's address, which CUPTI keeps for as long as its module is loaded. Another module may
 * come to lie there: so the text is compared too.
 */
static struct kernel_name {
    const char *address;
    char       *text; /* owned */
    uint32_t    id;   /* 0: of an earlier epoch */
} kernel_names[NAMES];

static bool take_name(struct kernel_name *place, const char *mangled)
{
    free(place->text);
    place->text = strdup(mangled);
    place->address = place->text ? mangled : NULL;
    place->id = 0;
    return place->text != NULL;
}

uint32_t snd_kernel_name(const char *mangled)
{
    if (!mangled)
        return intern_kernel("(unnamed kernel)");
    size_t              at = ((uintptr_t)mangled >> 4) * 0x9e3779b1u % NAMES;
    struct kernel_name *place = &kernel_names[at];

    for (size_t i = 0; i < PROBES && place->address && place->address != mangled; i++)
        place = &kernel_names[(at + i) % NAMES];
    if (place->address != mangled || strcmp(place->text, mangled) != 0) {
        if (!take_name(place, mangled))
            return intern_kernel(mangled);
    }
    if (place->id == 0)
        place->id = intern_kernel(mangled);
    return place->id;
}

/* ------------------------------------------------------- names of other works */

static const char *word(const char *const *words, size_t count, uint32_t number, const char *other)
{
    return number < count && words[number] ? words[number] : other;
}
#define WORD(words, number, other) word(words, SND_COUNT_OF(words), number, other)

static const char *memory_word(uint32_t kind)
{
    static const char *const words[] = { "Unknown", "Pageable", "Pinned",        "Device",
                                         "Array",   "Managed",  "Device Static", "Managed Static" };

    return WORD(words, kind, "Unrecognized");
}

static uint32_t intern_text(const char *text)
{
    return sonde_intern(text, strlen(text));
}

uint32_t snd_copy_name(uint32_t copy, uint32_t source, uint32_t target)
{
    static const char *const words[] = { NULL,   "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                         "AtoD", "DtoA", "DtoD", "HtoH", "PtoP" };
    char                     text[96];

    snprintf(text, sizeof text, "Memcpy %s (%s -> %s)", WORD(words, copy, "<unknown>"),
             memory_word(source), memory_word(target));
    return intern_text(text);
}

uint32_t snd_fill_name(uint32_t memory)
{
    char text[48];

    snprintf(text, sizeof text, "Memset (%s)", memory_word(memory));
    return intern_text(text);
}

uint32_t snd_overhead_name(uint32_t kind)
{
    static const struct {
        uint32_t    kind;
        const char *word;
    } words[] = {
        { 0, "Unknown" },
        { 1, "Driver Compiler" },
        { 1 << 16, "Buffer Flush" },
        { 2 << 16, "Instrumentation" },
        { 3 << 16, "Resource" },
        { 4 << 16, "Runtime Triggered Module Loading" },
        { 5 << 16, "Lazy Function Loading" },
        { 6 << 16, "Command Buffer Full" },
        { 7 << 16, "Activity Buffer Request" },
        { 8 << 16, "UVM Activity Init" },
    };

    for (size_t i = 0; i < SND_COUNT_OF(words); i++)
        if (words[i].kind == kind)
            return intern_text(words[i].word);
    return intern_text("Unrecognized");
}

/* ---------------------------------------------------------- works and streams */

static struct {
    struct sonde_work work;
    uint32_t          id; /* 0: empty */
} works[WORKS];

static size_t hash_of(const struct sonde_work *work)
{
    uint64_t hash = 0, words[sizeof *work / 8];

    _Static_assert(sizeof *work % 8 == 0, "hashed by words");
    memcpy(words, work, sizeof words);
    for (size_t i = 0; i < SND_COUNT_OF(words); i++)
        hash = (hash ^ words[i]) * 0x9e3779b97f4a7c15u + (hash >> 29);
    return (size_t)(hash >> 20);
}

uint32_t snd_work_id(const struct sonde_work *work)
{
    size_t at = hash_of(work), i = 0;

    while (i + 1 < PROBES && works[(at + i) % WORKS].id &&
           memcmp(&works[(at + i) % WORKS].work, work, sizeof *work) != 0)
        i++;
    size_t place = (at + i) % WORKS;
    if (works[place].id == 0 || memcmp(&works[place].work, work, sizeof *work) != 0) {
        works[place].work = *work;
        works[place].id = sonde_intern_work(work);
    }
    return works[place].id;
}

static struct {
    struct sonde_queue queue;
    uint32_t           id;
} queues[QUEUES];

uint32_t snd_queue_id(uint32_t device, uint32_t context, uint32_t stream)
{
    struct sonde_queue queue = { sizeof queue, CUDA_DEVICE_TYPE | device, context, stream, 0 };
    size_t             at = (stream + context * 7u + device * 13u) % QUEUES;

    if (queues[at].id == 0 || memcmp(&queues[at].queue, &queue, sizeof queue) != 0) {
        queues[at].queue = queue;
        queues[at].id = sonde_intern_queue(&queue);
    }
    return queues[at].id;
}

void snd_worknames_renew(void)
{
    for (size_t i = 0; i < NAMES; i++)
        kernel_names[i].id = 0;
    for (size_t i = 0; i < WORKS; i++)
        works[i].id = 0;
    for (size_t i = 0; i < QUEUES; i++)
        queues[i].id = 0;
}
