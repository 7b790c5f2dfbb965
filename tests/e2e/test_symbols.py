# SPDX-License-Identifier: Apache-2.0
"""Names of addresses of compiled programs, against addr2line, nm and objdump: every one must agree."""
import bisect
import pathlib
import platform
import random
import re
import shutil
import subprocess

import pytest

from cli_tools import ROOT, find

SYMBOLIZE = find("SONDE_SYMBOLIZE", ROOT / "build/tests/e2e/e2e_symbolize")
pytestmark = pytest.mark.skipif(not SYMBOLIZE or not shutil.which("addr2line"),
                                reason="e2e_symbolize is not built (run `make`), or binutils is not installed")

C_PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
static inline __attribute__((always_inline)) unsigned mix(unsigned x)
{
    x ^= x << 13;
    x ^= x >> 17;
    return x ^ x << 5;
}
static inline __attribute__((always_inline)) unsigned twice(unsigned x)
{
    unsigned y = mix(x);
    for (int i = 0; i < 10; i++)
        y += mix(y) * 3;
    return y;
}
__attribute__((noinline)) static unsigned hidden(unsigned n)
{
    unsigned sum = 0;
    for (unsigned i = 0; i < n; i++)
        sum += twice(sum + i);
    return sum;
}
__attribute__((noinline)) int compare(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}
int alias_of(const void *, const void *) __attribute__((alias("compare")));
int weak_alias(const void *, const void *) __attribute__((weak, alias("compare")));
__attribute__((noinline)) unsigned recurse(unsigned n)
{
    return n < 2 ? hidden(n + 5) : recurse(n - 1) + recurse(n - 2);
}
int main(int argc, char **argv)
{
    int list[64];
    for (int i = 0; i < 64; i++)
        list[i] = (int)recurse((unsigned)(argc + i % 3));
    qsort(list, 64, sizeof *list, compare);
    printf("%d %s\n", list[0], argv[0]);
    return 0;
}
"""

CXX_PROGRAM = r"""
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>
namespace outer {
template <typename T, int N> struct box {
    T values[N];
    T total() const { T sum{}; for (auto v : values) sum += v; return sum; }
    box &operator+=(T v) { for (auto &x : values) x += v; return *this; }
};
struct base { virtual ~base() = default; virtual int run(int) = 0; };
namespace { struct left : base { int run(int n) override { return n > 1 ? run(n - 1) + 1 : 1; } }; }
struct right : base { int run(int n) override { std::string s(static_cast<size_t>(n), 'x'); return int(s.size()); } };
}
int main(int argc, char **)
{
    outer::box<double, 7> box{};
    std::map<std::string, std::vector<int>> table;
    for (int i = 0; i < 100; i++) {
        box += i;
        table[std::to_string(i % 7)].push_back(i * argc);
    }
    auto weigh = [&](const std::vector<int> &v) { return int(v.size()) + int(box.total()); };
    std::vector<int> weights;
    for (auto &[key, list] : table) {
        std::sort(list.begin(), list.end(), [](int a, int b) { return a % 10 > b % 10; });
        weights.push_back(weigh(list));
    }
    outer::left l; outer::right r;
    outer::base *both[] = {&l, &r};
    int sum = 0;
    for (auto *b : both) sum += b->run(argc + 3);
    std::printf("%d %d\n", sum, weights[0]);
}
"""

RUST_PROGRAM = r"""
use std::collections::HashMap;
use std::fmt::Display;
trait Shape { fn area(&self) -> f64; }
struct Square(f64);
struct Circle<T>(T);
impl Shape for Square { fn area(&self) -> f64 { self.0 * self.0 } }
impl<T: Into<f64> + Copy> Shape for Circle<T> { #[inline(never)] fn area(&self) -> f64 { let r: f64 = self.0.into(); r * r * 3.0 } }
#[inline(never)] fn show<T: Display, const N: usize>(items: [T; N]) -> String { items.iter().map(|x| format!("{}", x)).collect::<Vec<_>>().join(",") }
fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(2.0)), Box::new(Circle(1.5f32))];
    let total: f64 = shapes.iter().map(|s| s.area()).sum();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for word in "a b a c".split(' ') { *counts.entry(word.to_string()).or_insert(0) += 1; }
    println!("{} {} {:?}", total, show([1, 2, 3]), counts.get("a"));
}
"""


def compile_program(tmp_path, text, suffix, *flags):
    compiler = {"c": "gcc", "cc": "g++", "rs": "rustc", "s": "gcc"}[suffix]
    if not shutil.which(compiler):
        pytest.skip(f"{compiler} is not installed")
    source = tmp_path / f"program.{suffix}"
    source.write_text(text)
    program = tmp_path / "program"
    subprocess.run([compiler, *flags, source, "-o", program], check=True, cwd=tmp_path)
    return program


def ask(file, addresses, *more, fields=3):
    """[[(function, file, line, first line)]], the `fields` first of each, for each address, and the counts of what went wrong."""
    given = "".join(f"{a:x}\n" for a in addresses)
    done = subprocess.run([SYMBOLIZE, file, *more], input=given, capture_output=True, check=True,
                          text=True, errors="replace")
    lines = iter(done.stdout.splitlines())
    answers = []
    for address in addresses:
        head, count = next(lines).split()
        assert int(head, 16) == address
        answers.append([tuple(next(lines).split("\t")[:fields]) for _ in range(int(count))])
    words = next(lines).split()
    return answers, dict(zip(words[::2], map(int, words[1::2])))


def code_addresses(program, most=6000):
    """Beginnings of instructions of .text, a sample of them where they are many."""
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", "-j", ".text", program],
                          capture_output=True, text=True, check=True).stdout
    found = [int(m.group(1), 16) for m in re.finditer(r"^\s*([0-9a-f]+):\t", text, re.M)]
    return sorted(random.Random(1).sample(found, most)) if len(found) > most else found


def function_addresses(program):
    """Those of them that are in a function that the symbol table has the size of: not padding."""
    symbols = sorted(symbols_of(program))
    starts = [start for start, _, _ in symbols]
    return [a for a in code_addresses(program)
            if (at := bisect.bisect_right(starts, a)) and a < symbols[at - 1][1]]


def bare(name):
    """Without what compilers add to the names of parts and copies of functions: foo.cold."""
    return re.sub(r"( \[clone [^]]*\])+$|\.(cold|part|constprop|isra)(\.\d+)*$", "", name)


def demangle(names):
    """By binutils. What it cannot read for the C++20 constraint at its end, some constructors', it can without."""
    def ask_binutils(mangled):
        return subprocess.run(["c++filt"], input="\n".join(mangled), capture_output=True, text=True, check=True).stdout.splitlines()
    shown = ask_binutils(names)
    cuts = {name: [name[:at] for at in range(len(name) - 1, 1, -1) if name[at] == "Q"] for name in shown if name.startswith("_Z")}
    parts = [part for own in cuts.values() for part in own]
    readable = {part: text for part, text in zip(parts, ask_binutils(parts)) if text != part}
    return [next((readable[part] for part in cuts.get(name, ()) if part in readable), name) for name in shown]


