/* SPDX-License-Identifier: Apache-2.0 */
#include "native/counters/program_counters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/text/nearest.h"
#include "base/system/perf_attr.h"
#include "base/system/proc_files.h"

/* --------------------------------------------------------------- the list */

/* "r01c2": a number of the processor's own, in hexadecimal. */
static bool read_raw(const char *name, size_t length, uint64_t *config)
{
    char  text[20], *end;
    bool  fits = length >= 2 && length <= 17 && name[0] == 'r';
    char *digits = text + 1;

    if (!fits)
        return false;
    memcpy(text, name, length);
    text[length] = '\0';
    *config = strtoull(digits, &end, 16);
    return *end == '\0' && strspn(digits, "0123456789abcdefABCDEF") == length - 1;
}

static enum sonde_status refuse_name(const char *name, size_t length, struct sonde_error *err)
{
    struct snd_nearest nearest = { .word = name, .length = length };
    char               hint[SND_HINT_MAX];

    for (size_t i = 0; i < SND_COUNTERS; i++) {
        snd_nearest_try(&nearest, snd_counters[i].name);
        if (*snd_counters[i].alias)
            snd_nearest_try(&nearest, snd_counters[i].alias);
    }
    return snd_fail(
        err, SONDE_E_ARGUMENT,
        "unknown counter '%.*s'%s; names are perf's: cycles, page-faults, cache-misses, "
        "L1-dcache-load-misses, rNNN; see 'man sonde-run'",
        (int)(length < 60 ? length : 60), name, snd_nearest_hint(&nearest, hint));
}

static enum sonde_status read_modifiers(const char *text, size_t length,
                                        struct snd_counter_event *event, struct sonde_error *err)
{
    for (size_t i = 0; i < length; i++) {
        if (text[i] != 'u' && text[i] != 'k')
            return snd_fail(err, SONDE_E_ARGUMENT,
                            "counter '%s': unknown modifier '%c'; expected :u (user mode), :k "
                            "(kernel mode) or :uk",
                            event->name, text[i]);
        event->user |= text[i] == 'u';
        event->kernel |= text[i] == 'k';
    }
    if (length == 0)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "counter '%s': expected :u, :k or :uk after it, got ':'", event->name);
    return SONDE_OK;
}

static struct snd_counter_event make_event(const struct snd_counter *known)
{
    struct snd_counter_event event = { .known = known,
                                       .type = known->type,
                                       .config = known->config };

    snprintf(event.name, sizeof event.name, "%s", known->name);
    return event;
}

/* One word: "cycles", "cycles:u", "r1c2:k". */
static enum sonde_status read_event(const char *word, size_t length,
                                    struct snd_counter_event *event, struct sonde_error *err)
{
    const char *colon = memchr(word, ':', length);
    size_t      bare = colon ? (size_t)(colon - word) : length;

    const struct snd_counter *known = snd_counter_find(word, bare);
    *event = (struct snd_counter_event){ .type = SND_COUNTER_RAW };
    if (known && known->type != SND_COUNTER_CLOCK)
        *event = make_event(known);
    else if (!known && read_raw(word, bare, &event->config))
        snprintf(event->name, sizeof event->name, "%.*s", (int)bare, word);
    else
        return known
                   ? snd_fail(err, SONDE_E_ARGUMENT,
                              "counter '%s' is always recorded; leave it off the list", known->name)
                   : refuse_name(word, bare, err);
    enum sonde_status status = SONDE_OK;
    if (colon)
        status = read_modifiers(colon + 1, length - bare - 1, event, err);
    if (status == SONDE_OK && colon && known && known->thread == SND_COUNTER_BY_CLOCK)
        return snd_fail(
            err, SONDE_E_ARGUMENT,
            "counter '%s' has no modes: the kernel's clock runs in both; leave '%.*s' off",
            event->name, (int)(length - bare < 8 ? length - bare : 8), colon);
    if (status == SONDE_OK && event->user != event->kernel)
        strcat(event->name, event->user ? ":u" : ":k");
    return status;
}

static bool has(const struct snd_counter_list *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->items[i].name, name) == 0)
            return true;
    return false;
}

static enum sonde_status add(struct snd_counter_list *list, const struct snd_counter_event *event,
                             struct sonde_error *err)
{
    if (has(list, event->name))
        return SONDE_OK;
    if (list->count == SND_COUNTERS_MOST)
        return snd_fail(err, SONDE_E_ARGUMENT, "more than %u counters; the first too many is '%s'",
                        SND_COUNTERS_MOST, event->name);
    list->items[list->count++] = *event;
    return SONDE_OK;
}

