/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of src/symbols on bytes in memory; whole files are compared with addr2line in e2e. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

#include <cmocka.h>

#include "symbols/elf/code_blocks.h"
#include "symbols/names/demangle.h"
#include "symbols/listings.h"
#include "symbols/elf/segments.h"
#include "symbols/symbols.h"

/* Against the plain way: of all ranges that hold the address, the greatest rank. */
static uint32_t find_slowly(const struct snd_span *spans, uint32_t count, uint64_t address)
{
    uint32_t best = SND_NO_ITEM;
    uint64_t rank = 0;

    for (uint32_t i = 0; i < count; i++)
        if (spans[i].start <= address && address < spans[i].end &&
            (best == SND_NO_ITEM || spans[i].rank > rank)) {
            best = spans[i].item;
            rank = spans[i].rank;
        }
    return best;
}

static void test_segments(void **state)
{
    struct snd_span     spans[40];
    struct snd_segments segments;

    (void)state;
    srand(7);
    for (int round = 0; round < 500; round++) {
        uint32_t count = (uint32_t)(rand() % 40);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t start = (uint64_t)(rand() % 60);
            spans[i] = (struct snd_span){ start, start + (uint64_t)(rand() % 20), i, i };
        }
        assert_true(snd_segments_build(&segments, spans, count));
        for (uint64_t address = 0; address < 90; address++)
            assert_int_equal(snd_segments_find(&segments, address),
                             find_slowly(spans, count, address));
        snd_segments_release(&segments);
    }
}

static void test_rust_names(void **state)
{
    static const struct {
        const char *mangled, *shown;
    } names[] = {
        { "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad" },
        { "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$"
          "3fmt17h0123456789abcdefE",
          "<alloc::string::String as core::fmt::Display>::fmt" },
        { "_ZN3foo3bar17h0123456789abcdefE.llvm.1234", "foo::bar" },
        { "_ZN3foo3bar17h0123456789abcdefE.cold", "foo::bar [clone .cold]" },
        { "_RNvC6_123foo3bar", "123foo::bar" },
        { "_RNqCs4fqI2P2rA04_11utf8_identsu30____7hkackfecea1cbdathfdh9hlq6y",
          "utf8_idents::"
          "\xe1\x83\xa1\xe1\x83\x90\xe1\x83\xad\xe1\x83\x9b\xe1\x83\x94\xe1\x83\x9a\xe1"
          "\x83\x90\xe1\x83\x93_"
          "\xe1\x83\x92\xe1\x83\x94\xe1\x83\x9b\xe1\x83\xa0\xe1\x83\x98\xe1\x83"
          "\x94\xe1\x83\x9a\xe1\x83\x98_"
          "\xe1\x83\xa1\xe1\x83\x90\xe1\x83\x93\xe1\x83\x98\xe1\x83\x9a"
          "\xe1\x83\x98" },
        { "_RNCNCNgCs6DXkGYLi8lr_2cc5spawn00B5_", "cc::spawn::{closure#0}::{closure#0}" },
        { "_RNCINkXs25_NgCsbmNqQUJIY6D_4core5sliceINyB9_4IterhENuNgNoBb_"
          "4iter8iterator8Iterator9rpositi"
          "onNCNgNpB9_6memchr7memrchrs_0E0Bb_",
          "<core::slice::Iter<u8> as "
          "core::iter::iterator::Iterator>::rposition::<core::slice::memchr::"
          "memrchr::{closure#1}>::{closure#0}" },
        { "_RMCs4fqI2P2rA04_13const_genericINtB0_4CharKc76_E", "<const_generic::Char<'v'>>" },
        { "_RINbNbCskIICzLVDPPb_5alloc5alloc8box_freeDINbNiB4_5boxed5FnBoxuEp6OutputuEL_"
          "ECs1iopQbuBiw2_3s"
          "td",
          "alloc::alloc::box_free::<dyn alloc::boxed::FnBox<(), Output = ()>>" },
        { "_RMC0INtC8arrayvec8ArrayVechKj7b_E", "<arrayvec::ArrayVec<u8, 123>>" },
        /* not names of Rust's: as they are, or C++'s */
        { "main", "main" },
        { "_RYFG_FGyyEvRYFF_EvRmFB_EvERLB_B_B_B_B_", "_RYFG_FGyyEvRYFF_EvRmFB_EvERLB_B_B_B_B_" },
        { "_R", "_R" },
        { "_RNvNvNvNv", "_RNvNvNvNv" },
    };
    struct snd_demangler demangler = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        assert_string_equal(snd_demangle(&demangler, names[i].mangled), names[i].shown);
    snd_demangler_release(&demangler);
}

