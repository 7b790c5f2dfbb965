/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/session.c - start, stop, step: the life of a recording.
 */
#include "record/session.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/bus.h"
#include "record/clock.h"
#include "record/file.h"
#include "record/intern.h"
#include "record/place.h"
#include "record/say.h"
#include "record/supply.h"
#include "record/thread.h"

struct snd_recording snd_rec = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .settled = PTHREAD_COND_INITIALIZER,
    .folder = SND_OWNFD_NONE,
    .file = SND_OWNFD_NONE,
    .table_chunk = SND_NO_CHUNK,
};
/* Recursive: the user's callback runs under it, and may ask for the path or stop. */
static pthread_mutex_t control = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static uint32_t        last_epoch;
static uint32_t marking; /* the epoch that is on, or 0: a new process finds the other wiped */
static uint32_t starts;  /* a callback may stop and start anew: whoever called it sees that */

/* A thread that is cancelled with a lock held would keep it for ever. Returns the state before. */
static int take_control(void)
{
    int cancel;

    snd_session_notice();
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&control);
    return cancel;
}

static void leave_control(int cancel)
{
    pthread_mutex_unlock(&control);
    pthread_setcancelstate(cancel, NULL);
}

/* ------------------------------------------------------------------- epoch */

static void set_epoch(uint32_t epoch)
{
    marking = epoch;
    __atomic_store_n(&sonde_epoch_.value, epoch + 1, __ATOMIC_RELEASE);
}

/* Marking begins (again): every lane and every site must look itself up anew. */
static void turn_on(void)
{
    if (++last_epoch >= SND_EPOCH_WIPED - 1)
        last_epoch = 1;
    set_epoch(last_epoch);
}

static void turn_off(void)
{
    set_epoch(0);
}

/* 0 before this, and again in a new process: the kernel wipes the page when it makes one. */
static void init_epoch(void)
{
    turn_off();
    if (sizeof sonde_epoch_ % (size_t)sysconf(_SC_PAGESIZE) == 0 &&
        (uintptr_t)&sonde_epoch_ % (size_t)sysconf(_SC_PAGESIZE) == 0) {
        int rc = madvise(&sonde_epoch_, sizeof sonde_epoch_, MADV_WIPEONFORK);
        (void)rc; /* before Linux 4.14: fork() is noticed all the same, by its handlers */
    }
}

/* ----------------------------------------------------------- open and close */

static void init_wake(void)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&snd_rec.wake, &attributes);
    pthread_condattr_destroy(&attributes);
}

static uint32_t intern_text(const char *text, size_t length)
{
    char     payload[4 + 4096];
    uint32_t size = (uint32_t)(length < 4096 ? length : 4096);

    if (size < length)
        snd_count(&snd_header->cut_names, 1);
    memcpy(payload, &size, 4);
    memcpy(payload + 4, text, size);
    return snd_table_intern(SND_REC_STRING, snd_hash_bytes(text, size, 0), payload, 4 + size);
}

static void write_metadata(const char *key, const char *value, size_t length)
{
    uint32_t pair[2] = { intern_text(key, strlen(key)), intern_text(value, length) };
    uint32_t id;

    snd_table_append(SND_REC_META, &id, pair, sizeof pair);
}

/*
 * What the program says of the run belongs into every file of it: later cycles, and children.
 * Notes are pairs of strings, one after another.
 */
static void keep_note(const char *key, const char *value)
{
    size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1;

    if (!snd_rec.notes)
        snd_rec.notes = snd_pages_new(SND_NOTES_SIZE);
    if (!snd_rec.notes || snd_rec.note_bytes + key_size + value_size > SND_NOTES_SIZE) {
        if (snd_header && snd_rec.phase != SND_OPEN) /* else the file of now gets it whole */
            snd_count(&snd_header->cut_names, 1);
        return;
    }
    memcpy(snd_rec.notes + snd_rec.note_bytes, key, key_size);
    memcpy(snd_rec.notes + snd_rec.note_bytes + key_size, value, value_size);
    snd_rec.note_bytes += key_size + value_size;
}

