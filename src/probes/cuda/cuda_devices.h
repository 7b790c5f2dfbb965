/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/cuda_devices.h - the GPUs, and which CUDA: facts of each file.
 *
 * Layer:   probes.
 * Threads: any.
 */
#ifndef SND_PROBES_CUDA_CUDA_DEVICES_H
#define SND_PROBES_CUDA_CUDA_DEVICES_H

/* The runtime's version, as 13000, or 0: not known. Call it before calls are recorded: it makes one. */
int snd_devices_ask_runtime(void);

/* Writes the driver's description of its devices, once for each file. */
void snd_devices_write(void);

/* The next file gets them again. */
void snd_devices_forget(void);

/* Writes why nothing of the GPU is recorded. */
void snd_devices_write_absent(const char *why);

#endif
