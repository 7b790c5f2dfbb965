/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a trace: files, folders, tables, and what becomes of damage. */
#include "read/reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/data/crc32c.h"
#include "format/fields.h"
#include "read/walk/trace_walk.h"
#include "sonde/pack.h"
#include "scratch.h" /* before it, cmocka and what that needs */
#include "same_event.h"

static struct synth *start_tiny(const char *path)
{
    struct synth_options options = { .grain = 4096 };

    return synth_new(path, &options);
}

/* Names 1..8, one thread, `n` ranges: some 12 KiB. */
static const char *make_small(const char *name, unsigned n)
{
    const char   *path = scratch_path(name);
    struct synth *s = start_tiny(path);
    uint32_t      t = synth_thread(s, "main", 0);
    uint32_t      id = synth_string(s, "work");

    for (unsigned i = 0; i < n; i++) {
        synth_begin(s, t, 100 + i * 10, id, 0);
        synth_end(s, t, 105 + i * 10);
    }
    synth_close(s, true);
    return path;
}

static void strings_shapes_and_stacks(void **state)
{
    const char        *path = scratch_path("tables");
    struct synth      *s = start_tiny(path);
    char               text[64];
    uint32_t           t = synth_thread(s, "main", 10);
    uint32_t           a = synth_string_n(s, "a\0b", 3), file = synth_string(s, "file.c");
    uint32_t           shapes = synth_shapes(s, "8,3,224,224;-;#;(2;2,2);(#;#);1");
    uint32_t           root = synth_stack(s, 0, synth_frame(s, a, file, 7));
    uint32_t           leaf = synth_stack(s, root, synth_frame(s, file, 0, 0));
    struct sonde_frame frames[3];
    struct sonde_text  key, value;

    (void)state;
    synth_meta(s, "k", "old");
    uint32_t again[2] = { file + 1, synth_string(s, "new") }; /* "k" was interned next */
    synth_record(s, SND_REC_META, 9, again, sizeof again);
    synth_thread_done(s, t, 500, 3);
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(path);
    assert_int_equal(sonde_trace_string(trace, 0, a).length, 3);
    assert_memory_equal(sonde_trace_string(trace, 0, a).bytes, "a\0b", 4);
    assert_true(text_is(sonde_trace_string(trace, 0, 12345), "(unknown)"));
    assert_true(text_is(sonde_trace_string(trace, 0, 0), "(unknown)"));
    assert_true(text_is(sonde_trace_string(trace, 9, a), "(unknown)"));
    const char *shown = "[[8, 3, 224, 224], [], [], [[2], [2, 2]], [], [1]]";
    assert_int_equal(sonde_trace_shapes(trace, 0, shapes, text, sizeof text), strlen(shown));
    assert_string_equal(text, shown);
    assert_int_equal(sonde_trace_shapes(trace, 0, shapes, text, 5), strlen(shown));
    assert_string_equal(text, "[[8,");
    assert_int_equal(sonde_trace_shapes(trace, 0, 99, text, sizeof text), 0);
    assert_int_equal(sonde_trace_stack(trace, 0, leaf, frames, 3), 2);
    assert_true(text_is(frames[0].function, "file.c"));
    assert_true(text_is(frames[1].file, "file.c"));
    assert_int_equal(frames[1].line, 7);
    assert_true(sonde_trace_metadata(trace, 0, 0, &key, &value));
    assert_true(text_is(key, "k"));
    assert_true(text_is(value, "new"));
    assert_false(sonde_trace_metadata(trace, 0, 1, &key, &value));
    const struct sonde_thread *thread = sonde_trace_thread(trace, 0);
    assert_true(text_is(thread->name, "main"));
    assert_int_equal(thread->start_ns, 10);
    assert_int_equal(thread->stop_ns, 500);
    assert_int_equal(thread->lost_events, 3);
    sonde_trace_close(trace);
}