static void write_notes(void)
{
    for (size_t at = 0; at < snd_rec.note_bytes;) {
        const char *key = snd_rec.notes + at, *value = key + strlen(key) + 1;
        write_metadata(key, value, strlen(value));
        at = (size_t)(value + strlen(value) + 1 - snd_rec.notes);
    }
}

/* How the program was called, its words parted by blanks. */
static void write_command_line(void)
{
    char text[4096];
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/cmdline", snd_subject());
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    if (n <= 1)
        return;
    for (ssize_t i = 0; i < n - 1; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    write_metadata("command", text, (size_t)n - 1);
}

/* Both locks held. The file exists and can be written to when this returns SONDE_OK. */
static enum sonde_status open_recording(struct sonde_error *err)
{
    enum sonde_status status = snd_file_create(err);

    if (status != SONDE_OK)
        return status;
    snd_rec.serial++;
    snd_rec.seq = 0;
    snd_rec.exhausted = false;
    snd_rec.retry_at = 0;
    snd_rec.in_flight = 0;
    if (!snd_table_start()) {
        int os_error = (int)snd_header->last_os_error;
        snd_table_stop();
        snd_chunks_clear();
        snd_file_close(0);
        snd_place_remove();
        errno = os_error ? os_error : ENOSPC;
        return snd_fail_os(err, SONDE_E_IO,
                           "cannot reserve space for the trace %s; choose another "
                           "place with -o or options.path, or a larger limit",
                           snd_rec.file_path);
    }
    write_command_line();
    write_notes();
    snd_rec.phase = SND_OPEN;
    snd_supply_start();
    return SONDE_OK;
}

/* Seals what threads that ended have left, and the tables. */
static void seal_list(struct snd_chunk_list *list)
{
    uint32_t chunk;

    while ((chunk = snd_list_pop(list)) != SND_NO_CHUNK) {
        struct snd_chunk *it = &snd_rec.chunks[chunk];
        if (it->map && it->map->seq != 0 && it->used > 0) {
            snd_chunk_count(chunk, snd_chunk_seal(it->map, it->used, true));
            snd_file_punch(it->offset + it->used, it->offset + it->size);
        }
    }
}

/* Chunks in stock were never used: those at the end of the file are cut off. */
static uint64_t end_of_use(void)
{
    uint64_t end = snd_rec.file_end;

    for (bool again = true; again;) {
        again = false;
        uint32_t chunk = snd_rec.ready.count ? snd_rec.ready.head : SND_NO_CHUNK;
        for (uint32_t i = 0; i < snd_rec.ready.count; i++, chunk = snd_rec.chunks[chunk].next) {
            if (snd_rec.chunks[chunk].offset + snd_rec.chunks[chunk].size == end) {
                end = snd_rec.chunks[chunk].offset;
                again = true;
            }
        }
    }
    return end;
}

static void punch_ready(uint64_t end)
{
    uint32_t chunk = snd_rec.ready.count ? snd_rec.ready.head : SND_NO_CHUNK;

    for (uint32_t i = 0; i < snd_rec.ready.count; i++, chunk = snd_rec.chunks[chunk].next) {
        struct snd_chunk *it = &snd_rec.chunks[chunk];
        if (it->offset < end) /* its header stays, so that the next chunk is found */
            snd_file_punch(it->offset + SND_CHUNK_HEADER_SIZE, it->offset + it->size);
    }
}

/* Both locks held, marking turned off. */
static void close_recording(void)
{
    snd_table_clock(); /* first: it may let go of the lock, after the next line nobody does */
    snd_supply_stop();
    uint64_t now = sonde_clock();
    while (snd_rec.retired.count > 0) {
        uint32_t          chunk = snd_list_pop(&snd_rec.retired);
        struct snd_chunk *it = &snd_rec.chunks[chunk];
        snd_chunk_count(chunk, snd_chunk_seal(it->map, it->used, true));
    }
    snd_threads_park(now);
    if (snd_rec.table_chunk != SND_NO_CHUNK)
        snd_rec.chunks[snd_rec.table_chunk].used = snd_rec.table_used;
    snd_tallies_park();
    seal_list(&snd_rec.partial);
    seal_list(&snd_rec.tables);
    uint64_t end = end_of_use();
    punch_ready(end);
    snd_header->stopped_at = now;
    snd_header->closed_bytes = end; /* so that a reader knows when some of it is missing */
    snd_header->closed_events = snd_rec.events;
    __atomic_fetch_or(&snd_header->flags, SND_FILE_CLOSED, __ATOMIC_RELEASE);
    snd_table_stop();
    snd_chunks_clear();
    snd_file_close(end);
    snd_rec.phase = SND_WAITING;
}

/* A thread in the middle of a mark looks at the phase. Control lock held, the other not. */
static void set_phase(enum snd_phase phase)
{
    snd_lock();
    snd_rec.phase = phase;
    snd_unlock();
}

static void go_idle(void)
{
    set_phase(SND_IDLE);
    snd_place_close();
    snd_bus_release();
}

/* Closes the file and tells the user. Control lock held, the other not. */
static void finish_cycle(bool discard)
{
    snd_lock();
    turn_off();
    bool open = snd_rec.phase == SND_OPEN;
    if (open)
        close_recording();
    else
        snd_rec.phase = SND_WAITING;
    snd_unlock();
    if (!open)
        return;
    if (discard) {
        snd_place_remove();
    } else if (snd_rec.on_cycle) {
        struct sonde_cycle cycle = { snd_rec.file_path, snd_rec.cycle, snd_rec.step };
        snd_rec.on_cycle(&cycle, snd_rec.user);
    }
}

/* -------------------------------------------------------------------- steps */

static void mark_step(void)
{
    if (snd_thread_enter(2, SND_INTENT_OTHER) == SND_ENTRY_READY) {
        const uint64_t words[2] = { sonde_clock() << 8 | SND_EV_STEP, snd_rec.step };
        snd_lane_write(&sonde_lane_, words, 2);
        snd_thread_leave();
    }
}

/* Control lock held. Does what `action` asks for, from whatever state. */
static enum sonde_status begin_action(enum sonde_action action, struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    if (action == SONDE_ACTION_NONE)
        return SONDE_OK;
    snd_lock();
    if (snd_rec.phase != SND_OPEN && snd_rec.phase != SND_FORKED) {
        status = open_recording(err);
        if (status == SONDE_OK) {
            /* Until the warm-up is over nothing counts. */
            if (action == SONDE_ACTION_WARMUP)
                __atomic_store_n(&snd_header->valid_from, UINT64_MAX, __ATOMIC_RELAXED);
            if (!snd_rec.paused)
                turn_on();
        }
    }
    if (status == SONDE_OK && snd_rec.phase == SND_OPEN && action != SONDE_ACTION_WARMUP &&
        snd_header->valid_from == UINT64_MAX)
        __atomic_store_n(&snd_header->valid_from, sonde_clock(), __ATOMIC_RELEASE);
    snd_unlock();
    return status;
}

static bool has_schedule(void)
{
    return snd_rec.schedule.active > 0;
}

/* Each cycle may fail, for the same reason: that is said of the first. */
static void say_once(const char *message)
{
    if (!snd_rec.said)
        snd_say("%s; this cycle is not recorded", message);
    snd_rec.said = true;
}

/* The schedule moves from `before` to the action of the next step. */
static void move_schedule(enum sonde_action before)
{
    snd_rec.step++;
    enum sonde_action action = sonde_schedule_action(&snd_rec.schedule, snd_rec.step);
    if (before == SONDE_ACTION_RECORD_AND_SAVE) {
        uint32_t mine = starts;
        finish_cycle(false);
        if (snd_rec.phase == SND_IDLE || starts != mine)
            return; /* the callback stopped it, or began another */
        snd_rec.cycle++;
    }
    struct sonde_error err;
    if (begin_action(action, &err) != SONDE_OK)
        say_once(err.message);
    if (action != SONDE_ACTION_NONE)
        mark_step();
}

/* `number` NULL: the one after the last. */
static void begin_step(const uint64_t *number)
{
    int cancel = take_control();
    if (snd_rec.phase != SND_IDLE) {
        if (has_schedule()) {
            move_schedule(sonde_schedule_action(&snd_rec.schedule, snd_rec.step));
        } else {
            if (number)
                snd_rec.step = *number;
            mark_step();
            snd_rec.step++;
        }
    }
    leave_control(cancel);
}

void sonde_step(void)
{
    begin_step(NULL);
}

void sonde_step_number(uint64_t number)
{
    begin_step(&number);
}

/* ----------------------------------------------------------- start and stop */

static uint32_t number_from_environment(const char *name, uint32_t given)
{
    const char *text = secure_getenv(name);

    if (given != UINT32_MAX || !text || !*text)
        return given;
    char         *end;
    unsigned long value = strtoul(text, &end, 10);
    return *end == '\0' && value < UINT32_MAX ? (uint32_t)value : UINT32_MAX;
}

/* An absolute path, since the program may change its folder before a child or a cycle. */
static enum sonde_status set_path(const char *given, struct sonde_error *err)
{
    char        name[64], folder[PATH_MAX] = "";
    struct stat at;

    snprintf(name, sizeof name, "sonde-%d.sonde", (int)getpid());
    if (!given || !*given)
        given = name;
    if (given[0] != '/' && !getcwd(folder, sizeof folder - 1))
        return snd_fail_os(err, SONDE_E_IO, "cannot tell the current folder");
    const char *slash = stat(given, &at) == 0 && S_ISDIR(at.st_mode) ? "/" : "";
    int n = snprintf(snd_rec.path, sizeof snd_rec.path, "%s%s%s%s", folder, folder[0] ? "/" : "",
                     given, given[strlen(given) - 1] == '/' ? "" : slash);
    if (n < 0 || (size_t)n >= sizeof snd_rec.path)
        return snd_fail(err, SONDE_E_ARGUMENT, "the path %.200s is too long", given);
    return SONDE_OK;
}

static enum sonde_status take_options(const struct sonde_options *o, struct sonde_error *err)
{
    const struct sonde_options defaults = SONDE_OPTIONS_INIT;
    struct sonde_options       given = defaults;

    if (o) {
        if (o->struct_size == 0 || o->struct_size > sizeof given)
            return snd_fail(err, SONDE_E_ARGUMENT,
                            "options of another version of sonde/record.h; "
                            "begin with SONDE_OPTIONS_INIT, and build against this library");
        memcpy(&given, o, o->struct_size);
    }
    if (given.chunk_bytes % SND_GRAIN != 0 || given.chunk_bytes > SND_CHUNK_SIZE_MAX)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "chunk_bytes %zu is not a multiple of %zu up to %llu", given.chunk_bytes,
                        SND_GRAIN, (unsigned long long)SND_CHUNK_SIZE_MAX);
    if (given.limit == SONDE_LIMIT_KEEP_LAST && given.max_bytes == 0)
        return snd_fail(err, SONDE_E_ARGUMENT, "keep-last needs a limit: set max_bytes");
    if (given.max_bytes != 0 && given.max_bytes < 8 * SND_GRAIN)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "max_bytes %llu is less than %zu, the least a trace "
                        "needs",
                        (unsigned long long)given.max_bytes, 8 * SND_GRAIN);
    enum sonde_status status = set_path(given.path, err);
    if (status != SONDE_OK)
        return status;

    snd_rec.max_bytes = given.max_bytes;
    snd_rec.keep_last = given.limit == SONDE_LIMIT_KEEP_LAST;
    snd_rec.chunk_bytes = given.chunk_bytes ? given.chunk_bytes : SONDE_DEFAULT_CHUNK_BYTES;
    while (given.max_bytes != 0 && snd_rec.chunk_bytes > SND_GRAIN &&
           snd_rec.chunk_bytes > given.max_bytes / 16)
        snd_rec.chunk_bytes /= 2; /* a small limit is used up evenly by all threads */
    snd_rec.chunk_bytes &= ~(SND_GRAIN - 1);
    if (snd_rec.chunk_bytes < SND_GRAIN)
        snd_rec.chunk_bytes = SND_GRAIN;
    snd_rec.schedule = given.schedule;
    snd_rec.on_cycle = given.on_cycle;
    snd_rec.user = given.user;
    snd_rec.overwrite = given.overwrite;
    snd_rec.rank = number_from_environment("RANK", given.rank);
    snd_rec.world_size = number_from_environment("WORLD_SIZE", given.world_size);
    snd_rec.subject_pid = given.subject_pid;
    snd_rec.parent_pid = 0;
    snd_rec.step = 0;
    snd_rec.cycle = 0;
    snd_rec.paused = false;
    if (getrandom(snd_rec.session, sizeof snd_rec.session, GRND_NONBLOCK) < 0) {
        struct snd_clock_pair now = snd_clock_pair_now();
        memcpy(snd_rec.session, &now, sizeof snd_rec.session);
    }
    return SONDE_OK;
}

