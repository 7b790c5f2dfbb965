# SPDX-License-Identifier: Apache-2.0
"""The probe for the installed torch: its path, built first if needed.

Its C++ source (_native/, a copy of src/probes/torch and of the headers that it includes) follows
torch's own binary interface, so there is one for each torch and each CPython. Looked for in this order:
  in a wheel, built ahead (make wheel-probes): sonde/_probes/torch-VERSION-ABI-PYTHON-PLATFORM-HASH.so;
  $XDG_CACHE_HOME/sonde/torch-VERSION-ABI-HASH/shim.so, which is compiled when it is first needed;
  where there is no C++ compiler, sonde/_native/torch_plain.so: names and times alone.
`python -m sonde.torch` does that ahead of time and prints the path; with `--into FOLDER` it builds
the one for a wheel, and with `--torch FOLDER --recorder FILE` too for a torch that is not installed but
unpacked there, of another machine perhaps (tools/wheel-probes).
"""
import contextlib
import ctypes
import fcntl
import hashlib
import os
import re
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time

from .. import _record
from .._core import Error
from ._torch_build import of_folder, of_module

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_UNITS = ("torch_arguments", "torch_calls", "torch_collectives", "torch_hooks", "torch_inputs", "torch_names",
          "torch_operators", "torch_thread",
          "place/torch_compiledcode", "place/torch_kernels", "place/torch_modulecalls", "place/torch_modules",
          "place/torch_modulewalk", "place/torch_places", "place/torch_scripted")
_UNITY = "probes/torch/unity.cpp"  # includes all the others
_SOURCES = (_UNITY, "probes/torch/shim.cpp", "probes/torch/shim.h",
            *(f"probes/torch/{unit}.{kind}" for unit in _UNITS for kind in ("cpp", "h")),
            "hook/slots.h", "pystack/interpreter/py_layout.h", "pystack/interpreter/py_layouts.def",
            "pystack/interpreter/pyframes.h", "pystack/interpreter/range_depth.h", "pystack/interpreter/c_calls.h",
            "format/known.h", "format/known.def", "format/limits.h",
            "format/metadata.h", "format/metadata.def",
            "sonde/record.h", "sonde/dtypes.h", "sonde/probe.h", "sonde/lane.h", "sonde/error.h")
_PROBES = os.path.join(_PACKAGE, "_probes")
_PLAIN = os.path.join(_PACKAGE, "_native", "torch_plain.so")
_SAID_AFTER_S = 2

_library = None  # where it is, once known


def _source_folder():
    """Where the package has the sources that the probe is compiled from."""
    folder = os.path.join(_PACKAGE, "_native")
    if all(os.path.exists(os.path.join(folder, name)) for name in _SOURCES):
        return folder
    raise Error(f"the sources of the torch probe are not in {folder}; install sonde again")


def _has_other_writers(found):
    """Can anybody but us and root put something in this folder, or take it away?"""
    if found.st_uid not in (0, os.getuid()):
        return True
    if found.st_mode & stat.S_ISVTX:  # as /tmp: others cannot rename what is ours
        return False
    return bool(found.st_mode & 0o002 or found.st_mode & 0o020 and not _is_own_group(found.st_gid))


def _is_own_group(number):
    """A group of the user alone, as many systems make one for each."""
    if number == 0:
        return True
    import grp
    import pwd
    with contextlib.suppress(KeyError):
        group, user = grp.getgrgid(number), pwd.getpwuid(os.getuid())
        return number == user.pw_gid and group.gr_name == user.pw_name and not group.gr_mem
    return False


def _is_ours(folder):
    """Only we write it, and only we and root the folders above it."""
    found = os.lstat(folder)
    if (not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022
            or not os.access(folder, os.W_OK)):
        return False
    above = os.path.dirname(os.path.realpath(folder))
    while not _has_other_writers(os.stat(above)):
        if above == os.path.dirname(above):
            return True
        above = os.path.dirname(above)
    return False