def first_aliases(program):
    """{name: the first of its function's names}. gcc 16 gives functions with a C++20 constraint a second one without it:
    DWARF has the one, llvm takes the other from the symbol table."""
    groups = [sorted(names) for _, _, names in symbols_of(program)]
    shown = iter(demangle([name for group in groups for name in group]))
    groups = [sorted(next(shown) for _ in group) for group in groups]
    return {name: group[0] for group in groups for name in group}


def addr2line(program, addresses, tool="addr2line"):
    """As ask() answers. Names are demangled by binutils, whichever tool it is."""
    given = "".join(f"{a:x}\n" for a in addresses)
    text = subprocess.run([tool, "-afi", "-e", program], input=given, capture_output=True, text=True,
                          check=True).stdout
    lines = text.splitlines()
    names = iter(demangle(lines))
    answers = []
    for line in lines:
        name = next(names)
        if re.fullmatch(r"0x[0-9a-f]+", line):
            answers.append([])
            function = None
        elif function is None:
            function = bare(name)
        else:
            file, _, number = line.partition(" (discriminator")[0].rpartition(":")
            answers[-1].append((function, "" if file == "??" else file, "0" if number == "?" else number))
            function = None
    assert len(answers) == len(addresses)
    return answers


def compare(program, addresses, peer, skip=lambda address, peer: False, aliases=None):
    def known(frames):
        return [((aliases or {}).get(name, name), *place) for name, *place in frames]
    answers, counts = ask(program, addresses)
    differ = [(hex(a), ours, theirs) for a, ours, theirs in zip(addresses, answers, peer)
              if known(ours) != known(theirs) and not skip(a, theirs)]
    assert not differ, (len(differ), differ[:5])
    return answers, counts


