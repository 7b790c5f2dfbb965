/* SPDX-License-Identifier: Apache-2.0 */
/* probes/python/calls/call_functions.c - numbers of functions, and their ids in the recording. */
#include <stdlib.h>
#include <string.h>

#include "probes/python/calls/call_inside.h"

#define FUNCTIONS_MAX (1u << 18) /* the limit for a program that keeps making functions */

struct snd_calls_named *snd_calls_functions_;
uint32_t                snd_calls_function_room_;

/* The key of a function: its name, its file, and a tail of numbers, one after the other. */
static struct snd_texts texts;

uint32_t snd_calls_function(const struct snd_calls_name *name)
{
    static const struct snd_calls_name lost = {
        "(functions lost)", "~", 16, 1, 0, 0, false, false
    };

    if (texts.count >= FUNCTIONS_MAX)
        name = &lost;
    struct {
        uint64_t body;
        uint32_t line, name_length;
    } tail = { name->body, name->line, (uint32_t)name->name_length };
    size_t length = name->name_length + name->file_length + sizeof tail;
    char  *text = malloc(length);
    if (!text)
        return 0;
    memcpy(text, name->name, name->name_length);
    memcpy(text + name->name_length, name->file, name->file_length);
    memcpy(text + length - sizeof tail, &tail, sizeof tail);
    uint32_t id, before = texts.count;
    bool     added = snd_grow(&snd_calls_functions_, &snd_calls_function_room_, before,
                              sizeof *snd_calls_functions_) &&
                 snd_texts_add(&texts, text, length, &id);
    free(text);
    if (!added)
        return 0;
    if (id == before)
        snd_calls_functions_[id] =
            (struct snd_calls_named){ .name_length = (uint32_t)name->name_length,
                                      .file_length = (uint32_t)name->file_length,
                                      .line = name->line,
                                      .outside = name->outside,
                                      .module = name->module };
    return id + 1;
}

bool snd_calls_is_outside_(const struct snd_calls_thread *t, uint32_t function)
{
    const struct snd_calls_named *f = &snd_calls_functions_[function - 1];

    if (!snd_calls.whole || !t->is_main)
        return false;
    snd_calls.begun |= f->module;
    return f->outside || !snd_calls.begun;
}

const struct snd_calls_named *snd_calls_interned_(uint32_t number, uint32_t epoch)
{
    struct snd_calls_named *f = &snd_calls_functions_[number - 1];
    const char             *text = texts.items[number - 1].bytes;

    if (f->epoch != epoch) {
        f->name = sonde_intern(text, f->name_length);
        f->frame = sonde_intern_frame_in(f->name, f->line,
                                         sonde_intern(text + f->name_length, f->file_length),
                                         f->line);
        f->epoch = f->frame != 0 ? epoch : 0;
    }
    return f;
}

uint32_t snd_calls_frame_(uint32_t function)
{
    return snd_calls_interned_(function, sonde_epoch())->frame;
}
