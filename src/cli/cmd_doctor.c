/* SPDX-License-Identifier: Apache-2.0 */
/* sonde doctor: what works here and, if not, why; a table of checks. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/json.h"
#include "cli/autostart.h"
#include "cli/commands.h"
#include "snd_config.h"

struct doctor_args {
    bool json;
};

static const struct snd_option options[] = {
    { 0, "json", NULL, "write JSON", SND_OPTION_FLAG, offsetof(struct doctor_args, json), 0 },
};

enum verdict { FINE, LIMITED, ABSENT };
static const char *const verdicts[] = { "ok", "limited", "no" };

struct finding {
    enum verdict verdict;
    char         text[256];
};

__attribute__((__format__(__printf__, 3, 4))) static void
find(struct finding *finding, enum verdict verdict, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    finding->verdict = verdict;
    vsnprintf(finding->text, sizeof finding->text, format, args);
    va_end(args);
}

/* The first line of a small file of the system; "" when it cannot be read. */
static const char *read_line(const char *path, char text[128])
{
    FILE *file = fopen(path, "re");

    text[0] = '\0';
    if (file) {
        if (fgets(text, 128, file))
            text[strcspn(text, "\n")] = '\0';
        fclose(file);
    }
    return text;
}

/* ----------------------------------------------------------------- checks */

#if defined(__x86_64__)
#include <cpuid.h>

static void check_clock(struct finding *finding)
{
    unsigned a, b, c, d = 0;
    char     source[128];

    read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source);
    bool invariant = __get_cpuid(0x80000007, &a, &b, &c, &d) && (d >> 8 & 1);
    if (invariant)
        find(finding, FINE, "invariant TSC; the kernel's clock source is %s",
             *source ? source : "not told");
    else
        find(finding, LIMITED,
             "no invariant TSC: events are stamped by clock_gettime, which takes "
             "longer; the kernel's clock source is %s",
             *source ? source : "not told");
}
#elif defined(__aarch64__)
static void check_clock(struct finding *finding)
{
    uint64_t hertz;

    __asm__ volatile("mrs %0, cntfrq_el0" : "=r"(hertz));
    find(finding, FINE, "virtual counter, %.1f MHz", (double)hertz / 1e6);
}
#else
static void check_clock(struct finding *finding)
{
    find(finding, LIMITED, "no processor counter is known here: clock_gettime stamps events");
}
#endif

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

static void check_populate(struct finding *finding)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    void  *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED) {
        find(finding, ABSENT, "cannot map a page: %s", strerror(errno));
        return;
    }
    if (madvise(page, size, MADV_POPULATE_WRITE) == 0)
        find(finding, FINE, "chunks are made ready ahead of their use");
    else
        find(finding, LIMITED,
             "the kernel has no MADV_POPULATE_WRITE (Linux 5.14): pages are "
             "touched one by one");
    munmap(page, size);
}

static void check_folder(struct finding *finding)
{
    char name[] = ".sonde-doctor.XXXXXX";
    int  fd = mkostemp(name, O_CLOEXEC);

    if (fd < 0) {
        find(finding, ABSENT,
             "cannot write in the current folder: %s; give a trace another place "
             "with -o",
             strerror(errno));
        return;
    }
    unlink(name);
    if (fallocate(fd, 0, 0, 1 << 20) == 0)
        find(finding, FINE, "the current folder's file system reserves space");
    else
        find(finding, LIMITED,
             "the current folder's file system cannot reserve space (%s): it is "
             "written with zeros instead, which is slower",
             strerror(errno));
    close(fd);
}

static void check_space(struct finding *finding)
{
    struct statvfs st;

    if (statvfs(".", &st) != 0) {
        find(finding, ABSENT, "cannot ask the current folder's file system: %s", strerror(errno));
        return;
    }
    double gib = (double)st.f_bavail * (double)st.f_frsize / 1073741824.0;
    find(finding, gib >= 1 ? FINE : LIMITED, "%.1f GB free in the current folder%s", gib,
         gib >= 1 ? "" : ": a recording may have to stop; see run --max-size");
}

static void check_zstd(struct finding *finding)
{
    if (SND_HAVE_ZSTD)
        find(finding, FINE, "packed traces are read and written");
    else
        find(finding, ABSENT, "built without zstd: 'sonde pack' and packed traces do not work");
}

static void check_zlib(struct finding *finding)
{
    if (SND_HAVE_ZLIB)
        find(finding, FINE, "'sonde export -o NAME.json.gz' compresses");
    else
        find(finding, ABSENT, "built without zlib: exports cannot be compressed");
}

static void check_yaml(struct finding *finding)
{
    if (SND_HAVE_YAML)
        find(finding, FINE,
             "pipeline files are read and written: 'sonde layers', 'sonde convert', 'sonde plan'");
    else
        find(finding, ABSENT,
             "built without libyaml: 'sonde layers', 'sonde convert' and 'sonde plan' do not work");
}

