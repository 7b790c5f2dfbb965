/* SPDX-License-Identifier: Apache-2.0 */
/* base/asan.h - whether AddressSanitizer watches: gcc and clang say in different ways that it is there. */
#ifndef SND_BASE_ASAN_H
#define SND_BASE_ASAN_H

#include <stdbool.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SND_HAS_ASAN true
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define SND_HAS_ASAN true
#endif
#ifndef SND_HAS_ASAN
#define SND_HAS_ASAN false
#endif

#endif