static enum sonde_status start(const struct sonde_options *options, struct sonde_error *err)
{
    if (snd_rec.phase != SND_IDLE)
        return snd_rec.from_run ? SONDE_OK
                                : snd_fail(err, SONDE_E_BUSY,
                                           "a recording to %s is already under "
                                           "way; a process has one at a time: stop it first",
                                           snd_rec.file_path);
    if (!snd_lifecycle_is_set_up())
        return snd_fail(err, SONDE_E_NOMEM, "no thread-specific key is left for the recorder");
    enum sonde_status status = take_options(options, err);
    if (status != SONDE_OK)
        return status;
    enum sonde_action action = sonde_schedule_action(&snd_rec.schedule, 0);
    starts++;
    snd_rec.said = snd_rec.barred = false;
    snd_place_open();
    snd_rec.file_path[0] = '\0';
    snd_rec.note_bytes = 0;
    set_phase(SND_WAITING);
    status = begin_action(action, err);
    if (status != SONDE_OK)
        go_idle();
    else if (has_schedule() && action != SONDE_ACTION_NONE)
        mark_step();
    return status;
}

enum sonde_status sonde_start(const struct sonde_options *options, struct sonde_error *err)
{
    int               cancel = take_control();
    enum sonde_status status = start(options, err);
    leave_control(cancel);
    return status;
}