static void test_cxx_names(void **state)
{
    struct snd_demangler demangler = { 0 };

    (void)state;
    assert_string_equal(snd_demangle(&demangler, "_Zfoo"), "_Zfoo");
    if (!demangler.cxx) {
        snd_demangler_release(&demangler);
        print_message("no libstdc++ here: names of C++ stay as they are\n");
        skip();
    }
    assert_string_equal(snd_demangle(&demangler, "_ZN3foo3barEv"), "foo::bar()");
    assert_string_equal(snd_demangle(&demangler, "_ZN3foo3barEv.constprop.0"),
                        "foo::bar() [clone .constprop.0]");
    /* A constructor of a class that requires something, in C++20; Q may be in a name, too. */
    assert_string_equal(snd_demangle(&demangler,
                                     "_ZN4QbitIiEC2EvQ26is_default_constructible_vIT1_E"),
                        "Qbit<int>::Qbit()");
    assert_string_equal(snd_demangle(&demangler, "_ZN4QbitIiEC2EvQ4goodIT1_E.cold"),
                        "Qbit<int>::Qbit() [clone .cold]");
    assert_string_equal(snd_demangle(&demangler, "_ZN4QbitQQ"), "_ZN4QbitQQ");
    snd_demangler_release(&demangler);
}

static const char *name_at(const struct snd_symtab *symtab, uint64_t address)
{
    const struct snd_symtab_entry *entry = snd_symtab_find(symtab, address);

    return entry ? entry->name : "none";
}

/* Code that is made at run time takes the place of older code: the later line is right. */
static void test_perf_map(void **state)
{
    static const char text[] = "7f00 10 first\n"
                               "0x7f08 0x8 second with blanks\n"
                               "7f10 zz wrong\n"
                               "\n"
                               "7f20\n"
                               "7f30 0 empty\n"
                               "ffffffffffffffff 2 wraps\n"
                               "11111111111111111 2 long\n"
                               "7f40 4 last";
    struct snd_symtab symtab = { 0 };

    (void)state;
    assert_true(snd_perfmap_parse(&symtab, text, sizeof text - 1));
    assert_int_equal(symtab.count, 3);
    assert_string_equal(name_at(&symtab, 0x7f00), "first");
    assert_string_equal(name_at(&symtab, 0x7f08), "second with blanks");
    assert_string_equal(name_at(&symtab, 0x7f0f), "second with blanks");
    assert_string_equal(name_at(&symtab, 0x7f10), "none");
    assert_string_equal(name_at(&symtab, 0x7f43), "last");
    assert_string_equal(name_at(&symtab, 0x7f44), "none");
    snd_symtab_release(&symtab);
}

static void test_kallsyms(void **state)
{
    static const char text[] = "0000000000000000 T hidden\n"
                               "ffffffff81000000 T _stext\n"
                               "ffffffff81000000 t local\n"
                               "ffffffff81000040 T do_work\n"
                               "ffffffff81000050 D data\n"
                               "ffffffffc0000000 t in_module\t[ext4]\n";
    struct snd_symtab symtab = { 0 };

    (void)state;
    assert_true(snd_kallsyms_parse(&symtab, text, sizeof text - 1));
    assert_string_equal(name_at(&symtab, 0xffffffff8100003f), "_stext");
    assert_string_equal(name_at(&symtab, 0xffffffff81000060), "do_work");
    assert_string_equal(name_at(&symtab, 0xffffffffc0000001), "in_module");
    assert_string_equal(name_at(&symtab, 0x10), "none");
    snd_symtab_release(&symtab);
}