def _cache_folder():
    """A folder that is ours to write: its files are loaded into the process."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # its specification says to ignore relative paths
        base = os.path.join(os.path.expanduser("~"), ".cache")
    for folder in (os.path.join(base, "sonde"),
                   os.path.join(tempfile.gettempdir(), f"sonde-{os.getuid()}")):
        with contextlib.suppress(OSError):
            os.makedirs(folder, mode=0o700, exist_ok=True)
            if _is_ours(folder):
                return folder
    raise Error(f"cannot store the torch probe: {base} is not writable, or it or a parent folder "
                "is writable by others; set XDG_CACHE_HOME to a private folder")


def _compilers():
    asked = os.environ.get("CXX")
    return [asked] if asked else ["c++", "g++", "clang++"]


class _NoCompiler(Error):
    pass


def _find_compiler():
    for name in _compilers():
        words = name.split()
        if words and shutil.which(words[0]):
            return words
    raise _NoCompiler("no C++ compiler to build the torch probe with (looked for "
                      f"{', '.join(_compilers())}): "
                "apt install g++, or set CXX")


def _command(torch, compiler, standard, source, output, more, unit=_UNITY):
    """As torch's own extensions are built; NDEBUG, since its headers differ without."""
    include = os.path.join(torch.folder, "include")
    includes = [include, os.path.join(include, "torch/csrc/api/include"), *torch.python_headers]
    return [*compiler, "-O2", "-DNDEBUG", f"-std={standard}", "-fPIC", "-shared", "-w",
            "-fvisibility=hidden", f"-D_GLIBCXX_USE_CXX11_ABI={torch.cxx11_abi}",
            *(word for folder in dict.fromkeys(includes) for word in ("-isystem", folder)),
            "-I", source, os.path.join(source, unit), "-o", output,
            "-L", os.path.join(torch.folder, "lib"), "-Wl,--no-as-needed", "-l:libc10.so",
            "-l:libtorch_cpu.so", torch.recorder, "-Wl,-z,nodelete", *more]


def _wait(child, said):
    """Waits for its end. If that takes a while: what goes on and, on a terminal, for how long by now."""
    begin = time.monotonic()
    try:
        child.wait(_SAID_AFTER_S)
        return
    except subprocess.TimeoutExpired:
        is_terminal = bool(sys.stderr and sys.stderr.isatty())
    _say(f"sonde: {said}", end="" if is_terminal else "\n")
    while is_terminal and child.poll() is None:
        _say(f"\rsonde: {said}: {time.monotonic() - begin:.0f} s", end="")
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(1)
    child.wait()
    how = f"{'done' if child.returncode == 0 else 'failed'} after {time.monotonic() - begin:.0f} s"
    _say(f"\r\033[Ksonde: {said}: {how}" if is_terminal else f"sonde: building the probe: {how}")


def _say(text, end="\n"):
    if sys.stderr:
        print(text, end=end, file=sys.stderr, flush=True)


def _run(command, said):
    """Its exit status and output."""
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output,
                                 stderr=subprocess.STDOUT, env=_plain_environment())
        _wait(child, said)
        output.seek(0)
        return child.returncode, output.read()


def _plain_environment():
    """A compiler under `sonde run` is no part of what is recorded."""
    return {key: value for key, value in os.environ.items()
            if not key.startswith("SONDE_") and key != "LD_PRELOAD"}


def _first_error(text):
    lines = [line for line in text.splitlines() if "error" in line.lower()] or text.splitlines()
    return lines[0].strip()[:300] if lines else "the compiler said nothing"


def _build(torch, source, target, *more):
    compiler = _find_compiler()
    partial = f"{target}.{os.getpid()}"
    said = f"building the probe for torch {torch.version}, once (about 20 s)"
    try:
        for standard in torch.standards:
            status, text = _run(_command(torch, compiler, standard, source, partial, more), said)
            if status == 0:
                os.replace(partial, target)
                return
            first = _first_error(text)
        raise Error(f"cannot build the torch probe for torch {torch.version} with "
                    f"{' '.join(compiler)}: {first}")
    finally:
        with contextlib.suppress(OSError):
            os.unlink(partial)


