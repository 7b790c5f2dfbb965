/* SPDX-License-Identifier: Apache-2.0 */
/*
 * read/open.c - from a path to an open trace: which files, in which order, on which axis.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/data/sort.h"
#include "read/file/cursor.h"
#include "read/walk/device_work.h"
#include "read/said/trace_facts.h"
#include "read/said/trace_metadata.h"
#include "read/reader.h"
#include "read/walk/kinds.h"
#include "read/walk/trace_walk.h"

#define KEPT_OPEN 256u     /* files whose descriptor is kept */
#define FILES_MAX 1000000u /* of one folder */
#define FOLDERS_DEEP 3u    /* folders in folders: of a job, a host, a rank */

static enum sonde_status fail_memory(struct sonde_error *err)
{
    return snd_fail(err, SONDE_E_NOMEM, "out of memory for the trace");
}

static void release_process(struct snd_process *p)
{
    if (p->is_guest)
        return;
    snd_tables_release(&p->tables);
    for (uint32_t i = 0; i < p->lane_count; i++)
        free(p->lanes[i].unpacked);
    free(p->lanes);
    free(p->others);
    snd_source_release(&p->source);
}

void sonde_trace_close(struct sonde_trace *trace)
{
    if (!trace)
        return;
    for (uint32_t i = 0; i < trace->process_count; i++)
        release_process(&trace->processes[i]);
    snd_devices_free(trace->devices);
    snd_kinds_free(trace->kinds);
    free(trace->processes);
    free(trace->threads);
    snd_texts_release(&trace->names);
    snd_arena_release(&trace->arena);
    free(trace);
}

/* ------------------------------------------------------------- which files */

static enum sonde_status add_source(struct sonde_trace *trace, struct snd_source source,
                                    struct sonde_error *err)
{
    struct snd_process p = { .source = source };
    enum sonde_status  status = snd_header_read(&p, err);

    if (status == SONDE_OK &&
        !snd_grow(&trace->processes, &trace->process_room, trace->process_count, sizeof p))
        status = fail_memory(err);
    if (status == SONDE_OK)
        trace->processes[trace->process_count++] = p;
    else
        snd_source_release(&p.source);
    return status;
}

static enum sonde_status add_file(struct sonde_trace *trace, const char *path,
                                  struct sonde_error *err)
{
    struct snd_source source;
    bool              keep = trace->process_count < KEPT_OPEN;
    enum sonde_status status = snd_source_open(&source, path, keep, err);

    return status == SONDE_OK ? add_source(trace, source, err) : status;
}

/* The same for another tool's file: it is converted into a trace that only this process has. */
static enum sonde_status add_foreign(struct sonde_trace *trace, const char *path,
                                     struct sonde_error *err)
{
    struct snd_source source;
    enum sonde_status status = snd_source_import(&source, path, err);

    return status == SONDE_OK ? add_source(trace, source, err) : status;
}

