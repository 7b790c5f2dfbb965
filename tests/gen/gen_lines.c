/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gen/gen_lines.c - writes a trace of what its standard input lists, for tests that make traces from
 * other tools' files.
 *
 *     gen_lines OUT PID < LINES
 *
 *     thread TID NS NAME        a thread; they count from 1
 *     meta KEY<tab>VALUE        metadata
 *     string TEXT               a name; they count from 1, those of threads and metadata included
 *     record TYPE ID HEX        a record of the tables, as its bytes
 *     event THREAD NS HEX       an event: HEX has its words; NS is added to the first one's time
 *
 * Numbers are decimal, HEX is bytes in the order of the file. One tick of the clock is a nanosecond.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "format/fields.h"
#include "synth.h"

#define BYTES_MAX 65536

static void refuse(const char *line)
{
    fprintf(stderr, "gen_lines: cannot read: %.200s\n", line);
    exit(1);
}

/* The number at `*at`, which is moved past it and the space after it. */
static uint64_t take_number(char **at)
{
    char    *end;
    uint64_t number = strtoull(*at, &end, 10);

    if (end == *at)
        refuse(*at);
    *at = end + (*end == ' ');
    return number;
}

static size_t take_bytes(const char *hex, uint8_t *bytes)
{
    size_t count = strlen(hex) / 2;

    if (count > BYTES_MAX)
        refuse(hex);
    for (size_t i = 0; i < count; i++) {
        char digits[3] = { hex[2 * i], hex[2 * i + 1], 0 }, *end;
        bytes[i] = (uint8_t)strtoul(digits, &end, 16);
        if (*end)
            refuse(hex);
    }
    return count;
}

static void add_thread(struct synth *s, char *at)
{
    uint64_t tid = take_number(&at), ns = take_number(&at);

    synth_thread_of(s, at, (uint32_t)tid, ns);
}

static void add_meta(struct synth *s, char *at)
{
    char *tab = strchr(at, '\t');

    if (!tab)
        refuse(at);
    *tab = 0;
    synth_meta(s, at, tab + 1);
}

static void add_string(struct synth *s, char *at)
{
    synth_string(s, at);
}

static void add_record(struct synth *s, char *at)
{
    static uint8_t bytes[BYTES_MAX];
    uint64_t       type = take_number(&at), id = take_number(&at);

    synth_record(s, (uint8_t)type, (uint32_t)id, bytes, take_bytes(at, bytes));
}

static void add_event(struct synth *s, char *at)
{
    static uint8_t bytes[BYTES_MAX];
    uint64_t       words[8] = { 0 }, thread = take_number(&at), ns = take_number(&at);
    size_t         size = take_bytes(at, bytes);

    if (size == 0 || size > sizeof words || size % 8 != 0)
        refuse(at);
    memcpy(words, bytes, size);
    synth_event(s, (uint32_t)thread, ns, words, size / 8);
}

static const struct {
    const char *word;
    void (*add)(struct synth *s, char *rest);
} verbs[] = {
    { "thread ", add_thread }, { "meta ", add_meta },   { "string ", add_string },
    { "record ", add_record }, { "event ", add_event },
};

static void add_line(struct synth *s, char *line)
{
    for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++) {
        size_t length = strlen(verbs[i].word);
        if (strncmp(line, verbs[i].word, length) == 0) {
            verbs[i].add(s, line + length);
            return;
        }
    }
    refuse(line);
}

int main(int argc, char **argv)
{
    char   *line = NULL;
    size_t  room = 0;
    ssize_t length;

    if (argc != 3) {
        fprintf(stderr, "usage: gen_lines OUT PID < LINES\n");
        return 2;
    }
    const struct synth_options options = { .pid = (uint32_t)strtoul(argv[2], NULL, 10) };
    struct synth              *s = synth_new(argv[1], &options);
    while ((length = getline(&line, &room, stdin)) > 0) {
        if (line[length - 1] == '\n')
            line[length - 1] = 0;
        add_line(s, line);
    }
    free(line);
    synth_close(s, true);
    return 0;
}
