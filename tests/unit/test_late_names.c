/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A flight recorder of a program whose probes never stop interning names: what is left of their events has
 * its names, stacks and tensor lists, though the tables of the trace are full.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "format/fields.h"
#include "format/layout.h"
#include "read/reader.h"
#include "sonde/layers.h"
#include "unit/recorded.h"

#define THREADS 3
#define ROUNDS 3000u /* a thread */
#define LEVELS 3
#define LIMIT ((uint64_t)1 << 20)
#define TAIL "a long tail of words that no single event of forty-eight bytes holds"

static uint32_t intern(const char *what, unsigned thread, unsigned i)
{
    char text[200];

    snprintf(text, sizeof text, "%s %u %u%s", what, thread, i, i % 7 ? "" : TAIL);
    return sonde_intern(text, strlen(text));
}

static uint32_t stack_of(unsigned thread, unsigned i)
{
    uint32_t stack = 0;

    for (unsigned level = 0; level < LEVELS; level++)
        stack = sonde_intern_stack(stack, sonde_intern_frame_in(intern("level", level, i), level,
                                                                intern("file", thread, 0), i));
    return stack;
}

static void one_round(unsigned thread, unsigned i, uint32_t early)
{
    const int64_t        dims[2] = { thread, i };
    struct sonde_tensor  tensor = { SONDE_ARG_TENSOR, SONDE_FLOAT32, 2, dims };
    uint32_t             shapes = sonde_intern_shapes(&tensor, 1), stack = stack_of(thread, i);
    struct sonde_op_call call = { .struct_size = sizeof call,
                                  .name = intern("call", thread, i),
                                  .stack = stack };
    uint64_t             now = sonde_clock();

    sonde_begin_id(intern("range", thread, i), shapes);
    sonde_begin_call(sonde_intern_call(&call), 0);
    sonde_begin_id(early, 0);
    sonde_end();
    sonde_end();
    sonde_attr(SONDE_ATTR_MODULE, intern("module", thread, i));
    sonde_end();
    sonde_sample(&(struct sonde_sample){ .struct_size = sizeof(struct sonde_sample),
                                         .stack = stack,
                                         .state = SONDE_SAMPLED_ON_CPU });
    sonde_function_call(&(struct sonde_function_call){
        .struct_size = sizeof(struct sonde_function_call),
        .frame = sonde_intern_frame(intern("function", thread, i), 0, i),
        .start = now,
        .end = sonde_clock(),
        .id = i + 1 });
    const uint64_t mark = SND_PAIR(intern("mark", thread, i), stack);
    assert_true(sonde_put(SND_EV_MARK, &mark, 1));
}

static void *work(void *argument)
{
    unsigned thread = *(unsigned *)argument;
    uint32_t early = intern("early", thread, 1); /* cached by the probe */

    for (unsigned i = 0; i < ROUNDS; i++) {
        if (i == ROUNDS / 4) /* the tables are full by then; used to the end */
            early = intern("early", thread, 2);
        one_round(thread, i, early);
    }
    return NULL;
}

/* Of names and a shape that are new now. */
static void say_facts(void)
{
    const int64_t            dims[2] = { 99, ROUNDS };
    struct sonde_tensor      tensor = { SONDE_ARG_TENSOR, SONDE_FLOAT32, 2, dims };
    struct sonde_fact_member layers[] = {
        { SND_FIELD_LAYERS_MODEL_NAME, SND_FACT_TEXT, intern("model", 9, 7), 0 },
        { SND_FIELD_LAYERS_BATCH_SIZE, SND_FACT_NUMBER, 0, 1 },
        { SND_FIELD_LAYERS_COUNT, SND_FACT_NUMBER, 0, 1 },
    };
    struct sonde_fact_member layer[] = {
        { SND_FIELD_LAYER_NAME, SND_FACT_TEXT, intern("layer", 9, 8), 0 },
        { SND_FIELD_LAYER_IN, SND_FACT_TENSOR, sonde_intern_shapes(&tensor, 1), 64 },
    };

    sonde_fact(SND_FACT_OF_LAYERS, 0, 0, layers, sizeof layers / sizeof layers[0]);
    sonde_fact(SND_FACT_OF_LAYER, 0, 1, layer, sizeof layer / sizeof layer[0]);
}