static enum sonde_status add_any(struct sonde_trace *trace, const char *path,
                                 struct sonde_error *err)
{
    return snd_source_is_foreign(path) ? add_foreign(trace, path, err) : add_file(trace, path, err);
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void free_list(char **list, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

/* What of a folder's entries is wanted; `user` is its own. */
typedef bool wanted_fn(const char *name, const void *user);

/* Full paths of the wanted entries of `folder`, sorted. */
static enum sonde_status list_folder(const char *folder, wanted_fn *wanted, const void *user,
                                     char ***list, uint32_t *count, struct sonde_error *err)
{
    enum sonde_status status = SONDE_OK;
    DIR              *dir = opendir(folder);
    uint32_t          room = 0;

    *list = NULL;
    *count = 0;
    if (!dir)
        return snd_fail_os(err, SONDE_E_IO, "cannot read the folder %s", folder);
    for (struct dirent *entry; (entry = readdir(dir)) && *count < FILES_MAX;) {
        char *path;
        if (!wanted(entry->d_name, user))
            continue;
        if (!snd_grow(list, &room, *count, sizeof **list) ||
            asprintf(&path, "%s/%s", folder, entry->d_name) < 0) {
            status = fail_memory(err);
            break;
        }
        (*list)[(*count)++] = path;
    }
    closedir(dir);
    snd_sort(*list, *count, sizeof **list, compare_text);
    return status;
}

static bool is_visible(const char *name, const void *user)
{
    (void)user;
    return name[0] != '.';
}

/* Whether a name is that of a trace which torch.profiler writes for TensorBoard; or of any JSON, if `loosely`. */
static bool is_foreign_name(const char *path, bool loosely)
{
    static const char *const ends[] = { ".pt.trace.json", ".pt.trace.json.gz", ".json",
                                        ".json.gz" };
    size_t                   length = strlen(path);

    for (size_t i = 0; i < (loosely ? 4u : 2u); i++) {
        size_t end = strlen(ends[i]);
        if (length > end && strcmp(path + length - end, ends[i]) == 0)
            return true;
    }
    return false;
}

/* Traces of other tools in a folder. Files that are not traces are skipped; `why` has the last reason. */
static enum sonde_status add_foreign_files(struct sonde_trace *trace, char **list, uint32_t count,
                                           struct sonde_error *why)
{
    bool loosely = trace->process_count == 0;

    for (uint32_t i = 0; i < count; i++) {
        if (!is_foreign_name(list[i], loosely) || !snd_source_is_foreign(list[i]))
            continue;
        enum sonde_status one = add_foreign(trace, list[i], why);
        if (one == SONDE_E_NOMEM)
            return one;
        trace->refused += one == SONDE_E_IO ||
                          (one == SONDE_E_FORMAT && is_foreign_name(list[i], false));
    }
    return SONDE_OK;
}

/* Adds the files of a folder, and of those in it, by name. Links to folders are not followed. */
static enum sonde_status list_files(const char *folder, unsigned deeper, char ***files,
                                    uint32_t *room, uint32_t *count, struct sonde_error *err)
{
    char            **list;
    uint32_t          listed;
    struct stat       st;
    enum sonde_status status = list_folder(folder, is_visible, NULL, &list, &listed, err);

    for (uint32_t i = 0; i < listed && status == SONDE_OK && *count < FILES_MAX; i++) {
        if (lstat(list[i], &st) == 0 && S_ISDIR(st.st_mode)) {
            if (deeper > 0 &&
                list_files(list[i], deeper - 1, files, room, count, NULL) == SONDE_E_NOMEM)
                status = fail_memory(err);
            continue;
        }
        if (!snd_grow(files, room, *count, sizeof **files)) {
            status = fail_memory(err);
            break;
        }
        (*files)[(*count)++] = list[i];
        list[i] = NULL;
    }
    free_list(list, listed);
    return status;
}

/* Every trace in the folder; other files are skipped, damaged traces are counted. */
static enum sonde_status add_folder(struct sonde_trace *trace, const char *path,
                                    struct sonde_error *err)
{
    char             **list = NULL;
    uint32_t           count = 0, room = 0;
    enum sonde_status  status = list_files(path, FOLDERS_DEEP, &list, &room, &count, err);
    struct sonde_error why = { SONDE_OK, 0, "" };
    struct stat        st;

    trace->is_folder = true;
    for (uint32_t i = 0; i < count && status == SONDE_OK; i++) {
        if (stat(list[i], &st) != 0 || !S_ISREG(st.st_mode) || st.st_size == 0)
            continue;
        enum sonde_status one = add_file(trace, list[i], &why);
        if (one == SONDE_E_NOMEM)
            status = fail_memory(err);
        else if (one == SONDE_E_VERSION || one == SONDE_E_IO)
            trace->refused++;
    }
    if (status == SONDE_OK && add_foreign_files(trace, list, count, &why) != SONDE_OK)
        status = fail_memory(err);
    free_list(list, count);
    if (status == SONDE_OK && trace->process_count == 0) {
        if (trace->refused > 0)
            return snd_fail(err, why.status, "%s", why.message);
        return snd_fail(err, SONDE_E_FORMAT, "the folder %s holds no trace of sonde", path);
    }
    return status;
}

struct sibling {
    const char *name;
    size_t      length;
};

/* NAME.123 beside NAME: a child's. */
static bool is_sibling(const char *name, const void *user)
{
    const struct sibling *main_file = user;
    const char           *digits = name + main_file->length + 1;

    if (strncmp(name, main_file->name, main_file->length) != 0 || name[main_file->length] != '.')
        return false;
    return digits[0] != '\0' && digits[strspn(digits, "0123456789")] == '\0';
}

static enum sonde_status add_siblings(struct sonde_trace *trace, const char *path,
                                      struct sonde_error *err)
{
    const char    *slash = strrchr(path, '/');
    struct sibling main_file = { slash ? slash + 1 : path, strlen(slash ? slash + 1 : path) };
    char          *folder = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    char         **list;
    uint32_t       count;

    if (!folder)
        return fail_memory(err);
    enum sonde_status status = list_folder(folder, is_sibling, &main_file, &list, &count, NULL);
    free(folder);
    if (status == SONDE_E_IO) /* a folder that may be entered but not listed: then no siblings */
        status = SONDE_OK;
    for (uint32_t i = 0; i < count && status == SONDE_OK; i++) {
        enum sonde_status one = add_file(trace, list[i], NULL);
        if (one == SONDE_E_NOMEM)
            status = fail_memory(err);
        if (one != SONDE_OK)
            continue;
        struct snd_process *last = &trace->processes[trace->process_count - 1];
        if (memcmp(last->header.session, trace->processes[0].header.session,
                   sizeof last->header.session) != 0) {
            release_process(last);
            trace->process_count--;
        }
    }
    free_list(list, count);
    return status;
}

/* ------------------------------------------------------------ order and axis */

/* Where CLOCK_REALTIME stands against CLOCK_MONOTONIC on a process's machine. */
static int64_t real_offset(const struct snd_file_header *h)
{
    return (int64_t)(h->start.real_ns - h->start.mono_ns);
}

/* The first process of the same machine and boot, whose offset speaks for all of them. */
static const struct snd_process *find_peer(const struct sonde_trace *trace, uint32_t index)
{
    const struct snd_process *p = &trace->processes[index];

    if (p->header.boot_id != 0)
        for (uint32_t i = 0; i < index; i++)
            if (trace->processes[i].header.boot_id == p->header.boot_id)
                return &trace->processes[i];
    return p;
}

static void lay_on_axis(struct sonde_trace *trace)
{
    int64_t here = real_offset(&trace->processes[0].header), zero = INT64_MAX;

    for (uint32_t i = 0; i < trace->process_count; i++) {
        struct snd_process *p = &trace->processes[i];
        int64_t             shift = snd_sub(real_offset(&find_peer(trace, i)->header), here);
        p->shown.start_ns = snd_add((int64_t)p->header.start.mono_ns, shift);
        if (p->shown.start_ns < zero)
            zero = p->shown.start_ns;
    }
    for (uint32_t i = 0; i < trace->process_count; i++)
        trace->processes[i].shown.start_ns =
            snd_time_clamp(snd_sub(trace->processes[i].shown.start_ns, zero));
}

/* Ranks in order, then as they started; files were sorted by name before. */
static int compare_process(const void *a, const void *b)
{
    const struct snd_process *x = a, *y = b;

    int order = SND_ORDER(SND_RISING(x->header.rank, y->header.rank),
                          SND_RISING(x->shown.start_ns, y->shown.start_ns));

    return order
               ? order
               : strcmp(x->source.path ? x->source.path : "", y->source.path ? y->source.path : "");
}

/* --------------------------------------------------------- what is shown of it */

/* Texts are copied: the processes may still move, when others are added (guests.c). False: no memory. */
static bool show_process(struct sonde_trace *trace, struct snd_process *p)
{
    const struct snd_file_header *h = &p->header;
    struct sonde_process         *s = &p->shown;

    s->pid = h->pid;
    s->parent_pid = h->parent_pid ? h->parent_pid : h->started_by;
    s->rank = h->rank;
    s->world_size = h->world_size;
    s->local_rank = SONDE_NONE;
    s->cycle = h->cycle;
    s->host = snd_arena_copy(&trace->arena, h->host, strlen(h->host));
    s->program = snd_arena_copy(&trace->arena, h->program, strlen(h->program));
    s->path = p->source.path ? p->source.path : "";
    s->start_real_ns = (int64_t)h->start.real_ns;
    s->closed = h->flags & SND_FILE_CLOSED;
    s->size_bytes = p->source.size;
    if (s->closed && h->closed_bytes > p->source.size)
        p->damage.missing_bytes = h->closed_bytes - p->source.size;
    return s->host && s->program;
}

static void scale_process(struct snd_process *p)
{
    snd_baseline_add(&p->baseline, &p->header.early);
    snd_baseline_add(&p->baseline, &p->header.start);
    p->damage.clock = !snd_scale_make(&p->scale, p->header.clock_kind, &p->header.start,
                                      &p->baseline);
    p->scale.ns0 = p->shown.start_ns;
    p->shown.range_cost_ns = (double)p->header.range_cost_raw_x256 / 256.0 *
                             ((double)p->scale.rate / (double)((int64_t)1 << SND_SCALE_SHIFT));
}

static int64_t find_ns(const struct snd_process *p, uint64_t raw)
{
    return snd_time_clamp(snd_scale_ns(&p->scale, raw));
}

static bool is_undefined(const struct snd_process *p, uint32_t thread)
{
    return thread == 0 || thread >= p->tables.thread_count;
}

static bool show_threads(struct sonde_trace *trace, uint32_t index)
{
    struct snd_process *p = &trace->processes[index];
    uint32_t            defined = p->tables.thread_count ? p->tables.thread_count - 1 : 0;

    p->first_thread = trace->thread_count;
    p->thread_count = defined;
    for (uint32_t i = 0; i < p->lane_count && p->thread_count == defined; i++)
        p->thread_count += is_undefined(p, p->lanes[i].thread);
    for (uint32_t i = 0; i < p->thread_count; i++) {
        static const struct snd_thread_record undefined;
        const struct snd_thread_record *r = i < defined ? &p->tables.threads[i + 1] : &undefined;
        if (!snd_grow(&trace->threads, &trace->thread_room, trace->thread_count,
                      sizeof *trace->threads))
            return false;
        struct sonde_thread *s = &trace->threads[trace->thread_count++].shown;
        *s = (struct sonde_thread){ .process = index, .tid = r->tid, .lost_events = r->lost };
        uint32_t name = r->name ? snd_name_of(p, r->name) : UINT32_MAX;
        s->name = (struct sonde_text){ "", 0 };
        if (name != UINT32_MAX)
            s->name = (struct sonde_text){ trace->names.items[name].bytes,
                                           trace->names.items[name].length };
        s->start_ns = r->start ? find_ns(p, r->start) : p->shown.start_ns;
        s->stop_ns = r->end ? find_ns(p, r->end) : p->shown.stop_ns;
    }
    for (uint32_t i = 0; i < p->lane_count; i++) {
        uint32_t thread = p->lanes[i].thread;
        uint32_t at = is_undefined(p, thread) ? defined : thread - 1;
        if (at < p->thread_count)
            trace->threads[p->first_thread + at].shown.lost_events += p->lanes[i].lost;
    }
    return true;
}

/* The last thing known of a process that did not close its file. */
static enum sonde_status find_stop(struct snd_process *p, struct sonde_error *err)
{
    uint64_t latest = p->header.stopped_at;

    if (latest == 0 || !p->shown.closed) {
        enum sonde_status status = snd_walk_latest(p, &latest, err);
        if (status != SONDE_OK)
            return status;
        if (p->baseline.any && p->baseline.last.raw > latest)
            latest = p->baseline.last.raw;
        for (uint32_t i = 1; i < p->tables.thread_count; i++)
            if (p->tables.threads[i].end > latest)
                latest = p->tables.threads[i].end;
    }
    p->shown.stop_ns = latest ? find_ns(p, latest) : p->shown.start_ns;
    if (p->shown.stop_ns < p->shown.start_ns)
        p->shown.stop_ns = p->shown.start_ns;
    return SONDE_OK;
}

static uint64_t find_steps_from(const struct sonde_trace *trace, uint32_t process)
{
    struct sonde_text value;

    return snd_meta_find(trace, process, SND_META_STEPS_FROM, &value)
               ? strtoull(value.bytes, NULL, 10)
               : 0;
}

/* A number of the fact RANK, if it is one. */
static void take_number(const struct snd_fact *fact, unsigned field, uint32_t *number)
{
    int64_t value = snd_fact_number(fact, field, -1);

    if (value >= 0 && value < SONDE_NONE)
        *number = (uint32_t)value;
}

/* What became known of its rank after its file was begun. True: its place among the processes changes. */
static bool take_rank(const struct sonde_trace *trace, uint32_t process)
{
    struct snd_process    *p = &trace->processes[process];
    uint32_t               at = 0, before = p->header.rank;
    const struct snd_fact *fact = snd_fact_next(trace, process, SND_FACT_OF_RANK, &at);

    if (!fact)
        return false;
    take_number(fact, SND_FIELD_RANK_RANK, &p->header.rank);
    take_number(fact, SND_FIELD_RANK_WORLD_SIZE, &p->header.world_size);
    take_number(fact, SND_FIELD_RANK_LOCAL_RANK, &p->shown.local_rank);
    p->shown.rank = p->header.rank;
    p->shown.world_size = p->header.world_size;
    return p->header.rank != before;
}

/* Header and tables of each process; then they are in their order. */
static enum sonde_status read_processes(struct sonde_trace *trace, struct sonde_error *err)
{
    bool is_moved = false;

    lay_on_axis(trace);
    snd_sort(trace->processes, trace->process_count, sizeof *trace->processes, compare_process);
    for (uint32_t i = 0; i < trace->process_count; i++) {
        struct snd_process *p = &trace->processes[i];
        if (!show_process(trace, p))
            return fail_memory(err);
        enum sonde_status status = snd_chunks_find(p, err);
        if (status == SONDE_OK)
            status = snd_tables_read(trace, p, err);
        if (status != SONDE_OK)
            return status;
        scale_process(p);
        p->steps_from = find_steps_from(trace, i);
        is_moved |= take_rank(trace, i);
    }
    if (is_moved)
        snd_sort(trace->processes, trace->process_count, sizeof *trace->processes, compare_process);
    return SONDE_OK;
}

static enum sonde_status finish(struct sonde_trace *trace, struct sonde_error *err)
{
    if (!snd_texts_add(&trace->names, "(unknown)", 9, &trace->unknown_name))
        return fail_memory(err);
    enum sonde_status status = read_processes(trace, err);
    trace->keeps_words = SND_KEPT_WORDS;
    for (uint32_t i = 0; i < trace->process_count && status == SONDE_OK; i++) {
        trace->processes[i].keeps_words = &trace->keeps_words;
        status = find_stop(&trace->processes[i], err);
        if (status == SONDE_OK && !show_threads(trace, i))
            status = fail_memory(err);
    }
    if (status == SONDE_OK && !snd_guests_add(trace))
        status = fail_memory(err);
    return status;
}

/* -------------------------------------------------------------------- open */

static enum sonde_status add_path(struct sonde_trace *trace, const char *path,
                                  struct sonde_error *err)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return snd_fail_os(err, SONDE_E_IO, "cannot open the trace %s", path);
    if (S_ISDIR(st.st_mode))
        return add_folder(trace, path, err);
    if (snd_source_is_foreign(path))
        return add_foreign(trace, path, err);
    enum sonde_status status = add_file(trace, path, err);
    return status == SONDE_OK ? add_siblings(trace, path, err) : status;
}

/* How the files of a trace are found. */
typedef enum sonde_status find_fn(struct sonde_trace *trace, const void *what,
                                  struct sonde_error *err);

static enum sonde_status open_trace(find_fn *find, const void *what, struct sonde_trace **out,
                                    struct sonde_error *err)
{
    *out = NULL;
    struct sonde_trace *trace = calloc(1, sizeof *trace);
    if (!trace)
        return fail_memory(err);

