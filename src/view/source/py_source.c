/* SPDX-License-Identifier: Apache-2.0 */
/*
 * view/source/py_source.c - lines of a file, and which of them are a function's.
 *
 * Where a function ends is decided as inspect.BlockFinder decides it, over the tokens of Python's
 * tokenize, of which only those are told apart that it looks at: the ends of lines, comments,
 * indents, and a few words. A trace may name any file, and the file may have changed: whatever is
 * in it, lines come out or none do.
 */
#include "view/source/py_source.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/count_of.h"
#include "base/text/compare.h"

#define SIZE_LIMIT ((off_t)16 << 20)
#define INDENTS_MAX 100 /* Python's own limit */
#define NESTING_MAX 64  /* strings in replacement fields in strings .. */
#define LOOKED_MAX 4096 /* of a string that does not end: no more is looked at twice */

/* --------------------------------------------------------------------- file */

static bool read_all(int fd, struct snd_pysource *s, size_t size)
{
    s->bytes = malloc(size + 1);
    while (s->bytes && s->length < size) {
        ssize_t n = read(fd, s->bytes + s->length, size - s->length);
        if (n <= 0)
            break;
        s->length += (size_t)n;
    }
    if (s->bytes)
        s->bytes[s->length] = '\0';
    return s->bytes != NULL;
}

/*
 * A trace may have been made by somebody else, to have a file of its reader's put into a page that the reader then
 * sends: a key, a table of passwords. So no file is shown but one that is source code by its own name, which a link
 * to it cannot change, or by its first line.
 */
static const char *const suffixes[] = {
    ".py",  ".pyw", ".pyi", ".pyx", ".pxd", ".pxi", ".ipy",   ".c",   ".cc",  ".cpp",
    ".cxx", ".c++", ".h",   ".hh",  ".hpp", ".hxx", ".h++",   ".inc", ".inl", ".ipp",
    ".tcc", ".tpp", ".cu",  ".cuh", ".hip", ".s",   ".S",     ".asm", ".rs",  ".go",
    ".zig", ".f",   ".F",   ".f90", ".F90", ".jl",  ".swift",
};

static bool has_source_name(int fd)
{
    char link[40], path[PATH_MAX];

    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path);
    for (size_t i = 0; length > 0 && i < SND_COUNT_OF(suffixes); i++)
        if (snd_ends_with_at(path, (size_t)length, suffixes[i]))
            return true;
    return false;
}

/* "#!/usr/bin/env python3": a program without a suffix. */
static bool is_script(const struct snd_pysource *s)
{
    const char *end = memchr(s->bytes, '\n', s->length);
    size_t      length = end ? (size_t)(end - s->bytes) : s->length;

    return length > 2 && memcmp(s->bytes, "#!", 2) == 0 &&
           memmem(s->bytes, length, "python", strlen("python"));
}

static bool is_source(int fd, const struct snd_pysource *s)
{
    return (has_source_name(fd) || is_script(s)) && !memchr(s->bytes, '\0', s->length);
}

/* Lines end in \n, \r\n or \r, as Python reads them: all become \n. */
static void unify_ends(struct snd_pysource *s)
{
    size_t to = 0, from = 0;

    if (s->length >= 3 && memcmp(s->bytes, "\xef\xbb\xbf", 3) == 0)
        from = 3;
    for (; from < s->length; from++) {
        char c = s->bytes[from];
        if (c == '\r') {
            c = '\n';
            from += from + 1 < s->length && s->bytes[from + 1] == '\n';
        }
        s->bytes[to++] = c;
    }
    s->length = to;
}

static bool find_lines(struct snd_pysource *s)
{
    size_t count = 0;

    for (size_t i = 0; i < s->length; i++)
        count += s->bytes[i] == '\n';
    s->starts = calloc(count + 3, sizeof *s->starts);
    if (!s->starts)
        return false;
    for (size_t i = 0; i < s->length; i++) {
        if (i == 0 || s->bytes[i - 1] == '\n')
            s->starts[s->line_count++] = i;
    }
    s->starts[s->line_count] = s->length;
    return true;
}