static void end_recording(void)
{
    bool warming = has_schedule() &&
                   sonde_schedule_action(&snd_rec.schedule, snd_rec.step) == SONDE_ACTION_WARMUP;

    uint32_t mine = starts;
    finish_cycle(warming);
    if (starts != mine)
        return; /* the callback began another */
    go_idle();
    snd_rec.from_run = false;
}

enum sonde_status sonde_stop(struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;

    int cancel = take_control();
    if (snd_rec.phase == SND_IDLE)
        status = snd_fail(err, SONDE_E_STATE, "no recording is under way");
    else if (!snd_rec.from_run)
        end_recording();
    leave_control(cancel);
    return status;
}

void snd_session_end(void)
{
    int cancel = take_control();
    if (snd_rec.phase != SND_IDLE)
        end_recording();
    leave_control(cancel);
}

void sonde_pause(void)
{
    int cancel = take_control();
    if (snd_rec.phase != SND_IDLE && !snd_rec.paused) {
        uint32_t epoch = sonde_epoch();
        size_t   i = epoch % (sizeof snd_rec.pauses / sizeof snd_rec.pauses[0]);
        snd_lock();
        snd_rec.paused = true;
        turn_off();
        snd_rec.pauses[i].epoch = epoch;
        snd_rec.pauses[i].at = sonde_clock();
        snd_unlock();
    }
    leave_control(cancel);
}

