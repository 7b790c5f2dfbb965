/* SPDX-License-Identifier: Apache-2.0 */
/* The bytes of protobuf messages, as the encoding's own documentation has them. */
#include <string.h>

#include "export/encode/protobuf.h"
#include "bufbytes.h"

static void numbers(void **state)
{
    struct sonde_buffer buf = { 0 };

    (void)state;
    snd_pb_uint(&buf, 1, 150);
    EXPECT(&buf, "\x08\x96\x01");
    snd_pb_uint(&buf, 47, 0);
    EXPECT(&buf, "\xf8\x02\x00");
    snd_pb_int(&buf, 1, -1);
    EXPECT(&buf, "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
    snd_pb_fixed64(&buf, 1, 0x0102030405060708u);
    EXPECT(&buf, "\x09\x08\x07\x06\x05\x04\x03\x02\x01");
    snd_pb_double(&buf, 2, 1.0);
    EXPECT(&buf, "\x11\0\0\0\0\0\0\xf0\x3f");
}

static void texts_are_utf8(void **state)
{
    struct sonde_buffer buf = { 0 };

    (void)state;
    snd_pb_string(&buf, 2, "testing");
    EXPECT(&buf, "\x12\x07testing");
    snd_pb_string(&buf, 2, "\xc3\xa9");
    EXPECT(&buf, "\x12\x02\xc3\xa9");
    snd_pb_string(&buf, 2, "a\xff\xfe");
    EXPECT(&buf, "\x12\x87\x80\x80\x00"
                 "a\xef\xbf\xbd\xef\xbf\xbd");
    snd_pb_string(&buf, 2, "\xc3");
    EXPECT(&buf, "\x12\x83\x80\x80\x00\xef\xbf\xbd");
}

static void messages_nest(void **state)
{
    struct sonde_buffer buf = { 0 };

    (void)state;
    size_t outer = snd_pb_open(&buf, 1);
    size_t inner = snd_pb_open(&buf, 2);
    snd_pb_uint(&buf, 3, 5);
    snd_pb_close(&buf, inner);
    snd_pb_close(&buf, outer);
    EXPECT(&buf, "\x0a\x87\x80\x80\x00\x12\x82\x80\x80\x00\x18\x05");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers),
        cmocka_unit_test(texts_are_utf8),
        cmocka_unit_test(messages_nest),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
