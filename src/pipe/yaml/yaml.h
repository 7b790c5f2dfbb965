/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipe/yaml/yaml.h - documents from and to YAML files, over libyaml.
 *
 * Read as PyYAML's safe loader reads them, written as its dumper writes them (sorted keys, flow
 * style for what holds scalars only). A file is hostile: size, depth, anchors and the nodes that
 * aliases unfold to are bounded, and what PyYAML would not build (foreign tags, maps as keys, several
 * documents) is refused, with its line; so are a duplicate key and merge keys.
 *
 * Layer: pipe. Threads: a document belongs to one thread.
 */
#ifndef SND_PIPE_YAML_YAML_H
#define SND_PIPE_YAML_YAML_H

#include "pipe/yaml/node.h"
#include "sonde/sink.h"

#define SND_YAML_BYTES_MAX ((size_t)64 << 20)
#define SND_YAML_DEPTH_MAX 64
#define SND_YAML_NODES_MAX ((uint32_t)4 << 20)
#define SND_YAML_ANCHORS_MAX ((uint32_t)4096)

/* False if this build lacks libyaml: every call below then fails with SONDE_E_UNSUPPORTED. */
bool snd_yaml_works(void);

/*
 * Reads one document into `doc`, which is empty; an empty one gives a null root. `name` is what
 * messages call it.
 * Errors: SONDE_E_FORMAT, SONDE_E_LIMIT, SONDE_E_NOMEM, SONDE_E_UNSUPPORTED; release it anyway.
 */
SND_CHECKED enum sonde_status snd_yaml_parse(struct snd_document *doc, const char *name,
                                             const char *bytes, size_t length,
                                             struct sonde_error *err);
/*
 * Reads a file that holds a map. When `may_lack`, no file or an empty one is an empty map.
 * Errors: as above; SONDE_E_FORMAT if it holds something else; SONDE_E_IO, with ENOENT in os_error if there is none.
 */
SND_CHECKED enum sonde_status snd_yaml_load_map(struct snd_document *doc, const char *path,
                                                bool may_lack, struct sonde_error *err);

/* Appends the document as text. Its maps are sorted on the way. Errors: NOMEM, UNSUPPORTED. */
SND_CHECKED enum sonde_status snd_yaml_write(struct snd_document *doc, struct sonde_buffer *text,
                                             struct sonde_error *err);
/*
 * Writes the document to a file: aside, made durable, then renamed, so that whatever fails, the
 * old file or the new one is there, whole. A link is followed; the file's mode is kept.
 * Errors: SONDE_E_IO, SONDE_E_NOMEM, SONDE_E_UNSUPPORTED; nothing is left aside.
 */
SND_CHECKED enum sonde_status snd_yaml_save(struct snd_document *doc, const char *path,
                                            struct sonde_error *err);

#endif
