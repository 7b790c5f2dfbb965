# SPDX-License-Identifier: Apache-2.0
"""What a model costs: `sonde model`, sonde.benchmark, summary, graph, memory_report, tensor_lines."""
