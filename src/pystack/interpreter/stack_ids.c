/* SPDX-License-Identifier: Apache-2.0 */
#include "pystack/interpreter/stack_ids.h"

#include <string.h>

#include "format/limits.h"
#include "pystack/interpreter/code_lines.h"

#define KNOWN_MAX 1000000u /* more than a program has; then the cache is emptied */

void snd_names_release(struct snd_names *names)
{
    snd_map_release(&names->stacks);
    snd_map_release(&names->lines);
}

void snd_names_clear(struct snd_names *names)
{
    snd_map_release(&names->stacks);
    *names = (struct snd_names){ .lines = names->lines };
}

/* A line table is searched from its beginning: each instruction once. */
static uint32_t find_line(struct snd_names *names, enum snd_py_lines lines,
                          const struct snd_code *code, int64_t offset)
{
    struct snd_key key = { code->serial, (uint64_t)offset, 0 };
    uint32_t       line;

    if (snd_map_get(&names->lines, key, &line))
        return line;
    line = snd_py_line(lines, code->lines, code->line_bytes, code->first_line, offset);
    if (names->lines.count > KNOWN_MAX) {
        snd_map_release(&names->lines);
        names->lines = (struct snd_map){ 0 };
    }
    snd_map_put(&names->lines, key, line);
    return line;
}

static void keep(struct snd_names *names, struct snd_key key, uint32_t id)
{
    if (names->stacks.count > KNOWN_MAX)
        snd_names_clear(names);
    snd_map_put(&names->stacks, key, id);
}

uint32_t snd_names_stack(struct snd_names *names, const struct snd_recorder *recorder,
                         enum snd_py_lines lines, uint32_t parent, const struct snd_code *code,
                         int64_t offset)
{
    uint32_t       line = find_line(names, lines, code, offset), id;
    struct snd_key key = { parent, code->serial, line };

    if (snd_map_get(&names->stacks, key, &id))
        return id;
    uint32_t function = recorder->intern(code->function, strlen(code->function));
    uint32_t file = recorder->intern(code->file, strlen(code->file));
    id = recorder->stack(parent, recorder->frame(function, code->first_line, file, line));
    keep(names, key, id);
    return id;
}

uint32_t snd_names_cut(struct snd_names *names, const struct snd_recorder *recorder)
{
    struct snd_key key = { 0, 0, 0 };
    uint32_t       id;

    if (snd_map_get(&names->stacks, key, &id))
        return id;
    id = recorder->stack(0, recorder->frame(recorder->intern(SND_FRAMES_LEFT_OUT,
                                                             sizeof SND_FRAMES_LEFT_OUT - 1),
                                            0, recorder->intern("", 0), 0));
    keep(names, key, id);
    return id;
}
