/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is marked is what is read: every kind of mark, names of every sort, options and errors.
 */
#include "recorded.h"

/* ------------------------------------------------------- one of everything */

#define MOST 64
struct seen {
    struct sonde_event events[MOST];
    size_t             count;
};

static bool keep(const struct sonde_event *event, void *user)
{
    struct seen *seen = user;

    assert_true(seen->count < MOST);
    seen->events[seen->count++] = *event;
    return true;
}

static uint32_t name_of(const struct sonde_event *event)
{
    return event->kind == SONDE_EVENT_BEGIN     ? event->begin.name
           : event->kind == SONDE_EVENT_COUNTER ? event->counter.name
                                                : event->mark.name;
}

/* The number that matters most, of kinds that have one. */
static uint64_t value_of(const struct sonde_event *event)
{
    uint64_t bits = 0;

    if (event->kind == SONDE_EVENT_COUNTER)
        memcpy(&bits, &event->counter.value, sizeof bits);
    return event->kind == SONDE_EVENT_ATTR   ? event->attr.value
           : event->kind == SONDE_EVENT_LINK ? event->link.id
           : event->kind == SONDE_EVENT_STEP ? event->step.number
                                             : bits;
}

static uint64_t size_of(const struct sonde_event *event)
{
    bool is_memory = event->kind == SONDE_EVENT_ALLOC || event->kind == SONDE_EVENT_FREE;

    return is_memory                         ? event->memory.size_bytes
           : event->kind == SONDE_EVENT_LINK ? event->link.arrives
                                             : 0;
}

static void expect_name(struct sonde_trace *trace, const struct sonde_event *event,
                        const char *name)
{
    struct sonde_text text = sonde_trace_string(trace, event->process, name_of(event));

    assert_int_equal(text.length, strlen(name));
    assert_memory_equal(text.bytes, name, text.length);
}

static void mark_one_of_each(void)
{
    static const int64_t dims[] = { 8, 3, 224, 224 };
    struct sonde_tensor  inputs[] = {
         { SONDE_ARG_TENSOR, SONDE_FLOAT32, 4, dims },
         { SONDE_ARG_NONE, SONDE_DTYPE_UNKNOWN, 0, NULL },
         { SONDE_ARG_LIST, SONDE_DTYPE_UNKNOWN, 2, NULL },
         { SONDE_ARG_TENSOR, SONDE_FLOAT16, 1, dims },
         { SONDE_ARG_TENSOR, SONDE_FLOAT16, 2, dims },
         { SONDE_ARG_TENSOR, SONDE_INT64, 0, NULL },
    };
    char block[16];

    SONDE_RANGE("outer");
    sonde_range_shapes(inputs, 6);
    sonde_flops(3e15);
    {
        SONDE_RANGE("inner");
        sonde_flops(12.4);
        sonde_alloc(SONDE_CPU, block, 4096);
        sonde_alloc(sonde_device(SONDE_DEVICE_CUDA, 1), block, 77);
        sonde_free(SONDE_CPU, block, 4096);
    }
    sonde_counter("loss", -0.125);
    sonde_mark("here");
    sonde_link_from(42);
    sonde_link_to(42);
    sonde_step();
}