VARIANTS = {"debug": ["-g", "-O0"], "inlined": ["-g", "-O2"], "o3": ["-g", "-O3"], "no-pie": ["-g", "-O2", "-no-pie"],
            "dwarf4": ["-gdwarf-4", "-O2"], "compressed": ["-g", "-O2", "-gz"]}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("language", ["c", "cc"])
def test_functions_inlined_ones_and_lines_are_those_of_addr2line(tmp_path, language, variant):
    program = compile_program(tmp_path, C_PROGRAM if language == "c" else CXX_PROGRAM, language, *VARIANTS[variant])
    addresses = function_addresses(program)
    assert len(addresses) > 100
    # binutils before 2.41 takes the wrong file in some tables of DWARF 5, and gives inlined C++ functions without
    # a linkage name the name of the function around them
    tool = "addr2line" if (language, variant) == ("c", "dwarf4") else "llvm-addr2line"
    if not shutil.which(tool):
        pytest.skip(f"{tool} is not installed")
    peer = addr2line(program, addresses, tool)
    aliases = first_aliases(program) if language == "cc" else {}
    answers, counts = compare(program, addresses, peer, lambda a, theirs: "/" not in theirs[0][1], aliases)
    assert counts["failed"] == counts["without_libdw"] == 0
    if variant != "debug":
        assert max(map(len, answers)) >= 3
    known = [ours for ours, theirs in zip(answers, peer) if "/" in theirs[0][1]]
    assert len(known) > len(addresses) * 0.7


def symbols_of(program, *flags):
    """(start, end, {names}) of functions, by nm."""
    text = subprocess.run(["nm", "-S", *flags, program], capture_output=True, text=True, check=True).stdout
    table = {}
    for line in text.splitlines():
        parts = line.split()
        if len(parts) == 4 and parts[2] in "tTwWi":
            table.setdefault((int(parts[0], 16), int(parts[1], 16)), set()).add(parts[3].split("@")[0])
    return [(start, start + size, names) for (start, size), names in table.items()]


def begins_before(name, program, address, symbols):
    """Whether a name is the place where an unnamed function begins: no function that has a symbol lies between."""
    file, _, place = name.rpartition("+0x")
    return file == pathlib.Path(program).name and int(place, 16) <= address and \
        not any(int(place, 16) < start <= address for start, _, _ in symbols)


def check_against_nm(program, addresses, symbols):
    answers, counts = ask(program, addresses)
    named = 0
    for address, frames in zip(addresses, answers):
        holders = [names for start, end, names in symbols if start <= address < end]
        if not holders:  # labels without a size, entries of linkage tables and places are the only other names
            name = frames[0][0] if frames else "_start"
            assert name in ("_start", "_init", "_fini") or "@plt" in name or begins_before(name, program, address, symbols) \
                or re.match(r"[a-z_]+_tm_clones|__do_global|frame_dummy", name), (hex(address), frames)
            continue
        named += 1
        assert len(frames) == 1 and any(frames[0][0] in names for names in holders), (hex(address), frames, holders)
    return named, answers, counts


