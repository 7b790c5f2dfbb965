# SPDX-License-Identifier: Apache-2.0
"""python -m sonde.torch: builds the probe for the torch that is installed, ahead of its first use."""
from . import _probe

if __name__ == "__main__":
    _probe.main()
