/* SPDX-License-Identifier: Apache-2.0 */
/* base/text/json.c: the JSON writer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "base/text/buf.h"
#include "base/text/json.h"

struct fixture {
    struct sonde_buffer buffer;
    struct sonde_sink   sink;
    struct snd_out      out;
    struct snd_json     json;
};

static void begin(struct fixture *f)
{
    memset(&f->buffer, 0, sizeof f->buffer);
    f->sink = sonde_sink_buffer(&f->buffer);
    snd_out_init(&f->out, &f->sink);
    snd_json_init(&f->json, &f->out);
}

static void expect(struct fixture *f, const char *text)
{
    assert_int_equal(snd_out_finish(&f->out, NULL), SONDE_OK);
    assert_string_equal(snd_buf_string(&f->buffer), text);
    sonde_buffer_release(&f->buffer);
}

static void nests(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    snd_json_object(&f.json, NULL);
    snd_json_text(&f.json, "a", "b");
    snd_json_array(&f.json, "rows");
    snd_json_int(&f.json, NULL, -1);
    snd_json_uint(&f.json, NULL, UINT64_MAX);
    snd_json_array(&f.json, NULL);
    snd_json_end(&f.json);
    snd_json_object(&f.json, NULL);
    snd_json_bool(&f.json, "t", true);
    snd_json_bool(&f.json, "f", false);
    snd_json_null(&f.json, "n");
    snd_json_end(&f.json);
    snd_json_end(&f.json);
    snd_json_end(&f.json);
    expect(&f, "{\"a\":\"b\",\"rows\":[-1,18446744073709551615,[],"
               "{\"t\":true,\"f\":false,\"n\":null}]}");
}

static void breaks_lines(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    snd_json_break_at(&f.json, 1);
    snd_json_object(&f.json, NULL);
    snd_json_int(&f.json, "a", 1);
    snd_json_array(&f.json, "b");
    snd_json_int(&f.json, NULL, 2);
    snd_json_end(&f.json);
    snd_json_end(&f.json);
    expect(&f, "{\n\"a\":1,\n\"b\":[2]\n}\n");
}

static void escapes(void **state)
{
    static const struct {
        const char *bytes;
        size_t      length;
        const char *expected;
    } cases[] = {
#define CASE(bytes, expected) { bytes, sizeof bytes - 1, expected }
        CASE("", "\"\""),
        CASE("\"\\/", "\"\\\"\\\\/\""),
        CASE("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\""),
        CASE("\0\x01\x1f\x7f", "\"\\u0000\\u0001\\u001f\\u007f\""),
        CASE("bfnrt", "\"bfnrt\""),
        CASE("\xf0\x9f\x9a\x80\xc3\xa9", "\"\xf0\x9f\x9a\x80\xc3\xa9\""),
        CASE("a\xff\xc3z", "\"a\\udcff\\udcc3z\""),
        CASE("\xed\xa0\x80", "\"\\udced\\udca0\\udc80\""),
        CASE("\xc0\xaf", "\"\\udcc0\\udcaf\""),
#undef CASE
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fixture f;
        begin(&f);
        snd_json_string(&f.json, NULL, cases[i].bytes, cases[i].length);
        expect(&f, cases[i].expected);
    }
}

/* Each byte at each place of a text, which is looked at eight bytes at a time; as a key as well. */
static void escapes_anywhere(void **state)
{
    char text[20], plain[20];

    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        struct fixture      f;
        struct sonde_buffer alone = { 0 }, expected = { 0 };
        begin(&f);
        text[0] = (char)byte;
        snd_json_string(&f.json, NULL, text, 1);
        assert_int_equal(snd_out_finish(&f.out, NULL), SONDE_OK);
        alone = f.buffer; /* with its quotes */
        for (size_t at = 0; at < sizeof text; at++) {
            memset(plain, 'x', sizeof plain);
            memcpy(text, plain, sizeof text);
            text[at] = (char)byte;
            snd_buf_clear(&expected);
            snd_buf_format(&expected, "\"%.*s%.*s%.*s\"", (int)at, plain, (int)alone.length - 2,
                           alone.bytes + 1, (int)(sizeof text - at - 1), plain);
            begin(&f);
            snd_json_string(&f.json, NULL, text, sizeof text);
            assert_int_equal(snd_out_finish(&f.out, NULL), SONDE_OK);
            assert_string_equal(f.buffer.bytes, expected.bytes);
            sonde_buffer_release(&f.buffer);
        }
        sonde_buffer_release(&alone);
        sonde_buffer_release(&expected);
    }
}