/* Ids that cannot be, cycles of stacks, records that reach beyond their end. */
static void hostile_records(void **state)
{
    const char        *path = scratch_path("hostile");
    struct synth      *s = start_tiny(path);
    uint32_t           huge = UINT32_MAX, cycle[2] = { 7, 1 };
    uint32_t           long_string[3] = { 1000, 0, 0 };
    struct sonde_frame frames[8];
    char               text[256];

    (void)state;
    synth_thread(s, "main", 0);
    synth_record(s, SND_REC_STRING, huge, "\x01\0\0\0x", 5);
    synth_record(s, SND_REC_STRING, 0, "\x01\0\0\0x", 5);
    synth_record(s, SND_REC_STRING, 5, long_string, sizeof long_string);
    synth_record(s, SND_REC_STACK, 7, cycle, sizeof cycle);
    synth_record(s, SND_REC_STACK, 6, cycle, sizeof cycle);
    struct snd_shape_item items[3] = { { 0 },
                                       { .kind = SND_SHAPE_LIST, .count = huge },
                                       { .kind = SND_SHAPE_TENSOR, .count = huge } };
    items[0].count = 0;
    memcpy(&items[0], &huge, sizeof huge); /* where the item count stands */
    synth_record(s, SND_REC_SHAPES, 1, items, sizeof items);
    synth_record(s, SND_REC_SHAPES, 3, items, sizeof items); /* and none of the number between */
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(path);
    assert_true(text_is(sonde_trace_string(trace, 0, huge), "(unknown)"));
    assert_true(text_is(sonde_trace_string(trace, 0, 5), "(unknown)"));
    assert_int_equal(sonde_trace_stack(trace, 0, 7, frames, 8), 1);
    assert_int_equal(sonde_trace_stack(trace, 0, 6, frames, 8), 1);
    assert_true(sonde_trace_shapes(trace, 0, 1, text, sizeof text) < sizeof text);
    assert_int_equal(sonde_trace_shapes(trace, 0, 2, text, sizeof text), 0);
    assert_true(trace->processes[0].damage.bad_ids >= 4);
    sonde_trace_close(trace);
}

static void not_a_trace(void **state)
{
    struct sonde_trace *trace;
    struct sonde_error  err;
    const char         *path = scratch_path("text");

    (void)state;
    scratch_save(path, "hello", 5);
    assert_int_equal(sonde_trace_open(path, &trace, &err), SONDE_E_FORMAT);
    assert_null(trace);
    assert_non_null(strstr(err.message, path));
    assert_int_equal(sonde_trace_open(scratch_path("absent"), &trace, &err), SONDE_E_IO);
    assert_int_equal(err.os_error, 2);
    assert_int_equal(mkdir(scratch_path("empty"), 0700), 0);
    assert_int_equal(sonde_trace_open(scratch_path("empty"), &trace, &err), SONDE_E_FORMAT);
    assert_int_equal(mkfifo(scratch_path("empty/pipe"), 0600), 0);
    assert_int_equal(sonde_trace_open(scratch_path("empty"), &trace, &err), SONDE_E_FORMAT);
    assert_int_equal(sonde_trace_open(scratch_path("empty/pipe"), &trace, &err), SONDE_E_IO);
}

static void newer_versions(void **state)
{
    size_t                 size;
    struct sonde_trace    *trace;
    struct sonde_error     err;
    uint8_t               *bytes = scratch_load(make_small("version", 3), &size);
    struct snd_file_header header;

    (void)state;
    memcpy(&header, bytes, sizeof header);
    header.version_minor = 99; /* accepted */
    header.fixed_crc = snd_crc32c(0, &header, offsetof(struct snd_file_header, fixed_crc));
    memcpy(bytes, &header, sizeof header);
    assert_int_equal(snd_trace_open_memory(bytes, size, &trace, &err), SONDE_OK);
    assert_false(trace->processes[0].damage.header);
    sonde_trace_close(trace);
    header.version_major = 2; /* refused */
    header.fixed_crc = snd_crc32c(0, &header, offsetof(struct snd_file_header, fixed_crc));
    memcpy(bytes, &header, sizeof header);
    assert_int_equal(snd_trace_open_memory(bytes, size, &trace, &err), SONDE_E_VERSION);
    assert_non_null(strstr(err.message, "2.99"));
    free(bytes);
}

