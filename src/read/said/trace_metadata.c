/* SPDX-License-Identifier: Apache-2.0 */
#include "read/said/trace_metadata.h"

#include <stdio.h>
#include <string.h>

#include "read/reader.h"

static bool is_each(enum snd_meta meta)
{
    static const bool each[] = {
#define SND_META(name, key, value, summary) false,
#define SND_META_EACH(name, prefix, value, summary) true,
#include "format/metadata.def"
#undef SND_META_EACH
#undef SND_META
    };

    return each[meta];
}

bool snd_meta_is(struct sonde_text key, enum snd_meta meta)
{
    const char *wanted = snd_meta_key(meta);
    size_t      length = strlen(wanted);

    return (is_each(meta) ? key.length > length : key.length == length) &&
           memcmp(key.bytes, wanted, length) == 0;
}

bool snd_meta_next(const struct sonde_trace *trace, uint32_t process, enum snd_meta meta,
                   uint32_t *at, struct sonde_text *rest, struct sonde_text *value)
{
    size_t            length = strlen(snd_meta_key(meta));
    struct sonde_text key;

    while (sonde_trace_metadata(trace, process, (*at)++, &key, value)) {
        if (!snd_meta_is(key, meta))
            continue;
        if (rest)
            *rest = (struct sonde_text){ key.bytes + length, key.length - length };
        return true;
    }
    return false;
}

bool snd_meta_find(const struct sonde_trace *trace, uint32_t process, enum snd_meta meta,
                   struct sonde_text *value)
{
    uint32_t at = 0;

    if (snd_meta_next(trace, process, meta, &at, NULL, value))
        return true;
    *value = (struct sonde_text){ "", 0 };
    return false;
}

/* The process of the same session with this pid; UINT32_MAX: there is none. */
static uint32_t find_pid(const struct sonde_trace *trace, const struct snd_process *like,
                         uint32_t pid)
{
    for (uint32_t i = 0; pid != 0 && i < trace->process_count; i++) {
        const struct snd_process *p = &trace->processes[i];
        if (p->shown.pid == pid &&
            memcmp(p->header.session, like->header.session, sizeof p->header.session) == 0)
            return i;
    }
    return UINT32_MAX;
}

/* A process without a file, whose parent is unknown, belongs to the file with its samples. */
static uint32_t find_host(const struct sonde_trace *trace, uint32_t process)
{
    const struct snd_process *guest = &trace->processes[process];

    for (uint32_t i = 0; guest->is_guest && i < trace->process_count; i++)
        if (!trace->processes[i].is_guest &&
            trace->processes[i].first_thread == guest->first_thread)
            return i;
    return process;
}

uint32_t snd_meta_root(const struct sonde_trace *trace, uint32_t process)
{
    for (uint32_t steps = 0; steps < trace->process_count; steps++) {
        const struct snd_process *p = &trace->processes[process];
        uint32_t                  parent = find_pid(trace, p, p->header.parent_pid);
        if (parent == UINT32_MAX)
            break;
        process = parent;
    }
    return find_host(trace, process);
}

struct sonde_text snd_meta_command(const struct sonde_trace *trace, uint32_t process)
{
    struct sonde_text value;

    if (snd_meta_find(trace, process, SND_META_COMMAND, &value))
        return value;
    const char *program = sonde_trace_process(trace, process)->program;
    return (struct sonde_text){ program, strlen(program) };
}

/* The next word of `rest`, which then begins after it; empty at the end. */
static struct sonde_text take_word(struct sonde_text *rest)
{
    size_t from = 0;

    while (from < rest->length && rest->bytes[from] == ' ')
        from++;
    size_t to = from;
    while (to < rest->length && rest->bytes[to] != ' ')
        to++;
    struct sonde_text word = { rest->bytes + from, to - from };
    *rest = (struct sonde_text){ rest->bytes + to, rest->length - to };
    return word;
}

static struct sonde_text last_part(struct sonde_text path)
{
    size_t from = path.length;

    while (from > 0 && path.bytes[from - 1] != '/')
        from--;
    return (struct sonde_text){ path.bytes + from, path.length - from };
}

static bool is_python(struct sonde_text name)
{
    static const char python[] = "python";

    return name.length >= sizeof python - 1 && memcmp(name.bytes, python, sizeof python - 1) == 0;
}

/* The script or module in the arguments of an interpreter; empty: it has neither (-c, a console). */
static struct sonde_text find_script(struct sonde_text arguments)
{
    for (;;) {
        struct sonde_text word = take_word(&arguments);
        if (word.length == 0 || word.bytes[0] != '-')
            return last_part(word);
        char option = word.bytes[word.length - 1];
        if (option == 'm')
            return take_word(&arguments);
        if (option == 'c' || word.length == 1)
            return (struct sonde_text){ "", 0 };
        if (word.length == 2 && (option == 'W' || option == 'X'))
            take_word(&arguments);
    }
}

struct sonde_text snd_meta_title(const struct sonde_trace *trace, uint32_t process)
{
    const char       *path = sonde_trace_process(trace, process)->program;
    struct sonde_text name = last_part((struct sonde_text){ path, strlen(path) });
    struct sonde_text command;

    if (!is_python(name) || !snd_meta_find(trace, process, SND_META_COMMAND, &command))
        return name;
    struct sonde_text rest = command, first = take_word(&rest);
    if (first.length == 5 &&
        memcmp(first.bytes, "sonde", 5) == 0) { /* one of our commands that is Python */
        take_word(&rest);
        return (struct sonde_text){ command.bytes, command.length - rest.length };
    }
    struct sonde_text script = find_script(rest);
    return script.length > 0 ? script : name;
}

bool snd_meta_other(const struct sonde_trace *trace, uint32_t process, const char *key,
                    struct sonde_text *value)
{
    struct sonde_text name;

    for (uint32_t n = 0; sonde_trace_metadata(trace, process, n, &name, value); n++)
        if (name.length == strlen(key) && memcmp(name.bytes, key, name.length) == 0)
            return true;
    return false;
}

const char *snd_meta_rank(const struct sonde_trace *trace, uint32_t process,
                          char text[SND_RANK_TEXT])
{
    const struct sonde_process *p = sonde_trace_process(trace, process);

    text[0] = '\0';
    if (p->rank != SONDE_NONE)
        snprintf(text, SND_RANK_TEXT, p->host[0] != '\0' ? "rank %u on %.63s" : "rank %u", p->rank,
                 p->host);
    return text;
}
