/* SPDX-License-Identifier: Apache-2.0 */
/* The same calls, as YAML and as JSON. */
#include <math.h>

#include "export/encode/yaml_json.h"
#include "scratch.h"

static void write_document(struct snd_emit *e)
{
    snd_emit_int(e, "count", -3);
    snd_emit_map(e, "outer");
    snd_emit_map(e, "empty");
    snd_emit_end(e);
    snd_emit_real(e, "small", 1e-5);
    snd_emit_real(e, "large", 1e22);
    snd_emit_real(e, "whole", 2);
    snd_emit_real(e, "none", (double)NAN);
    snd_emit_list(e, "items");
    for (int i = 0; i < 2; i++) {
        snd_emit_item(e);
        snd_emit_string(e, "name", i ? "no" : "plain.name");
        snd_emit_map(e, "deep");
        snd_emit_string(e, "text", "a: \"b\"\n");
        snd_emit_end(e);
        snd_emit_end(e);
    }
    snd_emit_end(e);
    snd_emit_list(e, "nothing");
    snd_emit_end(e);
    snd_emit_end(e);
    snd_emit_shapes(e, "shape", "[[1, 2], []]", 12);
    snd_emit_shapes(e, "no_shape", "[x", 2);
    snd_emit_null(e, "last");
}

static void check(bool is_json, const char *expected)
{
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    struct snd_out      out;
    struct snd_emit     emit;

    snd_out_init(&out, &sink);
    snd_emit_init(&emit, &out, is_json);
    write_document(&emit);
    snd_emit_finish(&emit);
    assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
    assert_string_equal(text.bytes, expected);
    sonde_buffer_release(&text);
}

static void as_yaml(void **state)
{
    (void)state;
    check(false, "count: -3\n"
                 "outer:\n"
                 "  empty: {}\n"
                 "  small: 1.0e-05\n"
                 "  large: 1.0e+22\n"
                 "  whole: 2.0\n"
                 "  none: null\n"
                 "  items:\n"
                 "  - name: plain.name\n"
                 "    deep:\n"
                 "      text: \"a: \\\"b\\\"\\n\"\n"
                 "  - name: \"no\"\n"
                 "    deep:\n"
                 "      text: \"a: \\\"b\\\"\\n\"\n"
                 "  nothing: []\n"
                 "shape: [[1, 2], []]\n"
                 "no_shape: \"[x\"\n"
                 "last: null\n");
}

static void as_json(void **state)
{
    (void)state;
    check(true, "{\n\"count\":-3,\n"
                "\"outer\":{\"empty\":{},\"small\":1e-05,\"large\":1e+22,\"whole\":2,\"none\":null,"
                "\"items\":[{\"name\":\"plain.name\",\"deep\":{\"text\":\"a: \\\"b\\\"\\n\"}},"
                "{\"name\":\"no\",\"deep\":{\"text\":\"a: \\\"b\\\"\\n\"}}],\"nothing\":[]},\n"
                "\"shape\":[[1, 2], []],\n\"no_shape\":\"[x\",\n\"last\":null\n}\n");
}

static void nothing_at_all(void **state)
{
    struct sonde_buffer text = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&text);
    struct snd_out      out;
    struct snd_emit     emit;

    (void)state;
    snd_out_init(&out, &sink);
    snd_emit_init(&emit, &out, false);
    snd_emit_finish(&emit);
    assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
    assert_string_equal(text.bytes, "{}\n");
    sonde_buffer_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_yaml),
        cmocka_unit_test(as_json),
        cmocka_unit_test(nothing_at_all),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
