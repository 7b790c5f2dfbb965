/* SPDX-License-Identifier: Apache-2.0 */
/* What samples tell of a program: hot lines, imports, waits, the interpreter's lock, too many threads. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/count_of.h"
#include "base/text/compare.h"
#include "base/text/plural.h"
#include "model/flops/flops.h"
#include "model/highlights/advisor.h"
#include "model/samples/sample_counts.h"
#include "read/file/scale.h"
#include "read/reader.h"
#include "read/said/trace_metadata.h"

#define HOT_SAMPLES 50u
#define CALL_PERCENT 90.0 /* of a line's time in torch: it only calls the model */
#define IMPORT_PERCENT 30.0
#define IMPORT_NS INT64_C(200000000)
#define GIL_PERCENT 20.0
#define WAIT_PERCENT 20.0
#define WAIT_NS INT64_C(100000000) /* and so for the lock */
#define LOADER_PERCENT 10.0
#define TOO_MANY_TIMES 1.5

enum wait { LOCK, IO, SLEEP, OTHER, WAITS };
static const struct {
    enum snd_pattern pattern;
    const char      *words;
} waits[WAITS] = {
    [LOCK] = { SND_ADVICE_WAIT_LOCK, "waits for a lock" },
    [IO] = { SND_ADVICE_WAIT_IO, "waits for I/O" },
    [SLEEP] = { SND_ADVICE_WAIT_SLEEP, "sleeps" },
    [OTHER] = { SND_ADVICE_WAIT, "waits" },
};

struct loads {
    int64_t          ns;
    struct snd_spots at;
};

struct work {
    struct snd_advisor             *advisor;
    const struct snd_sample_counts *counts;
    struct snd_mixed_frame         *frames;
    uint32_t                        main; /* the thread that the program is */
    int64_t                         running_ns, others_ns, import_ns, lock_ns;
    uint64_t                        running_samples;
    int64_t                         main_import_ns; /* of import_ns */
    struct snd_spots                hot, in_torch, at_work, imports, locks, waiting[WAITS];
    struct loads                    alone, with_workers;
    bool                            failed;
};

/* --------------------------------------------------------------------- frames */

static bool ends_with(struct sonde_text text, const char *ending)
{
    return snd_ends_with_at(text.bytes, text.length, ending);
}

static bool is_import(const struct snd_mixed_frame *frame)
{
    static const char part[] = "importlib._bootstrap";

    return !frame->is_range &&
           memmem(frame->frame.file.bytes, frame->frame.file.length, part, sizeof part - 1);
}

static bool is_own(const struct work *w, size_t i)
{
    return !w->frames[i].is_range &&
           snd_library_paths_own(&w->advisor->libraries, &w->frames[i].frame,
                                 w->frames[i].is_native);
}

/* The first frame from `from` on, going outwards, that is the program's own; `count`: none. */
static size_t find_own(const struct work *w, size_t from, size_t count)
{
    while (from < count && !is_own(w, from))
        from++;
    return from;
}

static void add_at(struct work *w, struct snd_spots *spots, size_t frame, size_t count, int64_t ns,
                   uint64_t samples)
{
    if (frame >= count)
        return;
    const struct sonde_frame *f = &w->frames[frame].frame;
    const struct snd_spot     spot = { f->file, f->function, f->line };
    w->failed |= !snd_spots_add(spots, &spot, ns, samples);
}

/* What torch runs for who calls a module, not what it does for who takes data from it. */
static bool is_modules(struct sonde_text file)
{
    static const char of_torch[] = "/torch/", of_data[] = "/torch/utils/data/";

    return memmem(file.bytes, file.length, of_torch, sizeof of_torch - 1) &&
           !memmem(file.bytes, file.length, of_data, sizeof of_data - 1);
}

/* Whether the program's own code has called an operator of torch or a module, and is in what it called. */
static bool is_in_torch(const struct work *w, size_t own)
{
    for (size_t i = 0; i < own; i++) {
        const struct sonde_frame *f = &w->frames[i].frame;
        if (w->frames[i].is_range ? snd_flops_is_operator(f->function) : is_modules(f->file))
            return true;
    }
    return false;
}

/* ---------------------------------------------------------------------- waits */

static bool is_called(struct sonde_text function, const char *name)
{
    /* "__GI___poll", "__libc_recv", "Condition.wait" */
    static const char *const before[] = { "_", "GI_", "libc_", "new_" };
    bool                     cut = true;

    while (cut) {
        cut = false;
        for (size_t i = 0; i < SND_COUNT_OF(before); i++) {
            size_t length = strlen(before[i]);
            if (function.length > length && memcmp(function.bytes, before[i], length) == 0) {
                function = (struct sonde_text){ function.bytes + length, function.length - length };
                cut = true;
            }
        }
    }
    return function.length == strlen(name) && memcmp(function.bytes, name, function.length) == 0;
}

