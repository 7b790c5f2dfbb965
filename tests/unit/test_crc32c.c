/* SPDX-License-Identifier: Apache-2.0 */
/* base/data/crc32c.c: the values of RFC 3720, and any length at any place against a sum bit by bit. */
#include "base/data/crc32c.h"

#include "scratch.h"

enum { LENGTH = 10000 };

static uint32_t sum_bit_by_bit(uint32_t crc, const uint8_t *data, size_t length)
{
    crc = ~crc;
    for (size_t i = 0; i < length; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
    }
    return ~crc;
}

static void values_are_the_standards(void **state)
{
    uint8_t data[32] = { 0 };

    (void)state;
    assert_int_equal(snd_crc32c(0, data, sizeof data), 0x8a9136aa);
    memset(data, 0xff, sizeof data);
    assert_int_equal(snd_crc32c(0, data, sizeof data), 0x62a8ab43);
    for (uint8_t i = 0; i < sizeof data; i++)
        data[i] = i;
    assert_int_equal(snd_crc32c(0, data, sizeof data), 0x46dd794e);
    assert_int_equal(snd_crc32c(0, "123456789", 9), 0xe3069283);
    assert_int_equal(snd_crc32c(0, "", 0), 0);
}

static void any_length_at_any_place(void **state)
{
    static uint8_t data[LENGTH];
    uint32_t       random = 1;

    (void)state;
    for (size_t i = 0; i < sizeof data; i++) {
        random = random * 1664525u + 1013904223u;
        data[i] = (uint8_t)(random >> 24);
    }
    for (size_t at = 0; at < 9; at++)
        for (size_t length = 0; length + at <= sizeof data; length += length < 100 ? 1 : 331)
            assert_int_equal(snd_crc32c(0, data + at, length),
                             sum_bit_by_bit(0, data + at, length));
}

static void parts_make_the_whole(void **state)
{
    static uint8_t data[LENGTH];
    uint32_t       whole;

    (void)state;
    memset(data, 0xa5, sizeof data);
    whole = sum_bit_by_bit(0, data, sizeof data);
    for (size_t first = 0; first <= sizeof data; first += 97)
        assert_int_equal(snd_crc32c(snd_crc32c(0, data, first), data + first, sizeof data - first),
                         whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_the_standards),
        cmocka_unit_test(any_length_at_any_place),
        cmocka_unit_test(parts_make_the_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
