/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every view in every form, every export, table and comparison, over traces of chance and over the cases of gen: each as it
 * was, by a digest in tests/data/outputs.txt. What other tests do not look at does not change unseen.
 *
 * A line of that file is an output, with a digest of two letters for each trace; "..": what this build, or this machine, has otherwise.
 * If a line differs and should: SONDE_ACCEPT=1 build/tests/test_outputs writes the file anew, and the change says why.
 * To see what differs: gen CASE t.sonde N and the command, with both builds.
 */
#include <ftw.h>
#include <math.h>
#include <stdbool.h>

#include "base/count_of.h"
#include "base/data/crc32c.h"
#include "base/text/buf.h"
#include "cases.h"
#include "scratch.h"
#include "snd_config.h"
#include "sonde/export.h"
#include "sonde/memory.h"
#include "sonde/tables.h"
#include "turns.h"

#if SND_HAVE_ZLIB
#include <zlib.h>
#endif

enum { TRACES_MAX = 256, OUTPUTS_MAX = 1024, NAME_MAX_BYTES = 64 };

static const struct {
    const char *name;
    uint32_t    from, to; /* N */
} given[] = {
    { "chance", 1, 24 },      { "chance_job", 1, 6 },     { "convnet", 0, 0 },
    { "threads", 0, 0 },      { "thread_switch", 0, 0 },  { "steps", 0, 0 },
    { "slow_steps", 2, 2 },   { "two_processes", 0, 0 },  { "job", 31, 35 },
    { "job_gpu", 0, 1 },      { "unfinished", 0, 0 },     { "left_open", 0, 0 },
    { "losses", 0, 1 },       { "keep_last", 0, 0 },      { "warmup", 0, 0 },
    { "fold", 0, 0 },         { "async", 0, 0 },          { "memory", 0, 0 },
    { "links", 0, 0 },        { "counters", 0, 0 },       { "stacks", 0, 0 },
    { "torch", 0, 0 },        { "op_details", 0, 1 },     { "python", 0, 0 },
    { "python_trace", 0, 0 }, { "calls", 0, 0 },          { "python_random", 1, 2 },
    { "samples", 0, 0 },      { "mixed", 0, 0 },          { "runs", 0, 0 },
    { "native", 0, 0 },       { "layers", 0, 0 },         { "graph", 0, 1 },
    { "bench", 0, 0 },        { "run_counters", 3, 3 },   { "range_counters", 0, 0 },
    { "tensors", 0, 0 },      { "stack_counters", 0, 0 }, { "function_counters", 0, 0 },
    { "roofline", 0, 0 },     { "tensor_lines", 0, 0 },   { "gpu", 0, 0 },
    { "gpu_idle", 0, 0 },     { "gpu_memory", 0, 0 },     { "gpu_lost", 0, 0 },
    { "gpu_overlap", 0, 0 },  { "advice", 63, 64 },       { "heap", 1, 2 },
    { "asked", 0, 1 },        { "variety", 1, 16 },       { "said", 1, 24 },
    { "chance", 101, 108 },   { "chance_job", 34, 35 },   { "variety", 101, 108 },
    { "said", 101, 112 },     { "chance_job", 36, 38 },   { "advice", 0, 2 },
    { "advice", 4, 4 },       { "advice", 8, 8 },         { "advice", 16, 16 },
    { "advice", 32, 32 },     { "advice", 128, 128 },     { "advice", 256, 256 },
    { "advice", 512, 512 },   { "advice", 1024, 1024 },   { "advice", 2048, 2048 },
    { "advice", 4096, 4096 }, { "crossing", 1, 7 },       { "samples_children", 0, 0 },
    { "diff", 0, 4 },         { "diff", 8, 8 },           { "samples_library", 0, 2 },
    { "diff", 16, 16 },       { "diff", 32, 32 },         { "short_records", 0, 0 },
    { "job", 36, 39 },        { "slow_steps", 0, 1 },     { "python_names", 0, 0 },
    { "gaps", 0, 0 },         { "killed", 0, 0 },         { "names", 0, 0 },
    { "labels", 0, 0 },       { "widths", 0, 0 },         { "no_graph", 0, 0 },
    { "gpu_minor", 0, 0 },    { "gpu_absent", 0, 0 },     { "empty", 0, 0 },
    { "unknown", 0, 0 },      { "many_names", 3, 3 },
};

