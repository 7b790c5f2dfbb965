/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/timeline/shown_attributes.h - how exports show the attributes of a range: torch's name for each, and what its
 * number means.
 *
 * Layer: export. Threads: any.
 */
#ifndef SND_EXPORT_TIMELINE_SHOWN_ATTRIBUTES_H
#define SND_EXPORT_TIMELINE_SHOWN_ATTRIBUTES_H

#include "export/timeline/spans.h"

enum snd_attr_form {
    SND_SHOWN_NOT, /* not shown, or elsewhere: in the name, the category, the inputs */
    SND_SHOWN_COUNT,
    SND_SHOWN_STRING,  /* the id of a string */
    SND_SHOWN_STACK,   /* the id of a stack */
    SND_SHOWN_MEMBERS, /* the id of a string: a JSON object */
};

struct snd_attr_shown {
    const char        *title;
    enum snd_attr_form form;
};

extern const struct snd_attr_shown snd_attrs_shown[SND_SPAN_ATTRS];
/* Those of them that are shown, as bits of attr_mask. */
uint32_t snd_attrs_mask(void);

#endif
