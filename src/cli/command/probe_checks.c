/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/command/probe_checks.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/system/open_library.h"
#include "base/system/package.h"
#include "cli/run/autostart.h"
#include "cli/process/find_program.h"
#include "native/counters/program_counters.h"

void snd_find(struct snd_finding *finding, enum snd_verdict verdict, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    finding->verdict = verdict;
    finding->fix[0] = '\0';
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
}

void snd_fix(struct snd_finding *finding, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vsnprintf(finding->fix, sizeof finding->fix, format, args);
    va_end(args);
}

/* The package may be one that pip or the system has installed for another Python. */
static void fix_package(struct snd_finding *finding)
{
    snd_fix(finding, "export SONDE_PYTHON=\"$(python3 -c 'import sonde, os; "
                     "print(os.path.dirname(sonde.__file__))')\"");
}

/* ------------------------------------------------------------------------ checks */

/*
 * What a check gets: the options of the probes that it is for ("--lines, --sample"), and the
 * library of the one that has one. `folder` is the package's, NULL if there is no package.
 */
struct checked {
    const char *options, *library, *folder;
};

/* PyTorch's operators: a torch that is new here needs a compiler once. */
static void snd_check_torch(struct snd_finding *finding, const struct checked *checked)
{
    if (!checked->folder) {
        snd_find(finding, SND_ABSENT,
                 "sonde's Python package is not beside this program: 'sonde run %s' does not work; "
                 "set SONDE_PYTHON to its folder",
                 checked->options);
        fix_package(finding);
    } else if (!getenv("CXX") && !snd_find_on_path("c++", NULL) && !snd_find_on_path("g++", NULL) &&
               !snd_find_on_path("clang++", NULL)) {
        snd_find(finding, SND_LIMITED,
                 "no C++ compiler: probes for new torch versions cannot be built; apt install g++");
        snd_fix(finding, "sudo apt-get install -y g++");
    } else {
        snd_find(finding, SND_FINE, "Python programs are recorded from %s", checked->folder);
    }
}

/* What is recorded of any Python program. */
static void snd_check_python(struct snd_finding *finding, const struct checked *checked)
{
    if (!checked->folder) {
        snd_find(finding, SND_ABSENT,
                 "sonde's Python package is not beside this program: none of %s works; "
                 "set SONDE_PYTHON to its folder",
                 checked->options);
        fix_package(finding);
    } else {
        snd_find(finding, SND_FINE, "%s record Python programs", checked->options);
    }
}

/* A library that is loaded into the program. */
static void snd_check_library(struct snd_finding *finding, const struct checked *checked)
{
    struct sonde_buffer path = { 0 };
    char                file[128];

    snprintf(file, sizeof file, "_native/probe_%s.so", checked->library);
    if (snd_package_find(file, &path))
        snd_find(finding, SND_FINE, "%s loads %s into programs", checked->options, path.bytes);
    else
        snd_find(finding, SND_ABSENT, "%s does not work: sonde/%s is not installed",
                 checked->options, file);
    sonde_buffer_release(&path);
}

/* GPUs: whether the probe's library finds a GPU and CUPTI on this machine. */
static void snd_check_cuda(struct snd_finding *finding, const struct checked *checked)
{
    struct sonde_buffer path = { 0 };
    char                text[512] = "";
    int (*check)(char *, size_t);

    snd_check_library(finding, checked);
    if (finding->verdict != SND_FINE || !snd_package_find("_native/probe_cuda.so", &path))
        return;
    void *library = snd_open_library(path.bytes);
    void *symbol = library ? dlsym(library, "sonde_cuda_check") : NULL;
    memcpy(&check, &symbol, sizeof symbol);
    if (!symbol)
        snd_find(finding, SND_ABSENT, "%s does not work: %s cannot be loaded: %s", checked->options,
                 path.bytes, dlerror());
    else if (check(text, sizeof text) != 0)
        snd_find(finding, SND_ABSENT, "%s records no GPU work here: %s", checked->options, text);
    else
        snd_find(finding, SND_FINE, "%s records %s", checked->options, text);
    sonde_buffer_release(&path);
}

/* Counters of a program: those of the processor, and what of the kernel may be counted. */
static void snd_check_counters(struct snd_finding *finding, const struct checked *checked)
{
    struct snd_counter_list   list;
    struct snd_counter_opened opened;
    struct sonde_error        err;
    const char               *absent[2] = { NULL, NULL };
    static char               why[2][sizeof opened.why];
    bool                      user_only = false;

    if (snd_counters_parse("task-clock,cycles", &list, &err) != SONDE_OK)
        return;
    for (size_t i = 0; i < 2; i++) {
        snd_counter_open(&list.items[i], 0, SND_COUNT_PROGRAM, -1, &opened);
        snprintf(why[i], sizeof why[i], "%s", opened.why);
        absent[i] = opened.fd < 0 ? why[i] : NULL;
        user_only |= opened.user_only;
        if (opened.fd >= 0)
            close(opened.fd);
    }
    const char *mode = user_only ? ", in user mode only (perf_event_paranoid)" : "";
    if (absent[0])
        snd_find(finding, SND_LIMITED, "%s has only what getrusage gives: %s", checked->options,
                 absent[0]);
    else if (absent[1])
        snd_find(finding, SND_LIMITED, "%s counts what the kernel does%s; cycles: %s",
                 checked->options, mode, absent[1]);
    else
        snd_find(finding, SND_FINE, "%s counts what the processor and the kernel do%s",
                 checked->options, mode);
}

/* ------------------------------------------------------------------------- table */

#define SND_BY_PYTHON(...) NULL
#define SND_BY_LIBRARY(name, variable) #name
#define SND_BY_PARENT(name) NULL
static const struct probe {
    const char *option, *library, *check_name;
    void (*check)(struct snd_finding *, const struct checked *);
} probes[] = {
#define SND_PROBE(id, option, value, argument, most, records, view, without, also, usual, start, \
                  folder, check, help)                                                           \
    { option, start, #check, snd_check_##check },
#define SND_PROBE_DETAIL(...)
#include "probes/probes.def"
#undef SND_PROBE
#undef SND_PROBE_DETAIL
};
#define PROBES SND_COUNT_OF(probes)

/* Probes that are checked together share a line: all but those with a library of their own. */
static bool is_together(const struct probe *one, const struct probe *other)
{
    return one == other || (!one->library && !other->library && one->check == other->check);
}

size_t snd_probe_checks(struct snd_finding findings[SND_PROBE_CHECKS_MAX])
{
    struct sonde_buffer folder = { 0 };
    bool                found = snd_autostart_find(&folder);
    size_t              count = 0;

    for (size_t i = 0; i < PROBES && count < SND_PROBE_CHECKS_MAX; i++) {
        struct sonde_buffer options = { 0 };
        bool                is_first = true;
        for (size_t k = 0; k < PROBES; k++) {
            if (!is_together(&probes[i], &probes[k]))
                continue;
            is_first &= k >= i;
            snd_buf_format(&options, "%s--%s", options.length ? ", " : "", probes[k].option);
        }
        struct checked checked = { snd_buf_string(&options), probes[i].library,
                                   found ? folder.bytes : NULL };
        if (is_first) {
            findings[count].name = probes[i].library ? probes[i].option : probes[i].check_name;
            probes[i].check(&findings[count++], &checked);
        }
        sonde_buffer_release(&options);
    }
    sonde_buffer_release(&folder);
    return count;
}
