/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tests/gpu/works.c - what GPUs did in a trace, a line of JSON each, with the call that asked for it and
 * the range that this lies in; then the calls of the API; last the tally. For comparisons in tests.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/layout.h"
#include "read/walk/device_work.h"

enum { THREADS = 4096, DEPTH = 512, CALLS = 1 << 22 };

struct open {
    uint32_t name;
    uint64_t key;
};
static struct {
    struct open open[DEPTH];
    uint32_t    depth;
} threads[THREADS];
static struct call {
    uint32_t correlation, api, parent, process, function;
    bool     is_driver;
} * calls;
static size_t call_count;

static void close_at(uint32_t thread, uint32_t place)
{
    struct open *open = threads[thread].open;

    memmove(open + place, open + place + 1, (threads[thread].depth - place - 1) * sizeof *open);
    threads[thread].depth--;
}

static void close_key(uint64_t key)
{
    for (uint32_t thread = 0; thread < THREADS; thread++)
        for (uint32_t i = threads[thread].depth; i-- > 0;)
            if (threads[thread].open[i].key == key) {
                close_at(thread, i);
                return;
            }
}

static void attribute(const struct sonde_event *event)
{
    uint32_t     depth = threads[event->thread].depth;
    struct open *open = threads[event->thread].open;

    if (depth == 0)
        return;
    if (event->attr.key == SND_ATTR_KEY)
        open[depth - 1].key = event->attr.value;
    if (event->attr.key == SND_ATTR_API && call_count < CALLS)
        calls[call_count++] = (struct call){
            SND_API_CORRELATION(event->attr.value), open[depth - 1].name,
            depth > 1 ? open[depth - 2].name : 0,   event->process,
            SND_API_FUNCTION(event->attr.value),    SND_API_IS_DRIVER(event->attr.value)
        };
}

static bool on_event(const struct sonde_event *event, void *user)
{
    uint32_t depth = event->thread < THREADS ? threads[event->thread].depth : DEPTH;

    (void)user;
    if (event->kind == SONDE_EVENT_BEGIN && depth < DEPTH)
        threads[event->thread].open[threads[event->thread].depth++] =
            (struct open){ event->begin.name, 0 };
    else if (event->kind == SONDE_EVENT_END && depth > 0)
        threads[event->thread].depth--;
    else if (event->kind == SONDE_EVENT_END_AT && event->end_at.inner < depth)
        close_at(event->thread, depth - 1 - event->end_at.inner);
    else if (event->kind == SONDE_EVENT_END_KEY)
        close_key(event->end_key.key);
    else if (event->kind == SONDE_EVENT_ATTR)
        attribute(event);
    return true;
}

static int by_correlation(const void *one, const void *other)
{
    const struct call *a = one, *b = other;

    return (a->correlation > b->correlation) - (a->correlation < b->correlation);
}

static void print_text(const char *key, const struct sonde_trace *trace, uint32_t process,
                       uint32_t id)
{
    struct sonde_text text = id ? sonde_trace_string(trace, process, id) : (struct sonde_text){ 0 };

    printf(", \"%s\": \"", key);
    for (size_t i = 0; i < text.length; i++)
        printf(text.bytes[i] == '"' || text.bytes[i] == '\\' ? "\\%c" : "%c", text.bytes[i]);
    printf("\"");
}

static void print_item(const struct sonde_trace *trace, const struct snd_device_item *item)
{
    const struct snd_work_record  *work = snd_device_work(trace, item);
    const struct snd_queue_record *queue = snd_device_queue(trace, item);
    struct call                    wanted = { .correlation = item->correlation };
    const struct call *call = bsearch(&wanted, calls, call_count, sizeof *calls, by_correlation);

    printf("{\"kind\": %u, \"start\": %" PRId64 ", \"ns\": %" PRId64 ", \"correlation\": %u, "
           "\"node\": %" PRIu64,
           work->kind, item->start_ns, item->duration_ns, item->correlation, item->node);
    print_text("name", trace, item->process, work->name);
    printf(", \"grid\": [%u, %u, %u], \"block\": [%u, %u, %u], \"registers\": %u, \"shared\": %u, "
           "\"bytes\": %" PRIu64,
           work->grid[0], work->grid[1], work->grid[2], work->block[0], work->block[1],
           work->block[2], work->registers, work->shared_static + work->shared_dynamic,
           work->bytes);
    if (queue)
        printf(", \"device\": %u, \"context\": %u, \"stream\": %u", queue->device & 0xffff,
               queue->context, queue->stream);
    print_text("call", trace, item->process, call ? call->api : 0);
    print_text("parent", trace, item->process, call ? call->parent : 0);
    printf("}\n");
}

static void print_calls(const struct sonde_trace *trace)
{
    for (size_t i = 0; i < call_count; i++) {
        printf("{\"correlation\": %u, \"function\": %u, \"driver\": %s", calls[i].correlation,
               calls[i].function, calls[i].is_driver ? "true" : "false");
        print_text("api", trace, calls[i].process, calls[i].api);
        print_text("parent", trace, calls[i].process, calls[i].parent);
        printf("}\n");
    }
}

static void print_tally(const struct sonde_trace *trace)
{
    struct sonde_tally_row row;
    uint64_t               words[SND_GPU_WORDS] = { 0 };

    for (uint32_t process = 0; process < sonde_trace_process_count(trace); process++)
        for (uint32_t n = 0; sonde_trace_tally(trace, process, n, &row); n++)
            for (uint32_t i = 0; row.kind == SND_TALLY_GPU && i < SND_GPU_WORDS; i++)
                words[i] += row.words[i];
    printf("{\"tally\": {\"records\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"unknown\": %" PRIu64
           ", \"buffers\": %" PRIu64 ", \"parse_ns\": %" PRIu64 ", \"early\": %" PRIu64
           ", \"early_ns\": %" PRIu64 ", \"unasked\": %" PRIu64 "}}\n",
           words[SND_GPU_RECORDS], words[SND_GPU_DROPPED], words[SND_GPU_UNKNOWN],
           words[SND_GPU_BUFFERS], words[SND_GPU_PARSE_NS], words[SND_GPU_EARLY],
           words[SND_GPU_EARLY_NS], words[SND_GPU_UNASKED]);
}

int main(int argc, char **argv)
{
    struct sonde_trace       *trace;
    struct sonde_error        err;
    const struct snd_devices *devices;

    calls = calloc(CALLS, sizeof *calls);
    if (argc != 2 || !calls || sonde_trace_open(argv[1], &trace, &err) != SONDE_OK ||
        sonde_trace_walk(trace, SONDE_BY_THREAD, on_event, NULL, &err) != SONDE_OK ||
        snd_trace_devices_by_time(trace, &devices, &err) != SONDE_OK) {
        fprintf(stderr, "works: %s\n", argc == 2 ? err.message : "usage: works TRACE");
        return 1;
    }
    qsort(calls, call_count, sizeof *calls, by_correlation);
    for (uint32_t i = 0; devices && i < devices->count; i++)
        print_item(trace, &devices->items[devices->by_time[i]]);
    print_calls(trace);
    print_tally(trace);
    sonde_trace_close(trace);
    free(calls);
    return 0;
}