/* ------------------------------------------------------- damage and recovery */

struct events {
    struct sonde_event list[400];
    size_t             count;
};

static bool keep(const struct sonde_event *event, void *user)
{
    struct events *events = user;

    if (events->count < 400)
        events->list[events->count] = *event;
    events->count++;
    return true;
}

static void read_events(const uint8_t *bytes, size_t size, struct events *events)
{
    struct sonde_trace *trace;

    events->count = 0;
    assert_int_equal(snd_trace_open_memory(bytes, size, &trace, NULL), SONDE_OK);
    assert_int_equal(sonde_trace_walk(trace, SONDE_BY_THREAD, keep, events, NULL), SONDE_OK);
    sonde_trace_close(trace);
}

/* Cut anywhere, a trace is refused or gives a prefix of its events, and then perhaps a gap. */
static void cut_at_every_byte(void **state)
{
    size_t               size, longest = 0;
    uint8_t             *bytes = scratch_load(make_small("cut", 100), &size);
    struct sonde_trace  *trace;
    static struct events whole, part;

    (void)state;
    read_events(bytes, size, &whole);
    assert_int_equal(whole.count, 200);
    for (size_t cut = 0; cut <= size; cut++) {
        uint8_t *exact = malloc(cut + !cut); /* so that ASan sees a byte too far */
        memcpy(exact, bytes, cut);
        if (snd_trace_open_memory(exact, cut, &trace, NULL) == SONDE_OK) {
            sonde_trace_close(trace);
            read_events(exact, cut, &part);
            size_t count = part.count;
            if (count > 0 && part.list[count - 1].kind == SONDE_EVENT_GAP)
                count--;
            assert_true(count >= longest && count <= 200);
            longest = count;
            for (size_t i = 0; i < count; i++) {
                same_event(&part.list[i], &whole.list[i]);
            }
        } else {
            assert_true(cut < SND_HEADER_SIZE);
        }
        free(exact);
    }
    assert_int_equal(longest, 200);
    free(bytes);
}

/* The file is cut while it is open: no signal, just fewer events. */
static void cut_while_open(void **state)
{
    const char          *path = make_small("shrinks", 100);
    static struct events events;
    struct sonde_trace  *trace = scratch_open(path);

    (void)state;
    events.count = 0;
    assert_int_equal(truncate(path, 4096), 0);
    assert_int_equal(sonde_trace_walk(trace, SONDE_BY_THREAD, keep, &events, NULL), SONDE_OK);
    assert_int_equal(events.count, 0);
    sonde_trace_close(trace);
}

static void damaged_header_is_survived(void **state)
{
    size_t               size;
    uint8_t             *bytes = scratch_load(make_small("header", 100), &size);
    struct sonde_trace  *trace;
    static struct events events;

    (void)state;
    bytes[60] ^= 0x40; /* within the session id and what follows */
    read_events(bytes, size, &events);
    assert_int_equal(events.count, 200);
    assert_int_equal(snd_trace_open_memory(bytes, size, &trace, NULL), SONDE_OK);
    assert_true(trace->processes[0].damage.header);
    sonde_trace_close(trace);
    free(bytes);
}

/* A chunk header is destroyed: its neighbours are still found. */
static void damaged_chunk_is_stepped_over(void **state)
{
    const char          *path = scratch_path("stepped");
    struct synth        *s = start_tiny(path);
    uint32_t             t = synth_thread(s, "main", 0), name = synth_string(s, "x");
    size_t               size;
    static struct events events;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        synth_begin(s, t, 100 + i, name, 0);
        synth_seal(s, t);
    }
    synth_close(s, true);
    uint8_t *bytes = scratch_load(path, &size);
    memset(bytes + 3 * 4096, 0xee, 64); /* header, table, lane, LANE, lane */
    read_events(bytes, size, &events);
    assert_int_equal(events.count, 2);
    struct sonde_trace *trace;
    assert_int_equal(snd_trace_open_memory(bytes, size, &trace, NULL), SONDE_OK);
    assert_int_equal(trace->processes[0].damage.skipped_bytes, 4096);
    sonde_trace_close(trace);
    free(bytes);
}

