/* SPDX-License-Identifier: Apache-2.0 */
/* import/map/file_members.c - what a file says beside its events; declared in importer.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/count_of.h"
#include "base/data/hash.h"
#include "base/text/buf.h"
#include "format/metadata.h"
#include "import/map/importer.h"

#define VALUE_MOST 4096 /* bytes of a member that are kept */

static const char *const options[] = { "record_shapes", "profile_memory", "with_stack",
                                       "with_flops", "with_modules" };
static const char *const versions[] = { "cuda_driver_version", "cuda_runtime_version",
                                        "cupti_version" };

/* ------------------------------------------------------------------------- members */

static void read_distributed(struct snd_importer *im, struct snd_span object)
{
    const char *at = object.at + 1, *end = object.at + object.length;
    bool        odd = false;

    while (object.length > 2 && object.at[0] == '{') {
        struct snd_span key, value;
        uint64_t        number;
        at = snd_scan_member(at, end, &key, &value, &odd);
        if (!at || at == SND_SCAN_BAD || !key.at)
            return;
        if (!snd_scan_uint(value, &number) || number >= UINT32_MAX)
            continue;
        if (snd_span_is(key, "rank", 4))
            im->rank = (uint32_t)number;
        if (snd_span_is(key, "world_size", 10))
            im->world_size = (uint32_t)number;
    }
}

/* Whether sonde itself goes by metadata of this key: what another program calls so is not that. */
static bool is_ours(const char *key)
{
    for (unsigned i = 0; i < SND_META_COUNT; i++) {
        const char *known = snd_meta_key((enum snd_meta)i);
        if (strncmp(key, known, strlen(known)) == 0)
            return true;
    }
    return false;
}

/* sonde's own exports say in "metadata" what the trace had: [{"pid": .., "key": .., "value": ..}, ..]. */
static void read_metadata(struct snd_importer *im, struct snd_span list)
{
    const char *at = list.at + 1, *end = list.at + list.length;
    bool        odd = false;

    while (list.length > 2 && list.at[0] == '[' && at < end) {
        struct snd_span object, key, value, name = { 0 }, text = { 0 };
        at = snd_scan_element(at, end, &object, &odd);
        if (!at || at == SND_SCAN_BAD || object.length == 0)
            return;
        if (object.at[0] != '{')
            continue;
        const char *inner = object.at + 1, *inner_end = object.at + object.length;
        while ((inner = snd_scan_member(inner, inner_end, &key, &value, &odd)) &&
               inner != SND_SCAN_BAD && key.at) {
            if (snd_span_is(key, "key", 3))
                name = value;
            if (snd_span_is(key, "value", 5))
                text = value;
        }
        if (name.length == 0 || text.length == 0)
            continue;
        uint32_t pair[2] = { snd_map_string(im, name), snd_map_string(im, text) };
        if (pair[0] != 0 && pair[1] != 0)
            snd_trace_record(&im->out, SND_REC_META, pair, sizeof pair);
    }
}

static void keep_member(struct snd_importer *im, struct snd_span key, struct snd_span value)
{
    char name[128];

    if (key.length >= sizeof name - 8 || value.length > VALUE_MOST) {
        im->dropped++;
        return;
    }
    memcpy(name, key.at, key.length);
    name[key.length] = '\0';
    if (is_ours(name)) {
        memmove(name + 5, name, key.length + 1);
        memcpy(name, "file.", 5);
    }
    snd_buf_clear(&im->text);
    snd_scan_text(value, &im->text);
    snd_trace_meta(&im->out, name, snd_buf_string(&im->text), im->text.length);
}

