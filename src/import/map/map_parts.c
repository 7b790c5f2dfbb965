/* SPDX-License-Identifier: Apache-2.0 */
/* import/map/map_parts.c - what every kind of event needs: items, strings, lanes; declared in importer.h. */
#include "base/data/hash.h"
#include "base/text/buf.h"
#include "import/map/importer.h"

#define TEXTS_MOST ((uint64_t)6 << 20) /* bytes of arguments that are kept as text */

void snd_map_add(struct snd_importer *im, const struct snd_item *item)
{
    if (im->status == SONDE_OK && !snd_items_add(&im->items, item))
        im->status = im->items.failed_memory ? SONDE_E_NOMEM : SONDE_E_IO;
}

uint32_t snd_map_string(struct snd_importer *im, struct snd_span value)
{
    struct snd_span inside;

    if (snd_scan_plain(value, &inside))
        return snd_trace_string(&im->out, inside.at, inside.length);
    snd_buf_clear(&im->text);
    snd_scan_text(value, &im->text);
    return im->text.failed ? 0 : snd_trace_string(&im->out, im->text.bytes, im->text.length);
}

uint32_t snd_map_others(struct snd_importer *im)
{
    struct snd_trace_event *e = &im->event;

    if (e->other_count == 0)
        return 0;
    snd_buf_clear(&im->more);
    for (uint32_t i = 0; i < e->other_count; i++) {
        snd_buf_text(&im->more, i == 0 ? "{\"" : ", \"");
        snd_buf_put(&im->more, e->others[i].key.at, e->others[i].key.length);
        snd_buf_text(&im->more, "\": ");
        snd_buf_put(&im->more, e->others[i].value.at, e->others[i].value.length);
    }
    snd_buf_text(&im->more, "}");
    uint32_t before = im->out.ids[SND_REC_STRING];
    if (im->more.failed || im->more.length > SND_STRING_MAX || im->text_bytes > TEXTS_MOST) {
        im->dropped_texts++;
        return 0;
    }
    uint32_t id = snd_trace_string(&im->out, im->more.bytes, im->more.length);
    if (im->out.ids[SND_REC_STRING] != before)
        im->text_bytes += im->more.length + 64;
    return id;
}

uint32_t snd_map_id(struct snd_span value)
{
    uint64_t number;

    if (value.length == 0)
        return 0;
    if (snd_scan_uint(value, &number) && number < SND_ID_TEXT)
        return (uint32_t)number;
    return SND_ID_TEXT | ((uint32_t)snd_hash_bytes(value.at, value.length, 7).low & 0x3fffffffu);
}

uint64_t snd_map_lane(struct snd_importer *im, struct snd_span pid, struct snd_span tid)
{
    uint32_t process = pid.length > 0 ? snd_map_id(pid) : im->own_pid;

    return snd_lane_key(process, tid.length > 0 ? snd_map_id(tid) : process);
}
