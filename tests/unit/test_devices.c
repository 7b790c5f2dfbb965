/* SPDX-License-Identifier: Apache-2.0 */
/* Work of GPUs: found by the call that asked for it, in whatever order it was written. */
#include "read/walk/device_work.h"

#include "format/fields.h"
#include "model/ranges/assembly.h"
#include "scratch.h"

#define CUDA0 SND_DEVICE(1, 0)

struct made {
    struct synth *s;
    uint32_t      host, worker, queue, kernel, copy, overhead;
};

static struct made make(const char *path)
{
    struct made m = { .s = synth_new(path, NULL) };

    m.host = synth_thread(m.s, "main", 0);
    m.worker = synth_thread(m.s, "worker", 0);
    m.queue = synth_queue(m.s, &(struct snd_queue_record){ CUDA0, 1, 7, 0 });
    m.kernel = synth_work(m.s, &(struct snd_work_record){ .name = synth_string(m.s, "gemm"),
                                                          .kind = SND_WORK_KERNEL,
                                                          .grid = { 4, 2, 1 } });
    m.copy = synth_work(m.s, &(struct snd_work_record){ .name = synth_string(m.s, "copy"),
                                                        .kind = SND_WORK_COPY,
                                                        .bytes = 4096 });
    m.overhead = synth_work(m.s, &(struct snd_work_record){ .name = synth_string(m.s, "buffer"),
                                                            .kind = SND_WORK_OVERHEAD });
    return m;
}

static const struct snd_devices *read_devices(struct sonde_trace *trace)
{
    const struct snd_devices *devices;

    assert_int_equal(snd_trace_devices_by_time(trace, &devices, NULL), SONDE_OK);
    return devices;
}

static void work_is_found_by_its_call(void **state)
{
    const char *path = scratch_path("calls");
    struct made m = make(path);
    uint32_t    count;

    (void)state;
    synth_device(m.s, m.worker, 900, m.kernel, m.queue, 50, 2, 0);
    synth_device(m.s, m.worker, 300, m.kernel, m.queue, 20, 1, 0);
    synth_device(m.s, m.host, 400, m.copy, m.queue, 30, 2, UINT64_C(1) << 40);
    synth_device(m.s, m.worker, 100, m.overhead, 0, 7, 2, 0);
    synth_device(m.s, m.worker, 100, 77, m.queue, 7, 2, 0); /* of an unknown kind: left out */
    synth_close(m.s, true);
    struct sonde_trace       *trace = scratch_open(path);
    const struct snd_devices *d = read_devices(trace);
    assert_int_equal(d->count, 4);
    const struct snd_device_item *of_two = snd_devices_of(d, 0, 2, &count);
    assert_int_equal(count, 3);
    assert_int_equal(of_two[0].start_ns, 100);
    assert_int_equal(of_two[1].start_ns, 400);
    assert_int_equal(of_two[1].node, UINT64_C(1) << 40);
    assert_int_equal(of_two[2].start_ns, 900);
    assert_int_equal(of_two[2].duration_ns, 50);
    assert_int_equal(snd_device_work(trace, &of_two[1])->bytes, 4096);
    assert_int_equal(snd_device_queue(trace, &of_two[1])->stream, 7);
    assert_null(snd_device_queue(trace, &of_two[0]));
    assert_null(snd_devices_of(d, 0, 3, &count));
    assert_int_equal(snd_devices_sum(trace, 0, 2), 80); /* not the overhead */
    assert_int_equal(snd_devices_sum(trace, 0, 1), 20);
    assert_int_equal(d->items[d->by_time[1]].start_ns, 300);
    assert_int_equal(d->items[d->by_time[3]].start_ns, 900);
    sonde_trace_close(trace);
}

/* Late and out of order: neither the thread's ranges nor its clock are touched. */
static void it_is_not_the_thread_s(void **state)
{
    const char *path = scratch_path("order");
    struct made m = make(path);
    uint32_t    name = synth_string(m.s, "flush");

    (void)state;
    synth_begin(m.s, m.host, 100000000, name, 0);
    synth_device(m.s, m.host, 5, m.kernel, m.queue, 50, 1, 0);
    synth_device(m.s, m.host, 2, m.kernel, m.queue, 50, 1, 0);
    synth_end(m.s, m.host, 100000400);
    synth_close(m.s, true);
    struct sonde_trace    *trace = scratch_open(path);
    struct snd_assembly    a;
    struct snd_consumer    nobody = { 0 };
    const enum sonde_order orders[] = { SONDE_BY_THREAD, SONDE_BY_TIME };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(snd_assemble(&a, trace, orders[i], &nobody, 1, NULL), SONDE_OK);
        assert_int_equal(a.stats.ranges, 1);
        assert_int_equal(a.stats.walk.clock_backwards, 0);
        assert_int_equal(a.stats.walk.missing_events, 0);
        assert_int_equal(a.lanes[0].first_ns, 100000000);
        snd_assembly_release(&a);
    }
    sonde_trace_close(trace);
}

