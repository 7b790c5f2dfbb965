/* SPDX-License-Identifier: Apache-2.0 */
/* sonde convert: results of layers to the files of a pipeline scheduler. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/buf.h"
#include "cli/commands.h"
#include "pipe/convert.h"

struct convert_args {
    const char *input, *output;
    bool        overwrite;
    int64_t     memory_mb, bandwidth_mbps;
};

#define AT(member) offsetof(struct convert_args, member)
static const struct snd_option options[] = {
    { 'i', "results-yml", "FILE", "results to read (profiler_results.yml)", SND_OPTION_TEXT,
      AT(input), 0 },
    { 'o', "output", "FILE", "file to write or add to (models.yml, device_types.yml)",
      SND_OPTION_TEXT, AT(output), 0 },
    { 0, "models-yml", "FILE", "the same, as PipeEdge names it", SND_OPTION_TEXT, AT(output), 0 },
    { 0, "dev-types-yml", "FILE", "the same, as PipeEdge names it", SND_OPTION_TEXT, AT(output),
      0 },
    { 'f', "overwrite", NULL, "replace an existing model or profile", SND_OPTION_FLAG,
      AT(overwrite), 0 },
    { 0, "dev-type-mem", "MB", "memory of a new device type; also -dtm MB", SND_OPTION_NUMBER,
      AT(memory_mb), 0 },
    { 0, "dev-type-bw", "MBPS", "bandwidth of a new device type; also -dtb MBPS", SND_OPTION_NUMBER,
      AT(bandwidth_mbps), 0 },
};

/* PipeEdge's options of several letters and one dash, as the parser has them. */
static const struct {
    const char *given, *stands_for;
} long_letters[] = { { "-dtm", "--dev-type-mem" }, { "-dtb", "--dev-type-bw" } };

/* "-dtm" and "-dtmN" as long options. The caller frees *made, which holds the latter. */
static bool spell_out(char **word, char **made)
{
    for (size_t i = 0; i < SND_COUNT_OF(long_letters); i++) {
        size_t length = strlen(long_letters[i].given);
        if (strncmp(*word, long_letters[i].given, length) != 0)
            continue;
        const char *value = *word + length;
        if (asprintf(made, "%s%s%s", long_letters[i].stands_for, *value ? "=" : "",
                     value + (*value == '=')) < 0)
            return false;
        *word = *made;
        break;
    }
    return true;
}

typedef enum sonde_status convert_fn(const struct snd_convert_options *, struct sonde_buffer *,
                                     struct sonde_error *);

static int convert(const struct snd_command *self, convert_fn *function,
                   const struct snd_convert_options *asked)
{
    struct sonde_error  err;
    struct sonde_buffer notes = { 0 };
    enum sonde_status   status = function(asked, &notes, &err);

    snd_say_notes(self, &notes);
    sonde_buffer_release(&notes);
    return status == SONDE_OK ? SND_EXIT_OK : snd_failure("convert: %s", err.message);
}

static int run_parsed(const struct snd_command *self, int argc, char **argv)
{
    struct convert_args args = { "profiler_results.yml", NULL, false, -1, -1 };
    int                 operands;
    int                 status = snd_options_parse(self, argc, argv, &args, &operands);

    if (status >= 0)
        return status;
    bool models = operands > 0 && strcmp(argv[0], "models") == 0;
    bool types = operands > 0 && strcmp(argv[0], "device-types") == 0;
    if (operands == 0)
        return snd_usage_error(self, "missing operand: expected models or device-types");
    if (!models && !types)
        return snd_usage_error(self, "expected models or device-types, got '%s'", argv[0]);
    if (operands != (models ? 1 : 2))
        return snd_usage_error(self, models         ? "models: unexpected operand"
                                     : operands < 2 ? "device-types: missing TYPE"
                                                    : "device-types: expected one TYPE");
    if (models && (args.memory_mb >= 0 || args.bandwidth_mbps >= 0))
        return snd_usage_error(self, "--dev-type-mem and --dev-type-bw apply only to device-types");
    struct snd_convert_options asked = {
        .results_path = args.input,
        .output_path = args.output ? args.output
                       : models    ? "models.yml"
                                   : "device_types.yml",
        .overwrite = args.overwrite,
        .device_type = types ? argv[1] : NULL,
        .memory_mb = args.memory_mb,
        .bandwidth_mbps = args.bandwidth_mbps,
    };
    return convert(self, models ? snd_convert_models : snd_convert_device_types, &asked);
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    char **made = calloc((size_t)argc + 1, sizeof *made);
    int    status = -1;

    signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error to report, and to clean up after */
    for (int i = 1; made && i < argc && strcmp(argv[i], "--") != 0; i++)
        if (!spell_out(&argv[i], &made[i]))
            status = snd_failure("convert: out of memory");
    if (!made)
        status = snd_failure("convert: out of memory");
    if (status < 0)
        status = run_parsed(self, argc, argv);
    for (int i = 1; made && i < argc; i++)
        free(made[i]);
    free(made);
    return status;
}

const struct snd_command snd_command_convert = {
    .name = "convert",
    .operands = "models | device-types TYPE",
    .summary = "make models.yml or device_types.yml of a pipeline from results of layers",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