static void checksums_tell(void **state)
{
    size_t               size;
    uint8_t             *bytes = scratch_load(make_small("flip", 100), &size);
    static struct events events;

    (void)state;
    bytes[2 * 4096 + 64 + 8] ^= 1; /* the name of the first range */
    read_events(bytes, size, &events);
    assert_int_equal(events.count, 201); /* a gap closes what may be wrong */
    assert_int_equal(events.list[200].kind, SONDE_EVENT_GAP);
    assert_int_equal(events.list[200].gap.ends, SND_GAP_ALL);
    free(bytes);
}

/* A live file: `used` is not set, events end at the first zero. */
static void open_files_are_read(void **state)
{
    const char          *path = scratch_path("live");
    struct synth        *s = start_tiny(path);
    uint32_t             t = synth_thread(s, "main", 0), name = synth_string(s, "x");
    size_t               size;
    static struct events events;

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        synth_begin(s, t, 100 + i, name, 0);
    synth_reserve(s);
    synth_close(s, false);
    uint8_t *bytes = scratch_load(path, &size);
    read_events(bytes, size, &events);
    assert_int_equal(events.count, 10);
    struct sonde_trace *trace = scratch_open(path);
    assert_false(sonde_trace_process(trace, 0)->closed);
    assert_int_equal(sonde_trace_process(trace, 0)->stop_ns, 109);
    assert_int_equal(trace->processes[0].damage.skipped_bytes, 0);
    sonde_trace_close(trace);
    free(bytes);
}

/* What comes after a hole is read, in a program without standard input too: its first file is number 0. */
static void holes_are_skipped(void **state)
{
    const char   *path = scratch_path("hole");
    struct synth *s = start_tiny(path);
    uint32_t      t = synth_thread(s, "main", 0), name = synth_string(s, "x");
    size_t        size, before = 2 * 4096;
    const off_t   hole = 64 * 4096;

    (void)state;
    for (unsigned i = 0; i < 10; i++)
        synth_begin(s, t, 100 + i, name, 0);
    synth_close(s, true);
    uint8_t *bytes = scratch_load(path, &size);
    int      fd = open(path, O_WRONLY | O_TRUNC);
    assert_true(fd > 0);
    assert_int_equal(pwrite(fd, bytes, before, 0), before);
    assert_int_equal(pwrite(fd, bytes + before, size - before, (off_t)before + hole),
                     size - before);
    close(fd);
    free(bytes);
    int input = dup(STDIN_FILENO);
    assert_true(input > 0);
    for (unsigned has_input = 0; has_input < 2; has_input++) {
        if (!has_input)
            close(STDIN_FILENO);
        struct sonde_trace *trace = scratch_open(path);
        assert_int_equal(trace->processes[0].lane_count, 1);
        assert_int_equal(trace->processes[0].damage.skipped_bytes, 0);
        sonde_trace_close(trace);
        assert_int_equal(dup2(input, STDIN_FILENO), STDIN_FILENO);
    }
    close(input);
}

