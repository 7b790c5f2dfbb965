/* SPDX-License-Identifier: Apache-2.0 */
/*
 * format/facts.h - the fields of facts as a table: format/facts.def.
 *
 * Layer: format (no I/O, no state).
 */
#ifndef SND_FORMAT_FACTS_H
#define SND_FORMAT_FACTS_H

#include "format/layout.h"

struct snd_field_entry {
    uint32_t    kind;
    uint16_t    field, type; /* enum snd_fact_type */
    const char *word;
};

static const struct snd_field_entry snd_fact_fields[] = {
#define SND_FACT(name, kind, word, text, summary)
#define SND_FIELD(fact, name, field, type, word, summary) \
    { SND_FACT_OF_##fact, field, SND_FACT_##type, word },
#include "base/count_of.h"
#include "format/facts.def"
#undef SND_FIELD
#undef SND_FACT
};
#define SND_FACT_FIELDS SND_COUNT_OF(snd_fact_fields)

#endif
