/* SPDX-License-Identifier: Apache-2.0 */
#include "record/bus.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/ownpages.h"

#define SLOTS 510

/* Mappings, in blocks that are never freed: the handler walks them without a lock. */
struct slot {
    uintptr_t start; /* 0: free; 1: being filled */
    size_t    size;
    size_t    cut; /* offset from which on memory is anonymous, or `size` */
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

void snd_bus_add(void *map, size_t size)
{
    for (struct block *block = &first; block; block = following(block)) {
        struct slot *slot = claim(block);
        if (slot) {
            __atomic_store_n(&slot->size, size, __ATOMIC_RELAXED);
            __atomic_store_n(&slot->cut, size, __ATOMIC_RELAXED);
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

/* Lays anonymous memory over the mapping, from the page of this address on. */
static bool make_void(uintptr_t address)
{
    struct slot *slot = find(address);

    if (!slot)
        return false;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t from = (address - slot->start) & ~(page - 1);
    long   rc = syscall(SYS_mmap, slot->start + from, slot->size - from, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0L);
    if (rc < 0 && rc > -4096)
        return false;
    size_t cut = __atomic_load_n(&slot->cut, __ATOMIC_ACQUIRE);
    while (from < cut && !__atomic_compare_exchange_n(&slot->cut, &cut, from, false,
                                                      __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        ;
    return true;
}

/* As it would have been without us. A fault that nobody takes comes again, and ends the program. */
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
    /* Somebody has taken it over, and may call us: to call him back would be a circle. */
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
