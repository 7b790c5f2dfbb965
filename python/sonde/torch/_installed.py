# SPDX-License-Identifier: Apache-2.0
"""Whether torch is there. A broken torch is an error of its own; an absent one is not."""
import importlib
import importlib.util


def torch_module(name="torch"):
    """The module `name` of torch, or None where torch is not installed."""
    try:
        if importlib.util.find_spec("torch") is None:
            return None
    except ValueError:  # sys.modules["torch"] is None: imports of it are blocked
        return None
    return importlib.import_module(name)
