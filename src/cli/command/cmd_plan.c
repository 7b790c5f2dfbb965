/* SPDX-License-Identifier: Apache-2.0 */
/* sonde plan: stages of a pipeline, in the form of PipeEdge's scheduler. */
#include "base/text/buf.h"
#include "cli/commands.h"
#include "pipe/plan/plan.h"

struct plan_args {
    struct snd_plan_options plan;
    bool                    verbose;
};

#define AT(member) offsetof(struct plan_args, member)
static const struct snd_option options[] = {
    { 'm', "model-name", "NAME", "model to place (google/vit-base-patch16-224)", SND_OPTION_TEXT,
      AT(plan.model_name), 0 },
    { 'b', "batch-size", "N", "batch size; a profile of it must exist (8)", SND_OPTION_NUMBER,
      AT(plan.batch_size), 1 },
    { 'd', "dtype", "TYPE", "data type; a profile of it must exist (torch.float32)",
      SND_OPTION_TEXT, AT(plan.dtype), 0 },
    { 'M', "models-file", "FILE", "models (models.yml)", SND_OPTION_TEXT, AT(plan.models_path), 0 },
    { 'T', "dev-types-file", "FILE", "device types (device_types.yml)", SND_OPTION_TEXT,
      AT(plan.types_path), 0 },
    { 'D', "dev-file", "FILE", "hosts of each type (devices.yml)", SND_OPTION_TEXT,
      AT(plan.devices_path), 0 },
    { 'i', "buffers-in", "N", "input batches that a stage buffers (2)", SND_OPTION_NUMBER,
      AT(plan.buffers_in), 0 },
    { 'o', "buffers-out", "N", "output batches that a stage buffers (2)", SND_OPTION_NUMBER,
      AT(plan.buffers_out), 0 },
    { 'v', "verbose", NULL, "print time, memory and transfer of each stage", SND_OPTION_FLAG,
      AT(verbose), 0 },
};

static enum sonde_status make_plan(const struct plan_args *args, struct sonde_buffer *text,
                                   struct sonde_buffer *notes, struct sonde_error *err)
{
    struct snd_arena    arena = SND_ARENA_INIT;
    struct snd_pipeline pipeline;
    struct snd_plan     plan = { 0 };
    enum sonde_status   status = snd_pipeline_load(&args->plan, &arena, &pipeline, notes, err);

    if (status == SONDE_OK)
        status = snd_plan_find(&pipeline, &plan, err);
    if (status == SONDE_OK)
        status = snd_plan_write(&pipeline, &plan, args->verbose, text, err);
    snd_plan_release(&plan);
    snd_arena_release(&arena);
    return status;
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct plan_args args = {
        { "models.yml", "device_types.yml", "devices.yml", "google/vit-base-patch16-224",
          "torch.float32", 8, 2, 2 },
        false,
    };
    struct sonde_buffer text = { 0 }, notes = { 0 };
    struct sonde_error  err;
    int                 operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands > 0)
        return snd_usage_error(self, "unexpected operand '%s'", argv[0]);
    snd_progress_start("sonde: planning");
    enum sonde_status made = make_plan(&args, &text, &notes, &err);
    snd_progress_stop();
    snd_say_notes(self, &notes);
    if (made == SONDE_E_ARGUMENT)
        status = snd_usage_error(self, "%s", err.message);
    else if (made != SONDE_OK || text.failed)
        status = snd_failure("plan: %s", made != SONDE_OK ? err.message : "out of memory");
    else
        fwrite(text.bytes, 1, text.length, stdout);
    sonde_buffer_release(&text);
    sonde_buffer_release(&notes);
    return status >= 0 ? status : snd_finish_stdout(self);
}

const struct snd_command snd_command_plan = {
    .name = "plan",
    .operands = "",
    .summary = "place the layers of a model on devices so that a pipeline runs fastest",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
