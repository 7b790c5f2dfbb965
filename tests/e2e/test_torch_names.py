# SPDX-License-Identifier: Apache-2.0
"""Ranges that have a name of their own: torch.compile's, the fast ones, the user's."""
import collections
import itertools

import pytest

torch = pytest.importorskip("torch", reason="torch is not installed: nothing to compare with")

import sonde  # noqa: E402
from torch_tools import CPU, FORMS  # noqa: E402

OPTIONS = ("record_shapes", "with_stack", "with_modules", "profile_memory")
SETS = [dict(zip(OPTIONS, on)) for on in itertools.product([False, True], repeat=len(OPTIONS))]


# ------------------------------------------------------------------- torch.compile

@pytest.fixture(scope="module")
def two_compiled():
    @torch.compile
    def first(x):
        return (x * 2).sin().sum()

    @torch.compile
    def second(x):
        return (x + 3).cos().mean()

    x = torch.randn(32, 32)

    def run():
        for _ in range(2):
            first(x)
            second(x)

    run()  # compiling is not what is compared
    return run


def counts(profiled):
    return collections.Counter({row.key: row.count for row in profiled.key_averages()
                                if row.key != "[memory]"})


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("options", SETS, ids=lambda one: "+".join(
    name for name in OPTIONS if one[name]) or "plain")
def test_compiled_regions_have_their_names(two_compiled, options, form):
    for _ in range(5):
        theirs, ours = FORMS[form](two_compiled, **options)
        assert counts(ours) == counts(theirs)
        assert counts(ours)["Torch-Compiled Region: 0/0"] == 2


def test_a_name_of_another_range_at_the_same_address():
    """The fast ranges keep their names on the heap, where one takes the place of the last."""
    names = [f"a range that is number {n:02}" for n in range(20)]

    def run():
        for name in names:
            with torch._C._profiler._RecordFunctionFast(name):
                pass

    for options in SETS:
        with sonde.profile(activities=[CPU], **options) as ours:
            run()
        assert [event.name for event in ours.events()] == names
