/* SPDX-License-Identifier: Apache-2.0 */
/* sonde_pack and sonde_check. */
#include <errno.h>
#include <sys/stat.h>

#include "format/codec.h"
#include "format/layout.h"
#include "read/file/cursor.h"
#include "scratch.h" /* before it, cmocka and what that needs */
#include "same_event.h"
#include "snd_config.h"

/* Every kind of event, on two threads that share a chunk, over several chunks. */
static void make_trace(const char *path, bool closed)
{
    struct synth_options options = { .grain = 4096, .ticks_per_ns_x1000 = 2900 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0), u = synth_thread(s, "other", 0);
    uint32_t             name = synth_string(s, "work"), shapes = synth_shapes(s, "8,3;4");
    uint64_t             ns = 100, random = 99;

    synth_share(s, t, u);
    for (unsigned i = 0; i < 2000; i++) {
        uint32_t w = i / 100 % 2 ? u : t;
        random = random * 6364136223846793005u + 1442695040888963407u;
        synth_begin(s, w, ns += 40 + random % 100, name, shapes);
        synth_attr(s, w, SND_ATTR_FLOPS, random >> 8);
        if (i % 7 == 0)
            synth_alloc(s, w, ns += 5, 0, random, random % 4096);
        if (i % 11 == 0)
            synth_counter(s, w, ns += 5, name, (double)random);
        synth_end(s, w, ns += random >> 40);
    }
    synth_clock(s, ns, 0);
    synth_thread_done(s, t, ns, 3);
    synth_close(s, closed);
}

struct events {
    struct sonde_event *list;
    size_t              count;
};

static bool keep(const struct sonde_event *event, void *user)
{
    struct events *events = user;

    events->list[events->count++] = *event;
    return true;
}

static struct events walk(struct sonde_trace *trace)
{
    struct events events = { calloc(20000, sizeof *events.list), 0 };

    assert_int_equal(sonde_trace_walk(trace, SONDE_BY_THREAD, keep, &events, NULL), SONDE_OK);
    return events;
}

static struct events read_events(const char *path)
{
    struct sonde_trace *trace = scratch_open(path);
    struct events       events = walk(trace);

    sonde_trace_close(trace);
    return events;
}

static void check_same(const char *a, const char *b)
{
    struct events x = read_events(a), y = read_events(b);

    assert_int_equal(x.count, y.count);
    for (size_t i = 0; i < x.count; i++)
        same_event(&x.list[i], &y.list[i]);
    free(x.list);
    free(y.list);
}

