/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pprof: sampled stacks as Google's pprof reads them (profile.proto), compressed with gzip.
 *
 * A sample for each stack of each thread: how many there were, the wall time they stand for, and how much of
 * that the thread was on a CPU. Ranges and operators are functions without a file (model/samples/mixed_stacks.h). Threads are
 * labels. Times of single samples are not kept: the format has none.
 *
 * Of allocations, a sample for each stack of each heap, with all their sums (allocation_stacks.h); the one that was asked
 * for is the one that readers show first. Of counters, a sample for each stack, with the events of each
 * (counted_stacks.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/map.h"
#include "export/stacks/counted_stacks.h"
#include "export/common/exporter.h"
#include "export/encode/gzip.h"
#include "export/stacks/allocation_stacks.h"
#include "export/stacks/tree_stacks.h"
#include "export/encode/protobuf.h"
#include "model/samples/sample_counts.h"
#include "read/said/trace_metadata.h"
#include "read/reader.h"
#include "snd_config.h"

/* Fields of profile.proto. */
enum {
    PROFILE_SAMPLE_TYPE = 1,
    PROFILE_SAMPLE = 2,
    PROFILE_MAPPING = 3,
    PROFILE_LOCATION = 4,
    PROFILE_FUNCTION = 5,
    PROFILE_STRING = 6,
    PROFILE_TIME = 9,
    PROFILE_DURATION = 10,
    PROFILE_DEFAULT_TYPE = 14,
    VALUE_TYPE = 1,
    VALUE_UNIT = 2,
    SAMPLE_LOCATION = 1,
    SAMPLE_VALUE = 2,
    SAMPLE_LABEL = 3,
    LABEL_KEY = 1,
    LABEL_TEXT = 2,
    LABEL_NUMBER = 3,
    MAPPING_ID = 1,
    MAPPING_FILE = 5,
    MAPPING_BUILD_ID = 6,
    MAPPING_HAS_FUNCTIONS = 7,
    LOCATION_ID = 1,
    LOCATION_MAPPING = 2,
    LOCATION_ADDRESS = 3,
    LOCATION_LINE = 4,
    LINE_FUNCTION = 1,
    LINE_LINE = 2,
    FUNCTION_ID = 1,
    FUNCTION_NAME = 2,
    FUNCTION_SYSTEM_NAME = 3,
    FUNCTION_FILE = 4,
    FUNCTION_START = 5,
};

/* What the numbers of a sample are. */
struct type {
    struct sonde_text name;
    const char       *unit;
};
#define NAMED(name)           \
    {                         \
        name, sizeof name - 1 \
    }

struct profile {
    struct sonde_trace       *trace;
    struct snd_sample_counts *counts;  /* of samples */
    struct snd_heap_stacks    heap;    /* or of allocations */
    struct snd_counted_export counted; /* or of counters */
    struct snd_tree_stacks    paths;   /* or of ranges, or of counted calls */
    uint32_t                  program; /* the file of the first mapping: a string */
    const struct type        *types;
    size_t                    type_count;
    const struct type        *shown_first; /* of the types; NULL: the last */
    void (*put_rows)(struct profile *p);
    struct snd_texts        strings;
    struct snd_map          functions, locations, mappings; /* to ids, from 1 */
    struct sonde_buffer     message;
    struct snd_mixed_frame *frames;
    uint64_t               *ids; /* of the frames of one stack */
    struct snd_out         *out;
    bool                    failed;
};

/* A message of the profile goes out as soon as it is whole: order does not matter to readers. */
static void flush(struct profile *p)
{
    p->failed |= p->message.failed;
    snd_out_put(p->out, p->message.bytes ? p->message.bytes : "", p->message.length);
    snd_buf_clear(&p->message);
}

static uint32_t string_of(struct profile *p, struct sonde_text text)
{
    uint32_t id = 0;

    p->failed |= !snd_texts_add(&p->strings, text.bytes, text.length, &id);
    return id;
}

static uint32_t literal(struct profile *p, const char *text)
{
    return string_of(p, (struct sonde_text){ text, strlen(text) });
}

/* The number of a key; true if it is new. */
static bool find_id(struct profile *p, struct snd_map *map, struct snd_key key, uint32_t *id)
{
    if (snd_map_get(map, key, id))
        return false;
    *id = (uint32_t)map->count + 1;
    p->failed |= !snd_map_put(map, key, *id);
    return !p->failed;
}

static uint32_t function_of(struct profile *p, const struct sonde_frame *frame)
{
    uint32_t name = string_of(p, frame->function), file = string_of(p, frame->file), id;

    if (!find_id(p, &p->functions, (struct snd_key){ name, file, frame->first_line }, &id))
        return id;
    size_t at = snd_pb_open(&p->message, PROFILE_FUNCTION);
    snd_pb_uint(&p->message, FUNCTION_ID, id);
    snd_pb_uint(&p->message, FUNCTION_NAME, name);
    snd_pb_uint(&p->message, FUNCTION_SYSTEM_NAME, name);
    snd_pb_uint(&p->message, FUNCTION_FILE, file);
    snd_pb_uint(&p->message, FUNCTION_START, frame->first_line);
    snd_pb_close(&p->message, at);
    flush(p);
    return id;
}

static void put_mapping(struct profile *p, uint32_t id, uint32_t file, uint32_t build_id)
{
    size_t at = snd_pb_open(&p->message, PROFILE_MAPPING);

    snd_pb_uint(&p->message, MAPPING_ID, id);
    snd_pb_uint(&p->message, MAPPING_FILE, file);
    snd_pb_uint(&p->message, MAPPING_BUILD_ID, build_id);
    snd_pb_uint(&p->message, MAPPING_HAS_FUNCTIONS, 1);
    snd_pb_close(&p->message, at);
    flush(p);
}

/* The object file that a native frame is in; 0: none is known. */
static uint32_t mapping_of(struct profile *p, uint32_t process, const struct snd_frame_record *f)
{
    uint32_t object = f->reserved ? f->reserved : f->address ? f->file : 0, id;

    if (object == 0)
        return 0;
    uint32_t file = string_of(p, sonde_trace_string(p->trace, process, object));
    uint32_t build_id = f->build_id
                            ? string_of(p, sonde_trace_string(p->trace, process, f->build_id))
                            : 0;
    if (file == p->program)
        return 1;
    if (find_id(p, &p->mappings, (struct snd_key){ file, build_id, 0 }, &id))
        put_mapping(p, id, file, build_id);
    return id;
}

/* Readers take the first mapping for the program: it goes out first, whether or not a frame is in it. */
static void put_program(struct profile *p)
{
    uint32_t                 process = snd_meta_root(p->trace, 0), build_id = 0, id;
    const char              *path = sonde_trace_process(p->trace, process)->program;
    const struct snd_tables *t = &p->trace->processes[process].tables;

    p->program = literal(p, path);
    for (uint32_t i = 1; i < t->frame_count && build_id == 0; i++) {
        const struct snd_frame_record *f = &t->frames[i];
        if (f->build_id && f->reserved &&
            string_of(p, sonde_trace_string(p->trace, process, f->reserved)) == p->program)
            build_id = string_of(p, sonde_trace_string(p->trace, process, f->build_id));
    }
    if (find_id(p, &p->mappings, (struct snd_key){ p->program, build_id, 0 }, &id))
        put_mapping(p, id, p->program, build_id);
}

static uint32_t location_of(struct profile *p, uint32_t process, const struct snd_mixed_frame *f)
{
    const struct snd_tables       *t = &p->trace->processes[process].tables;
    struct snd_frame_record        none = { 0 };
    const struct snd_frame_record *record = f->id && f->id < t->frame_count ? &t->frames[f->id]
                                                                            : &none;
    uint32_t function = function_of(p, &f->frame), mapping = mapping_of(p, process, record), id;
    struct snd_key key = { (uint64_t)function << 32 | f->frame.line, mapping, record->address };

    if (!find_id(p, &p->locations, key, &id))
        return id;
    size_t at = snd_pb_open(&p->message, PROFILE_LOCATION);
    snd_pb_uint(&p->message, LOCATION_ID, id);
    snd_pb_uint(&p->message, LOCATION_MAPPING, mapping);
    snd_pb_uint(&p->message, LOCATION_ADDRESS, record->address);
    size_t line = snd_pb_open(&p->message, LOCATION_LINE);
    snd_pb_uint(&p->message, LINE_FUNCTION, function);
    snd_pb_uint(&p->message, LINE_LINE, f->frame.line);
    snd_pb_close(&p->message, line);
    snd_pb_close(&p->message, at);
    flush(p);
    return id;
}

static void put_label(struct profile *p, const char *key, uint32_t text, uint64_t number)
{
    size_t at = snd_pb_open(&p->message, SAMPLE_LABEL);

    snd_pb_uint(&p->message, LABEL_KEY, literal(p, key));
    if (text)
        snd_pb_uint(&p->message, LABEL_TEXT, text);
    else
        snd_pb_uint(&p->message, LABEL_NUMBER, number);
    snd_pb_close(&p->message, at);
}

/*
 * Opens a sample: its labels follow. Locations go out before the sample that has them: it is begun
 * once they are known.
 */
static size_t open_sample(struct profile *p, uint32_t process, const struct snd_mixed_frame *frames,
                          size_t count, const uint64_t *values)
{
    count = count < SND_MIXED_FRAMES_MAX ? count : SND_MIXED_FRAMES_MAX;
    for (size_t i = 0; i < count; i++)
        p->ids[i] = location_of(p, process, &frames[i]);
    size_t at = snd_pb_open(&p->message, PROFILE_SAMPLE);
    size_t list = snd_pb_open(&p->message, SAMPLE_LOCATION);
    for (size_t i = 0; i < count; i++)
        snd_pb_varint(&p->message, p->ids[i]);
    snd_pb_close(&p->message, list);
    list = snd_pb_open(&p->message, SAMPLE_VALUE);
    for (size_t i = 0; i < p->type_count; i++)
        snd_pb_varint(&p->message, values[i]);
    snd_pb_close(&p->message, list);
    return at;
}

static void put_sample(struct profile *p, const struct snd_sample_count *row)
{
    const struct sonde_thread *thread = &p->trace->threads[row->thread].shown;
    const uint64_t values[] = { row->samples, (uint64_t)row->time_ns, (uint64_t)row->cpu_ns };
    size_t count = snd_mixed_frames(&p->counts->mixed, thread->process, row->stack, row->chain,
                                    p->frames, SND_MIXED_FRAMES_MAX);

    size_t at = open_sample(p, thread->process, p->frames, count, values);
    if (thread->name.length > 0)
        put_label(p, "thread", string_of(p, thread->name), 0);
    put_label(p, "tid", 0, thread->tid);
    put_label(p, "pid", 0, p->trace->processes[thread->process].shown.pid);
    snd_pb_close(&p->message, at);
    flush(p);
}

static void put_samples(struct profile *p)
{
    for (uint32_t i = 0; i < p->counts->count && !p->failed && !p->out->failed; i++)
        put_sample(p, &p->counts->rows[i]);
}

static void put_heap(struct profile *p)
{
    while (!p->failed && !p->out->failed && snd_heap_stacks_next(&p->heap)) {
        const struct snd_heap      *heap = p->heap.heap;
        const struct snd_heap_sums *sums = &p->heap.row->sums;
        const uint64_t values[] = { sums->allocations, sums->bytes,       sums->peak_blocks,
                                    sums->peak_bytes,  sums->live_blocks, sums->live_bytes };
        size_t         at = open_sample(p, heap->process, p->heap.frames, p->heap.count, values);
        put_label(p, "memory", literal(p, heap->is_mapped ? "mapped" : "malloc"), 0);
        put_label(p, "pid", 0, p->trace->processes[heap->process].shown.pid);
        snd_pb_close(&p->message, at);
        flush(p);
    }
}

static void put_counted(struct profile *p)
{
    const struct snd_counted_stack *stack;

    while (!p->failed && !p->out->failed && (stack = snd_counted_next(&p->counted)) != NULL) {
        uint64_t values[SND_THREAD_COUNTERS_MOST], any = 0;
        for (uint32_t n = 0; n < p->counted.counter_count; n++)
            any |= values[n] = snd_counted_events(&p->counted, stack, n);
        if (any == 0)
            continue;
        size_t at = open_sample(p, stack->process, p->counted.frames, p->counted.frame_count,
                                values);
        snd_pb_close(&p->message, at);
        flush(p);
    }
}

static void put_paths(struct profile *p)
{
    while (!p->failed && !p->out->failed && snd_tree_stacks_next(&p->paths)) {
        const uint64_t values[] = { p->paths.call_count, (uint64_t)p->paths.self_ns };
        size_t         at = open_sample(p, 0, p->paths.frames, p->paths.count, values);
        snd_pb_close(&p->message, at);
        flush(p);
    }
}

static void put_types(struct profile *p)
{
    literal(p, ""); /* the first string is the empty one */
    for (size_t i = 0; i < p->type_count; i++) {
        size_t at = snd_pb_open(&p->message, PROFILE_SAMPLE_TYPE);
        snd_pb_uint(&p->message, VALUE_TYPE, string_of(p, p->types[i].name));
        snd_pb_uint(&p->message, VALUE_UNIT, literal(p, p->types[i].unit));
        snd_pb_close(&p->message, at);
    }
    if (p->shown_first)
        snd_pb_uint(&p->message, PROFILE_DEFAULT_TYPE, string_of(p, p->shown_first->name));
}

static void put_end(struct profile *p)
{
    const struct sonde_process *first = sonde_trace_process(p->trace, 0);

    snd_pb_int(&p->message, PROFILE_TIME, first->start_real_ns);
    snd_pb_int(&p->message, PROFILE_DURATION, snd_sub(first->stop_ns, first->start_ns));
    for (uint32_t i = 0; i < p->strings.count; i++) {
        snd_pb_text(&p->message, PROFILE_STRING,
                    (struct sonde_text){ p->strings.items[i].bytes, p->strings.items[i].length });
        flush(p);
    }
}

static enum sonde_status write_profile(struct profile *p, struct sonde_error *err)
{
    p->frames = calloc(SND_MIXED_FRAMES_MAX, sizeof *p->frames);
    p->ids = calloc(SND_MIXED_FRAMES_MAX, sizeof *p->ids);
    bool ok = p->frames && p->ids;
    if (ok) {
        put_types(p);
        put_program(p);
        p->put_rows(p);
        put_end(p);
    }
    ok &= !p->failed;
    free(p->frames);
    free(p->ids);
    return ok ? SONDE_OK : snd_fail(err, SONDE_E_NOMEM, "out of memory for the profile");
}

static bool pass_on(void *user, const void *data, size_t length)
{
    snd_out_put(user, data, length);
    return true;
}

/* Compressed, as all of pprof's tools write it; not twice, if the caller compresses already. */
static enum sonde_status write_compressed(struct profile *p, struct snd_out *out,
                                          struct sonde_error *err)
{
    struct sonde_sink to = { pass_on, out };
    struct snd_gzip  *gzip;
    struct snd_out    inner;
    enum sonde_status st = snd_gzip_new(&to, SND_GZIP_TEXT, &gzip, err);

    if (st != SONDE_OK)
        return st;
    struct sonde_sink through = snd_gzip_sink(gzip);
    snd_out_init(&inner, &through);
    p->out = &inner;
    st = write_profile(p, err);
    if (st == SONDE_OK)
        st = snd_out_finish(&inner, err);
    if (st == SONDE_OK)
        st = snd_gzip_finish(gzip, err);
    snd_gzip_free(gzip);
    return st;
}

static enum sonde_status write_all(struct profile *p, bool is_compressed, struct snd_out *out,
                                   struct sonde_error *err)
{
    enum sonde_status st = SND_HAVE_ZLIB && !is_compressed ? write_compressed(p, out, err)
                                                           : write_profile(p, err);

    snd_texts_release(&p->strings);
    snd_map_release(&p->functions);
    snd_map_release(&p->locations);
    snd_map_release(&p->mappings);
    sonde_buffer_release(&p->message);
    return st;
}

/* Of a trace without samples: the paths of its counted calls, or of its ranges. */
static enum sonde_status write_paths(struct sonde_trace *trace, bool is_compressed,
                                     struct snd_out *out, struct sonde_error *err)
{
    static const struct type types[] = { { NAMED("calls"), "count" },
                                         { NAMED("wall"), "nanoseconds" } };
    struct profile           p = {
                  .trace = trace,
                  .out = out,
                  .types = types,
                  .type_count = SND_COUNT_OF(types),
                  .put_rows = put_paths,
    };
    enum sonde_status st = snd_tree_stacks_open(&p.paths, trace, err);

    if (st == SONDE_OK)
        st = write_all(&p, is_compressed, out, err);
    snd_tree_stacks_release(&p.paths);
    return st;
}

SND_EXPORT_WRITE(snd_export_pprof)
{
    static const struct type types[] = { { NAMED("samples"), "count" },
                                         { NAMED("wall"), "nanoseconds" },
                                         { NAMED("cpu"), "nanoseconds" } };
    struct profile           p = {
                  .trace = trace,
                  .out = out,
                  .types = types,
                  .type_count = SND_COUNT_OF(types),
                  .put_rows = put_samples,
    };
    enum sonde_status st = snd_sample_counts_new(trace, &p.counts, err);

    if (st == SONDE_OK && p.counts->count == 0)
        st = write_paths(trace, options->gzip, out, err);
    else if (st == SONDE_OK)
        st = write_all(&p, options->gzip, out, err);
    snd_sample_counts_free(p.counts);
    return st;
}

SND_EXPORT_WRITE(snd_heap_pprof)
{
    static const struct type types[] = {
        { NAMED("allocations"), "count" },   { NAMED("allocated"), "bytes" },
        { NAMED("peak_blocks"), "count" },   { NAMED("peak"), "bytes" },
        { NAMED("leaked_blocks"), "count" }, { NAMED("leaked"), "bytes" },
    };
    static const size_t first[] = { [SONDE_HEAP_AUTO] = 3,
                                    [SONDE_HEAP_PEAK] = 3,
                                    [SONDE_HEAP_ALLOCATED] = 1,
                                    [SONDE_HEAP_LEAKED] = 5 };
    struct profile      p = {
             .trace = trace,
             .out = out,
             .types = types,
             .type_count = SND_COUNT_OF(types),
             .shown_first = &types[first[options->heap]],
             .put_rows = put_heap,
    };
    enum sonde_status st = snd_heap_stacks_open(&p.heap, trace, err);

    if (st == SONDE_OK)
        st = write_all(&p, options->gzip, out, err);
    snd_heap_stacks_release(&p.heap);
    return st;
}

SND_EXPORT_WRITE(snd_counted_pprof)
{
    struct type       types[SND_THREAD_COUNTERS_MOST];
    struct profile    p = { .trace = trace, .out = out, .types = types, .put_rows = put_counted };
    enum sonde_status st = snd_counted_open(&p.counted, trace, options->counter, err);

    if (st == SONDE_OK) {
        p.type_count = p.counted.counter_count;
        for (uint32_t n = 0; n < p.type_count; n++)
            types[n] = (struct type){ snd_counted_name(&p.counted, n),
                                      snd_counted_is_time(&p.counted, n) ? "nanoseconds"
                                                                         : "count" };
        p.shown_first = &types[0];
        st = write_all(&p, options->gzip, out, err);
    }
    snd_counted_release(&p.counted);
    return st;
}
