/* SPDX-License-Identifier: Apache-2.0 */
/* record/clock.c: which clock is trusted, and that its pairs are of one moment. */
#include "record/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include "base/system/clock_ns.h"
#include "recorded.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* What the kernel's list of usable clocks has; NULL: there is no such file. */
static const char *listed;
enum { OWN_FD = 9999 };

int     __wrap_open64(const char *path, int flags, ...);
int     __real_open64(const char *path, int flags, ...);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __real_read(int fd, void *bytes, size_t size);

int __wrap_open64(const char *path, int flags, ...)
{
    va_list more;

    if (!strstr(path, "available_clocksource")) {
        va_start(more, flags);
        int mode = va_arg(more, int);
        va_end(more);
        return __real_open64(path, flags, mode);
    }
    errno = ENOENT;
    return listed ? OWN_FD : -1;
}

ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    if (fd != OWN_FD)
        return __real_read(fd, bytes, size);
    size_t length = strlen(listed) < size ? strlen(listed) : size;
    memcpy(bytes, listed, length);
    return (ssize_t)length;
}

static enum snd_clock_kind kind_where(const char *kernel_lists)
{
    listed = kernel_lists;
    snd_clock_init();
    return snd_clock_kind();
}

/* Whether all cores' counters are in step, only the kernel knows. */
static void the_counter_is_trusted_where_the_kernel_lists_it(void **state)
{
    unsigned a, b, c, d;
    bool     even = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1u << 8);

    (void)state;
    assert_int_equal(kind_where("tsc hpet acpi_pm \n"), even ? SND_CLOCK_TSC : SND_CLOCK_MONOTONIC);
    assert_int_equal(kind_where("hpet acpi_pm \n"), SND_CLOCK_MONOTONIC);
    assert_int_equal(kind_where(""), SND_CLOCK_MONOTONIC);
    assert_int_equal(kind_where(NULL), SND_CLOCK_MONOTONIC);
    /* then a tick is a nanosecond */
    uint64_t before = snd_monotonic_ns(), now = sonde_clock(), after = snd_monotonic_ns();
    assert_true(before <= now && now <= after);
}
#endif

static void a_pair_is_of_one_moment(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        uint64_t              real = snd_clock_ns(CLOCK_REALTIME), mono = snd_monotonic_ns();
        uint64_t              raw = sonde_clock();
        struct snd_clock_pair pair = snd_clock_pair_now();
        assert_in_range(pair.raw, raw, sonde_clock());
        assert_in_range(pair.mono_ns, mono, snd_monotonic_ns());
        assert_in_range(pair.real_ns, real, snd_clock_ns(CLOCK_REALTIME));
    }
}

static void the_early_pair_is_that_of_the_start(void **state)
{
    uint64_t before = snd_monotonic_ns();

    (void)state;
    snd_clock_init();
    uint64_t after = snd_monotonic_ns();
    usleep(1000);
    assert_in_range(snd_clock_early().mono_ns, before, after);
}

/* Of one range, in 1/256 of a tick: some ten to some ten thousand of them, on any machine. */
static void a_range_costs_some_ticks(void **state)
{
    (void)state;
    assert_in_range(snd_clock_range_cost(), 256, 100000 * 256);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_is_of_one_moment),
        cmocka_unit_test(the_early_pair_is_that_of_the_start),
        cmocka_unit_test(a_range_costs_some_ticks),
#if defined(__x86_64__)
        cmocka_unit_test(the_counter_is_trusted_where_the_kernel_lists_it),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