struct output {
    char     name[NAME_MAX_BYTES];
    uint32_t digests[TRACES_MAX];
    bool     known[TRACES_MAX];
};

struct outputs {
    struct output list[OUTPUTS_MAX];
    uint32_t      count, trace_count;
};

static struct outputs found; /* now */

static struct output *find_output(const char *name)
{
    for (uint32_t i = 0; i < found.count; i++)
        if (strcmp(found.list[i].name, name) == 0)
            return &found.list[i];
    return NULL;
}

static void note(const char *kind, const char *name, int form, enum sonde_status status,
                 uint32_t digest)
{
    char whole[NAME_MAX_BYTES];

    snprintf(whole, sizeof whole, "%s %s %d", kind, name, form);
    struct output *output = find_output(whole);
    if (!output) {
        assert_true(found.count < OUTPUTS_MAX);
        output = &found.list[found.count++];
        memcpy(output->name, whole, sizeof whole);
    }
    output->digests[found.trace_count] = (digest + (uint32_t)status) % (64 * 64);
    output->known[found.trace_count] = status != SONDE_E_UNSUPPORTED;
}

static bool add(void *user, const void *data, size_t length)
{
    uint32_t *digest = user;

    *digest = snd_crc32c(*digest, data, length);
    return true;
}

/* ------------------------------------------------------------------------- outputs */

static void try_report(struct sonde_trace *trace, const struct sonde_report_options *options,
                       int form)
{
    uint32_t          digest = 0;
    struct sonde_sink sink = { add, &digest };

    enum sonde_status status = sonde_report(trace, options, &sink, NULL);
    note("report", options->view, form, status, digest);
}

static void try_view(struct sonde_trace *trace, const struct sonde_view_info *view)
{
    for (int format = SONDE_REPORT_TEXT; format <= SONDE_REPORT_COLUMNS; format++) {
        struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
        options.view = view->name;
        options.format = (enum sonde_report_format)format;
        try_report(trace, &options, format);
    }
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    options.view = view->name;
    options.groups = view->groups & ~(unsigned)(SONDE_GROUP_PROCESS | SONDE_GROUP_OVERLOAD);
    options.rows = 3;
    options.width = 80;
    options.colour = options.top_level = options.skip_zero = options.show_all = options.peak = true;
    try_report(trace, &options, 10);
    options.groups = view->groups & (SONDE_GROUP_PROCESS | SONDE_GROUP_OVERLOAD);
    options.ascii = true;
    options.time_unit = SONDE_TIME_US;
    options.stack_depth = 1;
    options.flops = SONDE_FLOPS_TORCH;
    try_report(trace, &options, 11);
    options = (struct sonde_report_options)SONDE_REPORT_OPTIONS_INIT;
    options.view = view->name;
    options.max_name = options.max_source = options.max_shapes = 10;
    options.rows = -1;
    options.width = 40;
    options.time_unit = SONDE_TIME_S;
    options.no_source = true;
    options.gil = strcmp(view->name, "samples") == 0 || strcmp(view->name, "functions") == 0;
    options.at_ns = strcmp(view->name, "heap") == 0 ? 1500 : 0;
    try_report(trace, &options, 12);
}

