/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often the kernel is asked for a stack, of a thread that is made up in this process: a block that stands
 * for the thread's state, frames in pages of their own, and the interpreter's lock.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "readable.h"
#include "pystack/interpreter/frames.h"

#define PAGES 20

static unsigned calls;
static size_t   asked;          /* bytes, in the last call */
static void (*meanwhile)(void); /* what the thread does after each call */

static void (*between)(unsigned piece); /* and after each piece of one */

static void note_call(const struct iovec *pieces, unsigned long count)
{
    calls++;
    asked = 0;
    for (unsigned long i = 0; i < count; i++)
        asked += pieces[i].iov_len;
    if (meanwhile)
        meanwhile();
}

/* Each of their pieces into as many of ours as it fills. */
static ssize_t read_by_piece(const struct iovec *local, const struct iovec *remote,
                             unsigned long count)
{
    ssize_t whole = 0;

    for (unsigned i = 0; i < count; i++) {
        unsigned long ours = 0;
        for (size_t filled = 0; filled < remote[i].iov_len; ours++)
            filled += local[ours].iov_len;
        ssize_t n = syscall(SYS_process_vm_readv, getpid(), local, ours, remote + i, 1UL, 0UL);
        if (n < 0)
            return whole > 0 ? whole : n;
        local += ours;
        whole += n;
        between(i);
    }
    return whole;
}

/* What stands for another process is this one. */
ssize_t process_vm_readv(pid_t pid, const struct iovec *local, unsigned long local_count,
                         const struct iovec *remote, unsigned long remote_count,
                         unsigned long flags)
{
    ssize_t n = between ? read_by_piece(local, remote, remote_count)
                        : syscall(SYS_process_vm_readv, getpid(), local, local_count, remote,
                                  remote_count, flags);

    (void)pid;
    note_call(remote, remote_count);
    return n;
}

static ssize_t gather_by_piece(const struct iovec *local, unsigned long count, struct iovec to)
{
    ssize_t whole = 0;

    for (unsigned i = 0; i < count; i++) {
        ssize_t n = syscall(SYS_process_vm_writev, getpid(), local + i, 1UL, &to, 1UL, 0UL);
        if (n < 0)
            return whole > 0 ? whole : n;
        to = (struct iovec){ (char *)to.iov_base + n, to.iov_len - (size_t)n };
        whole += n;
        between(i);
    }
    return whole;
}

/* How this process's own memory is read: its pieces are what is written, to one place. */
ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long local_count,
                          const struct iovec *remote, unsigned long remote_count,
                          unsigned long flags)
{
    assert_int_equal(remote_count, 1);
    ssize_t n = between ? gather_by_piece(local, local_count, *remote)
                        : syscall(SYS_process_vm_writev, pid, local, local_count, remote,
                                  remote_count, flags);

    note_call(local, local_count);
    return n;
}

static bool outside; /* the process is read as another is */

static struct {
    struct snd_python python;
    _Alignas(4096) char state[SND_PY_THREAD_READ]; /* each in a page of its own */
    _Alignas(4096) char cframe[64];
    _Alignas(4096) char lock[256];
    char               *pages; /* PAGES of them */
    struct snd_py_hint  hint;
    struct snd_py_stack stack, spare[2];
} it;

static uint64_t at(const void *address)
{
    return (uint64_t)(uintptr_t)address;
}

static void put(char *block, uint32_t offset, uint64_t value)
{
    memcpy(block + offset, &value, sizeof value);
}

/* A chain of `count` frames, each `apart` bytes above its caller; the outermost is C's where there are such. */
static void set_frames(unsigned count, size_t apart)
{
    const struct snd_py_layout *l = &it.python.layout;
    uint64_t                    caller = 0;

    memset(it.pages, 0, PAGES * SND_PAGE);
    for (unsigned i = 0; i < count; i++) {
        char *frame = it.pages + i * apart;
        put(frame, l->frame_previous, caller);
        put(frame, l->frame_code, 8 * (1000 + i)); /* addresses are aligned */
        if (l->frame_owner)
            frame[l->frame_owner] = l->has_entries && i == 0 ? SND_PY_OWNED_BY_C : 0;
        caller = at(frame);
    }
    put(l->has_cframe ? it.cframe : it.state, l->has_cframe ? l->cframe_frame : l->thread_frame,
        caller);
}

static void set_lock(const void *holder, uint64_t switches)
{
    const struct snd_py_layout *l = &it.python.layout;

    put(it.lock, l->gil_holder, at(holder));
    put(it.lock, l->gil_locked, 1);
    put(it.lock, l->gil_switches, switches);
}

static void begin(unsigned minor)
{
    it.python = (struct snd_python){ .pid = outside ? getpid() + 1 : getpid(),
                                     .layout = *snd_py_layout(minor, false) };
    it.hint = (struct snd_py_hint){ 0 };
    meanwhile = NULL;
    if (it.python.layout.has_cframe)
        put(it.state, it.python.layout.thread_frame, at(it.cframe));
}