/* By the function that waits: native ones by name, Python's by the module that they are of. */
static enum wait judge_frame(const struct snd_mixed_frame *frame)
{
    static const struct {
        enum wait   kind;
        const char *name;
    } native[] = {
        { SLEEP, "nanosleep" },
        { SLEEP, "clock_nanosleep" },
        { SLEEP, "sleep" },
        { SLEEP, "usleep" },
        { SLEEP, "pysleep" },
        { LOCK, "pthread_mutex_lock" },
        { LOCK, "lll_lock_wait" },
        { LOCK, "pthread_cond_wait" },
        { LOCK, "pthread_cond_timedwait" },
        { LOCK, "pthread_rwlock_rdlock" },
        { LOCK, "pthread_rwlock_wrlock" },
        { LOCK, "pthread_join" },
        { LOCK, "sem_wait" },
        { LOCK, "sem_timedwait" },
        { LOCK, "sem_clockwait" },
        { LOCK, "futex_wait" },
        { LOCK, "PyThread_acquire_lock_timed" },
        { IO, "read" },
        { IO, "pread" },
        { IO, "pread64" },
        { IO, "readv" },
        { IO, "write" },
        { IO, "pwrite" },
        { IO, "pwrite64" },
        { IO, "writev" },
        { IO, "recv" },
        { IO, "recvfrom" },
        { IO, "recvmsg" },
        { IO, "send" },
        { IO, "sendto" },
        { IO, "sendmsg" },
        { IO, "poll" },
        { IO, "ppoll" },
        { IO, "select" },
        { IO, "pselect" },
        { IO, "epoll_wait" },
        { IO, "epoll_pwait" },
        { IO, "accept" },
        { IO, "accept4" },
        { IO, "connect" },
        { IO, "fsync" },
        { IO, "fdatasync" },
        { IO, "getaddrinfo" },
    };
    static const struct {
        enum wait   kind;
        const char *file;
    } python[] = {
        { LOCK, "/threading.py" }, { LOCK, "/queue.py" }, { IO, "/selectors.py" },
        { IO, "/socket.py" },      { IO, "/ssl.py" },     { IO, "/multiprocessing/connection.py" },
    };

    for (size_t i = 0; frame->is_native && i < SND_COUNT_OF(native); i++)
        if (is_called(frame->frame.function, native[i].name))
            return native[i].kind;
    for (size_t i = 0; !frame->is_native && i < SND_COUNT_OF(python); i++)
        if (ends_with(frame->frame.file, python[i].file))
            return python[i].kind;
    return OTHER;
}

static void add_wait(struct work *w, const struct snd_sample_count *row, size_t own, size_t count)
{
    enum wait kind = OTHER;

    for (size_t i = 0; i < own && kind == OTHER; i++)
        if (!w->frames[i].is_range)
            kind = judge_frame(&w->frames[i]);
    add_at(w, &w->waiting[kind], own, count, snd_sub(row->time_ns, row->gil_wait_ns), row->samples);
}

/* -------------------------------------------------------------------- loading */

static bool is_of_loader(const struct snd_mixed_frame *frame)
{
    return !frame->is_range && ends_with(frame->frame.file, "/torch/utils/data/dataloader.py");
}

/* The outermost frame of torch's DataLoader; `count`: none. */
static size_t find_loader(const struct work *w, size_t count)
{
    for (size_t i = count; i-- > 0;)
        if (is_of_loader(&w->frames[i]))
            return i;
    return count;
}

/* The module itself is being imported, as `import torch` does: nothing is loaded. */
static bool is_module(const struct snd_mixed_frame *frame)
{
    static const char module[] = "<module>";

    return frame->frame.function.length == sizeof module - 1 &&
           ends_with(frame->frame.function, module);
}