def _add_sources(digest, source):
    for name in _SOURCES:
        with open(os.path.join(source, name), "rb") as file:
            digest.update(name.encode() + b"\0" + file.read())


def _identity(torch, source):
    """Changes with everything that the built library depends on."""
    digest = hashlib.sha256()
    _add_sources(digest, source)
    for word in (torch.version, torch.folder, sys.implementation.cache_tag, sys.version, sysconfig.get_platform()):
        digest.update(word.encode() + b"\0")
    return f"torch-{re.sub('[^0-9A-Za-z.+_-]', '_', torch.version)}-{torch.cxx11_abi}-{digest.hexdigest()[:16]}"


def _wheel_name(torch, source):
    """Of a probe in a wheel: of a torch's release, whatever device it is for, and a CPython."""
    digest = hashlib.sha256()
    _add_sources(digest, source)
    release = torch.version.split("+")[0]
    return (f"torch-{release}-{torch.cxx11_abi}-{sys.implementation.cache_tag}-{sysconfig.get_platform()}-"
            f"{digest.hexdigest()[:16]}.so")


def _from_wheel(torch, source):
    """The wheel's own probe, or None: there is none for this torch, or it cannot be loaded here."""
    path = os.path.join(_PROBES, _wheel_name(torch, source))
    if not os.path.exists(path):
        return None
    try:
        ctypes.CDLL(path)
    except OSError:  # an older C++ library than that it was built with
        return None
    return path


def _from_cache(torch, source):
    folder = os.path.join(_cache_folder(), _identity(torch, source))
    target = os.path.join(folder, "shim.so")
    if not os.path.exists(target):
        os.makedirs(folder, mode=0o700, exist_ok=True)
        # Many processes of a job come here at once: one builds, the others wait for it.
        with open(os.path.join(folder, "lock"), "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.exists(target):
                _build(torch, source, target)
    return target


def _installed_build():
    import torch
    return of_module(torch, _record.library())


def library():
    """Where the probe for this torch is; built first if need be. Raises sonde.Error."""
    global _library
    if _library is None:
        torch = _installed_build()
        source = _source_folder()
        try:
            _library = _from_wheel(torch, source) or _from_cache(torch, source)
        except _NoCompiler as error:
            if not os.path.exists(_PLAIN):
                raise
            print(f"sonde: only names and times are recorded of PyTorch: {error}", file=sys.stderr)
            _library = _PLAIN
    return _library


def build_into(folder, torch=None):
    """Builds the probe that a wheel carries for this torch; returns where it is.

    Probes of other sources than these are removed: no package would find them.
    """
    torch = torch or _installed_build()
    source = _source_folder()
    os.makedirs(folder, exist_ok=True)
    name = _wheel_name(torch, source)
    target = os.path.join(folder, name)
    for other in os.listdir(folder):
        if other.startswith("torch-") and other.split("-")[-1] != name.split("-")[-1]:
            os.unlink(os.path.join(folder, other))
    if not os.path.exists(target):  # a wheel has the recorder in the package, beside sonde/_probes
        _build(torch, source, target, "-Wl,-rpath,$ORIGIN/../_native", "-s")
    return target


def main():
    usage = "usage: python -m sonde.torch [--into FOLDER [--torch FOLDER --recorder FILE]]"
    words = sys.argv[1:]
    given = dict(zip(words[::2], words[1::2]))
    if len(words) != 2 * len(given) or set(given) not in (set(), {"--into"}, {"--into", "--torch", "--recorder"}):
        sys.exit(usage)
    try:
        other = of_folder(given["--torch"], given["--recorder"]) if "--torch" in given else None
        print(build_into(given["--into"], other) if given else library())
    except Error as error:
        sys.exit(f"sonde: {error}")
    except ImportError:
        sys.exit("sonde: torch is not installed: nothing to build")
