/* SPDX-License-Identifier: Apache-2.0 */
/* view/source/disassembly.c: what objdump prints, by one that prints what the test says. */
#include <sys/stat.h>

#include "format/layout.h"
#include "scratch.h"
#include "sonde/export.h"
#include "view/source/disassembly.h"

#define BUILD_ID "00112233445566778899aabbccddeeff00112233"

/* A program `objdump` that is found first; the file it is asked about is its last argument. */
static void install(const char *script)
{
    char  path[300];
    FILE *file = fopen(scratch_path("objdump"), "w");

    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s", script);
    fclose(file);
    assert_int_equal(chmod(scratch_path("objdump"), 0755), 0);
    snprintf(path, sizeof path, "%s:/usr/bin:/bin", scratch_folder);
    setenv("PATH", path, 1);
}

/* As binutils print a file with this build id and three instructions; --start-address is printed as well. */
static const char whole[] = "case \"$*\" in\n"
                            "--version) exit 0;;\n"
                            "*build-id*) cat <<'END'\n"
                            "\n"
                            "prog:     file format elf64-x86-64\n"
                            "\n"
                            "Contents of section .note.gnu.build-id:\n"
                            " 02c4 04000000 14000000 03000000 474e5500  ............GNU.\n"
                            " 02d4 00112233 44556677 8899aabb ccddeeff  ..\"3DUfw........\n"
                            " 02e4 00112233                             ..\"3            \n"
                            "END\n"
                            ";;\n"
                            "*'--start-address=0x1139 --stop-address=0x1142 -- '*) printf "
                            "'\\nDisassembly of section .text:\\n\\n'\n"
                            "printf '0000000000001139 <main>:\\n'\n"
                            "printf '    1139:\\tpush   %%rbp\\n    113a:\\tmov    "
                            "%%rsp,%%rbp\\n\\t...\\n    113d:\\tret'\n"
                            ";;\n"
                            "*) exit 1;;\n"
                            "esac\n";

static const char *make_program(void)
{
    FILE *file = fopen(scratch_path("prog"), "w");

    assert_non_null(file);
    fclose(file);
    return scratch_path("prog");
}

static void expect_text(const struct snd_disassembly *d, uint64_t address, const char *expected)
{
    const struct snd_instruction *at = snd_disassembly_at(d, address);

    if (!at)
        fail_msg("no instruction at %llx", (unsigned long long)address);
    assert_int_equal(at->length, strlen(expected));
    assert_memory_equal(d->text.bytes + at->from, expected, at->length);
}

static void instructions_by_address(void **state)
{
    struct snd_disassembly d;

    (void)state;
    install(whole);
    snd_disassemble(&d, make_program(), BUILD_ID, 0x1139, 0x1142);
    assert_null(d.missing);
    assert_int_equal(d.count, 3);
    expect_text(&d, 0x1139, "push   %rbp");
    expect_text(&d, 0x113a, "mov    %rsp,%rbp");
    expect_text(&d, 0x113d, "ret"); /* the last line has no end */
    assert_null(snd_disassembly_at(&d, 0x1138));
    assert_null(snd_disassembly_at(&d, 0x113b));
    assert_null(snd_disassembly_at(&d, 0x113e));
    snd_disassembly_release(&d);
    snd_disassemble(&d, make_program(), "", 0x1139, 0x1142); /* no build id was recorded */
    assert_null(d.missing);
    assert_int_equal(d.count, 3);
    snd_disassembly_release(&d);
}

static void expect_missing(const char *path, const char *build_id, uint64_t from,
                           const char *expected)
{
    struct snd_disassembly d;

    snd_disassemble(&d, path, build_id, from, 0x1142);
    assert_int_equal(d.count, 0);
    assert_string_equal(d.missing, expected);
    assert_null(snd_disassembly_at(&d, from));
    snd_disassembly_release(&d);
}

