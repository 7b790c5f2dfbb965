/* SPDX-License-Identifier: Apache-2.0 */
#include "native/perf/perf_events.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/data/map.h"
#include "base/system/proc_files.h"

#define RING_MOST ((size_t)16 << 20)   /* two seconds of samples at 1 kHz */
#define RING_OF_USER ((size_t)4 << 20) /* of others than root, who may lock little memory */
#define RINGS_MOST ((size_t)128 << 20) /* all together: the kernel locks them in memory */
#define RING_LEAST ((size_t)64 << 10)
#define RECORD_MOST ((size_t)65536)
#define FORMAT_LOST (1u << 4) /* PERF_FORMAT_LOST, of Linux 6.0 and later */

static int open_event(struct perf_event_attr *attr, pid_t pid, int cpu)
{
    return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static struct perf_event_attr make_attr(const struct snd_perf *p)
{
    struct perf_event_attr attr = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof attr,
        .config = p->rate.whole_ns ? PERF_COUNT_SW_CPU_CLOCK : PERF_COUNT_SW_DUMMY,
        .sample_period = p->rate.whole_ns,
        .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_ID |
                       PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN | PERF_SAMPLE_REGS_USER |
                       PERF_SAMPLE_STACK_USER,
        .read_format = p->counts_lost ? FORMAT_LOST : 0,
        .disabled = 1,
        .inherit = 1,
        .inherit_stat = p->rate.whole_ns > 0, /* the time of each thread that ends: rests.h */
        .exclude_kernel = !p->has_kernel,
        .exclude_hv = 1,
        .exclude_callchain_user = 1,
        .exclude_callchain_kernel = !p->has_kernel,
        .enable_on_exec = p->on_exec,
        .sample_id_all = 1,
        .watermark = 1,
        .wakeup_watermark = (uint32_t)(p->ring_bytes / 4),
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .sample_regs_user = SND_PERF_REGISTERS,
        .sample_stack_user = SND_PERF_STACK_BYTES,
    };

    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
    return attr;
}

/*
 * A sample each time that a thread leaves its processor, and records of when it left and came back. The
 * switch is in the kernel: who may not sample that gets none.
 */
static struct perf_event_attr make_switch_attr(const struct snd_perf *p)
{
    struct perf_event_attr attr = make_attr(p);

    attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
    attr.sample_period = 1;
    attr.context_switch = 1;
    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.inherit_stat = 0;
    return attr;
}

/*
 * The period of an event that is inherited cannot be changed for those who begin later: where threads take turns that one
 * of the others started, the kernel has them swap their events, and the one that was opened ends with some child.
 */
static struct perf_event_attr make_fine_attr(const struct snd_perf *p)
{
    struct perf_event_attr attr = make_attr(p);

    attr.sample_period = p->rate.fine_ns;
    attr.disabled = attr.enable_on_exec = 0;
    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.inherit_stat = 0;
    return attr;
}

/*
 * The kernel chooses how many events lie between samples. Each sample has the count of its thread, which Linux
 * gives for inherited events from 6.13 on.
 */
static struct perf_event_attr make_counter_attr(const struct snd_perf          *p,
                                                const struct snd_counter_event *event)
{
    struct perf_event_attr attr = make_attr(p);

    attr.type = event->type;
    attr.config = event->config;
    attr.freq = 1;
    attr.sample_freq = SND_PERF_COUNTER_HZ;
    if (p->has_counts)
        attr.sample_type |= PERF_SAMPLE_READ;
    attr.exclude_kernel |= event->user && !event->kernel;
    attr.exclude_user = event->kernel && !event->user;
    attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = attr.inherit_stat = 0;
    return attr;
}

/* -------------------------------------------------------------------- opening */