static void check_perf(struct finding *finding)
{
    char text[128];

    read_line("/proc/sys/kernel/perf_event_paranoid", text);
    if (!*text)
        find(finding, ABSENT, "the kernel has no perf events");
    else if (atoi(text) <= 2 || geteuid() == 0)
        find(finding, FINE,
             "a program's own samples and counters may be taken "
             "(perf_event_paranoid is %s)",
             text);
    else
        find(finding, LIMITED,
             "perf_event_paranoid is %s: as root, sysctl "
             "kernel.perf_event_paranoid=2 allows samples and counters",
             text);
}

static void check_memlock(struct finding *finding)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        find(finding, ABSENT, "cannot ask: %s", strerror(errno));
    else if (limit.rlim_cur == RLIM_INFINITY)
        find(finding, FINE, "no limit");
    else
        find(finding, limit.rlim_cur >= 65536 ? FINE : LIMITED, "%llu KB a process",
             (unsigned long long)limit.rlim_cur / 1024);
}

static void check_file_size(struct finding *finding)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0)
        find(finding, ABSENT, "cannot ask: %s", strerror(errno));
    else if (limit.rlim_cur == RLIM_INFINITY)
        find(finding, FINE, "no limit");
    else
        find(finding, LIMITED, "%llu KB a file: a recording stops there; see ulimit -f",
             (unsigned long long)limit.rlim_cur / 1024);
}

static void check_processors(struct finding *finding)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);

    find(finding, count > 1 ? FINE : LIMITED, "%ld on line%s", count,
         count > 1 ? "" : ": the thread that prepares chunks shares it with the program");
}

static bool is_on_path(const char *program)
{
    const char *at = getenv("PATH");
    char        file[4096];

    while (at && *at) {
        int length = (int)strcspn(at, ":");
        snprintf(file, sizeof file, "%.*s/%s", length, at, program);
        if (access(file, X_OK) == 0)
            return true;
        at += length + (at[length] == ':');
    }
    return false;
}

static void check_torch(struct finding *finding)
{
    struct sonde_buffer folder = { 0 };

    if (!snd_autostart_find(&folder))
        find(finding, ABSENT,
             "no Python package of sonde beside this program: 'sonde run --ops' does not work; "
             "set SONDE_PYTHON to its folder");
    else if (!getenv("CXX") && !is_on_path("c++") && !is_on_path("g++") && !is_on_path("clang++"))
        find(finding, LIMITED,
             "no C++ compiler: a torch that was not recorded before cannot be; apt install g++");
    else
        find(finding, FINE, "Python programs are recorded from %s", folder.bytes);
    sonde_buffer_release(&folder);
}

static const struct {
    const char *name;
    void (*check)(struct finding *);
} checks[] = {
    { "clock", check_clock },
    { "processors", check_processors },
    { "populate", check_populate },
    { "folder", check_folder },
    { "space", check_space },
    { "file size", check_file_size },
    { "locked memory", check_memlock },
    { "perf events", check_perf },
    { "torch", check_torch },
    { "zstd", check_zstd },
    { "zlib", check_zlib },
    { "yaml", check_yaml },
};
#define CHECKS (sizeof checks / sizeof checks[0])

/* ----------------------------------------------------------------- output */

static void print_json(const struct finding *findings)
{
    struct sonde_sink sink = sonde_sink_file(stdout);
    struct snd_out    out;
    struct snd_json   json;

    snd_out_init(&out, &sink);
    snd_json_init(&json, &out);
    snd_json_break_at(&json, 2);
    snd_json_object(&json, NULL);
    snd_json_text(&json, "version", sonde_version());
    snd_json_array(&json, "checks");
    for (size_t i = 0; i < CHECKS; i++) {
        snd_json_object(&json, NULL);
        snd_json_text(&json, "name", checks[i].name);
        snd_json_text(&json, "verdict", verdicts[findings[i].verdict]);
        snd_json_text(&json, "text", findings[i].text);
        snd_json_end(&json);
    }
    snd_json_end(&json);
    snd_json_end(&json);
    (void)snd_out_finish(&out, NULL); /* snd_finish_stdout reports it */
}

static int run(const struct snd_command *self, int argc, char **argv)
{
    struct doctor_args args = { 0 };
    struct finding     findings[CHECKS];
    int                operands;

    int status = snd_options_parse(self, argc, argv, &args, &operands);
    if (status >= 0)
        return status;
    if (operands > 0)
        return snd_usage_error(self, "unexpected operand '%s'", argv[0]);
    for (size_t i = 0; i < CHECKS; i++)
        checks[i].check(&findings[i]);
    if (args.json) {
        print_json(findings);
        return snd_finish_stdout(self);
    }
    for (size_t i = 0; i < CHECKS; i++)
        printf("%-14s %-8s %s\n", checks[i].name, verdicts[findings[i].verdict], findings[i].text);
    return snd_finish_stdout(self);
}

const struct snd_command snd_command_doctor = {
    "doctor",
    "",
    "say what works on this machine and, if not, why",
    options,
    SND_OPTION_COUNT(options),
    false,
    run,
};
