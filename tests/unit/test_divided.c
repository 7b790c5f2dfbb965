/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model/ranges/divided.c, read/walk/shares.c: what several threads read and add up is what one does, to the bit.
 *
 * Threads are for large traces. These are small ones of every kind, read by as many as are told.
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "base/count_of.h"
#include "cases.h"
#include "read/reader.h"
#include "read/walk/kinds.h"
#include "scratch.h"
#include "snd_config.h"
#include "sonde/export.h"
#include "sonde/pack.h"
#include "turns.h"

static const uint32_t crews[] = { 2, 3, 16 };

/* ------------------------------------------------------------------- comparing */

static const struct sonde_averages_options asked[] = {
    { .struct_size = sizeof asked[0] },
    { .struct_size = sizeof asked[0], .groups = SONDE_GROUP_THREAD },
    { .struct_size = sizeof asked[0],
      .groups = SONDE_GROUP_PROCESS | SONDE_GROUP_SHAPE | SONDE_GROUP_MODULE |
                SONDE_GROUP_OVERLOAD },
    { .struct_size = sizeof asked[0], .top_level = true },
    { .struct_size = sizeof asked[0], .groups = SONDE_GROUP_STACK, .flops = SONDE_FLOPS_TORCH },
};

static bool is_text(struct sonde_text a, struct sonde_text b)
{
    return a.length == b.length && memcmp(a.bytes, b.bytes, a.length) == 0;
}

static bool is_row(const struct sonde_average *a, const struct sonde_average *b)
{
    return is_text(a->name, b->name) && is_text(a->shapes, b->shapes) &&
           is_text(a->stack, b->stack) && is_text(a->module, b->module) &&
           is_text(a->overload, b->overload) && a->process == b->process &&
           a->thread == b->thread && a->count == b->count && a->total_ns == b->total_ns &&
           a->self_ns == b->self_ns && a->min_ns == b->min_ns && a->max_ns == b->max_ns &&
           a->cpu_bytes == b->cpu_bytes && a->self_cpu_bytes == b->self_cpu_bytes &&
           a->device_bytes == b->device_bytes && a->self_device_bytes == b->self_device_bytes &&
           a->device_ns == b->device_ns && a->self_device_ns == b->self_device_ns &&
           memcmp(&a->flops, &b->flops, sizeof a->flops) == 0 &&
           memcmp(&a->macs, &b->macs, sizeof a->macs) == 0 &&
           memcmp(&a->moved_bytes, &b->moved_bytes, sizeof a->moved_bytes) == 0 &&
           a->scope == b->scope && a->is_async == b->is_async && a->has_parent == b->has_parent &&
           a->is_user_annotation == b->is_user_annotation && a->on_device == b->on_device &&
           a->uses_gpu == b->uses_gpu;
}

static bool are_totals(const struct sonde_averages_totals *a, const struct sonde_averages_totals *b)
{
    return a->self_ns == b->self_ns && a->device_ns == b->device_ns && a->uses_gpu == b->uses_gpu &&
           a->has_memory == b->has_memory && a->has_device_memory == b->has_device_memory &&
           a->has_shapes == b->has_shapes && a->has_stacks == b->has_stacks &&
           a->has_flops == b->has_flops && a->has_overloads == b->has_overloads &&
           a->unmatched_frees == b->unmatched_frees && a->events == b->events &&
           a->ranges == b->ranges;
}

static struct sonde_averages *read_averages(struct sonde_trace                  *trace,
                                            const struct sonde_averages_options *options)
{
    struct sonde_averages *averages;

    assert_int_equal(sonde_averages_new(trace, options, &averages, NULL), SONDE_OK);
    return averages;
}

static bool is_same(const struct sonde_averages *a, const struct sonde_averages *b)
{
    bool same = are_totals(sonde_averages_totals(a), sonde_averages_totals(b)) &&
                sonde_averages_count(a) == sonde_averages_count(b);

    for (size_t i = 0; same && i < sonde_averages_count(a); i++) {
        struct sonde_average x = sonde_averages_get(a, i), y = sonde_averages_get(b, i);
        same = is_row(&x, &y);
    }
    return same;
}

