/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/unit/recorded.h - record something, read it back: what the recorder's tests share.
 */
#ifndef SND_TESTS_RECORDED_H
#define SND_TESTS_RECORDED_H

#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "sonde/model.h"
#include "sonde/record.h"
#include "sonde/trace.h"

/* A folder for the test's files, removed at exit. */
static char recorded_folder[1024]; /* TMPDIR may be any */

static inline void recorded_remove(void)
{
    DIR           *folder = opendir(recorded_folder);
    struct dirent *entry;

    while (folder && (entry = readdir(folder))) {
        char path[PATH_MAX];
        snprintf(path, sizeof path, "%s/%s", recorded_folder, entry->d_name);
        unlink(path);
    }
    if (folder)
        closedir(folder);
    rmdir(recorded_folder);
}

static inline const char *recorded_path(const char *name)
{
    static char path[PATH_MAX];

    if (!recorded_folder[0]) {
        const char *tmp = getenv("TMPDIR");
        snprintf(recorded_folder, sizeof recorded_folder, "%s/sonde-XXXXXX",
                 tmp && *tmp ? tmp : "/tmp");
        assert_non_null(mkdtemp(recorded_folder));
        atexit(recorded_remove);
    }
    snprintf(path, sizeof path, "%s/%s", recorded_folder, name);
    return path;
}

static inline void skip_where_forks_fail(void)
{
    if (getenv("SONDE_TEST_NO_FORK"))
        skip(); /* qemu-user and TSan die when the forked child of a program with threads starts one */
}

static inline struct sonde_options recorded_options(const char *name)
{
    struct sonde_options options = SONDE_OPTIONS_INIT;

    options.path = recorded_path(name);
    return options;
}

static inline void recorded_start(const struct sonde_options *options)
{
    struct sonde_error err = { 0 };

    if (sonde_start(options, &err) != SONDE_OK)
        fail_msg("sonde_start: %s", err.message);
}

static inline void recorded_stop(void)
{
    struct sonde_error err = { 0 };

    if (sonde_stop(&err) != SONDE_OK)
        fail_msg("sonde_stop: %s", err.message);
}

static inline struct sonde_trace *recorded_open(const char *name)
{
    struct sonde_trace *trace;
    struct sonde_error  err = { 0 };

    if (sonde_trace_open(recorded_path(name), &trace, &err) != SONDE_OK)
        fail_msg("sonde_trace_open: %s", err.message);
    return trace;
}

/* Count of a ledger key, 0 when it is not listed. */
static inline uint64_t recorded_ledger(struct sonde_trace *trace, const char *key)
{
    struct sonde_summary *summary;
    uint64_t              count = 0;

    assert_int_equal(sonde_summary_new(trace, &summary, NULL), SONDE_OK);
    for (size_t i = 0; i < sonde_summary_ledger_count(summary); i++)
        if (strcmp(sonde_summary_ledger(summary, i)->key, key) == 0)
            count = sonde_summary_ledger(summary, i)->count;
    sonde_summary_free(summary);
    return count;
}

/* Nothing was lost in a trace in keep-last mode but whole chunks, which were recycled. */
static inline void recorded_check_kept_last(struct sonde_trace *trace)
{
    static const char *const losses[] = { "lost_names", "missing_ids", "unknown_events",
                                          "missing_events" };

    for (size_t i = 0; i < sizeof losses / sizeof losses[0]; i++)
        if (recorded_ledger(trace, losses[i]) != 0)
            fail_msg("%s: %llu", losses[i], (unsigned long long)recorded_ledger(trace, losses[i]));
    assert_true(recorded_ledger(trace, "recycled_chunks") > 0);
}

static inline void recorded_walk(struct sonde_trace *trace, sonde_event_fn *function, void *user)
{
    assert_int_equal(sonde_trace_walk(trace, SONDE_BY_THREAD, function, user, NULL), SONDE_OK);
}

#endif