/* Literals are taken as they are; a key of a program's is not. */
static void escapes_keys(void **state)
{
    static const char *volatile key = "a \"key\"";
    struct fixture f;

    (void)state;
    begin(&f);
    snd_json_object(&f.json, NULL);
    snd_json_int(&f.json, key, 1);
    snd_json_int(&f.json, "plain", 2);
    snd_json_end(&f.json);
    expect(&f, "{\"a \\\"key\\\"\":1,\"plain\":2}");
}

static void writes_numbers(void **state)
{
    struct fixture f;

    (void)state;
    begin(&f);
    snd_json_array(&f.json, NULL);
    snd_json_real(&f.json, NULL, 0.1);
    snd_json_real(&f.json, NULL, (double)NAN);
    snd_json_real(&f.json, NULL, -(double)INFINITY);
    snd_json_us(&f.json, NULL, 1234567);
    snd_json_us(&f.json, NULL, 7);
    snd_json_us(&f.json, NULL, -7);
    snd_json_us(&f.json, NULL, INT64_MIN);
    snd_json_end(&f.json);
    expect(&f, "[0.1,null,null,1234.567,0.007,-0.007,-9223372036854775.808]");
}

static void knows_lists_of_integers(void **state)
{
    static const char *const good[] = { "[]", "[[5, 3, 224, 224], [], [[2], [2]]]", "[-1, 20]",
                                        "[[],[]]" };
    static const char *const bad[] = { "",     "[",       "]",       "[]]",      "[[]",
                                       "[1,]", "[,1]",    "[1 2]",   "[-]",      "[1][2]",
                                       "[a]",  "[\"x\"]", "1",       "[] ",      "[1-2]",
                                       "[]1",  "{}",      "[[2]...", "[[1] [2]]" };

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(snd_json_is_int_lists(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(snd_json_is_int_lists(bad[i], strlen(bad[i])));
}

/* What is taken over as it is must be JSON, or the whole file is none. */
static void tells_json_from_other_text(void **state)
{
    static const char *const values[] = {
        "1",
        "-0.5e+10",
        "0",
        "true",
        "null",
        "\"a \\u00e9 \\n\"",
        "[]",
        "{}",
        " [1, \"x\", {\"a\": [null, false]}] ",
        "[\"\", \"[1, 1]\"]",
    };
    static const char *const others[] = {
        "",       " ",  "abc",     "1 2",         "01",  "1.",      "-",
        "[1,]",   "[1", "{\"a\"}", "{a: 1}",      "\"a", "\"\\x\"", "\"\\u12g4\"",
        "\"\n\"", "[}", "nul",     "{\"a\": 1,}", "'a'", "NaN",
    };

    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof values[0]; i++)
        if (!snd_json_is_value(values[i], strlen(values[i])))
            fail_msg("%s is JSON", values[i]);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (snd_json_is_value(others[i], strlen(others[i])))
            fail_msg("%s is not JSON", others[i]);
    char deep[2000];
    memset(deep, '[', sizeof deep);
    assert_false(snd_json_is_value(deep, sizeof deep));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_json_from_other_text),
        cmocka_unit_test(nests),
        cmocka_unit_test(breaks_lines),
        cmocka_unit_test(escapes),
        cmocka_unit_test(escapes_anywhere),
        cmocka_unit_test(escapes_keys),
        cmocka_unit_test(writes_numbers),
        cmocka_unit_test(knows_lists_of_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
