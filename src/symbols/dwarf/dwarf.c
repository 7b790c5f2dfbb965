/* SPDX-License-Identifier: Apache-2.0 */
/*
 * symbols/dwarf/dwarf.c - see dwarf.h
 *
 * The child answers through a pipe, each address as it is found:
 *
 *     u32 size of the message, u32 index of the address, u32 frames, then for each
 *     u32 line, u32 first line, u32 length of function, u32 length of file, u32 whether the name
 *     is bare, both texts
 *
 * and says by an index of UINT32_MAX that it came to the end. The place it is at is in shared
 * memory: after a crash the next child goes on behind it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/asan.h"
#include "base/count_of.h"
#include "base/text/buf.h"
#include "base/files/fd_io.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/dwarf/dwarf_walk.h"

#define CRASHES_MOST 8
#define SILENCE_MS 20000 /* that a child may take for one address, or to begin */
#define CPU_SECONDS 120
#define MEMORY_MOST ((rlim_t)8 << 30)
#define MESSAGE_MOST ((uint32_t)1 << 24)
#define TEXT_MOST 65535u
#define THE_END UINT32_MAX

struct head {
    uint32_t size, index, count;
};

struct frame_head {
    uint32_t line, first_line, function_length, file_length, is_bare;
};

/* ------------------------------------------------------------------- the child */

struct child {
    int                 pipe;
    volatile uint32_t  *place;
    struct sonde_buffer message;
};

static void note_place(void *user, uint32_t place)
{
    struct child *child = user;

    *child->place = place;
}

static uint32_t length_of(const char *text)
{
    return (uint32_t)strnlen(text, TEXT_MOST);
}

static bool send_frames(void *user, uint32_t index, const struct snd_dwarf_frame *frames,
                        uint32_t count)
{
    struct child *child = user;
    struct head   head = { 0, index, count };

    snd_buf_clear(&child->message);
    snd_buf_put(&child->message, &head, sizeof head);
    for (uint32_t i = 0; i < count; i++) {
        struct frame_head frame = { frames[i].line, frames[i].first_line,
                                    length_of(frames[i].function), length_of(frames[i].file),
                                    frames[i].is_bare };
        snd_buf_put(&child->message, &frame, sizeof frame);
        snd_buf_put(&child->message, frames[i].function, frame.function_length);
        snd_buf_put(&child->message, frames[i].file, frame.file_length);
    }
    if (child->message.failed || child->message.length > MESSAGE_MOST)
        return false;
    head.size = (uint32_t)child->message.length;
    memcpy(child->message.bytes, &head, sizeof head);
    return snd_write_all(child->pipe, child->message.bytes, child->message.length);
}

static void limit(int what, rlim_t most)
{
    struct rlimit limit = { most, most };

    setrlimit(what, &limit);
}

/* A crash is expected: no core, no words on the terminal, and no handlers of the process it comes from. */
static void prepare_child(void)
{
    static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE,  SIGILL,
                                   SIGTERM, SIGINT, SIGXCPU, SIGCHLD, SIGPIPE };
    sigset_t         none;
    int              null = open("/dev/null", O_RDWR | O_CLOEXEC);

    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (size_t i = 0; i < SND_COUNT_OF(signals); i++)
        signal(signals[i], SIG_DFL);
    signal(SIGINT, SIG_IGN); /* Ctrl-C is for the program that was recorded */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    limit(RLIMIT_CORE, 0);
    limit(RLIMIT_CPU, CPU_SECONDS);
    if (!SND_HAS_ASAN) /* it maps terabytes */
        limit(RLIMIT_DATA, MEMORY_MOST);
    if (null >= 0) {
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
    }
}

struct work {
    struct snd_libdw        dw;
    int                     fd;
    struct snd_dwarf_query *queries;
    uint32_t                count, first;
    volatile uint32_t      *place;
    snd_dwarf_fn           *found;
    void                   *user;
};

static void answer_all(struct work *work, int pipe)
{
    struct child child = { .pipe = pipe, .place = work->place };
    struct head  end = { sizeof end, THE_END, 0 };

    prepare_child();
    if (snd_dwarf_walk(&work->dw, work->fd, work->queries, work->count, work->first, note_place,
                       send_frames, &child))
        snd_write_all(pipe, &end, sizeof end);
    _exit(0);
}

/* ------------------------------------------------------------------ the parent */

enum heard { HEARD_MORE, HEARD_END, HEARD_BAD, HEARD_NOMEM };

/* The child may have been taken over by what it read: its messages are checked like a file. */
static enum heard take_message(struct work *work, const char *bytes, const struct head *head)
{
    struct snd_dwarf_frame frames[SND_DWARF_FRAMES_MOST];
    char                  *texts = malloc(head->size + 2 * (size_t)SND_DWARF_FRAMES_MOST);
    char                  *text = texts;
    const char            *at = bytes + sizeof *head, *end = bytes + head->size;
    enum heard             heard = HEARD_BAD;

