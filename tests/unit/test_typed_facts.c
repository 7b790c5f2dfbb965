/* SPDX-License-Identifier: Apache-2.0 */
/* record/tables/typed_facts.c: facts of any length, as they are read again. */
#include "recorded.h"

#include "format/fields.h"
#include "format/layout.h"
#include "read/reader.h"
#include "read/said/trace_facts.h"

#define PART ((size_t)512) /* members of one record, at most */
#define MOST (2 * PART + 1)
#define SUBJECT "about this"

static const size_t lengths[] = { 0, 1, 2, PART - 1, PART, PART + 1, 2 * PART, MOST };

/* Members that tell their place; `members` may be just so many. */
static void say(uint32_t subject, uint32_t number, size_t count)
{
    struct sonde_fact_member *members = count ? calloc(count, sizeof *members) : NULL;

    assert_true(members || count == 0);
    for (size_t i = 0; i < count; i++)
        members[i] = (struct sonde_fact_member){ SND_FIELD_LAYER_PARAMETER_COUNT, SND_FACT_NUMBER,
                                                 0, 1000 * number + i };
    sonde_fact(SND_FACT_OF_LAYER, subject, number, members, count);
    free(members);
}

static void a_fact_of_any_length_is_whole(void **state)
{
    struct sonde_options   options = recorded_options("facts");
    const struct snd_fact *fact;
    uint32_t               at = 0;
    size_t                 seen[sizeof lengths / sizeof lengths[0]] = { 0 };
    bool                   told[sizeof lengths / sizeof lengths[0]] = { false };

    (void)state;
    say(0, 0, 1); /* nothing records: nothing happens */
    recorded_start(&options);
    for (uint32_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
        say(sonde_intern(SUBJECT, strlen(SUBJECT)), i, lengths[i]);
    recorded_stop();
    struct sonde_trace *trace = recorded_open("facts");
    while ((fact = snd_fact_next(trace, 0, SND_FACT_OF_LAYER, &at))) {
        assert_true(fact->number < sizeof lengths / sizeof lengths[0]);
        assert_true(snd_text_is(fact->subject, SUBJECT));
        told[fact->number] = true;
        for (uint32_t i = 0; i < fact->count; i++) {
            assert_int_equal(fact->values[i].field, SND_FIELD_LAYER_PARAMETER_COUNT);
            assert_int_equal(fact->values[i].number, 1000 * fact->number + seen[fact->number]++);
        }
    }
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        assert_true(told[i]);
        assert_int_equal(seen[i], lengths[i]);
    }
    assert_int_equal(recorded_ledger(trace, "lost_names"), 0);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(a_fact_of_any_length_is_whole) };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