void snd_map_member(struct snd_importer *im, struct snd_span key, struct snd_span value)
{
    static const char *const passed[] = { "schemaVersion", "displayTimeUnit", "traceName",
                                          "rangesTooDeep" };
    uint64_t                 number;

    for (size_t i = 0; i < SND_COUNT_OF(passed); i++)
        if (snd_span_is(key, passed[i], strlen(passed[i])))
            return;
    for (size_t i = 0; i < SND_COUNT_OF(options); i++)
        if (snd_span_is(key, options[i], strlen(options[i]))) {
            im->options[i] = snd_scan_uint(value, &number) ? number != 0
                                                           : snd_span_is(value, "true", 4);
            im->is_torch = true;
            return;
        }
    for (size_t i = 0; i < SND_COUNT_OF(versions); i++)
        if (snd_span_is(key, versions[i], strlen(versions[i])) && snd_scan_uint(value, &number)) {
            im->cuda_versions[i] = (uint32_t)number;
            return;
        }
    if (snd_span_is(key, "baseTimeNanoseconds", 19)) {
        snd_scan_int(value, &im->base_ns);
    } else if (snd_span_is(key, "deviceProperties", 16)) {
        snd_map_properties(im, value);
    } else if (snd_span_is(key, "metadata", 8) && value.at[0] == '[') {
        read_metadata(im, value);
    } else if (snd_span_is(key, "host_name", 9)) {
        snd_buf_clear(&im->text);
        snd_scan_text(value, &im->text);
        snprintf(im->host, sizeof im->host, "%s", snd_buf_string(&im->text));
    } else {
        if (snd_span_is(key, "distributedInfo", 15))
            read_distributed(im, value);
        keep_member(im, key, value);
    }
}

/* ----------------------------------------------------------------------------- the end */

/* "rank3", "rank-3", "rank_3" in the file's name. */
static uint32_t rank_of_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    for (const char *at = slash ? slash + 1 : path; (at = strcasestr(at, "rank")); at++) {
        const char *digits = at + 4;
        digits += *digits == '-' || *digits == '_';
        if (*digits >= '0' && *digits <= '9') {
            uint64_t number = 0;
            while (*digits >= '0' && *digits <= '9' && number < UINT32_MAX / 20)
                number = number * 10 + (uint64_t)(*digits++ - '0');
            return (uint32_t)number;
        }
    }
    return SND_UNKNOWN;
}

static void put_options(struct snd_importer *im)
{
    snd_buf_clear(&im->text);
    for (size_t i = 0; i < SND_COUNT_OF(options); i++)
        snd_buf_format(&im->text, "%s\"%s\": %s", i == 0 ? "{" : ", ", options[i],
                       im->options[i] ? "true" : "false");
    snd_buf_text(&im->text, "}");
    snd_trace_meta(&im->out, snd_meta_key(SND_META_TORCH_PROBE), "{}", 2);
    snd_trace_meta(&im->out, snd_meta_key(SND_META_TORCH_OPTIONS), snd_buf_string(&im->text),
                   im->text.length);
}

static void put_versions(struct snd_importer *im)
{
    struct {
        struct snd_fact_record head;
        struct snd_fact_member members[SND_COUNT_OF(versions)];
    } fact = { .head = { .kind = SND_FACT_OF_CUDA } };

    for (size_t i = 0; i < SND_COUNT_OF(versions); i++)
        if (im->cuda_versions[i] != 0)
            fact.members[fact.head.count++] =
                (struct snd_fact_member){ (uint16_t)(SND_FIELD_CUDA_DRIVER_VERSION + i),
                                          SND_FACT_NUMBER, 0, im->cuda_versions[i] };
    if (fact.head.count > 0)
        snd_trace_record(&im->out, SND_REC_FACT, &fact,
                         sizeof fact.head + fact.head.count * sizeof fact.members[0]);
}

static void put_tally(struct snd_importer *im, uint32_t kind, const uint64_t *words, uint32_t count)
{
    struct {
        struct snd_tally_record head;
        uint64_t                words[SND_TALLY_WORDS_MAX];
    } tally = { .head = { .kind = kind, .count = count } };

    memcpy(tally.words, words, count * sizeof *words);
    snd_trace_record(&im->out, SND_REC_TALLY, &tally, sizeof tally.head + count * sizeof *words);
}