struct totals {
    int64_t device_ns[4], own_ns[4]; /* by depth */
};

static void add(void *user, struct snd_lane *lane, struct snd_open_range *range,
                struct snd_open_range *parent)
{
    struct totals *totals = user;

    (void)lane, (void)parent;
    totals->device_ns[range->place] += range->range.device_ns;
    totals->own_ns[range->place] += range->range.own_device_ns;
}

/* module { linear { launch 1 -> 20 ns } launch 2 -> 30 + 50 ns } */
static void ranges_have_their_work(void **state)
{
    const char         *path = scratch_path("ranges");
    struct made         m = make(path);
    uint32_t            outer = synth_string(m.s, "module"), inner = synth_string(m.s, "linear");
    uint32_t            launch = synth_string(m.s, "cudaLaunchKernel");
    struct totals       totals = { 0 };
    struct snd_consumer consumer = { .user = &totals, .close = add };
    struct snd_assembly a;

    (void)state;
    synth_begin(m.s, m.host, 100, outer, 0);
    synth_begin(m.s, m.host, 110, inner, 0);
    synth_begin(m.s, m.host, 120, launch, 0);
    synth_attr(m.s, m.host, SND_ATTR_API, UINT64_C(211) << 32 | 1);
    synth_end(m.s, m.host, 130);
    synth_end(m.s, m.host, 140);
    synth_begin(m.s, m.host, 150, launch, 0);
    synth_attr(m.s, m.host, SND_ATTR_API, UINT64_C(1) << 47 | UINT64_C(307) << 32 | 2);
    synth_end(m.s, m.host, 160);
    synth_end(m.s, m.host, 170);
    synth_device(m.s, m.worker, 300, m.kernel, m.queue, 20, 1, 0);
    synth_device(m.s, m.worker, 400, m.copy, m.queue, 30, 2, 0);
    synth_device(m.s, m.worker, 900, m.kernel, m.queue, 50, 2, 0);
    synth_close(m.s, true);
    struct sonde_trace *trace = scratch_open(path);
    assert_int_equal(snd_assemble(&a, trace, SONDE_BY_THREAD, &consumer, 1, NULL), SONDE_OK);
    assert_int_equal(totals.device_ns[0], 100);
    assert_int_equal(totals.own_ns[0], 80);
    assert_int_equal(totals.device_ns[1], 20 + 80); /* linear, and the launch outside it */
    assert_int_equal(totals.own_ns[1], 20 + 80);
    assert_int_equal(totals.own_ns[2], 20);
    snd_assembly_release(&a);
    sonde_trace_close(trace);
}

/* The same as above, in the events that take the least room: the launches close in place. */
static void short_events_mean_the_same(void **state)
{
    const char         *path = scratch_path("short");
    struct made         m = make(path);
    uint32_t            outer = synth_string(m.s, "module");
    uint32_t            launch = synth_string(m.s, "cudaLaunchKernel");
    struct totals       totals = { 0 };
    struct snd_consumer consumer = { .user = &totals, .close = add };
    struct snd_assembly a;
    uint32_t            count;

    (void)state;
    const uint64_t call[3] = { SND_EV_API, SND_PAIR(launch, 10), UINT64_C(211) << 32 | 1 };
    const uint64_t open[3] = { SND_EV_API, SND_PAIR(launch, 0), UINT64_C(211) << 32 | 2 };
    const uint64_t ran[3] = { SND_EV_DEVICE_SHORT, SND_PAIR(m.kernel, 20), SND_PAIR(1, m.queue) };
    const uint64_t also[3] = { SND_EV_DEVICE_SHORT, SND_PAIR(m.copy, 30), SND_PAIR(2, m.queue) };
    synth_begin(m.s, m.host, 100, outer, 0);
    synth_event(m.s, m.host, 120, call, 3);
    synth_event(m.s, m.host, 150, open, 3);
    synth_event(m.s, m.host, 400, also, 3); /* written inside the call */
    synth_end(m.s, m.host, 160);
    synth_end(m.s, m.host, 170);
    synth_event(m.s, m.worker, 300, ran, 3);
    synth_close(m.s, true);
    struct sonde_trace       *trace = scratch_open(path);
    const struct snd_devices *d = read_devices(trace);
    assert_int_equal(d->count, 2);
    const struct snd_device_item *item = snd_devices_of(d, 0, 2, &count);
    assert_int_equal(count, 1);
    assert_int_equal(item->start_ns, 400);
    assert_int_equal(item->duration_ns, 30);
    assert_int_equal(item->queue, m.queue);
    assert_int_equal(item->work, m.copy);
    assert_int_equal(snd_assemble(&a, trace, SONDE_BY_THREAD, &consumer, 1, NULL), SONDE_OK);
    assert_int_equal(totals.device_ns[0], 50);
    assert_int_equal(totals.own_ns[1], 50);
    snd_assembly_release(&a);
    sonde_trace_close(trace);
}

