# SPDX-License-Identifier: Apache-2.0
"""Where a C file can be changed, and how: by its text, a few characters at a time.

Left alone are comments, strings, preprocessor lines, assertions, the sizes of arrays, what frees or locks (the tests that see
those are the sanitizers'), and what happens when memory is out (tests/unit/test_nomem.c fails each allocation in turn).
Nor is `<` made `<=` where the lesser or greater of two is taken, or how much one is above the other: it is the same.
"""
import collections
import re

# `start`, `end`: the characters of the file that `text` replaces; `kind`: which operator.
Mutant = collections.namedtuple("Mutant", "file line start end text kind")

BLANKED = re.compile(r"""
    /\*.*?\*/                              # comments
  | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
  | ^[ \t]*\#(?:\\\n|[^\n])*               # preprocessor lines
  | \b(?:static_assert|_Static_assert|assert)\s*\([^;]*;
""", re.S | re.M | re.X)

NO_MEMORY = re.compile(r"NOMEM|no_memory|snd_grow|pages_grow|alloc\(|strdup|failed|give_up|assembly_stop|make_room|\bgood\b|out of memory|_fail\(|snd_texts_add|snd_map_put|snd_arena_|\b(?:capacity|room) \?")
NOT_SEEN = re.compile(r"(?:\w*free|\w*release\w*|\w*_close|\w*lock|close|munmap|fclose|madvise|memset)\(")

COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}


def blank(text):
    """The same text with spaces where nothing is to be changed: every place keeps its number."""
    return BLANKED.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)


def bodies(code):
    """The functions' bodies: from a brace in the first column to the next one that closes there."""
    for found in re.finditer(r"^\{$.*?^\}", code, re.M | re.S):
        yield found.start(), found.end()


def tables(code):
    """The initial values of what stands outside functions."""
    for found in re.finditer(r"^[^\s{};#][^\n{};#]*= \{$.*?^\};|^[^\s{};#][^\n{};#()]*= [^\n{}]*;", code, re.M | re.S):
        yield found.start(), found.end()


def closing(code, at):
    """The parenthesis that closes the one at `at`."""
    depth = 0
    for place in range(at, len(code)):
        depth += (code[place] == "(") - (code[place] == ")")
        if depth == 0:
            return place
    return None


def statement(code, at):
    """The statement around a place, with the condition that leads to it; if that is `if (!x)`, with what x comes from."""
    first = max(code.rfind(mark, 0, at) for mark in ";{}")
    if first > 0 and re.match(r"\s*if \(!\w+(->\w+)*\)", code[first + 1:]):
        first = max(code.rfind(mark, 0, first) for mark in ";{}")
    last = min(place for place in [code.find(";", at), code.find("{", at), len(code)] if place >= 0)
    return code[first + 1:last + 1]


def after_condition(code, at):
    """The head of the block that a place is in and what is before it there, if it is a short one: `if (...) {`."""
    first = code.rfind("{", 0, at)
    if first < 1 or code[first - 1] == "\n" or code.count("}", first, at) or at - first > 300:
        return ""
    return statement(code, first - 1) + code[first:at]


def heads_freeing(code, at):
    """Whether a place is in the head of a loop of one line that only frees: `for (..)` and then `free(x);`."""
    line = code.rfind("\n", 0, at) + 1
    lines = code[line:line + 400].split("\n")
    return lines[0].lstrip().startswith("for (") and len(lines) > 1 and NOT_SEEN.match(lines[1].lstrip()) is not None


CAST = r"\((?:const )?(?:struct )?\w+(?: \*)?\)(?=[\w(*])"


def operand(code, at, step):
    """What stands beside an operator, to the end of the expression around it: `at` is where it begins; and where it ends."""
    first, depth = at, 0
    while 0 <= at < len(code):
        depth += (code[at] in "([") - (code[at] in ")]")
        if depth * step < 0 or depth == 0 and (code[at] in ";{},?:" or code[at:at + 2] in ("&&", "||") or code[at - 1:at + 1] in ("&&", "||")
                                               or code[at - 1:at + 2] == " = "):
            break
        at += step
    text = code[first:at] if step > 0 else code[at + 1:first + 1]
    return " ".join(re.sub(r"^\s*return\b", "", text).split()), at


def picks(code, start, end):
    """Whether a comparison takes the lesser or greater of its two, or the difference if there is one: as good where they are equal."""
    (left, _), (right, at) = operand(code, start - 1, -1), operand(code, end, 1)
    if code[at:at + 1] == "?":
        one, colon = operand(code, at + 1, 1)
        if code[colon:colon + 1] != ":":
            return False
        other, _ = operand(code, colon + 1, 1)
        differences = [pattern % pair for pattern in ("%s - %s", "snd_sub(%s, %s)") for pair in ((left, right), (right, left))]
        return {re.sub(CAST, "", one), re.sub(CAST, "", other)} == {re.sub(CAST, "", left), re.sub(CAST, "", right)} or \
            (other == "0" and one in differences)
    taken = re.match(r"\)\s+([^;{}=]+) = ([^;{}=]+);(?!\s*else\b)", code[at:at + 200])
    return taken is not None and {" ".join(taken.group(1).split()), " ".join(taken.group(2).split())} == {left, right}


