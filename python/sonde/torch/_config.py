# SPDX-License-Identifier: Apache-2.0
"""What is set in a torch._C._profiler._ExperimentalConfig.

torch gives it no attributes to read, but pickles it as a tuple whose order differs by version.
So each option is set alone in a config of our own, to see which place of the tuple it is.
"""
import functools
import re

# Options without effect here, and why. All others work, or need nothing (docs/TORCH.md).
_GPU = "of GPU activities, which are not recorded"
REASONS = {
    "profiler_metrics": _GPU,
    "profiler_measure_per_kernel": _GPU,
    "performance_events": _GPU,
    "enable_cuda_sync_events": _GPU,
    "disable_external_correlation": _GPU,
    "expose_kineto_event_metadata": _GPU,
    "custom_profiler_config": "of another profiler's backend",
    "adjust_timestamps": "of Vulkan events, which are not recorded",
}


@functools.lru_cache(maxsize=None)
def _places(kind):
    """Each option's place in the tuple; {} of a torch that tells nothing."""
    signature = re.search(r"__init__\((.*?)\) -> None", kind.__init__.__doc__ or "", re.S)
    arguments = re.findall(r"(\w+): ([\w.\[\]]+) = ", signature.group(1)) if signature else []
    values = {"bool": True, "str": "x"}
    places = {}
    try:
        plain = kind().__getstate__()
        for name, type_name in arguments:
            changed = kind(**{name: values.get(type_name, ["x"])}).__getstate__()
            found = [i for i, pair in enumerate(zip(plain, changed)) if pair[0] != pair[1]]
            if len(found) == 1:
                places[name] = found[0]
    except Exception:  # another torch's own
        return {}
    return places


def options_set(config):
    """The names of the options that are set; None if that is unknown."""
    if config is None:
        return set()
    places = _places(type(config))
    if not places:
        return None
    state, plain = config.__getstate__(), type(config)().__getstate__()
    return {name for name, place in places.items() if state[place] != plain[place]}


def reasons(names):
    """The message about options without effect."""
    return [f"experimental_config.{name} ({REASONS[name]})" for name in sorted(names or ())
            if name in REASONS]
