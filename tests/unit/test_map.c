/* SPDX-License-Identifier: Apache-2.0 */
/* base/data/map.c: the hash table, and the table of strings on top of it. */
#include "base/asan.h"
#include "base/data/map.h"

#include "scratch.h"

static void put_get_remove(void **state)
{
    struct snd_map map = { 0 };
    uint32_t       value;

    (void)state;
    assert_false(snd_map_get(&map, (struct snd_key){ 1, 2, 3 }, &value));
    assert_false(snd_map_remove(&map, (struct snd_key){ 1, 2, 3 }));
    for (uint32_t i = 0; i < 10000; i++)
        assert_true(snd_map_put(&map, (struct snd_key){ i % 100, i / 100, 7 }, i));
    assert_int_equal(map.count, 10000);
    for (uint32_t i = 0; i < 10000; i += 3)
        assert_true(snd_map_remove(&map, (struct snd_key){ i % 100, i / 100, 7 }));
    for (uint32_t i = 0; i < 10000; i++) {
        bool found = snd_map_get(&map, (struct snd_key){ i % 100, i / 100, 7 }, &value);
        assert_int_equal(found, i % 3 != 0);
        if (found)
            assert_int_equal(value, i);
        assert_int_equal(snd_map_take(&map, (struct snd_key){ i % 100, i / 100, 7 }, &value),
                         found);
        assert_true(!found || value == i);
        assert_false(snd_map_get(&map, (struct snd_key){ i % 100, i / 100, 7 }, &value));
    }
    assert_true(snd_map_put(&map, (struct snd_key){ 1, 0, 7 }, 76));
    assert_true(snd_map_put(&map, (struct snd_key){ 1, 0, 7 }, 77));
    assert_true(snd_map_get(&map, (struct snd_key){ 1, 0, 7 }, &value));
    assert_int_equal(value, 77);
    assert_false(snd_map_put(&map, (struct snd_key){ 0, 0, 0 }, UINT32_MAX));
    snd_map_release(&map);
}

static void texts_are_kept_once(void **state)
{
    struct snd_texts texts = { 0 };
    char             text[32];
    uint32_t         id, again;

    (void)state;
    for (uint32_t i = 0; i < 5000; i++) {
        size_t length = (size_t)snprintf(text, sizeof text, "name %u", i);
        assert_true(snd_texts_add(&texts, text, length, &id));
        assert_int_equal(id, i);
    }
    assert_true(snd_texts_add(&texts, "name 4321", 9, &again));
    assert_int_equal(again, 4321);
    assert_string_equal(texts.items[4321].bytes, "name 4321");
    /* A NUL is a byte like any other; the empty text is one. */
    assert_true(snd_texts_add(&texts, "a\0b", 3, &id));
    assert_true(snd_texts_add(&texts, "a\0c", 3, &again));
    assert_int_not_equal(id, again);
    assert_true(snd_texts_add(&texts, "", 0, &id));
    assert_true(snd_texts_add(&texts, "", 0, &again));
    assert_int_equal(id, again);
    assert_int_equal(texts.count, 5003);
    snd_texts_release(&texts);
}

static void arena_gives_aligned_memory(void **state)
{
    struct snd_arena arena = SND_ARENA_INIT;

    (void)state;
    for (size_t i = 1; i < 3000; i += 7) {
        char *taken = snd_arena_take(&arena, i);
        assert_non_null(taken);
        assert_int_equal((uintptr_t)taken % 8, 0);
        memset(taken, (int)i, i);
    }
    assert_non_null(snd_arena_take(&arena, (size_t)3 << 20));
    assert_null(snd_arena_take(&arena, SIZE_MAX));
    assert_string_equal(snd_arena_copy(&arena, "abc", 3), "abc");
    snd_arena_release(&arena);
}

/* There is room for one more, and what was there stays; AddressSanitizer sees what is past the last item of a small array. */
static void arrays_grow(void **state)
{
    uint32_t *items = NULL, room = 0;

    (void)state;
    for (uint32_t i = 0; i < 1000; i++) {
        assert_true(snd_grow(&items, &room, i, sizeof *items));
        assert_true(room > i);
        if (SND_HAS_ASAN && i < 128)
            assert_int_equal(room, i + 1);
        items[i] = i;
    }
    for (uint32_t i = 0; i < 1000; i++)
        assert_int_equal(items[i], i);
    room = UINT32_MAX / 2 + 1;
    assert_false(snd_grow(&items, &room, room, sizeof *items));
    free(items);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(put_get_remove),
        cmocka_unit_test(texts_are_kept_once),
        cmocka_unit_test(arena_gives_aligned_memory),
        cmocka_unit_test(arrays_grow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