/* Of a thread that takes batches from torch's DataLoader: whether it loads them itself. */
static bool add_loading(struct work *w, const struct snd_sample_count *row, size_t count)
{
    size_t outermost = find_loader(w, count);
    bool   fetches = false, starts = false;

    for (size_t i = 0; i < outermost && outermost < count; i++)
        fetches |= !w->frames[i].is_range &&
                   ends_with(w->frames[i].frame.file, "/torch/utils/data/_utils/fetch.py");
    for (size_t i = 0; i < count; i++)
        starts |= is_of_loader(&w->frames[i]) && /* its workers, once */
                  ends_with(w->frames[i].frame.function, "__init__");
    if (outermost == count || starts || is_module(&w->frames[outermost]))
        return false;
    struct loads *loads = fetches ? &w->alone : &w->with_workers;
    loads->ns = snd_add(loads->ns, row->time_ns);
    add_at(w, &loads->at, find_own(w, outermost, count), count, row->time_ns, row->samples);
    return true;
}

/*
 * Ranges may have no stacks of their own: of each one around the sample, this is the line. A DataLoader's is that of the
 * loop, which calls it, not that of the data set.
 */
static void add_ranges(struct work *w, const struct snd_sample_count *row, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct sonde_text name = w->frames[i].frame.function;
        size_t                  own = w->frames[i].is_range ? find_own(w, i, count) : count;
        if (own == count)
            continue;
        enum snd_torch_range range = snd_torch_range(name.bytes, name.length);
        if (range == SND_TORCH_LOADS_ALONE || range == SND_TORCH_LOADS_WITH_WORKERS)
            own = find_own(w, find_loader(w, count), count);
        if (own == count)
            continue;
        const struct sonde_frame *f = &w->frames[own].frame;
        const struct snd_spot     spot = { f->file, f->function, f->line };
        w->failed |= !snd_sampled_ranges_add(&w->advisor->sampled, name.bytes, &spot, row->time_ns,
                                             row->samples);
    }
}

/* ----------------------------------------------------------------------- rows */

static void add_running(struct work *w, const struct snd_sample_count *row, size_t own,
                        size_t count)
{
    size_t import = count;

    w->running_ns = snd_add(w->running_ns, row->time_ns);
    w->running_samples += row->samples;
    if (row->thread != w->main)
        w->others_ns = snd_add(w->others_ns, row->time_ns);
    for (size_t i = 0; i < count; i++)
        if (is_import(&w->frames[i]))
            import = i;
    if (import < count) {
        w->import_ns = snd_add(w->import_ns, row->time_ns);
        if (row->thread == w->main)
            w->main_import_ns = snd_add(w->main_import_ns, row->time_ns);
        add_at(w, &w->imports, find_own(w, import, count), count, row->time_ns, row->samples);
    } else {
        add_at(w, &w->hot, own, count, row->time_ns, row->samples);
        add_at(w, is_in_torch(w, own) ? &w->in_torch : &w->at_work, own, count, row->time_ns,
               row->samples);
    }
}

static void add_row(struct work *w, const struct snd_sample_count *row)
{
    uint32_t process = w->counts->trace->threads[row->thread].shown.process;
    size_t   count = snd_mixed_frames(&w->counts->mixed, process, row->stack, row->chain, w->frames,
                                      SND_MIXED_FRAMES_MAX);

    count = count < SND_MIXED_FRAMES_MAX ? count : SND_MIXED_FRAMES_MAX;
    size_t own = find_own(w, 0, count);
    if (row->gil_wait_ns > 0) {
        w->lock_ns = snd_add(w->lock_ns, row->gil_wait_ns);
        add_at(w, &w->locks, own, count, row->gil_wait_ns, row->samples);
    }
    bool loads = row->thread == w->main && add_loading(w, row, count);
    add_ranges(w, row, count);
    if (!row->waits)
        add_running(w, row, own, count);
    else if (row->thread == w->main && !loads && row->time_ns > row->gil_wait_ns)
        add_wait(w, row, own, count);
}

/* The main thread of the process that was sampled longest: what a person waits for. */
static uint32_t find_main(const struct work *w)
{
    const struct sonde_trace *trace = w->counts->trace;
    uint32_t                  best = SONDE_NONE;

    for (uint32_t i = 0; i < w->counts->seen_count; i++) {
        uint32_t                          number = w->counts->seen[i];
        const struct sonde_sample_thread *t = &w->counts->threads[number];
        const struct sonde_thread        *thread = sonde_trace_thread(trace, number);
        if (thread->tid == sonde_trace_process(trace, thread->process)->pid &&
            (best == SONDE_NONE || t->time_ns > w->counts->threads[best].time_ns))
            best = number;
    }
    return best;
}

/* ------------------------------------------------------------------ sentences */

static bool imports_stand_out(const struct work *w)
{
    return w->import_ns >= IMPORT_NS && snd_percent(w->import_ns, w->running_ns) >= IMPORT_PERCENT;
}