ASSEMBLY = """
    .text
    .globl first
    .type first, @function
first:
    nop
    nop

    nop
    ret
    .size first, .-first
    .type second, @function
second:
    nop
    ret
    .size second, .-second
    .globl main
    .type main, @function
main:
    xor %eax, %eax
    ret
    .size main, .-main
    .section .note.GNU-stack,"",@progbits
"""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the assembly is that of x86-64")
def test_a_function_in_assembly_begins_at_one_line(tmp_path):
    """Its DWARF has no line for it. Views would show a function for each of its lines."""
    program = compile_program(tmp_path, ASSEMBLY, "s", "-g")
    starts = {"first": 6, "second": 14, "main": 20}
    for start, end, names in symbols_of(program):
        name, = names
        if name in starts:
            found = {frame for frames in ask(program, range(start, end), fields=4)[0] for frame in frames}
            assert {(frame[0], frame[3]) for frame in found} == {(name, str(starts.pop(name)))}
            assert len({frame[2] for frame in found}) >= 2
    assert not starts


def test_a_program_without_dwarf_has_the_names_of_its_symbols(tmp_path):
    program = compile_program(tmp_path, C_PROGRAM, "c", "-O1")
    addresses = code_addresses(program)
    named, answers, _ = check_against_nm(program, addresses, symbols_of(program))
    assert named > 100
    shown = {frames[0][0] for frames in answers if frames}
    assert {"main", "hidden", "recurse", "compare"} <= shown
    assert not {"alias_of", "weak_alias"} & shown  # one name for an address: the shorter global one


def test_a_static_program(tmp_path):
    program = compile_program(tmp_path, C_PROGRAM, "c", "-O1", "-static")
    named, _, _ = check_against_nm(program, code_addresses(program, 3000), symbols_of(program))
    assert named > 2000


def test_a_stripped_program_has_its_dynamic_symbols_and_no_wrong_ones(tmp_path):
    program = compile_program(tmp_path, C_PROGRAM, "c", "-O1", "-rdynamic", "-s")
    addresses = code_addresses(program)
    named, answers, counts = check_against_nm(program, addresses, symbols_of(program, "-D"))
    assert named > 50
    shown = {frames[0][0] for frames in answers if frames}
    assert "recurse" in shown and "hidden" not in shown
    assert counts["unnamed"] > 0


@pytest.mark.parametrize("way", ["link", "folder", "build_id"])
def test_symbols_and_lines_come_from_the_split_debug_file(tmp_path, way):
    program = compile_program(tmp_path, C_PROGRAM, "c", "-g", "-O2", "-Wl,--build-id")
    addresses = function_addresses(program)
    peer = addr2line(program, addresses)
    build_id = re.search(r"Build ID: ([0-9a-f]+)", subprocess.run(
        ["readelf", "-n", program], capture_output=True, text=True, check=True).stdout).group(1)
    if way == "build_id":
        root = tmp_path / "root"
        debug = root / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    else:
        debug = tmp_path / (".debug" if way == "folder" else ".") / "program.debug"
    debug.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["objcopy", "--only-keep-debug", program, debug], check=True)
    if way == "build_id":  # as /proc/PID/root is: a name that ends with the process's own name of the file
        inside = root / "program"
        shutil.copy(program, inside)
        subprocess.run(["strip", inside], check=True)
        answers, counts = ask("/program", addresses, build_id, str(inside))
    else:
        subprocess.run(["strip", program], check=True)
        subprocess.run(["objcopy", f"--add-gnu-debuglink={debug}", program], check=True)
        answers, counts = ask(program, addresses)
    differ = [(ours, theirs) for ours, theirs in zip(answers, peer) if "/" in theirs[0][1] and ours != theirs]
    assert not differ and counts["failed"] == 0


