/* SPDX-License-Identifier: Apache-2.0 */
/* record/file/chunk.c: what a chunk holds, and what of it the file does not. test_record_life has chunks in use. */
#include <sys/mman.h>

#include "format/fields.h"
#include "record/file/bus_errors.h"
#include "record/file/chunk.h"
#include "recorded.h"

/* A chunk of spans and marks; bit i of `open`: the i-th of the first 32 has not ended. */
static struct snd_chunk_header *fill_chunk(uint64_t *words, unsigned spans, unsigned open,
                                           unsigned marks)
{
    uint64_t *at = words + SND_CHUNK_HEADER_SIZE / 8;

    for (unsigned i = 0; i < spans; i++, at += 2) {
        at[0] = (uint64_t)(100 + i) << 8 | SND_EV_SPAN;
        at[1] = SND_PAIR(1, i < 32 && open >> i & 1 ? 0 : 5);
    }
    for (unsigned i = 0; i < marks; i++, at += 2) {
        at[0] = (uint64_t)(900 + i) << 8 | SND_EV_MARK;
        at[1] = 1;
    }
    return (struct snd_chunk_header *)words;
}

/* What a chunk holds: a range that has ended is two events, one that has not is one. */
static void test_events_of_a_chunk_are_counted(void **state)
{
    enum { WORDS = 64, HEAD = SND_CHUNK_HEADER_SIZE / 8 };

    (void)state;
    for (unsigned spans = 0; spans <= 9; spans++)
        for (unsigned open = 0; open < 1u << spans; open++)
            for (unsigned marks = 0; marks <= 2; marks++) {
                uint64_t words[WORDS] = { 0 }, events = 0;
                uint64_t used = snd_chunk_scan(fill_chunk(words, spans, open, marks), sizeof words,
                                               &events);
                assert_int_equal(used, 8 * (HEAD + 2 * (spans + marks)));
                assert_int_equal(events, 2 * spans - (unsigned)__builtin_popcount(open) + marks);
            }
    /* to the last word of a chunk that is full, and not beyond it where an event is cut off */
    for (unsigned size = HEAD; size <= HEAD + 12; size++) {
        uint64_t words[WORDS] = { 0 }, events = 0;
        uint64_t used = snd_chunk_scan(fill_chunk(words, 5, 0, 1), 8 * size, &events);
        assert_int_equal(used, 8 * (HEAD + (size - HEAD) / 2 * 2));
        assert_int_equal(events, size - HEAD < 12 ? (size - HEAD) / 2 * 2 : 11);
    }
}

enum { PAGE = 4096, MAPPED = 4 * PAGE };

/* A chunk in a file of its own, of which another program leaves one page. */
static struct snd_chunk_header *map_chunk(enum snd_chunk_kind kind, int *fd)
{
    *fd = memfd_create("chunk", MFD_CLOEXEC);
    assert_true(*fd >= 0);
    assert_int_equal(ftruncate(*fd, MAPPED), 0);
    struct snd_chunk_header *map = mmap(NULL, MAPPED, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    assert_true(map != MAP_FAILED);
    map->magic = SND_CHUNK_MAGIC;
    map->kind = (uint16_t)kind;
    snd_bus_add(map, MAPPED, SND_CHUNK_HEADER_SIZE);
    return map;
}

static void unmap_chunk(struct snd_chunk_header *map, int fd)
{
    snd_bus_remove(map);
    munmap(map, MAPPED);
    close(fd);
}

/* Records of `size` bytes, of which the first page of the file holds only the first. */
static void check_lost_records(uint32_t size, uint32_t count)
{
    int                      fd;
    struct snd_chunk_header *map = map_chunk(SND_CHUNK_TABLE, &fd);
    uint64_t                 before = snd_header->lost_names, at = SND_CHUNK_HEADER_SIZE;
    uint64_t                 kept = (PAGE - SND_CHUNK_HEADER_SIZE) / size;

    assert_int_equal(ftruncate(fd, PAGE), 0);
    for (uint32_t i = 1; i <= count; i++, at += size) {
        struct snd_record_head head = { size << 8 | SND_REC_STRING, i };
        memcpy((char *)map + at, &head, sizeof head);
    }
    memset((char *)map + at, 0, 8); /* is there, or is lost as well */
    snd_chunk_seal(map, at, true);
    assert_int_equal(map->used, SND_CHUNK_HEADER_SIZE + (count < kept ? count : kept) * size);
    assert_int_equal(snd_header->lost_names - before, count < kept ? 0 : count - kept);
    unmap_chunk(map, fd);
}

/* Spans of 16 bytes, and after them one event of another weight. */
static void check_lost_events(uint32_t spans, const uint64_t last[2], uint64_t weight)
{
    int                      fd;
    struct snd_chunk_header *map = map_chunk(SND_CHUNK_LANE, &fd);
    uint64_t                 before = snd_header->lost_events, kept = (PAGE - 64) / 16;
    uint64_t                 used = SND_CHUNK_HEADER_SIZE + 16ull * (spans + 1);

    assert_int_equal(ftruncate(fd, PAGE), 0);
    fill_chunk((uint64_t *)map, spans, 0, 0);
    memcpy((char *)map + used - 16, last, 16);
    uint64_t events = snd_chunk_seal(map, used, true);
    if (spans < kept) { /* the last one is there */
        assert_int_equal(events, 2 * spans + snd_event_weight(last));
        assert_int_equal(snd_header->lost_events - before, 0);
        assert_int_equal(map->used, used);
    } else {
        assert_int_equal(events, 2 * kept);
        assert_int_equal(snd_header->lost_events - before, 2 * (spans - kept) + weight);
        assert_int_equal(map->used, PAGE);
    }
    unmap_chunk(map, fd);
}

/* What was stored where the file has ended is lost, and counted: to the last event that it holds. */
static void test_what_the_file_does_not_hold_is_counted(void **state)
{
    static const uint64_t mark[2] = { 900 << 8 | SND_EV_MARK, 1 },
                          open[2] = { 900 << 8 | SND_EV_SPAN, 1 },
                          gap[2] = { 900 << 8 | SND_EV_GAP, 3 };
    struct sonde_options options = recorded_options("void.sonde");

    (void)state;
    if (sysconf(_SC_PAGESIZE) != PAGE)
        skip();
    recorded_start(&options);
    check_lost_records(64, 1); /* none is lost */
    check_lost_records(64, 62);
    check_lost_records(64, 63); /* to the last byte of the page */
    check_lost_records(64, 64);
    check_lost_records(64, 100);
    check_lost_records(48, 84);
    check_lost_records(48, 85); /* begins in the page, and does not end in it */
    check_lost_records(48, 200);
    for (uint32_t spans = 250; spans < 256; spans++) {
        check_lost_events(spans, mark, 1);
        check_lost_events(spans, open, 1);
        check_lost_events(spans, gap, 0); /* what it states is counted elsewhere */
    }
    recorded_stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_events_of_a_chunk_are_counted),
        cmocka_unit_test(test_what_the_file_does_not_hold_is_counted),
    };
    return cmocka_run_group_tests_name("chunk", tests, NULL, NULL);
}
