/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/devices.h - the GPUs, and which CUDA: facts of each file.
 *
 * Layer:   probes.
 * Threads: any.
 */
#ifndef SND_PROBES_CUDA_DEVICES_H
#define SND_PROBES_CUDA_DEVICES_H

/* The runtime's version, while its calls are not recorded: this is one of them. */
void snd_devices_ask_runtime(void);

/* Once for each file: what the driver says of its devices. */
void snd_devices_write(void);

/* The next file is to have them as well. */
void snd_devices_forget(void);

/* Why nothing of the GPU is recorded. */
void snd_devices_write_absent(const char *why);

#endif
