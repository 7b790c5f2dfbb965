/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/run/run_probes.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "cli/run/autostart.h"
#include "cli/run/run_library.h"
#include "cli/run/run_parents.h"

#define STARTS "SONDE_START"

enum value { FLAG, LIST, RATE, WORDS };
enum without { OTHERS, EMPTY }; /* what a view shows without its probe */
enum start_kind { BY_PYTHON, BY_LIBRARY, BY_PARENT };

struct start {
    enum start_kind              kind;
    const char                  *when, *sees, *function; /* by Python */
    const char                  *library, *variable;     /* by a library */
    const struct snd_run_parent *parent;
};
/* clang-format off */
#define SND_BY_PYTHON(when, sees, function) { BY_PYTHON, when, sees, function, "", "", NULL }
#define SND_BY_LIBRARY(name, variable) { BY_LIBRARY, "", "", "", #name, #variable, NULL }
#define SND_BY_PARENT(name) { BY_PARENT, "", "", "", "", "", &snd_parent_##name }
/* clang-format on */

/* A probe, or (without a view) a detail of the one before it. */
static const struct probe {
    const char  *option;
    enum value   value;
    size_t       offset;
    const char  *argument;
    int64_t      most;
    const char  *records, *view, *also;
    enum without without;
    bool         usual;
    struct start start;
} probes[] = {
#define AT(member) offsetof(struct snd_run_probes, member)
#define SND_PROBE(id, option, value, argument, most, records, view, without, also, usual, start, \
                  ...)                                                                           \
    { option, value, AT(id), argument, most, records, view, also, without, usual, start },
#define SND_PROBE_DETAIL(id, name, ...) { .option = name, .value = FLAG, .offset = AT(id) },
#include "probes/probes.def"
#undef SND_PROBE
#undef SND_PROBE_DETAIL
};
static const struct probe *const end = probes + SND_COUNT_OF(probes);

/* ------------------------------------------------------------------ what was chosen */

static bool is_detail(const struct probe *probe)
{
    return probe < end && !probe->view;
}

static const struct probe *next_probe(const struct probe *probe)
{
    do
        probe++;
    while (is_detail(probe));
    return probe;
}

/* Is this option given? Its value, as text, in `value`: NULL for none. */
static bool is_given(const struct probe *probe, const struct snd_run_probes *chosen,
                     char number[32], const char **value)
{
    const char *place = (const char *)chosen + probe->offset;
    int64_t     rate;

    *value = NULL;
    switch (probe->value) {
    case FLAG:
        return *(const bool *)place;
    case LIST:
    case WORDS:
        *value = *(const char *const *)place;
        return *value != NULL;
    case RATE:
        rate = *(const int64_t *)place;
        snprintf(number, 32, "%lld", (long long)rate);
        *value = rate > 0 ? number : NULL;
        return rate != 0;
    }
    return false;
}

/* Is the probe on: by its own option, or one of its details? */
static bool is_on(const struct probe *probe, const struct snd_run_probes *chosen)
{
    const char *value;
    char        number[32];

    for (const struct probe *one = probe; one < next_probe(probe); one++)
        if (is_given(one, chosen, number, &value))
            return true;
    return false;
}

static void choose(const struct probe *probe, struct snd_run_probes *chosen)
{
    char *place = (char *)chosen + probe->offset;

    switch (probe->value) {
    case FLAG:
        *(bool *)place = true;
        break;
    case LIST:
        *(const char **)place = "@profile";
        break;
    case WORDS:
        *(const char **)place = "";
        break;
    case RATE:
        *(int64_t *)place = -1;
        break;
    }
}

int snd_run_probes_check(const struct snd_command *self, const struct snd_run_probes *chosen)
{
    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe)) {
        int64_t rate = 0;
        if (probe->value == RATE)
            memcpy(&rate, (const char *)chosen + probe->offset, sizeof rate);
        if (rate > probe->most)
            return snd_usage_error(self, "--%s: rate must be 1..%lld Hz, got %lld", probe->option,
                                   (long long)probe->most, (long long)rate);
    }
    return -1;
}

