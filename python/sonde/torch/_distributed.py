# SPDX-License-Identifier: Apache-2.0
"""Which rank of a job this process is, and its process groups, as torch.distributed has them.

A program may give its processes their ranks itself (mp.spawn, init_process_group(rank=...)), so that no variable of the
environment has them; and it may make its groups before or after a recording begins.
"""
import json

from .. import _record
from ._installed import torch_module

_HELPER = "_new_process_group_helper"  # through which every group is made
_LONGEST = 3500  # bytes of a group's list of ranks; metadata is kept up to 4,096 bytes

_plain = None  # torch's own helper, while ours is in its place


def _module():
    dist = torch_module("torch.distributed")
    return dist.distributed_c10d if dist is not None and dist.is_available() else None


def _tell_rank(rank, size, backend):
    _record.rank(rank, size, str(backend))


def _tell_group(name, description, size, backend, ranks):
    """`ranks`: of the job, in the order of the group's; None: all of them."""
    fact = {"description": description, "size": size, "backend": str(backend)}
    if ranks is not None and len(json.dumps(ranks)) <= _LONGEST:
        fact["ranks"] = ranks
    _record.metadata(f"{_record.METADATA['JOB_GROUP']}{name}", json.dumps(fact))


def _tell_all(module):
    """The groups that there are already."""
    world = module._world
    default = world.default_pg
    if default is None:
        return
    _tell_rank(default.rank(), default.size(), module.get_backend(default))
    for group, name in list(world.pg_names.items()):
        ranks = world.pg_group_ranks.get(group) if group is not default else None
        in_order = sorted(ranks, key=ranks.get) if ranks else None
        _tell_group(name, getattr(group, "group_desc", ""), group.size(), module.get_backend(group), in_order)
    _record.torch_collectives()


def _make_group(group_size, group_rank, global_ranks_in_group, backend, *args, **kwargs):
    made = _plain(group_size, group_rank, global_ranks_in_group, backend, *args, **kwargs)
    group = made[0] if isinstance(made, tuple) else made
    try:
        size = group.size()  # one that this process is not in has none
        if not global_ranks_in_group:
            _tell_rank(group.rank(), size, backend)
        _tell_group(group.group_name, getattr(group, "group_desc", ""), size, backend,
                    [int(rank) for rank in global_ranks_in_group] or None)
        _record.torch_collectives()
    except (AttributeError, TypeError, ValueError):
        pass  # not a group, or of a torch that makes them in another way
    return made


def watch():
    """From now on, what becomes known of ranks and groups is recorded; and what is known already."""
    global _plain
    module = _module()
    if module is None:
        return
    if _plain is None and callable(getattr(module, _HELPER, None)):
        _plain = getattr(module, _HELPER)
        setattr(module, _HELPER, _make_group)
    try:
        _tell_all(module)
    except (AttributeError, TypeError, ValueError):
        pass  # a torch that keeps them elsewhere


def forget():
    """torch is as it was found."""
    global _plain
    module = _module()
    if _plain is not None and getattr(module, _HELPER, None) is _make_group:
        setattr(module, _HELPER, _plain)
    _plain = None