static enum snd_py_read read_stack(void)
{
    calls = 0;
    return snd_python_stack(&it.python, at(it.state), at(it.lock), &it.hint, NULL, &it.stack,
                            it.spare);
}

/* Of a thread that is known to have the lock. */
static enum snd_py_read read_running(void)
{
    calls = 0;
    return snd_python_stack(&it.python, at(it.state), 0, &it.hint, NULL, &it.stack, it.spare);
}

static unsigned frames_of(unsigned count)
{
    return count - (it.python.layout.has_entries ? 1 : 0);
}

/* From the second time on one call is enough, wherever the frames lie. */
static void test_one_call_without_the_lock(void **state)
{
    (void)state;
    skip_unless_readable();
    for (unsigned minor = snd_py_minor_least; minor <= snd_py_minor_most; minor++) {
        begin(minor);
        set_lock(it.pages, 7);
        set_frames(30, 400); /* three pages; some lie across the end of one */
        assert_int_equal(read_stack(), SND_PY_READ);
        assert_int_equal(read_stack(), SND_PY_READ);
        assert_int_equal(calls, 1);
        assert_true(it.stack.still);
        assert_int_equal(it.stack.switches, 7);
        assert_int_equal(it.stack.count, frames_of(30));
        for (unsigned i = 0; i < it.stack.count; i++)
            assert_int_equal(it.stack.frames[i].code, 8 * (1029 - i));
    }
}

/* A thread that has the lock may have changed its frames: each look is one call, and two must agree. */
static void test_two_looks_with_the_lock(void **state)
{
    (void)state;
    skip_unless_readable();
    for (unsigned minor = snd_py_minor_least; minor <= snd_py_minor_most; minor++) {
        begin(minor);
        set_lock(it.state, 7);
        set_frames(10, 200);
        assert_int_equal(read_stack(), SND_PY_READ);
        assert_int_equal(read_stack(), SND_PY_READ);
        assert_int_equal(calls, 2);
        assert_false(it.stack.still);
        set_frames(PAGES - 1, 4096); /* more pages than are kept */
        assert_int_equal(read_stack(), SND_PY_READ);
        assert_int_equal(it.stack.count, frames_of(PAGES - 1));
        set_frames(3, 100);
        assert_int_equal(read_stack(), SND_PY_READ);
        assert_int_equal(it.stack.count, frames_of(3));
    }
}

/* Where it is known to have the lock, two looks are one call, and four are two. */
static void test_two_looks_in_one_call(void **state)
{
    (void)state;
    skip_unless_readable();
    for (unsigned minor = snd_py_minor_least; minor <= snd_py_minor_most; minor++) {
        begin(minor);
        set_lock(it.state, 7);
        set_frames(10, 200);
        assert_int_equal(read_running(), SND_PY_READ);
        assert_int_equal(read_running(), SND_PY_READ);
        assert_int_equal(calls, 1);
        assert_false(it.stack.still);
        set_frames(30, 400);
        assert_int_equal(read_running(), SND_PY_READ);
        assert_int_equal(read_running(), SND_PY_READ);
        assert_int_equal(calls, 2);
        assert_int_equal(it.stack.count, frames_of(30));
    }
}

/* Of a thread that is halted one look is enough, wherever its frames lie. */
static void test_one_call_of_a_halted_thread(void **state)
{
    (void)state;
    skip_unless_readable();
    for (unsigned minor = snd_py_minor_least; minor <= snd_py_minor_most; minor++) {
        begin(minor);
        set_frames(30, 400);
        for (int times = 0; times < 2; times++) {
            calls = 0;
            assert_int_equal(snd_python_halted(&it.python, at(it.state), &it.hint, NULL, &it.stack),
                             SND_PY_READ);
            assert_int_equal(it.stack.count, frames_of(30));
            assert_false(it.stack.still);
        }
        assert_int_equal(calls, 1);
    }
}

static unsigned change_after;

static void call_other(unsigned piece)
{
    if (piece == change_after) /* the frames are where they were, and of another function */
        put(it.pages + 5 * 200, it.python.layout.frame_code, 7777);
}

static void call_deeper(unsigned piece)
{
    if (piece == change_after)
        set_frames(11, 200);
}

/* Whatever changes between the first piece of a call and its last, the stack does not count. */
static void test_changes_between_two_looks(void **state)
{
    (void)state;
    skip_unless_readable();
    for (unsigned minor = snd_py_minor_least; minor <= snd_py_minor_most; minor++) {
        begin(minor);
        unsigned cframe = it.python.layout.has_cframe ? 1 : 0;
        unsigned first = cframe + 1, second = first + 2; /* the page, and the page again */
        set_lock(it.state, 7);
        for (change_after = first; change_after < second; change_after++) {
            set_frames(10, 200);
            assert_int_equal(read_running(), SND_PY_READ);
            between = call_other;
            assert_int_equal(read_running(), SND_PY_TORN);
            between = NULL;
        }
        for (change_after = cframe; change_after <= second; change_after++) {
            set_frames(10, 200);
            assert_int_equal(read_running(), SND_PY_READ);
            between = call_deeper;
            assert_int_equal(read_running(), SND_PY_TORN);
            between = NULL;
        }
    }
}

