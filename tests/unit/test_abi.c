/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that were compiled with an older header run with this library: every struct that they share with it
 * has each member where it was (docs/POLICY.md).
 *
 * A row that no longer compiles is a change of the soname, unless the struct begins with struct_size: such a one
 * may grow at its end, and gets a row more (tools/abi renew).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sonde/record.h"
#include "sonde/sonde.h"

#if UINTPTR_MAX == UINT64_MAX

#define SIZE(type, bytes) \
    _Static_assert(sizeof(struct type) == (bytes), "struct " #type " is " #bytes " bytes");
#define MEMBER(type, member, at, bytes)                             \
    _Static_assert(offsetof(struct type, member) == (at) &&         \
                       sizeof((struct type *)0)->member == (bytes), \
                   #type "." #member " is at " #at ", " #bytes " bytes");

/* clang-format off */
#include "public_structs.def"

/* ---- what the marks that are compiled into programs have of their own (lane.h) */
SIZE  (sonde_scope_, 8)
MEMBER(sonde_scope_, epoch, 0, 4)
MEMBER(sonde_scope_, depth, 4, 4)

SIZE  (sonde_epoch_page, SONDE_PAGE_)
MEMBER(sonde_epoch_page, value,    0, 4)
MEMBER(sonde_epoch_page, noticing, 4, 4)
_Static_assert(_Alignof(struct sonde_epoch_page) == SONDE_PAGE_, "alone on its page");
_Static_assert(SONDE_MESSAGE_MAX == 512, "callers have room for this many bytes");
/* clang-format on */

#endif

/* Whether there is a row SIZE for the struct. */
static bool has_size(const char *rows, const char *name, size_t length)
{
    for (const char *at = rows; (at = strstr(at, "(sonde_")); at++)
        if (strncmp(at + 1, name, length) == 0 && at[1 + length] == ',' &&
            strncmp(at - 6, "SIZE  ", 6) == 0)
            return true;
    return false;
}

static char *read_file(const char *root, const char *name)
{
    char  path[4096];
    char *text = calloc(1, 1 << 20);

    snprintf(path, sizeof path, "%s/../../%s", root, name);
    FILE *file = fopen(path, "r");
    if (!text || !file)
        fail_msg("%s: cannot be read", path);
    assert_true(fread(text, 1, (1 << 20) - 1, file) > 0);
    fclose(file);
    return text;
}

/* How many structs of a header there are; each has its rows, in the list or, if it is the header's own, here. */
static int check_header(const char *root, const char *header, const char *rows, const char *own)
{
    char name[64];
    int  found = 0;

    snprintf(name, sizeof name, "include/sonde/%s", header);
    char *text = read_file(root, name);
    for (const char *at = text; (at = strstr(at, "\nstruct sonde_")); at++) {
        const char *begin = at + strlen("\nstruct ");
        size_t      length = strspn(begin, "abcdefghijklmnopqrstuvwxyz0123456789_");
        if (strncmp(begin + length, " {", 2) != 0)
            continue;
        if (!has_size(rows, begin, length) && !has_size(own, begin, length))
            fail_msg("struct %.*s of %s has no rows: tools/abi renew", (int)length, begin, name);
        found++;
    }
    free(text);
    return found;
}

/* The other tests of this file are the compiler's. This one: no struct of the headers is left out. */
static void every_struct_has_its_rows(void **state)
{
    static const char *const headers[] = {
        "bench.h",   "error.h",  "export.h", "functions.h",   "graph.h", "lane.h",
        "layers.h",  "memory.h", "model.h",  "pack.h",        "probe.h", "record.h",
        "samples.h", "sink.h",   "tables.h", "tensorlines.h", "trace.h",
    };
    const char *root = getenv("SONDE_TEST_DATA");
    int         found = 0;

    (void)state;
    if (!root)
        skip();
    char *rows = read_file(root, "tests/unit/public_structs.def");
    char *own = read_file(root, "tests/unit/test_abi.c");
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++)
        found += check_header(root, headers[i], rows, own);
    assert_true(found >= 90);
    free(rows);
    free(own);
}

/* Structs that callers fill say how large they are, and can grow. */
static void options_begin_with_their_size(void **state)
{
    (void)state;
#define FIRST(type) assert_int_equal(offsetof(struct type, struct_size), 0)
    FIRST(sonde_options);
    FIRST(sonde_report_options);
    FIRST(sonde_diff_options);
    FIRST(sonde_export_options);
    FIRST(sonde_averages_options);
    FIRST(sonde_events_options);
    FIRST(sonde_samples_options);
    FIRST(sonde_cut);
    FIRST(sonde_results_head);
    FIRST(sonde_op_call);
    FIRST(sonde_process_thread);
    FIRST(sonde_sample);
    FIRST(sonde_sample_run);
    FIRST(sonde_function_call);
    FIRST(sonde_queue);
    FIRST(sonde_work);
    FIRST(sonde_device_run);
#undef FIRST
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_struct_has_its_rows),
                                        cmocka_unit_test(options_begin_with_their_size) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
