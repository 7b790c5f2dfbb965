/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/runprobes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/autostart.h"
#include "cli/options.h"

#define AT(member) offsetof(struct snd_run_probes, member)

enum probe_kind { PROBE_FLAG, PROBE_LIST, PROBE_RATE };

/*
 * What can be recorded of a Python program: its name in SONDE_PROBES, the variable that has its
 * value, and the view that shows it. Those of one view are together; the first is meant by any.
 */
static const struct probe {
    const char     *name;
    enum probe_kind kind;
    size_t          offset;
    const char     *variable, *view;
} probes[] = {
    { "ops", PROBE_FLAG, AT(ops), NULL, "ops" },
    { "shapes", PROBE_FLAG, AT(shapes), NULL, "ops" },
    { "memory", PROBE_FLAG, AT(memory), NULL, "ops" },
    { "modules", PROBE_FLAG, AT(modules), NULL, "ops" },
    { "stacks", PROBE_FLAG, AT(stacks), NULL, "ops" },
    { "functions", PROBE_FLAG, AT(functions), NULL, "functions" },
    { "timeline", PROBE_FLAG, AT(timeline), NULL, "functions" },
    { "python-only", PROBE_FLAG, AT(python_only), NULL, "functions" },
    { "lines", PROBE_LIST, AT(lines), "SONDE_LINES", "lines" },
    { "line-memory", PROBE_LIST, AT(line_memory), "SONDE_LINE_MEMORY", "line-memory" },
    { "sample", PROBE_RATE, AT(sample), "SONDE_SAMPLE", "samples" },
    { "native", PROBE_FLAG, AT(native), NULL, "samples" },
    { "unasked", PROBE_FLAG, AT(unasked), NULL, "samples" },
};

/* Is the probe asked for? Its value, as text, in `value`: NULL for none. */
static bool is_asked(const struct probe *probe, const struct snd_run_probes *asked, char number[32],
                     const char **value)
{
    const char *place = (const char *)asked + probe->offset;
    int64_t     rate;

    *value = NULL;
    switch (probe->kind) {
    case PROBE_FLAG:
        return *(const bool *)place;
    case PROBE_LIST:
        *value = *(const char *const *)place;
        return *value != NULL;
    case PROBE_RATE:
        rate = *(const int64_t *)place;
        snprintf(number, 32, "%lld", (long long)rate);
        *value = rate > 0 ? number : NULL;
        return rate != 0;
    }
    return false;
}

static void set_or_clear(const char *name, const char *value)
{
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

static void add_word(struct sonde_buffer *list, const char *word)
{
    snd_buf_format(list, "%s%s", list->length ? "," : "", word);
}

/* Fills `list` with the probes that were asked for, and sets the variables of their values. */
static void list_probes(const struct snd_run_probes *chosen, struct sonde_buffer *list)
{
    const char *view = "", *first = "", *shown = "";

    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        const char *value;
        char        number[32];
        bool        asked = is_asked(&probes[i], chosen, number, &value);
        if (strcmp(view, probes[i].view) != 0) {
            view = probes[i].view;
            first = probes[i].name;
        }
        if (probes[i].variable)
            set_or_clear(probes[i].variable, value);
        if (!asked)
            continue;
        if (strcmp(shown, view) != 0) {
            shown = view;
            add_word(list, first);
        }
        if (strcmp(probes[i].name, first) != 0)
            add_word(list, probes[i].name);
    }
}

static bool is_recorded(const struct snd_run_probes *chosen, const char *view, size_t length)
{
    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        const char *value;
        char        number[32];
        if (strlen(probes[i].view) == length && strncmp(probes[i].view, view, length) == 0 &&
            is_asked(&probes[i], chosen, number, &value))
            return true;
    }
    return false;
}

void snd_run_probes_views(const struct snd_run_probes *chosen, struct sonde_buffer *views)
{
    const char *view = "";

    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        if (strcmp(view, probes[i].view) == 0)
            continue;
        view = probes[i].view;
        if (is_recorded(chosen, view, strlen(view)))
            add_word(views, view);
    }
}

/* Views that need probes of their own: what else they show, and how to have it recorded. */
static const struct special {
    const char *view, *also, *advice;
} special[] = {
    { "functions", "samples", "--functions" },
    { "lines", NULL, "--lines LIST" },
    { "line-memory", NULL, "--line-memory LIST" },
    { "samples", NULL, "--sample" },
};

static const struct special *find_special(const char *view, size_t length)
{
    for (size_t i = 0; i < sizeof special / sizeof special[0]; i++)
        if (strlen(special[i].view) == length && strncmp(special[i].view, view, length) == 0)
            return &special[i];
    return NULL;
}

bool snd_run_probes_show(const struct snd_run_probes *chosen, const char *view, size_t length,
                         const char **advice)
{
    const struct special *s = find_special(view, length);

    *advice = s ? s->advice : "";
    return !s || is_recorded(chosen, view, length) ||
           (s->also && is_recorded(chosen, s->also, strlen(s->also)));
}

bool snd_run_probes_make(const struct snd_run_probes *chosen, const char *view, const char **advice)
{
    const struct special *s = find_special(view, strlen(view));

    *advice = s ? s->advice : "";
    return !s || is_recorded(chosen, view, strlen(view));
}

void snd_run_probes_default(struct snd_run_probes *chosen, const char *view)
{
    static const struct {
        const char           *view;
        struct snd_run_probes probes;
    } defaults[] = {
        { "functions", { .functions = true } },
        { "lines", { .lines = "@profile" } },
        { "line-memory", { .line_memory = "@profile" } },
        { NULL, { .ops = true, .sample = -1, .unasked = true } },
    };
    size_t at = 0;

    for (size_t i = 0; i < sizeof probes / sizeof probes[0]; i++) {
        const char *value;
        char        number[32];
        if (is_asked(&probes[i], chosen, number, &value))
            return;
    }
    while (defaults[at].view && (!view || strcmp(defaults[at].view, view) != 0))
        at++;
    *chosen = defaults[at].probes;
}

int snd_run_probes_set(const struct snd_run_probes *chosen)
{
    struct sonde_buffer list = { 0 }, folder = { 0 };
    int                 status = -1;

    unsetenv("SONDE_FIRST_PROCESS"); /* of a run that we may be part of: _start.py's */
    list_probes(chosen, &list);
    if (!snd_autostart_find(&folder)) {
        if (!chosen->unasked)
            status = snd_failure("run: cannot record %s: no Python package of sonde is "
                                 "beside this program; install it (make, or pip install .) or "
                                 "set SONDE_PYTHON to its folder",
                                 list.bytes);
    } else if (list.failed || !snd_autostart_set(folder.bytes, list.bytes)) {
        status = snd_failure("run: out of memory");
    }
    sonde_buffer_release(&list);
    sonde_buffer_release(&folder);
    return status;
}
