# SPDX-License-Identifier: Apache-2.0
"""The machine's description: processor, memory, GPUs, and the energy it has used.

Facts as the system reports them, for the trace; libsonde decides what is shown of them.
"""
import contextlib
import glob
import os

from .. import _record


def _read(path):
    with contextlib.suppress(OSError):
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    return ""


def _fields(path):
    """The "key : value" lines of a file, as a list of pairs."""
    pairs = (line.partition(":") for line in _read(path).splitlines())
    return [(key.strip(), value.strip()) for key, colon, value in pairs if colon]


def _processor():
    fields = _fields("/proc/cpuinfo")
    names = [value for key, value in fields if key in ("model name", "Model")]
    cores, package = set(), "0"
    for key, value in fields:
        if key == "physical id":
            package = value
        elif key == "core id":
            cores.add((package, value))
    clock = _read("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq").strip()
    megahertz = [value for key, value in fields if key == "cpu MHz"]
    hertz = int(clock) * 1000 if clock.isdigit() else 0
    if not hertz and megahertz:
        hertz = int(max(map(float, megahertz)) * 1e6)
    total = os.cpu_count() or 1
    return [("cpu", names[0] if names else ""), ("architecture", os.uname().machine),
            ("cores", len(cores) or total), ("cpus", total), ("hertz", hertz)]


def _memory():
    sizes = {key: int(value.split()[0]) * 1024 for key, value in _fields("/proc/meminfo")
             if value.endswith("kB")}
    total, available = sizes.get("MemTotal", 0), sizes.get("MemAvailable", 0)
    return [("memory_bytes", total), ("available_bytes", available), ("used_bytes", total - available)]


def _gpus(torch):
    if torch is None or not torch.cuda.is_available():
        return []
    found = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return [pair for one in found for pair in (("gpu", one.name), ("gpu_bytes", one.total_memory))]


def describe(torch=None):
    """The members of the fact "machine"."""
    system = os.uname()
    return [("system", system.sysname), ("node", system.nodename), ("release", system.release),
            *_processor(), *_memory(), *_gpus(torch)]


# ---------------------------------------------------------------------------- energy

class Rapl:
    """The processor packages' counters (Intel and AMD), where they may be read."""

    source = "RAPL, processor packages"

    def __init__(self):
        self._paths = [path for path in sorted(glob.glob("/sys/class/powercap/*-rapl:?/energy_uj"))
                       if os.access(path, os.R_OK)]
        self._wraps = [int(_read(os.path.join(os.path.dirname(path), "max_energy_range_uj")) or 0)
                       for path in self._paths]
        self._last = [0] * len(self._paths)
        self._turns = [0] * len(self._paths)

    def usable(self):
        return bool(self._paths) and self.microjoules() is not None

    def microjoules(self):
        total = 0
        for i, path in enumerate(self._paths):
            text = _read(path).strip()
            if not text.isdigit():
                return None
            now = int(text)
            if now < self._last[i]:
                self._turns[i] += 1  # the counter wrapped around
            self._last[i] = now
            total += now + self._turns[i] * self._wraps[i]
        return total


class Nvml:
    """The GPU's own counter. By its UUID: NVML may number GPUs in another order than CUDA."""

    source = "NVML, the whole GPU"

    def __init__(self, uuid):
        self._uuid = f"GPU-{uuid}"

    def usable(self):
        return self.microjoules() is not None

    def microjoules(self):
        return _record.gpu_energy(self._uuid)


def energy_meter(device):
    """Of the device; (None, reason) if there is no counter."""
    if device.type == "cuda":
        import torch
        uuid = getattr(torch.cuda.get_device_properties(device), "uuid", None)
        meter = Nvml(uuid) if uuid is not None else None
        return (meter, "") if meter and meter.usable() else (
            None, "NVML does not tell the GPU's energy")
    meter = Rapl()
    if meter.usable():
        return meter, ""
    there = glob.glob("/sys/class/powercap/*-rapl:?")
    return None, ("RAPL may not be read: ask root to allow reading "
                  "/sys/class/powercap/*/energy_uj" if there else "this machine has no RAPL")
