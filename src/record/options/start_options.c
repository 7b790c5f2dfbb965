/* SPDX-License-Identifier: Apache-2.0 */
#include "record/options/start_options.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/struct_size.h"
#include "record/clock.h"
#include "record/options/environment.h"

/* An absolute path, since the program may change its folder before a child or a cycle. */
static enum sonde_status set_path(const char *given, struct sonde_error *err)
{
    char        name[64], folder[PATH_MAX] = "";
    struct stat at;

    snprintf(name, sizeof name, "sonde-%d.sonde", (int)getpid());
    if (!given || !*given)
        given = name;
    if (given[0] != '/' && !getcwd(folder, sizeof folder - 1))
        return snd_fail_os(err, SONDE_E_IO, "cannot get the current folder");
    const char *slash = stat(given, &at) == 0 && S_ISDIR(at.st_mode) ? "/" : "";
    int n = snprintf(snd_rec.path, sizeof snd_rec.path, "%s%s%s%s", folder, folder[0] ? "/" : "",
                     given, given[strlen(given) - 1] == '/' ? "" : slash);
    if (n < 0 || (size_t)n >= sizeof snd_rec.path)
        return snd_fail(err, SONDE_E_ARGUMENT, "the path %.200s is too long", given);
    return SONDE_OK;
}

/* The caller's options, which may be an older and shorter struct, over the defaults. */
static enum sonde_status read_options(const struct sonde_options *o, struct sonde_options *given,
                                      struct sonde_error *err)
{
    enum sonde_status st = snd_struct_take(o, given, sizeof *given, "SONDE_OPTIONS_INIT", err);

    if (st != SONDE_OK)
        return st;
    if (given->chunk_bytes % SND_GRAIN != 0 || given->chunk_bytes > SND_CHUNK_SIZE_MAX)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "chunk_bytes %zu is not a multiple of %zu up to %llu", given->chunk_bytes,
                        SND_GRAIN, (unsigned long long)SND_CHUNK_SIZE_MAX);
    if (given->limit == SONDE_LIMIT_KEEP_LAST && given->max_bytes == 0)
        return snd_fail(err, SONDE_E_ARGUMENT, "keep-last needs a limit: set max_bytes");
    if (given->max_bytes != 0 && given->max_bytes < 8 * SND_GRAIN)
        return snd_fail(err, SONDE_E_ARGUMENT,
                        "max_bytes %llu is less than %zu, the minimum size of a trace",
                        (unsigned long long)given->max_bytes, 8 * SND_GRAIN);
    return SONDE_OK;
}

/* A small limit is used up evenly by all threads if chunks are small, too. */
static size_t choose_chunk_bytes(const struct sonde_options *given)
{
    size_t bytes = given->chunk_bytes ? given->chunk_bytes : SONDE_DEFAULT_CHUNK_BYTES;

    while (given->max_bytes != 0 && bytes > SND_GRAIN && bytes > given->max_bytes / 16)
        bytes /= 2;
    bytes &= ~(SND_GRAIN - 1);
    return bytes < SND_GRAIN ? SND_GRAIN : bytes;
}

enum sonde_status snd_options_take(const struct sonde_options *o, struct sonde_error *err)
{
    struct sonde_options given = SONDE_OPTIONS_INIT;
    enum sonde_status    status = read_options(o, &given, err);

    if (status == SONDE_OK)
        status = set_path(given.path, err);
    if (status != SONDE_OK)
        return status;

    snd_rec.max_bytes = given.max_bytes;
    snd_rec.keep_last = given.limit == SONDE_LIMIT_KEEP_LAST;
    snd_rec.chunk_bytes = choose_chunk_bytes(&given);
    snd_rec.schedule = given.schedule;
    snd_rec.on_cycle = given.on_cycle;
    snd_rec.user = given.user;
    snd_rec.overwrite = given.overwrite;
    snd_environment_rank(given.rank, given.world_size);
    snd_rec.subject_pid = given.subject_pid;
    snprintf(snd_rec.subject_program, sizeof snd_rec.subject_program, "%s",
             given.subject_program ? given.subject_program : "");
    snd_rec.parent_pid = 0;
    snd_rec.step = 0;
    snd_rec.cycle = 0;
    snd_rec.paused = false;
    if (getrandom(snd_rec.session, sizeof snd_rec.session, GRND_NONBLOCK) < 0) {
        struct snd_clock_pair now = snd_clock_pair_now();
        memcpy(snd_rec.session, &now, sizeof snd_rec.session);
    }
    return SONDE_OK;
}
