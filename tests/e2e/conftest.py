# SPDX-License-Identifier: Apache-2.0
"""What holds for all end-to-end tests, before any of them is imported."""
import os

# Threads of OpenMP that wait for work spin otherwise: two tests at a time then take each other's cores.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import pytest  # noqa: E402


# ---- the report page in a browser (page_tools.py)

@pytest.fixture(scope="module")
def browser():
    from page_tools import open_browser
    with open_browser() as one:
        yield one


@pytest.fixture(scope="module")
def page_traces(tmp_path_factory):
    """page_traces(CASE, ..): a generated trace and its page, made when they are first asked for."""
    from page_tools import page_maker
    return page_maker(tmp_path_factory.mktemp("pages"))


@pytest.fixture
def opened(browser, page_traces):
    """opened(CASE, ..): that trace, and its page in the browser. At the end no page may have had a fault."""
    from page_tools import opened_pages
    with opened_pages(browser, page_traces) as show:
        yield show
