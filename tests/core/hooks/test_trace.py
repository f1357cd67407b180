"""Digests and differences of what folds go through."""

import pytest

from hook_samples import PART
from pegboard import evolve
from pegboard.hooks.health import difference, digest
from pegboard.schema.session import Rule


def test_equal_values_have_one_digest() -> None:
    assert digest(("a", "b")) == digest(("a", "b")) != digest(("a", "c"))
    assert digest({"a": 1}) != digest({"a": 2})
    assert len(digest(object())) == 16


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("a\nb", "a\nc", ["-b", "+c"]),
        (("a",), ("a", "b\nc"), ["+b", "+c"]),
        ({"x": "1"}, {"x": "2"}, ["-x: 1", "+x: 2"]),
        (Rule("a", "b", "ask"), Rule("a", "c", "ask"), ['- "pattern": "b",', '+ "pattern": "c",']),
        ((evolve(PART, text="a\nb"),), (evolve(PART, text="a\nc"),), ['-b",', '+c",']),
    ],
)
def test_the_difference_shows_lines(before: object, after: object, changed: list[str]) -> None:
    lines = difference(before, after).splitlines()[3:]

    assert [line for line in lines if line[0] != " "] == changed


def test_other_values_have_no_difference() -> None:
    assert difference(3, 4) == difference((1,), (2,)) == ""
