/* SPDX-License-Identifier: Apache-2.0 */
/* Members of JSON text, good and bad. */
#include "base/text/buf.h"
#include "base/text/json_member.h"
#include "scratch.h"

static int64_t number_of(const char *json, const char *key)
{
    return snd_member_number(json, strlen(json), key, -7);
}

static void numbers_and_what_is_not_one(void **state)
{
    (void)state;
    assert_int_equal(number_of("{\"a\": 5, \"b\":-6}", "a"), 5);
    assert_int_equal(number_of("{\"a\": 5, \"b\":-6}", "b"), -6);
    assert_int_equal(number_of("{\"x\": {\"a\": 1}, \"a\": 2}", "a"), 2); /* not the inner one */
    assert_int_equal(number_of("{\"x\": \"\\\"a\\\": 1\", \"a\": 3}", "a"), 3);
    assert_int_equal(number_of("{\"a\": 5.5}", "a"), -7);
    assert_int_equal(number_of("{\"a\": \"5\"}", "a"), -7);
    assert_int_equal(number_of("{\"ab\": 5}", "a"), -7);
    assert_int_equal(number_of("[1, 2]", "a"), -7);
    assert_int_equal(number_of("{\"a\": 5", "a"), -7); /* not JSON */
    assert_int_equal(number_of("{\"a\": 5,}", "a"), -7);
    assert_int_equal(number_of("", "a"), -7);
    assert_true(snd_member_real("{\"a\": 1.5e3}", 12, "a", 0) == 1500);
    assert_true(snd_member_real("{\"a\": null}", 11, "a", 0.25) == 0.25);
}

static bool text_of(const char *json, const char *key, struct sonde_buffer *out)
{
    struct snd_value value;

    return snd_member_find(json, strlen(json), key, &value) && snd_value_text(value, out);
}

static void text_is_unescaped(void **state)
{
    static const char   json[] = "{\"t\": \"a\\\"b\\\\\\n\\u00e4\\u20ac\\u0041\", \"n\": 1}";
    struct sonde_buffer text = { 0 };

    (void)state;
    assert_true(text_of(json, "t", &text));
    assert_string_equal(snd_buf_string(&text), "a\"b\\\n\xc3\xa4\xe2\x82\xac"
                                               "A");
    snd_buf_clear(&text);
    assert_false(text_of(json, "n", &text));
    assert_int_equal(text.length, 0);
    sonde_buffer_release(&text);
}

static void elements_in_order(void **state)
{
    static const char        json[] = "{\"list\": [ {\"k\": [1, 2]}, \"a,]\" ,3], \"empty\": []}";
    static const char *const expected[] = { "{\"k\": [1, 2]}", "\"a,]\"", "3" };
    struct snd_value         list, one;
    size_t                   at = 0, count = 0;

    (void)state;
    assert_true(snd_member_find(json, strlen(json), "list", &list));
    while (snd_value_next(list, &at, NULL, &one)) {
        assert_int_equal(one.length, strlen(expected[count]));
        assert_memory_equal(one.bytes, expected[count], one.length);
        count++;
    }
    assert_int_equal(count, 3);
    assert_true(snd_member_find(json, strlen(json), "empty", &list));
    at = 0;
    assert_false(snd_value_next(list, &at, NULL, &one));
}

/* Every beginning of a text: none reads past its end (the sanitizers watch). */
static void cut_anywhere(void **state)
{
    static const char whole[] = "{\"a\": {\"b\": [1, \"\\u12\"]}, \"c\": \"\\\"\"}";

    (void)state;
    for (size_t length = 0; length < sizeof whole; length++) {
        char            *copy = malloc(length + 1);
        struct snd_value value, key;
        size_t           at = 0;
        assert_non_null(copy);
        memcpy(copy, whole, length);
        if (snd_member_find(copy, length, "c", &value))
            assert_int_equal(length, sizeof whole - 1);
        while (snd_value_next((struct snd_value){ copy, length }, &at, &key, &value))
            assert_true(value.bytes + value.length <= copy + length);
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_what_is_not_one),
        cmocka_unit_test(text_is_unescaped),
        cmocka_unit_test(elements_in_order),
        cmocka_unit_test(cut_anywhere),
    };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
