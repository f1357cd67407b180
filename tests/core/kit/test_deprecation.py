"""What goes says so where it is used, once for each place, and works until then."""

import asyncio
import warnings

import pytest

from pegboard import late_names
from pegboard.kit.deprecation import PegboardDeprecationWarning, deprecated


@deprecated("0.3", instead="total")
def add_all(*numbers: int) -> int:
    """Return the sum."""
    return sum(numbers)


@deprecated("0.3", instead="wait")
async def rest() -> str:
    return "rested"


def test_a_function_that_goes_names_what_comes_instead() -> None:
    with pytest.warns(PegboardDeprecationWarning) as caught:
        assert add_all(1, 2) == 3

    assert str(caught[0].message) == "add_all goes in Pegboard 0.3: use total"
    assert caught[0].filename == __file__


def test_so_does_one_that_is_awaited() -> None:
    with pytest.warns(PegboardDeprecationWarning, match="use wait"):
        assert asyncio.run(rest()) == "rested"


def test_a_place_is_warned_of_once() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            add_all(1)

    assert len(caught) == 1


def test_a_name_that_has_moved_leads_to_its_new_place() -> None:
    moved = {"Way": ("pegboard.snapshots:RestoreWay", "0.3")}
    value_of, names = late_names("pegboard.old", {"pegboard.errors": ("ToolError",)}, moved)

    with pytest.warns(PegboardDeprecationWarning) as caught:
        found = value_of("Way")

    assert getattr(found, "__name__", "") == "RestoreWay"
    text = "pegboard.old.Way goes in Pegboard 0.3: use pegboard.snapshots.RestoreWay"
    assert str(caught[0].message) == text
    assert caught[0].filename == __file__
    assert names() == ["ToolError"]