void sonde_resume(void)
{
    int cancel = take_control();
    if (snd_rec.paused) {
        snd_rec.paused = false;
        if (snd_rec.phase == SND_OPEN || snd_rec.phase == SND_FORKED)
            turn_on();
    }
    leave_control(cancel);
}

size_t sonde_trace_path(char *buffer, size_t size)
{
    int    cancel = take_control();
    size_t length = strlen(snd_rec.file_path);
    if (size > 0)
        snprintf(buffer, size, "%s", snd_rec.file_path);
    leave_control(cancel);
    return length;
}

bool sonde_under_run(void)
{
    int  cancel = take_control();
    bool result = snd_rec.from_run && snd_rec.phase != SND_IDLE;
    leave_control(cancel);
    return result;
}

void sonde_metadata(const char *key, const char *value)
{
    snd_session_notice();
    snd_lock();
    if (snd_rec.phase != SND_IDLE)
        keep_note(key, value);
    if (snd_rec.phase == SND_OPEN)
        write_metadata(key, value, strlen(value));
    snd_unlock();
}

/* ------------------------------------------------------- environment, forks */

void snd_session_from_environment(void)
{
    /* secure_getenv: a set-user-id program must not write where its caller tells it to. */
    struct sonde_options options = SONDE_OPTIONS_INIT;
    struct sonde_error   err;
    const char          *limit = secure_getenv("SONDE_LIMIT");
    const char          *most = secure_getenv("SONDE_MAX_BYTES");
    const char          *schedule = secure_getenv("SONDE_SCHEDULE");

    init_epoch();
    init_wake();
    snd_rec.usable = true;
    options.path = secure_getenv("SONDE_TRACE");
    if (!options.path && getenv("SONDE_TRACE"))
        snd_say("the program has more rights than who started it (set-user-id, capabilities), and "
                "so may not be told where to write: it runs unrecorded");
    if (!options.path || !*options.path)
        return;
    if (most)
        options.max_bytes = strtoull(most, NULL, 10);
    if (limit && strcmp(limit, "keep-last") == 0)
        options.limit = SONDE_LIMIT_KEEP_LAST;
    if (schedule && !snd_schedule_parse(schedule, &options.schedule))
        snd_say("SONDE_SCHEDULE=%s is not understood; recording everything", schedule);
    if (sonde_start(&options, &err) == SONDE_OK)
        snd_rec.from_run = true;
    else
        snd_say("%s; the program runs unrecorded", err.message);
}