static void test_one_of_everything(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("all.sonde");

    recorded_start(&options);
    mark_one_of_each();
    recorded_stop();

    struct seen         seen = { .count = 0 };
    struct sonde_trace *trace = recorded_open("all.sonde");
    recorded_walk(trace, keep, &seen);
    const struct {
        enum sonde_event_kind kind;
        const char           *name;
        uint64_t              value, size;
    } expected[] = {
        { SONDE_EVENT_BEGIN, "outer", 0, 0 },
        { SONDE_EVENT_ATTR, NULL, 1, 0 },
        { SONDE_EVENT_ATTR, NULL, 3000000000000000u, 0 },
        { SONDE_EVENT_BEGIN, "inner", 0, 0 },
        { SONDE_EVENT_ATTR, NULL, 12, 0 },
        { SONDE_EVENT_ALLOC, NULL, 0, 4096 },
        { SONDE_EVENT_ALLOC, NULL, 0, 77 },
        { SONDE_EVENT_FREE, NULL, 0, 4096 },
        { SONDE_EVENT_END, NULL, 0, 0 },
        { SONDE_EVENT_COUNTER, "loss", 0xbfc0000000000000u, 0 },
        { SONDE_EVENT_MARK, "here", 0, 0 },
        { SONDE_EVENT_LINK, NULL, 42, 0 },
        { SONDE_EVENT_LINK, NULL, 42, 1 },
        { SONDE_EVENT_STEP, NULL, 0, 0 },
        { SONDE_EVENT_END, NULL, 0, 0 },
    };
    assert_int_equal(seen.count, sizeof expected / sizeof expected[0]);
    for (size_t i = 0; i < seen.count; i++) {
        const struct sonde_event *event = &seen.events[i];
        assert_int_equal(event->kind, expected[i].kind);
        if (expected[i].name)
            expect_name(trace, event, expected[i].name);
        assert_int_equal(value_of(event), expected[i].value);
        assert_int_equal(size_of(event), expected[i].size);
        if (i > 0)
            assert_true(event->time_ns >= seen.events[i - 1].time_ns);
    }
    char text[128];
    sonde_trace_shapes(trace, 0, (uint32_t)seen.events[1].attr.value, text, sizeof text);
    assert_string_equal(text, "[[8, 3, 224, 224], [], [[8], [8, 3]], []]");
    assert_int_equal(seen.events[6].memory.device, 1u << 16 | 1);
    assert_true(sonde_trace_process(trace, 0)->closed);
    assert_int_equal(sonde_trace_process(trace, 0)->pid, getpid());
    assert_true(sonde_trace_process(trace, 0)->range_cost_ns > 0);
    sonde_trace_close(trace);
}

/* ------------------------------------------------------------------- names */

static bool count_begins(const struct sonde_event *event, void *user)
{
    *(uint64_t *)user += event->kind == SONDE_EVENT_BEGIN;
    return true;
}

static void begin_by(const char *name)
{
    sonde_begin(name);
    sonde_end();
}

static void test_names(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("names.sonde");
    char                *huge = malloc(100000);
    char                 changing[] = "one";
    uint64_t             begins = 0;

    memset(huge, 'x', 99999);
    huge[99999] = '\0';
    recorded_start(&options);
    begin_by("plain");
    begin_by("other"); /* the same place, another literal: must not be taken for the first */
    begin_by("quote\" back\\slash\nnew \x01 \xf0\x9f\x9a\x80 \xff");
    begin_by("");
    begin_by(changing);
    memcpy(changing, "two", 3);
    begin_by(changing);
    begin_by(huge);
    for (int i = 0; i < 20000; i++) {
        char name[32];
        snprintf(name, sizeof name, "name %d", i);
        begin_by(name);
    }
    recorded_stop();

    struct sonde_trace *trace = recorded_open("names.sonde");
    const char *const   expected[] = {
          "plain", "other", "quote\" back\\slash\nnew \x01 \xf0\x9f\x9a\x80 \xff", "", "one", "two"
    };
    recorded_walk(trace, count_begins, &begins);
    assert_int_equal(begins, 20007);
    struct sonde_averages *averages;
    assert_int_equal(sonde_averages_new(trace, NULL, &averages, NULL), SONDE_OK);
    assert_int_equal(sonde_averages_count(averages), 20007);
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_string_equal(sonde_averages_row(averages, i)->name.bytes, expected[i]);
    assert_int_equal(sonde_averages_row(averages, 6)->name.length, 65535);
    assert_string_equal(sonde_averages_row(averages, 20006)->name.bytes, "name 19999");
    sonde_averages_free(averages);
    assert_int_equal(recorded_ledger(trace, "cut_names"), 1);
    sonde_trace_close(trace);
    free(huge);
}

