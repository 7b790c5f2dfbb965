/* SPDX-License-Identifier: Apache-2.0 */
/* Packets of Perfetto's trace format: events, interned data, tracks. */
#include "base/text/buf.h"
#include "export/common/exporter.h"
#include "export/perfetto/perfetto.h"

#define SEQUENCE 1                             /* the one sequence of packets that all are of */
#define FIELDS_MAX (4 * 2 * SND_PB_VARINT_MAX) /* bytes of four numbers with their tags */

enum { FLAG_CLEARED = 1, FLAG_NEEDS_STATE = 2 };
enum {
    TRACK_ID = 1,
    TRACK_NAME,
    TRACK_OF_PROCESS,
    TRACK_OF_THREAD,
    TRACK_PARENT,
    TRACK_COUNTER = 8
};
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { THREAD_PID = 1, THREAD_TID, THREAD_NAME = 5 };

size_t snd_perfetto_packet(struct snd_perfetto *p, int64_t ns)
{
    snd_buf_clear(&p->packet);
    char *to = snd_buf_room(&p->packet, FIELDS_MAX);
    if (!to)
        return 0;
    char *packet = to = snd_pb_put_open(to, SND_TRACE_PACKET);
    to = snd_pb_put_uint(to, SND_PACKET_TIMESTAMP, ns > 0 ? (uint64_t)ns : 0);
    to = snd_pb_put_uint(to, SND_PACKET_SEQUENCE, SEQUENCE);
    to = snd_pb_put_uint(to, SND_PACKET_FLAGS, FLAG_NEEDS_STATE);
    snd_buf_end(&p->packet, to);
    return (size_t)(packet - p->packet.bytes);
}

void snd_perfetto_put(struct snd_perfetto *p, size_t packet)
{
    snd_pb_close(&p->packet, packet);
    if (p->packet.failed)
        p->failed = true;
    else
        snd_out_put(p->out, p->packet.bytes, p->packet.length);
}

static size_t open_event(struct snd_perfetto *p, enum snd_perfetto_type type, uint64_t track)
{
    char *to = snd_buf_room(&p->packet, FIELDS_MAX);

    if (!to)
        return 0;
    char *event = to = snd_pb_put_open(to, SND_PACKET_TRACK_EVENT);
    to = snd_pb_put_uint(to, SND_EVENT_TYPE, type);
    to = snd_pb_put_uint(to, SND_EVENT_TRACK, track);
    snd_buf_end(&p->packet, to);
    return (size_t)(event - p->packet.bytes);
}

struct snd_perfetto_opened snd_perfetto_event(struct snd_perfetto *p, int64_t ns,
                                              enum snd_perfetto_type type, uint64_t track)
{
    size_t packet = snd_perfetto_packet(p, ns);

    return (struct snd_perfetto_opened){ packet, open_event(p, type, track) };
}

void snd_perfetto_put_event(struct snd_perfetto *p, struct snd_perfetto_opened opened)
{
    snd_pb_close(&p->packet, opened.event);
    snd_perfetto_put(p, opened.packet);
}

static void tell_name(struct snd_perfetto *p, uint32_t name)
{
    const struct snd_text *text = &p->trace->names.items[name];

    if (p->known_names[name])
        return;
    p->known_names[name] = true;
    size_t interned = snd_pb_open(&p->packet, SND_PACKET_INTERNED);
    size_t item = snd_pb_open(&p->packet, SND_INTERNED_NAME);
    snd_pb_uint(&p->packet, SND_IID, (uint64_t)name + 1);
    snd_pb_text(&p->packet, SND_IID_TEXT, (struct sonde_text){ text->bytes, text->length });
    snd_pb_close(&p->packet, item);
    snd_pb_close(&p->packet, interned);
}

struct snd_perfetto_opened snd_perfetto_named(struct snd_perfetto *p, int64_t ns,
                                              enum snd_perfetto_type type, uint64_t track,
                                              uint32_t name)
{
    size_t packet = snd_perfetto_packet(p, ns);

    tell_name(p, name);
    size_t event = open_event(p, type, track);
    snd_pb_uint(&p->packet, SND_EVENT_NAME_IID, (uint64_t)name + 1);
    return (struct snd_perfetto_opened){ packet, event };
}

/* -------------------------------------------------------------- annotations */

static size_t open_note(struct snd_perfetto *p, const char *name)
{
    size_t note = snd_pb_open(&p->packet, SND_EVENT_ANNOTATION);

    snd_pb_string(&p->packet, SND_ANNOTATION_NAME, name);
    return note;
}