/* What the program runs apart from its imports, where these have a sentence of their own: what shares of time are of. */
static int64_t whole_of(const struct work *w)
{
    return imports_stand_out(w) ? snd_sub(w->running_ns, w->import_ns) : w->running_ns;
}

static void tell_line(struct work *w, enum snd_pattern pattern, const struct snd_spot_sum *line,
                      const char *words)
{
    int64_t whole_ns = whole_of(w);
    char    place[SND_SPOT_TEXT];

    if (!line || line->count < HOT_SAMPLES || snd_percent(line->ns, whole_ns) < SND_HOT_PERCENT)
        return;
    snd_advise(w->advisor, pattern, snd_percent(line->ns, whole_ns), "source", &line->at,
               "%s, in %.*s, takes %.0f %% of the running time%s%s: %s of %s by samples",
               snd_spot_short(&line->at, place),
               (int)(line->at.function.length < 80 ? line->at.function.length : 80),
               line->at.function.bytes, snd_percent(line->ns, whole_ns),
               imports_stand_out(w) ? " without imports" : "", words,
               snd_amount_time(line->ns).text, snd_amount_time(whole_ns).text);
}

/*
 * A run to try things out is short, and imports are most of it; the loop that is asked about is in the rest. A line that
 * calls the model has the time of all its operators: no loop can be left out there, and the line that is hot by what the
 * program itself does is another.
 */
static void tell_hot(struct work *w)
{
    const struct snd_spot_sum *most = snd_spots_most(&w->hot);
    int64_t                    called_ns = most ? snd_spots_ns(&w->in_torch, &most->at) : 0;

    if (most && snd_percent(called_ns, most->ns) >= CALL_PERCENT) {
        tell_line(w, SND_ADVICE_HOT_CALL, most, ", in operators and modules that it calls");
        most = snd_spots_most(&w->at_work);
    }
    tell_line(w, SND_ADVICE_HOT_LINE, most, "");
}

static void tell_imports(struct work *w)
{
    const struct snd_spot_sum *most = snd_spots_most(&w->imports);
    char                       place[SND_SPOT_TEXT];

    if (!most || !imports_stand_out(w))
        return;
    snd_advise(w->advisor, SND_ADVICE_IMPORTS, snd_percent(w->import_ns, w->running_ns),
               "flame/samples", &most->at,
               "Imports take %.0f %% of the running time, %s; most of it, %s, at %s",
               snd_percent(w->import_ns, w->running_ns), snd_amount_time(w->import_ns).text,
               snd_amount_time(most->ns).text, snd_spot_short(&most->at, place));
}

/* Threads that others keep from running Python: of those that have it, or want it. */
static void tell_lock(struct work *w)
{
    const struct snd_spot_sum *most = snd_spots_most(&w->locks);
    int64_t                    awake_ns = 0;
    uint32_t                   threads = 0;
    char                       place[SND_SPOT_TEXT];

    for (uint32_t i = 0; i < w->counts->seen_count; i++) {
        const struct sonde_sample_thread *t = &w->counts->threads[w->counts->seen[i]];
        if (t->gil_wait_ns > 0) {
            awake_ns = snd_add(awake_ns, snd_sub(t->time_ns, t->idle_ns));
            threads++;
        }
    }
    if (!most || threads < 2 || w->lock_ns < WAIT_NS ||
        snd_percent(w->lock_ns, awake_ns) < GIL_PERCENT)
        return;
    snd_advise(w->advisor, SND_ADVICE_GIL, snd_percent(w->lock_ns, awake_ns), "flame/samples",
               &most->at,
               "%" PRIu32 " threads wait %.0f %% of the time in which they could run for the "
               "interpreter's lock, %s; most of it at %s",
               threads, snd_percent(w->lock_ns, awake_ns), snd_amount_time(w->lock_ns).text,
               snd_spot_short(&most->at, place));
}

static void tell_waits(struct work *w)
{
    int64_t whole_ns = w->main == SONDE_NONE ? 0 : w->counts->threads[w->main].time_ns;
    char    place[SND_SPOT_TEXT];

    for (size_t i = 0; i < WAITS; i++) {
        const struct snd_spot_sum *most = snd_spots_most(&w->waiting[i]);
        if (!most || most->ns < WAIT_NS || snd_percent(most->ns, whole_ns) < WAIT_PERCENT ||
            w->others_ns > most->ns / 2)
            continue;
        snd_advise(w->advisor, waits[i].pattern, snd_percent(most->ns, whole_ns), "flame/samples",
                   &most->at, "The main thread %s %.0f %% of its time at %s: %s of %s",
                   waits[i].words, snd_percent(most->ns, whole_ns),
                   snd_spot_short(&most->at, place), snd_amount_time(most->ns).text,
                   snd_amount_time(whole_ns).text);
    }
}

