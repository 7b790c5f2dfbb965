/* SPDX-License-Identifier: Apache-2.0 */
/* export/chrome/chrome_event.c - what all events of Chrome's format have; declared in chrome.h. */
#include "export/chrome/chrome.h"
#include "export/common/exporter.h"
#include "model/torch_stacks.h"

static void put_head(struct snd_chrome *chrome, const char *phase, const char *category,
                     struct sonde_text name, uint32_t process, uint32_t thread)
{
    snd_json_text(&chrome->json, "ph", phase);
    if (category)
        snd_json_text(&chrome->json, "cat", category);
    snd_json_string(&chrome->json, "name", name.bytes, name.length);
    snd_json_uint(&chrome->json, "pid", snd_export_pid(chrome->trace, process));
    snd_json_uint(&chrome->json, "tid",
                  thread == SONDE_NONE ? 0 : sonde_trace_thread(chrome->trace, thread)->tid);
}

/* Names and literals are known by where they are. */
void snd_chrome_open(struct snd_chrome *chrome, const char *phase, const char *category,
                     struct sonde_text name, uint32_t process, uint32_t thread)
{
    struct snd_rendered_key key = { { SND_CHROME_HEAD | (uint64_t)phase[0] << 8,
                                      (uintptr_t)category, (uintptr_t)name.bytes,
                                      (uint64_t)process << 32 | thread } };

    snd_json_object(&chrome->json, NULL);
    if (name.bytes == chrome->text.bytes) {
        put_head(chrome, phase, category, name, process, thread);
    } else if (!snd_rendered_members(&chrome->rendered, &key, &chrome->json)) {
        struct snd_out_mark mark = snd_out_mark(chrome->out);
        put_head(chrome, phase, category, name, process, thread);
        snd_rendered_keep_out(&chrome->rendered, &key, chrome->out, mark);
    }
}

/* torch ends each entry with a semicolon, the last as well. */
void snd_chrome_stack(struct snd_chrome *chrome, uint32_t process, uint32_t stack)
{
    snd_buf_clear(&chrome->text);
    if (snd_stack_text(chrome->trace, process, stack, SIZE_MAX, ';', &chrome->text) == 0)
        return;
    if (chrome->is_torch[process])
        snd_buf_text(&chrome->text, ";");
    snd_json_string(&chrome->json, "Call stack", snd_buf_string(&chrome->text),
                    chrome->text.length);
}

struct sonde_text snd_chrome_function(struct snd_chrome *chrome, uint32_t process, uint32_t frame)
{
    snd_buf_clear(&chrome->text);
    snd_function_text(chrome->trace, process, frame, &chrome->text);
    return (struct sonde_text){ snd_buf_string(&chrome->text), chrome->text.length };
}
