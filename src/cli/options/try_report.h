/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/options/try_report.h - checks a view and its sort key before a program runs.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_OPTIONS_TRY_REPORT_H
#define SND_CLI_OPTIONS_TRY_REPORT_H

#include "sonde/sonde.h"

/* Runs sonde_report on an empty trace. Errors: SONDE_E_ARGUMENT: unknown view or sort key. */
enum sonde_status snd_try_report(const char *view, const char *sort, struct sonde_error *err);

#endif
