/* SPDX-License-Identifier: Apache-2.0 */
/* export/encode/rendered_texts.c: texts that are kept, within bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/text/buf.h"
#include "export/encode/rendered_texts.h"

static bool is(const struct sonde_text *text, const char *expected)
{
    return text && text->length == strlen(expected) &&
           memcmp(text->bytes, expected, text->length) == 0;
}

static void keeps_by_every_word_of_the_key(void **state)
{
    struct snd_rendered     cache = { 0 };
    struct snd_rendered_key key = { { 1, 2, 3, 4 } };

    (void)state;
    assert_null(snd_rendered_find(&cache, &key));
    snd_rendered_keep(&cache, &key, "text", 4);
    assert_true(is(snd_rendered_find(&cache, &key), "text"));
    for (int i = 0; i < 4; i++) {
        struct snd_rendered_key other = key;
        other.parts[i] = 9;
        assert_null(snd_rendered_find(&cache, &other));
    }
    snd_rendered_keep(&cache, &key, "", 0);
    assert_true(is(snd_rendered_find(&cache, &key), ""));
    uint32_t number = snd_rendered_number(snd_rendered_find(&cache, &key));
    snd_rendered_keep(&cache, &key, "longer than before", 18);
    assert_true(is(snd_rendered_find(&cache, &key), "longer than before"));
    assert_true(number > 0 && snd_rendered_number(snd_rendered_find(&cache, &key)) > number);
    snd_rendered_release(&cache);
    assert_null(snd_rendered_find(&cache, &key));
}

/* A text is the one that was kept for the key, or none: of many, some have made room for others. */
static void forgets_rather_than_grows(void **state)
{
    struct snd_rendered cache = { 0 };
    char                text[32];
    size_t              found = 0;
    static const char   large[100000];

    (void)state;
    for (uint64_t i = 0; i < 100000; i++) {
        struct snd_rendered_key key = { { 1, i, i >> 3, 0 } };
        snprintf(text, sizeof text, "%u", (unsigned)i);
        snd_rendered_keep(&cache, &key, text, strlen(text));
    }
    for (uint64_t i = 0; i < 100000; i++) {
        struct snd_rendered_key  key = { { 1, i, i >> 3, 0 } };
        const struct sonde_text *kept = snd_rendered_find(&cache, &key);
        snprintf(text, sizeof text, "%u", (unsigned)i);
        assert_true(!kept || is(kept, text));
        found += kept != NULL;
    }
    assert_in_range(found, 100, 10000);
    struct snd_rendered_key key = { { 2 } };
    snd_rendered_keep(&cache, &key, large, sizeof large);
    assert_null(snd_rendered_find(&cache, &key));
    snd_rendered_release(&cache);
}

/* Members that come first in one object and later in another. */
static void writes_members_again(void **state)
{
    struct snd_rendered     cache = { 0 };
    struct snd_rendered_key key = { { 1 } };
    struct sonde_buffer     buffer = { 0 };
    struct sonde_sink       sink = sonde_sink_buffer(&buffer);
    struct snd_out          out;
    struct snd_json         json;

    (void)state;
    snd_out_init(&out, &sink);
    snd_json_init(&json, &out);
    snd_json_array(&json, NULL);
    for (int i = 0; i < 3; i++) {
        snd_json_object(&json, NULL);
        if (i < 2)
            snd_json_int(&json, "i", i);
        if (!snd_rendered_members(&cache, &key, &json)) {
            struct snd_out_mark mark = snd_out_mark(&out);
            assert_int_equal(i, 0);
            snd_json_text(&json, "a", "b");
            snd_json_int(&json, "c", 3);
            snd_rendered_keep_out(&cache, &key, &out, mark);
        }
        snd_json_end(&json);
    }
    snd_json_end(&json);
    assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
    assert_string_equal(buffer.bytes,
                        "[{\"i\":0,\"a\":\"b\",\"c\":3},{\"i\":1,\"a\":\"b\",\"c\":3},"
                        "{\"a\":\"b\",\"c\":3}]");
    snd_rendered_release(&cache);
    sonde_buffer_release(&buffer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_by_every_word_of_the_key),
        cmocka_unit_test(forgets_rather_than_grows),
        cmocka_unit_test(writes_members_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
