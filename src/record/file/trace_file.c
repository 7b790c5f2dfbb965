/* SPDX-License-Identifier: Apache-2.0 */
#include "record/file/trace_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/data/crc32c.h"
#include "record/file/apart_file.h"
#include "record/file/bus_errors.h"
#include "record/clock.h"
#include "record/file/trace_paths.h"
#include "record/say.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

/* ----------------------------------------------------------------- growing */

/* Past RLIMIT_FSIZE the kernel would not only refuse but send SIGXFSZ, which kills. */
static bool is_beyond_size_limit(uint64_t end)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           end > limit.rlim_cur;
}

/*
 * Zeroes in pieces of 64 KiB. They make the page cache hold the chunk in folios of that size,
 * which is what faulting it in costs by: 6 to 7 ns a range against 14 when the faults have to
 * read the unwritten blocks themselves, and against 40 when one write makes one folio of 1 MiB
 * (ext4 walks a folio's buffers again for each of its pages). docs/decisions/0004.
 */
static int write_zeroes(int fd, uint64_t offset, uint64_t size)
{
    static const char zeroes[65536];

    while (size > 0) {
        if (!snd_ownfd_is(&snd_rec.file, fd)) /* the program closed it, and may have it again */
            return EBADF;
        size_t  want = size < sizeof zeroes ? (size_t)size : sizeof zeroes;
        ssize_t n = pwrite(fd, zeroes, want, (off_t)offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        offset += (uint64_t)n;
        size -= (uint64_t)n;
    }
    return 0;
}

/* A part of the file, and where it is mapped. */
struct part {
    uint64_t offset, size;
    void    *map;
};

/*
 * Does something with the file's descriptor. The program cannot close that of the helper thread; any
 * other thread checks it just before it is used. Should the program have closed it, or close it
 * meanwhile, a thread apart opens the file again; should its name be gone too, nothing more can be
 * reserved, which is counted as a full disk is. Returns 0 or an errno.
 */
static int with_file(snd_apart_work *work, void *user)
{
    int kept = snd_apart_kept();
    int fd = kept >= 0 ? kept : __atomic_load_n(&snd_rec.file.fd, __ATOMIC_ACQUIRE);
    int failed = snd_ownfd_is(&snd_rec.file, fd) ? work(fd, user) : EBADF;

    return failed == EBADF ? snd_apart(work, user) : failed;
}

/* The file is at least this long from now on. */
static void note_made(uint64_t end)
{
    uint64_t made = __atomic_load_n(&snd_rec.file_made, __ATOMIC_RELAXED);

    while (made < end && !__atomic_compare_exchange_n(&snd_rec.file_made, &made, end, false,
                                                      __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        ;
}

/*
 * Whether the file system takes room for what is written at once, though it may choose the blocks
 * later. Then a small trace that is soon removed never has any, and to free none costs nothing: on
 * a disk that is told of each freed block, that was most of a short recording's time.
 */
static bool writes_reserve;

/* Free bytes of the file system when last queried. Atomic. */
static uint64_t free_bytes = UINT64_MAX;

static void note_free(const struct statfs *system)
{
    uint64_t blocks = (uint64_t)system->f_bfree, size = (uint64_t)system->f_bsize;
    bool     is_known = system->f_blocks > 0 && size > 0 && blocks < UINT64_MAX / size;

    __atomic_store_n(&free_bytes, is_known ? blocks * size : UINT64_MAX, __ATOMIC_RELAXED);
}

uint64_t snd_file_free(void)
{
    return __atomic_load_n(&free_bytes, __ATOMIC_RELAXED);
}

/*
 * Checked first: an allocation that fails takes all free space before it gives it back, and other
 * processes of this run would find the disk full meanwhile.
 */
static bool is_more_than_free(int fd, uint64_t size)
{
    struct statfs system;

    if (fstatfs(fd, &system) != 0)
        return false;
    note_free(&system);
    /*
     * Some file systems report 0 because they do not know; where 0 is true, allocating fails
     * anyway.
     */
    return system.f_bfree > 0 && system.f_bsize > 0 &&
           (uint64_t)system.f_bfree < size / (uint64_t)system.f_bsize;
}

static int allocate(int fd, uint64_t offset, uint64_t size)
{
    if (writes_reserve && size <= SND_GRAIN)
        return 0;
    if (is_more_than_free(fd, size))
        return ENOSPC;
    while (fallocate(fd, 0, (off_t)offset, (off_t)size) != 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS)
            break; /* real zeroes take real blocks, too */
        if (errno != EINTR)
            return errno;
    }
    return 0;
}

static int fill_with_zeroes(int fd, void *user)
{
    const struct part *part = user;
    int                failed = allocate(fd, part->offset, part->size);

    return failed == 0 ? write_zeroes(fd, part->offset, part->size) : failed;
}

int snd_file_reserve(uint64_t offset, uint64_t size)
{
    struct part part = { offset, size, NULL };

    if (is_beyond_size_limit(offset + size))
        return EFBIG;
    int failed = with_file(fill_with_zeroes, &part);
    if (failed == 0)
        note_made(offset + size);
    return failed;
}

static int map_part(int fd, void *user)
{
    struct part *part = user;
    void *map = mmap(NULL, part->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)part->offset);

    if (map == MAP_FAILED)
        return errno;
    part->map = map;
    return 0;
}

void *snd_file_view(uint64_t offset, uint64_t size)
{
    struct part part = { offset, size, NULL };
    int         failed = with_file(map_part, &part);

    if (failed != 0) {
        errno = failed;
        return NULL;
    }
    snd_bus_add(part.map, size, offset == 0 ? 0 : SND_CHUNK_HEADER_SIZE);
    return part.map;
}

void snd_file_unmap(void *map, size_t size)
{
    snd_bus_remove(map);
    munmap(map, size);
}

void *snd_file_map(uint64_t offset, uint64_t size)
{
    void *map = snd_file_view(offset, size);

    if (!map)
        return NULL;
    if (madvise(map, size, MADV_POPULATE_WRITE) != 0) {
        if (errno == EFAULT || errno == ENOMEM || errno == EHWPOISON) { /* a touch would kill */
            int os_error = errno == EFAULT ? EIO : errno;
            snd_file_unmap(map, size);
            errno = os_error;
            return NULL;
        }
        /* An older kernel: touch each page. A write of what is there cannot be optimised out. */
        volatile char *at = map;
        for (uint64_t i = 0; i < size; i += 4096)
            at[i] = at[i];
    }
    return map;
}

/* Without the name: the process may have no right to it. Some (valgrind) refuse this mremap(). */
struct snd_file_header *snd_file_header_again(void)
{
    void *again = mremap(snd_header, 0, SND_HEADER_SIZE, MREMAP_MAYMOVE);

    if (again == MAP_FAILED)
        return snd_file_view(0, SND_HEADER_SIZE);
    snd_bus_add(again, SND_HEADER_SIZE, 0);
    return again;
}

void snd_file_park(void *map, size_t size)
{
    /*
     * By number: ThreadSanitizer takes mmap() for a write to all of it, and would call the late
     * events a race. Each of them lands whole, in the old pages or in the new.
     */
    long over = syscall(SYS_mmap, map, size, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L);
    (void)over; /* cannot fail for lack of address space: it replaces what is there */
    snd_bus_remove(map);
}

static int punch_part(int fd, void *user)
{
    const struct part *part = user;

    return fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)part->offset,
                     (off_t)part->size) == 0
               ? 0
               : errno;
}