static bool read_file(struct snd_pysource *s, const char *path)
{
    struct stat st;

    /* Not blocking: a trace may name a pipe. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return false;
    bool good = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size <= SIZE_LIMIT &&
                read_all(fd, s, (size_t)st.st_size) && is_source(fd, s);
    close(fd);
    if (good) {
        s->size = (uint64_t)st.st_size;
        s->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    }
    return good;
}

static bool copy_text(struct snd_pysource *s, const struct sonde_line_function *f)
{
    s->bytes = malloc(f->source.length + 1);
    if (!s->bytes)
        return false;
    memcpy(s->bytes, f->source.bytes, f->source.length + 1);
    s->length = f->source.length;
    s->size = f->stat_size; /* it is what ran */
    s->mtime_ns = f->stat_mtime_ns;
    return true;
}

bool snd_pysource_open(struct snd_pysource *s, const struct sonde_line_function *f)
{
    memset(s, 0, sizeof *s);
    bool good = f->source.length > 0 ? copy_text(s, f) : read_file(s, f->file.bytes);
    if (good) {
        unify_ends(s);
        good = find_lines(s);
    }
    if (!good)
        snd_pysource_close(s);
    return good;
}

bool snd_pysource_turn(struct snd_pysource *s, const struct sonde_line_function *f)
{
    bool is_file = f->source.length == 0;

    if (is_file && s->bytes && s->file.length > 0 && s->file.length == f->file.length &&
        memcmp(s->file.bytes, f->file.bytes, f->file.length) == 0)
        return true;
    snd_pysource_close(s);
    if (!snd_pysource_open(s, f))
        return false;
    if (is_file)
        s->file = f->file;
    return true;
}

void snd_pysource_close(struct snd_pysource *s)
{
    free(s->bytes);
    free(s->starts);
    memset(s, 0, sizeof *s);
}

bool snd_pysource_fits(const struct snd_pysource *s, const struct sonde_line_function *f)
{
    return !f->has_stat || (s->size == f->stat_size && s->mtime_ns == f->stat_mtime_ns);
}

struct sonde_text snd_pysource_line(const struct snd_pysource *s, size_t number)
{
    if (number == 0 || number > s->line_count)
        return (struct sonde_text){ "", 0 };
    size_t start = s->starts[number - 1], end = s->starts[number];
    if (end > start && s->bytes[end - 1] == '\n')
        end--;
    return (struct sonde_text){ s->bytes + start, end - start };
}

/* ------------------------------------------------------------- BlockFinder */

enum token { TOKEN_OTHER, TOKEN_COMMENT, TOKEN_NL, TOKEN_NEWLINE, TOKEN_INDENT, TOKEN_DEDENT };

struct finder {
    int    indent;
    bool   is_lambda, started, passing, in_decorator;
    size_t last;
    long   body_column; /* -1: not yet known */
};

static bool is_word(const char *text, size_t length, const char *word)
{
    return snd_equals_at(text, length, word);
}

static void look_for_start(struct finder *f, const char *text, size_t length)
{
    if (is_word(text, length, "@"))
        f->in_decorator = true;
    f->is_lambda = is_word(text, length, "lambda");
    f->started = f->is_lambda || is_word(text, length, "def") || is_word(text, length, "class");
    f->passing = true;
}

/* True when the block has ended before this token. */
static bool eat(struct finder *f, enum token type, const char *text, size_t length, size_t row,
                size_t column)
{
    if (!f->started && !f->in_decorator) {
        look_for_start(f, text, length);
        return false;
    }
    if (type == TOKEN_NEWLINE) {
        f->passing = false;
        f->last = row;
        f->in_decorator = false;
        return f->is_lambda;
    }
    if (f->passing)
        return false;
    switch (type) {
    case TOKEN_INDENT:
        if (f->body_column < 0 && f->started)
            f->body_column = (long)column;
        f->indent++;
        f->passing = true;
        return false;
    case TOKEN_DEDENT:
        return --f->indent <= 0;
    case TOKEN_COMMENT:
        if (f->body_column >= 0 && (long)column >= f->body_column)
            f->last = row;
        return false;
    case TOKEN_NL:
        return false;
    default:
        return f->indent == 0;
    }
}

