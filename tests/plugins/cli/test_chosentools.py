"""`--tools`: what a prompt says of the tools, and what becomes of calls of others."""

import pytest

from pegboard.errors import InvalidInputError, NotFoundError
from pegboard_plugins.cli.chosentools import switches

KNOWN = {"read": "read", "edit": "edit", "write": "edit", "webfetch": "webfetch"}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ((), {}),
        (("read",), {"*": False, "read": True}),
        (("edit",), {"*": False, "edit": True, "write": False}),
        (("write",), {"*": False, "write": True}),
        (("web*", "edit", "write"), {"*": False, "edit": True, "write": True, "webfetch": True}),
    ],
)
def test_the_chosen_tools_alone_are_on(chosen: tuple[str, ...], expected: dict[str, bool]) -> None:
    assert switches(chosen, KNOWN) == expected


def test_a_name_that_is_none_has_the_nearest_or_all() -> None:
    with pytest.raises(NotFoundError, match=r"tool not found: raed. Did you mean read"):
        switches(("raed",), KNOWN)
    with pytest.raises(InvalidInputError, match="the tools are read, edit, write, webfetch"):
        switches(("zzzzzz",), KNOWN)
