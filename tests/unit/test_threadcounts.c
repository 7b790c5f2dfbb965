/* SPDX-License-Identifier: Apache-2.0 */
/* record/thread/thread_counts.c: which counters a thread is asked for, and what ranges have of them. */
#include <sys/mman.h>

#include "model/counters/range_counters.h"
#include "read/said/trace_metadata.h"
#include "recorded.h"
#include "sonde/probe.h"
#include "turns.h"

enum { PAGES = 300 };

/* A sanitizer touches memory of its own with each page, and an emulator reads clocks slowly. */
static uint64_t most(uint64_t amount)
{
    return turns_are_slow() ? 8 * amount : amount;
}

/* Eight are taken of those that sonde knows, in their order. */
static const char asked[] = "task-clock,nonsense,minor-faults,major-faults,,context-switches,"
                            "page-faults,cpu-clock,cs,faults,minor-faults";
static const char taken[] = "task-clock,minor-faults,major-faults,context-switches,page-faults,"
                            "cpu-clock,cs,faults";
enum { CLOCK, MINOR, MAJOR, SWITCHES, FAULTS, OTHER_CLOCK, OTHER_SWITCHES, OTHER_FAULTS, TAKEN };

static void touch_pages(void)
{
    const size_t   size = (size_t)PAGES * 4096;
    volatile char *pages = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                                0);

    assert_ptr_not_equal(pages, MAP_FAILED);
    madvise((void *)pages, size, MADV_NOHUGEPAGE);
    for (size_t i = 0; i < size; i += 4096)
        pages[i] = 1;
    munmap((void *)pages, size);
}

static const struct snd_range_counts_row *find(const struct snd_range_counts *counts,
                                               const char                    *name)
{
    for (uint32_t i = 0; i < counts->count; i++)
        if (counts->rows[i].name.length == strlen(name) &&
            memcmp(counts->rows[i].name.bytes, name, strlen(name)) == 0)
            return &counts->rows[i];
    fail_msg("no row %s", name);
    return NULL;
}

static void ranges_have_what_their_thread_did(void **state)
{
    struct sonde_options    options = recorded_options("ranges.sonde");
    struct snd_range_counts counts;
    struct sonde_text       names;

    (void)state;
    recorded_start(&options);
    touch_pages(); /* before the first range: no range's */
    for (int i = 0; i < 2; i++) {
        sonde_begin("outer");
        sonde_begin("touches");
        touch_pages();
        sonde_end();
        sonde_begin("sleeps");
        usleep(2000);
        sonde_end();
        touch_pages();
        sonde_end();
    }
    recorded_stop();
    struct sonde_trace *trace = recorded_open("ranges.sonde");
    assert_true(snd_meta_find(trace, 0, SND_META_COUNTERS_RANGES, &names));
    assert_int_equal(names.length, strlen(taken));
    assert_memory_equal(names.bytes, taken, names.length);
    assert_int_equal(snd_range_counts_make(trace, &counts, NULL), SONDE_OK);
    const struct snd_range_counts_row *outer = find(&counts, "outer"),
                                      *touches = find(&counts, "touches"),
                                      *sleeps = find(&counts, "sleeps");
    assert_in_range(touches->total[MINOR], 2 * PAGES, most(3 * PAGES));
    assert_in_range(touches->total[FAULTS], touches->total[MINOR], most(3 * PAGES));
    assert_int_equal(touches->total[OTHER_FAULTS], touches->total[FAULTS]);
    assert_int_equal(touches->self[FAULTS], touches->total[FAULTS]);
    assert_int_equal(touches->total[FAULTS], touches->total[MINOR] + touches->total[MAJOR]);
    assert_in_range(sleeps->total[MINOR], 0, PAGES);
    assert_in_range(sleeps->total[SWITCHES], 2, 1000);
    assert_int_equal(sleeps->total[OTHER_SWITCHES], sleeps->total[SWITCHES]);
    assert_in_range(sleeps->total[CLOCK], 1000, sleeps->total_ns - 2000000);
    assert_in_range(touches->total[CLOCK], 1000, touches->total_ns + most(100000));
    assert_in_range(outer->total[MINOR], 4 * PAGES, most(6 * PAGES));
    assert_in_range(outer->self[MINOR], 2 * PAGES, most(3 * PAGES));
    snd_range_counts_release(&counts);
    sonde_trace_close(trace);
}

/* The second file of a process says so as well, and its first range does not have what came before it. */
static void each_file_begins_anew(void **state)
{
    struct sonde_options    options = recorded_options("again.sonde");
    struct snd_range_counts counts;

    (void)state;
    touch_pages();
    recorded_start(&options);
    sonde_begin("nothing");
    sonde_end();
    recorded_stop();
    struct sonde_trace *trace = recorded_open("again.sonde");
    assert_int_equal(snd_range_counts_make(trace, &counts, NULL), SONDE_OK);
    assert_int_equal(counts.names.count, TAKEN);
    assert_in_range(find(&counts, "nothing")->total[MINOR], 0, PAGES / 2);
    snd_range_counts_release(&counts);
    sonde_trace_close(trace);
}

/* What probes of functions read themselves. */
static void a_probe_reads_its_threads_counters(void **state)
{
    struct sonde_options options = recorded_options("functions.sonde");
    uint64_t             before[SONDE_COUNTERS_MOST], after[SONDE_COUNTERS_MOST];
    struct sonde_text    names;

    (void)state;
    assert_int_equal(sonde_function_counters(), TAKEN);
    recorded_start(&options);
    sonde_mark("attaches the thread");
    assert_int_equal(sonde_thread_counters(before), TAKEN);
    touch_pages();
    assert_int_equal(sonde_thread_counters(after), TAKEN);
    assert_in_range(after[MINOR] - before[MINOR], PAGES, most(2 * PAGES));
    assert_int_equal(after[FAULTS], after[MINOR] + after[MAJOR]);
    assert_true(after[CLOCK] > before[CLOCK] && before[CLOCK] > 0);
    assert_in_range(after[OTHER_CLOCK], after[CLOCK] - 1000000, after[CLOCK] + 1000000);
    recorded_stop();
    struct sonde_trace *trace = recorded_open("functions.sonde");
    assert_true(snd_meta_find(trace, 0, SND_META_COUNTERS_FUNCTIONS, &names));
    assert_int_equal(names.length, strlen(taken));
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_have_what_their_thread_did),
        cmocka_unit_test(each_file_begins_anew),
        cmocka_unit_test(a_probe_reads_its_threads_counters),
    };

    setenv("SONDE_RANGE_COUNTERS", asked, 1);
    setenv("SONDE_FUNCTION_COUNTERS", asked, 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
