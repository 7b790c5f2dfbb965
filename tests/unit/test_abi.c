/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that were compiled with an older sonde/record.h run with this libsonde_record.so.1: every struct
 * that they share with it has each member where it was (docs/POLICY.md).
 *
 * A row that no longer compiles is a change of the soname, unless the struct begins with struct_size: such a one
 * may grow at its end, and gets a row more.
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
#include "sonde/probe.h"

#if UINTPTR_MAX == UINT64_MAX

#define SIZE(type, bytes) \
    _Static_assert(sizeof(struct type) == (bytes), "struct " #type " is " #bytes " bytes")
#define MEMBER(type, member, at, bytes)                             \
    _Static_assert(offsetof(struct type, member) == (at) &&         \
                       sizeof((struct type *)0)->member == (bytes), \
                   #type "." #member " is at " #at ", " #bytes " bytes")

/* clang-format off */
/* ---- written by the marks that are compiled into programs (lane.h, record.h) */
SIZE  (sonde_lane, 40);
MEMBER(sonde_lane, cur,     0, 8);
MEMBER(sonde_lane, end,     8, 8);
MEMBER(sonde_lane, leaf,   16, 8);
MEMBER(sonde_lane, epoch,  24, 4);
MEMBER(sonde_lane, busy,   28, 4);
MEMBER(sonde_lane, chunks, 32, 4);
MEMBER(sonde_lane, depth,  36, 4);

SIZE  (sonde_scope_, 8);
MEMBER(sonde_scope_, epoch, 0, 4);
MEMBER(sonde_scope_, depth, 4, 4);

SIZE  (sonde_epoch_page_, SONDE_PAGE_);
MEMBER(sonde_epoch_page_, value,    0, 4);
MEMBER(sonde_epoch_page_, noticing, 4, 4);
_Static_assert(_Alignof(struct sonde_epoch_page_) == SONDE_PAGE_, "alone on its page");

SIZE  (sonde_site, 16);
MEMBER(sonde_site, name,  0, 8);
MEMBER(sonde_site, bound, 8, 8);

/* ---- sonde_start() and what it calls back (record.h, error.h) */
SIZE  (sonde_options, 104);
MEMBER(sonde_options, struct_size,       0,  8);
MEMBER(sonde_options, path,              8,  8);
MEMBER(sonde_options, max_bytes,        16,  8);
MEMBER(sonde_options, limit,            24,  4);
MEMBER(sonde_options, chunk_bytes,      32,  8);
MEMBER(sonde_options, schedule,         40, 24);
MEMBER(sonde_options, on_cycle,         64,  8);
MEMBER(sonde_options, user,             72,  8);
MEMBER(sonde_options, rank,             80,  4);
MEMBER(sonde_options, world_size,       84,  4);
MEMBER(sonde_options, overwrite,        88,  1);
MEMBER(sonde_options, subject_pid,      92,  4);
MEMBER(sonde_options, subject_program,  96,  8);

SIZE  (sonde_schedule, 24);
MEMBER(sonde_schedule, wait,             0, 4);
MEMBER(sonde_schedule, warmup,           4, 4);
MEMBER(sonde_schedule, active,           8, 4);
MEMBER(sonde_schedule, repeat,          12, 4);
MEMBER(sonde_schedule, skip_first,      16, 4);
MEMBER(sonde_schedule, skip_first_wait, 20, 4);

SIZE  (sonde_cycle, 24);
MEMBER(sonde_cycle, path,   0, 8);
MEMBER(sonde_cycle, index,  8, 4);
MEMBER(sonde_cycle, step,  16, 8);

SIZE  (sonde_error, 8 + SONDE_MESSAGE_MAX);
MEMBER(sonde_error, status,   0, 4);
MEMBER(sonde_error, os_error, 4, 4);
MEMBER(sonde_error, message,  8, SONDE_MESSAGE_MAX);
_Static_assert(SONDE_MESSAGE_MAX == 512, "callers have room for this many bytes");

/* ---- what marks are given (record.h) */
SIZE  (sonde_tensor, 24);
MEMBER(sonde_tensor, kind,   0, 4);
MEMBER(sonde_tensor, dtype,  4, 4);
MEMBER(sonde_tensor, ndim,   8, 4);
MEMBER(sonde_tensor, dims,  16, 8);

SIZE  (sonde_device, 4);
MEMBER(sonde_device, type,  0, 2);
MEMBER(sonde_device, index, 2, 2);

/* ---- what probes are given room for and fill (probe.h) */
SIZE  (sonde_symbol, 16);
MEMBER(sonde_symbol, function,    0, 4);
MEMBER(sonde_symbol, file,        4, 4);
MEMBER(sonde_symbol, line,        8, 4);
MEMBER(sonde_symbol, first_line, 12, 4);

SIZE  (sonde_fact_member, 16);
MEMBER(sonde_fact_member, field, 0, 2);
MEMBER(sonde_fact_member, type,  2, 2);
MEMBER(sonde_fact_member, id,    4, 4);
MEMBER(sonde_fact_member, value, 8, 8);

SIZE  (sonde_op_call, 56);
MEMBER(sonde_op_call, name,          0, 4);
MEMBER(sonde_op_call, shapes,        4, 4);
MEMBER(sonde_op_call, strides,       8, 4);
MEMBER(sonde_op_call, arguments,    12, 4);
MEMBER(sonde_op_call, overload,     16, 4);
MEMBER(sonde_op_call, stack,        20, 4);
MEMBER(sonde_op_call, module,       24, 4);
MEMBER(sonde_op_call, scope,        28, 4);
MEMBER(sonde_op_call, has_sequence, 32, 4);
MEMBER(sonde_op_call, is_async,     36, 4);
MEMBER(sonde_op_call, keywords,     40, 4);
MEMBER(sonde_op_call, reserved,     44, 4);
MEMBER(sonde_op_call, fwd_thread,   48, 8);

SIZE  (sonde_thread_place, 24);
MEMBER(sonde_thread_place, pid,         0, 4);
MEMBER(sonde_thread_place, tid,         4, 4);
MEMBER(sonde_thread_place, parent_pid,  8, 4);
MEMBER(sonde_thread_place, reserved,   12, 4);
MEMBER(sonde_thread_place, start,      16, 8);

SIZE  (sonde_sample, 32);
MEMBER(sonde_sample, stack,       0, 4);
MEMBER(sonde_sample, thread,      4, 4);
MEMBER(sonde_sample, state,       8, 4);
MEMBER(sonde_sample, samples,    12, 4);
MEMBER(sonde_sample, covered_ns, 16, 8);
MEMBER(sonde_sample, at,         24, 8);

SIZE  (sonde_sample_run, 40);
MEMBER(sonde_sample_run, stack,    0, 4);
MEMBER(sonde_sample_run, thread,   4, 4);
MEMBER(sonde_sample_run, state,    8, 4);
MEMBER(sonde_sample_run, samples, 12, 4);
MEMBER(sonde_sample_run, begin,   16, 8);
MEMBER(sonde_sample_run, end,     24, 8);
MEMBER(sonde_sample_run, read,    32, 8);

SIZE  (sonde_function_call, 40);
MEMBER(sonde_function_call, frame,    0, 4);
MEMBER(sonde_function_call, thread,   4, 4);
MEMBER(sonde_function_call, start,    8, 8);
MEMBER(sonde_function_call, end,     16, 8);
MEMBER(sonde_function_call, id,      24, 4);
MEMBER(sonde_function_call, parent,  28, 4);
MEMBER(sonde_function_call, resumed, 32, 1);

SIZE  (sonde_queue, 16);
MEMBER(sonde_queue, device,   0, 4);
MEMBER(sonde_queue, context,  4, 4);
MEMBER(sonde_queue, stream,   8, 4);
MEMBER(sonde_queue, flags,   12, 4);

SIZE  (sonde_work, 64);
MEMBER(sonde_work, name,            0,  4);
MEMBER(sonde_work, kind,            4,  4);
MEMBER(sonde_work, grid,            8, 12);
MEMBER(sonde_work, block,          20, 12);
MEMBER(sonde_work, registers,      32,  4);
MEMBER(sonde_work, shared_static,  36,  4);
MEMBER(sonde_work, shared_dynamic, 40,  4);
MEMBER(sonde_work, copy_kind,      44,  4);
MEMBER(sonde_work, source_kind,    48,  4);
MEMBER(sonde_work, target_kind,    52,  4);
MEMBER(sonde_work, bytes,          56,  8);

SIZE  (sonde_device_run, 40);
MEMBER(sonde_device_run, start,        0, 8);
MEMBER(sonde_device_run, duration,     8, 8);
MEMBER(sonde_device_run, node,        16, 8);
MEMBER(sonde_device_run, work,        24, 4);
MEMBER(sonde_device_run, queue,       28, 4);
MEMBER(sonde_device_run, correlation, 32, 4);
/* clang-format on */

#endif

/* Whether this file has a row SIZE for the struct. */
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

/* The other tests of this file are the compiler's. This one: no struct of the headers is left out. */
static void every_struct_has_its_rows(void **state)
{
    static const char *const headers[] = { "error.h", "lane.h", "probe.h", "record.h" };
    const char              *root = getenv("SONDE_TEST_DATA");
    int                      found = 0;

    (void)state;
    if (!root)
        skip();
    char *rows = read_file(root, "tests/unit/test_abi.c");
    for (size_t i = 0; i < sizeof headers / sizeof headers[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "include/sonde/%s", headers[i]);
        char *text = read_file(root, name);
        for (const char *at = text; (at = strstr(at, "\nstruct sonde_")); at++) {
            const char *begin = at + strlen("\nstruct ");
            size_t      length = strspn(begin, "abcdefghijklmnopqrstuvwxyz0123456789_");
            if (strncmp(begin + length, " {", 2) != 0)
                continue;
            if (!has_size(rows, begin, length))
                fail_msg("struct %.*s of %s has no rows in test_abi.c", (int)length, begin, name);
            found++;
        }
        free(text);
    }
    assert_true(found >= 17);
    free(rows);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(every_struct_has_its_rows) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