/* The child that cannot be recorded is told of in its parent's file; the first of them aloud. */
static void count_lost_child(const struct sonde_error *err)
{
    struct snd_file_header *family = snd_rec.parent_header;
    uint64_t                before = 0;

    if (family) {
        __atomic_store_n(&family->lost_children_why, (uint32_t)err->os_error, __ATOMIC_RELAXED);
        before = __atomic_fetch_add(&family->lost_children, 1, __ATOMIC_RELAXED);
    }
    if (before == 0)
        snd_say("%s; the forked process %d runs unrecorded, and so will others like it",
                err->message, (int)getpid());
}

/* Control or the lock held. */
static void leave_parent_header(void)
{
    if (snd_rec.parent_header)
        snd_file_unmap(snd_rec.parent_header, SND_HEADER_SIZE);
    snd_rec.parent_header = NULL;
}

void snd_session_open_child(void)
{
    struct sonde_error err = { .os_error = 0 };

    if (open_recording(&err) != SONDE_OK) {
        turn_off();
        snd_rec.phase = SND_WAITING;
        snd_rec.barred = true;
        count_lost_child(&err);
        return;
    }
    leave_parent_header();
    if (has_schedule() &&
        sonde_schedule_action(&snd_rec.schedule, snd_rec.step) == SONDE_ACTION_WARMUP)
        __atomic_store_n(&snd_header->valid_from, UINT64_MAX, __ATOMIC_RELAXED);
}