/* What is not in the trace, for the ledger. */
static void put_losses(struct snd_importer *im)
{
    const uint64_t words[SND_IMPORT_WORDS] = {
        [SND_IMPORT_EVENTS] = im->events,     [SND_IMPORT_LOST] = im->lost,
        [SND_IMPORT_REPAIRED] = im->repaired, [SND_IMPORT_UNMAPPED] = im->unmapped,
        [SND_IMPORT_DERIVED] = im->derived,   [SND_IMPORT_ROUNDED] = im->rounded,
        [SND_IMPORT_DROPPED] = im->dropped,   [SND_IMPORT_CUT] = im->cut_bytes,
    };

    put_tally(im, SND_TALLY_IMPORT, words, SND_IMPORT_WORDS);
    if (im->dropped_texts > 0)
        put_tally(im, SND_TALLY_ARGUMENTS, &im->dropped_texts, 1);
    snd_buf_clear(&im->text);
    for (uint32_t i = 0; i < im->kind_count; i++)
        snd_buf_format(&im->text, "%s%s (%" PRIu64 ")", i == 0 ? "" : ", ", im->kinds[i].text,
                       im->kinds[i].count);
    if (im->kind_count > 0)
        snd_trace_meta(&im->out, snd_meta_key(SND_META_IMPORT_UNMAPPED), snd_buf_string(&im->text),
                       im->text.length);
}

/*
 * The numbers by which torch knows threads. A file has those of threads that backward operators go back to; the
 * others get the next ones, as torch numbers threads in the order in which it meets them.
 */
static void put_threads(struct snd_importer *im, const struct snd_lane_writer *lanes)
{
    for (uint32_t i = 0; i < lanes->own_tid_count; i++) {
        char     key[40], value[12];
        uint32_t number = 1;
        while (number < SND_NUMBERS_MOST && im->tids[number] != lanes->own_tids[i] + 1)
            number++;
        for (uint32_t k = 1; number == SND_NUMBERS_MOST && k < SND_NUMBERS_MOST; k++)
            if (im->tids[k] == 0)
                number = k;
        if (number == SND_NUMBERS_MOST)
            return;
        im->tids[number] = lanes->own_tids[i] + 1;
        snprintf(key, sizeof key, "%s%" PRIu32, snd_meta_key(SND_META_TORCH_THREAD),
                 lanes->own_tids[i]);
        int length = snprintf(value, sizeof value, "%" PRIu32, number);
        snd_trace_meta(&im->out, key, value, (size_t)length);
    }
}

void snd_map_finish(struct snd_importer *im, struct snd_lane_writer *lanes,
                    struct snd_file_header *header)
{
    int64_t begin = im->has_window ? im->window_begin : im->first;
    int64_t end = im->has_window && im->window_end > im->last ? im->window_end : im->last;

    if (im->is_torch) {
        put_options(im);
        put_threads(im, lanes);
    }
    put_versions(im);
    put_losses(im);
    header->clock_kind = SND_CLOCK_MONOTONIC;
    header->pid = im->own_pid;
    header->rank = im->rank != SND_UNKNOWN ? im->rank : rank_of_name(im->path);
    header->world_size = im->world_size;
    header->start.raw = snd_lanes_raw(lanes, begin);
    header->start.mono_ns = header->start.raw;
    header->start.real_ns = (uint64_t)im->base_ns + (uint64_t)begin;
    header->stopped_at = snd_lanes_raw(lanes, end);
    header->early = header->start;
    memcpy(header->host, im->host, sizeof im->host);
    for (uint32_t i = 0; i < im->pid_count; i++)
        if (im->pids[i].pid == im->own_pid)
            snprintf(header->program, sizeof header->program, "%s", im->pids[i].name);
    struct snd_hash session = snd_hash_bytes(im->path, strlen(im->path),
                                             (uint64_t)im->first ^ im->events);
    memcpy(header->session, &session, sizeof header->session);
}
