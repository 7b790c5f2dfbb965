# SPDX-License-Identifier: Apache-2.0
"""What the probe depends on of a build of torch: of the installed one, or of one that is only unpacked.

The latter may be of another machine, so nothing of it is run: it is read from its files.
"""
import os
import re
import sysconfig
import typing

from .._core import Error

# A function of libc10.so that takes a std::string: its name says which of the two that libstdc++ has.
_TAKES_A_STRING = re.compile(rb"_ZN3c105ErrorC[12]ENS_14SourceLocationE(Ss|NSt7__cxx11)")


class TorchBuild(typing.NamedTuple):
    version: str
    folder: str  # of the package: include, lib
    cxx11_abi: int
    standards: list  # of C++: the one that torch itself was built with, then the other
    python_headers: list
    recorder: str  # libsonde_record of the machine


def of_module(torch, recorder):
    """Of the torch that is imported here."""
    found = re.search(r"C\+\+ Version: (\d{4})", torch.__config__.show())
    return TorchBuild(torch.__version__, os.path.dirname(torch.__file__), int(torch._C._GLIBCXX_USE_CXX11_ABI),
                      _standards(17 if found and int(found[1]) < 2020 else 20),
                      [sysconfig.get_path("include"), sysconfig.get_path("platinclude")], recorder)


def of_folder(folder, recorder):
    """Of a torch whose wheel was unpacked there, for the Python that sysconfig describes (tools/cross-python). Raises sonde.Error."""
    version = _find(folder, "torch/version.py", rb"__version__ = '([^']+)'")
    standard = _find(folder, "torch/share/cmake/Torch/TorchConfig.cmake", rb"CXX_STANDARD (\d+)")
    name = _find(folder, "torch/lib/libc10.so", _TAKES_A_STRING)
    return TorchBuild(version.decode(), os.path.join(os.path.abspath(folder), "torch"), int(name != b"Ss"),
                      _standards(int(standard)), [sysconfig.get_config_var("INCLUDEPY")], recorder)


def _standards(number):
    return ["c++17", "c++20"] if number < 20 else ["c++20", "c++17"]


def _find(folder, name, pattern):
    path = os.path.join(folder, name)
    try:
        with open(path, "rb") as file:
            found = re.search(pattern, file.read())
    except OSError as error:
        raise Error(f"{path}: {error.strerror}: no wheel of torch was unpacked there") from None
    if not found:
        raise Error(f"{path}: does not state what the probe depends on: no wheel of torch 2.4 or later")
    return found[1]