def test_a_debug_file_of_another_build_is_not_used(tmp_path):
    program = compile_program(tmp_path, C_PROGRAM, "c", "-g", "-O2", "-Wl,--build-id")
    subprocess.run(["objcopy", "--only-keep-debug", program, tmp_path / "program.debug"], check=True)
    subprocess.run(["strip", program], check=True)
    subprocess.run(["objcopy", f"--add-gnu-debuglink={tmp_path}/program.debug", program], check=True)
    other = tmp_path / "other"
    other.mkdir()
    newer = compile_program(other, C_PROGRAM, "c", "-g", "-O3", "-Wl,--build-id")
    subprocess.run(["objcopy", "--only-keep-debug", newer, tmp_path / "program.debug"], check=True)
    answers, _ = ask(program, code_addresses(program))
    assert all(frame[1] == "" for frames in answers for frame in frames)


def test_a_file_that_was_replaced_has_no_names(tmp_path):
    program = compile_program(tmp_path, C_PROGRAM, "c", "-g", "-O2", "-Wl,--build-id")
    answers, counts = ask(program, code_addresses(program)[:50], "00112233445566778899aabbccddeeff00112233")
    assert not any(answers) and counts["changed"] == 1


def test_entries_of_linkage_tables_are_named(tmp_path):
    program = compile_program(tmp_path, C_PROGRAM, "c", "-O1")
    text = subprocess.run(["objdump", "-d", program], capture_output=True, text=True, check=True).stdout
    entries = {int(m.group(1), 16): m.group(2) for m in re.finditer(r"^([0-9a-f]+) <(\S+@plt)>:", text, re.M)}
    assert len(entries) >= 2
    answers, _ = ask(program, list(entries))
    assert {a: f[0][0] for a, f in zip(entries, answers)} == entries


@pytest.mark.parametrize("mangling", ["legacy", "v0"])
def test_rust_names_are_those_of_binutils(tmp_path, mangling):
    program = compile_program(tmp_path, RUST_PROGRAM, "rs", "-Copt-level=2",
                              *(["-Csymbol-mangling-version=v0"] if mangling == "v0" else []))
    text = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    names = [(int(p[0], 16), p[2]) for p in map(str.split, text.splitlines())
             if len(p) == 3 and p[1] in "tT" and re.match("_R|_ZN", p[2]) and "." not in p[2]]
    assert len(names) > 100
    shown = subprocess.run(["c++filt"], input="\n".join(name for _, name in names), capture_output=True, text=True,
                           check=True).stdout.splitlines()
    subprocess.run(["strip", "-g", program], check=True)  # the symbols' names, not DWARF's
    answers, _ = ask(program, [address for address, _ in names])
    peer = {}  # names at an address, without hashes and types of constants
    for (address, _), name in zip(names, shown):
        name = re.sub(r"::h[0-9a-f]{16}$|\[[0-9a-f]{3,16}\]", "", name)
        peer.setdefault(address, set()).add(re.sub(r"(?<=[\da-z']): (?:[iu](?:8|16|32|64|128|size)|bool|char)\b", "", name))
    wrong = [(hex(a), f, peer[a]) for (a, _), f in zip(names, answers) if not f or f[0][0] not in peer[a]]
    assert not wrong, (len(wrong), wrong[:4])


def test_hostile_dwarf_costs_lines_and_nothing_else(tmp_path):
    """Whatever the bytes of the debug sections, every function has a name."""
    program = compile_program(tmp_path, C_PROGRAM, "c", "-g", "-O2")
    good = program.read_bytes()
    addresses = function_addresses(program)[::7]
    sections = subprocess.run(["readelf", "-SW", program], capture_output=True, text=True, check=True).stdout
    places = [(int(m.group(2), 16), int(m.group(3), 16)) for m in
              re.finditer(r"(\.debug_\S+)\s+PROGBITS\s+[0-9a-f]+\s+([0-9a-f]+)\s+([0-9a-f]+)", sections)]
    draw = random.Random(3)
    for _ in range(40):
        bad = bytearray(good)
        for _ in range(draw.randrange(1, 60)):
            offset, size = draw.choice(places)
            bad[offset + draw.randrange(size)] = draw.randrange(256)
        program.write_bytes(bad)
        answers, counts = ask(program, addresses)
        assert counts["unreadable"] == 0
        assert len(answers) > 15 and all(answers)
