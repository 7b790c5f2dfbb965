/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/encode/rendered_texts.h - texts that were rendered once, by the ids that they were made of.
 *
 * A trace refers to names, tensor lists and stacks by id, and the same ones come again and again: what an
 * exporter made of them is kept and copied the next time. A place for each hash: a text takes the place
 * of another one, and a long one is not kept at all, so that memory is bounded and running out of it does
 * no harm.
 *
 *     struct snd_rendered_key key = { { SHAPES, process, id } };
 *     const struct sonde_text *text = snd_rendered_find(&cache, &key);
 *     if (!text) {
 *         .. render it ..
 *         snd_rendered_keep(&cache, &key, bytes, length);
 *     }
 *
 * Layer: export. Threads: belongs to one thread.
 */
#ifndef SND_EXPORT_ENCODE_RENDERED_TEXTS_H
#define SND_EXPORT_ENCODE_RENDERED_TEXTS_H

#include "base/text/json.h"
#include "sonde/trace.h"

/* What a text is made of; the first word says what the others are. */
struct snd_rendered_key {
    uint64_t parts[4];
};

/* Zero it. */
struct snd_rendered {
    struct snd_rendered_item *items; /* NULL until a text is kept */
    uint32_t                  kept;  /* so many were */
};

void snd_rendered_release(struct snd_rendered *cache);
/* The text that was kept for the key, or NULL. Borrowed until the next one is kept. */
const struct sonde_text *snd_rendered_find(const struct snd_rendered     *cache,
                                           const struct snd_rendered_key *key);
/* Of a text that was found: a number that no other one has or had, from 1; 0 if these have run out. */
uint32_t snd_rendered_number(const struct sonde_text *found);
void     snd_rendered_keep(struct snd_rendered *cache, const struct snd_rendered_key *key,
                           const char *bytes, size_t length);

/* What was put since the mark. */
void snd_rendered_keep_out(struct snd_rendered *cache, const struct snd_rendered_key *key,
                           const struct snd_out *out, struct snd_out_mark mark);

/*
 * Members of the JSON object that is open. False: not kept; write them now, between snd_out_mark() and
 * snd_rendered_keep_out().
 */
bool snd_rendered_members(struct snd_rendered *cache, const struct snd_rendered_key *key,
                          struct snd_json *json);

#endif