    enum sonde_status status = find(trace, what, err);
    if (status == SONDE_OK)
        status = finish(trace, err);
    if (status == SONDE_OK)
        *out = trace;
    else
        sonde_trace_close(trace);
    return status;
}

static enum sonde_status find_path(struct sonde_trace *trace, const void *path,
                                   struct sonde_error *err)
{
    return add_path(trace, path, err);
}

static enum sonde_status find_file(struct sonde_trace *trace, const void *path,
                                   struct sonde_error *err)
{
    return add_any(trace, path, err);
}

static enum sonde_status find_memory(struct sonde_trace *trace, const void *source,
                                     struct sonde_error *err)
{
    return add_source(trace, *(const struct snd_source *)source, err);
}

enum sonde_status sonde_trace_open(const char *path, struct sonde_trace **out,
                                   struct sonde_error *err)
{
    return open_trace(find_path, path, out, err);
}

enum sonde_status snd_trace_open_file(const char *path, struct sonde_trace **out,
                                      struct sonde_error *err)
{
    return open_trace(find_file, path, out, err);
}

enum sonde_status snd_trace_open_memory(const void *data, size_t size, struct sonde_trace **out,
                                        struct sonde_error *err)
{
    struct snd_source source = { .memory = data, .fd = -1, .size = size };

    return open_trace(find_memory, &source, out, err);
}
