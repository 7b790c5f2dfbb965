/* SPDX-License-Identifier: Apache-2.0 */
/* sonde doctor: what works here and, if not, why; a table of checks. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/text/json.h"
#include "base/system/proc_files.h"
#include "cli/commands.h"
#include "cli/command/probe_checks.h"
#include "cli/process/find_program.h"
#include "snd_config.h"
#include "symbols/dwarf/libdw.h"

struct doctor_args {
    bool json, fix;
};

static const struct snd_option options[] = {
    { 0, "fix", NULL, "print only the shell commands that would mend what was found",
      SND_OPTION_FLAG, offsetof(struct doctor_args, fix), 0 },
    { 0, "json", NULL, "write JSON", SND_OPTION_FLAG, offsetof(struct doctor_args, json), 0 },
};

static const char *const verdicts[] = { "ok", "limited", "no" };

/* ----------------------------------------------------------------- checks */

#if defined(__x86_64__)
#include <cpuid.h>

static void check_clock(struct snd_finding *finding)
{
    unsigned a, b, c, d = 0;
    char     source[128];

    snd_proc_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
                  sizeof source);
    bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
    if (invariant)
        snd_find(finding, SND_FINE, "invariant TSC; the kernel's clock source is %s",
                 *source ? source : "not told");
    else
        snd_find(finding, SND_LIMITED,
                 "no invariant TSC: events are stamped by clock_gettime, which takes "
                 "longer; the kernel's clock source is %s",
                 *source ? source : "not told");
}
#elif defined(__aarch64__)
static void check_clock(struct snd_finding *finding)
{
    uint64_t hertz;

    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
    snd_find(finding, SND_FINE, "virtual counter, %.1f MHz", (double)hertz / 1e6);
}
#else
static void check_clock(struct snd_finding *finding)
{
    snd_find(finding, SND_LIMITED,
             "no processor counter is known here: clock_gettime stamps events");
}
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void check_populate(struct snd_finding *finding)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void  *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        snd_find(finding, SND_ABSENT, "cannot map a page: %s", strerror(errno));
        return;
    }
    if (madvise(page, size, MADV_POPULATE_WRITE) == 0)
        snd_find(finding, SND_FINE, "chunks are made ready ahead of their use");
    else
        snd_find(finding, SND_LIMITED,
                 "the kernel has no MADV_POPULATE_WRITE (Linux 5.14): pages are "
                 "touched one by one");
    munmap(page, size);
}

static void check_folder(struct snd_finding *finding)
{
    char name[] = ".sonde-doctor.XXXXXX";
    int  fd = mkostemp(name, O_CLOEXEC);

    if (fd < 0) {
        snd_find(finding, SND_ABSENT,
                 "cannot write in the current folder: %s; give a trace another place "
                 "with -o",
                 strerror(errno));
        return;
    }
    unlink(name);
    if (fallocate(fd, 0, 0, 1 << 20) == 0)
        snd_find(finding, SND_FINE, "the current folder's file system reserves space");
    else
        snd_find(finding, SND_LIMITED,
                 "the current folder's file system cannot reserve space (%s): it is "
                 "written with zeros instead, which is slower",
                 strerror(errno));
    close(fd);
}

static void check_space(struct snd_finding *finding)
{
    struct statvfs st;

    if (statvfs(".", &st) != 0) {
        snd_find(finding, SND_ABSENT, "cannot query the current folder's file system: %s",
                 strerror(errno));
        return;
    }
    double gib = (double)st.f_bavail * (double)st.f_frsize / 1073741824.0;
    snd_find(finding, gib >= 1 ? SND_FINE : SND_LIMITED, "%.1f GB free in the current folder%s",
             gib, gib >= 1 ? "" : ": a recording may have to stop; see run --max-size");
}

/*
 * What a build has only where it found a library or a program: what works then, what does not, and
 * what brings it: the packages of Debian, and the names by which others look for them.
 */