static void tell_loading(struct work *w, const struct loads *loads, enum snd_torch_range range,
                         enum snd_pattern pattern, const char *words)
{
    int64_t                    whole_ns = w->main == SONDE_NONE
                                              ? 0
                                              : snd_sub(w->counts->threads[w->main].time_ns, w->advisor->import_ns);
    const struct snd_spot_sum *most = snd_spots_most(&loads->at);
    char                       place[SND_SPOT_TEXT];

    if (most && !snd_advise_ranges_have(w->advisor, range) &&
        snd_percent(loads->ns, whole_ns) >= LOADER_PERCENT)
        snd_advise(w->advisor, pattern, snd_percent(loads->ns, whole_ns), "flame/samples",
                   &most->at, "%s %.0f %% of the main thread's time%s, %s, at %s", words,
                   snd_percent(loads->ns, whole_ns),
                   w->advisor->import_ns > 0 ? " without imports" : "",
                   snd_amount_time(loads->ns).text, snd_spot_short(&most->at, place));
}

/* Who has the interpreter's lock wants to run, whether it has a processor or not. */
static void tell_too_many(struct work *w)
{
    struct sonde_text value;
    int64_t           first = INT64_MAX, last = INT64_MIN, ready_ns = 0;
    uint32_t          threads = 0;

    if (w->main == SONDE_NONE ||
        !snd_meta_find(w->counts->trace, sonde_trace_thread(w->counts->trace, w->main)->process,
                       SND_META_MACHINE_CPUS, &value))
        return;
    double cpus = strtod(value.bytes, NULL);
    for (uint32_t i = 0; i < w->counts->seen_count; i++) {
        const struct sonde_sample_thread *t = &w->counts->threads[w->counts->seen[i]];
        first = t->first_ns < first ? t->first_ns : first;
        last = t->last_ns > last ? t->last_ns : last;
        int64_t ready = snd_sub(snd_sub(t->time_ns, t->idle_ns), t->gil_wait_ns);
        ready_ns = snd_add(ready_ns, ready);
        threads += snd_percent(ready, t->time_ns) >= 50;
    }
    double wanted = last > first ? (double)ready_ns / (double)snd_sub(last, first) : 0;
    if (cpus < 1 || wanted < TOO_MANY_TIMES * cpus || (double)threads <= cpus)
        return;
    snd_advise(w->advisor, SND_ADVICE_TOO_MANY, 100 - 100 * cpus / wanted, "table/threads", NULL,
               "%.1f threads want to run in the mean, on %.0f processor%s: %" PRIu32
               " threads want to more than half of their time",
               wanted, cpus, snd_plural((size_t)cpus), threads);
}

enum sonde_status snd_advise_samples(struct snd_advisor *advisor, struct sonde_error *err)
{
    struct work       w = { .advisor = advisor, .counts = advisor->counts };
    enum sonde_status st = SONDE_OK;

    w.frames = malloc(SND_MIXED_FRAMES_MAX * sizeof *w.frames);
    w.failed = !w.frames;
    w.main = find_main(&w);
    for (uint32_t i = 0; !w.failed && i < w.counts->count; i++)
        add_row(&w, &w.counts->rows[i]);
    if (w.failed)
        st = snd_fail(err, SONDE_E_NOMEM, "out of memory for the advice");
    if (st == SONDE_OK) {
        advisor->import_ns = imports_stand_out(&w) ? w.main_import_ns : 0;
        tell_loading(&w, &w.alone, SND_TORCH_LOADS_ALONE, SND_ADVICE_LOADER_ALONE,
                     "Loading data in the main process takes");
        tell_loading(&w, &w.with_workers, SND_TORCH_LOADS_WITH_WORKERS, SND_ADVICE_LOADER_WAITS,
                     "Waiting for the DataLoader's workers takes");
        tell_hot(&w);
        tell_imports(&w);
        tell_lock(&w);
        tell_waits(&w);
        tell_too_many(&w);
    }
    struct snd_spots *spots[] = { &w.hot,   &w.in_torch, &w.at_work,        &w.imports,
                                  &w.locks, &w.alone.at, &w.with_workers.at };
    for (size_t i = 0; i < SND_COUNT_OF(spots); i++)
        snd_spots_release(spots[i]);
    for (size_t i = 0; i < WAITS; i++)
        snd_spots_release(&w.waiting[i]);
    free(w.frames);
    return st;
}
