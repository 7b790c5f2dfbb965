/* SPDX-License-Identifier: Apache-2.0 */
/* read/file/source.c: chunks of a packed file are found again after damage of any length. */
#include "format/layout.h"
#include "read/reader.h"
#include "scratch.h"
#include "sonde/pack.h"

static bool count_begins(const struct sonde_event *event, void *user)
{
    *(uint32_t *)user += event->kind == SONDE_EVENT_BEGIN;
    return true;
}

/* Bytes that are none of a chunk, between the header and the first chunk: nothing else is lost. */
static void damage_of_any_length(void **state)
{
    static const size_t lengths[] = { 8, 64, 65528, 65536, 65544, 131064, 131072, 131080, 400000 };
    struct synth       *s = synth_new(scratch_path("whole"), NULL);
    uint32_t            t = synth_thread(s, "main", 0), name = synth_string(s, "range");
    size_t              size;

    (void)state;
    for (uint64_t i = 0; i < 3; i++) {
        synth_begin(s, t, 100 * i, name, 0);
        synth_end(s, t, 100 * i + 50);
        synth_seal(s, t);
    }
    synth_close(s, true);
    if (sonde_pack(scratch_path("whole"), scratch_path("packed"), 1, NULL) == SONDE_E_UNSUPPORTED)
        skip();
    uint8_t *bytes = scratch_load(scratch_path("packed"), &size);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t            *damaged = malloc(size + lengths[i]);
        struct sonde_trace *trace;
        uint32_t            begins = 0;
        assert_non_null(damaged);
        memcpy(damaged, bytes, SND_HEADER_SIZE);
        memset(damaged + SND_HEADER_SIZE, 0xee, lengths[i]);
        memcpy(damaged + SND_HEADER_SIZE + lengths[i], bytes + SND_HEADER_SIZE,
               size - SND_HEADER_SIZE);
        assert_int_equal(snd_trace_open_memory(damaged, size + lengths[i], &trace, NULL), SONDE_OK);
        assert_int_equal(sonde_trace_walk(trace, SONDE_BY_THREAD, count_begins, &begins, NULL),
                         SONDE_OK);
        assert_int_equal(begins, 3);
        assert_int_equal(trace->processes[0].damage.skipped_bytes, lengths[i]);
        sonde_trace_close(trace);
        free(damaged);
    }
    free(bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(damage_of_any_length) };

    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
