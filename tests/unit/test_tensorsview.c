/* SPDX-License-Identifier: Apache-2.0 */
/* Which tensors share a storage: one address may be several things. */
#include <sys/stat.h>

#include "scratch.h"
#include "sonde/sonde.h"

static void tell(struct synth *s, const char *name, const char *device, unsigned address)
{
    char key[64], text[256];

    snprintf(key, sizeof key, "tensor %s", name);
    snprintf(text, sizeof text,
             "{\"kind\": \"tensor\", \"name\": \"%s\", \"dtype\": \"float32\", \"shape\": \"[2]\", "
             "\"device\": \"%s\", \"bytes\": 8, \"storage\": %u, \"storage_bytes\": 8}",
             name, device, address);
    synth_meta(s, key, text);
}

static struct synth *start(const char *name, uint32_t pid)
{
    struct synth_options options = { .pid = pid };
    struct synth        *s = synth_new(scratch_path(name), &options);

    synth_thread(s, "main", 0);
    return s;
}

static void report(const char *path, struct sonde_buffer *text)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_sink           sink = sonde_sink_buffer(text);
    struct sonde_trace         *trace = scratch_open(path);

    options.view = "tensors";
    options.format = SONDE_REPORT_JSON;
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    sonde_trace_close(trace);
}

static void a_storage_is_of_a_device_and_a_process(void **state)
{
    struct sonde_buffer text = { 0 };

    (void)state;
    assert_int_equal(mkdir(scratch_path("two"), 0700), 0);
    struct synth *s = start("two/1.sonde", 1);
    tell(s, "a", "cuda:1", 4096);
    tell(s, "b", "cuda:11", 4096); /* ends alike */
    tell(s, "c", "cuda:1", 4096);  /* the same */
    tell(s, "d", "cpu", 0);        /* none */
    tell(s, "e", "cpu", 0);
    synth_close(s, true);
    s = start("two/2.sonde", 2);
    tell(s, "f", "cuda:1", 4096); /* another process's */
    synth_close(s, true);
    report(scratch_path("two"), &text);
    assert_non_null(strstr(text.bytes, "\"tensors\":6,"));
    assert_non_null(strstr(text.bytes, "\"storage_bytes\":40\n"));
    assert_non_null(strstr(text.bytes, "\"name\":\"c\",\"shared_with\":\"a\""));
    assert_non_null(strstr(text.bytes, "\"name\":\"b\",\"shared_with\":null"));
    assert_non_null(strstr(text.bytes, "\"name\":\"f\",\"shared_with\":null"));
    sonde_buffer_release(&text);
}

static void what_has_no_kind_has_no_row(void **state)
{
    static const char *const others[] = { "{\"name\": \"x\", \"storage_bytes\": 8}",
                                          "{\"kind\": \"\"}",
                                          "{\"kind\": 7}",
                                          "text",
                                          "{",
                                          "" };
    struct sonde_buffer      text = { 0 };

    (void)state;
    struct synth *s = start("kinds.sonde", 1);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        synth_meta(s, "tensor of someone else", others[i]);
    tell(s, "mine", "cpu", 64);
    synth_close(s, true);
    report(scratch_path("kinds.sonde"), &text);
    assert_non_null(strstr(text.bytes, "\"tensors\":1,"));
    assert_non_null(strstr(text.bytes, "\"storage_bytes\":8\n"));
    sonde_buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_storage_is_of_a_device_and_a_process),
        cmocka_unit_test(what_has_no_kind_has_no_row),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
