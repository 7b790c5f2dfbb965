/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/interpreter/py_script.h"

#include <string.h>

#include "base/count_of.h"

#define COOKIE "xdebugpy"
#define WORDS 6
#define PATH_LEAST 64u /* CPython has 512 */

/* Where the words are in the block (struct _debugger_support, its last), from 3.14 on. */
static const size_t firsts[] = { 89, 105 };

bool snd_py_script_read(struct snd_py_script *script, unsigned minor, const void *offsets,
                        size_t size)
{
    uint64_t words[WORDS];

    if (minor < 14 || minor - 14 >= SND_COUNT_OF(firsts) ||
        size < (firsts[minor - 14] + WORDS) * sizeof words[0] ||
        memcmp(offsets, COOKIE, sizeof COOKIE - 1) != 0)
        return false;
    memcpy(words, (const char *)offsets + firsts[minor - 14] * sizeof words[0], sizeof words);
    for (size_t i = 0; i < WORDS; i++)
        if (words[i] > UINT32_MAX)
            return false;
    *script = (struct snd_py_script){ .breaker = (uint32_t)words[0],
                                      .place = (uint32_t)words[1],
                                      .allowed = (uint32_t)words[2],
                                      .pending = (uint32_t)words[3],
                                      .path = (uint32_t)words[4],
                                      .path_size = (uint32_t)words[5] };
    return script->place > 0 && script->path_size >= PATH_LEAST;
}