/* A chunk may be its header alone; of a kind that a later version has, as well. */
static void empty_chunks_are_passed_over(void **state)
{
    const struct snd_chunk_header empty = { .magic = SND_CHUNK_MAGIC,
                                            .kind = 9,
                                            .header_size = SND_CHUNK_HEADER_SIZE,
                                            .size = SND_CHUNK_HEADER_SIZE,
                                            .seq = 1 };
    size_t                        size;
    static struct events          before, after;

    (void)state;
    assert_int_equal(sonde_pack(make_small("small", 20), scratch_path("packed"), -1, NULL),
                     SONDE_OK);
    uint8_t *bytes = scratch_load(scratch_path("packed"), &size);
    uint8_t *longer = malloc(size + sizeof empty);
    assert_non_null(longer);
    memcpy(longer, bytes, SND_HEADER_SIZE);
    memcpy(longer + SND_HEADER_SIZE, &empty, sizeof empty);
    memcpy(longer + SND_HEADER_SIZE + sizeof empty, bytes + SND_HEADER_SIZE,
           size - SND_HEADER_SIZE);
    struct sonde_trace *trace;
    assert_int_equal(snd_trace_open_memory(longer, size + sizeof empty, &trace, NULL), SONDE_OK);
    assert_int_equal(trace->processes[0].damage.unknown_chunks, 1);
    assert_int_equal(trace->processes[0].damage.skipped_bytes, 0);
    sonde_trace_close(trace);
    read_events(bytes, size, &before);
    read_events(longer, size + sizeof empty, &after);
    assert_int_equal(after.count, before.count);
    free(longer);
    free(bytes);
}

static void undefined_threads_are_gathered(void **state)
{
    const char          *path = scratch_path("undefined");
    struct synth        *s = start_tiny(path);
    uint32_t             t = synth_thread(s, "main", 0), name = synth_string(s, "x");
    size_t               size;
    static struct events events;

    (void)state;
    synth_begin(s, t, 100, name, 0);
    synth_close(s, true);
    for (uint32_t wrong = 0; wrong <= 77; wrong = wrong ? 77 * wrong / 2 : 2) { /* 0, 2, 77 */
        uint8_t            *bytes = scratch_load(path, &size);
        struct sonde_trace *trace;
        memcpy(bytes + 2 * 4096 + offsetof(struct snd_chunk_header, thread), &wrong, sizeof wrong);
        read_events(bytes, size, &events);
        assert_int_equal(events.count, 1);
        assert_int_equal(events.list[0].thread, 1);
        assert_int_equal(snd_trace_open_memory(bytes, size, &trace, NULL), SONDE_OK);
        assert_int_equal(sonde_trace_thread_count(trace), 2);
        sonde_trace_close(trace);
        free(bytes);
    }
}

/* ------------------------------------------------------------------ folders */

static void make_process(const char *path, uint32_t pid, uint8_t session, uint64_t start_ns,
                         uint64_t boot_id)
{
    struct synth_options options = {
        .grain = 4096, .pid = pid, .session = session, .start_ns = start_ns, .boot_id = boot_id
    };
    struct synth *s = synth_new(path, &options);
    uint32_t      t = synth_thread(s, "main", 0);

    synth_begin(s, t, 100, synth_string(s, "x"), 0);
    synth_end(s, t, 200);
    synth_close(s, true);
}

static void siblings_belong_to_a_file(void **state)
{
    (void)state;
    make_process(scratch_path("prog.sonde"), 10, 1, 0, 0);
    make_process(scratch_path("prog.sonde.11"), 11, 1, 5000, 0);
    make_process(scratch_path("prog.sonde.12"), 12, 2, 5000, 0); /* of another run */
    make_process(scratch_path("prog.sonde.13x"), 13, 1, 5000, 0);
    struct sonde_trace *trace = scratch_open(scratch_path("prog.sonde"));
    assert_int_equal(sonde_trace_process_count(trace), 2);
    assert_int_equal(sonde_trace_process(trace, 0)->pid, 10);
    assert_int_equal(sonde_trace_process(trace, 1)->pid, 11);
    assert_int_equal(sonde_trace_process(trace, 1)->start_ns, 5000);
    assert_int_equal(sonde_trace_thread(trace, 1)->process, 1);
    sonde_trace_close(trace);
}