/* Small holes are left: each waits for the file system's journal, milliseconds on a busy disk. */
void snd_file_punch(uint64_t from, uint64_t to)
{
    enum { SMALL = 128 << 10 };

    from = (from + 4095) & ~(uint64_t)4095;
    if (from + SMALL < to) {
        struct part part = { from, to - from, NULL };
        with_file(punch_part, &part); /* if it fails: only disk space is at stake */
    }
}

/* ---------------------------------------------------------------- creating */

static uint64_t read_boot_id(void)
{
    static uint64_t known; /* under the recorder's lock, as all that makes a file */
    char            text[64];

    if (known != 0)
        return known;
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return 0;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    known = n > 0 ? snd_hash_bytes(text, (size_t)n, 0).low : 0;
    return known;
}

static void read_program(char *out, size_t size)
{
    char path[64];

    if (snd_rec.subject_program[0]) {
        snprintf(out, size, "%s", snd_rec.subject_program);
        return;
    }
    snprintf(path, sizeof path, "/proc/%u/exe", snd_subject());
    ssize_t n = readlink(path, out, size - 1);

    out[n > 0 ? n : 0] = '\0';
}

static void fill_header(struct snd_file_header *h)
{
    memcpy(h->magic, SND_FILE_MAGIC, sizeof h->magic);
    h->version_major = SND_VERSION_MAJOR;
    h->version_minor = SND_VERSION_MINOR;
    h->header_size = SND_HEADER_SIZE;
    h->grain = SND_GRAIN;
    h->clock_kind = snd_clock_kind();
    memcpy(h->session, snd_rec.session, sizeof h->session);
    h->boot_id = read_boot_id();
    h->pid = snd_subject();
    h->parent_pid = snd_rec.parent_pid;
    h->rank = snd_rec.job.rank;
    h->world_size = snd_rec.job.world_size;
    h->cycle = snd_rec.cycle;
    h->started_by = snd_subject() == (uint32_t)getpid() ? (uint32_t)getppid() : 0;
    h->early = snd_clock_early();
    h->start = snd_clock_pair_now();
    h->max_bytes = snd_rec.max_bytes;
    h->range_cost_raw_x256 = snd_clock_range_cost();
    gethostname(h->host, sizeof h->host - 1);
    read_program(h->program, sizeof h->program);
    h->flags = snd_rec.keep_last ? SND_FILE_KEEP_LAST : 0;
    h->fixed_crc = snd_crc32c(0, h, offsetof(struct snd_file_header, fixed_crc));
}