static void packing_keeps_everything(void **state)
{
    struct sonde_check before, after;
    struct stat        st;

    (void)state;
    make_trace(scratch_path("raw"), true);
    assert_int_equal(sonde_pack(scratch_path("raw"), scratch_path("packed"), 0, NULL), SONDE_OK);
    check_same(scratch_path("raw"), scratch_path("packed"));
    assert_int_equal(sonde_check(scratch_path("raw"), &before, NULL), SONDE_OK);
    assert_int_equal(sonde_check(scratch_path("packed"), &after, NULL), SONDE_OK);
    assert_int_equal(before.events, after.events);
    assert_int_equal(before.records, after.records);
    assert_int_equal(after.files, 1);
    assert_true(after.closed);
    assert_int_equal(after.damaged_chunks + after.skipped_bytes + after.damaged_headers, 0);
    assert_int_equal(stat(scratch_path("packed"), &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    /* Onto itself, and once more what is packed already. */
    assert_int_equal(sonde_pack(scratch_path("packed"), scratch_path("packed"), 19, NULL),
                     SONDE_OK);
    check_same(scratch_path("raw"), scratch_path("packed"));
}

/* Not compressed: without what was reserved and not used. Needs no zstd. */
/* A chunk is unpacked once while there is room for it in `kept` words; a walk is the same either way. */
static void check_kept(const char *path, size_t kept, bool all)
{
    struct sonde_trace *trace = scratch_open(path);
    struct snd_process *p = &trace->processes[0];
    uint32_t            count = 0;
    size_t              words = 0;

    trace->keeps_words = kept;
    struct events first = walk(trace), second = walk(trace);
    for (uint32_t i = 0; i < p->lane_count; i++) {
        count += p->lanes[i].unpacked != NULL;
        words += p->lanes[i].unpacked_words;
    }
    assert_true(count > 0 && (count == p->lane_count) == all);
    assert_true(words <= kept && trace->keeps_words == kept - words);
    assert_int_equal(first.count, second.count);
    for (size_t i = 0; i < first.count; i++)
        same_event(&first.list[i], &second.list[i]);
    free(first.list);
    free(second.list);
    sonde_trace_close(trace);
}

static void a_small_trace_is_unpacked_once(void **state)
{
    char from[256], to[256];

    (void)state;
    snprintf(from, sizeof from, "%s", scratch_path("plain"));
    snprintf(to, sizeof to, "%s", scratch_path("small"));
    make_trace(from, true);
    assert_int_equal(sonde_pack(from, to, 0, NULL), SONDE_OK);
    struct sonde_trace *trace = scratch_open(to);
    assert_int_equal(trace->keeps_words, SND_KEPT_WORDS);
    assert_true(trace->processes[0].lane_count > 1);
    sonde_trace_close(trace);
    check_kept(to, SND_KEPT_WORDS, true);
    check_kept(to, 700, false);
}

static void a_copy_has_what_was_used(void **state)
{
    struct synth_options options = { .chunk_bytes = 1 << 20 };
    struct synth        *s = synth_new(scratch_path("sparse"), &options);
    uint32_t             t = synth_thread(s, "main", 0);
    struct stat          st;

    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        synth_mark(s, t, i, synth_string(s, "moment"), 0);
    synth_reserve(s);
    synth_close(s, true);
    assert_int_equal(stat(scratch_path("sparse"), &st), 0);
    assert_true(st.st_size > 1 << 20);
    assert_int_equal(sonde_pack(scratch_path("sparse"), scratch_path("copy"), -1, NULL), SONDE_OK);
    assert_int_equal(stat(scratch_path("copy"), &st), 0);
    assert_in_range(st.st_size, 1, 1 << 14);
    assert_int_equal(st.st_mode & 0777, 0600);
    check_same(scratch_path("sparse"), scratch_path("copy"));
}

static void packing_recovers(void **state)
{
    struct sonde_check check;
    size_t             size;

    (void)state;
    make_trace(scratch_path("torn"), false);
    uint8_t *bytes = scratch_load(scratch_path("torn"), &size);
    bytes[3 * 4096 + 200] ^= 4;
    scratch_save(scratch_path("torn"), bytes, size - 5000);
    free(bytes);
    assert_int_equal(sonde_check(scratch_path("torn"), &check, NULL), SONDE_OK);
    assert_true(check.damaged_chunks > 0);
    assert_false(check.closed);
    assert_int_equal(sonde_pack(scratch_path("torn"), scratch_path("mended"), 3, NULL), SONDE_OK);
    assert_int_equal(sonde_check(scratch_path("mended"), &check, NULL), SONDE_OK);
    assert_int_equal(check.damaged_chunks + check.skipped_bytes, 0);
    assert_false(check.closed); /* as it was found */
    check_same(scratch_path("torn"), scratch_path("mended"));
}

/* Perfectly regular events would pack beyond what readers accept: they are stored as they are. */
/* A hole in a chunk that says how far it is used: what follows is gone, and the copy says so, too. */
static void a_hole_in_a_sealed_chunk(void **state)
{
    struct synth  *s = synth_new(scratch_path("hole"), NULL);
    uint32_t       t = synth_thread(s, "main", 0);
    const uint64_t none = 0;

    (void)state;
    synth_begin(s, t, 100, synth_string(s, "cut"), 0);
    synth_raw(s, t, &none, 1);
    synth_end(s, t, 900);
    synth_close(s, true);
    assert_int_equal(sonde_pack(scratch_path("hole"), scratch_path("hole-packed"), 3, NULL),
                     SONDE_OK);
    struct events events = read_events(scratch_path("hole-packed"));
    assert_int_equal(events.count, 2);
    assert_int_equal(events.list[0].kind, SONDE_EVENT_BEGIN);
    assert_int_equal(events.list[1].kind, SONDE_EVENT_GAP);
    assert_int_equal(events.list[1].time_ns, events.list[0].time_ns);
    free(events.list);
    check_same(scratch_path("hole"), scratch_path("hole-packed"));
}

static void regular_events_survive(void **state)
{
    struct synth_options options = { .chunk_bytes = 1 << 20 };
    struct synth        *s = synth_new(scratch_path("regular"), &options);
    uint32_t             t = synth_thread(s, "main", 0);

    (void)state;
    for (uint64_t i = 0; i < 19000; i++)
        synth_end(s, t, i);
    synth_close(s, true);
    assert_int_equal(sonde_pack(scratch_path("regular"), scratch_path("regular.p"), 3, NULL),
                     SONDE_OK);
    check_same(scratch_path("regular"), scratch_path("regular.p"));
}

static void damage_in_a_packed_file(void **state)
{
    struct sonde_check check;
    size_t             size;

    (void)state;
    make_trace(scratch_path("whole"), true);
    assert_int_equal(sonde_pack(scratch_path("whole"), scratch_path("cut"), 3, NULL), SONDE_OK);
    uint8_t *bytes = scratch_load(scratch_path("cut"), &size);
    for (size_t at = SND_HEADER_SIZE; at < size; at += size / 50) {
        uint8_t *copy = malloc(size);
        memcpy(copy, bytes, size);
        copy[at] ^= 0x10;
        scratch_save(scratch_path("cut"), copy, size);
        assert_int_equal(sonde_check(scratch_path("cut"), &check, NULL), SONDE_OK);
        assert_true(check.events <= 10000);
        scratch_save(scratch_path("cut"), bytes, at);
        assert_int_equal(sonde_check(scratch_path("cut"), &check, NULL), SONDE_OK);
        free(copy);
    }
    free(bytes);
}

/* A chunk after more damage than is searched at a time, wherever it begins, is found. */
static void chunks_are_found_behind_any_damage(void **state)
{
    struct sonde_check whole, check;
    size_t             size;

    (void)state;
    make_trace(scratch_path("behind"), true);
    assert_int_equal(sonde_pack(scratch_path("behind"), scratch_path("behind.p"), 3, NULL),
                     SONDE_OK);
    assert_int_equal(sonde_check(scratch_path("behind.p"), &whole, NULL), SONDE_OK);
    uint8_t *bytes = scratch_load(scratch_path("behind.p"), &size);
    for (size_t gap = 65536 - 16; gap <= 2 * 65536 + 16;
         gap += gap == 65536 + 16 ? 65536 - 32 : 8) {
        uint8_t *copy = malloc(size + gap);
        memcpy(copy, bytes, SND_HEADER_SIZE);
        memset(copy + SND_HEADER_SIZE, 'x', gap);
        memcpy(copy + SND_HEADER_SIZE + gap, bytes + SND_HEADER_SIZE, size - SND_HEADER_SIZE);
        scratch_save(scratch_path("behind.p"), copy, size + gap);
        assert_int_equal(sonde_check(scratch_path("behind.p"), &check, NULL), SONDE_OK);
        assert_int_equal(check.skipped_bytes, gap);
        assert_int_equal(check.events, whole.events);
        assert_int_equal(check.chunks, whole.chunks);
        free(copy);
    }
    free(bytes);
}

static void folders_are_packed_file_by_file(void **state)
{
    struct sonde_check check;

    (void)state;
    assert_int_equal(mkdir(scratch_path("in"), 0700), 0);
    make_trace(scratch_path("in/a"), true);
    make_trace(scratch_path("in/b"), true);
    scratch_save(scratch_path("in/notes"), "text", 4);
    assert_int_equal(sonde_pack(scratch_path("in"), scratch_path("out"), 3, NULL), SONDE_OK);
    assert_int_equal(sonde_check(scratch_path("out"), &check, NULL), SONDE_OK);
    assert_int_equal(check.files, 2);
    assert_int_not_equal(access(scratch_path("out/notes"), F_OK), 0);
}

/* A folder that has a folder and a text file has no trace. */
static void a_folder_without_a_trace_is_refused(void **state)
{
    struct sonde_error err;

    (void)state;
    assert_int_equal(mkdir(scratch_path("none"), 0700), 0);
    assert_int_equal(mkdir(scratch_path("none/below"), 0700), 0);
    scratch_save(scratch_path("none/notes"), "text", 4);
    make_trace(scratch_path("none/.hidden"), true);
    assert_int_equal(sonde_pack(scratch_path("none"), scratch_path("none-out"), 3, &err),
                     SONDE_E_FORMAT);
    assert_non_null(strstr(err.message, "holds no trace"));
}

/* A program without a standard input has files in its place. */
static void without_a_standard_input(void **state)
{
    int kept = dup(STDIN_FILENO);

    (void)state;
    make_trace(scratch_path("raw"), true);
    close(STDIN_FILENO);
    enum sonde_status status = sonde_pack(scratch_path("raw"), scratch_path("zero"), -1, NULL);
    assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
    close(kept);
    assert_int_equal(status, SONDE_OK);
    check_same(scratch_path("raw"), scratch_path("zero"));
}

/* ------------------------------------------------------------------- a full disk */

static int writes_left = -1; /* until one fails; -1: none does */

ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t at);
ssize_t __real_pwrite64(int fd, const void *bytes, size_t size, off_t at);

static bool is_full(void)
{
    if (writes_left < 0 || writes_left-- > 0)
        return false;
    errno = ENOSPC;
    return true;
}

ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    return is_full() ? -1 : __real_write(fd, bytes, size);
}