static bool keep_event(struct snd_perf *p, int fd)
{
    if (fd >= 0 && snd_grow(&p->events, &p->event_capacity, p->event_count, sizeof *p->events)) {
        p->events[p->event_count++] = fd;
        return true;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

static bool keep_fine(struct snd_perf *p, int fd, uint64_t id)
{
    if (fd >= 0 && snd_map_put(&p->fine, (struct snd_key){ id, 0, 0 }, 1) &&
        snd_grow(&p->fine_events, &p->fine_capacity, p->fine_count, sizeof *p->fine_events)) {
        p->fine_events[p->fine_count++] = fd;
        return true;
    }
    if (fd >= 0)
        close(fd);
    return false;
}

/* Events that ask for much are refused to some users: then for less. */
static int open_first(struct snd_perf *p, pid_t pid, int cpu)
{
    struct perf_event_attr attr = make_attr(p);
    int                    fd = open_event(&attr, pid, cpu);

    if (fd < 0 && errno == EINVAL && p->counts_lost) {
        p->counts_lost = false;
        attr = make_attr(p);
        fd = open_event(&attr, pid, cpu);
    }
    if (fd < 0 && (errno == EACCES || errno == EPERM) && p->has_kernel) {
        p->has_kernel = false;
        attr = make_attr(p);
        fd = open_event(&attr, pid, cpu);
    }
    return fd;
}

/* An event whose records go to a ring; -1: there is none. */
static int open_into(struct perf_event_attr *attr, pid_t tid, const struct snd_perf_ring *ring,
                     uint64_t *id)
{
    int fd = open_event(attr, tid, ring->cpu);

    if (fd >= 0 && (ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, ring->fd) != 0 ||
                    ioctl(fd, PERF_EVENT_IOC_ID, id) != 0)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static bool open_beside(struct snd_perf *p, struct perf_event_attr *attr, pid_t tid,
                        const struct snd_perf_ring *ring, uint64_t *id)
{
    return keep_event(p, open_into(attr, tid, ring, id));
}

static bool open_switches(struct snd_perf *p, pid_t tid)
{
    struct perf_event_attr attr = make_switch_attr(p);
    uint64_t               id;

    for (uint32_t i = 0; i < p->ring_count; i++)
        if (!open_beside(p, &attr, tid, &p->rings[i], &id) ||
            !snd_map_put(&p->switches, (struct snd_key){ id, 0, 0 }, 1))
            return false;
    return true;
}

static bool open_counters(struct snd_perf *p, pid_t tid)
{
    uint64_t id;

    for (uint32_t n = 0; n < p->counters.count; n++) {
        struct perf_event_attr attr = make_counter_attr(p, &p->counters.items[n]);
        for (uint32_t i = 0; i < p->ring_count; i++)
            if (!open_beside(p, &attr, tid, &p->rings[i], &id) ||
                !snd_map_put(&p->counted, (struct snd_key){ id, 0, 0 }, n))
                return false;
    }
    return true;
}

/* An event that is not opened: does the kernel take its attributes? */
static bool knows_counts(const struct snd_perf *p, pid_t pid)
{
    if (p->counters.count == 0)
        return false;
    struct perf_event_attr attr = make_counter_attr(p, &p->counters.items[0]);
    int                    fd = open_event(&attr, pid, p->rings[0].cpu);
    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

size_t snd_perf_count_words(const struct snd_perf *p, uint64_t event)
{
    uint32_t number;

    if (!p->has_counts || !snd_perf_is_counter(p, event, &number))
        return 0;
    return p->counts_lost ? 2 : 1;
}

bool snd_perf_is_counter(const struct snd_perf *p, uint64_t event, uint32_t *number)
{
    return p->counters.count > 0 &&
           snd_map_get(&p->counted, (struct snd_key){ event, 0, 0 }, number);
}

bool snd_perf_is_fine(const struct snd_perf *p, uint64_t event)
{
    uint32_t found;

    return p->rate.turn > 0 && snd_map_get(&p->fine, (struct snd_key){ event, 0, 0 }, &found);
}

bool snd_perf_is_switch(const struct snd_perf *p, uint64_t event)
{
    uint32_t found;

    return p->has_switches && snd_map_get(&p->switches, (struct snd_key){ event, 0, 0 }, &found);
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

static bool map_ring(const struct snd_perf *p, struct snd_perf_ring *ring)
{
    void *map = mmap(NULL, p->ring_bytes + page_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
                     ring->fd, 0);

    if (map == MAP_FAILED)
        return false;
    ring->map = map;
    ring->data = ring->map + page_size();
    return true;
}

static enum sonde_status refuse_memory(struct sonde_error *err, pid_t pid)
{
    return snd_fail(
        err, SONDE_E_UNSUPPORTED,
        "cannot sample process %d: this user may lock too little memory for the rings of "
        "samples, or other samplers have it; raise ulimit -l or "
        "kernel.perf_event_mlock_kb",
        (int)pid);
}

static enum sonde_status refuse(struct sonde_error *err, pid_t pid)
{
    int  why = errno;
    char level[16];

    snd_proc_line("/proc/sys/kernel/perf_event_paranoid", level, sizeof level);
    if (why == ESRCH)
        return snd_fail(err, SONDE_E_STATE, "process %d has ended", (int)pid);
    if (why == EACCES || why == EPERM)
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "the kernel does not let this user sample process %d: "
                        "kernel.perf_event_paranoid is %s (at most 2 is needed), or the process is "
                        "another user's or runs with other rights",
                        (int)pid, *level ? level : "unknown");
    if (why == EMFILE || why == ENFILE)
        return snd_fail(err, SONDE_E_UNSUPPORTED,
                        "too few file descriptors to sample process %d: raise ulimit -n", (int)pid);
    return snd_fail(err, SONDE_E_UNSUPPORTED, "cannot sample process %d: perf_event_open: %s",
                    (int)pid, strerror(why));
}

/* These happen in the kernel, to whatever mode they are counted. */
static const struct snd_counter_event *find_forbidden(const struct snd_perf *p)
{
    for (uint32_t n = 0; !p->has_kernel && n < p->counters.count; n++) {
        const struct snd_counter_event *event = &p->counters.items[n];
        if (event->type == PERF_TYPE_SOFTWARE && (event->config == PERF_COUNT_SW_CONTEXT_SWITCHES ||
                                                  event->config == PERF_COUNT_SW_CPU_MIGRATIONS))
            return event;
    }
    return NULL;
}

static enum sonde_status start_counters(struct snd_perf *p, pid_t pid, struct sonde_error *err)
{
    const struct snd_counter_event *forbidden = find_forbidden(p);

    if (forbidden)
        return snd_fail(
            err, SONDE_E_UNSUPPORTED,
            "%s happen in the kernel, which kernel.perf_event_paranoid does not let this "
            "user sample; leave them off, or run as root",
            forbidden->name);
    return open_counters(p, pid) ? SONDE_OK : refuse(err, pid);
}

static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static void close_rings(struct snd_perf *p)
{
    for (uint32_t i = 0; i < p->ring_count; i++) {
        if (p->rings[i].map)
            munmap(p->rings[i].map, p->ring_bytes + page_size());
        close(p->rings[i].fd);
        free(p->rings[i].joined);
    }
    p->ring_count = 0;
}

enum opened { OPENED, REFUSED, NO_ROOM };

/* A processor that is offline has no ring. */
static enum opened open_ring(struct snd_perf *p, pid_t pid, int cpu)
{
    struct snd_perf_ring *ring = &p->rings[p->ring_count];

    *ring = (struct snd_perf_ring){ .fd = open_first(p, pid, cpu), .cpu = cpu };
    if (ring->fd < 0)
        return errno == ENODEV ? OPENED : REFUSED;
    p->ring_count++;
    ring->joined = malloc(RECORD_MOST);
    if (!ring->joined)
        return REFUSED;
    if (map_ring(p, ring))
        return OPENED;
    return errno == EPERM || errno == ENOMEM ? NO_ROOM : REFUSED;
}

/*
 * Rings as large as the system permits: a user's locked memory is limited, for all of that user's samplers together.
 * All rings have one size, and it is by it that their events wake the reader.
 */
static enum sonde_status open_rings(struct snd_perf *p, pid_t pid, int cpus,
                                    struct sonde_error *err)
{
    for (;; p->ring_bytes /= 2) {
        enum opened done = OPENED;
        for (int cpu = 0; done == OPENED && cpu < cpus; cpu++)
            done = open_ring(p, pid, cpu);
        if (done == OPENED)
            return SONDE_OK;
        if (done == REFUSED)
            return refuse(err, pid);
        if (p->ring_bytes <= RING_LEAST)
            return refuse_memory(err, pid);
        close_rings(p);
    }
}

/* A power of two. */
static size_t ring_bytes(size_t cpus)
{
    size_t bytes = geteuid() == 0 ? RING_MOST : RING_OF_USER;

    while (bytes > RING_LEAST && bytes * cpus > RINGS_MOST)
        bytes /= 2;
    return bytes;
}

enum sonde_status snd_perf_open(struct snd_perf *p, pid_t pid, const struct snd_perf_wanted *wanted,
                                struct sonde_error *err)
{
    long cpus = sysconf(_SC_NPROCESSORS_CONF);

    *p = (struct snd_perf){ .ring_bytes = ring_bytes(cpus > 0 ? (size_t)cpus : 1),
                            .rate = snd_rate_begin(wanted->period_ns),
                            .on_exec = wanted->on_exec,
                            .has_kernel = true,
                            .counts_lost = true };
    raise_limit();
    p->rings = calloc((size_t)(cpus > 0 ? cpus : 1), sizeof *p->rings);
    if (!p->rings)
        return snd_fail(err, SONDE_E_NOMEM, "out of memory for the rings of samples");
    enum sonde_status status = open_rings(p, pid, (int)cpus, err);
    if (status != SONDE_OK) {
        snd_perf_close(p);
        return status;
    }
    p->has_switches = wanted->off_cpu && p->has_kernel && open_switches(p, pid);
    if (wanted->counters)
        p->counters = *wanted->counters;
    p->has_counts = true;
    p->has_counts = knows_counts(p, pid);
    status = start_counters(p, pid, err);
    if (status != SONDE_OK)
        snd_perf_close(p);
    return status;
}

bool snd_perf_add(struct snd_perf *p, pid_t tid)
{
    for (uint32_t i = 0; i < p->ring_count; i++) {
        struct perf_event_attr attr = make_attr(p);
        uint64_t               id;
        if (!open_beside(p, &attr, tid, &p->rings[i], &id))
            return false;
    }
    return (!p->has_switches || open_switches(p, tid)) && open_counters(p, tid);
}

bool snd_perf_add_fine(struct snd_perf *p, pid_t tid)
{
    struct perf_event_attr attr = make_fine_attr(p);

    for (uint32_t i = 0; i < p->ring_count; i++) {
        uint64_t id = 0;
        int      fd = open_into(&attr, tid, &p->rings[i], &id);
        if (!keep_fine(p, fd, id))
            return false;
    }
    return true;
}

void snd_perf_end_fine(struct snd_perf *p)
{
    for (uint32_t i = 0; i < p->fine_count; i++)
        close(p->fine_events[i]);
    p->fine_count = 0;
}

static void control(struct snd_perf *p, int request)
{
    for (uint32_t i = 0; i < p->ring_count; i++)
        ioctl(p->rings[i].fd, request, 0);
    for (uint32_t i = 0; i < p->event_count; i++)
        ioctl(p->events[i], request, 0);
    for (uint32_t i = 0; i < p->fine_count; i++)
        ioctl(p->fine_events[i], request, 0);
}

void snd_perf_enable(struct snd_perf *p)
{
    control(p, PERF_EVENT_IOC_ENABLE);
}

void snd_perf_disable(struct snd_perf *p)
{
    control(p, PERF_EVENT_IOC_DISABLE);
}

struct readings {
    uint64_t count;
    uint64_t lost; /* records that found no room; 0 where the kernel does not count them */
};

static struct readings read_event(int fd)
{
    struct readings is = { 0, 0 };

    if (read(fd, &is, sizeof is) < (ssize_t)sizeof is.count)
        is = (struct readings){ 0, 0 };
    return is;
}

void snd_perf_counted(const struct snd_perf *p, uint64_t counted[SND_COUNTERS_MOST])
{
    memset(counted, 0, SND_COUNTERS_MOST * sizeof *counted);
    for (uint32_t i = 0; i < p->event_count; i++) {
        uint64_t id;
        uint32_t number;
        if (ioctl(p->events[i], PERF_EVENT_IOC_ID, &id) == 0 && snd_perf_is_counter(p, id, &number))
            counted[number] += read_event(p->events[i]).count;
    }
}

uint64_t snd_perf_lost(const struct snd_perf *p)
{
    uint64_t lost = 0;

    for (uint32_t i = 0; p->counts_lost && i < p->ring_count; i++)
        lost += read_event(p->rings[i].fd).lost;
    for (uint32_t i = 0; p->counts_lost && i < p->event_count; i++)
        lost += read_event(p->events[i]).lost;
    for (uint32_t i = 0; p->counts_lost && i < p->fine_count; i++)
        lost += read_event(p->fine_events[i]).lost;
    return lost;
}

void snd_perf_close(struct snd_perf *p)
{
    for (uint32_t i = 0; i < p->event_count; i++)
        close(p->events[i]);
    close_rings(p);
    snd_perf_end_fine(p);
    free(p->fine_events);
    snd_map_release(&p->fine);
    free(p->events);
    free(p->rings);
    snd_map_release(&p->switches);
    snd_map_release(&p->counted);
    *p = (struct snd_perf){ 0 };
}

bool snd_perf_wait(const struct snd_perf *p, int other, int timeout_ms)
{
    struct pollfd *list = calloc((size_t)p->ring_count + 1, sizeof *list);
    bool           can = false;

    if (!list) {
        usleep((useconds_t)timeout_ms * 1000);
        return false;
    }
    list[0] = (struct pollfd){ .fd = other, .events = POLLIN };
    for (uint32_t i = 0; i < p->ring_count; i++)
        list[i + 1] = (struct pollfd){ .fd = p->rings[i].fd, .events = POLLIN };
    if (poll(list, p->ring_count + 1, timeout_ms) > 0) {
        can = list[0].revents != 0;
        bool hung = false, ready = false;
        for (uint32_t i = 1; i <= p->ring_count; i++) {
            hung |= (list[i].revents & (POLLHUP | POLLERR)) != 0;
            ready |= (list[i].revents & POLLIN) != 0;
        }
        if (hung && !ready && !can) /* who was observed is gone: its descendants may be there */
            can = poll(list, 1, timeout_ms) > 0;
    }
    free(list);
    return can;
}
