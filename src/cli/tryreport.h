/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/tryreport.h - is a view and its sort key one that `report` takes? Asked before a program runs.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_TRYREPORT_H
#define SND_CLI_TRYREPORT_H

#include "sonde/sonde.h"

/* What sonde_report says of an empty trace. SONDE_E_ARGUMENT: the view or the key is wrong. */
enum sonde_status snd_try_report(const char *view, const char *sort, struct sonde_error *err);

#endif
