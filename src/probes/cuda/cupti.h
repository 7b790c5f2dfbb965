/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes/cuda/cupti.h - what the probe uses of CUPTI's binary interface, in declarations of our own.
 *
 * The probe is built where there is no CUDA, and opens whichever libcupti the program has: so it
 * includes none of CUDA's headers. Records of later versions only grew at their end: the part that
 * is declared here is the same from CUDA 11.8 (version 18) on. tests/e2e/test_cuda_layout.py compares
 * all of it with the headers that come with torch.
 *
 * Layer: probes.
 */
#ifndef SND_PROBES_CUDA_CUPTI_H
#define SND_PROBES_CUDA_CUPTI_H

#include <stddef.h>
#include <stdint.h>

/* cuptiGetVersion(): 18 is CUDA 11.8 and 12.0; since CUDA 13 it is major * 10000 + minor * 100 + update. */
#define CUPTI_VERSION_LEAST 18u
#define CUPTI_VERSION_13 130000u
#define CUPTI_VERSION_MOST 139999u

enum cupti_result {
    CUPTI_OK = 0,
    CUPTI_E_MAX_LIMIT_REACHED = 12,
    CUPTI_E_NOT_COMPATIBLE = 14,
    CUPTI_E_NOT_INITIALIZED = 15,
    CUPTI_E_VIRTUALIZED = 33,
    CUPTI_E_PRIVILEGES = 35,
    CUPTI_E_MULTIPLE_SUBSCRIBERS = 39,
    CUPTI_E_VIRTUALIZED_PRIVILEGES = 40,
    CUPTI_E_CONFIDENTIAL = 41,
    CUPTI_E_MIG = 43,
    CUPTI_E_WSL = 45,
};

enum cupti_domain { CUPTI_DRIVER_API = 1, CUPTI_RUNTIME_API = 2, CUPTI_RESOURCE = 3 };
enum cupti_site { CUPTI_ENTER = 0, CUPTI_EXIT = 1 };
enum cupti_resource { CUPTI_CONTEXT_CREATED = 1, CUPTI_CONTEXT_DESTROY_STARTING = 2 };
enum { CUPTI_FLUSH_FORCED = 1 };
enum cupti_attribute { CUPTI_ZEROED_BUFFERS = 5 }; /* a size_t: buffers come filled with zeros */

enum cupti_kind {
    CUPTI_MEMCPY = 1,
    CUPTI_MEMSET = 2,
    CUPTI_CONCURRENT_KERNEL = 10,
    CUPTI_OVERHEAD = 17,
    CUPTI_MEMCPY2 = 22, /* from one GPU to another */
    CUPTI_SYNCHRONIZATION = 38,
};

/* CUpti_ActivityKernel8 .. 11 */
struct cupti_kernel {
    uint32_t    kind;
    uint8_t     cache_config, shared_config;
    uint16_t    registers;
    uint32_t    cache_requested, cache_executed;
    uint64_t    start, end, completed; /* ns of cuptiGetTimestamp(); 0: not known */
    uint32_t    device, context, stream;
    int32_t     grid[3], block[3];
    int32_t     shared_static, shared_dynamic;
    uint32_t    local_per_thread, local_total;
    uint32_t    correlation;
    int64_t     grid_id;
    const char *name; /* mangled */
    void       *reserved;
    uint64_t    queued, submitted;
    uint8_t     launch_type, shared_carveout_requested, shared_carveout, padding;
    uint32_t    shared_executed;
    uint64_t    node; /* of a CUDA graph; 0: none */
    uint32_t    shared_limit;
    uint32_t    graph;
};

/* CUpti_ActivityMemcpy5, 6 */
struct cupti_memcpy {
    uint32_t kind;
    uint8_t  copy_kind, source_kind, target_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t correlation, runtime_correlation, padding;
    void    *reserved;
    uint64_t node;
    uint32_t graph;
};

/* CUpti_ActivityMemcpyPtoP4 */
struct cupti_memcpy2 {
    uint32_t kind;
    uint8_t  copy_kind, source_kind, target_kind, flags;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t source_device, source_context, target_device, target_context;
    uint32_t correlation;
    void    *reserved;
    uint64_t node;
    uint32_t graph;
};

/* CUpti_ActivityMemset4 */
struct cupti_memset {
    uint32_t kind, value;
    uint64_t bytes, start, end;
    uint32_t device, context, stream;
    uint32_t correlation;
    uint16_t flags, memory_kind;
    uint32_t padding;
    void    *reserved;
    uint64_t node;
    uint32_t graph;
};

/* CUpti_ActivityOverhead, 2, 3 */
struct cupti_overhead {
    uint32_t kind, overhead_kind, object_kind;
    uint32_t object[3]; /* of a thread: its process and pthread id; packed in CUPTI's union */
    uint64_t start, end;
};

/* CUpti_CallbackData */
struct cupti_call {
    uint32_t    site;
    const char *function;
    const void *parameters;
    void       *result;
    const char *symbol;
    void       *context;
    uint32_t    context_id;
    uint64_t   *data; /* ours from ENTER to EXIT */
    uint32_t    correlation;
};

/* CUpti_ResourceData */
struct cupti_resource_data {
    void *context, *stream, *descriptor;
};

struct cupti_subscriber;
typedef void cupti_callback(void *user, uint32_t domain, uint32_t id, const void *data);
typedef void cupti_buffer_requested(uint8_t **buffer, size_t *size, size_t *most_records);
typedef void cupti_buffer_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size,
                                    size_t valid);

/* CUPTI_CALL(result of enum cupti_result, name without "cupti", arguments) */
#define CUPTI_FUNCTIONS(CUPTI_CALL)                                                           \
    CUPTI_CALL(GetVersion, uint32_t *)                                                        \
    CUPTI_CALL(GetTimestamp, uint64_t *)                                                      \
    CUPTI_CALL(GetResultString, uint32_t, const char **)                                      \
    CUPTI_CALL(GetCallbackName, uint32_t, uint32_t, const char **)                            \
    CUPTI_CALL(Subscribe, struct cupti_subscriber **, cupti_callback *, void *)               \
    CUPTI_CALL(Unsubscribe, struct cupti_subscriber *)                                        \
    CUPTI_CALL(EnableCallback, uint32_t, struct cupti_subscriber *, uint32_t, uint32_t)       \
    CUPTI_CALL(EnableDomain, uint32_t, struct cupti_subscriber *, uint32_t)                   \
    CUPTI_CALL(ActivityRegisterCallbacks, cupti_buffer_requested *, cupti_buffer_completed *) \
    CUPTI_CALL(ActivityEnable, uint32_t)                                                      \
    CUPTI_CALL(ActivityDisable, uint32_t)                                                     \
    CUPTI_CALL(ActivitySetAttribute, uint32_t, size_t *, void *)                              \
    CUPTI_CALL(ActivityFlushAll, uint32_t)                                                    \
    CUPTI_CALL(ActivityGetNextRecord, uint8_t *, size_t, uint8_t **)                          \
    CUPTI_CALL(ActivityGetNumDroppedRecords, void *, uint32_t, size_t *)

/* libcupti's functions, once it is open (library.h). */
struct cupti {
#define CUPTI_MEMBER(name, ...) uint32_t (*name)(__VA_ARGS__);
    CUPTI_FUNCTIONS(CUPTI_MEMBER)
#undef CUPTI_MEMBER
};

#endif
