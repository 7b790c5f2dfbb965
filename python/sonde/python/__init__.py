# SPDX-License-Identifier: Apache-2.0
"""Python programs: their functions, lines, memory and samples; and how `sonde run` starts in them."""
