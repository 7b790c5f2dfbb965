/* SPDX-License-Identifier: Apache-2.0 */
#include "record/thread/thread_events.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/files/own_fd.h"
#include "base/system/perf_attr.h"
#include "format/layout.h"
#include "record/own_pages.h"
#include "record/thread/pmc_page.h"
#include "sonde/record.h"

/* A thread's events. The kernel gives a forked child zeros in its place: its pages are not mapped there. */
struct events {
    bool opened;
    struct {
        struct perf_event_mmap_page *page; /* NULL: the descriptor is read */
        bool                         by_descriptor;
        struct snd_pmc_value         last;
        uint64_t                     total;
    } list[SND_EVENTS_MOST];
};

static struct snd_event_asked             asked[SND_EVENTS_MOST];
static uint32_t                           asked_count;
static uint64_t                           nowhere[SND_COUNTERS_READ_WORDS];
static uint64_t                          *told = nowhere; /* words of COUNTERS_READ, in the trace */
static SONDE_THREAD_LOCAL_ struct events *mine;
/* Descriptors, which a forked child has too, to be closed there. */
static SONDE_THREAD_LOCAL_ struct held {
    int      fd; /* plus one; 0: none */
    uint64_t id;
} held[SND_EVENTS_MOST];

uint32_t snd_events_ask(const struct snd_event_asked *event)
{
    if (asked_count == SND_EVENTS_MOST)
        return UINT32_MAX;
    asked[asked_count] = *event;
    return asked_count++;
}

uint32_t snd_events_count(void)
{
    return asked_count;
}

void snd_events_tell(uint64_t *words)
{
    __atomic_store_n(&told, words ? words : nowhere, __ATOMIC_RELAXED);
}

static void tell(enum snd_tally_word word)
{
    __atomic_fetch_add(&__atomic_load_n(&told, __ATOMIC_RELAXED)[word], 1, __ATOMIC_RELAXED);
}

/* ----------------------------------------------------------------- opening */

static int open_event(const struct snd_event_asked *event)
{
    struct perf_event_attr attr = snd_perf_attr(event->type, event->config, event->user,
                                                event->kernel);
    int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

    if (fd < 0 && (errno == EACCES || errno == EPERM) && !event->user && !event->kernel) {
        attr.exclude_kernel = attr.exclude_hv = 1;
        fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
    }
    return fd;
}

static bool is_ours(const struct held *it)
{
    uint64_t id;

    return it->fd != 0 && ioctl(it->fd - 1, PERF_EVENT_IOC_ID, &id) == 0 && id == it->id;
}

static void drop(struct held *it)
{
    if (is_ours(it))
        close(it->fd - 1);
    it->fd = 0;
}

/* A high number, or none at all: low ones are the program's. */
static bool keep(int fd, struct held *it)
{
    int high = fcntl(fd, F_DUPFD_CLOEXEC, SND_OWNFD_LEAST);

    if (high < 0)
        return false;
    it->fd = high + 1;
    if (ioctl(high, PERF_EVENT_IOC_ID, &it->id) == 0)
        return true;
    close(high);
    it->fd = 0;
    return false;
}

static bool read_descriptor(const struct held *it, struct snd_pmc_value *value)
{
    uint64_t words[3];

    if (!is_ours(it) || read(it->fd - 1, words, sizeof words) != (ssize_t)sizeof words)
        return false;
    *value = (struct snd_pmc_value){ words[0], words[1], words[2] };
    return true;
}

static const struct snd_pmc_ways processor = { snd_pmc_counter, snd_pmc_clock };

static bool open_one(struct events *e, uint32_t i)
{
    void *page = MAP_FAILED;

    drop(&held[i]); /* a forked child's: it counts its parent */
    int fd = open_event(&asked[i]);
    if (fd < 0)
        return false;
    if (SND_PMC_THERE)
        page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
    if (page != MAP_FAILED && snd_pmc_read(page, &processor, &e->list[i].last)) {
        e->list[i].page = page; /* the event lives as long as its page is mapped */
        close(fd);
        return true;
    }
    if (page != MAP_FAILED)
        munmap(page, (size_t)sysconf(_SC_PAGESIZE));
    e->list[i].by_descriptor = keep(fd, &held[i]);
    close(fd);
    return e->list[i].by_descriptor && read_descriptor(&held[i], &e->list[i].last);
}

static void open_all(struct events *e)
{
    int why = errno;

    e->opened = true;
    for (uint32_t i = 0; i < asked_count; i++)
        tell(open_one(e, i) ? SND_COUNTERS_READ_OPENED : SND_COUNTERS_READ_ABSENT);
    errno = why;
}

/* NULL: no memory. */
static struct events *get_mine(void)
{
    if (!mine) {
        mine = snd_ownpages_new(sizeof *mine);
        if (mine)
            madvise(mine, sizeof *mine, MADV_WIPEONFORK);
    }
    if (mine && !mine->opened)
        open_all(mine);
    return mine;
}

/* ----------------------------------------------------------------- reading */

static void read_one(struct events *e, uint32_t i)
{
    const struct snd_pmc_value *last = &e->list[i].last;
    struct snd_pmc_value        now;
    bool                        got = false;

    if (e->list[i].page)
        got = snd_pmc_read(e->list[i].page, &processor, &now);
    else if (e->list[i].by_descriptor) {
        got = e->list[i].by_descriptor = read_descriptor(&held[i], &now);
        if (!got) /* the program has closed it */
            tell(SND_COUNTERS_READ_ABSENT);
    }
    /* An event that had no turn on a counter: its time is added to that of its next turn. */
    if (!got || (now.running_ns == last->running_ns && now.enabled_ns != last->enabled_ns))
        return;
    uint64_t rise = snd_pmc_rise(last, &now);
    if (rise != now.count - last->count)
        tell(SND_COUNTERS_READ_SCALED);
    e->list[i].total += rise;
    e->list[i].last = now;
}

void snd_events_read(uint64_t *values)
{
    struct events *e = get_mine();
    int            why = errno;

    for (uint32_t i = 0; i < asked_count; i++) {
        if (e)
            read_one(e, i);
        values[i] = e ? e->list[i].total : 0;
    }
    errno = why;
}

void snd_events_end(void)
{
    if (!mine)
        return;
    for (uint32_t i = 0; i < asked_count; i++) {
        if (mine->list[i].page)
            munmap(mine->list[i].page, (size_t)sysconf(_SC_PAGESIZE));
        drop(&held[i]);
    }
    snd_ownpages_free(mine, sizeof *mine);
    mine = NULL;
}