static unsigned depth;

static void call_one_more(void)
{
    set_frames(5 + ++depth % 7, 200);
}

/* Where the lock went to another thread between, or was this thread's, one look does not count. */
static void test_changes_meanwhile(void **state)
{
    (void)state;
    skip_unless_readable();
    begin(13);
    set_frames(10, 200);
    set_lock(it.state, 7);
    assert_int_equal(read_stack(), SND_PY_READ);
    depth = 0; /* 6 frames next, not the 10 again */
    meanwhile = call_one_more;
    assert_int_equal(read_stack(), SND_PY_TORN);
    set_lock(it.pages, 8);
    assert_int_equal(read_stack(), SND_PY_READ); /* nobody but the thread itself changes them */
    assert_true(it.stack.still);
}

/* Of a page what the frames use is read, and some room above them; a stack that grew is read whole. */
static void test_parts_of_pages(void **state)
{
    (void)state;
    skip_unless_readable();
    for (unsigned minor = snd_py_minor_least; minor <= snd_py_minor_most; minor++) {
        begin(minor);
        set_lock(it.pages, 7);
        for (unsigned count = 3; count < 60; count += 7) {
            set_frames(count, 100);
            assert_int_equal(read_stack(), SND_PY_READ);
            assert_int_equal(it.stack.count, frames_of(count));
            assert_int_equal(read_stack(), SND_PY_READ);
            assert_int_equal(it.stack.count, frames_of(count));
            assert_int_equal(calls, 1);
            assert_true(it.stack.still);
            assert_true(asked < count * 100 + 1000);
        }
        set_frames(3,
                   100); /* a stack that is short now keeps what it used, up to the end of a page */
        assert_int_equal(read_stack(), SND_PY_READ);
        assert_int_equal(calls, 1);
        assert_int_equal(it.stack.count, frames_of(3));
    }
}

/* What is expected along with the frames costs no call; if it is not there, the frames still are. */
static void test_riders(void **state)
{
    const uint64_t   words[] = { 11, 22 };
    uint64_t         found[3] = { 0 };
    struct snd_piece pieces[] = { { at(&words[0]), &found[0], 8 },
                                  { at(&words[1]), &found[1], 8 },
                                  { 16, &found[2], 8 } };

    (void)state;
    skip_unless_readable();
    begin(12);
    set_lock(it.pages, 7);
    set_frames(10, 200);
    assert_int_equal(read_stack(), SND_PY_READ);
    for (size_t count = 2; count <= 3; count++) {
        struct snd_py_rider rider = { .pieces = pieces, .count = count };
        calls = 0;
        memset(found, 0, sizeof found);
        assert_int_equal(snd_python_stack(&it.python, at(it.state), at(it.lock), &it.hint, &rider,
                                          &it.stack, it.spare),
                         SND_PY_READ);
        assert_int_equal(calls, 1);
        assert_int_equal(it.stack.count, frames_of(10));
        assert_int_equal(rider.whole, 2);
        assert_memory_equal(found, words, sizeof words);
    }
}

static void test_pages_that_are_gone(void **state)
{
    char *other = mmap(NULL, SND_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    skip_unless_readable();
    assert_true(other != MAP_FAILED);
    begin(12);
    set_lock(it.pages, 7);
    set_frames(4, 200);
    it.hint.link = at(it.cframe) + it.python.layout.cframe_frame;
    it.hint.parts[0].page = at(other);
    it.hint.count = 1;
    munmap(other, SND_PAGE);
    assert_int_equal(read_stack(), SND_PY_READ);
    assert_int_equal(it.stack.count, frames_of(4));
    put(it.state, it.python.layout.thread_frame, at(other)); /* the thread has ended */
    assert_int_equal(read_stack(), SND_PY_UNREAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_call_without_the_lock),
        cmocka_unit_test(test_two_looks_with_the_lock),
        cmocka_unit_test(test_two_looks_in_one_call),
        cmocka_unit_test(test_one_call_of_a_halted_thread),
        cmocka_unit_test(test_changes_between_two_looks),
        cmocka_unit_test(test_changes_meanwhile),
        cmocka_unit_test(test_parts_of_pages),
        cmocka_unit_test(test_riders),
        cmocka_unit_test(test_pages_that_are_gone),
    };

    it.pages = mmap(NULL, PAGES * SND_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                    0);
    if (it.pages == MAP_FAILED)
        return 1;
    snd_memory_know_own();
    int failed = cmocka_run_group_tests_name("of this process", tests, NULL, NULL);
    outside = true;
    return failed + cmocka_run_group_tests_name("of another", tests, NULL, NULL);
}