/* ----------------------------------------------------------------- strings */

struct reader {
    const char *at, *end, *line; /* line: where the row begins */
    size_t      row;
    size_t      indents[INDENTS_MAX];
    unsigned    depth;    /* of indents */
    long        brackets; /* open; below 0: the block begins inside some, as Python counts */
};

static const char *skip_string(const char *at, const char *end, bool is_format, unsigned nesting);

/* A replacement field of an f-string in `quote`, from after its brace to after the closing one. */
static const char *skip_field(const char *at, const char *end, char quote, unsigned nesting)
{
    unsigned open = 0;
    bool     in_spec = false;

    while (at < end) {
        char c = *at;
        if (c == '}' && open == 0)
            return at + 1;
        if (in_spec && c == '{' && nesting < NESTING_MAX) {
            at = skip_field(at + 1, end, quote, nesting + 1);
            continue;
        }
        if (!in_spec && (c == '"' || c == '\'') && nesting < NESTING_MAX) {
            at = skip_string(at, end, at[-1] == 'f' || at[-1] == 'F', nesting + 1);
            continue;
        }
        if (in_spec && (c == quote || c == '\n'))
            return at; /* the string ends: it was no field after all */
        open += !in_spec && (c == '(' || c == '[' || c == '{');
        open -= !in_spec && open > 0 && (c == ')' || c == ']' || c == '}');
        in_spec |= c == ':' && open == 0;
        at++;
    }
    return at;
}

/*
 * From its opening quote to after its closing one. One that does not end is a step of one; inside
 * another, or if it is long, it is as long as it was looked at, or looking would begin again at
 * each quote in it.
 */
static const char *skip_string(const char *at, const char *end, bool is_format, unsigned nesting)
{
    char   quote = *at;
    bool   triple = end - at >= 3 && at[1] == quote && at[2] == quote;
    size_t width = triple ? 3 : 1;

    for (const char *c = at + width; c < end;) {
        if (*c == '\\')
            c += 2;
        else if (is_format && *c == '{' && c + 1 < end && c[1] == '{')
            c += 2;
        else if (is_format && *c == '{')
            c = skip_field(c + 1, end, quote, nesting);
        else if (*c == '\n' && !triple)
            return nesting > 0 || c - at > LOOKED_MAX ? c : at + 1;
        else if (*c == quote && (!triple || (end - c >= 3 && c[1] == quote && c[2] == quote)))
            return c + width;
        else
            c++;
    }
    return triple || nesting > 0 || end - at > LOOKED_MAX ? end : at + 1;
}

/* ------------------------------------------------------------------ tokens */

static void move_to(struct reader *r, const char *to)
{
    if (to > r->end)
        to = r->end;
    for (const char *c = r->at; c < to; c++) {
        if (*c == '\n') {
            r->row++;
            r->line = c + 1;
        }
    }
    r->at = to;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           (unsigned char)c >= 0x80;
}

static bool is_prefix(const char *text, size_t length)
{
    return length > 0 && length <= 2 && strspn(text, "rRbBuUfFtT") >= length;
}

/* Indents and dedents of the line that begins here. True: the block has ended. */
static bool eat_indents(struct reader *r, struct finder *f, size_t width)
{
    size_t column = (size_t)(r->at - r->line);

    if (width > r->indents[r->depth]) {
        if (r->depth + 1 >= INDENTS_MAX)
            return true;
        r->indents[++r->depth] = width;
        return eat(f, TOKEN_INDENT, r->line, column, r->row, column);
    }
    while (width < r->indents[r->depth]) {
        r->depth--;
        if (width > r->indents[r->depth])
            return true; /* IndentationError */
        if (eat(f, TOKEN_DEDENT, "", 0, r->row, column))
            return true;
    }
    return false;
}

