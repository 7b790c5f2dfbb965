/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/libc.h - what glibc has and musl lacks, so that the recorder, the reader and the command line build with both.
 *
 * Layer: base.
 */
#ifndef SND_BASE_SYSTEM_LIBC_H
#define SND_BASE_SYSTEM_LIBC_H

#include <pthread.h>
#include <unistd.h>

/* musl's static initializer is all zeros, of which the first number is the kind. */
#ifndef PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP
#define PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP \
    {                                          \
        {                                      \
            {                                  \
                PTHREAD_MUTEX_RECURSIVE        \
            }                                  \
        }                                      \
    }
#endif

/* sysconf answers -1 to what it does not know. */
#ifndef _SC_LEVEL1_DCACHE_LINESIZE
#define _SC_LEVEL1_DCACHE_LINESIZE (-1)
#endif
#ifndef _SC_LEVEL3_CACHE_SIZE
#define _SC_LEVEL3_CACHE_SIZE (-1)
#endif

#endif
