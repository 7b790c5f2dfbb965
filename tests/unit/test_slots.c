/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The slots of a library are found, replaced and put back, and the pages around them keep the
 * rights that the loader gave them.
 *
 * The library is made up: three pages with its tables, and two slots. What the loader would make
 * read-only ends in the middle of the last page, as linkers may have it; the loader then leaves
 * all of that page writable, and the library writes its data there.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "hook/slots.h"

#if defined(__aarch64__)
#define GLOB_DAT R_AARCH64_GLOB_DAT
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#else
#define GLOB_DAT R_X86_64_GLOB_DAT
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#endif

enum { IN_RELRO, BEHIND_RELRO, SLOTS };

struct made_up {
    size_t page;
    char  *bytes; /* tables; slots that are read-only; slots that are not */
    void **slots[SLOTS];
    ElfW(Sym) symbols[3];
    ElfW(Rela) functions[1], others[1];
    ElfW(Phdr) parts[3];
    struct dl_phdr_info info;
};

static const char names[] = "\0first\0second";
static char       before[SLOTS], after[SLOTS]; /* their addresses stand for functions */

static void make_symbols(struct made_up *m, char *strings)
{
    memcpy(strings, names, sizeof names);
    m->symbols[1] = (ElfW(Sym)){ .st_name = 1, .st_shndx = SHN_UNDEF };
    m->symbols[2] = (ElfW(Sym)){ .st_name = 7, .st_shndx = SHN_UNDEF };
    m->functions[0] = (ElfW(Rela)){ .r_offset = m->page + 64, .r_info = ELF64_R_INFO(1, GLOB_DAT) };
    m->others[0] = (ElfW(Rela)){ .r_offset = 2 * m->page + 64,
                                 .r_info = ELF64_R_INFO(2, JUMP_SLOT) };
}

static void make_parts(struct made_up *m)
{
    m->parts[0] = (ElfW(Phdr)){ .p_type = PT_LOAD, .p_memsz = 3 * m->page };
    m->parts[1] = (ElfW(Phdr)){ .p_type = PT_DYNAMIC };
    m->parts[2] =
        (ElfW(Phdr)){ .p_type = PT_GNU_RELRO, .p_vaddr = m->page, .p_memsz = m->page + 128 };
    m->info = (struct dl_phdr_info){ .dlpi_addr = (ElfW(Addr))m->bytes,
                                     .dlpi_name = "/made/up.so",
                                     .dlpi_phdr = m->parts,
                                     .dlpi_phnum = 3 };
}

static void make(struct made_up *m)
{
    m->page = (size_t)sysconf(_SC_PAGESIZE);
    m->bytes = mmap(NULL, 3 * m->page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(m->bytes, MAP_FAILED);
    char *strings = m->bytes + 1024;
    make_symbols(m, strings);
    ElfW(Dyn) dynamic[] = {
        { DT_SYMTAB, { .d_ptr = (ElfW(Addr))m->symbols } },
        { DT_STRTAB, { .d_ptr = (ElfW(Addr))strings } },
        { DT_JMPREL, { .d_ptr = (ElfW(Addr))m->functions } },
        { DT_PLTRELSZ, { .d_val = sizeof m->functions } },
        { DT_RELA, { .d_ptr = (ElfW(Addr))m->others } },
        { DT_RELASZ, { .d_val = sizeof m->others } },
        { DT_NULL, { 0 } },
    };
    memcpy(m->bytes, dynamic, sizeof dynamic);
    make_parts(m);
    for (int i = 0; i < SLOTS; i++) {
        m->slots[i] = (void **)(m->bytes + (size_t)(i + 1) * m->page + 64);
        *m->slots[i] = &before[i];
    }
    assert_int_equal(mprotect(m->bytes + m->page, m->page, PROT_READ), 0); /* as the loader */
}

/* Whether a store to it would succeed: the kernel tries, and no signal comes. */
static bool is_writable(void *address)
{
    int zeros = open("/dev/zero", O_RDONLY | O_CLOEXEC);

    assert_true(zeros >= 0);
    bool writable = read(zeros, address, 1) == 1;
    assert_true(writable || errno == EFAULT);
    close(zeros);
    return writable;
}

static int setup(void **state)
{
    struct made_up *m = calloc(1, sizeof *m);

    if (!m)
        return -1;
    make(m);
    *state = m;
    return 0;
}

static int teardown(void **state)
{
    struct made_up *m = *state;

    munmap(m->bytes, 3 * m->page);
    free(m);
    return 0;
}

static void redirect_both(struct made_up *m, struct snd_redirects *redirects)
{
    struct snd_redirect_search first = { "up.so", "first", redirects };
    struct snd_redirect_search second = { "up.so", "second", redirects };

    assert_int_equal(snd_redirect_look(&m->info, sizeof m->info, &first), 0);
    assert_int_equal(snd_redirect_look(&m->info, sizeof m->info, &second), 0);
    assert_int_equal(redirects->count, 2);
    assert_int_equal(snd_redirect_known(redirects, "up.so", "first", &after[IN_RELRO]), 1);
    assert_int_equal(snd_redirect_known(redirects, "up.so", "second", &after[BEHIND_RELRO]), 1);
}

static void test_replaced_and_put_back(void **state)
{
    struct made_up      *m = *state;
    struct snd_redirects redirects = { .count = 0 };

    redirect_both(m, &redirects);
    for (int i = 0; i < SLOTS; i++)
        assert_ptr_equal(*m->slots[i], &after[i]);
    snd_redirects_undo(&redirects);
    for (int i = 0; i < SLOTS; i++)
        assert_ptr_equal(*m->slots[i], &before[i]);
}

static void test_rights_stay(void **state)
{
    struct made_up      *m = *state;
    struct snd_redirects redirects = { .count = 0 };

    redirect_both(m, &redirects);
    assert_false(is_writable(m->bytes + m->page));
    assert_true(is_writable(m->bytes + 2 * m->page)); /* the library's own data */
    snd_redirects_undo(&redirects);
    assert_false(is_writable(m->bytes + m->page));
    assert_true(is_writable(m->bytes + 2 * m->page));
}

static void test_other_library(void **state)
{
    struct made_up            *m = *state;
    struct snd_redirects       redirects = { .count = 0 };
    struct snd_redirect_search search = { "other.so", "first", &redirects };

    snd_redirect_look(&m->info, sizeof m->info, &search);
    assert_int_equal(redirects.count, 0);
    /* Looked for once: that there is none is remembered. */
    assert_int_equal(snd_redirect(&redirects, "none-of-this-name.so", "first", &after[0]), 0);
    assert_int_equal(redirects.count, 1);
    assert_int_equal(snd_redirect(&redirects, "none-of-this-name.so", "first", &after[0]), 0);
    assert_int_equal(redirects.count, 1);
}

/* Of the loader itself the addresses are those of the file: there is nothing to follow. */
static void test_addresses_of_the_file(void **state)
{
    struct made_up    *m = *state;
    struct snd_library library;

    assert_true(snd_library_read(&library, &m->info));
    assert_true(snd_library_holds(&library, m->bytes));
    assert_false(snd_library_holds(&library, m->bytes + 3 * m->page));
    ((ElfW(Dyn) *)m->bytes)[1].d_un.d_ptr = 1024;
    assert_false(snd_library_read(&library, &m->info));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_replaced_and_put_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rights_stay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_other_library, setup, teardown),
        cmocka_unit_test_setup_teardown(test_addresses_of_the_file, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
