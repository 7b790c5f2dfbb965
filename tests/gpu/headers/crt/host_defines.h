/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA's headers want of nvcc's own, which come in another package: words that mean nothing here. */
#define __device_builtin__
#define __device_builtin_texture_type__
#define __device_builtin_surface_type__
#define __cudart_builtin__
#define __builtin_align__(n) __attribute__((aligned(n)))
#define __align__(n) __attribute__((aligned(n)))
#define CUDARTAPI
#define __host__
#define __device__
#define __specialization_static static
