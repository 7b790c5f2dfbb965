/* SPDX-License-Identifier: Apache-2.0 */
#include "synth.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/data/crc32c.h"
#include "format/fields.h"
#include "format/layout.h"

/* A chunk under construction. Table chunks stay in memory to the end: threads' ends go there. */
struct chunk {
    uint64_t offset;
    size_t   at, size;
    uint8_t *bytes;
};

struct lane {
    struct chunk chunk;
    uint32_t     current; /* thread of the latest event */
};

struct thread {
    uint32_t lane;         /* index */
    size_t   table, where; /* of its record: table chunk, offset in it */
};

struct synth {
    int                    fd;
    char                  *path;
    size_t                 grain, chunk_bytes;
    uint64_t               end; /* of the file */
    uint64_t               seq;
    uint64_t               rate_x1000;
    uint64_t               latest_ns;
    struct snd_file_header header;
    struct chunk          *tables;
    size_t                 table_count;
    struct lane           *lanes;
    struct thread         *threads;
    uint32_t               lane_count, thread_count;
    uint32_t               ids[SND_REC_TYPES]; /* latest id by record type */
};

size_t synth_grain = SND_GRAIN;

static void die(const char *what)
{
    fprintf(stderr, "synth: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void *grow(void *old, size_t size)
{
    void *p = realloc(old, size);
    if (!p)
        die("memory");
    return p;
}

static void write_at(const struct synth *s, const void *data, size_t size, uint64_t offset)
{
    if (pwrite(s->fd, data, size, (off_t)offset) != (ssize_t)size)
        die(s->path);
}

uint64_t synth_raw_clock(const struct synth *s, uint64_t ns)
{
    return s->header.start.raw + (uint64_t)((unsigned __int128)ns * s->rate_x1000 / 1000);
}

struct snd_file_header *synth_header(struct synth *s)
{
    return &s->header;
}

/* ------------------------------------------------------------------ chunks */

static void open_chunk(struct synth *s, struct chunk *c, uint16_t kind, uint32_t thread,
                       size_t size)
{
    struct snd_chunk_header h = { .magic = SND_CHUNK_MAGIC,
                                  .kind = kind,
                                  .header_size = SND_CHUNK_HEADER_SIZE,
                                  .size = size,
                                  .seq = ++s->seq,
                                  .thread = thread };

    c->bytes = calloc(1, size);
    if (!c->bytes)
        die("memory");
    memcpy(c->bytes, &h, sizeof h);
    c->at = sizeof h;
    c->size = size;
    c->offset = s->end;
    s->end += size;
}

static void write_chunk(struct synth *s, struct chunk *c, bool sealed)
{
    struct snd_chunk_header h;

    if (!c->bytes)
        return;
    memcpy(&h, c->bytes, sizeof h);
    if (sealed) {
        h.used = c->at;
        h.crc = snd_crc32c(0, c->bytes + sizeof h, c->at - sizeof h);
        h.crc_set = 1;
    }
    memcpy(c->bytes, &h, sizeof h);
    write_at(s, c->bytes, c->size, c->offset);
    free(c->bytes);
    c->bytes = NULL;
}

void synth_chunk(struct synth *s, uint16_t kind, const void *data, size_t size)
{
    struct chunk c = { 0 };
    size_t       whole = (size + SND_CHUNK_HEADER_SIZE + s->grain - 1) / s->grain * s->grain;

    open_chunk(s, &c, kind, 0, whole);
    memcpy(c.bytes + c.at, data, size);
    c.at += size;
    write_chunk(s, &c, true);
}

void synth_reserve(struct synth *s)
{
    struct snd_chunk_header h = { .magic = SND_CHUNK_MAGIC,
                                  .kind = SND_CHUNK_LANE,
                                  .header_size = SND_CHUNK_HEADER_SIZE,
                                  .size = s->chunk_bytes };

    write_at(s, &h, sizeof h, s->end);
    s->end += s->chunk_bytes;
}

/* ------------------------------------------------------------ open and close */

static void fill_header(struct synth *s, const struct synth_options *o)
{
    struct snd_file_header *h = &s->header;
    uint64_t                mono = SYNTH_START_MONO_NS + o->start_ns;

    memcpy(h->magic, SND_FILE_MAGIC, sizeof h->magic);
    h->version_major = SND_VERSION_MAJOR;
    h->version_minor = SND_VERSION_MINOR;
    h->header_size = SND_HEADER_SIZE;
    h->grain = (uint32_t)s->grain;
    h->clock_kind = o->ticks_per_ns_x1000 ? SND_CLOCK_TSC : SND_CLOCK_SYNTHETIC;
    memset(h->session, o->session ? o->session : 0x5e, sizeof h->session);
    h->boot_id = o->boot_id ? o->boot_id : 0xb007;
    h->pid = o->pid ? o->pid : 4242;
    h->parent_pid = o->parent_pid ? o->parent_pid : 4241;
    h->rank = o->world_size ? o->rank : SND_UNKNOWN;
    h->world_size = o->world_size ? o->world_size : SND_UNKNOWN;
    h->cycle = o->cycle;
    h->start.raw = (uint64_t)((unsigned __int128)mono * s->rate_x1000 / 1000);
    h->start.mono_ns = mono;
    h->start.real_ns = SYNTH_START_REAL_NS + o->start_ns;
    h->early = h->start;
    h->max_bytes = o->max_bytes;
    h->range_cost_raw_x256 = 40 * 256 * s->rate_x1000 / 1000;
    snprintf(h->host, sizeof h->host, "%s", o->host ? o->host : "testhost");
    snprintf(h->program, sizeof h->program, "%s", o->program ? o->program : "prog");
    h->flags = o->flags;
}

struct synth *synth_new(const char *path, const struct synth_options *options)
{
    static const struct synth_options none;
    struct synth                     *s = calloc(1, sizeof *s);

    if (!s)
        die("memory");
    if (!options)
        options = &none;
    s->path = strdup(path);
    s->fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (!s->path || s->fd < 0)
        die(path);
    s->grain = options->grain ? options->grain : synth_grain;
    s->chunk_bytes = options->chunk_bytes ? options->chunk_bytes : s->grain;
    s->rate_x1000 = options->ticks_per_ns_x1000 ? options->ticks_per_ns_x1000 : 1000;
    s->end = s->grain;
    fill_header(s, options);
    return s;
}

void synth_close(struct synth *s, bool closed)
{
    struct snd_file_header *h = &s->header;

    for (size_t i = 0; i < s->table_count; i++)
        write_chunk(s, &s->tables[i], closed || i + 1 < s->table_count);
    for (uint32_t i = 0; i < s->lane_count; i++)
        write_chunk(s, &s->lanes[i].chunk, closed);
    if (closed) {
        h->flags |= SND_FILE_CLOSED;
        if (h->stopped_at == 0)
            h->stopped_at = synth_raw_clock(s, s->latest_ns);
    }
    h->fixed_crc = snd_crc32c(0, h, offsetof(struct snd_file_header, fixed_crc));
    write_at(s, h, sizeof *h, 0);
    if (ftruncate(s->fd, (off_t)s->end) != 0 || close(s->fd) != 0)
        die(s->path);
    free(s->tables);
    free(s->lanes);
    free(s->threads);
    free(s->path);
    free(s);
}

/* ------------------------------------------------------------------ tables */

void synth_record(struct synth *s, uint8_t type, uint32_t id, const void *data, size_t size)
{
    size_t                 whole = (sizeof(struct snd_record_head) + size + 7) / 8 * 8;
    struct snd_record_head head = { (uint32_t)(whole << 8) | type, id };
    struct chunk          *c = s->table_count ? &s->tables[s->table_count - 1] : NULL;

    if (!c || c->size - c->at < whole) {
        size_t need = (SND_CHUNK_HEADER_SIZE + whole + s->grain - 1) / s->grain * s->grain;
        s->tables = grow(s->tables, (s->table_count + 1) * sizeof *s->tables);
        c = &s->tables[s->table_count++];
        open_chunk(s, c, SND_CHUNK_TABLE, 0, need > s->chunk_bytes ? need : s->chunk_bytes);
    }
    memcpy(c->bytes + c->at, &head, sizeof head);
    memcpy(c->bytes + c->at + sizeof head, data, size);
    c->at += whole;
}

uint32_t synth_string_n(struct synth *s, const char *bytes, size_t length)
{
    uint32_t length32 = (uint32_t)length;
    char    *record = grow(NULL, sizeof length32 + length);

    memcpy(record, &length32, sizeof length32);
    memcpy(record + sizeof length32, bytes, length);
    synth_record(s, SND_REC_STRING, ++s->ids[SND_REC_STRING], record, sizeof length32 + length);
    free(record);
    return s->ids[SND_REC_STRING];
}

uint32_t synth_string(struct synth *s, const char *text)
{
    return synth_string_n(s, text, strlen(text));
}

/* Number of items between an opening parenthesis and its end. */
static uint32_t list_length(const char *at)
{
    uint32_t n = *at == ')' ? 0 : 1;

    for (; *at && *at != ')'; at++)
        n += *at == ';';
    return n;
}

uint32_t synth_shapes(struct synth *s, const char *spec)
{
    uint8_t  record[8192] = { 0 };
    size_t   at = 8;
    uint32_t items = 0;

    while (*spec && at < sizeof record - 64) {
        struct snd_shape_item item = { .kind = SND_SHAPE_TENSOR, .dtype = 6 };
        size_t                item_at = at;
        at += sizeof item;
        items++;
        if (*spec == '(') {
            item.kind = SND_SHAPE_LIST;
            item.dtype = 255;
            item.count = list_length(spec + 1);
            spec++;
        } else if (*spec == '-' || *spec == '#') {
            item.kind = *spec == '-' ? SND_SHAPE_NONE : SND_SHAPE_SCALAR;
            item.dtype = *spec == '-' ? 255 : 7;
            spec++;
        } else {
            while (*spec >= '0' && *spec <= '9') {
                char   *end;
                int64_t dim = strtoll(spec, &end, 10);
                memcpy(record + at, &dim, sizeof dim);
                at += sizeof dim;
                item.count++;
                spec = *end == ',' ? end + 1 : end;
            }
        }
        memcpy(record + item_at, &item, sizeof item);
        while (*spec == ';' || *spec == ')')
            spec++;
    }
    memcpy(record, &items, sizeof items);
    synth_record(s, SND_REC_SHAPES, ++s->ids[SND_REC_SHAPES], record, at);
    return s->ids[SND_REC_SHAPES];
}

uint32_t synth_frame(struct synth *s, uint32_t function, uint32_t file, uint32_t line)
{
    struct snd_frame_record frame = { function, file, line, 0, 0, 0, 0 };

    synth_record(s, SND_REC_FRAME, ++s->ids[SND_REC_FRAME], &frame, SND_FRAME_PLAIN_SIZE);
    return s->ids[SND_REC_FRAME];
}

uint32_t synth_frame_in(struct synth *s, uint32_t function, uint32_t first_line, uint32_t file,
                        uint32_t line, bool native)
{
    struct snd_frame_record frame = { function, file, line, SND_FRAME_FLAGS(first_line) | native,
                                      0,        0,    0 };

    synth_record(s, SND_REC_FRAME, ++s->ids[SND_REC_FRAME], &frame, SND_FRAME_PLAIN_SIZE);
    return s->ids[SND_REC_FRAME];
}

uint32_t synth_address(struct synth *s, uint32_t file, uint32_t build_id, uint64_t address)
{
    struct snd_frame_record frame = { 0, file, 0, SND_FRAME_NATIVE, address, build_id, 0 };

    synth_record(s, SND_REC_FRAME, ++s->ids[SND_REC_FRAME], &frame, sizeof frame);
    return s->ids[SND_REC_FRAME];
}

void synth_symbol(struct synth *s, uint32_t frame, const struct snd_symbol_entry *entries,
                  uint32_t count)
{
    uint8_t                  record[sizeof(struct snd_symbol_record) + 16 * sizeof *entries];
    struct snd_symbol_record head = { frame, count };
    size_t                   bytes = (count < 16 ? count : 16) * sizeof *entries;

    memcpy(record, &head, sizeof head);
    memcpy(record + sizeof head, entries, bytes);
    synth_record(s, SND_REC_SYMBOL, ++s->ids[SND_REC_SYMBOL], record, sizeof head + bytes);
}

void synth_tally(struct synth *s, uint32_t kind, uint32_t key, uint32_t other,
                 const uint64_t *words, uint32_t count)
{
    uint8_t                 record[sizeof(struct snd_tally_record) + 64 * 8];
    struct snd_tally_record head = { kind, key, other, count };
    size_t                  bytes = (count < 64 ? count : 64) * sizeof *words;

    memcpy(record, &head, sizeof head);
    memcpy(record + sizeof head, words, bytes);
    synth_record(s, SND_REC_TALLY, ++s->ids[SND_REC_TALLY], record, sizeof head + bytes);
}

uint32_t synth_stack(struct synth *s, uint32_t parent, uint32_t frame)
{
    uint32_t stack[2] = { parent, frame };

    synth_record(s, SND_REC_STACK, ++s->ids[SND_REC_STACK], stack, sizeof stack);
    return s->ids[SND_REC_STACK];
}

uint32_t synth_thread(struct synth *s, const char *name, uint64_t start_ns)
{
    return synth_thread_of(s, name, s->header.pid + s->ids[SND_REC_THREAD], start_ns);
}

uint32_t synth_thread_of(struct synth *s, const char *name, uint32_t tid, uint64_t start_ns)
{
    return synth_thread_in(s, name, 0, tid, start_ns);
}

uint32_t synth_thread_in(struct synth *s, const char *name, uint32_t pid, uint32_t tid,
                         uint64_t start_ns)
{
    struct snd_thread_record record = {
        .tid = tid,
        .pid = pid,
        .parent_pid = pid ? s->header.pid : 0,
        .name = name ? synth_string(s, name) : 0,
        .start = synth_raw_clock(s, start_ns),
    };

    s->threads = grow(s->threads, (s->thread_count + 1) * sizeof *s->threads);
    s->lanes = grow(s->lanes, (s->lane_count + 1) * sizeof *s->lanes);
    synth_record(s, SND_REC_THREAD, ++s->ids[SND_REC_THREAD], &record, sizeof record);
    struct thread *t = &s->threads[s->thread_count++];
    t->lane = s->lane_count;
    t->table = s->table_count - 1;
    t->where = s->tables[t->table].at - sizeof record;
    s->lanes[s->lane_count++] = (struct lane){ .current = s->thread_count };
    return s->thread_count;
}

void synth_thread_done(struct synth *s, uint32_t thread, uint64_t end_ns, uint64_t lost)
{
    const struct thread     *t = &s->threads[thread - 1];
    struct snd_thread_record record;
    uint8_t                 *where = s->tables[t->table].bytes + t->where;

    memcpy(&record, where, sizeof record);
    record.end = synth_raw_clock(s, end_ns);
    record.lost = lost;
    memcpy(where, &record, sizeof record);
}

void synth_meta(struct synth *s, const char *key, const char *value)
{
    uint32_t pair[2];

    pair[0] = synth_string(s, key);
    pair[1] = synth_string(s, value);
    synth_record(s, SND_REC_META, ++s->ids[SND_REC_META], pair, sizeof pair);
}

void synth_clock(struct synth *s, uint64_t at_ns, int64_t real_shift_ns)
{
    struct snd_clock_pair pair = {
        .raw = synth_raw_clock(s, at_ns),
        .mono_ns = s->header.start.mono_ns + at_ns,
        .real_ns = s->header.start.real_ns + at_ns + (uint64_t)real_shift_ns,
    };

    synth_record(s, SND_REC_CLOCK, ++s->ids[SND_REC_CLOCK], &pair, sizeof pair);
}

/* ------------------------------------------------------------------ events */

void synth_raw(struct synth *s, uint32_t thread, const uint64_t *words, size_t count)
{
    struct lane  *lane = &s->lanes[s->threads[thread - 1].lane];
    struct chunk *c = &lane->chunk;

    if (c->bytes && c->size - c->at < count * 8)
        write_chunk(s, c, true);
    if (!c->bytes) {
        open_chunk(s, c, SND_CHUNK_LANE, thread, s->chunk_bytes);
        lane->current = thread;
    }
    memcpy(c->bytes + c->at, words, count * 8);
    c->at += count * 8;
}

/* `words` of the event, whose first one is set here. */
static void put_words(struct synth *s, uint32_t thread, uint8_t kind, uint64_t ns, uint64_t *words)
{
    struct lane *lane = &s->lanes[s->threads[thread - 1].lane];

    words[0] = SND_WORD0(kind, synth_raw_clock(s, ns));
    if (ns > s->latest_ns)
        s->latest_ns = ns;
    if (lane->chunk.bytes && lane->current != thread) {
        uint64_t other[2] = { SND_WORD0(SND_EV_THREAD, synth_raw_clock(s, ns)), thread };
        synth_raw(s, thread, other, 2);
        lane->current = thread;
    }
    synth_raw(s, thread, words, SND_KIND_WORDS(kind));
}

void synth_event(struct synth *s, uint32_t thread, uint64_t ns, const uint64_t *words, size_t count)
{
    uint64_t own[8] = { 0 };
    uint8_t  kind = (uint8_t)words[0];

    memcpy(own, words, (count < 8 ? count : 8) * sizeof *words);
    if (kind != SND_EV_ATTR && kind != SND_EV_ATTR64) {
        own[0] = SND_WORD0(kind, synth_raw_clock(s, ns));
        s->latest_ns = ns > s->latest_ns ? ns : s->latest_ns;
    }
    synth_raw(s, thread, own, SND_KIND_WORDS(kind));
}

static void put(struct synth *s, uint32_t thread, uint8_t kind, uint64_t ns, uint64_t w1,
                uint64_t w2, uint64_t w3)
{
    uint64_t words[4] = { 0, w1, w2, w3 };

    put_words(s, thread, kind, ns, words);
}

void synth_begin(struct synth *s, uint32_t thread, uint64_t ns, uint32_t name, uint32_t shapes)
{
    put(s, thread, SND_EV_BEGIN, ns, SND_PAIR(name, shapes), 0, 0);
}

void synth_end(struct synth *s, uint32_t thread, uint64_t ns)
{
    put(s, thread, SND_EV_END, ns, 0, 0, 0);
}

void synth_mark(struct synth *s, uint32_t thread, uint64_t ns, uint32_t name, uint32_t stack)
{
    put(s, thread, SND_EV_MARK, ns, SND_PAIR(name, stack), 0, 0);
}

void synth_step(struct synth *s, uint32_t thread, uint64_t ns, uint64_t number)
{
    put(s, thread, SND_EV_STEP, ns, number, 0, 0);
}

void synth_counter(struct synth *s, uint32_t thread, uint64_t ns, uint32_t name, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof bits);
    put(s, thread, SND_EV_COUNTER, ns, name, bits, 0);
}

void synth_alloc(struct synth *s, uint32_t thread, uint64_t ns, uint32_t device, uint64_t address,
                 uint64_t size)
{
    put(s, thread, SND_EV_ALLOC, ns, device, address, size);
}

void synth_free(struct synth *s, uint32_t thread, uint64_t ns, uint32_t device, uint64_t address,
                uint64_t size)
{
    put(s, thread, SND_EV_FREE, ns, device, address, size);
}

void synth_link(struct synth *s, uint32_t thread, uint64_t ns, uint32_t kind, bool arrives,
                uint64_t id)
{
    put(s, thread, SND_EV_LINK, ns, SND_PAIR(kind, arrives), id, 0);
}

void synth_gap(struct synth *s, uint32_t thread, uint64_t ns, uint32_t lost, uint32_t ends)
{
    put(s, thread, SND_EV_GAP, ns, SND_PAIR(lost, ends), 0, 0);
}

void synth_end_at(struct synth *s, uint32_t thread, uint64_t ns, uint32_t inside)
{
    put(s, thread, SND_EV_END_AT, ns, inside, 0, 0);
}

void synth_end_key(struct synth *s, uint32_t thread, uint64_t ns, uint64_t key)
{
    put(s, thread, SND_EV_END_KEY, ns, key, 0, 0);
}

void synth_span(struct synth *s, uint32_t thread, uint64_t ns, uint32_t name, uint64_t duration_ns)
{
    uint64_t ticks = synth_raw_clock(s, ns + duration_ns) - synth_raw_clock(s, ns);

    put(s, thread, SND_EV_SPAN, ns, SND_PAIR(name, ticks), 0, 0);
    if (ns + duration_ns > s->latest_ns)
        s->latest_ns = ns + duration_ns;
}

uint32_t synth_call(struct synth *s, const struct snd_call_record *call)
{
    synth_record(s, SND_REC_CALL, ++s->ids[SND_REC_CALL], call,
                 call->compiled ? sizeof *call : SND_CALL_PLAIN);
    return s->ids[SND_REC_CALL];
}

void synth_call_range(struct synth *s, uint32_t thread, uint64_t ns, uint32_t call,
                      uint64_t duration_ns)
{
    uint64_t ticks = synth_raw_clock(s, ns + duration_ns) - synth_raw_clock(s, ns);

    put(s, thread, SND_EV_CALL, ns, SND_PAIR(call, ticks), 0, 0);
    if (ns + duration_ns > s->latest_ns)
        s->latest_ns = ns + duration_ns;
}

void synth_sample(struct synth *s, uint32_t thread, uint64_t ns, uint32_t stack, uint32_t state,
                  uint32_t sampled, uint32_t covered_ns)
{
    put(s, thread, SND_EV_SAMPLE, ns, SND_PAIR(stack, state), SND_PAIR(sampled, covered_ns), 0);
}

void synth_sample_run(struct synth *s, uint32_t thread, uint64_t ns, const struct synth_run *run)
{
    uint64_t now = synth_raw_clock(s, ns), end = synth_raw_clock(s, run->end_ns);
    uint64_t words[5] = {
        0,
        SND_PAIR(run->stack, run->state),
        SND_PAIR(run->sampled, end - synth_raw_clock(s, run->begin_ns)),
        now - end,
        now - synth_raw_clock(s, run->read_ns),
    };

    put_words(s, thread, SND_EV_SAMPLE_RUN, ns, words);
}

void synth_function(struct synth *s, uint32_t thread, uint64_t ns, uint32_t frame, uint32_t whose,
                    uint64_t duration_ns, uint32_t id, uint32_t parent)
{
    uint64_t ticks = synth_raw_clock(s, ns) - synth_raw_clock(s, ns - duration_ns);

    put(s, thread, SND_EV_FUNCTION, ns, SND_PAIR(frame, whose), ticks, SND_PAIR(id, parent));
}

uint32_t synth_queue(struct synth *s, const struct snd_queue_record *queue)
{
    synth_record(s, SND_REC_QUEUE, ++s->ids[SND_REC_QUEUE], queue, sizeof *queue);
    return s->ids[SND_REC_QUEUE];
}

uint32_t synth_work(struct synth *s, const struct snd_work_record *work)
{
    synth_record(s, SND_REC_WORK, ++s->ids[SND_REC_WORK], work, sizeof *work);
    return s->ids[SND_REC_WORK];
}

void synth_device(struct synth *s, uint32_t thread, uint64_t ns, uint32_t work, uint32_t queue,
                  uint64_t duration_ns, uint32_t correlation, uint64_t node)
{
    uint64_t ticks = synth_raw_clock(s, ns + duration_ns) - synth_raw_clock(s, ns);
    uint64_t words[5] = { 0, SND_PAIR(work, queue), ticks, correlation, node };

    put_words(s, thread, node ? SND_EV_DEVICE_NODE : SND_EV_DEVICE, ns, words);
}

void synth_fact(struct synth *s, uint32_t kind, uint32_t subject, uint32_t number,
                const struct snd_fact_member *members, uint32_t count)
{
    struct {
        struct snd_fact_record head;
        struct snd_fact_member members[64];
    } record = { { kind, subject, number, count }, { { 0 } } };

    memcpy(record.members, members, count * sizeof *members);
    synth_record(s, SND_REC_FACT, ++s->ids[SND_REC_FACT], &record,
                 sizeof record.head + count * sizeof *members);
}

void synth_attr(struct synth *s, uint32_t thread, uint8_t key, uint64_t value)
{
    uint64_t words[2] = { SND_WORD0_ATTR(key, value), 0 };

    if (value > SND_ATTR_SMALL_MAX) {
        words[0] = SND_WORD0_ATTR64(key);
        words[1] = value;
    }
    synth_raw(s, thread, words, SND_KIND_WORDS(words[0]));
}

void synth_seal(struct synth *s, uint32_t thread)
{
    write_chunk(s, &s->lanes[s->threads[thread - 1].lane].chunk, true);
}

void synth_share(struct synth *s, uint32_t thread, uint32_t other)
{
    s->threads[other - 1].lane = s->threads[thread - 1].lane;
}