void snd_perfetto_note_uint(struct snd_perfetto *p, const char *name, uint64_t value)
{
    size_t note = open_note(p, name);

    snd_pb_uint(&p->packet, SND_ANNOTATION_UINT, value);
    snd_pb_close(&p->packet, note);
}

void snd_perfetto_note_text(struct snd_perfetto *p, const char *name, struct sonde_text text)
{
    size_t note = open_note(p, name);

    snd_pb_text(&p->packet, SND_ANNOTATION_TEXT, text);
    snd_pb_close(&p->packet, note);
}

void snd_perfetto_note_true(struct snd_perfetto *p, const char *name)
{
    size_t note = open_note(p, name);

    snd_pb_uint(&p->packet, SND_ANNOTATION_BOOL, 1);
    snd_pb_close(&p->packet, note);
}

/* ------------------------------------------------------------------- tracks */

void snd_perfetto_describe(struct snd_perfetto *p, uint64_t track, uint64_t parent,
                           struct sonde_text name, bool is_counter)
{
    size_t packet = snd_perfetto_packet(p, 0);
    size_t at = snd_pb_open(&p->packet, SND_PACKET_TRACK);

    snd_pb_uint(&p->packet, TRACK_ID, track);
    snd_pb_uint(&p->packet, TRACK_PARENT, parent);
    snd_pb_text(&p->packet, TRACK_NAME, name);
    if (is_counter)
        snd_pb_close(&p->packet, snd_pb_open(&p->packet, TRACK_COUNTER));
    snd_pb_close(&p->packet, at);
    snd_perfetto_put(p, packet);
}

static void describe_process(struct snd_perfetto *p, uint32_t process)
{
    size_t              packet = snd_perfetto_packet(p, 0);
    size_t              at = snd_pb_open(&p->packet, SND_PACKET_TRACK);
    struct sonde_buffer name = { 0 };

    snd_pb_uint(&p->packet, TRACK_ID, snd_perfetto_track(SND_TRACK_PROCESS, process, 0));
    size_t own = snd_pb_open(&p->packet, TRACK_OF_PROCESS);
    snd_pb_uint(&p->packet, PROCESS_PID, snd_export_pid(p->trace, process));
    snd_export_name(p->trace, process, &name);
    snd_pb_string(&p->packet, PROCESS_NAME, snd_buf_string(&name));
    snd_pb_close(&p->packet, own);
    snd_pb_close(&p->packet, at);
    snd_perfetto_put(p, packet);
    p->failed |= name.failed;
    sonde_buffer_release(&name);
}

static void describe_thread(struct snd_perfetto *p, uint32_t thread)
{
    const struct sonde_thread *t = sonde_trace_thread(p->trace, thread);
    size_t                     packet = snd_perfetto_packet(p, 0);
    size_t                     at = snd_pb_open(&p->packet, SND_PACKET_TRACK);

    snd_pb_uint(&p->packet, TRACK_ID, snd_perfetto_track(SND_TRACK_THREAD, thread, 0));
    snd_pb_uint(&p->packet, TRACK_PARENT, snd_perfetto_track(SND_TRACK_PROCESS, t->process, 0));
    size_t own = snd_pb_open(&p->packet, TRACK_OF_THREAD);
    snd_pb_uint(&p->packet, THREAD_PID, snd_export_pid(p->trace, t->process));
    snd_pb_uint(&p->packet, THREAD_TID, t->tid);
    if (t->name.length > 0)
        snd_pb_text(&p->packet, THREAD_NAME, t->name);
    snd_pb_close(&p->packet, own);
    snd_pb_close(&p->packet, at);
    snd_perfetto_put(p, packet);
}

void snd_perfetto_head(struct snd_perfetto *p)
{
    size_t packet = snd_pb_open(&p->packet, SND_TRACE_PACKET);

    snd_pb_uint(&p->packet, SND_PACKET_SEQUENCE, SEQUENCE);
    snd_pb_uint(&p->packet, SND_PACKET_FLAGS, FLAG_CLEARED);
    snd_perfetto_put(p, packet);
    for (uint32_t i = 0; i < sonde_trace_process_count(p->trace); i++)
        describe_process(p, i);
    for (uint32_t i = 0; i < sonde_trace_thread_count(p->trace); i++)
        describe_thread(p, i);
}