def found(code, pattern, text, kind, group=0):
    for match in re.finditer(pattern, code, re.M):
        new = text(match) if callable(text) else text
        if new is not None:
            yield match.start(group), match.end(group), new, kind


def negated_conditions(code):
    for match in re.finditer(r"\b(?:if|while) \(", code):
        last = closing(code, match.end() - 1)
        if last:
            yield match.end(), last, None, "condition negated"


def next_number(match):
    digits = match.group(1)
    value = int(digits, 0) if not (digits.startswith("0") and digits.isdigit() and len(digits) > 1) else None
    if value is None or value > 1 << 40:
        return None
    return f"{value - 1 if value == 1 else value + 1}{match.group(2)}"


ASSIGNMENT = r"^ +(\*?[A-Za-z_][\w.>\[\]*+-]* (?:[-+|&^]|<<|>>)?= [^;{}]*;)"
CALL = r"^ +([a-z_]\w*\([^;{}]*\);)"
# Not of a negative number: -1 is "none" in most tables, and -2 as well.
NUMBER = r"(?<![\w.\[\"-])(\d+|0x[0-9a-fA-F]+)(u?l?l?)\b(?![.\w])"


def in_bodies(code):
    yield from negated_conditions(code)
    yield from found(code, r"&&|\|\|", lambda m: "||" if m.group() == "&&" else "&&", "&& and || swapped")
    yield from found(code, r" (<=?|>=?|==|!=) ", lambda m: None if m.group(1)[0] in "<>" and picks(code, *m.span(1)) else COMPARED[m.group(1)],
                     "comparison", 1)
    yield from found(code, r" ([-+]) ", lambda m: "-" if m.group(1) == "+" else "+", "+ and - swapped", 1)
    yield from found(code, r" ([-+])= ", lambda m: "-" if m.group(1) == "+" else "+", "+= and -= swapped", 1)
    yield from found(code, NUMBER, next_number, "constant")
    yield from found(code, r"\b(true|false)\b", lambda m: "false" if m.group() == "true" else "true", "true and false swapped")
    yield from found(code, ASSIGNMENT, ";", "assignment dropped", 1)
    yield from found(code, CALL, lambda m: None if NOT_SEEN.match(m.group(1)) else ";", "call dropped", 1)
    yield from found(code, r"\breturn ([^;]*[^;\d ][^;]*);", lambda m: None if re.search(r"NULL|true|false|{", m.group(1)) else "0", "returns 0", 1)


def in_tables(code):
    yield from found(code, NUMBER, next_number, "constant of a table")
    yield from found(code, r"\b(true|false)\b", lambda m: "false" if m.group() == "true" else "true", "true and false of a table")


def is_array_size(code, start, end):
    return code[start - 1:start] == "[" and re.match(r"\][^;=]*[;=]", code[end:end + 40]) is not None


def mutants_of(file, text):
    """All changes of one file that this knows."""
    code = blank(text)
    for areas, operators in ((bodies, in_bodies), (tables, in_tables)):
        for first, last in areas(code):
            for start, end, new, kind in operators(code[first:last]):
                start, end = start + first, end + first
                if is_array_size(code, start, end) or heads_freeing(code, start) or NO_MEMORY.search(statement(code, start)) or \
                        NO_MEMORY.search(after_condition(code, start)):
                    continue
                if new is None:  # negated: with its strings and characters
                    new = "!(" + text[start:end] + ")"
                yield Mutant(file, text.count("\n", 0, start) + 1, start, end, new, kind)


def applied(text, mutant):
    """The file with the change; later lines keep their numbers."""
    lost = text.count("\n", mutant.start, mutant.end) - mutant.text.count("\n")
    return text[:mutant.start] + mutant.text + "\n" * lost + text[mutant.end:]


def choose(mutants, count, random):
    """`count` of them: each operator as likely as any other, each place of an operator as well."""
    kinds = collections.defaultdict(list)
    for mutant in mutants:
        kinds[mutant.kind].append(mutant)
    for places in kinds.values():
        random.shuffle(places)
    chosen = []
    while len(chosen) < count and kinds:
        kind = random.choice(sorted(kinds))
        chosen.append(kinds[kind].pop())
        if not kinds[kind]:
            del kinds[kind]
    return chosen