    if (!texts)
        return HEARD_NOMEM;
    if (head->count > SND_DWARF_FRAMES_MOST || head->index >= work->count)
        goto done;
    for (uint32_t i = 0; i < head->count; i++) {
        struct frame_head frame;
        if ((size_t)(end - at) < sizeof frame)
            goto done;
        memcpy(&frame, at, sizeof frame);
        at += sizeof frame;
        if (frame.function_length > TEXT_MOST || frame.file_length > TEXT_MOST ||
            (size_t)(end - at) < (size_t)frame.function_length + frame.file_length)
            goto done;
        frames[i] = (struct snd_dwarf_frame){ text, text + frame.function_length + 1, frame.line,
                                              frame.first_line, frame.is_bare != 0 };
        memcpy(text, at, frame.function_length);
        text[frame.function_length] = '\0';
        text += frame.function_length + 1;
        at += frame.function_length;
        memcpy(text, at, frame.file_length);
        text[frame.file_length] = '\0';
        text += frame.file_length + 1;
        at += frame.file_length;
    }
    heard = work->found(work->user, head->index, frames, head->count) ? HEARD_MORE : HEARD_NOMEM;
done:
    free(texts);
    return heard;
}

/* Whole messages at the beginning of the buffer are taken out of it. */
static enum heard take_messages(struct work *work, struct sonde_buffer *buffer)
{
    size_t     at = 0;
    enum heard heard = HEARD_MORE;

    while (heard == HEARD_MORE && buffer->length - at >= sizeof(struct head)) {
        struct head head;
        memcpy(&head, buffer->bytes + at, sizeof head);
        if (head.size < sizeof head || head.size > MESSAGE_MOST)
            heard = HEARD_BAD;
        else if (head.size > buffer->length - at)
            break;
        else if (head.index == THE_END)
            heard = HEARD_END;
        else
            heard = take_message(work, buffer->bytes + at, &head);
        at += heard == HEARD_MORE ? head.size : 0;
    }
    if (at > 0) {
        memmove(buffer->bytes, buffer->bytes + at, buffer->length - at);
        buffer->length -= at;
    }
    return heard;
}

/* Reads until the child is done; HEARD_BAD: it died, was silent too long, or talks nonsense. */
static enum heard listen_to(struct work *work, int pipe)
{
    struct sonde_buffer buffer = { 0 };
    enum heard          heard = HEARD_MORE;
    char               *bytes = malloc(65536);

    while (bytes && heard == HEARD_MORE) {
        struct pollfd wait = { pipe, POLLIN, 0 };
        int           ready = poll(&wait, 1, SILENCE_MS);
        ssize_t       n = ready > 0 ? read(pipe, bytes, 65536) : -1;
        if (n < 0 && ready != 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            heard = HEARD_BAD;
            break;
        }
        snd_buf_put(&buffer, bytes, (size_t)n);
        heard = buffer.failed ? HEARD_NOMEM : take_messages(work, &buffer);
    }
    free(bytes);
    sonde_buffer_release(&buffer);
    return bytes ? heard : HEARD_NOMEM;
}

static enum heard ask_child(struct work *work)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return HEARD_NOMEM;
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        answer_all(work, ends[1]);
    }
    close(ends[1]);
    enum heard heard = pid > 0 ? listen_to(work, ends[0]) : HEARD_NOMEM;
    close(ends[0]);
    if (pid > 0) {
        kill(pid, SIGKILL);
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return heard;
}

static enum snd_dwarf_result ask(struct work *work)
{
    bool failed = false;

    for (int crashes = 0; crashes < CRASHES_MOST; crashes++) {
        *work->place = THE_END;
        enum heard heard = ask_child(work);
        if (heard == HEARD_NOMEM)
            return SND_DWARF_NOMEM;
        if (heard == HEARD_END)
            return failed ? SND_DWARF_FAILED : SND_DWARF_OK;
        failed = true;
        uint32_t place = *work->place;
        if (place >= work->count || place < work->first)
            break; /* it did not come to the first address */
        work->first = place + 1;
    }
    return SND_DWARF_FAILED;
}

enum snd_dwarf_result snd_dwarf_find(int fd, const uint64_t *addresses, uint32_t count,
                                     snd_dwarf_fn *found, void *user)
{
    struct work work = { .fd = fd, .count = count, .found = found, .user = user };

    if (!snd_libdw_open(&work.dw))
        return SND_DWARF_ABSENT;
    void *shared = mmap(NULL, sizeof *work.place, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    work.queries = malloc(((size_t)count + 1) * sizeof *work.queries);
    enum snd_dwarf_result result = SND_DWARF_NOMEM;
    if (shared != MAP_FAILED && work.queries) {
        for (uint32_t i = 0; i < count; i++)
            work.queries[i] = (struct snd_dwarf_query){ addresses[i], i, 0 };
        work.place = shared;
        result = ask(&work);
    }
    if (shared != MAP_FAILED)
        munmap(shared, sizeof *work.place);
    free(work.queries);
    return result;
}
