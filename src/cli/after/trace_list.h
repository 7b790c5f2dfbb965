/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli/after/trace_list.h - several traces to choose from: those that were given, or those of a folder.
 *
 * Layer: cli. Threads: one.
 */
#ifndef SND_CLI_AFTER_TRACE_LIST_H
#define SND_CLI_AFTER_TRACE_LIST_H

#include <stdbool.h>
#include <stddef.h>

#include "sonde/sink.h"

struct snd_trace_list {
    char **paths; /* owned */
    size_t count, room;
};

bool snd_trace_list_add(struct snd_trace_list *list, const char *path);
/*
 * Adds the traces of a folder, by name. False if there are not several: the folder of a run, whose files are
 * one trace, is none to choose from; nor are the files of one session or of one benchmark, or those that
 * torch.profiler writes for the ranks of a job.
 */
bool snd_trace_list_folder(struct snd_trace_list *list, const char *folder);
void snd_trace_list_release(struct snd_trace_list *list);

/* [{"name", "bytes", "written_ms"}, ..]: names without the folder that all are in. */
void snd_trace_list_json(const struct snd_trace_list *list, struct sonde_buffer *json);

#endif