void snd_run_probes_default(struct snd_run_probes *chosen, const char *view)
{
    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe))
        if (is_on(probe, chosen))
            return;
    for (const struct probe *probe = probes; view && probe < end; probe = next_probe(probe)) {
        if (probe->without == EMPTY && strcmp(probe->view, view) == 0) {
            choose(probe, chosen);
            return;
        }
    }
    chosen->unasked = true;
    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe))
        if (probe->usual)
            choose(probe, chosen);
}

/* ------------------------------------------------------------------------- views */

static bool is_word(const char *word, const char *text, size_t length)
{
    return strlen(word) == length && strncmp(word, text, length) == 0;
}

static void add_word(struct sonde_buffer *list, const char *word)
{
    snd_buf_format(list, "%s%s", list->length ? "," : "", word);
}

void snd_run_probes_views(const struct snd_run_probes *chosen, struct sonde_buffer *views)
{
    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe)) {
        const struct probe *other = probes;
        while (other < probe && !(is_on(other, chosen) && strcmp(other->view, probe->view) == 0))
            other = next_probe(other);
        if (other == probe && is_on(probe, chosen))
            add_word(views, probe->view);
    }
}

/* True if a probe on has the view, or if `also`, can show itself there; or if none is needed. */
static bool has_view(const struct snd_run_probes *chosen, const char *view, size_t length,
                     bool also, struct sonde_buffer *advice)
{
    const struct probe *needed = NULL;

    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe)) {
        bool shows = is_word(probe->view, view, length);
        if (is_on(probe, chosen) && (shows || (also && is_word(probe->also, view, length))))
            return true;
        if (shows && probe->without == EMPTY && !needed)
            needed = probe;
    }
    if (!needed)
        return true;
    snd_buf_format(advice, "--%s", needed->option);
    if (needed->value == LIST)
        snd_buf_format(advice, " %s", needed->argument);
    return false;
}

bool snd_run_probes_show(const struct snd_run_probes *chosen, const char *view, size_t length,
                         struct sonde_buffer *advice)
{
    return has_view(chosen, view, length, true, advice);
}

bool snd_run_probes_make(const struct snd_run_probes *chosen, const char *view,
                         struct sonde_buffer *advice)
{
    return has_view(chosen, view, strlen(view), false, advice);
}

/* ------------------------------------------------------------------- environment */

/* SONDE_LINE_MEMORY of the option line-memory: set, or cleared of an outer run's value. */
static void set_value(const struct probe *probe, const char *value)
{
    char name[64];
    int  length = snprintf(name, sizeof name, "SONDE_%s", probe->option);

    for (int i = 0; i < length && i < (int)sizeof name; i++)
        name[i] = name[i] == '-' ? '_' : (char)toupper((unsigned char)name[i]);
    if (value)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

/* SONDE_PROBES: the chosen ones by name, each followed by its details. Sets their values too. */
static void list_probes(const struct snd_run_probes *chosen, struct sonde_buffer *list)
{
    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe)) {
        for (const struct probe *one = probe; one < next_probe(probe); one++) {
            const char *value;
            char        number[32];
            bool        given = is_given(one, chosen, number, &value);
            if (one->value != FLAG)
                set_value(one, value);
            if (given || (one == probe && is_on(probe, chosen)))
                add_word(list, one->option);
        }
    }
    if (chosen->unasked)
        add_word(list, "unasked");
}

/* SONDE_START: "option when sees function records;.." of those that Python starts. */
static void list_starts(const struct snd_run_probes *chosen, struct sonde_buffer *list)
{
    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe))
        if (probe->start.kind == BY_PYTHON && is_on(probe, chosen))
            snd_buf_format(list, "%s%s %s %s %s %s", list->length ? ";" : "", probe->option,
                           probe->start.when, probe->start.sees, probe->start.function,
                           probe->records);
}

