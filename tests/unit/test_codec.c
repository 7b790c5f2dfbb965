/* SPDX-License-Identifier: Apache-2.0 */
/* format/codec.c: chunks packed and unpacked again. */
#include "format/codec.h"

#include "format/fields.h"
#include "scratch.h"
#include "snd_config.h"

#define WORDS_MAX 131072

static uint64_t words[WORDS_MAX];
static uint64_t seed;

static uint64_t draw(void)
{
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

/* Begin and end with jittery times and a few dozen names, as a recording has them. */
static size_t make_ranges(size_t *events)
{
    uint64_t time = 123456789012345;
    size_t   at = 0, depth = 0;

    for (*events = 0; at + 2 <= WORDS_MAX; ++*events) {
        time += 60 + draw() % 700;
        if (depth < 4 && (depth == 0 || draw() & 1)) {
            words[at++] = SND_WORD0(SND_EV_BEGIN, time);
            words[at++] = SND_PAIR(1 + draw() % 40, draw() % 8);
            depth++;
        } else {
            words[at++] = SND_WORD0(SND_EV_END, time);
            depth--;
        }
    }
    return at;
}

/* Any kinds, known or not, with any content. */
static size_t make_anything(void)
{
    size_t at = 0;

    for (;;) {
        uint8_t  kind = (uint8_t)draw();
        unsigned length = SND_KIND_WORDS(kind);
        if (at + length > WORDS_MAX)
            return at;
        for (unsigned i = 0; i < length; i++)
            words[at + i] = draw() >> draw() % 64;
        words[at] = (words[at] & ~(uint64_t)255) | kind;
        at += length;
    }
}

static void check_round_trip(struct snd_codec *codec, size_t count, size_t *packed_size)
{
    const uint8_t  *packed;
    const uint64_t *back;
    size_t          size, back_count;

    assert_int_equal(snd_codec_pack_lane(codec, words, count, 3, &packed, &size, NULL), SONDE_OK);
    uint8_t *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, packed, size);
    assert_int_equal(snd_codec_unpack_lane(codec, copy, size, &back, &back_count, NULL), SONDE_OK);
    assert_int_equal(back_count, count);
    assert_memory_equal(back, words, count * 8);
    *packed_size = size;
    free(copy);
}

static void ranges_come_back_small(void **state)
{
    size_t events, size, count = make_ranges(&events);

    check_round_trip(*state, count, &size);
    assert_true(size < events * 3);
    print_message("%.2f bytes an event\n", (double)size / (double)events);
}

static void anything_comes_back(void **state)
{
    size_t size;

    for (int i = 0; i < 10; i++)
        check_round_trip(*state, make_anything(), &size);
    check_round_trip(*state, 0, &size);
}

static void cut_events_are_refused(void **state)
{
    const uint8_t *packed;
    size_t         size;

    words[0] = SND_WORD0(SND_EV_BEGIN, 5);
    assert_int_equal(snd_codec_pack_lane(*state, words, 1, 3, &packed, &size, NULL),
                     SONDE_E_ARGUMENT);
    assert_int_equal(snd_codec_pack_lane(*state, words, SND_PACKED_RAW_MAX, 3, &packed, &size,
                                         NULL),
                     SONDE_E_ARGUMENT);
}

/* What packs beyond the bound that readers accept is filled up to it, and no further. */
static void the_most_regular_is_read(void **state)
{
    const uint8_t  *packed, *bytes;
    const uint64_t *back;
    size_t          size, count;

    for (size_t i = 0; i < WORDS_MAX; i++)
        words[i] = SND_WORD0(SND_EV_END, 77);
    assert_int_equal(snd_codec_pack_lane(*state, words, WORDS_MAX, 3, &packed, &size, NULL),
                     SONDE_OK);
    size_t least = (sizeof words - SND_PACKED_RATIO_FREE + SND_PACKED_RATIO_MAX - 1) /
                   SND_PACKED_RATIO_MAX;
    assert_int_equal(size, least);
    uint8_t *kept = malloc(size);
    memcpy(kept, packed, size);
    assert_int_equal(snd_codec_unpack_lane(*state, kept, size - 1, &back, &count, NULL),
                     SONDE_E_FORMAT);
    assert_int_equal(snd_codec_unpack_lane(*state, kept, size, &back, &count, NULL), SONDE_OK);
    assert_int_equal(count, WORDS_MAX);
    assert_memory_equal(back, words, sizeof words);
    free(kept);
    assert_int_equal(snd_codec_pack_bytes(*state, words, sizeof words, 3, &packed, &size, NULL),
                     SONDE_OK);
    assert_int_equal(size, least);
    kept = malloc(size);
    memcpy(kept, packed, size);
    assert_int_equal(snd_codec_unpack_bytes(*state, kept, size, &bytes, &count, NULL), SONDE_OK);
    assert_int_equal(count, sizeof words);
    free(kept);
}

