/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/nvtx.c - NVTX: the ranges and marks that programs and libraries name for NVIDIA's tools.
 *
 * NVTX is a header; at its first call it loads the library that NVTX_INJECTION64_PATH names and has it
 * put its own functions into NVTX's tables. Pushed ranges, started ranges and marks become ranges and
 * marks of ours. A range is ended by its key, wherever it was begun: libraries end them out of order.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "base/count_of.h"
#include "format/layout.h"
#include "probes/cuda/cuda.h"
#include "sonde/record.h"

enum { MODULE_CORE = 1, MODULE_CORE2 = 5, CALLBACKS = 1, DEPTH_MOST = 64, NAME_SIZE = 1024 };
enum { MESSAGE_ASCII = 1, MESSAGE_UNICODE = 2, MESSAGE_REGISTERED = 3 };

/* nvtxEventAttributes_t */
struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t  color_type;
    uint32_t color;
    int32_t  payload_type, reserved;
    uint64_t payload;
    int32_t  message_type;
    union {
        const char    *ascii;
        const wchar_t *unicode;
        const char    *registered; /* what register_ascii() gave: the text */
    } message;
};

/* ------------------------------------------------------------------------ texts */

static size_t put_utf8(char *out, uint32_t code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    size_t at = 0;
    if (code >= 0x10000)
        out[at++] = (char)(0xf0 | (code >> 18 & 7));
    out[at] = (char)(code >= 0x10000 ? 0x80 | (code >> 12 & 0x3f) : 0xe0 | code >> 12);
    out[at + 1] = (char)(0x80 | (code >> 6 & 0x3f));
    out[at + 2] = (char)(0x80 | (code & 0x3f));
    return at + 3;
}

static const char *narrow(const wchar_t *wide, char buffer[NAME_SIZE])
{
    size_t length = 0;

    while (wide && *wide && length < NAME_SIZE - 5)
        length += put_utf8(buffer + length, (uint32_t)*wide++);
    buffer[length] = '\0';
    return buffer;
}

static const char *text_of(const struct attributes *attributes, char buffer[NAME_SIZE])
{
    const char *text = NULL;

    if (attributes && attributes->message_type == MESSAGE_UNICODE)
        return narrow(attributes->message.unicode, buffer);
    if (attributes && attributes->message_type == MESSAGE_ASCII)
        text = attributes->message.ascii;
    if (attributes && attributes->message_type == MESSAGE_REGISTERED)
        text = attributes->message.registered;
    return text ? text : "(unnamed NVTX range)";
}

/* ----------------------------------------------------------------------- ranges */

/*
 * Keys have the epoch in which the range was begun, and a bit that no address has: the torch probe's
 * keys are addresses.
 */
#define KEY_BIT (UINT64_C(1) << 47)
#define KEY_EPOCH(epoch) ((uint64_t)((epoch)&0x7fffu) << 32)

static _Atomic uint32_t last_range;

/* 0: nothing records. */
static uint64_t begin(const char *name)
{
    uint32_t epoch = sonde_epoch();

    if (epoch == 0)
        return 0;
    uint64_t key = KEY_BIT | KEY_EPOCH(epoch) | (atomic_fetch_add(&last_range, 1) + 1u);
    sonde_begin_text(name);
    sonde_attr(SONDE_ATTR_KEY, key);
    sonde_attr(SONDE_ATTR_SCOPE, SND_SCOPE_USER + 1);
    return key;
}

static void end(uint64_t key)
{
    uint32_t epoch = sonde_epoch();

    if (epoch != 0 && (key & KEY_BIT) != 0 && (key & KEY_EPOCH(0x7fff)) == KEY_EPOCH(epoch))
        sonde_end_key(key);
}

static _Thread_local struct {
    uint64_t keys[DEPTH_MOST];
    int      depth;
} pushed;

/* Returns the level, from 0, as NVTX does. */
static int push(const char *name)
{
    int level = pushed.depth++;

    if (level < DEPTH_MOST)
        pushed.keys[level] = begin(name);
    return level;
}

static int pop(void)
{
    if (pushed.depth == 0)
        return -1;
    int level = --pushed.depth;
    if (level < DEPTH_MOST)
        end(pushed.keys[level]);
    return level;
}

static void mark(const char *name)
{
    if (sonde_epoch() != 0)
        sonde_mark(name);
}

/* -------------------------------------------------------------- NVTX's functions */