/* The page stays where it first was: others bump its counters without a lock. */
static int map_header(int fd, void *unused)
{
    void *page = mmap(snd_header, SND_HEADER_SIZE, PROT_READ | PROT_WRITE,
                      MAP_SHARED | (snd_header ? MAP_FIXED : 0), fd, 0);

    (void)unused;
    if (page == MAP_FAILED)
        return errno;
    snd_header = page;
    snd_bus_add(page, SND_HEADER_SIZE, 0);
    return 0;
}

/*
 * A copy-on-write file system needs new blocks to write reserved ones again, and may have none.
 * Turned off for this file, so that what is reserved can be written.
 */
static void keep_blocks_in_place(int fd)
{
    int flags = 0;

    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
        flags |= FS_NOCOW_FL;
        int rc = ioctl(fd, FS_IOC_SETFLAGS, &flags);
        (void)rc; /* then stores may fault, and are counted (bus_errors.h) */
    }
}

static int study_file_system(int fd, void *unused)
{
    struct statfs system;

    (void)unused;
    writes_reserve = false;
    if (fstatfs(fd, &system) != 0)
        return errno;
    note_free(&system);
    writes_reserve = system.f_type == EXT4_SUPER_MAGIC || system.f_type == XFS_SUPER_MAGIC ||
                     system.f_type == TMPFS_MAGIC;
    if (system.f_type == BTRFS_SUPER_MAGIC)
        keep_blocks_in_place(fd);
    return 0;
}

/* The header as first written, in case the file is truncated. */
static char fixed_part[offsetof(struct snd_file_header, flags)];

enum sonde_status snd_file_create(struct sonde_error *err)
{
    enum sonde_status status = snd_place_create(err);

    if (status != SONDE_OK)
        return status;
    with_file(study_file_system, NULL);
    snd_rec.file_made = 0;
    int failed = snd_file_reserve(0, SND_GRAIN);
    if (failed != 0) {
        errno = failed;
        status = snd_fail_os(err, SONDE_E_IO,
                             "cannot reserve space for the trace %s; choose "
                             "another place with -o or options.path",
                             snd_rec.file_path);
        goto fail_reserve;
    }
    failed = with_file(map_header, NULL);
    if (failed != 0) {
        errno = failed;
        status = snd_fail_os(err, SONDE_E_NOMEM, "cannot map the trace %s", snd_rec.file_path);
        goto fail_reserve;
    }
    snd_bus_guard();
    fill_header(snd_header);
    memcpy(fixed_part, snd_header, sizeof fixed_part);
    snd_rec.file_end = SND_GRAIN;
    return SONDE_OK;

fail_reserve:
    snd_ownfd_close(&snd_rec.file);
    snd_place_remove();
    return status;
}