static void folders_hold_processes(void **state)
{
    (void)state;
    assert_int_equal(mkdir(scratch_path("folder"), 0700), 0);
    make_process(scratch_path("folder/b"), 20, 1, 7000, 0);
    make_process(scratch_path("folder/a"), 21, 2, 9000, 0);
    make_process(scratch_path("folder/.hidden"), 22, 1, 0, 0);
    scratch_save(scratch_path("folder/readme"), "no trace", 8);
    struct sonde_trace *trace = scratch_open(scratch_path("folder"));
    assert_int_equal(sonde_trace_process_count(trace), 2);
    assert_int_equal(sonde_trace_process(trace, 0)->pid, 20); /* as they started */
    assert_int_equal(sonde_trace_process(trace, 0)->start_ns, 0);
    assert_int_equal(sonde_trace_process(trace, 1)->start_ns, 2000);
    sonde_trace_close(trace);
}

/* Another machine has another monotonic clock: real time tells. */
static void machines_meet_in_real_time(void **state)
{
    size_t size;

    (void)state;
    assert_int_equal(mkdir(scratch_path("hosts"), 0700), 0);
    make_process(scratch_path("hosts/a"), 30, 1, 1000, 0xaaa);
    make_process(scratch_path("hosts/b"), 31, 1, 4000, 0xbbb);
    uint8_t               *bytes = scratch_load(scratch_path("hosts/b"), &size);
    struct snd_file_header h;
    memcpy(&h, bytes, sizeof h);
    h.start.mono_ns += 500000000000; /* it was booted earlier */
    h.early = h.start;
    h.fixed_crc = snd_crc32c(0, &h, offsetof(struct snd_file_header, fixed_crc));
    memcpy(bytes, &h, sizeof h);
    scratch_save(scratch_path("hosts/b"), bytes, size);
    free(bytes);
    struct sonde_trace *trace = scratch_open(scratch_path("hosts"));
    assert_int_equal(sonde_trace_process(trace, 0)->start_ns, 0);
    assert_int_equal(sonde_trace_process(trace, 1)->start_ns, 3000);
    sonde_trace_close(trace);
}

/* Many processes without a file of their own: the texts of all stay where they are. */
static void a_file_has_samples_of_many_processes(void **state)
{
    struct synth *s = synth_new(scratch_path("guests"), NULL);
    char          name[16];

    (void)state;
    synth_thread(s, "main", 0);
    for (uint32_t i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "guest %u", i);
        synth_thread_in(s, name, 10000 + i, 10000 + i, 10);
    }
    synth_close(s, true);
    struct sonde_trace *trace = scratch_open(scratch_path("guests"));
    assert_int_equal(sonde_trace_process_count(trace), 301);
    assert_string_equal(sonde_trace_process(trace, 0)->program, "prog");
    assert_string_equal(sonde_trace_process(trace, 0)->host, "testhost");
    for (uint32_t i = 0; i < 300; i++) {
        const struct sonde_process *process = sonde_trace_process(trace, i + 1);
        assert_string_equal(process->host, "testhost");
        snprintf(name, sizeof name, "guest %u", i);
        assert_string_equal(process->program, name);
    }
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_has_samples_of_many_processes),
        cmocka_unit_test(strings_shapes_and_stacks),
        cmocka_unit_test(hostile_records),
        cmocka_unit_test(not_a_trace),
        cmocka_unit_test(newer_versions),
        cmocka_unit_test(cut_at_every_byte),
        cmocka_unit_test(cut_while_open),
        cmocka_unit_test(damaged_header_is_survived),
        cmocka_unit_test(damaged_chunk_is_stepped_over),
        cmocka_unit_test(checksums_tell),
        cmocka_unit_test(open_files_are_read),
        cmocka_unit_test(holes_are_skipped),
        cmocka_unit_test(empty_chunks_are_passed_over),
        cmocka_unit_test(undefined_threads_are_gathered),
        cmocka_unit_test(siblings_belong_to_a_file),
        cmocka_unit_test(folders_hold_processes),
        cmocka_unit_test(machines_meet_in_real_time),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