/* A program that never stops making names: bounded, counted, and still recorded. */
static void test_endless_names(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("endless.sonde");
    enum { NAMES = 70000 };
    char     name[1100];
    uint64_t begins = 0;

    recorded_start(&options);
    memset(name, 'n', sizeof name);
    for (int i = 0; i < NAMES; i++) {
        snprintf(name + 1000, 100, "%d", i);
        begin_by(name);
    }
    name[0] = 'm'; /* by its number: one more that finds no room */
    sonde_begin_id(sonde_intern(name, strlen(name)), 0);
    sonde_end();
    recorded_stop();
    struct sonde_trace *trace = recorded_open("endless.sonde");
    recorded_walk(trace, count_begins, &begins);
    assert_int_equal(begins, NAMES + 1);
    assert_int_equal(recorded_ledger(trace, "missing_ids"), 0);
    struct sonde_averages *averages;
    uint64_t               nameless = 0;
    assert_int_equal(sonde_averages_new(trace, NULL, &averages, NULL), SONDE_OK);
    for (size_t i = 0; i < sonde_averages_count(averages); i++)
        if (strcmp(sonde_averages_row(averages, i)->name.bytes, "(names lost)") == 0)
            nameless += sonde_averages_row(averages, i)->count;
    assert_true(nameless > 0);
    assert_int_equal(nameless, recorded_ledger(trace, "lost_names"));
    assert_int_equal(sonde_averages_count(averages), NAMES + 2 - nameless);
    sonde_averages_free(averages);
    sonde_trace_close(trace);
}

/* The limit for names that a program makes is not that of stacks and tallies: 800,000 take 80 MB. */
static void test_many_tallies(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("many.sonde");
    enum { TALLIES = 800000 };
    struct sonde_tally_row row;
    uint32_t               stack = 0, found = 0;

    recorded_start(&options);
    for (uint32_t i = 1; i <= TALLIES; i++) {
        uint64_t *words = sonde_tally(SONDE_TALLY_HEAP, i, 0, 8);
        assert_non_null(words);
        words[0] = i;
    }
    stack = sonde_intern_stack(0, sonde_intern_native(sonde_intern("late", 4), 0));
    assert_int_not_equal(stack, 0);
    recorded_stop();
    struct sonde_trace *trace = recorded_open("many.sonde");
    assert_int_equal(recorded_ledger(trace, "lost_names"), 0);
    for (uint32_t n = 0; sonde_trace_tally(trace, 0, n, &row); n++)
        found += row.words[0] == row.key;
    assert_int_equal(found, TALLIES);
    sonde_trace_close(trace);
}

/* Calls for which the table has no room are counted together, as lost; lines are refused. */
static void test_endless_tallies(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("tallies.sonde");
    uint64_t            *before = NULL, lost = 0;

    options.max_bytes = 8 << 20;
    recorded_start(&options);
    for (uint32_t i = 1; i < 1000000 && lost < 10; i++) {
        uint64_t *words = sonde_tally(SONDE_TALLY_CALLS, i, 0, 8);
        assert_non_null(words);
        words[0]++;
        lost = words == before ? words[0] : 0;
        before = words;
    }
    assert_int_equal(lost, 10);
    assert_null(sonde_tally(SONDE_TALLY_LINE, 1, 0, 2));
    sonde_tally(SONDE_TALLY_CALLS, 0, 0, 8)[0]++; /* of a function whose name was lost */
    recorded_stop();
    struct sonde_trace *trace = recorded_open("tallies.sonde");
    assert_int_equal(recorded_ledger(trace, "lost_calls"), 11);
    assert_int_equal(recorded_ledger(trace, "lost_names"), 11);
    sonde_trace_close(trace);
}

/* ----------------------------------------------------------- options, errors */

static void expect_error(const struct sonde_options *options, enum sonde_status status,
                         const char *part)
{
    struct sonde_error err = { 0 };

    assert_int_equal(sonde_start(options, &err), status);
    if (!strstr(err.message, part))
        fail_msg("\"%s\" does not say \"%s\"", err.message, part);
    assert_int_equal(sonde_epoch(), 0);
    begin_by("goes on unrecorded");
}