const struct snd_run_parent *snd_run_probes_parent(const struct snd_run_probes *chosen,
                                                   size_t                       index)
{
    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe))
        if (probe->start.kind == BY_PARENT && is_on(probe, chosen) && index-- == 0)
            return probe->start.parent;
    return NULL;
}

/* A probe that is not started from outside needs the package. */
static bool needs_package(const struct snd_run_probes *chosen)
{
    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe))
        if (probe->start.kind != BY_PARENT && is_on(probe, chosen))
            return true;
    return false;
}

/* A probe's library in one of its variables; `variable` has the name. */
struct place {
    struct snd_run_library library;
    const char            *at; /* the names after it */
    char                   variable[64];
};

/* Moves to the first (at NULL) or the next variable; false past the last. */
static bool next_place(const struct probe *probe, struct place *place)
{
    const char *at = place->at ? place->at : probe->start.variable;
    size_t      length = strcspn(at += strspn(at, " "), " ");

    snprintf(place->variable, sizeof place->variable, "%.*s", (int)length, at);
    place->library = (struct snd_run_library){ probe->start.library, place->variable,
                                               probe->records };
    place->at = at + length;
    return length > 0;
}

/* A probe that was not requested by name is left out, with the reason. -1 to go on. */
static int set_library(const struct probe *probe, const struct snd_run_probes *chosen)
{
    struct sonde_error err;

    for (struct place place = { .at = NULL }; next_place(probe, &place);) {
        if (snd_run_library_set(&place.library, &err) == SONDE_OK)
            continue;
        int status = snd_failure("run: %s", err.message);
        return chosen->unasked ? -1 : status;
    }
    return -1;
}

static int set_found(const struct snd_run_probes *chosen, const char *folder, const char *list)
{
    struct sonde_buffer starts = { 0 };
    int                 status = -1;

    list_starts(chosen, &starts);
    if (starts.failed || setenv(STARTS, snd_buf_string(&starts), 1) != 0 ||
        !snd_autostart_set(folder, list))
        status = snd_failure("run: out of memory");
    sonde_buffer_release(&starts);
    for (const struct probe *probe = probes; probe < end && status < 0; probe = next_probe(probe))
        if (probe->start.kind == BY_LIBRARY && is_on(probe, chosen))
            status = set_library(probe, chosen);
    return status;
}

/* Libraries of a run that we are part of. */
static void clear_libraries(void)
{
    for (const struct probe *probe = probes; probe < end; probe = next_probe(probe))
        for (struct place place = { .at = NULL };
             probe->start.kind == BY_LIBRARY && next_place(probe, &place);)
            snd_run_library_clear(&place.library);
}

int snd_run_probes_set(const struct snd_run_probes *chosen)
{
    struct sonde_buffer list = { 0 }, folder = { 0 };
    int                 status = -1;

    unsetenv("SONDE_FIRST_PROCESS"); /* of a run that we may be part of: _start.py's */
    clear_libraries();
    list_probes(chosen, &list);
    if (list.failed)
        status = snd_failure("run: out of memory");
    else if (!needs_package(chosen))
        unsetenv(STARTS), unsetenv("SONDE_PROBES");
    else if (snd_autostart_find(&folder))
        status = set_found(chosen, folder.bytes, list.bytes);
    else if (!chosen->unasked && !chosen->outside)
        status =
            snd_failure("run: cannot record %s: sonde's Python package is not beside this program; "
                        "install it (make, or pip install .) or set SONDE_PYTHON to its folder",
                        list.bytes);
    sonde_buffer_release(&list);
    sonde_buffer_release(&folder);
    return status;
}

void snd_run_probes_clear(void)
{
    unsetenv("SONDE_TRACE");
    unsetenv("SONDE_TRACE_OTHERS");
    unsetenv("SONDE_PROBES");
    unsetenv(STARTS);
    clear_libraries();
}
