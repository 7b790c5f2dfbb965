/* SPDX-License-Identifier: Apache-2.0 */
#include "export/timeline/shown_attributes.h"

const struct snd_attr_shown snd_attrs_shown[SND_SPAN_ATTRS] = {
    [SND_ATTR_FLOPS] = { "FLOPs", SND_SHOWN_COUNT },
    [SND_ATTR_STACK] = { "Call stack", SND_SHOWN_STACK },
    [SND_ATTR_SEQUENCE] = { "Sequence number", SND_SHOWN_COUNT },
    [SND_ATTR_FWD_THREAD] = { "Fwd thread id", SND_SHOWN_COUNT },
    [SND_ATTR_OVERLOAD] = { "Overload Name", SND_SHOWN_STRING },
    [SND_ATTR_MODULE] = { "Module Hierarchy", SND_SHOWN_STRING },
    [SND_ATTR_MACS] = { "MACs", SND_SHOWN_COUNT },
    [SND_ATTR_BYTES] = { "Bytes", SND_SHOWN_COUNT },
    [SND_ATTR_KEYWORDS] = { "", SND_SHOWN_MEMBERS },
    [SND_ATTR_COLLECTIVE] = { "", SND_SHOWN_MEMBERS },
    [SND_ATTR_COLLECTIVE_SEQUENCE] = { "Seq", SND_SHOWN_COUNT },
};

uint32_t snd_attrs_mask(void)
{
    uint32_t mask = 0;

    for (unsigned key = 0; key < SND_SPAN_ATTRS; key++)
        mask |= (uint32_t)(snd_attrs_shown[key].form != SND_SHOWN_NOT) << key;
    return mask;
}
