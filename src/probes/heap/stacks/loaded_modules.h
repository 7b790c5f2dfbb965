/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/heap/stacks/loaded_modules.h - an address of code as the trace has it: the file it was loaded from, that
 * file's build id, and the address in it. Names are found after the run, by sonde run.
 */
#ifndef SND_PROBES_HEAP_STACKS_LOADED_MODULES_H
#define SND_PROBES_HEAP_STACKS_LOADED_MODULES_H

#include <stdint.h>

/* The id of the frame that a call came from, by its return address; 0: there is no room. One thread at a time. */
uint32_t snd_heap_frame_of(uint64_t pc);
/* Code was unloaded. */
void snd_heap_modules_forget(void);

#endif