static void test_errors(void **state)
{
    (void)state;
    struct sonde_error   err = { 0 };
    struct sonde_options options = recorded_options("missing/folder/x.sonde");

    expect_error(&options, SONDE_E_IO, "No such file or directory");
    options.path = "/proc/x.sonde";
    expect_error(&options, SONDE_E_IO, "choose another place");
    options = recorded_options("x.sonde");
    options.limit = SONDE_LIMIT_KEEP_LAST;
    expect_error(&options, SONDE_E_ARGUMENT, "max_bytes");
    options = recorded_options("x.sonde");
    options.max_bytes = 100;
    expect_error(&options, SONDE_E_ARGUMENT, "max_bytes");
    options = recorded_options("x.sonde");
    options.chunk_bytes = 1000;
    expect_error(&options, SONDE_E_ARGUMENT, "chunk_bytes");
    options = recorded_options("x.sonde");
    options.struct_size = 0;
    expect_error(&options, SONDE_E_ARGUMENT, "SONDE_OPTIONS_INIT");
    options.struct_size = sizeof options + 1;
    expect_error(&options, SONDE_E_ARGUMENT, "SONDE_OPTIONS_INIT");
    assert_int_equal(access(recorded_path("x.sonde"), F_OK), -1);

    assert_int_equal(sonde_stop(&err), SONDE_E_STATE);
    options = recorded_options("x.sonde");
    recorded_start(&options);
    assert_int_equal(sonde_start(&options, &err), SONDE_E_BUSY);
    assert_non_null(strstr(err.message, "already recording to"));
    recorded_stop();

    options.overwrite = false;
    expect_error(&options, SONDE_E_IO, "File exists");
    struct stat at;
    assert_int_equal(stat(recorded_path("x.sonde"), &at), 0);
    assert_int_equal(at.st_mode & 0777, 0600);
}

/* Without a recording every mark is nothing, and without a lane none is lost silently. */
static void test_off(void **state)
{
    (void)state;
    mark_one_of_each();
    sonde_pause();
    sonde_resume();
    sonde_metadata("key", "value");
    sonde_thread_name("name");
    assert_int_equal(sonde_intern("x", 1), 0);
    char path[16];
    assert_true(sonde_trace_path(path, sizeof path) < PATH_MAX);
}

static void test_metadata_and_folder(void **state)
{
    (void)state;
    struct sonde_options options = recorded_options("");
    struct sonde_text    key, value;
    char                 path[PATH_MAX];
    bool                 found = false;

    recorded_start(&options);
    assert_true(sonde_trace_path(path, sizeof path) > 0);
    sonde_metadata("model", "resnet");
    sonde_metadata("model", "vit");
    sonde_thread_name("the main one");
    begin_by("x");
    recorded_stop();
    assert_non_null(strstr(path, ".sonde"));

    struct sonde_trace *trace;
    assert_int_equal(sonde_trace_open(path, &trace, NULL), SONDE_OK);
    for (uint32_t n = 0; sonde_trace_metadata(trace, 0, n, &key, &value); n++)
        if (strcmp(key.bytes, "model") == 0) {
            assert_false(found);
            assert_string_equal(value.bytes, "vit");
            found = true;
        }
    assert_true(found);
    assert_string_equal(sonde_trace_thread(trace, 0)->name.bytes, "the main one");
    sonde_trace_close(trace);
}

/* ------------------------------------------------------------------- calls */

struct call_counts {
    uint64_t begins, ends, numbered, scoped;
};

static bool count_calls(const struct sonde_event *event, void *user)
{
    struct call_counts *counts = user;
    bool                is_attr = event->kind == SONDE_EVENT_ATTR;

    counts->begins += event->kind == SONDE_EVENT_BEGIN;
    counts->ends += event->kind == SONDE_EVENT_END;
    counts->numbered += is_attr && event->attr.key == SONDE_ATTR_SEQUENCE &&
                        event->attr.value == 77;
    counts->scoped += is_attr && event->attr.key == SONDE_ATTR_SCOPE && event->attr.value == 2;
    return true;
}

/* A number that changes seldom is told again in each chunk, so that none depends on another. */
/* What a recording says under `key` in one that begins and ends now. */
static const char *said_of_itself(const char *wanted)
{
    static char          text[5000];
    struct sonde_options options = recorded_options("said.sonde");
    struct sonde_text    key, value;

    text[0] = '\0';
    recorded_start(&options);
    sonde_mark("x");
    recorded_stop();
    struct sonde_trace *trace = recorded_open("said.sonde");
    for (uint32_t n = 0; sonde_trace_metadata(trace, 0, n, &key, &value); n++)
        if (key.length == strlen(wanted) && memcmp(key.bytes, wanted, key.length) == 0)
            snprintf(text, sizeof text, "%.*s", (int)value.length, value.bytes);
    sonde_trace_close(trace);
    return text;
}

