/* SPDX-License-Identifier: Apache-2.0 */
/* native/perf/sample_read.c - the fields of a sample, as perf_event_open(2) lays them out. */
#include <string.h>

#include "native/drain.h"

#define ABI_64 2u /* PERF_SAMPLE_REGS_ABI_64 */

struct bytes {
    const uint8_t *at, *end;
    bool           bad;
};

static uint64_t word(struct bytes *b)
{
    uint64_t value = 0;

    if ((size_t)(b->end - b->at) < sizeof value) {
        b->bad = true;
        return 0;
    }
    memcpy(&value, b->at, sizeof value);
    b->at += sizeof value;
    return value;
}

static const uint8_t *skip(struct bytes *b, uint64_t size)
{
    const uint8_t *at = b->at;

    if (size > (uint64_t)(b->end - b->at)) {
        b->bad = true;
        return NULL;
    }
    b->at += size;
    return at;
}

/* From the order of the kernel's bits to DWARF's numbers. */
static void take_registers(struct bytes *b, struct snd_user_stack *user)
{
#if defined(__aarch64__)
    for (size_t i = 0; i < 33; i++) {
        uint64_t value = word(b);
        if (i < SND_CFI_REGISTERS)
            user->registers[i] = value;
        if (i == 32)
            user->pc = value;
    }
#else
    /* ax bx cx dx si di bp sp ip, r8 to r15 */
    static const uint8_t order[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };

    for (size_t i = 0; i < sizeof order; i++)
        user->registers[order[i]] = word(b);
    user->pc = user->registers[16];
#endif
}

/* Kernel addresses only: the marks that say which kind follows are left out. */
static void take_chain(struct bytes *b, struct snd_native_sample *out)
{
    uint64_t       count = word(b);
    const uint8_t *chain = count < 1024 ? skip(b, count * 8) : NULL;
    uint64_t       first = 0;

    if (!chain) {
        b->bad = true;
        return;
    }
    if (count > 0)
        memcpy(&first, chain, sizeof first);
    if (count > 1 && first == (uint64_t)PERF_CONTEXT_KERNEL) {
        out->kernel = chain + 8;
        out->kernel_count = (size_t)count - 1;
    }
}

bool snd_native_sample_read(const struct snd_perf *perf, const struct perf_event_header *record,
                            struct snd_native_sample *out)
{
    struct bytes b = { (const uint8_t *)(record + 1), (const uint8_t *)record + record->size,
                       false };

    memset(out, 0, sizeof *out);
    word(&b); /* the address: the registers have it, or the chain */
    uint64_t ids = word(&b);
    out->pid = (uint32_t)ids;
    out->tid = (uint32_t)(ids >> 32);
    out->ns = word(&b);
    out->event = word(&b);
    out->period = word(&b);
    for (size_t i = 0, words = snd_perf_count_words(perf, out->event); i < words; i++) {
        uint64_t value = word(&b);
        if (i == 0)
            out->count = value;
    }
    take_chain(&b, out);
    uint64_t abi = word(&b);
    if (abi != 0)
        take_registers(&b, &out->user);
    uint64_t size = word(&b);
    if (size != 0) {
        out->user.bytes = skip(&b, size);
        uint64_t used = word(&b);
        out->user.size = (size_t)(used < size ? used : size);
    }
    out->has_user = abi == ABI_64;
    return !b.bad && out->pid != 0 && out->pid != UINT32_MAX;
}
