/* SPDX-License-Identifier: Apache-2.0 */
/*
 * base/system/linked_recorder.h - what the recorder offers where it is a part of the program, by name.
 *
 * Layer: base. Threads: any.
 */
#ifndef SND_BASE_SYSTEM_LINKED_RECORDER_H
#define SND_BASE_SYSTEM_LINKED_RECORDER_H

struct snd_linked_symbol {
    const char *name;
    void       *address;
};

/* The last has no name. */
extern const struct snd_linked_symbol snd_linked_recorder[];

#endif