static void why_there_are_none(void **state)
{
    (void)state;
    install(whole);
    expect_missing(scratch_path("gone"), BUILD_ID, 0x1139, "the file is not here: addresses alone");
    expect_missing("prog", BUILD_ID, 0x1139,
                   "the file is not here: addresses alone"); /* not absolute */
    expect_missing(scratch_folder, BUILD_ID, 0x1139, "the file is not here: addresses alone");
    expect_missing(make_program(), "00112233", 0x1139,
                   "the file has changed since: addresses alone");
    expect_missing(make_program(), BUILD_ID "44", 0x1139,
                   "the file has changed since: addresses alone");
    expect_missing(make_program(), BUILD_ID, 0x1000,
                   "objdump cannot read the file: addresses alone");
    install("exit 0\n"); /* prints nothing */
    expect_missing(make_program(), "", 0x1139,
                   "objdump finds no instructions there: addresses alone");
    expect_missing(make_program(), BUILD_ID, 0x1139, "the file has changed since: addresses alone");
    install("exit 3\n");
    expect_missing(make_program(), "", 0x1139,
                   "objdump is not installed (package binutils): addresses alone");
}

/* The page of `--view asm`: a function's instructions up to its last sample, each with its share. */
static void a_page_of_two_functions(void **state)
{
    static const struct {
        const char *function;
        uint64_t    address;
        uint32_t    samples;
    } given[] = { { "first", 0x1139, 6 },
                  { "first", 0x113a, 2 },
                  { "second", 0x1139, 1 },
                  { "second", 0x113d, 1 } };
    struct sonde_report_options options = SONDE_REPORT_OPTIONS_INIT;
    struct sonde_buffer         text = { 0 };
    struct sonde_sink           sink = sonde_sink_buffer(&text);
    struct synth               *s = synth_new(scratch_path("asm.sonde"), NULL);
    uint32_t sampler = synth_thread(s, "sonde", 0), t = synth_thread(s, "main", 0);
    char     expected[1000], prog[280], second[300];

    (void)state;
    install("case \"$*\" in\n"
            "--version) exit 0;;\n"
            "*build-id*) printf ' 02c4 04000000 02000000 03000000 474e5500 0011\\n';;\n"
            "*) printf '    1139:\\tpush   %%rbp\\n    113a:\\tmov    %%rsp,%%rbp\\n    "
            "113d:\\tret\\n';;\n"
            "esac\n");
    snprintf(prog, sizeof prog, "%s", make_program());
    snprintf(second, sizeof second, "%s-2", prog);
    scratch_save(second, "", 0);
    for (size_t i = 0; i < sizeof given / sizeof given[0]; i++) {
        uint32_t frame = synth_address(s, synth_string(s, i < 2 ? prog : second), 0,
                                       given[i].address);
        const struct snd_symbol_entry at = { synth_string(s, given[i].function), 0, 0, 0 };
        synth_symbol(s, frame, &at, 1);
        synth_sample(s, sampler, 1000000 * (i + 1), synth_stack(s, 0, frame),
                     10 | given[i].samples << 8, t, 1000 * given[i].samples);
    }
    synth_close(s, true);
    options.view = "asm";
    struct sonde_trace *trace = scratch_open(scratch_path("asm.sonde"));
    assert_int_equal(sonde_report(trace, &options, &sink, NULL), SONDE_OK);
    snprintf(expected, sizeof expected,
             "80.00 %% in first  %s\n"
             " Self %%    Address  Instruction\n"
             "  75.00       1139  push   %%rbp\n"
             "  25.00       113a  mov    %%rsp,%%rbp\n"
             "\n"
             "20.00 %% in second  %s\n"
             " Self %%    Address  Instruction\n"
             "  50.00       1139  push   %%rbp\n"
             "              113a  mov    %%rsp,%%rbp\n"
             "  50.00       113d  ret\n"
             "\n",
             prog, second);
    if (!strstr(text.bytes, expected))
        fail_msg("%s", text.bytes);
    sonde_buffer_release(&text);
    sonde_trace_close(trace);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(instructions_by_address),
        cmocka_unit_test(why_there_are_none),
        cmocka_unit_test(a_page_of_two_functions),
    };
    return cmocka_run_group_tests(tests, NULL, scratch_remove);
}
