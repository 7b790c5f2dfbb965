/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/gen_losses.c - a folder in which everything is missing that can be: each count of a file's header, each tally and each text that
 * says so, and damage of each kind; two files have each, with numbers of their own.
 *
 * N 0: of what a healthy run has some of, one more than that; a range of the child that was killed is open. N 1: as much as that, and no
 * range is open: these are notes then.
 */
#include "cases.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "format/facts.h"
#include "format/layout.h"
#include "format/limits.h"
#include "synth.h"

enum { FIRST, CHILD, FILES };

/* ------------------------------------------------------------------------ what was lost */

static void lose_in_header(struct snd_file_header *h, uint64_t file)
{
    h->lost_events = 3 + file;
    h->refused_events = 5 + file;
    h->lost_calls[SND_CALLS_CALLS] = 7 + file;
    h->lost_children = 11 + file;
    h->lost_children_why = file == FIRST ? EACCES : ENOENT;
    h->cut_files = 4; /* of one file it is a flag */
    h->lost_names = 13 + file;
    h->cut_names = 17 + file;
    h->recycled_chunks = 19 + file;
    h->recycled_events = 23 + file;
    h->failed_reserves = 29 + file;
    h->last_os_error = file == FIRST ? EIO : ENOSPC;
    h->closed_events = 1000 + file;
}

static void tell(struct synth *s, uint32_t kind, const uint64_t words[SND_TALLY_WORDS_MAX],
                 uint32_t count)
{
    synth_tally(s, kind, 0, 0, words, count);
}

#define TELL(s, kind, ...) \
    tell(s, kind, (const uint64_t[SND_TALLY_WORDS_MAX]){ __VA_ARGS__ }, SND_TALLY_WORDS_MAX)

/* Of 1000 rounds and 1000 native samples, both files together, a tenth and a twentieth may be missing. */
static void lose_in_tallies(struct synth *s, uint64_t file, uint64_t more)
{
    uint64_t i = file + 1;

    TELL(s, SND_TALLY_SAMPLER, [SND_SAMPLER_ROUNDS] = file == FIRST ? 600 : 400,
         [SND_SAMPLER_MISSED] = file == FIRST ? 60 + more : 40,
         [SND_SAMPLER_TORN] = file == FIRST ? 20 : 30 + more,
         [SND_SAMPLER_UNREAD] = file == FIRST ? 10 + more : 40, [SND_SAMPLER_UNMATCHED] = 100 * i);
    TELL(s, SND_TALLY_SAMPLER_GAPS, [SND_SAMPLER_GAPS_UNLISTED] = file == FIRST ? 25 + more : 25,
         [SND_SAMPLER_GAPS_NO_MEMORY] = 101 * i);
    TELL(s, SND_TALLY_NATIVE, [SND_NATIVE_SAMPLES] = file == FIRST ? 300 : 700,
         [SND_NATIVE_LOST] = 102 * i, [SND_NATIVE_CUT] = file == FIRST ? 15 + more : 35,
         [SND_NATIVE_BROKEN] = file == FIRST ? 5 : 45 + more, [SND_NATIVE_USER_ONLY] = 1,
         [SND_NATIVE_OTHER_RIGHTS] = 103 * i);
    TELL(s, SND_TALLY_NATIVE_RESTS, [SND_NATIVE_RESTS_UNSEEN] = 104 * i);
    TELL(s, SND_TALLY_NATIVE_WAITS, [SND_NATIVE_WAITS_ABSENT] = 1);
    TELL(s, SND_TALLY_ARGUMENTS, [SND_ARGUMENTS_DROPPED] = 105 * i);
    TELL(s, SND_TALLY_GPU, [SND_GPU_DROPPED] = 106 * i, [SND_GPU_UNKNOWN] = 107 * i,
         [SND_GPU_EARLY] = 108 * i, [SND_GPU_EARLY_NS] = file == FIRST ? 2500 : 1500,
         [SND_GPU_UNASKED] = 109 * i);
    TELL(s, SND_TALLY_COUNTERS_READ, [SND_COUNTERS_READ_ABSENT] = 110 * i,
         [SND_COUNTERS_READ_SCALED] = 111 * i);
    TELL(
        s, SND_TALLY_IMPORT, [SND_IMPORT_LOST] = 112 * i, [SND_IMPORT_REPAIRED] = 113 * i,
        [SND_IMPORT_UNMAPPED] = 114 * i, [SND_IMPORT_DERIVED] = 115 * i,
        [SND_IMPORT_ROUNDED] = 116 * i, [SND_IMPORT_DROPPED] = 117 * i, [SND_IMPORT_CUT] = 118 * i);
    TELL(s, SND_TALLY_HEAP_PROCESS, [SND_HEAP_PROCESS_UNSEEN] = 119 * i,
         [SND_HEAP_PROCESS_UNKNOWN] = 120 * i);
}

static void lose_in_texts(struct synth *s, uint64_t file)
{
    const struct snd_fact_member cuda[] = {
        { SND_FIELD_CUDA_ABSENT, SND_FACT_TEXT, synth_string(s, "no driver"), 0 },
    };

    synth_meta(s, "python.functions.unbalanced", file == FIRST ? "31" : "32");
    synth_meta(s, "python.functions.lost", file == FIRST ? "33" : "34");
    synth_meta(s, "torch.names_only", "1");
    synth_meta(s, "python.functions.switched", "another profiler took the hook");
    synth_meta(s, "import.unmapped", "3 of phase Q");
    synth_fact(s, SND_FACT_OF_CUDA, 0, 0, cuda, 1);
}