static bool is_view(struct sonde_trace *one, struct sonde_trace *many, const char *view)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         texts[2] = { { 0 }, { 0 } };

    options.view = view;
    options.format = SONDE_REPORT_JSON;
    for (size_t i = 0; i < 2; i++) {
        struct sonde_sink sink = sonde_sink_buffer(&texts[i]);
        assert_int_equal(sonde_report(i == 0 ? one : many, &options, &sink, NULL), SONDE_OK);
    }
    bool same = texts[0].length == texts[1].length &&
                memcmp(texts[0].bytes, texts[1].bytes, texts[0].length) == 0;
    sonde_buffer_release(&texts[0]);
    sonde_buffer_release(&texts[1]);
    return same;
}

static bool are_kinds(struct sonde_trace *one, struct sonde_trace *many)
{
    const struct snd_kinds *a, *b;

    assert_int_equal(snd_trace_kinds(one, &a, NULL), SONDE_OK);
    assert_int_equal(snd_trace_kinds(many, &b, NULL), SONDE_OK);
    return memcmp(a, b, offsetof(struct snd_kinds, beside)) == 0 &&
           memcmp(a->beside, b->beside,
                  (one->thread_count + one->process_count) * sizeof *a->beside) == 0;
}

/* Compares all that is read of the trace at `path`; returns how many walks several threads made. */
static uint32_t compare(const char *what, const char *path)
{
    uint32_t divided = 0;

    for (size_t k = 0; k < SND_COUNT_OF(crews); k++) {
        struct sonde_trace *one = scratch_open(path), *many = scratch_open(path);
        one->workers = 1;
        many->workers = crews[k];
        if (!are_kinds(one, many))
            fail_msg("%s: other kinds by %u threads", what, (unsigned)crews[k]);
        for (size_t i = 0; i < SND_COUNT_OF(asked); i++) {
            struct sonde_averages *a = read_averages(one, &asked[i]);
            struct sonde_averages *b = read_averages(many, &asked[i]);
            if (!is_same(a, b))
                fail_msg("%s: other averages %zu by %u threads", what, i, (unsigned)crews[k]);
            sonde_averages_free(a);
            sonde_averages_free(b);
        }
        if (!is_view(one, many, "ops") || !is_view(one, many, "threads") ||
            !is_view(one, many, "summary"))
            fail_msg("%s: another report by %u threads", what, (unsigned)crews[k]);
        assert_int_equal(one->walks, many->walks);
        assert_int_equal(one->divided, 0);
        divided += many->divided;
        sonde_trace_close(one);
        sonde_trace_close(many);
    }
    return divided;
}

/* ----------------------------------------------------------------- traces of gen */

static void remove_trace(void)
{
    char command[300];

    snprintf(command, sizeof command, "rm -rf '%s'", scratch_path("t"));
    assert_int_equal(system(command), 0);
}

static const char *const all_cases[] = {
#define CASE(name, summary) #name,
#include "cases.def"
#undef CASE
};

static void every_case_is_the_same(void **state)
{
    uint32_t divided = 0;

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(all_cases); i++) {
        if (turns_leave_out(i, 2) || strcmp(all_cases[i], "gpu_large") == 0)
            continue;
        remove_trace();
        assert_true(make_case(all_cases[i], scratch_path("t"), USUAL_N));
        divided += compare(all_cases[i], scratch_path("t"));
    }
    assert_true(divided > 20);
}

/* ---------------------------------------------------------------- drawn traces */

#define THREADS 9u

/* A number below `below`, the same each time. */
static uint64_t pick(uint64_t *chance, uint64_t below)
{
    uint64_t mixed = *chance += 0x9e3779b97f4a7c15u;

    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9u;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111ebu;
    return (mixed ^ mixed >> 31) % below;
}

/* What is drawn of a trace. */
struct drawn {
    uint32_t names[6], calls[4], threads[THREADS], depth[THREADS];
    uint64_t now[THREADS];
    uint32_t stack;
};

