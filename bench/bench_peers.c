/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_peers.c - the same range by sonde, LTTng-UST and libsysprof-capture, in turn.
 *
 *     bench_peers TRACE [ROUNDS [RANGES_PER_ROUND]]
 *
 * LTTng: a tracepoint at begin and one at end; the session is the caller's (bench/run).
 * sysprof: two readings of its clock and one mark with time and duration, which is how its
 * users write a range. Its capturing end is played here: a thread hands out the ring buffer
 * as sysprof's own process would, and the ring is emptied between rounds, outside the time.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ranges.h"

#if HAVE_LTTNG
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "lttng_points.h"
#endif
#if HAVE_SYSPROF
#include <sysprof-capture.h>
#endif

#if HAVE_LTTNG
static struct cost time_lttng(uint64_t turns)
{
    struct cost begin = begin_cost();

    for (uint64_t i = 0; i < turns; i++) {
        lttng_ust_tracepoint(sonde_bench, begin, 1);
        keep_apart();
        lttng_ust_tracepoint(sonde_bench, end);
        keep_apart();
    }
    return end_cost(begin, turns);
}
#endif

#if HAVE_SYSPROF
/* In libsysprof-capture-4.a, but in no header that is installed. */
struct MappedRingBuffer;
struct MappedRingBuffer *mapped_ring_buffer_new_reader(size_t size);
int                      mapped_ring_buffer_get_fd(struct MappedRingBuffer *ring);
bool                     mapped_ring_buffer_drain(struct MappedRingBuffer *ring,
                                                  bool (*take)(const void *, size_t *, void *), void *user);

#define RING_BYTES ((size_t)32 << 20)
#define REQUEST_BYTES 10 /* "CreatRing" and its NUL */

static struct MappedRingBuffer *ring;

static void send_descriptor(int socket, int descriptor)
{
    union {
        char           bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    char          byte = 0;
    struct iovec  vector = { &byte, 1 };
    struct msghdr message = { .msg_iov = &vector,
                              .msg_iovlen = 1,
                              .msg_control = control.bytes,
                              .msg_controllen = sizeof control.bytes };

    memset(&control, 0, sizeof control);
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &descriptor, sizeof descriptor);
    (void)sendmsg(socket, &message, 0);
}

static void *serve_ring(void *user)
{
    int  socket = *(int *)user;
    char request[REQUEST_BYTES];

    if (recv(socket, request, sizeof request, MSG_WAITALL) == sizeof request)
        send_descriptor(socket, mapped_ring_buffer_get_fd(ring));
    return NULL;
}

static bool take_frame(const void *data, size_t *length, void *user)
{
    const SysprofCaptureFrame *frame = data;

    if (frame->len == 0 || frame->len > *length)
        return false;
    *length = frame->len;
    *(uint64_t *)user += frame->type == SYSPROF_CAPTURE_FRAME_MARK;
    return true;
}

static struct cost time_sysprof(uint64_t turns)
{
    struct cost begin = begin_cost();

    for (uint64_t i = 0; i < turns; i++) {
        int64_t start = SYSPROF_CAPTURE_CURRENT_TIME;
        keep_apart();
        sysprof_collector_mark(start, SYSPROF_CAPTURE_CURRENT_TIME - start, "bench", "range", NULL);
        keep_apart();
    }
    return end_cost(begin, turns);
}

static void start_sysprof(void)
{
    static int sockets[2];
    char       text[16];
    pthread_t  server;

    ring = mapped_ring_buffer_new_reader(RING_BYTES);
    if (!ring || socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0)
        exit(1);
    snprintf(text, sizeof text, "%d", sockets[1]);
    setenv("SYSPROF_CONTROL_FD", text, 1);
    if (pthread_create(&server, NULL, serve_ring, &sockets[0]) != 0)
        exit(1);
    sysprof_collector_init();
    sysprof_collector_mark(SYSPROF_CAPTURE_CURRENT_TIME, 0, "bench", "first", NULL);
    pthread_join(server, NULL);
}
#endif

int main(int argc, char **argv)
{
    int usage = print_usage(argc, argv, "bench_peers TRACE [ROUNDS [RANGES_PER_ROUND]]");
    if (usage >= 0)
        return usage;
    uint64_t rounds = argument(argc, argv, 2, 100), ranges = argument(argc, argv, 3, 20000);

    struct sonde_options options = SONDE_OPTIONS_INIT;
    struct sonde_error   err;
    options.path = argv[1];
    if (sonde_start(&options, &err) != SONDE_OK) {
        fprintf(stderr, "bench_peers: %s\n", err.message);
        return 1;
    }
    printf("= lttng %d\n= sysprof %d\n", HAVE_LTTNG, HAVE_SYSPROF);
#if HAVE_SYSPROF
    uint64_t taken = 0;
    start_sysprof();
#endif
    for (uint64_t r = 0; r < rounds; r++) {
        print_round("two_reads", 1, r, time_two_reads(ranges));
        print_round("range", 1, r, time_ranges(ranges));
#if HAVE_LTTNG
        print_round("lttng", 1, r, time_lttng(ranges));
#endif
#if HAVE_SYSPROF
        print_round("sysprof", 1, r, time_sysprof(ranges));
        mapped_ring_buffer_drain(ring, take_frame, &taken);
#endif
    }
#if HAVE_SYSPROF
    /* Fewer than were made: the ring was full, and its figure would be too good. */
    printf("= sysprof_lost %" PRId64 "\n", (int64_t)(rounds * ranges + 1 - taken));
#endif
    return sonde_stop(&err) == SONDE_OK ? 0 : 1;
}
