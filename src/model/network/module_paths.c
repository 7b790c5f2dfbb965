/* SPDX-License-Identifier: Apache-2.0 */
/* model/network/module_paths.c - modules by their paths: "layer1.0.conv1" is a child of "layer1.0". */
#include <string.h>

#include "model/network/module_parts.h"

#define MODULES_MAX (1u << 16)
#define PATH_MAX_BYTES 1024u /* a longer one is no module's */
#define DEPTH_MAX 64u        /* parts of a path; what is deeper is its ancestor's */

uint32_t snd_module_add(struct sonde_modules *m, uint32_t parent, uint32_t name, uint32_t path)
{
    if (!snd_grow(&m->nodes, &m->node_room, m->count, sizeof *m->nodes) ||
        !snd_grow(&m->owns, &m->own_room, m->count, sizeof *m->owns)) {
        snd_assembly_stop(&m->assembly);
        return SND_NO_MODULE;
    }
    uint32_t             at = m->count++;
    struct sonde_module *node = &m->nodes[at];
    *node = (struct sonde_module){ .parent = parent,
                                   .parameters = -1,
                                   .output_bytes = -1,
                                   .device_forward_ns = -1,
                                   .kind = { "", 0 },
                                   .input_shapes = { "", 0 },
                                   .output_shapes = { "", 0 } };
    node->name = (struct sonde_text){ m->texts.items[name].bytes, m->texts.items[name].length };
    node->path = (struct sonde_text){ m->texts.items[path].bytes, m->texts.items[path].length };
    m->owns[at] = (struct snd_module_own){ 0 };
    if (at == 0)
        return at;
    node->depth = m->nodes[parent].depth + 1;
    if (m->owns[parent].last_child == 0)
        m->nodes[parent].first_child = at;
    else
        m->nodes[m->owns[parent].last_child].next_sibling = at;
    m->owns[parent].last_child = at;
    return at;
}

static uint32_t find_child(struct sonde_modules *m, uint32_t parent, const char *path, size_t start,
                           size_t end)
{
    uint32_t name, whole, at;

    if (!snd_texts_add(&m->texts, path + start, end - start, &name)) {
        snd_assembly_stop(&m->assembly);
        return SND_NO_MODULE;
    }
    struct snd_key key = { parent, name, 0 };
    if (snd_map_get(&m->by_name, key, &at))
        return at;
    if (m->count >= MODULES_MAX)
        return parent; /* what is beyond is its ancestor's, and its path is not kept */
    if (!snd_texts_add(&m->texts, path, end, &whole)) {
        snd_assembly_stop(&m->assembly);
        return SND_NO_MODULE;
    }
    at = snd_module_add(m, parent, name, whole);
    if (at != SND_NO_MODULE && !snd_map_put(&m->by_name, key, at))
        snd_assembly_stop(&m->assembly);
    return at;
}

static void set_kind(struct sonde_modules *m, uint32_t at, const char *bytes, size_t length)
{
    uint32_t text;

    if (m->nodes[at].kind.length > 0 || length == 0)
        return;
    if (!snd_texts_add(&m->texts, bytes, length, &text)) {
        snd_assembly_stop(&m->assembly);
        return;
    }
    m->nodes[at].kind = (struct sonde_text){ m->texts.items[text].bytes, length };
}

/* "Net.layer1.0.conv" or "Net.layer1.0.conv|Conv2d". */
uint32_t snd_module_find(struct sonde_modules *m, struct sonde_text path)
{
    const char *bar = memchr(path.bytes, '|', path.length);
    size_t      length = bar ? (size_t)(bar - path.bytes) : path.length, start = 0;
    uint32_t    at = SND_NO_MODULE, parts = 0;

    if (length > PATH_MAX_BYTES)
        return SND_NO_MODULE;
    while (start < length && parts++ < DEPTH_MAX) {
        const char *dot = memchr(path.bytes + start, '.', length - start);
        size_t      end = dot ? (size_t)(dot - path.bytes) : length;
        at = find_child(m, at, path.bytes, start, end);
        start = end + 1;
    }
    if (bar && at != SND_NO_MODULE)
        set_kind(m, at, bar + 1, path.length - length - 1);
    return at;
}

/* The module of a string id; SND_NO_MODULE for none. */
uint32_t snd_module_of(struct sonde_modules *m, const struct snd_lane *lane, uint32_t id)
{
    uint32_t name = id != 0 ? snd_name_of(lane->from, id) : UINT32_MAX, at;

    if (name == UINT32_MAX)
        return SND_NO_MODULE;
    struct snd_key key = { name, 0, 0 };
    if (snd_map_get(&m->by_path, key, &at))
        return at;
    const struct snd_text *text = &m->trace->names.items[name];
    at = snd_module_find(m, (struct sonde_text){ text->bytes, text->length });
    if (!snd_map_put(&m->by_path, key, at))
        snd_assembly_stop(&m->assembly);
    return at;
}

/* "one.norm|Net.one.norm": below the module that the code runs in, or by itself. */
static uint32_t find_within(struct sonde_modules *m, uint32_t module, const struct snd_text *text)
{
    const char *bar = memchr(text->bytes, '|', text->length);
    size_t      length = bar ? (size_t)(bar - text->bytes) : text->length;

    if (module == SND_NO_MODULE)
        return bar ? snd_module_find(m, (struct sonde_text){ bar + 1, text->length - length - 1 })
                   : SND_NO_MODULE;
    struct sonde_text above = m->nodes[module].path;
    char              path[PATH_MAX_BYTES];
    if (length == 0 || above.length + 1 + length > sizeof path)
        return module;
    memcpy(path, above.bytes, above.length);
    path[above.length] = '.';
    memcpy(path + above.length + 1, text->bytes, length);
    return snd_module_find(m, (struct sonde_text){ path, above.length + 1 + length });
}

uint32_t snd_module_within(struct sonde_modules *m, const struct snd_lane *lane, uint32_t module,
                           uint32_t compiled)
{
    uint32_t name = compiled != 0 ? snd_name_of(lane->from, compiled) : UINT32_MAX, at;

    if (name == UINT32_MAX)
        return module;
    struct snd_key key = { name, module, 1 };
    if (snd_map_get(&m->by_path, key, &at))
        return at;
    at = find_within(m, module, &m->trace->names.items[name]);
    if (!snd_map_put(&m->by_path, key, at))
        snd_assembly_stop(&m->assembly);
    return at;
}
