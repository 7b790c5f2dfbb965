# SPDX-License-Identifier: Apache-2.0
"""What holds for all end-to-end tests, before any of them is imported."""
import os

# Threads of OpenMP that wait for work spin otherwise: two tests at a time then take each other's cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