static void record(const char *name)
{
    struct sonde_options options = recorded_options(name);
    pthread_t            threads[THREADS];
    unsigned             numbers[THREADS];

    options.max_bytes = LIMIT;
    options.limit = SONDE_LIMIT_KEEP_LAST;
    recorded_start(&options);
    for (unsigned i = 0; i < THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, work, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    say_facts();
}

struct seen {
    struct sonde_trace *trace;
    uint64_t            ranges, calls, early, modules, samples, functions, shapes, stacks, marks;
    unsigned            last;
};

/* "what thread number" and, of every seventh, the tail. */
static unsigned check_text(struct sonde_text text, const char *what)
{
    char     copy[256], expected[256];
    unsigned thread = 0, i = 0;

    snprintf(copy, sizeof copy, "%.*s", (int)text.length, text.bytes);
    if (strncmp(copy, what, strlen(what)) != 0 ||
        sscanf(copy + strlen(what), " %u %u", &thread, &i) != 2)
        fail_msg("\"%s\" is no name of a %s", copy, what);
    snprintf(expected, sizeof expected, "%s %u %u%s", what, thread, i, i % 7 ? "" : TAIL);
    assert_string_equal(copy, expected);
    return i;
}

static void check_stack(struct seen *seen, uint32_t process, uint32_t id)
{
    struct sonde_frame frames[LEVELS + 1];

    assert_int_equal(sonde_trace_stack(seen->trace, process, id, frames, LEVELS + 1), LEVELS);
    for (unsigned i = 0; i < LEVELS; i++) {
        assert_int_equal(check_text(frames[i].function, "level"), frames[i].line);
        check_text(frames[i].file, "file");
    }
    seen->stacks++;
}

static void check_range(struct seen *seen, const struct sonde_event *event)
{
    struct sonde_text name = sonde_trace_string(seen->trace, event->process, event->begin.name);
    char              shapes[64], expected[64];

    if (name.length > 4 && memcmp(name.bytes, "call", 4) == 0) {
        check_text(name, "call");
        seen->calls++;
    } else if (name.length > 5 && memcmp(name.bytes, "early", 5) == 0) {
        seen->early += check_text(name, "early") == 2;
    } else {
        unsigned i = check_text(name, "range");
        sonde_trace_shapes(seen->trace, event->process, event->begin.shapes, shapes, sizeof shapes);
        snprintf(expected, sizeof expected, ", %u]]", i);
        assert_non_null(strstr(shapes, expected));
        seen->last = i > seen->last ? i : seen->last;
        seen->ranges++;
    }
}

static void check_attr(struct seen *seen, const struct sonde_event *event)
{
    if (event->attr.key == SONDE_ATTR_STACK)
        check_stack(seen, event->process, (uint32_t)event->attr.value);
    if (event->attr.key != SONDE_ATTR_MODULE)
        return;
    check_text(sonde_trace_string(seen->trace, event->process, (uint32_t)event->attr.value),
               "module");
    seen->modules++;
}

static bool on_event(const struct sonde_event *event, void *user)
{
    struct seen       *seen = user;
    struct sonde_frame frame;

    if (event->kind == SONDE_EVENT_BEGIN) {
        check_range(seen, event);
    } else if (event->kind == SONDE_EVENT_ATTR) {
        check_attr(seen, event);
    } else if (event->kind == SONDE_EVENT_SAMPLE) {
        check_stack(seen, event->process, event->sample.stack);
        seen->samples++;
    } else if (event->kind == SONDE_EVENT_MARK) {
        check_text(sonde_trace_string(seen->trace, event->process, event->mark.name), "mark");
        check_stack(seen, event->process, event->mark.stack);
        seen->marks++;
    } else if (event->kind == SONDE_EVENT_FUNCTION) {
        assert_true(sonde_trace_frame(seen->trace, event->process, event->function.frame, &frame));
        check_text(frame.function, "function");
        seen->functions++;
    }
    return true;
}

/* What was said of layers when the tables were full, with its texts and shapes. */
static void check_facts(struct sonde_trace *trace)
{
    struct sonde_layers *layers;
    struct sonde_error   err;

    if (sonde_layers_new(trace, &layers, &err) != SONDE_OK)
        fail_msg("%s", err.message);
    check_text(sonde_layers_head(layers)->model_name, "model");
    assert_int_equal(sonde_layers_count(layers), 1);
    const struct sonde_layer *layer = sonde_layers_row(layers, 0);
    check_text(layer->name, "layer");
    assert_int_equal(layer->in_count, 1);
    assert_int_equal(layer->in[0].ndim, 2);
    assert_int_equal(layer->in[0].dims[1], ROUNDS);
    sonde_layers_free(layers);
}

static struct seen look(const char *file)
{
    struct seen seen = { .trace = recorded_open(file) };

    recorded_walk(seen.trace, on_event, &seen);
    recorded_check_kept_last(seen.trace);
    check_facts(seen.trace);
    sonde_trace_close(seen.trace);
    assert_int_equal(seen.last, ROUNDS - 1);
    assert_true(seen.ranges > 100 && seen.calls > 100 && seen.early > 100 && seen.modules > 100);
    assert_true(seen.samples > 100 && seen.functions > 100 && seen.marks > 100);
    assert_true(seen.stacks > seen.samples + seen.marks);
    return seen;
}

static void the_last_events_have_what_probes_interned(void **state)
{
    char        from[PATH_MAX];
    struct stat st;

    (void)state;
    record("late.sonde");
    recorded_stop();
    snprintf(from, sizeof from, "%s", recorded_path("late.sonde"));
    assert_int_equal(stat(from, &st), 0);
    assert_true((uint64_t)st.st_size <= LIMIT);
    struct seen seen = look("late.sonde");
    if (sonde_pack(from, recorded_path("packed.sonde"), 0, NULL) == SONDE_OK) {
        struct seen packed = look("packed.sonde");
        assert_int_equal(packed.ranges, seen.ranges);
        assert_int_equal(packed.stacks, seen.stacks);
    }
}

static void so_has_a_process_that_was_killed(void **state)
{
    int   status;
    pid_t child;

    (void)state;
    skip_where_forks_fail();
    recorded_path(""); /* the folder is the parent's to remove */
    child = fork();
    if (child == 0) {
        record("killed.sonde");
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    look("killed.sonde");
}

/* The tally of a frame, with its first word; false if there is none. */
static bool find_tally(const struct sonde_trace *trace, uint64_t word,
                       struct sonde_tally_row *found)
{
    for (uint32_t n = 0; sonde_trace_tally(trace, 0, n, found); n++)
        if (found->words[0] == word)
            return true;
    return false;
}

/*
 * Counters of code whose file, build id or function comes when the tables are full: they are kept, with what was known of the frame
 * before; what was not is lost, and counted, and nothing else stands in its place.
 */
static void counters_of_late_frames_are_kept(void **state)
{
    struct sonde_options   options = recorded_options("tallies.sonde");
    struct sonde_tally_row row;
    struct sonde_frame     frame;

    (void)state;
    options.max_bytes = LIMIT;
    options.limit = SONDE_LIMIT_KEEP_LAST;
    recorded_start(&options);
    uint32_t file = intern("file", 1, 1), id = intern("build", 1, 1);
    for (unsigned i = 0; i < ROUNDS; i++)
        one_round(0, i, file);
    uint32_t  late_id = intern("build", 9, 9), late_file = intern("file", 9, 9);
    uint32_t  all = sonde_intern_address(file, id, 0x1111);
    uint32_t  no_id = sonde_intern_address(file, late_id, 0x2222);
    uint32_t  no_file = sonde_intern_address(late_file, id, 0x3333);
    uint64_t *words[] = { sonde_tally(SONDE_TALLY_LINE, all, 0, 2),
                          sonde_tally(SONDE_TALLY_LINE, no_id, 0, 2),
                          sonde_tally(SONDE_TALLY_LINE, no_file, 0, 2) };
    for (unsigned i = 0; i < 3; i++) {
        assert_non_null(words[i]);
        words[i][0] = 1000001 + i;
    }
    assert_ptr_equal(sonde_tally(SONDE_TALLY_LINE, no_id, 0, 2), words[1]); /* found again */
    recorded_stop();
    struct sonde_trace *trace = recorded_open("tallies.sonde");
    assert_true(find_tally(trace, 1000001, &row));
    assert_true(sonde_trace_frame(trace, 0, row.key, &frame));
    assert_string_equal(frame.function.bytes, "file 1 1+0x1111");
    assert_true(find_tally(trace, 1000002, &row));
    assert_true(sonde_trace_frame(trace, 0, row.key, &frame));
    assert_string_equal(frame.function.bytes, "file 1 1+0x2222");
    assert_int_equal(trace->processes[0].tables.frames[row.key].build_id, 0);
    assert_true(find_tally(trace, 1000003, &row));
    assert_true(sonde_trace_frame(trace, 0, row.key, &frame));
    assert_int_equal(recorded_ledger(trace, "lost_names"), 2);
    sonde_trace_close(trace);
}

/* The next recording has tables, and ids, of its own. */
static void ids_are_of_one_recording(void **state)
{
    struct sonde_options options = recorded_options("next.sonde");

    (void)state;
    recorded_start(&options);
    one_round(0, 1, intern("early", 0, 2));
    recorded_stop();
    struct seen seen = { .trace = recorded_open("next.sonde") };
    recorded_walk(seen.trace, on_event, &seen);
    sonde_trace_close(seen.trace);
    assert_int_equal(seen.ranges + seen.calls + seen.early + seen.samples, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_events_have_what_probes_interned),
        cmocka_unit_test(so_has_a_process_that_was_killed),
        cmocka_unit_test(counters_of_late_frames_are_kept),
        cmocka_unit_test(ids_are_of_one_recording),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