/* Grouped by each thing that it can be grouped by, alone. */
static void try_groups(struct sonde_trace *trace, const struct sonde_view_info *view)
{
    uint32_t          digest = 0;
    enum sonde_status status = SONDE_OK;
    struct sonde_sink sink = { add, &digest };

    for (unsigned group = 1; group <= view->groups && status == SONDE_OK; group <<= 1) {
        struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
        options.view = view->name;
        options.groups = view->groups & group;
        options.format = SONDE_REPORT_JSON;
        status = sonde_report(trace, &options, &sink, NULL);
    }
    if (view->groups)
        note("report", view->name, 13, status, digest);
}

/* Sorted by each column: those of the view are in the message about one that it has not. */
static void try_sorts(struct sonde_trace *trace, const struct sonde_view_info *view)
{
    static const char           before[] = "; keys: ";
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_error          err = { 0 };
    uint32_t                    digest = 0;
    struct sonde_sink           sink = { add, &digest };

    options.view = view->name;
    options.sort = "of no view";
    enum sonde_status status = sonde_report(trace, &options, &sink, &err);
    char             *rest = strstr(err.message, before);
    if (status != SONDE_E_ARGUMENT || !rest)
        return;
    add(&digest, err.message, strlen(err.message));
    rest += sizeof before - 1;
    while ((options.sort = strtok_r(NULL, ", ", &rest)) != NULL) {
        status = sonde_report(trace, &options, &sink, NULL);
        add(&digest, &status, sizeof status);
    }
    note("report", view->name, 14, SONDE_OK, digest);
}

/* What the trace has, and why it has nothing of the rest. */
static void try_contents(struct sonde_trace *trace)
{
    const struct sonde_view_info *view;
    const char                   *views[SONDE_CONTENT_VIEWS];
    uint32_t                      digest = 0;

    size_t count = sonde_views_with_content(trace, views, SONDE_CONTENT_VIEWS);
    for (size_t i = 0; i < count; i++)
        add(&digest, views[i], strlen(views[i]) + 1);
    add(&digest, sonde_default_view(trace), strlen(sonde_default_view(trace)));
    for (size_t i = 0; (view = sonde_view_info(i)) != NULL; i++) {
        const char *absence = sonde_view_absence(trace, view->name);
        add(&digest, absence ? absence : "", absence ? strlen(absence) + 1 : 1);
    }
    note("trace", "contents", 0, SONDE_OK, digest);
}

static void try_parts(struct sonde_trace *trace)
{
    static const char *const views[] = { "functions", "lines", "samples" };

    for (size_t i = 0; i < SND_COUNT_OF(views); i++)
        for (int part = SONDE_PART_CALLERS; part <= SONDE_PART_SUMMARY; part++) {
            struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
            options.view = views[i];
            options.part = (enum sonde_report_part)part;
            try_report(trace, &options, 20 + part);
        }
}

/* Of what was compressed, if it was: how is zlib's matter. */
static uint32_t digest_of(const struct sonde_buffer *data)
{
#if SND_HAVE_ZLIB
    z_stream      stream = { .next_in = (Bytef *)data->bytes, .avail_in = (uInt)data->length };
    unsigned char piece[4096];
    uint32_t      digest = 0;
    int           state = inflateInit2(&stream, 15 + 32); /* zlib's own format, or gzip's */

    while (state == Z_OK) {
        stream.next_out = piece;
        stream.avail_out = sizeof piece;
        state = inflate(&stream, Z_NO_FLUSH);
        digest = snd_crc32c(digest, piece, sizeof piece - stream.avail_out);
    }
    inflateEnd(&stream);
    if (state == Z_STREAM_END)
        return digest;
#endif
    return snd_crc32c(0, data->bytes, data->length);
}