static void mark_ex(const struct attributes *attributes)
{
    char buffer[NAME_SIZE];

    mark(text_of(attributes, buffer));
}

static void mark_ascii(const char *text)
{
    mark(text ? text : "");
}

static void mark_wide(const wchar_t *text)
{
    char buffer[NAME_SIZE];

    mark(narrow(text, buffer));
}

static uint64_t start_ex(const struct attributes *attributes)
{
    char buffer[NAME_SIZE];

    return begin(text_of(attributes, buffer));
}

static uint64_t start_ascii(const char *text)
{
    return begin(text ? text : "");
}

static uint64_t start_wide(const wchar_t *text)
{
    char buffer[NAME_SIZE];

    return begin(narrow(text, buffer));
}

static int push_ex(const struct attributes *attributes)
{
    char buffer[NAME_SIZE];

    return push(text_of(attributes, buffer));
}

static int push_ascii(const char *text)
{
    return push(text ? text : "");
}

static int push_wide(const wchar_t *text)
{
    char buffer[NAME_SIZE];

    return push(narrow(text, buffer));
}

/* Domains keep tools' ranges apart; here they are all the thread's. */
static void domain_mark(void *domain, const struct attributes *attributes)
{
    (void)domain;
    mark_ex(attributes);
}

static uint64_t domain_start(void *domain, const struct attributes *attributes)
{
    (void)domain;
    return start_ex(attributes);
}

static void domain_end(void *domain, uint64_t key)
{
    (void)domain;
    end(key);
}

static int domain_push(void *domain, const struct attributes *attributes)
{
    (void)domain;
    return push_ex(attributes);
}

static int domain_pop(void *domain)
{
    (void)domain;
    return pop();
}

/* Registered once by those who use it often, and kept for as long as the process lives. */
static char *register_ascii(void *domain, const char *text)
{
    (void)domain;
    return strdup(text ? text : "");
}

static char *register_wide(void *domain, const wchar_t *text)
{
    char buffer[NAME_SIZE];

    return register_ascii(domain, narrow(text, buffer));
}

/* ---------------------------------------------------------------------- injection */

typedef void function(void);

static const struct {
    int       module;
    unsigned  id;
    function *ours;
} functions[] = {
    { MODULE_CORE, 1, (function *)(uintptr_t)mark_ex },
    { MODULE_CORE, 2, (function *)(uintptr_t)mark_ascii },
    { MODULE_CORE, 3, (function *)(uintptr_t)mark_wide },
    { MODULE_CORE, 4, (function *)(uintptr_t)start_ex },
    { MODULE_CORE, 5, (function *)(uintptr_t)start_ascii },
    { MODULE_CORE, 6, (function *)(uintptr_t)start_wide },
    { MODULE_CORE, 7, (function *)(uintptr_t)end },
    { MODULE_CORE, 8, (function *)(uintptr_t)push_ex },
    { MODULE_CORE, 9, (function *)(uintptr_t)push_ascii },
    { MODULE_CORE, 10, (function *)(uintptr_t)push_wide },
    { MODULE_CORE, 11, (function *)(uintptr_t)pop },
    { MODULE_CORE2, 1, (function *)(uintptr_t)domain_mark },
    { MODULE_CORE2, 2, (function *)(uintptr_t)domain_start },
    { MODULE_CORE2, 3, (function *)(uintptr_t)domain_end },
    { MODULE_CORE2, 4, (function *)(uintptr_t)domain_push },
    { MODULE_CORE2, 5, (function *)(uintptr_t)domain_pop },
    { MODULE_CORE2, 10, (function *)(uintptr_t)register_ascii },
    { MODULE_CORE2, 11, (function *)(uintptr_t)register_wide },
};

/* NvtxExportTableCallbacks: gives an array of pointers to the function pointers that NVTX calls. */
struct export_table {
    size_t struct_size;
    int (*get_functions)(int module, function ****table, unsigned *size);
};

int InitializeInjectionNvtx2(const void *(*get_export_table)(uint32_t id))
{
    const struct export_table *exported = get_export_table(CALLBACKS);

    if (!exported || exported->struct_size < sizeof *exported)
        return 0;
    for (size_t i = 0; i < SND_COUNT_OF(functions); i++) {
        function ***table = NULL;
        unsigned    size = 0;
        if (exported->get_functions(functions[i].module, &table, &size) && table &&
            functions[i].id < size && table[functions[i].id])
            *table[functions[i].id] = functions[i].ours;
    }
    return 1;
}
