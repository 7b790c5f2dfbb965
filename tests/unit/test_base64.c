/* SPDX-License-Identifier: Apache-2.0 */
/* export/encode/base64.c: the vectors of RFC 4648, however the bytes are divided among writes. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <setjmp.h>

#include <cmocka.h>

#include "base/text/buf.h"
#include "export/encode/base64.h"

static void check(const char *data, size_t length, size_t piece, const char *expected)
{
    struct sonde_buffer text = { 0 };
    struct sonde_sink   inner = sonde_sink_buffer(&text);
    struct snd_out      out;
    struct snd_base64   base64 = { .out = &out };
    struct sonde_sink   sink = snd_base64_sink(&base64);

    snd_out_init(&out, &inner);
    for (size_t at = 0; at < length; at += piece)
        assert_true(sink.write(sink.user, data + at, length - at < piece ? length - at : piece));
    snd_base64_finish(&base64);
    assert_int_equal(snd_out_finish(&out, NULL), SONDE_OK);
    assert_string_equal(snd_buf_string(&text), expected);
    sonde_buffer_release(&text);
}

static void test_vectors(void **state)
{
    static const char *const texts[] = { "",         "Zg==",     "Zm8=",    "Zm9v",
                                         "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };

    (void)state;
    for (size_t length = 0; length < sizeof texts / sizeof texts[0]; length++)
        for (size_t piece = 1; piece <= 7; piece++)
            check("foobar", length, piece, texts[length]);
    check("\xfb\xff\xbf\x00", 4, 2, "+/+/AA==");
}

static void test_long(void **state)
{
    static char data[10000], expected[13337];

    (void)state;
    memset(expected, 'A', sizeof expected - 1);
    memcpy(expected + 13332, "AA==", 4); /* 10,000 bytes leave one over */
    check(data, sizeof data, sizeof data, expected);
    check(data, sizeof data, 997, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_vectors),
                                        cmocka_unit_test(test_long) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
