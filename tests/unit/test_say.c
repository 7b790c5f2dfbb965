/* SPDX-License-Identifier: Apache-2.0 */
/* record/say.c: what the recorder has to say goes to standard error, and into nobody's file. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/say.h"

static int open_file(char path[32], int flags)
{
    strcpy(path, "/tmp/sonde-say-XXXXXX");
    int fd = mkstemp(path);
    if (flags != 0) {
        close(fd);
        fd = open(path, O_RDWR | flags);
    }
    assert_true(fd >= 0);
    return fd;
}

/* What is written to `to` while it is standard error; `from`: where it can be read. */
static size_t say_to(int to, int from, char *text, size_t size, const char *message)
{
    int kept = dup(STDERR_FILENO);

    dup2(to, STDERR_FILENO);
    errno = EXDEV;
    snd_say("%s", message);
    int after = errno;
    dup2(kept, STDERR_FILENO);
    close(kept);
    assert_int_equal(after, EXDEV); /* a mark leaves errno alone */
    ssize_t got = from == to ? pread(from, text, size - 1, 0) : read(from, text, size - 1);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

static void messages_reach_no_other_file(void **state)
{
    char path[4][32], text[2048];
    int  first = open_file(path[0], 0), other = open_file(path[1], 0),
        log = open_file(path[2], O_APPEND);
    int ends[2], kept = dup(STDERR_FILENO);

    (void)state;
    dup2(first, STDERR_FILENO);
    snd_say_init(); /* as when the library was loaded */
    dup2(kept, STDERR_FILENO);
    say_to(first, first, text, sizeof text, "it is what it was");
    assert_string_equal(text, "sonde: it is what it was\n");
    assert_int_equal(say_to(other, other, text, sizeof text, "a program's own file"), 0);
    say_to(log, log, text, sizeof text, "a log");
    assert_string_equal(text, "sonde: a log\n");
    assert_int_equal(pipe2(ends, O_NONBLOCK), 0);
    say_to(ends[1], ends[0], text, sizeof text, "a pipe");
    assert_string_equal(text, "sonde: a pipe\n");
    close(STDERR_FILENO);
    snd_say("to nobody"); /* which number the program's next file has, it stays empty */
    dup2(kept, STDERR_FILENO);
    for (int i = 0; i < 3; i++)
        unlink(path[i]);
    close(kept);
}

/* A line is a line, however long it would be. */
static void long_messages_are_cut(void **state)
{
    char path[32], text[4096], message[3000];
    int  log = open_file(path, O_APPEND);

    (void)state;
    memset(message, 'x', sizeof message);
    message[sizeof message - 1] = '\0';
    size_t length = say_to(log, log, text, sizeof text, message);
    assert_int_equal(length, 1023);
    assert_memory_equal(text, "sonde: xxx", 10);
    assert_int_equal(text[length - 1], '\n');
    assert_int_equal(text[length - 2], 'x');
    assert_null(memchr(text, '\0', length));
    message[1015] = '\0'; /* the longest that is whole */
    assert_int_equal(ftruncate(log, 0), 0);
    assert_int_equal(say_to(log, log, text, sizeof text, message), 7 + 1015 + 1);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_reach_no_other_file),
        cmocka_unit_test(long_messages_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
