/* SPDX-License-Identifier: Apache-2.0 */
/* sonde check: reads every byte of a trace and says what is whole and what is not. */
#include <inttypes.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/json.h"
#include "cli/commands.h"

struct check_args {
    bool json;
};

static const struct snd_option options[] = {
    { 0, "json", NULL, "write JSON", SND_OPTION_FLAG, offsetof(struct check_args, json), 0 },
};

/* The counts: name in JSON, name in text, offset. */
static const struct {
    const char *key, *title;
    size_t      offset;
} counts[] = {
    { "files", "files", offsetof(struct sonde_check, files) },
    { "chunks", "chunks", offsetof(struct sonde_check, chunks) },
    { "events", "events", offsetof(struct sonde_check, events) },
    { "records", "records", offsetof(struct sonde_check, records) },
    { "refused_files", "refused files", offsetof(struct sonde_check, refused_files) },
    { "damaged_headers", "damaged headers", offsetof(struct sonde_check, damaged_headers) },
    { "damaged_chunks", "damaged chunks", offsetof(struct sonde_check, damaged_chunks) },
    { "skipped_bytes", "skipped bytes", offsetof(struct sonde_check, skipped_bytes) },
    { "missing_bytes", "missing bytes", offsetof(struct sonde_check, missing_bytes) },
    { "missing_events", "missing events", offsetof(struct sonde_check, missing_events) },
    { "unknown_chunks", "unknown chunks", offsetof(struct sonde_check, unknown_chunks) },
    { "unknown_events", "unknown events", offsetof(struct sonde_check, unknown_events) },
};
#define COUNTS SND_COUNT_OF(counts)

static uint64_t count_of(const struct sonde_check *check, size_t i)
{
    uint64_t value;

    memcpy(&value, (const char *)check + counts[i].offset, sizeof value);
    return value;
}

static bool is_damaged(const struct sonde_check *check)
{
    return check->refused_files > 0 || check->damaged_headers > 0 || check->damaged_chunks > 0 ||
           check->skipped_bytes > 0 || check->missing_bytes > 0 || check->missing_events > 0;
}

static void print_json(const struct sonde_check *check)
{
    struct snd_stdout_json output;
    struct snd_json       *json = snd_stdout_json_begin(&output, 1);

    for (size_t i = 0; i < COUNTS; i++)
        snd_json_uint(json, counts[i].key, count_of(check, i));
    snd_json_bool(json, "closed", check->closed);
    snd_json_bool(json, "damaged", is_damaged(check));
    snd_stdout_json_end(&output);
}

static void print_text(const char *path, const struct sonde_check *check)
{
    for (size_t i = 0; i < COUNTS; i++)
        printf("%-15s %" PRIu64 "\n", counts[i].title, count_of(check, i));
    printf("%-15s %s\n", "closed",
           check->closed ? "yes" : "no: the program was killed, crashed, or still runs");
    if (is_damaged(check))
        printf("damaged: what is readable is read; 'sonde pack -o CLEAN %s' writes a copy of it\n",
               path);
    else
        printf("whole: every checksum is right\n");
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct check_args  args = { 0 };
    struct sonde_check check;
    struct sonde_error err;
    int                operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if ((status = snd_take_trace(self, operands, argv)) >= 0)
        return status;
    snd_progress_start("sonde: checking");
    enum sonde_status st = sonde_check(argv[0], &check, &err);
    snd_progress_stop();
    if (st != SONDE_OK)
        return snd_report_error(self, argv[0], &err);
    if (args.json)
        print_json(&check);
    else
        print_text(argv[0], &check);
    status = snd_finish_stdout(self);
    return status != SND_EXIT_OK ? status : is_damaged(&check) ? SND_EXIT_FAILED : SND_EXIT_OK;
}

const struct snd_command snd_command_check = {
    .name = "check",
    .operands = "[TRACE]",
    .summary = "verify a trace and say what can be read of it",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