/* The data of a report page: what is around it is another part of the tree. */
static uint32_t digest_of_page(const struct sonde_buffer *page)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    static const char   mark[] = "id=\"data\">";
    const char         *from = page->bytes ? strstr(page->bytes, mark) : NULL;
    struct sonde_buffer data = { 0 };
    uint32_t            bits = 0;
    unsigned            held = 0;

    if (!from)
        return 0;
    for (from += sizeof mark - 1; *from != '<' && *from != '='; from++) {
        const char *letter = strchr(letters, *from);
        assert_non_null(letter);
        bits = bits << 6 | (uint32_t)(letter - letters);
        held += 6;
        if (held < 8)
            continue;
        held -= 8;
        snd_buf_put(&data, &(char){ (char)(bits >> held) }, 1);
    }
    uint32_t digest = digest_of(&data);
    sonde_buffer_release(&data);
    return digest;
}

static void try_page(struct sonde_trace *trace)
{
    struct sonde_buffer page = { 0 };
    struct sonde_sink   sink = sonde_sink_buffer(&page);
    enum sonde_status   status = sonde_export(trace, "html", NULL, &sink, NULL);

    note("export", "html", 0, status, status == SONDE_OK ? digest_of_page(&page) : 0);
    sonde_buffer_release(&page);
}

static uint32_t folder_digest; /* of files in any order */

static int add_entry(const char *path, const struct stat *is, int kind, struct FTW *walk)
{
    size_t size;

    (void)walk, (void)is;
    if (kind == FTW_F) {
        uint8_t *bytes = scratch_load(path, &size);
        folder_digest += snd_crc32c(0, bytes, size);
        free(bytes);
    }
    return remove(path);
}

static void try_folder(struct sonde_trace *trace, const char *format, int form)
{
    const char *folder = scratch_path("folder");

    folder_digest = 0;
    enum sonde_status status = sonde_export_folder(trace, format, NULL, folder, NULL);
    nftw(folder, add_entry, 8, FTW_DEPTH | FTW_PHYS);
    note("export", format, form, status, folder_digest);
}

/* Plain, and with each option that some format takes; the others say so. */
static void try_export(struct sonde_trace *trace, const char *format)
{
    static const char *const           left_out[] = { "cpu_op", "gpu_memcpy", NULL };
    static const char *const           metadata[] = { "mine", "[1]", NULL };
    static const enum sonde_heap_bytes heaps[10] = {
        [1] = SONDE_HEAP_LEAKED, [5] = SONDE_HEAP_PEAK, [6] = SONDE_HEAP_ALLOCATED
    };
    const int forms = strcmp(format, "chrome") == 0 ? 10 : 8;

    for (int form = 0; form < forms; form++) {
        struct sonde_export_options options = SONDE_EXPORT_OPTIONS_INIT;
        struct sonde_buffer         data = { 0 };
        struct sonde_sink           sink = sonde_sink_buffer(&data);
        options.heap = heaps[form];
        options.gil = form == 2;
        options.off_cpu = form == 3;
        options.levels = form == 4 ? SONDE_LEVEL_LAYER | SONDE_LEVEL_OP : 0;
        options.counter = form == 7 ? "all" : NULL;
        if (form == 8) {
            options.left_out = left_out;
            options.metadata = metadata;
            options.name = "a trace";
        }
        options.gzip = form == 9;
        enum sonde_status status = sonde_export(trace, format, &options, &sink, NULL);
        if (form == 0 || status != SONDE_E_ARGUMENT)
            note("export", format, form, status, digest_of(&data));
        sonde_buffer_release(&data);
    }
}

static void try_exports(struct sonde_trace *trace)
{
    const struct sonde_exporter_info *exporter;

    for (size_t i = 0; (exporter = sonde_exporter_info(i)) != NULL; i++) {
        if (strcmp(exporter->name, "html") == 0)
            try_page(trace);
        else if (sonde_exporter_is_folder(exporter->name))
            try_folder(trace, exporter->name, 0);
        else
            try_export(trace, exporter->name);
    }
}

