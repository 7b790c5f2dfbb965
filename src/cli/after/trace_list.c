/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/after/trace_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files/sink.h"
#include "base/text/buf.h"
#include "base/text/json.h"
#include "cli/path_kind.h"
#include "cli/run/run_folder.h"
#include "format/layout.h"
#include "read/file/source.h"

#define ENTRIES_MAX 10000 /* of one folder */

bool snd_trace_list_add(struct snd_trace_list *list, const char *path)
{
    if (list->count == list->room) {
        size_t room = list->room ? list->room * 2 : 16;
        char **paths = realloc(list->paths, room * sizeof *paths);
        if (!paths)
            return false;
        list->paths = paths;
        list->room = room;
    }
    char *copy = strdup(path);
    if (copy)
        list->paths[list->count++] = copy;
    return copy != NULL;
}

void snd_trace_list_release(struct snd_trace_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct snd_trace_list){ 0 };
}

/* ------------------------------------------------------------------- folders */

static bool ends_with(const char *text, const char *end)
{
    size_t length = strlen(text), tail = strlen(end);

    return length > tail && strcmp(text + length - tail, end) == 0;
}

/* What tells whether two entries of a folder are one trace. */
struct entry {
    char    path[4096];
    uint8_t session[16]; /* zeros: a folder, or another tool's */
};

static bool read_session(const char *path, uint8_t session[16])
{
    struct snd_file_header header;
    int                    fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good = fd >= 0 && read(fd, &header, sizeof header) == (ssize_t)sizeof header;

    if (fd >= 0)
        close(fd);
    if (good)
        memcpy(session, header.session, 16);
    return good;
}

/* The folder of a run, whose files are one trace whatever their sessions. */
static bool is_run_folder(const char *folder)
{
    char path[4096];

    return ends_with(folder, ".sonde") || ends_with(folder, ".sonde/") ||
           (snprintf(path, sizeof path, "%s/%s", folder, SND_RUN_HOST) < (int)sizeof path &&
            access(path, F_OK) == 0);
}

/* A file of `sonde model --trace FOLDER`: those beside it are of the same benchmark. */
static bool is_benchmark(const char *name)
{
    return strncmp(name, "timing-", 7) == 0 || strncmp(name, "graph-time-", 11) == 0;
}

/* What torch.profiler writes for each rank is one trace with those beside it. */
static bool is_alone(const char *path)
{
    return (ends_with(path, ".json") || ends_with(path, ".json.gz")) &&
           !strstr(path, ".pt.trace.json") && snd_source_is_foreign(path);
}

static bool read_entry(const char *folder, const char *name, struct entry *entry)
{
    *entry = (struct entry){ .path = "" };
    if (name[0] == '.' ||
        snprintf(entry->path, sizeof entry->path, "%s/%s", folder, name) >= (int)sizeof entry->path)
        return false;
    switch (snd_path_kind(entry->path)) {
    case SND_PATH_TRACE:
        return read_session(entry->path, entry->session);
    case SND_PATH_FOLDER:
        return ends_with(name, ".sonde");
    default:
        return is_alone(entry->path);
    }
}

static int compare_paths(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

bool snd_trace_list_folder(struct snd_trace_list *list, const char *folder)
{
    static const uint8_t none[16];
    struct entry         entry;
    uint8_t              first[16] = { 0 };
    bool                 differ = false, is_one = false;
    struct stat          st;

    if (stat(folder, &st) != 0 || !S_ISDIR(st.st_mode) || is_run_folder(folder))
        return false;
    DIR *dir = opendir(folder);
    for (struct dirent *one; dir && (one = readdir(dir)) && list->count < ENTRIES_MAX;) {
        if (!read_entry(folder, one->d_name, &entry) || !snd_trace_list_add(list, entry.path))
            continue;
        is_one |= is_benchmark(one->d_name);
        if (list->count == 1)
            memcpy(first, entry.session, sizeof first);
        else
            differ |= memcmp(first, entry.session, sizeof first) != 0 ||
                      memcmp(entry.session, none, sizeof none) == 0;
    }
    if (dir)
        closedir(dir);
    if (list->count > 1)
        qsort(list->paths, list->count, sizeof *list->paths, compare_paths);
    if (!differ || is_one)
        snd_trace_list_release(list);
    return differ && !is_one;
}

/* ---------------------------------------------------------------------- JSON */

/* Bytes, and when it was written last; of a folder, of what is in it. */
static void measure(const char *path, unsigned deeper, uint64_t *bytes, int64_t *written_ms)
{
    struct stat st;

    if (stat(path, &st) != 0)
        return;
    if (!S_ISDIR(st.st_mode)) {
        int64_t ms = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
        *bytes += (uint64_t)st.st_size;
        *written_ms = ms > *written_ms ? ms : *written_ms;
        return;
    }
    DIR *dir = deeper > 0 ? opendir(path) : NULL;
    for (struct dirent *one; dir && (one = readdir(dir)) != NULL;) {
        char inner[4096];
        if (one->d_name[0] != '.' &&
            snprintf(inner, sizeof inner, "%s/%s", path, one->d_name) < (int)sizeof inner)
            measure(inner, deeper - 1, bytes, written_ms);
    }
    if (dir)
        closedir(dir);
}

/* How much of the paths is the folder that all of them are in. */
static size_t shared_folder(const struct snd_trace_list *list)
{
    size_t length = strlen(list->paths[0]);

    for (size_t i = 1; i < list->count; i++) {
        size_t same = 0;
        while (same < length && list->paths[i][same] == list->paths[0][same])
            same++;
        length = same;
    }
    while (length > 0 && list->paths[0][length - 1] != '/')
        length--;
    return length;
}

void snd_trace_list_json(const struct snd_trace_list *list, struct sonde_buffer *json)
{
    struct sonde_sink sink = sonde_sink_buffer(json);
    struct snd_out    out;
    struct snd_json   writer;
    size_t            skip = shared_folder(list);

    snd_out_init(&out, &sink);
    snd_json_init(&writer, &out);
    snd_json_array(&writer, NULL);
    for (size_t i = 0; i < list->count; i++) {
        uint64_t bytes = 0;
        int64_t  written_ms = 0;
        measure(list->paths[i], 3, &bytes, &written_ms);
        snd_json_object(&writer, NULL);
        snd_json_text(&writer, "name", list->paths[i] + skip);
        snd_json_uint(&writer, "bytes", bytes);
        snd_json_int(&writer, "written_ms", written_ms);
        snd_json_end(&writer);
    }
    snd_json_end(&writer);
    json->failed |= snd_out_finish(&out, NULL) != SONDE_OK;
}
