/* SPDX-License-Identifier: Apache-2.0 */
/*
 * e2e_chains PERF.DATA - the call chain of every sample that `perf record --call-graph dwarf` took.
 *
 * Registers and stacks are perf's, the walk is that of src/native. Prints a line a sample: pid, tid, time
 * in ns, how the walk ended (w whole, c cut, l lost), places in the mapped files, innermost first. For comparison with
 * `perf script -F pid,tid,time,ip`.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files/fd_io.h"
#include "native/observed.h"
#include "native/perf/perf_events.h"
#include "native/stacks/stack_walk.h"

struct section {
    uint64_t offset, size;
};

struct file_head {
    char           magic[8];
    uint64_t       size, attr_size;
    struct section attrs, data, types;
};

struct words {
    const uint8_t *at, *end;
};

static struct snd_observed    observed;
static struct perf_event_attr attr; /* of the one event */

static uint64_t next(struct words *w)
{
    uint64_t value = 0;

    if (w->end - w->at >= 8)
        memcpy(&value, w->at, 8);
    w->at = w->end - w->at >= 8 ? w->at + 8 : w->end;
    return value;
}

static uint64_t next_if(struct words *w, uint64_t field)
{
    return attr.sample_type & field ? next(w) : 0;
}

static void take_registers(struct words *w, struct snd_user_stack *user)
{
#if defined(__aarch64__)
    static const uint8_t order[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                     11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                     22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };
    const uint8_t        pc = 32;
#else
    static const uint8_t order[] = { 0,    3,    2,    1,    4, 5, 6,  7,  16, 0xff, 0xff, 0xff,
                                     0xff, 0xff, 0xff, 0xff, 8, 9, 10, 11, 12, 13,   14,   15 };
    const uint8_t        pc = 16;
#endif

    for (unsigned bit = 0; bit < 64; bit++) {
        uint64_t value = attr.sample_regs_user >> bit & 1 ? next(w) : 0;
        if (bit >= sizeof order || !(attr.sample_regs_user >> bit & 1))
            continue;
        if (order[bit] < SND_CFI_REGISTERS)
            user->registers[order[bit]] = value;
        if (order[bit] == pc)
            user->pc = value;
    }
}

/* Where a frame is in its file, as perf prints it. */
static uint64_t offset_of(const struct snd_walked_frame *frame)
{
    if (frame->file == UINT32_MAX)
        return frame->address;
    const struct snd_mapped_file *file = &observed.files.list[frame->file];
    for (uint32_t i = 0; i < file->segment_count; i++)
        if (frame->address - file->segments[i].address < file->segments[i].size)
            return frame->address - file->segments[i].address + file->segments[i].offset;
    return frame->address;
}

static void on_sample(struct words w)
{
    struct snd_user_stack user = { 0 };

    next_if(&w, PERF_SAMPLE_IDENTIFIER);
    next_if(&w, PERF_SAMPLE_IP);
    uint64_t ids = next_if(&w, PERF_SAMPLE_TID), ns = next_if(&w, PERF_SAMPLE_TIME);
    next_if(&w, PERF_SAMPLE_ADDR);
    next_if(&w, PERF_SAMPLE_ID);
    next_if(&w, PERF_SAMPLE_STREAM_ID);
    next_if(&w, PERF_SAMPLE_CPU);
    next_if(&w, PERF_SAMPLE_PERIOD);
    for (uint64_t n = next_if(&w, PERF_SAMPLE_CALLCHAIN); n > 0 && w.at < w.end; n--)
        next(&w);
    if (next(&w) == PERF_SAMPLE_REGS_ABI_64)
        take_registers(&w, &user);
    uint64_t size = next(&w);
    if (size > (uint64_t)(w.end - w.at))
        size = 0;
    user.bytes = w.at;
    w.at += size;
    uint64_t used = size ? next(&w) : 0;
    user.size = (size_t)(used < size ? used : size);

    const struct snd_seen_process *process = snd_observed_process(&observed, (uint32_t)ids);
    struct snd_walked_frame        frames[SND_WALK_MAX];
    enum snd_walk_end              end;
    if (!process || user.pc == 0)
        return;
    size_t count = snd_stack_walk(&process->mappings, &observed.files, &user, frames, &end);
    printf("%u %u %" PRIu64 " %c", (uint32_t)ids, (uint32_t)(ids >> 32), ns, "wcl"[end]);
    for (size_t i = 0; i < count; i++)
        printf(" %" PRIx64, offset_of(&frames[i]));
    printf("\n");
}

