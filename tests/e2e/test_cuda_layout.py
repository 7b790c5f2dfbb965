# SPDX-License-Identifier: Apache-2.0
"""What the CUDA probe takes CUPTI's records, callbacks and numbers to be, against its headers."""
import pathlib
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
COMPILER = shutil.which("cc") or shutil.which("gcc")

PROGRAM = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cupti_version.h>
#include <cupti_activity.h>
#include <cupti_callbacks.h>
#include <cupti_runtime_cbid.h>
#include <cupti_driver_cbid.h>

/* Names that both have. */
#define CUPTI_OK OURS_OK
#include "probes/cuda/cupti.h"

static int wrong;

static void check(const char *name, unsigned long long ours, unsigned long long header)
{
    if (ours != header) {
        printf("%s: %llu in cupti.h, %llu in the header\n", name, ours, header);
        wrong = 1;
    }
}
#define AT(ours, member, theirs, field) \
    check(#ours "." #member, offsetof(struct ours, member), offsetof(theirs, field)); \
    check("size of " #ours "." #member, sizeof ((struct ours *)0)->member, sizeof ((theirs *)0)->field * \
          (sizeof ((struct ours *)0)->member == 12 ? 3 : 1))
#define IS(ours, theirs) check(#ours, ours, theirs)

int main(void)
{
    AT(cupti_kernel, kind, KERNEL, kind);
    AT(cupti_kernel, registers, KERNEL, registersPerThread);
    AT(cupti_kernel, start, KERNEL, start);
    AT(cupti_kernel, end, KERNEL, end);
    AT(cupti_kernel, device, KERNEL, deviceId);
    AT(cupti_kernel, context, KERNEL, contextId);
    AT(cupti_kernel, stream, KERNEL, streamId);
    AT(cupti_kernel, grid, KERNEL, gridX);
    AT(cupti_kernel, block, KERNEL, blockX);
    AT(cupti_kernel, shared_static, KERNEL, staticSharedMemory);
    AT(cupti_kernel, shared_dynamic, KERNEL, dynamicSharedMemory);
    AT(cupti_kernel, correlation, KERNEL, correlationId);
    AT(cupti_kernel, name, KERNEL, name);
    AT(cupti_kernel, node, KERNEL, graphNodeId);
    AT(cupti_kernel, graph, KERNEL, graphId);
#define COPY_AT(ours, theirs) \
    AT(ours, copy_kind, theirs, copyKind); \
    AT(ours, source_kind, theirs, srcKind); \
    AT(ours, target_kind, theirs, dstKind); \
    AT(ours, bytes, theirs, bytes); \
    AT(ours, start, theirs, start); \
    AT(ours, end, theirs, end); \
    AT(ours, device, theirs, deviceId); \
    AT(ours, context, theirs, contextId); \
    AT(ours, stream, theirs, streamId); \
    AT(ours, correlation, theirs, correlationId); \
    AT(ours, node, theirs, graphNodeId)
    COPY_AT(cupti_memcpy, MEMCPY);
    COPY_AT(cupti_memcpy2, CUpti_ActivityMemcpyPtoP4);
    AT(cupti_memset, bytes, CUpti_ActivityMemset4, bytes);
    AT(cupti_memset, start, CUpti_ActivityMemset4, start);
    AT(cupti_memset, end, CUpti_ActivityMemset4, end);
    AT(cupti_memset, device, CUpti_ActivityMemset4, deviceId);
    AT(cupti_memset, context, CUpti_ActivityMemset4, contextId);
    AT(cupti_memset, stream, CUpti_ActivityMemset4, streamId);
    AT(cupti_memset, correlation, CUpti_ActivityMemset4, correlationId);
    AT(cupti_memset, memory_kind, CUpti_ActivityMemset4, memoryKind);
    AT(cupti_memset, node, CUpti_ActivityMemset4, graphNodeId);
    AT(cupti_overhead, overhead_kind, OVERHEAD, overheadKind);
    AT(cupti_overhead, start, OVERHEAD, start);
    AT(cupti_overhead, end, OVERHEAD, end);
    AT(cupti_call, site, CUpti_CallbackData, callbackSite);
    AT(cupti_call, function, CUpti_CallbackData, functionName);
    AT(cupti_call, context, CUpti_CallbackData, context);
    AT(cupti_call, data, CUpti_CallbackData, correlationData);
    AT(cupti_call, correlation, CUpti_CallbackData, correlationId);
    AT(cupti_resource_data, context, CUpti_ResourceData, context);

    IS(CUPTI_ZEROED_BUFFERS, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
    IS(CUPTI_MEMCPY, CUPTI_ACTIVITY_KIND_MEMCPY);
    IS(CUPTI_MEMSET, CUPTI_ACTIVITY_KIND_MEMSET);
    IS(CUPTI_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    IS(CUPTI_OVERHEAD, CUPTI_ACTIVITY_KIND_OVERHEAD);
    IS(CUPTI_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMCPY2);
    IS(CUPTI_DRIVER_API, CUPTI_CB_DOMAIN_DRIVER_API);
    IS(CUPTI_RUNTIME_API, CUPTI_CB_DOMAIN_RUNTIME_API);
    IS(CUPTI_RESOURCE, CUPTI_CB_DOMAIN_RESOURCE);
    IS(CUPTI_ENTER, CUPTI_API_ENTER);
    IS(CUPTI_EXIT, CUPTI_API_EXIT);
    IS(CUPTI_CONTEXT_DESTROY_STARTING, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
    IS(CUPTI_FLUSH_FORCED, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
    IS(CUPTI_E_MAX_LIMIT_REACHED, CUPTI_ERROR_MAX_LIMIT_REACHED);
    IS(CUPTI_E_NOT_COMPATIBLE, CUPTI_ERROR_NOT_COMPATIBLE);
    IS(CUPTI_E_NOT_INITIALIZED, CUPTI_ERROR_NOT_INITIALIZED);
    IS(CUPTI_E_PRIVILEGES, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
    IS(CUPTI_E_MULTIPLE_SUBSCRIBERS, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
#define CBID_RUNTIME(name) CUPTI_RUNTIME_TRACE_CBID_##name
#define CBID_DRIVER(name) CUPTI_DRIVER_TRACE_CBID_##name
#define SND_CUDA_CALL(api, number, name, recorded, arrow) IS(number, CBID_##api(name));
#include "format/cudacalls.def"
    if (CUPTI_API_VERSION < CUPTI_VERSION_LEAST || CUPTI_API_VERSION > CUPTI_VERSION_MOST) {
        printf("version %d is not one that the probe takes\n", CUPTI_API_VERSION);
        wrong = 1;
    }
    printf("CUPTI %d\n", CUPTI_API_VERSION);
    return wrong;
}
"""


def headers():
    """Folders of the Python environment with CUPTI's headers."""
    found = []
    for folder in sys.path:
        for place in ("nvidia/cu13/include", "nvidia/cuda_cupti/include"):
            path = pathlib.Path(folder or ".") / place
            if (path / "cupti_activity.h").exists() and path not in found:
                found.append(path)
    return found


def newest(text, stem, numbers):
    """The latest version of a struct: CUpti_ActivityKernel11, 10, .. or without a number."""
    return next(f"{stem}{number}" for number in numbers if f"}} {stem}{number};" in text)


@pytest.mark.skipif(not COMPILER, reason="no C compiler")
def test_declarations_are_cuptis(tmp_path):
    found = headers()
    if not found:
        pytest.skip("CUPTI's headers are not installed (they come with CUDA builds of torch)")
    (tmp_path / "layout.c").write_text(PROGRAM)
    for folder in found:
        text = (folder / "cupti_activity.h").read_text()
        names = {"KERNEL": newest(text, "CUpti_ActivityKernel", (12, 11, 10, 9, 8)),
                 "MEMCPY": newest(text, "CUpti_ActivityMemcpy", (7, 6, 5)),
                 "OVERHEAD": newest(text, "CUpti_ActivityOverhead", (4, 3, 2, ""))}
        built = subprocess.run(
            [COMPILER, "-w", "-o", tmp_path / "layout", tmp_path / "layout.c", f"-I{ROOT}/src",
             f"-I{folder}", f"-I{ROOT}/tests/gpu/headers",
             *(f"-D{key}={value}" for key, value in names.items())], capture_output=True, text=True)
        assert built.returncode == 0, built.stderr
        run = subprocess.run([tmp_path / "layout"], capture_output=True, text=True)
        assert run.returncode == 0, run.stdout
        assert run.stdout.startswith("CUPTI ")
