/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/command/probe_checks.h - what `sonde doctor` says of each probe (probes/probes.def).
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_COMMAND_PROBE_CHECKS_H
#define SND_CLI_COMMAND_PROBE_CHECKS_H

#include <stddef.h>

enum snd_verdict { SND_FINE, SND_LIMITED, SND_ABSENT };

struct snd_finding {
    const char      *name; /* of what was checked */
    enum snd_verdict verdict;
    char             text[256];
    char             fix[256]; /* a line of shell that would mend it; "": nobody knows one */
};

void snd_find(struct snd_finding *finding, enum snd_verdict verdict, const char *format, ...)
    __attribute__((__format__(__printf__, 3, 4)));

/* Adds the line of shell that would mend what was found. */
void snd_fix(struct snd_finding *finding, const char *format, ...)
    __attribute__((__format__(__printf__, 2, 3)));

#define SND_PROBE_CHECKS_MAX 32

/* Fills in a finding for each check that the table of probes names; returns how many. */
size_t snd_probe_checks(struct snd_finding findings[SND_PROBE_CHECKS_MAX]);

#endif