static void on_map(struct words w)
{
    struct snd_map_record r = { .pid = (uint32_t)next(&w) };

    r.start = next(&w);
    r.size = next(&w);
    r.offset = next(&w);
    w.at += 24; /* device, inode or build id: the file is found by its path */
    w.at += 8;
    r.path = (const char *)w.at;
    struct snd_seen_process *process = snd_observed_add_process(&observed, r.pid, 0);
    if (w.at < w.end && process && !snd_mappings_add(&process->mappings, &observed.files, &r))
        exit(1);
}

static void on_record(const struct perf_event_header *head, struct words w)
{
    if (head->type == PERF_RECORD_SAMPLE) {
        on_sample(w);
    } else if (head->type == PERF_RECORD_MMAP2 && !(head->misc & PERF_RECORD_MISC_MMAP_DATA)) {
        on_map(w);
    } else if (head->type == PERF_RECORD_COMM && head->misc & PERF_RECORD_MISC_COMM_EXEC) {
        struct snd_seen_process *process = snd_observed_process(&observed, (uint32_t)next(&w));
        if (process)
            snd_mappings_clear(&process->mappings);
    } else if (head->type == PERF_RECORD_FORK) {
        uint64_t pids = next(&w), tids = next(&w);
        snd_observed_fork(&observed, (uint32_t)pids, (uint32_t)tids, (uint32_t)(pids >> 32),
                          (uint32_t)(tids >> 32), 0);
    }
}

/* Records of other processors may be out of order by some ms: mappings are. They are taken by time. */
struct placed {
    uint64_t       ns, at;
    const uint8_t *record;
};

static int by_time(const void *left, const void *right)
{
    const struct placed *x = left, *y = right;

    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->at < y->at ? -1 : 1;
}

/* Samples have it at its place, others before the fields that sample_id_all adds after it. */
static uint64_t time_of(const struct perf_event_header *head, const uint8_t *record)
{
    static const uint64_t after[] = { PERF_SAMPLE_ID, PERF_SAMPLE_STREAM_ID, PERF_SAMPLE_CPU,
                                      PERF_SAMPLE_IDENTIFIER };
    size_t                at = sizeof *head;
    uint64_t              ns;

    if (head->type == PERF_RECORD_SAMPLE) {
        at += (attr.sample_type & PERF_SAMPLE_IDENTIFIER ? 8 : 0) +
              (attr.sample_type & PERF_SAMPLE_IP ? 8 : 0) + 8;
    } else {
        at = head->size - 8u;
        for (size_t i = 0; i < sizeof after / sizeof after[0]; i++)
            at -= attr.sample_type & after[i] ? 8 : 0;
    }
    memcpy(&ns, record + at, sizeof ns);
    return ns;
}

int main(int argc, char **argv)
{
    struct file_head head;
    FILE            *file = argc == 2 ? fopen(argv[1], "rb") : NULL;

    if (!file || fread(&head, sizeof head, 1, file) != 1 ||
        memcmp(head.magic, "PERFILE2", 8) != 0 ||
        fseek(file, (long)head.attrs.offset, SEEK_SET) != 0 ||
        fread(&attr, sizeof attr, 1, file) != 1) {
        fprintf(stderr, "usage: e2e_chains PERF.DATA\n");
        return 2;
    }
    uint8_t *bytes = malloc(head.data.size + 1);
    if (!bytes || fseek(file, (long)head.data.offset, SEEK_SET) != 0 ||
        fread(bytes, 1, head.data.size, file) != head.data.size)
        return 1;
    struct placed *list = NULL;
    uint32_t       count = 0, capacity = 0;
    for (uint64_t at = 0; at + sizeof(struct perf_event_header) <= head.data.size;) {
        struct perf_event_header h;
        memcpy(&h, bytes + at, sizeof h);
        if (h.size < sizeof h || h.size > head.data.size - at)
            return 1;
        if (h.type < 64) { /* perf's own are above */
            if (!snd_grow(&list, &capacity, count, sizeof *list))
                return 1;
            list[count++] = (struct placed){ time_of(&h, bytes + at), at, bytes + at };
        }
        at += h.size;
    }
    if (count > 0)
        qsort(list, count, sizeof *list, by_time);
    for (uint32_t i = 0; i < count; i++) {
        struct perf_event_header h;
        memcpy(&h, list[i].record, sizeof h);
        on_record(&h, (struct words){ list[i].record + sizeof h, list[i].record + h.size });
    }
    free(list);
    free(bytes);
    fclose(file);
    snd_observed_release(&observed);
    return 0;
}