void snd_session_lock(void)
{
    pthread_mutex_lock(&control);
    snd_lock();
}

void snd_session_unlock(void)
{
    snd_unlock();
    pthread_mutex_unlock(&control);
}

/* What a thread that is not in this process was in the middle of is left as it is, for ever. */
static void forget_file(enum snd_survivor survivor)
{
    bool at_rest = survivor != SND_SURVIVOR_UNKNOWN;

    leave_parent_header();
    snd_rec.parent_header = snd_file_again(snd_header, SND_HEADER_SIZE);
    if (!at_rest)
        snd_chunks_abandon();
    snd_threads_forget(survivor);
    if (at_rest) {
        snd_chunks_clear();
        snd_table_stop();
    } else {
        snd_table_abandon();
    }
    snd_file_leave();
    snd_rec.file_path[0] = '\0'; /* that is the parent's */
}

static void make_locks(void)
{
    const pthread_mutex_t fresh = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

    memcpy(&control, &fresh, sizeof control);
    pthread_mutex_init(&snd_rec.lock, NULL);
    pthread_cond_init(&snd_rec.settled, NULL);
    init_wake();
}

/* The epoch last: until then other threads of the new process wait, or are not there yet. */
void snd_session_in_child(enum snd_survivor survivor)
{
    bool on = marking != 0 || snd_rec.barred;
    bool records = snd_rec.phase == SND_OPEN || snd_rec.phase == SND_FORKED || snd_rec.barred;

    make_locks();
    snd_rec.has_supplier = false;
    snd_rec.parent_pid = (uint32_t)getppid();
    snd_rec.subject_pid = 0;
    if (snd_rec.phase == SND_OPEN)
        forget_file(survivor);
    if (records) {
        snd_rec.phase = SND_FORKED;
        snd_rec.barred = false;
        snd_rec.serial++;
    }
    if (records && on)
        turn_on();
    else
        turn_off();
}

/* The options themselves may be half set: another thread held the control lock. */
static void give_up_child(void)
{
    struct sonde_error err;

    snd_fail(&err, SONDE_E_BUSY,
             "a process was made by clone() while another thread started or stopped the recording");
    err.os_error = EBUSY;
    if (snd_rec.phase == SND_OPEN)
        forget_file(SND_SURVIVOR_UNKNOWN);
    if (snd_rec.phase != SND_IDLE)
        count_lost_child(&err);
    snd_rec.phase = SND_IDLE;
    snd_rec.barred = false;
    snd_session_in_child(SND_SURVIVOR_UNKNOWN);
}

/* Of the parent's threads one is here. If another held a lock, what that guards may be half done. */
static void enter_new_process(void)
{
    bool controlled = pthread_mutex_trylock(&control) != 0;
    bool locked = pthread_mutex_trylock(&snd_rec.lock) != 0;

    if (controlled)
        give_up_child();
    else
        snd_session_in_child(locked ? SND_SURVIVOR_UNKNOWN : SND_SURVIVOR_ANY);
}

void snd_session_notice(void)
{
    if (sonde_epoch() != SND_EPOCH_WIPED || !snd_lifecycle_is_set_up())
        return;
    /* It, too, was wiped: this is the new process's own. */
    while (__atomic_exchange_n(&sonde_epoch_.noticing, 1, __ATOMIC_ACQUIRE))
        sched_yield();
    if (sonde_epoch() == SND_EPOCH_WIPED)
        enter_new_process();
    __atomic_store_n(&sonde_epoch_.noticing, 0, __ATOMIC_RELEASE);
}
