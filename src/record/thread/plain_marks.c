/* SPDX-License-Identifier: Apache-2.0 */
/*
 * record/thread/plain_marks.c - what sonde/record.h has inline, as functions of the library: for Rust, Go, Fortran and all that
 * calls C without compiling it.
 *
 * The header's own take another name in this file, so that both can be told apart.
 */
#define sonde_begin_api inline_begin_api
#define sonde_begin_id inline_begin_id
#define sonde_begin_site inline_begin_site
#define sonde_clock inline_clock
#define sonde_clock_is_counter inline_clock_is_counter
#define sonde_end inline_end
#define sonde_epoch inline_epoch

#include "sonde/record.h"

#undef sonde_begin
#undef sonde_begin_api
#undef sonde_begin_id
#undef sonde_begin_site
#undef sonde_clock
#undef sonde_clock_is_counter
#undef sonde_end
#undef sonde_epoch

SONDE_API uint64_t sonde_begin_api(uint32_t name, uint64_t call);
SONDE_API void     sonde_begin_id(uint32_t name, uint32_t shapes);
SONDE_API void     sonde_begin_site(struct sonde_site *site);
SONDE_API uint64_t sonde_clock(void);
SONDE_API bool     sonde_clock_is_counter(void);
SONDE_API void     sonde_end(void);
SONDE_API uint32_t sonde_epoch(void);

void sonde_begin(const char *name)
{
    sonde_begin_text(name);
}

uint64_t sonde_begin_api(uint32_t name, uint64_t call)
{
    return inline_begin_api(name, call);
}

void sonde_begin_id(uint32_t name, uint32_t shapes)
{
    inline_begin_id(name, shapes);
}

void sonde_begin_site(struct sonde_site *site)
{
    inline_begin_site(site);
}

uint64_t sonde_clock(void)
{
    return inline_clock();
}

bool sonde_clock_is_counter(void)
{
    return inline_clock_is_counter();
}

SONDE_API struct sonde_device make_device(unsigned type, int index) __asm__("sonde_device");

/* Named so in the object file only: in C the struct has this name. */
struct sonde_device make_device(unsigned type, int index)
{
    return (struct sonde_device){ (uint16_t)type, (int16_t)index };
}

void sonde_end(void)
{
    inline_end();
}

uint32_t sonde_epoch(void)
{
    return inline_epoch();
}
