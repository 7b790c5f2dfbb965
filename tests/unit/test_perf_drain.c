/* SPDX-License-Identifier: Apache-2.0 */
/* Records out of the kernel's rings: in the order of their times, over the end of a ring, and whether one was nearly full. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "native/perf/perf_events.h"

#define RING ((size_t)4096)
#define RINGS 2u

/* A sample up to its time, then bytes that tell it from others. */
struct record {
    struct perf_event_header head;
    uint64_t                 address;
    uint32_t                 pid, tid;
    uint64_t                 ns;
    uint64_t                 rest[3];
};

struct fixture {
    struct snd_perf      perf;
    struct snd_perf_ring rings[RINGS];
};

static struct perf_event_mmap_page *page_of(const struct snd_perf_ring *ring)
{
    return (void *)ring->map;
}

/* `at`: where both ends of each ring are, in bytes since its begin. */
static struct fixture *new_rings(uint64_t at)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->perf = (struct snd_perf){ .rings = f->rings, .ring_count = RINGS, .ring_bytes = RING };
    for (uint32_t i = 0; i < RINGS; i++) {
        f->rings[i].map = calloc(1, sizeof(struct perf_event_mmap_page) + RING);
        f->rings[i].data = f->rings[i].map + sizeof(struct perf_event_mmap_page);
        f->rings[i].joined = malloc(RING);
        f->rings[i].tail = at;
        page_of(&f->rings[i])->data_head = page_of(&f->rings[i])->data_tail = at;
    }
    return f;
}

static void release(struct fixture *f)
{
    for (uint32_t i = 0; i < RINGS; i++) {
        free(f->rings[i].map);
        free(f->rings[i].joined);
    }
    free(f);
}

/* As the kernel does. */
static void put(struct fixture *f, uint32_t ring, uint64_t ns)
{
    struct perf_event_mmap_page *page = page_of(&f->rings[ring]);
    const struct record          record = {
                 .head = { .type = PERF_RECORD_SAMPLE, .size = sizeof record },
                 .tid = ring,
                 .ns = ns,
                 .rest = { ns, ~ns, ns * 3 },
    };
    uint8_t *data = f->rings[ring].map + sizeof *page;

    for (size_t i = 0; i < sizeof record; i++)
        data[(page->data_head + i) % RING] = ((const uint8_t *)&record)[i];
    page->data_head += sizeof record;
}

struct taken {
    uint64_t ns[200];
    uint32_t ring[200];
    uint32_t count;
};

static void take(void *user, const struct perf_event_header *head, uint64_t ns)
{
    struct taken *taken = user;
    struct record record;

    assert_int_equal(head->size, sizeof record);
    memcpy(&record, head, sizeof record);
    assert_int_equal(record.ns, ns);
    assert_true(record.rest[0] == ns && record.rest[1] == ~ns && record.rest[2] == ns * 3);
    taken->ns[taken->count] = ns;
    taken->ring[taken->count++] = record.tid;
}

static void records_come_in_the_order_of_their_times(void **state)
{
    struct fixture *f = new_rings(0);
    struct taken    taken = { .count = 0 };

    (void)state;
    for (uint64_t ns = 10; ns <= 100; ns += 10)
        put(f, ns % 30 == 0, ns);
    snd_perf_drain(&f->perf, 70, take, &taken);
    assert_int_equal(taken.count, 7);
    snd_perf_drain(&f->perf, UINT64_MAX, take, &taken);
    assert_int_equal(taken.count, 10);
    for (uint32_t i = 0; i < taken.count; i++) {
        assert_int_equal(taken.ns[i], 10 * (i + 1));
        assert_int_equal(taken.ring[i], taken.ns[i] % 30 == 0);
    }
    for (uint32_t i = 0; i < RINGS; i++)
        assert_int_equal(page_of(&f->rings[i])->data_tail, page_of(&f->rings[i])->data_head);
    release(f);
}

static void a_record_goes_over_the_end_of_a_ring(void **state)
{
    struct fixture *f = new_rings(3 * RING - 24);
    struct taken    taken = { .count = 0 };

    (void)state;
    put(f, 0, 5);
    put(f, 0, 6);
    snd_perf_drain(&f->perf, UINT64_MAX, take, &taken);
    assert_int_equal(taken.count, 2);
    release(f);
}

/* More than half of it had not been taken; what was before that drain does not count. */
static void a_ring_that_is_nearly_full_is_told(void **state)
{
    struct fixture *f = new_rings(RING / 2);
    struct taken    taken = { .count = 0 };
    const uint32_t  half = (uint32_t)(RING / 2 / sizeof(struct record));

    (void)state;
    for (uint64_t ns = 1; ns <= half; ns++)
        put(f, 1, ns);
    snd_perf_drain(&f->perf, UINT64_MAX, take, &taken);
    assert_false(f->perf.is_late);
    for (uint64_t ns = 101; ns <= 101 + half; ns++)
        put(f, 1, ns);
    snd_perf_drain(&f->perf, 0, take, &taken);
    assert_true(f->perf.is_late);
    assert_int_equal(taken.count, half);
    snd_perf_drain(&f->perf, UINT64_MAX, take, &taken); /* nothing was taken by the one before */
    assert_true(f->perf.is_late);
    assert_int_equal(taken.count, 2 * half + 1);
    snd_perf_drain(&f->perf, UINT64_MAX, take, &taken);
    assert_false(f->perf.is_late);
    release(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_come_in_the_order_of_their_times),
        cmocka_unit_test(a_record_goes_over_the_end_of_a_ring),
        cmocka_unit_test(a_ring_that_is_nearly_full_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