static const struct part {
    const char *name, *works, *lacks, *packages, *others;
    bool        is_built;
} parts[] = {
    { "zstd", "packed traces are read and written",
      "built without zstd: 'sonde pack' and packed traces do not work", "libzstd-dev", "libzstd",
      SND_HAVE_ZSTD },
    { "zlib", "'sonde export -o NAME.json.gz' compresses",
      "built without zlib: exports cannot be compressed", "zlib1g-dev", "zlib", SND_HAVE_ZLIB },
    { "isal",
      "traces of other tools (.json.gz) are unpacked by ISA-L, at three times the speed of zlib",
      "built without ISA-L: traces of other tools (.json.gz) are unpacked by zlib, more slowly",
      "libisal-dev", "libisal", SND_HAVE_ISAL },
    { "yaml", "pipeline files are read and written: 'sonde layers', 'sonde convert', 'sonde plan'",
      "built without libyaml: 'sonde layers', 'sonde convert' and 'sonde plan' do not work",
      "libyaml-dev", "yaml-0.1", SND_HAVE_YAML },
    { "page", "'sonde export --to html' writes the report page",
      "built without the report page: install node and npm and build again, or take a release "
      "archive",
      "nodejs npm", "node and npm", SND_HAVE_PAGE },
};

static void check_part(struct snd_finding *finding, const struct part *part)
{
    finding->name = part->name;
    snd_find(finding, part->is_built ? SND_FINE : SND_ABSENT, "%s",
             part->is_built ? part->works : part->lacks);
    if (part->is_built)
        return;
    if (snd_find_on_path("apt-get", NULL))
        snd_fix(finding,
                "sudo apt-get install -y %s # then build sonde again: rm -rf build && make",
                part->packages);
    else
        snd_fix(finding, "# install %s, then build sonde again: rm -rf build && make",
                part->others);
}

static void check_browser(struct snd_finding *finding)
{
    const char *browser = getenv("BROWSER");

    if (browser && *browser) {
        snd_find(finding, SND_FINE, "'sonde view' opens the page with %s", browser);
    } else if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY")) {
        snd_find(finding, SND_LIMITED,
                 "no desktop: 'sonde view' writes the page to a file, to be "
                 "opened elsewhere");
    } else if (!snd_find_on_path("xdg-open", NULL)) {
        snd_find(finding, SND_LIMITED,
                 "no xdg-open: 'sonde view' cannot open a browser; set BROWSER");
        snd_fix(finding, "sudo apt-get install -y xdg-utils chromium");
    } else {
        snd_find(finding, SND_FINE, "'sonde view' opens the page with xdg-open");
    }
}

/* Lines of native programs; their functions come without it. */
static void check_lines(struct snd_finding *finding)
{
    struct snd_libdw dw;

    if (snd_libdw_open(&dw)) {
        snd_find(finding, SND_FINE, "source lines of native programs are read by libdw");
    } else if (SND_STATIC_PROGRAM) {
        snd_find(finding, SND_LIMITED,
                 "this sonde is static and has no libdw: samples of native programs have "
                 "functions, but no source lines");
        snd_fix(finding, "pip install sonde");
    } else {
        snd_find(finding, SND_LIMITED,
                 "no libdw.so.1: samples of native programs have functions, but no source lines; "
                 "apt install libdw1");
        snd_fix(finding, "sudo apt-get install -y libdw1");
    }
}

static void check_perf(struct snd_finding *finding)
{
    char text[128];

    snd_proc_line("/proc/sys/kernel/perf_event_paranoid", text, sizeof text);
    if (!*text)
        snd_find(finding, SND_ABSENT, "the kernel has no perf events");
    else if (atoi(text) <= 2 || geteuid() == 0)
        snd_find(finding, SND_FINE,
                 "a program's own samples and counters may be taken%s "
                 "(perf_event_paranoid is %s)",
                 atoi(text) <= 1 || geteuid() == 0 ? ", with the kernel's time and --off-cpu"
                                                   : ", without the kernel's time and --off-cpu",
                 text);
    else {
        snd_find(finding, SND_LIMITED,
                 "perf_event_paranoid is %s: as root, sysctl "
                 "kernel.perf_event_paranoid=2 allows samples and counters",
                 text);
        snd_fix(finding, "sudo sysctl kernel.perf_event_paranoid=2");
    }
}

/* A shell can raise its own limits as far as root lets it. */
static void fix_limit(struct snd_finding *finding, char option, rlim_t most)
{
    if (most == RLIM_INFINITY)
        snd_fix(finding, "ulimit -S -%c unlimited", option);
}

static void check_memlock(struct snd_finding *finding)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        snd_find(finding, SND_ABSENT, "cannot ask: %s", strerror(errno));
    else if (limit.rlim_cur == RLIM_INFINITY)
        snd_find(finding, SND_FINE, "no limit");
    else
        snd_find(finding, limit.rlim_cur >= 65536 ? SND_FINE : SND_LIMITED, "%llu KB a process",
                 (unsigned long long)limit.rlim_cur / 1024);
    if (finding->verdict == SND_LIMITED)
        fix_limit(finding, 'l', limit.rlim_max);
}