static void damage_is_no_crash(void **state)
{
    const uint8_t  *packed;
    const uint64_t *back;
    const uint8_t  *bytes;
    size_t          size, count, events;
    unsigned        refused = 0;

    size_t whole = 0;
    make_ranges(&events);
    while (whole < 1200)
        whole += SND_KIND_WORDS(SND_EVENT_KIND(words[whole]));
    assert_int_equal(snd_codec_pack_lane(*state, words, whole, 3, &packed, &size, NULL), SONDE_OK);
    uint8_t *copy = malloc(size);
    uint8_t *work = malloc(size);
    memcpy(copy, packed, size);
    for (size_t cut = 0; cut < size; cut++) {
        memcpy(work, copy, cut);
        assert_int_not_equal(snd_codec_unpack_lane(*state, work, cut, &back, &count, NULL),
                             SONDE_OK);
    }
    for (int i = 0; i < 20000; i++) {
        memcpy(work, copy, size);
        for (uint64_t n = 1 + draw() % 3; n > 0; n--)
            work[draw() % size] ^= (uint8_t)(1u << draw() % 8);
        refused += snd_codec_unpack_lane(*state, work, size, &back, &count, NULL) != SONDE_OK;
        refused += snd_codec_unpack_bytes(*state, work, size, &bytes, &count, NULL) != SONDE_OK;
    }
    assert_true(refused > 20000);
    free(copy);
    free(work);
}

static void bytes_come_back(void **state)
{
    const uint8_t *packed, *back;
    size_t         size, length;
    char           text[5000];

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)("string table "[i % 13]);
    assert_int_equal(snd_codec_pack_bytes(*state, text, sizeof text, 3, &packed, &size, NULL),
                     SONDE_OK);
    assert_true(size < 500);
    uint8_t *copy = malloc(size);
    memcpy(copy, packed, size);
    assert_int_equal(snd_codec_unpack_bytes(*state, copy, size, &back, &length, NULL), SONDE_OK);
    assert_int_equal(length, sizeof text);
    assert_memory_equal(back, text, length);
    free(copy);
}

static void hostile_heads_are_refused(void **state)
{
    const uint64_t        *back;
    size_t                 count;
    uint8_t                payload[200] = { 0 };
    struct snd_packed_head head = { SND_CODING_COLUMNS, UINT32_MAX, 0, 1, SND_COLUMN_COUNT };

    memcpy(payload, &head, sizeof head);
    assert_int_equal(snd_codec_unpack_lane(*state, payload, sizeof payload, &back, &count, NULL),
                     SONDE_E_FORMAT);
    head.raw_bytes = 1 << 20; /* more than 200 bytes may stand for */
    memcpy(payload, &head, sizeof head);
    assert_int_equal(snd_codec_unpack_lane(*state, payload, sizeof payload, &back, &count, NULL),
                     SONDE_E_FORMAT);
    head.raw_bytes = 64;
    head.columns = UINT32_MAX;
    memcpy(payload, &head, sizeof head);
    assert_int_equal(snd_codec_unpack_lane(*state, payload, sizeof payload, &back, &count, NULL),
                     SONDE_E_FORMAT);
}

static int open_codec(void **state)
{
    struct snd_codec *codec;

    seed = 88172645463325252u;
    if (snd_codec_new(&codec, NULL) != SONDE_OK)
        return -1;
    *state = codec;
    return 0;
}

static int close_codec(void **state)
{
    snd_codec_free(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges_come_back_small),    cmocka_unit_test(anything_comes_back),
        cmocka_unit_test(cut_events_are_refused),    cmocka_unit_test(the_most_regular_is_read),
        cmocka_unit_test(damage_is_no_crash),        cmocka_unit_test(bytes_come_back),
        cmocka_unit_test(hostile_heads_are_refused),
    };

    if (!SND_HAVE_ZSTD) {
        struct snd_codec  *codec;
        struct sonde_error err;
        return snd_codec_new(&codec, &err) == SONDE_E_UNSUPPORTED ? 0 : 1;
    }
    return cmocka_run_group_tests(tests, open_codec, close_codec);
}
