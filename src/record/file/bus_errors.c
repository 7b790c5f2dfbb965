/* SPDX-License-Identifier: Apache-2.0 */
#include "record/file/bus_errors.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/own_pages.h"

#define SLOTS 383
#define KEPT_MOST 64 /* bytes at the head of a mapping that are kept after a fault there */

/* Mappings, in blocks that are never freed: the handler walks them without a lock. */
struct slot {
    uintptr_t start; /* 0: free; 1: being filled */
    size_t    size;
    size_t    cut;  /* first byte that is anonymous memory by now, or `size` */
    size_t    kept; /* bytes at its head */
};
struct block {
    struct slot   slots[SLOTS];
    struct block *next;
};

static struct block     first;
static struct sigaction before; /* whose the signal was */
static bool             guarded;

static struct slot *claim(struct block *block)
{
    for (size_t i = 0; i < SLOTS; i++) {
        uintptr_t none = 0;
        if (__atomic_load_n(&block->slots[i].start, __ATOMIC_RELAXED) == 0 &&
            __atomic_compare_exchange_n(&block->slots[i].start, &none, 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            return &block->slots[i];
    }
    return NULL;
}

static struct block *following(struct block *block)
{
    struct block *next = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE);

    if (next)
        return next;
    struct block *fresh = snd_ownpages_new(sizeof *fresh);
    if (!fresh || __atomic_compare_exchange_n(&block->next, &next, fresh, false, __ATOMIC_ACQ_REL,
                                              __ATOMIC_ACQUIRE))
        return fresh;
    snd_ownpages_free(fresh, sizeof *fresh);
    return next;
}

void snd_bus_add(void *map, size_t size, size_t kept)
{
    for (struct block *block = &first; block; block = following(block)) {
        struct slot *slot = claim(block);
        if (slot) {
            __atomic_store_n(&slot->size, size, __ATOMIC_RELAXED);
            __atomic_store_n(&slot->cut, size, __ATOMIC_RELAXED);
            __atomic_store_n(&slot->kept, kept < KEPT_MOST ? kept : KEPT_MOST, __ATOMIC_RELAXED);
            __atomic_store_n(&slot->start, (uintptr_t)map, __ATOMIC_RELEASE);
            return;
        }
    }
}

/* Another thread may give the slot to another mapping meanwhile: then it is not this one. */
static bool holds(const struct slot *slot, uintptr_t address)
{
    uintptr_t start = __atomic_load_n(&slot->start, __ATOMIC_ACQUIRE);

    if (start <= 1 || address < start)
        return false;
    size_t size = __atomic_load_n(&slot->size, __ATOMIC_ACQUIRE);
    return address - start < size && __atomic_load_n(&slot->start, __ATOMIC_RELAXED) == start;
}

/* The mapping that contains this address. */
static struct slot *find(uintptr_t address)
{
    for (struct block *block = &first; block;
         block = __atomic_load_n(&block->next, __ATOMIC_ACQUIRE))
        for (size_t i = 0; i < SLOTS; i++)
            if (holds(&block->slots[i], address))
                return &block->slots[i];
    return NULL;
}

void snd_bus_remove(void *map)
{
    struct slot *slot = find((uintptr_t)map);

    if (slot)
        __atomic_store_n(&slot->start, 0, __ATOMIC_RELEASE);
}

size_t snd_bus_cut(const void *map, size_t size)
{
    const struct slot *slot = find((uintptr_t)map);

    return slot ? __atomic_load_n(&slot->cut, __ATOMIC_ACQUIRE) : size;
}

/* ----------------------------------------------------------------- handler */

/*
 * Copies what can be read. A page that is gone leaves `to` unchanged and raises no further fault.
 */
static void read_safely(void *to, uintptr_t from, size_t size)
{
    struct iovec local = { to, size }, remote = { (void *)from, size };

    syscall(SYS_process_vm_readv, syscall(SYS_getpid), &local, 1ul, &remote, 1ul, 0ul);
}

/* Maps anonymous memory over a part of the mapping. */
static bool cover(uintptr_t start, size_t size, size_t kept)
{
    char head[KEPT_MOST] = { 0 };

    read_safely(head, start, kept);
    long rc = syscall(SYS_mmap, start, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L);
    if (rc < 0 && rc > -4096)
        return false;
    for (size_t i = 0; i < kept; i++)
        ((char *)start)[i] = head[i];
    return true;
}

/*
 * Covers everything from this address's page on; parts covered before keep what was stored there
 * since.
 */
static bool make_void(uintptr_t address)
{
    struct slot *slot = find(address);

    if (!slot)
        return false;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t from = (address - slot->start) & ~(page - 1);
    size_t cut = __atomic_load_n(&slot->cut, __ATOMIC_ACQUIRE);
    do {
        if (from >= cut)
            return true; /* another thread is covering it: the store faults again until that is done */
    } while (!__atomic_compare_exchange_n(&slot->cut, &cut, from, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return cover(slot->start + from, cut - from, from == 0 ? slot->kept : 0);
}

/*
 * What would have happened without us. A fault that no handler takes is raised again and ends the
 * program.
 */
static void pass_on(int number, siginfo_t *info, void *context)
{
    bool is_sent = info->si_code <= 0;

    if (before.sa_flags & SA_SIGINFO) {
        before.sa_sigaction(number, info, context);
    } else if (before.sa_handler == SIG_IGN && is_sent) {
        return;
    } else if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) {
        struct sigaction standard = { .sa_handler = SIG_DFL };
        sigaction(SIGBUS, &standard, NULL);
        if (is_sent)
            raise(SIGBUS);
    } else {
        before.sa_handler(number);
    }
}

static void on_bus_error(int number, siginfo_t *info, void *context)
{
    int error = errno;

    if (info->si_code <= 0 || !make_void((uintptr_t)info->si_addr))
        pass_on(number, info, context);
    errno = error;
}

void snd_bus_guard(void)
{
    struct sigaction ours = { .sa_sigaction = on_bus_error,
                              .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART };
    struct sigaction now;

    if (sigaction(SIGBUS, NULL, &now) != 0 ||
        ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_bus_error))
        return;
    /*
     * Another handler has replaced ours and may call it: calling that one back would loop for ever.
     */
    if (guarded &&
        ((now.sa_flags & SA_SIGINFO) || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN)))
        return;
    before = now;
    guarded = sigaction(SIGBUS, &ours, NULL) == 0;
}

void snd_bus_release(void)
{
    struct sigaction now;

    if (guarded && sigaction(SIGBUS, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
        now.sa_sigaction == on_bus_error) {
        sigaction(SIGBUS, &before, NULL);
        guarded = false;
    }
}