static void draw_event(struct synth *s, struct drawn *d, uint64_t *chance, uint32_t t)
{
    uint32_t thread = d->threads[t], name = d->names[pick(chance, 6)];
    uint64_t now = d->now[t] += pick(chance, 50);

    switch (pick(chance, 20)) {
    case 0 ... 3:
        synth_begin(s, thread, now, name, 0);
        d->depth[t]++;
        break;
    case 4 ... 7:
        if (d->depth[t] > 0)
            d->depth[t]--;
        synth_end(s, thread, now); /* some were not begun */
        break;
    case 8 ... 10:
        synth_span(s, thread, now, name, 1 + pick(chance, 40));
        d->now[t] += 41;
        break;
    case 11 ... 14:
        synth_call_range(s, thread, now, d->calls[pick(chance, 4)], 1 + pick(chance, 40));
        d->now[t] += 41;
        break;
    case 15:
        synth_call_range(s, thread, now, d->calls[pick(chance, 4)], 0);
        d->depth[t]++;
        break;
    case 16:
        synth_sample(s, thread, now, d->stack, 1 << 8 | 3, d->threads[pick(chance, THREADS)],
                     (uint32_t)pick(chance, 1000));
        break;
    case 17:
        synth_step(s, thread, now, pick(chance, 30));
        break;
    case 18:
        if (pick(chance, 10) == 0)
            synth_gap(s, thread, now, (uint32_t)pick(chance, 9), (uint32_t)pick(chance, 3));
        else
            synth_mark(s, thread, now, name, 0);
        break;
    default:
        if (pick(chance, 8) == 0)
            synth_seal(s, thread);
        else if (d->depth[t] > 0)
            synth_attr(s, thread, SND_ATTR_FLOPS, pick(chance, 1000));
    }
}

/* Nine threads, of which some share a chunk; left open, or closed. */
static void draw_trace(const char *path, uint64_t number)
{
    static const char *const name[] = { "a", "b", "aten::mm", "aten::add", "ProfilerStep#3", "c" };
    uint64_t                 chance = number;
    struct synth            *s = synth_new(path, &(struct synth_options){ .grain = 4096 });
    struct drawn             d = { 0 };

    for (uint32_t i = 0; i < 6; i++)
        d.names[i] = synth_string(s, name[i]);
    for (uint32_t i = 0; i < 4; i++)
        d.calls[i] = synth_call(s, &(struct snd_call_record){
                                       .name = d.names[i + 1],
                                       .shapes = i < 2 ? synth_shapes(s, "8,16;16,4") : 0,
                                       .scope = (uint8_t)(i == 3 ? SONDE_SCOPE_USER + 1 : 1) });
    d.stack = synth_stack(s, 0, synth_frame(s, d.names[0], d.names[1], 1));
    for (uint32_t i = 0; i < THREADS; i++)
        d.threads[i] = synth_thread(s, NULL, 0);
    for (uint32_t i = 0; i < 6000; i++) {
        uint32_t t = (uint32_t)pick(&chance, number % 2 ? THREADS : THREADS - 2);
        if (i == 3000 && number % 2) { /* the last one goes on in the first one's chunk */
            synth_share(s, d.threads[0], d.threads[THREADS - 1]);
            d.now[THREADS - 1] = d.now[0];
        }
        if (!(i >= 3000 && number % 2 && t == 0))
            draw_event(s, &d, &chance, t);
    }
    if (number % 5 == 0) /* a schedule's warm-up is not shown */
        synth_header(s)->valid_from = synth_raw_clock(s, 5000);
    synth_close(s, number % 4 != 0);
}

/* Changes some bytes behind the first chunks. */
static void damage(const char *path, uint64_t number)
{
    struct stat st;
    uint64_t    chance = number;
    int         fd = open(path, O_RDWR | O_CLOEXEC);

    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &st), 0);
    for (uint32_t i = 0; i < 6; i++) {
        uint64_t word = pick(&chance, UINT32_MAX) << pick(&chance, 32);
        off_t    at = (off_t)(16384 + pick(&chance, (uint64_t)st.st_size - 16400) / 8 * 8);
        assert_int_equal(pwrite(fd, &word, sizeof word, at), sizeof word);
    }
    close(fd);
}

static void drawn_traces_are_the_same(void **state)
{
    uint32_t divided = 0, packed = 0;

    (void)state;
    for (uint64_t number = 1; number <= 24; number++) {
        char what[32];
        if (turns_leave_out(number, 2))
            continue;
        snprintf(what, sizeof what, "drawn %u", (unsigned)number);
        remove_trace();
        draw_trace(scratch_path("t"), number);
        divided += compare(what, scratch_path("t"));
        if (SND_HAVE_ZSTD && number % 4 != 0) {
            assert_int_equal(sonde_pack(scratch_path("t"), scratch_path("p"), 3, NULL), SONDE_OK);
            packed += compare(what, scratch_path("p"));
        }
        damage(scratch_path("t"), number);
        divided += compare(what, scratch_path("t"));
    }
    assert_true(divided > 20);
    assert_true(packed > 20 || turns_are_fewer() || !SND_HAVE_ZSTD);
}

