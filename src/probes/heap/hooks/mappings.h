/* SPDX-License-Identifier: Apache-2.0 */
/* probes/heap/hooks/mappings.h - the lock of the list of mappings, held around a fork. */
#ifndef SND_PROBES_HEAP_HOOKS_MAPPINGS_H
#define SND_PROBES_HEAP_HOOKS_MAPPINGS_H

void snd_heap_mappings_lock(void);
void snd_heap_mappings_unlock(void);

#endif