/* What is not there, or is no ELF file, has no names, and that is counted. */
static void test_unreadable(void **state)
{
    struct snd_symbols     *symbols = snd_symbols_new();
    struct snd_symbol_query queries[] = {
        { .file = "/does/not/exist", .address = 1 },
        { .file = "/dev/null", .address = 1 },
        { .file = "/etc/passwd", .address = 1 },
        { .file = "/proc/self/exe", .address = 0 },
        { .file = "[heap]", .address = 1 },
        { .file = "/tmp/perf-none.map", .address = 1 },
        { .file = "", .address = 1 },
    };
    struct sonde_error err;

    (void)state;
    assert_int_equal(snd_symbols_find(symbols, queries, sizeof queries / sizeof queries[0], &err),
                     SONDE_OK);
    for (size_t i = 0; i < sizeof queries / sizeof queries[0]; i++)
        assert_int_equal(queries[i].count, 0);
    assert_int_equal(snd_symbols_stats(symbols)->unreadable, 4);
    assert_int_equal(snd_symbols_stats(symbols)->unnamed, 7);
    snd_symbols_free(symbols);
}

extern const char __executable_start[]; /* the linker's */

/* This program's own: an address within a function leads to its start, without any symbol. */
static void test_code_blocks(void **state)
{
    struct snd_image       image;
    struct snd_code_blocks blocks = { 0 };
    uint64_t               start;

    (void)state;
    assert_true(snd_image_open("/proc/self/exe", &image));
    uint64_t base = image.head.e_type == ET_DYN ? (uint64_t)(uintptr_t)__executable_start : 0;
    uint64_t function = (uint64_t)(uintptr_t)test_segments - base;
    assert_true(snd_code_blocks_read(&blocks, &image));
    assert_true(snd_code_blocks_find(&blocks, function, &start));
    assert_int_equal(start, function);
    assert_true(snd_code_blocks_find(&blocks, function + 8, &start));
    assert_int_equal(start, function);
    assert_true(snd_code_blocks_find(&blocks, function - 1, &start) ? start < function : true);
    assert_false(snd_code_blocks_find(&blocks, UINT64_MAX, &start));
    snd_code_blocks_release(&blocks);
    snd_image_release(&image);
}

/* Of the kernel's code in this process at least one function is known everywhere. */
static void test_vdso(void **state)
{
    struct snd_symbols      *symbols = snd_symbols_new();
    struct snd_symbol_query *queries = calloc(4096, sizeof *queries);
    struct sonde_error       err;
    bool                     found = false;

    (void)state;
    if (getauxval(AT_SYSINFO_EHDR) == 0) {
        free(queries);
        snd_symbols_free(symbols);
        print_message("this process has no vDSO (qemu-user)\n");
        skip();
    }
    for (size_t i = 0; i < 4096; i++)
        queries[i] = (struct snd_symbol_query){ .file = "[vdso]", .address = i };
    assert_int_equal(snd_symbols_find(symbols, queries, 4096, &err), SONDE_OK);
    for (size_t i = 0; i < 4096; i++)
        found |= queries[i].count == 1 && strstr(queries[i].entries[0].function, "gettime");
    assert_true(found);
    free(queries);
    snd_symbols_free(symbols);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_segments),  cmocka_unit_test(test_rust_names),
        cmocka_unit_test(test_cxx_names), cmocka_unit_test(test_perf_map),
        cmocka_unit_test(test_kallsyms),  cmocka_unit_test(test_unreadable),
        cmocka_unit_test(test_vdso),      cmocka_unit_test(test_code_blocks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