/* The arguments, or what a person typed for the process that this one is the child of. */
static void test_command_line(void **state)
{
    char   own[4096] = "", typed[64];
    FILE  *file = fopen("/proc/self/cmdline", "r");
    size_t length = file ? fread(own, 1, sizeof own - 1, file) : 0;

    (void)state;
    assert_true(length > 1);
    fclose(file);
    for (size_t i = 0; i + 1 < length; i++)
        own[i] = own[i] ? own[i] : ' ';
    unsetenv("SONDE_TYPED_COMMAND");
    assert_string_equal(said_of_itself("command"), own);
    snprintf(typed, sizeof typed, "%d sonde model net.py", (int)getppid());
    setenv("SONDE_TYPED_COMMAND", typed, 1);
    assert_string_equal(said_of_itself("command"), "sonde model net.py");
    snprintf(typed, sizeof typed, "%d sonde model net.py", (int)getppid() + 1);
    setenv("SONDE_TYPED_COMMAND", typed, 1); /* of another process */
    assert_string_equal(said_of_itself("command"), own);
    snprintf(typed, sizeof typed, "%d", (int)getppid());
    setenv("SONDE_TYPED_COMMAND", typed, 1);
    assert_string_equal(said_of_itself("command"), own);
    unsetenv("SONDE_TYPED_COMMAND");
    assert_string_equal(said_of_itself("machine.roof"), "");
    setenv("SONDE_ROOF", "{\"threads\":2}", 1);
    assert_string_equal(said_of_itself("machine.roof"), "{\"threads\":2}");
    unsetenv("SONDE_ROOF");
}

/* Whatever it names: a range, a thread, a key and a value of metadata, a counter. */
static void test_one_text_has_one_id(void **state)
{
    struct sonde_options options = recorded_options("once.sonde");
    static const char   *once[] = { "same", "(names lost)" };

    (void)state;
    recorded_start(&options);
    for (size_t i = 0; i < 2; i++) {
        sonde_metadata(once[i], once[i]);
        sonde_begin_text(once[i]);
        sonde_end();
        sonde_counter(once[i], 1);
        sonde_thread_name(once[i]);
        assert_int_not_equal(sonde_intern(once[i], strlen(once[i])), 0);
    }
    recorded_stop();
    struct sonde_trace *trace = recorded_open("once.sonde");
    struct sonde_text   lost = sonde_trace_string(trace, 0, 1); /* the first of every recording */
    assert_int_equal(lost.length, strlen(once[1]));
    assert_memory_equal(lost.bytes, once[1], lost.length);
    for (size_t i = 0; i < 2; i++) {
        unsigned found = 0;
        for (uint32_t id = 1; id < 100; id++) {
            struct sonde_text text = sonde_trace_string(trace, 0, id);
            found += text.length == strlen(once[i]) &&
                     memcmp(text.bytes, once[i], text.length) == 0;
        }
        assert_int_equal(found, 1);
    }
    sonde_trace_close(trace);
}

static void test_calls(void **state)
{
    (void)state;
    enum { CALLS = 20000 }; /* over several chunks */
    struct sonde_options options = recorded_options("calls.sonde");

    options.chunk_bytes = 65536;
    recorded_start(&options);
    struct sonde_op_call call = { .struct_size = sizeof call,
                                  .name = sonde_intern("aten::mm", 8),
                                  .has_sequence = 1,
                                  .scope = 2 };
    uint32_t             id = sonde_intern_call(&call);
    assert_int_not_equal(id, 0);
    assert_int_equal(sonde_intern_call(&call), id);
    call.scope = 3;
    assert_int_not_equal(sonde_intern_call(&call), id);
    for (int i = 0; i < CALLS; i++) {
        sonde_begin_call(id, 77);
        sonde_end();
    }
    recorded_stop();
    struct call_counts  counts = { 0, 0, 0, 0 };
    struct sonde_trace *trace = recorded_open("calls.sonde");
    recorded_walk(trace, count_calls, &counts);
    assert_int_equal(counts.begins, CALLS);
    assert_int_equal(counts.ends, CALLS);
    assert_int_equal(counts.numbered, CALLS);
    assert_int_equal(counts.scoped, CALLS);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_of_everything),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_endless_names),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_off),
        cmocka_unit_test(test_metadata_and_folder),
        cmocka_unit_test(test_command_line),
        cmocka_unit_test(test_one_text_has_one_id),
        cmocka_unit_test(test_calls),
        cmocka_unit_test(test_many_tallies),
        cmocka_unit_test(test_endless_tallies),
    };
    return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
