# SPDX-License-Identifier: Apache-2.0
"""What each layer of a model costs, for a pipeline's scheduler: `sonde layers`, sonde.layers."""