static enum sonde_status add_usual(struct snd_counter_list *list, struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    for (size_t i = 0; i < SND_COUNTERS && status == SONDE_OK; i++) {
        struct snd_counter_event event = make_event(&snd_counters[i]);
        if (snd_counters[i].usual)
            status = add(list, &event, err);
    }
    return status;
}

enum sonde_status snd_counters_parse(const char *text, struct snd_counter_list *list,
                                     struct sonde_error *err)
{
    static const char usual[] = "default";
    enum sonde_status status = SONDE_OK;

    list->count = 0;
    if (!*text)
        return add_usual(list, err);
    for (const char *at = text; status == SONDE_OK;) {
        struct snd_counter_event event;
        size_t                   length = strcspn(at, ",");
        if (length == strlen(usual) && strncmp(at, usual, length) == 0)
            status = add_usual(list, err);
        else if ((status = read_event(at, length, &event, err)) == SONDE_OK)
            status = add(list, &event, err);
        if (at[length] == '\0')
            break;
        at += length + 1;
    }
    return status;
}

/* ---------------------------------------------------------------- opening */

static const char *read_paranoid(char level[16])
{
    snd_proc_line("/proc/sys/kernel/perf_event_paranoid", level, 16);
    return *level ? level : "unknown";
}

/* A processor whose counters the kernel knows: /sys/bus/event_source/devices/cpu, cpu_core, armv8_.. */
static bool has_pmu(void)
{
    return access("/sys/bus/event_source/devices/cpu", F_OK) == 0 ||
           access("/sys/bus/event_source/devices/cpu_core", F_OK) == 0 ||
           access("/sys/bus/event_source/devices/armv8_pmuv3_0", F_OK) == 0 ||
           access("/sys/bus/event_source/devices/armv8_pmuv3", F_OK) == 0;
}

static void explain(const struct snd_counter_event *event, int why, char *text, size_t size)
{
    char level[16];
    bool hardware = event->type != SND_COUNTER_SOFTWARE;

    if ((why == ENOENT || why == EOPNOTSUPP || why == ENODEV || why == ENXIO) && hardware)
        snprintf(text, size, "not supported: %s",
                 has_pmu() ? "the processor, or the virtual machine, does not count it"
                           : "this machine gives no hardware counters (a virtual machine often "
                             "has none)");
    else if (why == EACCES || why == EPERM)
        snprintf(text, size,
                 "not permitted: perf_event_paranoid is %s; run as root, grant CAP_PERFMON, or "
                 "lower it",
                 read_paranoid(level));
    else if (why == ENOSYS)
        snprintf(text, size, "not supported: the kernel has no perf_event_open");
    else if (why == EMFILE || why == ENFILE)
        snprintf(text, size, "not counted: too many open files");
    else
        snprintf(text, size, "not counted: perf_event_open: %s", strerror(why));
}

/* The kernel's clocks run in both modes, whatever is asked for. */
static bool is_clock(const struct snd_counter_event *event)
{
    return event->known && event->known->thread == SND_COUNTER_BY_CLOCK;
}

static int open_event(struct perf_event_attr *attr, pid_t pid, int group)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, -1, group, PERF_FLAG_FD_CLOEXEC);
}

void snd_counter_open(const struct snd_counter_event *event, pid_t pid, enum snd_counter_span span,
                      int group, struct snd_counter_opened *opened)
{
    struct perf_event_attr attr = snd_perf_attr(event->type, event->config, event->user,
                                                event->kernel);

    attr.inherit = attr.disabled = attr.enable_on_exec = span == SND_COUNT_PROGRAM;
    *opened = (struct snd_counter_opened){ .fd = open_event(&attr, pid, group) };
    if (opened->fd < 0 && (errno == EACCES || errno == EPERM) && !event->user && !event->kernel) {
        attr.exclude_kernel = attr.exclude_hv = 1;
        opened->fd = open_event(&attr, pid, group);
        opened->user_only = opened->fd >= 0 && !is_clock(event);
    }
    if (opened->fd < 0)
        explain(event, errno, opened->why, sizeof opened->why);
}

bool snd_counter_is_mapped(int fd)
{
    size_t                       size = (size_t)sysconf(_SC_PAGESIZE);
    struct perf_event_mmap_page *page = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);

    if (page == MAP_FAILED)
        return false;
    bool can = page->cap_user_rdpmc;
    munmap(page, size);
    return can;
}

bool snd_counter_read(int fd, struct snd_counter_value *value)
{
    uint64_t words[3];
    ssize_t  n;

    do
        n = read(fd, words, sizeof words);
    while (n < 0 && errno == EINTR);
    if (n != (ssize_t)sizeof words)
        return false;
    *value = (struct snd_counter_value){ words[0], words[1], words[2] };
    return true;
}
