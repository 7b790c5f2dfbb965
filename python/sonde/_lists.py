# SPDX-License-Identifier: Apache-2.0
"""The name under which older pickles know sonde.torch._lists."""
from .torch._lists import EventList, Events, _events_of, _list_of, rows_of  # noqa: F401
