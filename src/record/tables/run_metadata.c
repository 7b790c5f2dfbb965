/* SPDX-License-Identifier: Apache-2.0 */
#include "record/tables/run_metadata.h"

#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <unistd.h>

#include "format/facts.h"
#include "format/metadata.h"
#include "record/tables/intern.h"
#include "record/own_pages.h"

void snd_metadata_write(const char *key, const char *value, size_t length)
{
    uint32_t pair[2] = { snd_table_text(key, strlen(key)), snd_table_text(value, length) };
    uint32_t id;

    snd_table_append(SND_REC_META, &id, pair, sizeof pair);
}

/* Notes are pairs of strings, one after another. */
void snd_metadata_keep(const char *key, const char *value)
{
    size_t key_size = strlen(key) + 1, value_size = strlen(value) + 1;

    if (!snd_rec.notes)
        snd_rec.notes = snd_ownpages_new(SND_NOTES_SIZE);
    if (!snd_rec.notes || snd_rec.note_bytes + key_size + value_size > SND_NOTES_SIZE) {
        snd_rec.notes_lost++; /* of the files to come: one that is open gets it whole */
        return;
    }
    memcpy(snd_rec.notes + snd_rec.note_bytes, key, key_size);
    memcpy(snd_rec.notes + snd_rec.note_bytes + key_size, value, value_size);
    snd_rec.note_bytes += key_size + value_size;
}

static void write_notes(void)
{
    snd_count(&snd_header->cut_names, snd_rec.notes_lost);
    for (size_t at = 0; at < snd_rec.note_bytes;) {
        const char *key = snd_rec.notes + at, *value = key + strlen(key) + 1;
        snd_metadata_write(key, value, strlen(value));
        at = (size_t)(value + strlen(value) + 1 - snd_rec.notes);
    }
}

/*
 * For a module of the package that a sonde command runs: the command line that the user typed. The variable begins
 * with the pid of that process, so that its children do not take it for theirs.
 */
static bool write_typed_command(void)
{
    const char *typed = secure_getenv("SONDE_TYPED_COMMAND");
    char       *text;

    if (!typed || snd_subject() != (uint32_t)getpid() ||
        strtoul(typed, &text, 10) != (unsigned long)getppid() || *text != ' ')
        return false;
    snd_metadata_write(snd_meta_key(SND_META_COMMAND), text + 1, strlen(text + 1));
    return true;
}

/* How the program was called: its arguments, separated by blanks. */
static void write_command_line(void)
{
    if (write_typed_command())
        return;

    char text[4096];
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/cmdline", snd_subject());
    int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return;
    ssize_t n = read(fd, text, sizeof text);
    close(fd);
    if (n <= 1)
        return;
    for (ssize_t i = 0; i < n - 1; i++)
        if (text[i] == '\0')
            text[i] = ' ';
    snd_metadata_write(snd_meta_key(SND_META_COMMAND), text, (size_t)n - 1);
}

/* What `sonde run --roof` measured before the program began. */
static void write_roof(void)
{
    const char *roof = secure_getenv("SONDE_ROOF");

    if (roof && *roof)
        snd_metadata_write(snd_meta_key(SND_META_MACHINE_ROOF), roof, strlen(roof));
}

void snd_metadata_rank(void)
{
    const struct snd_job *job = &snd_rec.job;
    char                  text[512];
    int                   n = 0;

    if (job->rank == SND_UNKNOWN)
        return;
    n = snprintf(text, sizeof text, "{\"rank\": %u", job->rank);
    if (job->local_rank != SND_UNKNOWN)
        n += snprintf(text + n, sizeof text - (size_t)n, ", \"local_rank\": %u", job->local_rank);
    if (job->world_size != SND_UNKNOWN)
        n += snprintf(text + n, sizeof text - (size_t)n, ", \"world_size\": %u", job->world_size);
    n += snprintf(text + n, sizeof text - (size_t)n, ", \"source\": \"%s\", \"job\": \"%s\"",
                  job->source, job->name);
    if (job->backend[0])
        n += snprintf(text + n, sizeof text - (size_t)n, ", \"backend\": \"%s\"", job->backend);
    n += snprintf(text + n, sizeof text - (size_t)n, "}");
    snd_metadata_write(snd_meta_key(SND_META_JOB_RANK), text, (size_t)n);
}

/* Left out if there are more processors than a cpu_set_t holds. */
static void write_processors(void)
{
    cpu_set_t set;
    char      text[16];

    if (sched_getaffinity((pid_t)snd_subject(), sizeof set, &set) != 0)
        return;
    int length = snprintf(text, sizeof text, "%d", CPU_COUNT(&set));
    snd_metadata_write(snd_meta_key(SND_META_MACHINE_CPUS), text, (size_t)length);
}

/* By the system call: seccomp filters permit it more often than the one by which libc implements it. */
void snd_metadata_clock(enum snd_clock_moment moment)
{
    struct timex said = { .modes = 0 };
    struct {
        struct snd_fact_record head;
        struct snd_fact_member members[3];
    } fact = { { SND_FACT_OF_CLOCK, 0, moment, 3 }, { { 0 } } };
    uint32_t id;
    long     clock_state = syscall(SYS_adjtimex, &said);

    if (clock_state < 0)
        return;
    const int64_t values[] = { [SND_FIELD_CLOCK_MAXIMUM_NS] = said.maxerror * 1000,
                               [SND_FIELD_CLOCK_ESTIMATED_NS] = said.esterror * 1000,
                               [SND_FIELD_CLOCK_IN_STEP] = clock_state != TIME_ERROR };
    for (uint16_t i = 0; i < 3; i++)
        fact.members[i] = (struct snd_fact_member){ .field = (uint16_t)(i + 1),
                                                    .type = SND_FACT_NUMBER,
                                                    .value = (uint64_t)values[i + 1] };
    snd_table_append(SND_REC_FACT, &id, &fact, sizeof fact);
}

void snd_metadata_begin(void)
{
    write_command_line();
    snd_metadata_rank();
    write_processors();
    snd_metadata_clock(SND_CLOCK_AT_BEGIN);
    write_roof();
    write_notes();
}