static uint32_t digest_of_column(const struct sonde_table        *table,
                                 const struct sonde_table_column *column)
{
    size_t   rows = sonde_table_row_count(table);
    uint32_t digest = snd_crc32c(0, column->name, strlen(column->name));

    for (size_t i = 0; i < rows; i++) {
        bool valid = !column->valid ? column->null_count == 0 : column->valid[i / 8] >> i % 8 & 1;
        digest = snd_crc32c(digest, &valid, sizeof valid);
        if (!valid)
            continue;
        if (column->type == SONDE_COLUMN_TEXT) {
            struct sonde_text text = sonde_table_text(table, ((const uint32_t *)column->data)[i]);
            digest = snd_crc32c(digest, text.bytes, text.length);
        } else {
            digest = snd_crc32c(digest, (const int64_t *)column->data + i, sizeof(int64_t));
        }
    }
    return digest;
}

static void try_tables(struct sonde_trace *trace)
{
    const struct sonde_table_column *column;
    const char                      *name;

    for (size_t i = 0; (name = sonde_table_name(i)) != NULL; i++) {
        struct sonde_table *table;
        uint32_t            digest = 0;
        enum sonde_status   status = sonde_table_new(trace, name, &table, NULL);
        for (size_t k = 0; status == SONDE_OK && (column = sonde_table_column(table, k)) != NULL;
             k++)
            digest = digest * 31 + digest_of_column(table, column);
        note("table", name, 0, status, digest);
        sonde_table_free(status == SONDE_OK ? table : NULL);
    }
}

/* torch's tables of averages, with the columns that are asked for. */
static void try_averages(struct sonde_trace *trace)
{
    static const struct {
        unsigned    groups, columns;
        const char *sort;
    } asked[] = {
        { 0, 0, NULL },
        { SONDE_GROUP_SHAPE, SONDE_TABLE_MEMORY | SONDE_TABLE_FLOPS, "self_cpu_time_total" },
        { SONDE_GROUP_STACK | SONDE_GROUP_MODULE, SONDE_TABLE_MEMORY, "cpu_time_total" },
        { SONDE_GROUP_THREAD | SONDE_GROUP_STEP, SONDE_TABLE_FLOPS, "count" },
    };

    for (size_t i = 0; i < SND_COUNT_OF(asked); i++) {
        struct sonde_averages_options options = { .struct_size = sizeof options,
                                                  .groups = asked[i].groups };
        struct sonde_report_options   shown = SONDE_REPORT_OPTIONS_INIT;
        struct sonde_averages        *averages;
        uint32_t                      digest = 0;
        struct sonde_sink             sink = { add, &digest };
        shown.sort = asked[i].sort;
        shown.top_level = i == 2;
        shown.max_name = shown.max_source = i % 2 ? 12 : 55;
        shown.header = i ? NULL : "averages";
        assert_int_equal(sonde_averages_new(trace, &options, &averages, NULL), SONDE_OK);
        enum sonde_status status = sonde_averages_table(trace, averages, &shown, asked[i].columns,
                                                        &sink, NULL);
        note("averages", "table", (int)i, status, digest);
        sonde_averages_free(averages);
    }
}

/* All that is known of each event, column by column; texts as they read. */
static uint32_t digest_of_events(const struct sonde_events *events)
{
    const struct sonde_events_columns *c = sonde_events_columns(events);
    const uint32_t *const              texts[] = { c->name,      c->trace_name, c->overload,
                                                   c->arguments, c->keywords,   c->module };
    const struct {
        const void *column;
        size_t      size;
    } plain[] = {
        { c->process, 4 },        { c->thread, 4 },         { c->torch_thread, 4 },
        { c->start_ns, 8 },       { c->end_ns, 8 },         { c->self_ns, 8 },
        { c->parent, 4 },         { c->shapes, 4 },         { c->strides, 4 },
        { c->stack, 4 },          { c->sequence, 8 },       { c->fwd_thread, 4 },
        { c->python_id, 4 },      { c->python_parent, 4 },  { c->python_module, 4 },
        { c->scope, 1 },          { c->flags, 1 },          { c->flops, 8 },
        { c->macs, 8 },           { c->moved_bytes, 8 },    { c->cpu_bytes, 8 },
        { c->self_cpu_bytes, 8 }, { c->device_bytes, 8 },   { c->self_device_bytes, 8 },
        { c->device_ns, 8 },      { c->self_device_ns, 8 }, { c->device, 4 },
        { c->stream, 4 },         { c->correlation, 4 },    { c->function, 4 },
        { c->owner, 4 },          { c->work_kind, 4 },
    };
    uint32_t digest = snd_crc32c(0, &c->uses_gpu, sizeof c->uses_gpu);

    for (size_t i = 0; i < SND_COUNT_OF(plain); i++)
        digest = snd_crc32c(digest, plain[i].column, c->count * plain[i].size);
    for (size_t i = 0; i < SND_COUNT_OF(texts); i++)
        for (size_t k = 0; k < c->count; k++) {
            struct sonde_text text = sonde_events_text(events, texts[i][k]);
            digest = snd_crc32c(digest, text.bytes, text.length);
        }
    return digest;
}

