/* SPDX-License-Identifier: Apache-2.0 */
/* Thrift's and Parquet's encodings: bytes of their own documentation, and random numbers decoded again. */
#include <stdlib.h>
#include <string.h>

#include "export/parquet/parquet_pack.h"
#include "export/encode/thrift.h"
#include "bufbytes.h"

static void thrift(void **state)
{
    struct sonde_buffer buf = { 0 };
    struct snd_thrift   t;

    (void)state;
    snd_thrift_begin(&t, &buf);
    snd_thrift_i32(&t, 1, -1);
    snd_thrift_i64(&t, 3, 300);
    snd_thrift_bool(&t, 4, true);
    snd_thrift_bytes(&t, 20, "ab", 2);
    snd_thrift_struct(&t, 21);
    snd_thrift_i16(&t, 1, 1);
    snd_thrift_end(&t);
    snd_thrift_list(&t, 22, SND_THRIFT_I32, 2);
    snd_thrift_element_i32(&t, 0);
    snd_thrift_element_i32(&t, 2);
    snd_thrift_end(&t);
    EXPECT(&buf, "\x15\x01\x26\xd8\x04\x11\x08\x28\x02"
                 "ab\x1c\x14\x02\x00\x19\x25\x00\x04\x00");
    snd_thrift_begin(&t, &buf);
    snd_thrift_list(&t, 1, SND_THRIFT_STRUCT, 15);
    EXPECT(&buf, "\x19\xfc\x0f");
}

static void runs_and_bits(void **state)
{
    struct sonde_buffer buf = { 0 };
    uint32_t            values[100];

    (void)state;
    for (uint32_t i = 0; i < 8; i++)
        values[i] = i;
    snd_parquet_runs(&buf, values, 8, 3);
    EXPECT(&buf, "\x03\x88\xc6\xfa");
    for (uint32_t i = 0; i < 100; i++)
        values[i] = 4;
    snd_parquet_runs(&buf, values, 100, 3);
    EXPECT(&buf, "\xc8\x01\x04");
    snd_parquet_runs(&buf, values, 0, 3);
    assert_int_equal(buf.length, 0);
}

/* ------------------------------------------------------------- decoded again */

static uint64_t take_varint(const uint8_t **at)
{
    uint64_t value = 0;

    for (unsigned shift = 0;; shift += 7) {
        value |= (uint64_t)(**at & 0x7f) << shift;
        if (!(*(*at)++ & 0x80))
            return value;
    }
}

static int64_t take_zigzag(const uint8_t **at)
{
    uint64_t value = take_varint(at);

    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static uint64_t take_bits(const uint8_t *at, size_t index, unsigned width)
{
    uint64_t value = 0;

    for (unsigned bit = 0; bit < width; bit++) {
        size_t from = index * width + bit;
        value |= (uint64_t)(at[from / 8] >> from % 8 & 1) << bit;
    }
    return value;
}

static void check_runs(const struct sonde_buffer *buf, const uint32_t *values, size_t count,
                       unsigned width)
{
    const uint8_t *at = (const uint8_t *)buf->bytes, *end = at + buf->length;
    size_t         n = 0;

    while (n < count) {
        uint64_t head = take_varint(&at);
        assert_true(at < end);
        size_t length = (size_t)(head >> 1) * (head & 1 ? 8 : 1);
        for (size_t i = 0; i < length && n < count; i++, n++)
            assert_int_equal(take_bits(at, head & 1 ? i : 0, width), values[n]);
        at += head & 1 ? (head >> 1) * width : (width + 7) / 8;
    }
    assert_ptr_equal(at, end);
}

static void check_deltas(const struct sonde_buffer *buf, const int64_t *values, size_t count)
{
    const uint8_t *at = (const uint8_t *)buf->bytes, *end = at + buf->length;

    assert_int_equal(take_varint(&at), 128);
    assert_int_equal(take_varint(&at), 4);
    assert_int_equal(take_varint(&at), count);
    uint64_t value = (uint64_t)take_zigzag(&at);
    if (count > 0)
        assert_true((int64_t)value == values[0]);
    for (size_t n = 1; n < count;) {
        uint64_t       least = (uint64_t)take_zigzag(&at);
        const uint8_t *widths = at;
        at += 4;
        for (size_t mini = 0; mini < 4 && n < count; mini++, at += 4 * widths[mini - 1])
            for (size_t i = 0; i < 32 && n < count; i++, n++) {
                value += least + take_bits(at, i, widths[mini]);
                assert_true((int64_t)value == values[n]);
            }
    }
    assert_ptr_equal(at, end);
}

static uint64_t random_bits(unsigned width)
{
    uint64_t value = (uint64_t)rand() << 42 ^ (uint64_t)rand() << 21 ^ (uint64_t)rand();

    return width < 64 ? value & (((uint64_t)1 << width) - 1) : value;
}

/* Runs of random lengths of random values, at every width. */
static void random_runs(void **state)
{
    struct sonde_buffer buf = { 0 };
    uint32_t            values[700];

    (void)state;
    srand(7);
    for (unsigned round = 0; round < 3 * 32; round++) {
        unsigned width = round % 32 + 1;
        size_t   count = (size_t)rand() % 700;
        for (size_t i = 0; i < count;) {
            uint32_t value = (uint32_t)random_bits(width);
            for (int run = rand() % 3 ? 1 : rand() % 40; run > 0 && i < count; run--)
                values[i++] = value;
        }
        snd_buf_clear(&buf);
        snd_parquet_runs(&buf, values, count, width);
        assert_false(buf.failed);
        check_runs(&buf, values, count, width);
    }
    sonde_buffer_release(&buf);
}

static void random_deltas(void **state)
{
    struct sonde_buffer  buf = { 0 };
    int64_t              values[700];
    static const int64_t ends[] = { INT64_MIN, INT64_MAX, 0, INT64_MIN, -1, INT64_MAX };

    (void)state;
    snd_parquet_deltas(&buf, ends, sizeof ends / sizeof ends[0]);
    check_deltas(&buf, ends, sizeof ends / sizeof ends[0]);
    for (unsigned round = 0; round < 3 * 64; round++) {
        size_t count = (size_t)rand() % 700;
        for (size_t i = 0; i < count; i++)
            values[i] = (int64_t)random_bits(round % 64 + 1);
        snd_buf_clear(&buf);
        snd_parquet_deltas(&buf, values, count);
        assert_false(buf.failed);
        check_deltas(&buf, values, count);
    }
    sonde_buffer_release(&buf);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(thrift),
        cmocka_unit_test(runs_and_bits),
        cmocka_unit_test(random_runs),
        cmocka_unit_test(random_deltas),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
