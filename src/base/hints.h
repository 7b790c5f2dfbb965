/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/hints.h - what the compiler cannot know: which way a branch goes, how a variable of a thread is reached.
 *
 * Layer: base (libc only).
 */
#ifndef SND_BASE_HINTS_H
#define SND_BASE_HINTS_H

#define SND_LIKELY(x) __builtin_expect(!!(x), 1)
#define SND_UNLIKELY(x) __builtin_expect(!!(x), 0)

/* Of a library that is there when the program starts: without a call for each access. */
#define SND_THREAD_LOCAL __thread __attribute__((tls_model("initial-exec")))

#endif
