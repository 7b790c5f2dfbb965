/* SPDX-License-Identifier: Apache-2.0 */
/* model/network/roof.c: what the machine can do at most, measured. */
#include <sched.h>

#include "scratch.h"

static void a_machine_has_a_roof(void **state)
{
    struct sonde_roof roof;
    cpu_set_t         set;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof set, &set), 0);
    assert_int_equal(sonde_roof_measure(&roof, NULL), SONDE_OK);
    assert_int_equal(roof.threads, CPU_COUNT(&set));
    /* Slower than any machine of this century, even under valgrind or qemu, and faster than any. */
    assert_true(roof.flops_per_second > 1e6 && roof.flops_per_second < 1e16);
    assert_true(roof.bytes_per_second > 1e6 && roof.bytes_per_second < 1e15);
}

/* As metadata has it, and read back by the view. */
static void a_roof_as_text(void **state)
{
    struct sonde_roof roof = { .flops_per_second = 123456789012.0,
                               .bytes_per_second = 2e10,
                               .threads = 7 };
    char              text[SONDE_ROOF_TEXT];

    (void)state;
    sonde_roof_text(&roof, text);
    assert_string_equal(
        text,
        "{\"flops_per_second\": 123456789012, \"bytes_per_second\": 20000000000, \"threads\": 7}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_machine_has_a_roof),
        cmocka_unit_test(a_roof_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
