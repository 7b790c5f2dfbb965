# SPDX-License-Identifier: Apache-2.0
"""What a profile adds to the top level of its Chrome trace: the user's texts, its id, its rank."""
import json
import uuid

from ._installed import torch_module


class Metadata:
    """The methods of a profile for that; it has `preset_metadata`, `_metadata` and `_trace_id`."""

    def add_metadata(self, key, value):
        """A text for the Chrome trace's top level."""
        self._metadata[key] = json.dumps(value)

    def add_metadata_json(self, key, value):
        """The same, of a value that is JSON already."""
        self._metadata[key] = value

    def preset_metadata_json(self, key, value):
        """The same, of a profile that has not started."""
        self.preset_metadata[key] = value

    def set_custom_trace_id_callback(self, callback):
        self.custom_trace_id_callback = callback

    def get_trace_id(self):
        return self._trace_id

    def create_trace_id(self):
        """The next one: the callback's, or a new one."""
        make = self.custom_trace_id_callback
        return make() if make else self.default_trace_id()

    def default_trace_id(self):
        return f"{uuid.uuid4().int:032X}"

    @property
    def trace_id(self):
        return self._trace_id

    def _all_metadata(self):
        flags = ("profile_memory", "with_stack", "record_shapes", "with_modules", "with_flops")
        found = {name: "1" for name in flags if getattr(self, name)}
        distributed = _distributed_info()
        if distributed:
            found["distributedInfo"] = json.dumps(distributed)
        return {"trace_id": json.dumps(self._trace_id), **found, **self.preset_metadata,
                **self._metadata}


def _distributed_info():
    """The rank of this process and its backend, as HTA and others look for them."""
    dist = torch_module("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    info = {"backend": dist.get_backend(), "rank": dist.get_rank(),
            "world_size": dist.get_world_size(), "pg_count": dist.get_pg_count()}
    configs = getattr(dist.distributed_c10d, "_get_all_pg_configs", None)
    if configs:
        info["pg_config"] = configs()
    return info
