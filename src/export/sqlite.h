/* SPDX-License-Identifier: Apache-2.0 */
/*
 * export/sqlite.h - whether SQLite is on this machine.
 *
 * Layer: export. Threads: any.
 */
#ifndef SND_EXPORT_SQLITE_H
#define SND_EXPORT_SQLITE_H

#include "base/error.h"

/* Errors: SONDE_E_UNSUPPORTED, with the reason and what to do. */
SND_CHECKED enum sonde_status snd_sqlite_check(struct sonde_error *err);

#endif
