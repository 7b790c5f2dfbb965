/* SPDX-License-Identifier: Apache-2.0 */
/* view/source/native_names.c - see native_names.h */
#include "view/source/native_names.h"

#include <string.h>

#include "base/count_of.h"
#include "base/text/compare.h"

/* What may follow the arguments. */
static size_t cut_qualifiers(const char *bytes, size_t length)
{
    static const char *const words[] = { " const", " volatile", " &", " &&", " noexcept" };
    const char              *clone = memmem(bytes, length, " [clone ", 8);

    if (clone)
        length = (size_t)(clone - bytes);
    for (size_t i = 0; i < SND_COUNT_OF(words); i++)
        if (snd_ends_with_at(bytes, length, words[i])) {
            length -= strlen(words[i]);
            i = (size_t)-1; /* from the first again */
        }
    return length;
}

/* The opening bracket that the last character closes; SIZE_MAX: none. */
static size_t find_arguments(const char *bytes, size_t length)
{
    size_t depth = 0;

    for (size_t i = length; i-- > 0;) {
        depth += bytes[i] == ')';
        if (bytes[i] == '(' && --depth == 0)
            return i;
    }
    return SIZE_MAX;
}

/* Where the name begins: after the last blank that is in no brackets, which follows the return type. */
static size_t find_start(const char *bytes, size_t length)
{
    size_t depth = 0;

    for (size_t i = length; i-- > 0;) {
        depth += bytes[i] == ')' || bytes[i] == '}' || bytes[i] == '>';
        if ((bytes[i] == '(' || bytes[i] == '{' || bytes[i] == '<') && depth-- == 0)
            return 0;
        if (bytes[i] == ' ' && depth == 0)
            return i + 1;
    }
    return 0;
}

struct sonde_text snd_native_name(struct sonde_text name)
{
    size_t length = cut_qualifiers(name.bytes, name.length);

    if (length == 0 || name.bytes[length - 1] != ')')
        return name;
    size_t at = find_arguments(name.bytes, length);
    if (at == SIZE_MAX || at == 0 || snd_ends_with_at(name.bytes, at, "operator") ||
        snd_ends_with_at(name.bytes, at, "::") || snd_ends_with_at(name.bytes, at, ".") ||
        snd_ends_with_at(name.bytes, at, "<") || name.bytes[at - 1] == ' ')
        return name;
    /* Only templates' names have a return type; brackets of operators are not in pairs. */
    bool   is_template = name.bytes[at - 1] == '>';
    size_t start = is_template && !memmem(name.bytes, at, "operator", 8)
                       ? find_start(name.bytes, at)
                       : 0;
    return (struct sonde_text){ name.bytes + start, at - start };
}