ssize_t __wrap_pwrite64(int fd, const void *bytes, size_t size, off_t at)
{
    return is_full() ? -1 : __real_pwrite64(fd, bytes, size, at);
}

/* Whichever write it is that fails. */
static void a_full_disk_is_said_and_leaves_nothing(void **state)
{
    struct sonde_error err;
    int                failed = 0;
    enum sonde_status  status = SONDE_E_IO;

    (void)state;
    make_trace(scratch_path("full"), true);
    for (; status != SONDE_OK && failed < 1000; failed++) {
        writes_left = failed;
        status = sonde_pack(scratch_path("full"), scratch_path("full-out"), 3, &err);
        bool none_failed = writes_left >= 0;
        writes_left = -1;
        assert_int_equal(status, none_failed ? SONDE_OK : SONDE_E_IO);
        if (none_failed)
            break;
        assert_non_null(strstr(err.message, "cannot write the packed trace"));
        assert_non_null(strstr(err.message, strerror(ENOSPC)));
        assert_int_not_equal(access(scratch_path("full-out"), F_OK), 0);
    }
    assert_in_range(failed, 5, 999); /* the header, chunks, and the length at the end */
    check_same(scratch_path("full"), scratch_path("full-out"));
}

static void failures_leave_nothing(void **state)
{
    struct sonde_error err;

    (void)state;
    assert_int_equal(sonde_pack(scratch_path("nowhere"), scratch_path("x"), 3, &err), SONDE_E_IO);
    make_trace(scratch_path("fine"), true);
    assert_int_equal(sonde_pack(scratch_path("fine"), scratch_path("no/such/folder"), 3, &err),
                     SONDE_E_IO);
    scratch_save(scratch_path("text"), "text", 4);
    assert_int_equal(sonde_pack(scratch_path("text"), scratch_path("x"), 3, &err), SONDE_E_FORMAT);
    assert_int_not_equal(access(scratch_path("x"), F_OK), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(packing_keeps_everything),
        cmocka_unit_test(a_small_trace_is_unpacked_once),
        cmocka_unit_test(a_copy_has_what_was_used),
        cmocka_unit_test(packing_recovers),
        cmocka_unit_test(a_hole_in_a_sealed_chunk),
        cmocka_unit_test(regular_events_survive),
        cmocka_unit_test(damage_in_a_packed_file),
        cmocka_unit_test(chunks_are_found_behind_any_damage),
        cmocka_unit_test(folders_are_packed_file_by_file),
        cmocka_unit_test(a_folder_without_a_trace_is_refused),
        cmocka_unit_test(without_a_standard_input),
        cmocka_unit_test(a_full_disk_is_said_and_leaves_nothing),
        cmocka_unit_test(failures_leave_nothing),
    };

    if (!SND_HAVE_ZSTD) {
        make_trace(scratch_path("raw"), true);
        enum sonde_status status = sonde_pack(scratch_path("raw"), scratch_path("p"), 0, NULL);
        scratch_remove(NULL);
        return status == SONDE_E_UNSUPPORTED ? 0 : 1;
    }
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
