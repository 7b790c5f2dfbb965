/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/synth.h - writes trace files from nothing but the layout, for tests.
 *
 *     struct synth *s = synth_new("x.sonde", NULL);
 *     uint32_t main_thread = synth_thread(s, "main", 0);
 *     uint32_t name = synth_string(s, "work");
 *     synth_begin(s, main_thread, 100, name, 0);
 *     synth_end(s, main_thread, 250);
 *     synth_close(s, true);
 *
 * Nothing here is the recorder's code: the two check each other. Clock, ids, host and
 * session are fixed, so that equal calls give equal bytes. Times are nanoseconds since
 * the file was begun. Any failure ends the program: this is a tool for tests.
 */
#ifndef GEN_SYNTH_H
#define GEN_SYNTH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SYNTH_START_MONO_NS 1000000000u /* raw = monotonic at the start: 1 s */
#define SYNTH_START_REAL_NS 1700000000000000000u

struct synth_options {
    size_t      grain;            /* 0: synth_grain */
    size_t      chunk_bytes;      /* multiple of the grain; 0: one grain */
    uint32_t    pid, parent_pid;  /* 0: 4242, 4241 */
    uint32_t    rank, world_size; /* 0, 0: not told */
    uint32_t    cycle;
    const char *host, *program; /* NULL: "testhost", "prog" */
    uint64_t    start_ns;       /* start of this file after SYNTH_START_*: for several processes */
    uint64_t    boot_id;        /* 0: 0xb007 */
    uint64_t    ticks_per_ns_x1000; /* 0: one tick is one nanosecond; else of a TSC-like clock */
    uint32_t    flags;              /* enum snd_file_flag, beyond SND_FILE_CLOSED */
    uint64_t    max_bytes;
    uint8_t     session; /* filler of the session id; 0: 0x5e */
};

/* Chunks begin at multiples of it: 64 KiB, as recorded, unless a test wants tiny files. */
extern size_t synth_grain;

struct snd_symbol_entry; /* format/layout.h */
struct synth;
struct snd_call_record;

struct synth *synth_new(const char *path, const struct synth_options *options);
/* Seals the chunks and the header, if `closed`; otherwise leaves the file as a kill would. */
void synth_close(struct synth *s, bool closed);

/* Tables. Ids count from 1. */
uint32_t synth_string(struct synth *s, const char *text);
uint32_t synth_string_n(struct synth *s, const char *bytes, size_t length);
/* "8,3,224,224;64,3,3,3;-;#;(2;2,2)": tensors by `;`, `-` none, `#` scalar, `( )` a list. */
uint32_t synth_shapes(struct synth *s, const char *spec);
uint32_t synth_frame(struct synth *s, uint32_t function, uint32_t file, uint32_t line);
/* With the line where the function begins, and whether it is native code. */
uint32_t synth_frame_in(struct synth *s, uint32_t function, uint32_t first_line, uint32_t file,
                        uint32_t line, bool native);
/* One that is known by its address alone; and the functions there (16 at most are written). */
uint32_t synth_address(struct synth *s, uint32_t file, uint32_t build_id, uint64_t address);
void     synth_symbol(struct synth *s, uint32_t frame, const struct snd_symbol_entry *entries,
                      uint32_t count);
uint32_t synth_stack(struct synth *s, uint32_t parent, uint32_t frame);
/* Counters, as they stand at the end; `count` is not checked. */
void     synth_tally(struct synth *s, uint32_t kind, uint32_t key, uint32_t other,
                     const uint64_t *words, uint32_t count);
uint32_t synth_thread(struct synth *s, const char *name, uint64_t start_ns);
/* One with a thread id of its own. */
uint32_t synth_thread_of(struct synth *s, const char *name, uint32_t tid, uint64_t start_ns);
/* One of another process. */
uint32_t synth_thread_in(struct synth *s, const char *name, uint32_t pid, uint32_t tid,
                         uint64_t start_ns);
void     synth_thread_done(struct synth *s, uint32_t thread, uint64_t end_ns, uint64_t lost);
void     synth_meta(struct synth *s, const char *key, const char *value);
void     synth_clock(struct synth *s, uint64_t at_ns, int64_t real_shift_ns);
/* A record as it is: `type`, `id` and `size` (without head; padded to 8) are not checked. */
void synth_record(struct synth *s, uint8_t type, uint32_t id, const void *data, size_t size);

