/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz/exercise_dwarf.c - files with DWARF, as libdw reads them in a process of its own. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/files/fd_io.h"
#include "exercise.h"
#include "symbols/dwarf/dwarf.h"
#include "symbols/elf/symtab.h"

#define ADDRESSES 16u

static volatile uint64_t sink;

static bool look_at(void *user, uint32_t index, const struct snd_dwarf_frame *frames,
                    uint32_t count)
{
    const uint32_t *asked = user;

    if (index >= *asked)
        abort();
    for (uint32_t i = 0; i < count; i++)
        sink += strlen(frames[i].function) + strlen(frames[i].file) + frames[i].line;
    return true;
}

/* Addresses of functions, as far as the file has any. */
static uint32_t choose_addresses(const uint8_t *data, size_t size, uint64_t *addresses)
{
    struct snd_image  image;
    struct snd_symtab symtab = { 0 };
    uint32_t          count = 0;

    addresses[count++] = 0x1040;
    addresses[count++] = UINT64_MAX;
    if (!snd_image_open_memory(data, size, &image))
        return count;
    if (snd_symtab_add(&symtab, &image) && snd_symtab_sort(&symtab))
        for (uint32_t i = 0; i < symtab.count && count + 2 <= ADDRESSES; i++) {
            addresses[count++] = symtab.entries[i].start;
            addresses[count++] = symtab.entries[i].start + 9;
        }
    snd_symtab_release(&symtab);
    snd_image_release(&image);
    return count;
}

void exercise_dwarf(const uint8_t *data, size_t size)
{
    uint64_t addresses[ADDRESSES];
    int      fd = memfd_create("dwarf", MFD_CLOEXEC);

    if (fd < 0)
        return;
    uint32_t count = choose_addresses(data, size, addresses);
    if (snd_write_all(fd, data, size))
        sink += (uint64_t)snd_dwarf_find(fd, addresses, count, look_at, &count);
    close(fd);
}