/* The header as the file has it; false if it has none. */
static bool read_header(int fd, struct snd_file_header *out)
{
    return pread(fd, out, sizeof *out, 0) == (ssize_t)sizeof *out &&
           memcmp(out->magic, SND_FILE_MAGIC, sizeof out->magic) == 0;
}

/* Whether another program truncated the file: its header is gone, or it is shorter than it was. */
static bool is_truncated(uint64_t has, bool has_header)
{
    return !has_header || snd_header->cut_files != 0 || has < snd_rec.file_made;
}

/* Adds the counters of the anonymous memory to those that the file has. */
static void add_counts(struct snd_file_header *to, const struct snd_file_header *more)
{
    static const size_t counts[] = {
        offsetof(struct snd_file_header, lost_events),
        offsetof(struct snd_file_header, lost_names),
        offsetof(struct snd_file_header, cut_names),
        offsetof(struct snd_file_header, late_chunks),
        offsetof(struct snd_file_header, recycled_chunks),
        offsetof(struct snd_file_header, recycled_events),
        offsetof(struct snd_file_header, failed_reserves),
        offsetof(struct snd_file_header, refused_events),
        offsetof(struct snd_file_header, lost_children),
    };

    for (size_t i = 0; i < SND_COUNT_OF(counts); i++)
        *(uint64_t *)((char *)to + counts[i]) +=
            *(const uint64_t *)((const char *)more + counts[i]);
    to->flags |= more->flags;
    to->stopped_at = more->stopped_at;
    to->closed_bytes = more->closed_bytes;
    to->closed_events = more->closed_events;
    if (more->last_os_error)
        to->last_os_error = more->last_os_error;
}

/* Notes the damage in the file, even if nothing else of it is left; if that fails, on stderr. */
static void mend_header(int fd, const struct snd_file_header *in_file, bool is_void, bool truncated)
{
    struct snd_file_header header = *snd_header;

    if (is_void && in_file) {
        header = *in_file;
        add_counts(&header, snd_header);
    }
    memcpy(&header, fixed_part, sizeof fixed_part);
    header.cut_files = truncated;
    header.flags |= SND_FILE_CLOSED;
    bool fits = !is_beyond_size_limit(sizeof header);
    if (!fits)
        errno = EFBIG;
    if (!fits || pwrite(fd, &header, sizeof header, 0) != (ssize_t)sizeof header)
        snd_say("%s could not be closed (%s): it may lack events that its ledger does not count",
                snd_rec.file_path, strerror(errno));
}

struct ending {
    uint64_t size; /* that the file is to have; 0: it is to be removed */
    bool     truncated;
};

static int end_file(int fd, void *user)
{
    struct ending         *ending = user;
    struct snd_file_header in_file;
    struct stat            at;

    if (fstat(fd, &at) != 0)
        return errno;
    uint64_t has = (uint64_t)at.st_size;
    bool     is_void = snd_bus_cut(snd_header, SND_HEADER_SIZE) < SND_HEADER_SIZE;
    bool     has_header = ending->size == 0 || read_header(fd, &in_file);

    ending->truncated = ending->size > 0 && is_truncated(has, has_header);
    if (has > ending->size || (has < ending->size && !is_beyond_size_limit(ending->size))) {
        int rc = ftruncate(fd, (off_t)ending->size);
        (void)rc; /* a longer file has zeroes at its end, which readers step over */
    }
    if (ending->size > 0 && (is_void || ending->truncated))
        mend_header(fd, has_header ? &in_file : NULL, is_void, ending->truncated);
    return 0;
}

void snd_file_close(uint64_t size)
{
    struct ending ending = { size, false };

    with_file(end_file, &ending); /* if it fails, the file stays as long as it is */
    if (ending.truncated)
        snd_say("%s was truncated by another program while it was recorded: what it held is lost",
                snd_rec.file_path);
    snd_file_leave();
}

void snd_file_leave(void)
{
    snd_file_park(snd_header, SND_HEADER_SIZE);
    snd_ownfd_close(&snd_rec.file);
}