static bool eat_comment(struct reader *r, struct finder *f)
{
    const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
    bool        ended = eat(f, TOKEN_COMMENT, r->at, 1, r->row, (size_t)(r->at - r->line));

    move_to(r, stop ? stop : r->end);
    return ended;
}

/* At the beginning of a logical line. True: the block has ended. */
static bool begin_line(struct reader *r, struct finder *f)
{
    size_t width = 0;

    for (; r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\f'); r->at++)
        width = *r->at == ' ' ? width + 1 : *r->at == '\t' ? (width / 8 + 1) * 8 : 0;
    if (r->at == r->end)
        return false;
    if (*r->at == '#' && eat_comment(r, f))
        return true;
    if (r->at < r->end && *r->at == '\n') {
        bool ended = eat(f, TOKEN_NL, "\n", 1, r->row, (size_t)(r->at - r->line));
        move_to(r, r->at + 1);
        return ended;
    }
    return r->at < r->end && eat_indents(r, f, width);
}

static bool eat_word(struct reader *r, struct finder *f)
{
    const char *start = r->at, *stop = r->at;

    while (stop < r->end && is_name(*stop))
        stop++;
    size_t length = (size_t)(stop - start);
    if (stop < r->end && (*stop == '"' || *stop == '\'') && is_prefix(start, length)) {
        bool is_format = memchr(start, 'f', length) || memchr(start, 'F', length) ||
                         memchr(start, 't', length) || memchr(start, 'T', length);
        stop = skip_string(stop, r->end, is_format, 0);
    }
    bool ended = eat(f, TOKEN_OTHER, start, length, r->row, 0);
    move_to(r, stop);
    return ended;
}

static bool eat_other(struct reader *r, struct finder *f)
{
    char        c = *r->at;
    const char *stop = c == '"' || c == '\'' ? skip_string(r->at, r->end, false, 0) : r->at + 1;

    r->brackets += c == '(' || c == '[' || c == '{';
    r->brackets -= c == ')' || c == ']' || c == '}';
    bool ended = eat(f, TOKEN_OTHER, r->at, 1, r->row, 0);
    move_to(r, stop);
    return ended;
}

/* One token within a line. True: the block has ended. */
static bool eat_token(struct reader *r, struct finder *f, bool *line_ended)
{
    char c = *r->at;

    *line_ended = false;
    if (c == ' ' || c == '\t' || c == '\f') {
        r->at++;
        return false;
    }
    if (c == '\\' && r->at + 1 < r->end && r->at[1] == '\n') {
        move_to(r, r->at + 2);
        return false;
    }
    if (c == '#')
        return eat_comment(r, f);
    if (c == '\n') {
        *line_ended = r->brackets == 0;
        bool ended = eat(f, r->brackets > 0 ? TOKEN_NL : TOKEN_NEWLINE, "\n", 1, r->row, 0);
        move_to(r, r->at + 1);
        return ended;
    }
    return is_name(c) ? eat_word(r, f) : eat_other(r, f);
}

size_t snd_pysource_block(const struct snd_pysource *s, size_t first)
{
    struct finder f = { .last = 1, .body_column = -1 };
    struct reader r = { .row = 1 };

    if (first == 0 || first > s->line_count)
        return 0;
    r.at = r.line = s->bytes + s->starts[first - 1];
    r.end = s->bytes + s->length;
    bool ended = false, at_line = true;
    while (!ended && r.at < r.end) {
        if (at_line) {
            size_t row = r.row;
            ended = begin_line(&r, &f);
            at_line = r.row != row; /* it was blank, or a comment */
        } else {
            ended = eat_token(&r, &f, &at_line);
        }
    }
    if (!ended && !at_line && f.started)
        eat(&f, TOKEN_NEWLINE, "", 0, r.row, 0); /* the file ends without one */
    size_t left = s->line_count - first + 1;
    return f.last < left ? f.last : left;
}
