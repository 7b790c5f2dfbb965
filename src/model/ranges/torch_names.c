/* SPDX-License-Identifier: Apache-2.0 */
/* model/ranges/torch_names.c - what names mean to torch. */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/compare.h"
#include "model/ranges/open_ranges.h"

/* torch calls them utility operators: profiler_util._filter_name. */
static bool is_hidden(struct snd_text name)
{
    static const char *const hidden[] = {
        "aten::is_leaf",
        "aten::output_nr",
        "aten::_version",
        "profiler::_record_function_enter",
        "profiler::_record_function_enter_new",
        "profiler::_record_function_exit",
    };

    for (size_t i = 0; i < SND_COUNT_OF(hidden); i++)
        if (snd_equals_at(name.bytes, name.length, hidden[i]))
            return true;
    return false;
}

static bool is_step(struct snd_text name)
{
    static const char prefix[] = "ProfilerStep#";
    size_t            length = sizeof prefix - 1;

    if (name.length <= length || !snd_begins_with_at(name.bytes, name.length, prefix))
        return false;
    for (size_t i = length; i < name.length; i++)
        if (name.bytes[i] < '0' || name.bytes[i] > '9')
            return false;
    return true;
}

uint8_t snd_name_judge(struct snd_text name)
{
    static const char evaluate[] = "autograd::engine::evaluate_function: ";
    uint8_t           flags = 0;

    if (name.length > 8 && (name.bytes[0] == 'a' || name.bytes[0] == 'p') && is_hidden(name))
        flags |= SND_NAME_HIDDEN;
    if (snd_begins_with_at(name.bytes, name.length, evaluate))
        flags |= SND_NAME_EVALUATE;
    if (is_step(name))
        flags |= SND_NAME_STEP;
    return flags;
}

bool snd_assembly_names(struct snd_assembly *a)
{
    uint32_t count = a->trace->names.count;

    a->name_flags = calloc((size_t)count + 1, sizeof *a->name_flags);
    for (uint32_t i = 0; a->name_flags && i < count; i++)
        a->name_flags[i] = snd_name_judge(a->trace->names.items[i]);
    return a->name_flags != NULL;
}
