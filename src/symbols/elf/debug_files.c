/* SPDX-License-Identifier: Apache-2.0 */
/* symbols/elf/debug_files.c - see debug_files.h */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbols/elf/debug_files.h"

#include "base/count_of.h"

#define DEBUG_FOLDER "/usr/lib/debug"

/* A link below a root leads out of it where it is absolute; then the build id does not match. */
static bool try_by_id(const char *root, size_t root_length, const char *build_id,
                      struct snd_image *out)
{
    char  found[SND_BUILD_ID_TEXT];
    char *path;

    if (strlen(build_id) < 3 || strspn(build_id, "0123456789abcdef") != strlen(build_id) ||
        asprintf(&path, "%.*s" DEBUG_FOLDER "/.build-id/%.2s/%s.debug", (int)root_length, root,
                 build_id, build_id + 2) < 0)
        return false;
    bool ok = snd_image_open(path, out);
    free(path);
    if (!ok)
        return false;
    snd_image_build_id(out, found);
    if (strcmp(found, build_id) == 0)
        return true;
    snd_image_release(out);
    return false;
}

bool snd_debug_file_by_id(const char *build_id, struct snd_image *out)
{
    return try_by_id("", 0, build_id, out);
}

struct link {
    const char *name, *build_id;
    uint32_t    crc;
};

static bool is_linked(const struct link *link, const struct snd_image *image)
{
    char     found[SND_BUILD_ID_TEXT];
    uint32_t crc;

    snd_image_build_id(image, found);
    if (link->build_id[0] != '\0' && found[0] != '\0')
        return strcmp(found, link->build_id) == 0;
    return snd_image_crc(image, &crc) && crc == link->crc;
}

static bool try_by_link(const char *root, size_t root_length, const char *file,
                        const struct link *link, struct snd_image *out)
{
    static const char *const places[] = { "%.*s%.*s/%s", "%.*s%.*s/.debug/%s",
                                          "%.*s" DEBUG_FOLDER "%.*s/%s" };
    const char              *slash = strrchr(file, '/');
    int                      folder = slash ? (int)(slash - file) : 0;

    for (size_t i = 0; slash && i < SND_COUNT_OF(places); i++) {
        char *path;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        int written = asprintf(&path, places[i], (int)root_length, root, folder, file, link->name);
#pragma GCC diagnostic pop
        if (written < 0)
            return false;
        bool ok = snd_image_open(path, out);
        free(path);
        if (ok && is_linked(link, out))
            return true;
        if (ok)
            snd_image_release(out);
    }
    return false;
}

/* How much of `opened` is the root that `file` is below: /proc/PID/root, of a container. */
static size_t root_of(const char *file, const char *opened)
{
    size_t file_length = strlen(file), opened_length = opened ? strlen(opened) : 0;

    if (file[0] != '/' || opened_length <= file_length ||
        strcmp(opened + opened_length - file_length, file) != 0)
        return 0;
    return opened_length - file_length;
}

bool snd_debug_file_open(const struct snd_image *image, const char *file, const char *opened,
                         struct snd_image *out)
{
    char        build_id[SND_BUILD_ID_TEXT];
    size_t      root = root_of(file, opened);
    struct link link = { NULL, build_id, 0 };
    bool        found = false;

    snd_image_build_id(image, build_id);
    if (root > 0)
        found = try_by_id(opened, root, build_id, out);
    found = found || try_by_id("", 0, build_id, out);
    char *name = found ? NULL : snd_image_debug_link(image, &link.crc);
    if (name) {
        link.name = name;
        if (root > 0)
            found = try_by_link(opened, root, file, &link, out);
        found = found || try_by_link("", 0, file, &link, out);
    }
    free(name);
    return found;
}