static void try_events(struct sonde_trace *trace)
{
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_events        *events;
    struct sonde_timeline      *timeline;
    uint32_t                    digests[3] = { 0 };
    struct sonde_sink           sinks[3] = { { add, &digests[0] },
                                             { add, &digests[1] },
                                             { add, &digests[2] } };

    assert_int_equal(sonde_events_new(trace, NULL, &events, NULL), SONDE_OK);
    enum sonde_status table = sonde_events_table(trace, events, &options,
                                                 SONDE_TABLE_MEMORY | SONDE_TABLE_FLOPS, &sinks[0],
                                                 NULL);
    enum sonde_status cpu = sonde_events_stacks(trace, events, "self_cpu_time_total", &sinks[1],
                                                NULL);
    enum sonde_status cuda = sonde_events_stacks(trace, events, "self_cuda_time_total", &sinks[2],
                                                 NULL);
    note("events", "table", 0, table, digests[0]);
    note("events", "stacks", 0, cpu, digests[1]);
    note("events", "stacks", 1, cuda, digests[2]);
    note("events", "columns", 0, SONDE_OK, digest_of_events(events));
    sonde_events_free(events);
    for (uint32_t type = 0; type < 2; type++) {
        assert_int_equal(sonde_timeline_new(trace, type, SONDE_NONE, &timeline, NULL), SONDE_OK);
        for (int format = SONDE_TIMELINE_JSON; format <= SONDE_TIMELINE_HTML; format++) {
            uint32_t          digest = 0;
            struct sonde_sink sink = { add, &digest };
            enum sonde_status status = sonde_timeline_write(trace, timeline,
                                                            (enum sonde_timeline_format)format,
                                                            false, &sink, NULL);
            note("timeline", type ? "cuda" : "cpu", format, status, digest);
        }
        sonde_timeline_free(timeline);
    }
}

/* The same rows in batches, of every column. */
static void try_scans(struct sonde_trace *trace)
{
    const struct sonde_table_column *column;
    const char                      *name;

    for (size_t i = 0; (name = sonde_table_name(i)) != NULL; i++) {
        struct sonde_table_scan *scan;
        struct sonde_table      *batch = NULL;
        uint32_t                 digest = 0;
        enum sonde_status        status = sonde_table_scan_new(trace, name, NULL, &scan, NULL);
        while (status == SONDE_OK &&
               (status = sonde_table_scan_next(scan, &batch, NULL)) == SONDE_OK && batch) {
            for (size_t k = 0; (column = sonde_table_column(batch, k)) != NULL; k++)
                digest = digest * 31 + digest_of_column(batch, column);
            sonde_table_free(batch);
        }
        note("scan", name, 0, status, digest);
        sonde_table_scan_free(scan);
    }
}

/* What a check of the file counts; and what the packed one, read again, has as operators and events: no
 * format that states the size of the file, which is another by each version of the compressor. */