/* Events of `thread` at `ns` after the start. */
void synth_begin(struct synth *s, uint32_t thread, uint64_t ns, uint32_t name, uint32_t shapes);
void synth_end(struct synth *s, uint32_t thread, uint64_t ns);
void synth_mark(struct synth *s, uint32_t thread, uint64_t ns, uint32_t name, uint32_t stack);
void synth_step(struct synth *s, uint32_t thread, uint64_t ns, uint64_t number);
void synth_counter(struct synth *s, uint32_t thread, uint64_t ns, uint32_t name, double value);
void synth_alloc(struct synth *s, uint32_t thread, uint64_t ns, uint32_t device, uint64_t address,
                 uint64_t size);
void synth_free(struct synth *s, uint32_t thread, uint64_t ns, uint32_t device, uint64_t address,
                uint64_t size);
void synth_link(struct synth *s, uint32_t thread, uint64_t ns, uint32_t kind, bool arrives,
                uint64_t id);
void synth_attr(struct synth *s, uint32_t thread, uint8_t key, uint64_t value);
void synth_gap(struct synth *s, uint32_t thread, uint64_t ns, uint32_t lost, uint32_t ends);
void synth_end_at(struct synth *s, uint32_t thread, uint64_t ns, uint32_t inside);
void synth_end_key(struct synth *s, uint32_t thread, uint64_t ns, uint64_t key);
/* A range in one event; `duration_ns` 0 leaves it open. */
void synth_span(struct synth *s, uint32_t thread, uint64_t ns, uint32_t name, uint64_t duration_ns);
/* A way of calling, and a range of it; `duration_ns` as above. */
uint32_t synth_call(struct synth *s, const struct snd_call_record *call);
void     synth_call_range(struct synth *s, uint32_t thread, uint64_t ns, uint32_t call,
                          uint64_t duration_ns);
void     synth_sample(struct synth *s, uint32_t thread, uint64_t ns, uint32_t stack, uint32_t state,
                      uint32_t sampled, uint32_t covered_ns);
/* Written at `ns`; the stack was read at `read_ns`, and stands for the time from `begin_ns` to `end_ns`. */
struct synth_run {
    uint32_t stack, state, sampled;
    uint64_t begin_ns, end_ns, read_ns;
};
void synth_sample_run(struct synth *s, uint32_t thread, uint64_t ns, const struct synth_run *run);
/* A call of a Python function that returns at `ns`; `whose`: another thread's, or 0. */
void synth_function(struct synth *s, uint32_t thread, uint64_t ns, uint32_t frame, uint32_t whose,
                    uint64_t duration_ns, uint32_t id, uint32_t parent);
/* Words of any event, `ns` after the start being its time unless it has none (ATTR, ATTR64). */
void synth_event(struct synth *s, uint32_t thread, uint64_t ns, const uint64_t *words,
                 size_t count);
/* Where a device works, what it does, and that it did it: begun at `ns`, written by `thread`. */
struct snd_queue_record;
struct snd_work_record;
uint32_t synth_queue(struct synth *s, const struct snd_queue_record *queue);
uint32_t synth_work(struct synth *s, const struct snd_work_record *work);
void     synth_device(struct synth *s, uint32_t thread, uint64_t ns, uint32_t work, uint32_t queue,
                      uint64_t duration_ns, uint32_t correlation, uint64_t node);
/* Something said of the run, as the format has it (struct snd_fact_member). */
struct snd_fact_member;
void synth_fact(struct synth *s, uint32_t kind, uint32_t subject, uint32_t number,
                const struct snd_fact_member *members, uint32_t count);
/* Words as they are, for damage. */
void synth_raw(struct synth *s, uint32_t thread, const uint64_t *words, size_t count);

/* Ends the thread's chunk here; its next event opens another. */
void synth_seal(struct synth *s, uint32_t thread);
/* From now on `other` writes into the chunk of `thread`, as after a thread's end. */
void synth_share(struct synth *s, uint32_t thread, uint32_t other);
/* A chunk of `kind` with `size` bytes of payload: for unknown kinds. */
void synth_chunk(struct synth *s, uint16_t kind, const void *data, size_t size);
/* A reserved chunk that was never used. */
void synth_reserve(struct synth *s);

/* Fields of the header that the recorder stores as it goes. */
struct snd_file_header *synth_header(struct synth *s);
/* The raw clock of a moment after the start. */
uint64_t synth_raw_clock(const struct synth *s, uint64_t ns);

#endif
