# SPDX-License-Identifier: Apache-2.0
"""The name under which older pickles know sonde.torch._result."""
from .torch._result import _unpack  # noqa: F401