/* ------------------------------------------------------ what cannot be added up */

/* Two threads with FLOPs as given, three times each; whether reading is divided. */
static bool divides(uint64_t flops)
{
    remove_trace();
    struct synth *s = synth_new(scratch_path("t"), NULL);
    for (uint32_t t = 1; t <= 2; t++) {
        synth_thread(s, NULL, 0);
        for (uint32_t i = 0; i < 3; i++) {
            synth_begin(s, t, 100 * i + t, synth_string(s, "mine"), 0);
            synth_attr(s, t, SND_ATTR_FLOPS, flops + t * i);
            synth_end(s, t, 100 * i + 50);
        }
    }
    synth_close(s, true);
    compare("flops", scratch_path("t"));
    struct sonde_trace *trace = scratch_open(scratch_path("t"));
    trace->workers = 2;
    sonde_averages_free(read_averages(trace, &asked[0]));
    bool divided = trace->divided > 0;
    sonde_trace_close(trace);
    return divided;
}

static void sums_that_are_rounded_are_made_in_order(void **state)
{
    (void)state;
    assert_true(divides(1000));
    assert_true(divides(((uint64_t)1 << 46) + 1));
    assert_false(divides(((uint64_t)1 << 53) + 1));
    assert_false(divides(UINT64_MAX - 9));
}

/* A thread's chunk has a second thread's events, of which there were none when it was looked which share chunks. */
static void a_file_may_grow(void **state)
{
    const struct snd_kinds *kinds;
    uint64_t                more[3];
    size_t                  size;

    (void)state;
    remove_trace();
    struct synth *s = synth_new(scratch_path("t"), &(struct synth_options){ .grain = 4096 });
    uint32_t      one = synth_thread(s, NULL, 0), two = synth_thread(s, NULL, 0);
    uint32_t      name = synth_string(s, "a"), marked = synth_string(s, "here");
    for (uint32_t i = 0; i < 20; i++) {
        synth_span(s, one, 100 * i + 10, name, 5);
        synth_span(s, two, 100 * i + 20, name, 6);
    }
    synth_mark(s, one, 5000, marked, 0);
    synth_close(s, false);
    uint8_t            *bytes = scratch_load(scratch_path("t"), &size);
    struct sonde_trace *trace = scratch_open(scratch_path("t"));
    trace->workers = 2;
    assert_int_equal(snd_trace_kinds(trace, &kinds, NULL), SONDE_OK);
    assert_true(kinds->beside[0] != kinds->beside[1]);
    size_t at = 0;
    for (size_t i = 0; i + 16 <= size; i += 8) { /* the mark, after which the chunk is empty */
        uint64_t words[2];
        memcpy(words, bytes + i, sizeof words);
        if (SND_EVENT_KIND(words[0]) == SND_EV_MARK && words[1] == marked)
            at = i;
    }
    assert_true(at > 4096);
    memcpy(more, bytes + at, 16);
    int            fd = open(scratch_path("t"), O_WRONLY | O_CLOEXEC);
    const uint64_t thread[2] = { (more[0] & ~(uint64_t)0xff) | SND_EV_THREAD, two };
    const uint64_t mark[2] = { more[0] + (100 << 8), more[1] };
    assert_int_equal(pwrite(fd, thread, 16, (off_t)at + 16), 16);
    assert_int_equal(pwrite(fd, mark, 16, (off_t)at + 32), 16);
    close(fd);
    struct sonde_averages *grown = read_averages(trace, &asked[1]);
    assert_int_equal(trace->divided, 0);
    assert_int_equal(trace->walks, 1);
    struct sonde_trace *again = scratch_open(scratch_path("t"));
    again->workers = 1;
    struct sonde_averages *expected = read_averages(again, &asked[1]);
    assert_true(is_same(grown, expected));
    sonde_averages_free(grown);
    sonde_averages_free(expected);
    sonde_trace_close(trace);
    sonde_trace_close(again);
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_is_the_same),
        cmocka_unit_test(drawn_traces_are_the_same),
        cmocka_unit_test(sums_that_are_rounded_are_made_in_order),
        cmocka_unit_test(a_file_may_grow),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
