/* SPDX-License-Identifier: Apache-2.0 */
/* base/text/plural.h - "1 row", "2 rows". */
#ifndef SND_BASE_TEXT_PLURAL_H
#define SND_BASE_TEXT_PLURAL_H

#include <stdint.h>

/* What a noun ends in after `count`: printf("%u row%s", n, snd_plural(n)). */
static inline const char *snd_plural(uint64_t count)
{
    return count == 1 ? "" : "s";
}

#endif