static void check_file_size(struct snd_finding *finding)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        snd_find(finding, SND_ABSENT, "cannot ask: %s", strerror(errno));
    else if (limit.rlim_cur == RLIM_INFINITY)
        snd_find(finding, SND_FINE, "no limit");
    else
        snd_find(finding, SND_LIMITED, "%llu KB a file: a recording stops there; see ulimit -f",
                 (unsigned long long)limit.rlim_cur / 1024);
    if (finding->verdict == SND_LIMITED)
        fix_limit(finding, 'f', limit.rlim_max);
}

static void check_processors(struct snd_finding *finding)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    snd_find(finding, count > 1 ? SND_FINE : SND_LIMITED, "%ld online%s", count,
             count > 1 ? "" : ": the thread that prepares chunks shares it with the program");
}

static const struct {
    const char *name;
    void (*check)(struct snd_finding *);
} checks[] = {
    { "clock", check_clock },
    { "processors", check_processors },
    { "populate", check_populate },
    { "folder", check_folder },
    { "space", check_space },
    { "file size", check_file_size },
    { "locked memory", check_memlock },
    { "perf events", check_perf },
    { "lines", check_lines },
    { NULL, NULL }, /* those of the probes (probes/probes.def) */
    { "browser", check_browser },
};
#define CHECKS SND_COUNT_OF(checks)
#define PARTS SND_COUNT_OF(parts)
#define FINDINGS_MAX (CHECKS + SND_PROBE_CHECKS_MAX + PARTS)

static size_t check_all(struct snd_finding findings[FINDINGS_MAX])
{
    size_t count = 0;

    for (size_t i = 0; i < CHECKS; i++) {
        if (!checks[i].check) {
            count += snd_probe_checks(findings + count);
            continue;
        }
        findings[count].name = checks[i].name;
        checks[i].check(&findings[count++]);
    }
    for (size_t i = 0; i < PARTS; i++)
        check_part(&findings[count++], &parts[i]);
    return count;
}

/* ----------------------------------------------------------------- output */

static void print_json(const struct snd_finding *findings, size_t count)
{
    struct snd_stdout_json output;
    struct snd_json       *json = snd_stdout_json_begin(&output, 2);

    snd_json_text(json, "version", sonde_version());
    snd_json_array(json, "checks");
    for (size_t i = 0; i < count; i++) {
        snd_json_object(json, NULL);
        snd_json_text(json, "name", findings[i].name);
        snd_json_text(json, "verdict", verdicts[findings[i].verdict]);
        snd_json_text(json, "text", findings[i].text);
        if (findings[i].fix[0])
            snd_json_text(json, "fix", findings[i].fix);
        snd_json_end(json);
    }
    snd_json_end(json);
    snd_stdout_json_end(&output);
}

/* A script: what was found is a comment above the line that mends it. */
static void print_fixes(const struct snd_finding *findings, size_t count)
{
    size_t fixes = 0;

    for (size_t i = 0; i < count; i++) {
        if (!findings[i].fix[0])
            continue;
        printf("# %s: %s\n%s\n", findings[i].name, findings[i].text, findings[i].fix);
        fixes++;
    }
    if (fixes == 0)
        printf(
            "# nothing was found that a command would mend; 'sonde doctor' lists what was tried\n");
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct doctor_args args = { 0 };
    struct snd_finding findings[FINDINGS_MAX];
    int                operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands > 0)
        return snd_usage_error(self, "unexpected operand '%s'", argv[0]);
    size_t count = check_all(findings);
    if (args.json) {
        print_json(findings, count);
        return snd_finish_stdout(self);
    }
    if (args.fix) {
        print_fixes(findings, count);
        return snd_finish_stdout(self);
    }
    for (size_t i = 0; i < count; i++)
        printf("%-14s %-8s %s\n", findings[i].name, verdicts[findings[i].verdict],
               findings[i].text);
    return snd_finish_stdout(self);
}

const struct snd_command snd_command_doctor = {
    .name = "doctor",
    .operands = "",
    .summary = "say what works on this machine and, if not, why",
    .options = options,
    .option_count = SND_COUNT_OF(options),
    .run = run,
};
