/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_args.h"

#include <string.h>

#include "base/text/buf.h"
#include "format/layout.h"
#include "format/run/schedule_text.h"

#define SND_TRACE_LEAST \
    (8 * SND_GRAIN) /* the recorder's own limit: record/options/start_options.c */

/* "wait=1,active=3". -1 to go on. */
static int check_schedule(const struct snd_command *self, const char *list)
{
#define SND_SCHEDULE(name) ", " #name "=N"
    static const char known[] =
#include "format/run/schedule_text.def"
        ;
#undef SND_SCHEDULE
    uint32_t    values[SND_SCHEDULE_FIELDS];
    const char *bad;

    if (snd_schedule_read(list, values, &bad))
        return -1;
    if (bad)
        return snd_usage_error(self, "--schedule: '%.*s' is not one of %s", (int)strcspn(bad, ","),
                               bad, known + strlen(", "));
    return snd_usage_error(self, "--schedule: expected active=N with N >= 1");
}

int snd_run_args_check_recorded(const struct snd_command *self, const struct snd_run_args *args)
{
    const struct sonde_exporter_info *format = args->after.format;
    struct sonde_buffer               advice = { 0 };
    int                               status = -1;

    if (format && format->view && !snd_run_probes_make(&args->probes, format->view, &advice))
        status = snd_usage_error(self,
                                 "--output %s: format %s needs %s, which are not recorded; add %s",
                                 args->after.output, format->name, format->view,
                                 snd_buf_string(&advice));
    for (const char *at = args->after.view; at && *at && status < 0;) {
        size_t length = strcspn(at, ",");
        if (!snd_run_probes_show(&args->probes, at, length, &advice))
            status = snd_usage_error(self, "--view %.*s: its data is not recorded; add %s",
                                     (int)length, at, snd_buf_string(&advice));
        at += length + (at[length] == ',');
    }
    sonde_buffer_release(&advice);
    return status;
}

/* --heap=HOW. -1 to go on. */
static int check_heap(const struct snd_command *self, const char *how)
{
    uint64_t size;

    if (!how || !*how || strcmp(how, "full") == 0 || strcmp(how, "sampled") == 0 ||
        snd_size_parse(how, &size))
        return -1;
    return snd_usage_error(self, "--heap: expected full, sampled or a size such as 512K, got '%s'",
                           how);
}

int snd_run_args_check_gpu(const struct snd_command *self, const char *how)
{
    if (!how || !*how || strcmp(how, "full") == 0 || strcmp(how, "light") == 0)
        return -1;
    return snd_usage_error(self, "--gpu: expected full or light, got '%s'", how);
}

int snd_run_args_check(const struct snd_command *self, struct snd_run_args *args, int operands)
{
    int status;

    if (operands == 0)
        return snd_usage_error(self, "missing PROGRAM");
    if (args->keep_last && !args->max_size)
        return snd_usage_error(self, "--keep-last requires --max-size SIZE");
    if (args->max_size && args->max_size < SND_TRACE_LEAST)
        return snd_usage_error(self, "--max-size: expected at least %zuK, got %llu bytes",
                               SND_TRACE_LEAST / 1024, (unsigned long long)args->max_size);
    if (args->repeat && !args->probes.counters)
        return snd_usage_error(self, "--repeat requires --counters");
    if ((status = snd_run_probes_check(self, &args->probes)) >= 0)
        return status;
    if ((status = check_heap(self, args->probes.heap)) >= 0)
        return status;
    if ((status = snd_run_args_check_gpu(self, args->probes.gpu)) >= 0)
        return status;
    if (args->schedule && (status = check_schedule(self, args->schedule)) >= 0)
        return status;
    return snd_after_run_check(self, &args->after);
}
