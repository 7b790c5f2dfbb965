/* SPDX-License-Identifier: Apache-2.0 */
/* Every view and export into a sink that is full before the end: the error is said, wherever it happens. */
#include <errno.h>

#include "cases.h"
#include "full_disk.h"
#include "scratch.h"
#include "sonde/export.h"

struct use {
    struct sonde_trace *trace;
    const char         *name;
    bool                is_view, is_text; /* in lines of 80 columns */
};

static enum sonde_status write_into(const struct use *use, size_t room, size_t *left,
                                    struct sonde_error *err)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_sink           sink = { full_disk_write, left };

    *left = room;
    if (!use->is_view)
        return sonde_export(use->trace, use->name, NULL, &sink, err);
    options.view = use->name;
    options.format = use->is_text ? SONDE_REPORT_TEXT : SONDE_REPORT_JSON;
    options.width = use->is_text ? 80 : 0;
    return sonde_report(use->trace, &options, &sink, err);
}

/* Full at once, after a part, before the last byte; and large enough. */
static void fill(const struct use *use)
{
    const size_t       plenty = (size_t)1 << 40;
    struct sonde_error err;
    size_t             left;

    if (write_into(use, plenty, &left, &err) != SONDE_OK)
        return; /* the trace has nothing for it */
    size_t       length = plenty - left;
    const size_t rooms[] = { 0, length / 3, length / 2, length - 1 };
    for (size_t i = 0; length > 0 && i < sizeof rooms / sizeof rooms[0]; i++) {
        err = (struct sonde_error){ 0 };
        enum sonde_status status = write_into(use, rooms[i], &left, &err);
        if (status != SONDE_E_IO || err.os_error != ENOSPC || err.message[0] == '\0')
            fail_msg("%s, room for %zu of %zu bytes: status %d: %s", use->name, rooms[i], length,
                     (int)status, err.message);
    }
    assert_int_equal(write_into(use, length, &left, &err), SONDE_OK);
    assert_int_equal(left, 0);
}

static void a_full_sink_is_an_error(void **state)
{
    static const struct {
        const char *name;
        uint64_t    n;
    } cases[] = {
        { "chance", 1 }, { "said", 7 }, { "variety", 2 }, { "heap", 1 }, { "gpu_memory", 0 }
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct sonde_view_info     *view;
        const struct sonde_exporter_info *exporter;
        assert_true(make_case(cases[i].name, scratch_path("trace"), cases[i].n));
        struct sonde_trace *trace = scratch_open(scratch_path("trace"));
        for (size_t n = 0; (view = sonde_view_info(n)) != NULL; n++)
            for (int is_text = 0; is_text < 2; is_text++)
                fill(&(struct use){ trace, view->name, true, is_text });
        for (size_t n = 0; (exporter = sonde_exporter_info(n)) != NULL; n++)
            if (!exporter->missing && !sonde_exporter_is_folder(exporter->name))
                fill(&(struct use){ trace, exporter->name, false, false });
        sonde_trace_close(trace);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_full_sink_is_an_error) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