static void try_packed(const char *file)
{
    struct sonde_check  found_in;
    const char         *packed = scratch_path("packed");
    uint32_t            digests[2] = { 0 };
    enum sonde_status   status = sonde_check(file, &found_in, NULL);
    struct sonde_trace *trace;

    const uint64_t counts[] = { found_in.files,   found_in.chunks,         found_in.events,
                                found_in.records, found_in.damaged_chunks, found_in.unknown_events,
                                found_in.closed };
    note("file", "check", 0, status, snd_crc32c(0, counts, sizeof counts));
    status = sonde_pack(file, packed, 1, NULL);
    if (status == SONDE_OK) {
        struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
        const struct sonde_sink     sinks[] = { { add, &digests[0] }, { add, &digests[1] } };
        trace = scratch_open(packed);
        assert_int_equal(sonde_report(trace, &options, &sinks[0], NULL), SONDE_OK);
        assert_int_equal(sonde_export(trace, "chrome", NULL, &sinks[1], NULL), SONDE_OK);
        sonde_trace_close(trace);
        nftw(packed, add_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
    note("packed", "ops", 0, status, digests[0]);
    note("packed", "chrome", 0, status, digests[1]);
}

/* The same comparison as columns, sorted, cut off; of how many rows each condition holds; how closely it is known. */
static void try_conditions(struct sonde_trace *const *traces, struct sonde_diff_options *diff)
{
    static const char *const    conditions[] = { "time>0%",     "time<0%",   "step>1%",
                                                 "memory>1%",   "memory<1%", "count>0%,time>1%",
                                                 "count<-100%", "flops>1%",  "of nothing>1%" };
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    uint32_t                    digest = 0;
    struct sonde_sink           sink = { add, &digest };
    size_t                      failed = 0;
    double                      margin = 0;

    diff->least_percent = 0;
    options.format = SONDE_REPORT_COLUMNS;
    options.rows = 2;
    for (size_t i = 0; i < SND_COUNT_OF(conditions); i++) {
        diff->fail_if = conditions[i];
        enum sonde_status status = sonde_diff(traces, 2, 1, diff, &options, &sink, &failed, NULL);
        add(&digest, &status, sizeof status);
        add(&digest, &failed, sizeof failed);
    }
    diff->fail_if = NULL;
    enum sonde_status status = sonde_diff_margin(traces, 2, 1, diff, &margin, NULL);
    if (status == SONDE_OK && margin < 1e9)
        add(&digest, &(int64_t){ llround(1000 * margin) }, sizeof(int64_t));
    note("diff", diff->by, 1, status, digest);
}

/* With the trace before it, as two runs of A and one of B. */
static void try_diff(struct sonde_trace *trace, struct sonde_trace *before)
{
    struct sonde_trace *const traces[] = { before, trace, before };
    const char               *source;

    for (size_t i = 0; (source = sonde_diff_source(i)) != NULL; i++) {
        struct sonde_diff_options   diff = SONDE_DIFF_OPTIONS_INIT;
        struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
        uint32_t                    digest = 0;
        struct sonde_sink           sink = { add, &digest };
        size_t                      failed = 0;
        diff.by = source;
        diff.fail_if = "time>+5%";
        options.format = i % 2 ? SONDE_REPORT_JSON : SONDE_REPORT_TEXT;
        enum sonde_status status = sonde_diff(traces, 2, 1, &diff, &options, &sink, &failed, NULL);
        note("diff", source, 0, status, digest + (uint32_t)failed);
        if (status == SONDE_OK)
            try_conditions(traces, &diff);
    }
}

static void try_trace(const char *name, uint32_t n, struct sonde_trace **before)
{
    const struct sonde_view_info *view;
    char                          file[NAME_MAX_BYTES];

    assert_true(found.trace_count < TRACES_MAX);
    if (turns_leave_out(found.trace_count, 1)) {
        found.trace_count++;
        return;
    }
    snprintf(file, sizeof file, "%s-%u.sonde", name, (unsigned)n);
    assert_true(make_case(name, scratch_path(file), n));
    struct sonde_trace *trace = scratch_open(scratch_path(file));
    for (size_t i = 0; (view = sonde_view_info(i)) != NULL; i++)
        try_view(trace, view);
    try_contents(trace);
    for (size_t i = 0; (view = sonde_view_info(i)) != NULL; i++) {
        try_groups(trace, view);
        if (found.trace_count % 4 == 0)
            try_sorts(trace, view);
    }
    try_parts(trace);
    try_exports(trace);
    try_folder(trace, "chrome", 20);
    try_tables(trace);
    try_scans(trace);
    try_packed(scratch_path(file));
    try_events(trace);
    try_averages(trace);
    if (!turns_are_fewer()) /* where the one before it is another */
        try_diff(trace, *before ? *before : trace);
    found.trace_count++;
    sonde_trace_close(*before);
    *before = trace;
}

/* ------------------------------------------------------------------- what was expected */

static const char *path_of_digests(void)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/outputs.txt", getenv("SONDE_TEST_DATA"));
    return path;
}

/* The digest of an output, of the `k`th trace. */
static const char *letters_of(const struct output *output, uint32_t k)
{
    static const char letters[] =
        "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-";
    static char two[2];

    if (!output->known[k])
        return "..";
    two[0] = letters[output->digests[k] / 64];
    two[1] = letters[output->digests[k] % 64];
    return two;
}

static void accept(void)
{
    FILE *file = fopen(path_of_digests(), "w");

    assert_non_null(file);
    for (uint32_t i = 0; i < found.count; i++) {
        fprintf(file, "%s: ", found.list[i].name);
        for (uint32_t k = 0; k < found.trace_count; k++)
            fwrite(letters_of(&found.list[i], k), 1, 2, file);
        fputc('\n', file);
    }
    assert_int_equal(fclose(file), 0);
}

static const char *name_of_trace(uint32_t number, uint32_t *n)
{
    for (size_t i = 0; i < SND_COUNT_OF(given); i++) {
        *n = given[i].from + number;
        if (*n <= given[i].to)
            return given[i].name;
        number -= given[i].to - given[i].from + 1;
    }
    return "?";
}

/* How many digests of the line are not those that were found. */
static uint32_t compare_line(char *line)
{
    char                *rest, *name = strtok_r(line, ":", &rest);
    uint32_t             wrong = 0, n;
    const struct output *output = find_output(name);

    if (!output)
        return 0; /* this build has no such output, or no trace that it is tried with here */
    assert_int_equal(strlen(rest), 1 + 2 * found.trace_count + 1); /* a space, and the line's end */
    for (uint32_t k = 0; k < found.trace_count; k++) {
        const char *letters = &rest[1 + 2 * k];
        if (!output->known[k] || letters[0] == '.' ||
            memcmp(letters, letters_of(output, k), 2) == 0)
            continue;
        const char *trace = name_of_trace(k, &n);
        print_error("%s: differs, of %s %u\n", name, trace, (unsigned)n);
        wrong++;
    }
    return wrong;
}

static void outputs_are_as_they_were(void **state)
{
    static char         line[16384];
    struct sonde_trace *before = NULL;
    uint32_t            wrong = 0, lines = 0;

    (void)state;
    for (size_t i = 0; i < SND_COUNT_OF(given); i++)
        for (uint32_t n = given[i].from; n <= given[i].to; n++)
            try_trace(given[i].name, n, &before);
    sonde_trace_close(before);
    if (getenv("SONDE_ACCEPT"))
        accept();
    FILE *file = fopen(path_of_digests(), "r");
    assert_non_null(file);
    for (; fgets(line, sizeof line, file); lines++)
        wrong += compare_line(line);
    fclose(file);
    assert_true(lines >= found.count); /* each is in the file */
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(outputs_are_as_they_were, scratch_remove),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
