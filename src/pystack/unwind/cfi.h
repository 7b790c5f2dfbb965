/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pystack/unwind/cfi.h - what the tables for exceptions (.eh_frame) say of an address of this process's
 * code: where its caller's registers are.
 *
 * DWARF 5, 6.4, as the Linux Standard Base has it in .eh_frame. No lock, no memory, no system call.
 *
 * Layer:   pystack. Threads: any, each with a struct of its own; also in a signal handler.
 */
#ifndef SND_PYSTACK_UNWIND_CFI_H
#define SND_PYSTACK_UNWIND_CFI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__aarch64__)
#define SND_CFI_REGISTERS 33
#define SND_CFI_SP 31
#else
#define SND_CFI_REGISTERS 17
#define SND_CFI_SP 7
#endif

/* Where the caller's value of a register is. CFA: the stack pointer before the call. */
enum snd_cfi_kind {
    SND_CFI_SAME,      /* still in the register */
    SND_CFI_UNDEFINED, /* lost; of the return address: there is no caller */
    SND_CFI_AT,        /* stored at CFA + offset */
    SND_CFI_IS,        /* CFA + offset itself */
    SND_CFI_REGISTER,  /* in register number `offset` */
    SND_CFI_AT_RESULT, /* stored where the expression says */
    SND_CFI_IS_RESULT, /* what the expression says */
};

struct snd_cfi_bytes {
    const uint8_t *at, *end;
    bool           bad; /* read past the end: the result is not valid */
};

struct snd_cfi_rule {
    enum snd_cfi_kind    kind;
    int64_t              offset;
    struct snd_cfi_bytes expression;
};

struct snd_cfi_row {
    struct snd_cfi_rule registers[SND_CFI_REGISTERS];
    struct snd_cfi_rule cfa; /* REGISTER: `cfa_register` + offset; IS_RESULT */
    uint32_t            cfa_register;
};

#define SND_CFI_SAVED 4 /* nested DW_CFA_remember_state, at most */

/* Some KB: not for a signal handler's stack. */
struct snd_cfi {
    struct snd_cfi_row row; /* found */
    uint64_t           function;
    uint32_t           return_column;
    bool is_signal; /* a signal handler's frame: the code above it was interrupted, not called */

    /* The reader's own. */
    struct snd_cfi_row initial, saved[SND_CFI_SAVED];
    unsigned           saved_count;
    uint64_t           pc, location, code_factor;
    int64_t            data_factor;
    uint8_t            encoding;
    bool               unknown;   /* an instruction that is not known here */
    bool               has_extra; /* functions have a block of further data */
    uint64_t bias; /* from where bytes are here to where they are in the file's addresses */
    struct snd_cfi_bytes program;
};

/* At the start, not in a signal handler. False: this C library has no _dl_find_object(). */
bool snd_cfi_init(void);

/* The loaded file that contains an address: its load address, and the loader's struct link_map. */
struct snd_cfi_object {
    uint64_t               begin, end;
    const struct link_map *map;
};
bool snd_cfi_object(uint64_t address, struct snd_cfi_object *object);

/* False if the address has no entry, or its entry uses something that is not supported here. */
bool snd_cfi_find(struct snd_cfi *cfi, uint64_t pc);

/*
 * A section that was read from a file, .eh_frame or .debug_frame; its content is untrusted. Visits
 * all functions: `begin` with the function's address range, then `row` for each row (cfi->row) with
 * the address from which it applies; false: the rest of the function is not supported. NULL: none.
 */
struct snd_cfi_section {
    const uint8_t *bytes;
    size_t         size;
    uint64_t       address; /* that the section has in the file's addresses */
    bool           is_debug;
};
struct snd_cfi_visitor {
    void *user;
    void (*begin)(void *user, uint64_t start, uint64_t end);
    void (*row)(void *user, uint64_t from, const struct snd_cfi *cfi, bool good);
};
void snd_cfi_walk(const struct snd_cfi_section *section, const struct snd_cfi_visitor *visitor);

/* A return address without the signature that some processors put into its upper bits. */
static inline uint64_t snd_cfi_strip(uint64_t address)
{
#if defined(__aarch64__)
    register uint64_t x30 __asm__("x30") = address;
    __asm__("hint 7" : "+r"(x30)); /* xpaclri */
    return x30;
#else
    return address;
#endif
}

/* Numbers as they are stored; 0 and `bad` at the end. */
uint64_t snd_cfi_fixed(struct snd_cfi_bytes *bytes, size_t size);
uint64_t snd_cfi_uleb(struct snd_cfi_bytes *bytes);
int64_t  snd_cfi_sleb(struct snd_cfi_bytes *bytes);

#endif