static bool keep_device(const struct sonde_event *event, void *user)
{
    if (event->kind == SONDE_EVENT_DEVICE)
        *(struct sonde_event *)user = *event;
    return true;
}

static void the_public_walk_shows_it(void **state)
{
    const char        *path = scratch_path("public");
    struct made        m = make(path);
    struct sonde_event seen = { 0 };

    (void)state;
    synth_device(m.s, m.worker, 900, m.kernel, m.queue, 50, 2, 0);
    synth_close(m.s, true);
    struct sonde_trace *trace = scratch_open(path);
    assert_int_equal(sonde_trace_walk(trace, SONDE_BY_TIME, keep_device, &seen, NULL), SONDE_OK);
    assert_int_equal(seen.time_ns, 900);
    assert_int_equal(seen.device.duration_ns, 50);
    assert_int_equal(seen.device.work, m.kernel);
    assert_int_equal(seen.device.queue, m.queue);
    assert_int_equal(seen.device.correlation, 2);
    sonde_trace_close(trace);
}

/* Of the mapping that has this address, what is in memory; -1: it is not told. */
static long resident_kib(const void *address)
{
    FILE         *maps = fopen("/proc/self/smaps", "r");
    char          line[512];
    unsigned long from, to;
    bool          is_it = false;
    long          found = -1;

    while (maps && found < 0 && fgets(line, sizeof line, maps)) {
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            is_it = (uintptr_t)address >= from && (uintptr_t)address < to;
        else if (is_it)
            (void)sscanf(line, "Rss: %ld kB", &found);
    }
    if (maps)
        fclose(maps);
    return found;
}

/* More than are kept in memory: written in no order, found by their calls one after the other and far apart. */
static void many_are_in_a_file(void **state)
{
    enum { MANY = 600000, STRIDE = 7919 };
    const char *path = scratch_path("many");
    struct made m = make(path);
    uint32_t    count;
    long        near_kib = -1;

    (void)state;
    for (uint64_t i = 0; i < MANY; i++) {
        uint32_t call = (uint32_t)(i * STRIDE % MANY);
        synth_device(m.s, m.worker, 1000 + (uint64_t)call * 10, call % 2 ? m.kernel : m.copy,
                     m.queue, 1 + call % 9, call + 1, 0);
    }
    synth_close(m.s, true);
    struct sonde_trace       *trace = scratch_open(path);
    const struct snd_devices *d;
    assert_int_equal(snd_trace_devices(trace, &d, NULL), SONDE_OK);
    assert_int_equal(d->count, MANY);
    assert_null(d->by_time); /* nobody has asked */
    assert_true(!d->pages.file || resident_kib(d->items) < 4096);
    for (uint32_t i = 0; i < 2 * MANY; i += i < MANY ? 1 : 97) {
        uint32_t                      call = i < MANY ? i : (uint32_t)((uint64_t)i * STRIDE % MANY);
        const struct snd_device_item *item = snd_devices_of(d, 0, call + 1, &count);
        assert_int_equal(count, 1);
        assert_int_equal(item->start_ns, 1000 + call * 10);
        assert_int_equal(item->duration_ns, 1 + call % 9);
        if (i == MANY - 1)
            near_kib = resident_kib(d->items);
        if (call % 1000 == 0)
            assert_int_equal(snd_devices_sum(trace, 0, call + 1), 1 + call % 9);
    }
    assert_null(snd_devices_of(d, 0, 0, &count));
    assert_null(snd_devices_of(d, 0, MANY + 1, &count));
    assert_null(snd_devices_of(d, 1, 1, &count));
    assert_true(!d->pages.file || near_kib < 6000); /* of 28 MB; pages may be of 2 MiB */
    assert_int_equal(snd_trace_devices_by_time(trace, &d, NULL), SONDE_OK);
    for (uint32_t i = 0; i < MANY; i++)
        assert_int_equal(d->items[d->by_time[i]].start_ns, 1000 + i * 10);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_is_found_by_its_call), cmocka_unit_test(it_is_not_the_thread_s),
        cmocka_unit_test(ranges_have_their_work),    cmocka_unit_test(short_events_mean_the_same),
        cmocka_unit_test(the_public_walk_shows_it),  cmocka_unit_test(many_are_in_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
