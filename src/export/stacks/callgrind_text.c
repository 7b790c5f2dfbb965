/* SPDX-License-Identifier: Apache-2.0 */
/* export/stacks/callgrind_text.c - see callgrind.h: the head of a file, and names. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "export/stacks/callgrind.h"
#include "snd_config.h"

void snd_callgrind_text(struct snd_out *out, struct sonde_text text)
{
    for (size_t i = 0; i < text.length; i++) {
        char c = text.bytes[i];
        snd_out_put(out, c == '\n' || c == '\r' || c == '\0' ? "_" : &c, 1);
    }
}

/* What readers take for the name of an event: letters, digits and underscores. */
static void put_event(struct snd_out *out, struct sonde_text name)
{
    for (size_t i = 0; i < name.length; i++)
        snd_out_put(out, isalnum((unsigned char)name.bytes[i]) ? &name.bytes[i] : "_", 1);
}

void snd_callgrind_head(struct snd_out *out, const struct sonde_trace *trace,
                        const struct snd_callgrind_event *events, size_t count)
{
    const struct sonde_process *p = sonde_trace_process(trace, 0);

    snd_out_text(out, "# callgrind format\nversion: 1\ncreator: sonde " SND_VERSION "\n");
    snd_out_format(out, "pid: %" PRIu32 "\ncmd: ", p->pid);
    snd_callgrind_text(out, (struct sonde_text){ p->program, strlen(p->program) });
    snd_out_text(out, "\npart: 1\n\npositions: line\n");
    for (size_t i = 0; i < count; i++) {
        snd_out_text(out, "event: ");
        put_event(out, events[i].name);
        snd_out_text(out, " : ");
        snd_callgrind_text(out, events[i].title);
        snd_out_text(out, "\n");
    }
    snd_out_text(out, "events:");
    for (size_t i = 0; i < count; i++) {
        snd_out_text(out, " ");
        put_event(out, events[i].name);
    }
    snd_out_text(out, "\nsummary:");
    for (size_t i = 0; i < count; i++)
        snd_out_format(out, " %" PRId64, events[i].total);
    snd_out_text(out, "\n\n");
}
