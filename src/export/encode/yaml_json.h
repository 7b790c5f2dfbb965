/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/encode/yaml_json.h - maps, lists and numbers as JSON or as YAML, by the same calls.
 *
 *     snd_emit_map(&emit, "timing");          timing:
 *     snd_emit_real(&emit, "mean", 1e-5);       mean: 1.0e-05
 *     snd_emit_end(&emit);
 *     snd_emit_list(&emit, "layers");         layers:
 *     snd_emit_item(&emit);                   - path: net
 *     snd_emit_text(&emit, "path", "net", 3);
 *     snd_emit_end(&emit);
 *     snd_emit_end(&emit);
 *
 * YAML is block style, as PyYAML writes and YAML 1.1 reads it. Keys are plain words of ours.
 *
 * Layer: export. Threads: a writer belongs to one thread.
 */
#ifndef SND_EXPORT_ENCODE_YAML_JSON_H
#define SND_EXPORT_ENCODE_YAML_JSON_H

#include "base/text/json.h"

struct snd_emit {
    struct snd_out *out;
    struct snd_json json;
    bool            is_json, dash; /* dash: the next line begins an item */
    unsigned        indent, depth;
    bool            is_list[SND_JSON_DEPTH]; /* by depth */
    bool            filled;                  /* the object opened last is not empty */
};

/* Begins the outermost map; snd_emit_finish ends it. */
void snd_emit_init(struct snd_emit *emit, struct snd_out *out, bool is_json);
void snd_emit_finish(struct snd_emit *emit);

void snd_emit_map(struct snd_emit *emit, const char *key);
void snd_emit_list(struct snd_emit *emit, const char *key);
void snd_emit_item(struct snd_emit *emit); /* a map that is an item of the list */
/* Ends the latest map, list or item. */
void snd_emit_end(struct snd_emit *emit);

void snd_emit_text(struct snd_emit *emit, const char *key, const char *bytes, size_t length);
void snd_emit_string(struct snd_emit *emit, const char *key, const char *text);
void snd_emit_int(struct snd_emit *emit, const char *key, int64_t value);
/* What is not finite is null. */
void snd_emit_real(struct snd_emit *emit, const char *key, double value);
void snd_emit_null(struct snd_emit *emit, const char *key);
/* Lists of integers as they are, "[[1, 3], []]"; anything else as text. */
void snd_emit_shapes(struct snd_emit *emit, const char *key, const char *bytes, size_t length);

#endif