/* As many frames as are recorded of a stack, below the one that stands for the others; and one fewer. */
static void lose_frames(struct synth *s)
{
    uint32_t stack = synth_stack(s, 0, python_frame(s, SND_FRAMES_LEFT_OUT, 0, "", 0));
    uint32_t frame = python_frame(s, "f", 1, "f.py", 2);

    for (uint32_t depth = 0; depth < SND_PYTHON_FRAMES_MAX; depth++)
        stack = synth_stack(s, stack, frame);
}

/* ------------------------------------------------------------------------ what is damaged */

static void damage_chunks(struct synth *s, uint32_t t, uint64_t file)
{
    const uint64_t later[5] = { SND_KIND(31, 5) | 1500 << 8, 1, 2, 3, 4 };
    const uint32_t bad_record[4] = { 12 << 8 | SND_REC_STRING, 1, 0, 0 };
    const uint64_t bad_thread[2] = { SND_EV_THREAD, 99 };

    synth_raw(s, t, later, 5);
    for (uint64_t i = 0; i <= file; i++) {
        synth_chunk(s, 77, "later", 5);
        synth_chunk(s, SND_CHUNK_TABLE, bad_record, sizeof bad_record);
        synth_begin(s, t, 30000 + 1000 * i, 4000, 0); /* a name that is not defined */
        synth_end(s, t, 30500 + 1000 * i);
    }
    synth_raw(s, t, bad_thread, 2);
    synth_begin(s, t, 40000, 1, 0); /* of the thread that is not defined */
    synth_seal(s, t);
    synth_begin(s, t, 50000, 1, 0);
    synth_end(s, t, 60000);
    synth_mark(s, t, 10060000, 1, 0);
    synth_mark(s, t, 60000, 1, 0); /* back, as one that waited for a chunk may be */
    synth_mark(s, t, 59999, 1, 0); /* by more */
}

/* What a file that was copied badly has: bytes of no chunk at its end, and others that are missing. */
static void append_bytes(const char *path, size_t count)
{
    char bytes[512];
    int  fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);

    memset(bytes, 'x', sizeof bytes);
    if (fd < 0 || write(fd, bytes, count) != (ssize_t)count || close(fd) != 0)
        exit(1);
}

static void overwrite(const char *path, off_t at, const void *bytes, size_t count)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    if (fd < 0 || pwrite(fd, bytes, count, at) != (ssize_t)count || close(fd) != 0)
        exit(1);
}

/* --------------------------------------------------------------------------- the folder */

static void make_file(const char *path, uint64_t file, bool as_notes)
{
    struct synth_options options = { .pid = 4242 + (uint32_t)file,
                                     .parent_pid = file == FIRST ? 1 : 4242,
                                     .flags = SND_FILE_LIMIT,
                                     .max_bytes = 1 << 20 };
    struct synth        *s = synth_new(path, &options);
    uint32_t             t = synth_thread(s, "main", 0), work = synth_string(s, "work");

    synth_begin(s, t, 500, work, 0); /* of the warm-up */
    synth_end(s, t, 600);
    synth_header(s)->valid_from = synth_raw_clock(s, 1000);
    synth_begin(s, t, 2000, work, 0);
    synth_end(s, t, 3000);
    synth_end(s, t, 3500); /* of nothing */
    if (file == CHILD && !as_notes)
        synth_begin(s, t, 4000, work, 0);
    lose_in_header(synth_header(s), file);
    lose_in_tallies(s, file, as_notes ? 0 : 1);
    lose_in_texts(s, file);
    lose_frames(s);
    if (!as_notes)
        damage_chunks(s, t, file);
    synth_thread_done(s, t, 70000, 40 + file);
    synth_header(s)->closed_bytes = 10000000;
    synth_close(s, file == FIRST);
    append_bytes(path, 100 + file);
}

/* A file whose header is damaged and has no clock rate, and one of a later version. */
static void make_others(const char *folder)
{
    struct synth_options options = { .pid = 5000, .flags = SND_FILE_LIMIT | SND_FILE_KEEP_LAST };
    char                 path[1024];

    snprintf(path, sizeof path, "%s/damaged.sonde", folder);
    struct synth *s = synth_new(path, &options);
    uint32_t      t = synth_thread(s, "main", 0);
    synth_begin(s, t, 1000, synth_string(s, "work"), 0);
    synth_end(s, t, 2000);
    synth_header(s)->clock_kind = SND_CLOCK_TSC;
    synth_close(s, true);
    overwrite(path, offsetof(struct snd_file_header, host), "?", 1);

    snprintf(path, sizeof path, "%s/later.sonde", folder);
    s = synth_new(path, NULL);
    synth_header(s)->version_major = 99;
    synth_close(s, true);
}

void make_losses(const char *path, uint64_t n)
{
    char file[1024];

    make_folder(path);
    for (uint64_t i = 0; i < FILES; i++) {
        snprintf(file, sizeof file, "%s/%u.sonde", path, (unsigned)i + 1);
        make_file(file, i, n != 0);
    }
    if (n == 0)
        make_others(path);
}
