/* SPDX-License-Identifier: Apache-2.0 */
/* The views as tables: views.def. */
#include <string.h>

#include "read/said/trace_metadata.h"
#include "view/render/view.h"

#define SND_VIEW(name, function, summary, groups, sorting, page, absence) \
    { { name, summary, groups }, function, sorting },
const struct snd_view snd_views[] = {
#include "view/views.def"
};
#undef SND_VIEW
const size_t snd_view_count = SND_COUNT_OF(snd_views);

const struct sonde_view_info *sonde_view_info(size_t index)
{
    return index < snd_view_count ? &snd_views[index].info : NULL;
}

/* ----------------------------------------------------------------- without rows */

/* The metadata by which probes say that they were asked; what to do, and why there is nothing. */
#define SND_ABSENT(key, word, unasked, asked) key, word, unasked, asked
#define SND_UNSAID SND_META_COUNT, NULL, NULL, NULL
#define SND_VIEW(name, function, summary, groups, sorting, page, absence) { name, absence },
static const struct {
    const char   *view;
    enum snd_meta key;
    const char   *word;
    const char   *unasked, *asked;
} texts[] = {
#include "view/views.def"
};
#undef SND_VIEW

static bool was_asked(const struct sonde_trace *trace, enum snd_meta asked, const char *word)
{
    struct sonde_text value;

    for (uint32_t p = 0; p < sonde_trace_process_count(trace); p++)
        if (snd_meta_find(trace, p, asked, &value) &&
            (!word || memmem(value.bytes, value.length, word, strlen(word))))
            return true;
    return false;
}

const char *sonde_view_absence(struct sonde_trace *trace, const char *view)
{
    for (size_t i = 0; i < SND_COUNT_OF(texts); i++)
        if (strcmp(texts[i].view, view) == 0)
            return texts[i].key != SND_META_COUNT && was_asked(trace, texts[i].key, texts[i].word)
                       ? texts[i].asked
                       : texts[i].unasked;
    return NULL;
}
