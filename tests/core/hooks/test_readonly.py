"""Read-only views: nobody changes what others see, and what comes back is plain."""

import copy
import json
from collections.abc import Callable
from operator import is_
from typing import Any

import msgspec
import pytest

from pegboard.hooks.readonly import ReadOnlyViews
from support.plugins.hook_samples import CALL, DEFINITION, REQUEST, TURN, VIEW

VALUE: dict[str, Any] = {"a": {"b": [1, {"c": 2}]}, "t": ({"x": 1},)}


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(x=1),
        lambda value: value.pop("a"),
        lambda value: value.clear(),
        lambda value: value.setdefault("x", 1),
        lambda value: value.__setitem__("a", 1),
        lambda value: value.__delitem__("a"),
        lambda value: value.popitem(),
        lambda value: value.__ior__({"x": 1}),
        lambda value: value["a"]["b"].append(1),
        lambda value: value["a"]["b"].sort(),
        lambda value: value["a"]["b"].__iadd__([1]),
        lambda value: value["a"]["b"][1].update(c=3),
        lambda value: value["t"][0].clear(),
    ],
)
def test_a_view_refuses_every_change(change: Callable[[Any], object]) -> None:
    before = copy.deepcopy(VALUE)

    with pytest.raises(TypeError, match="read-only"):
        change(ReadOnlyViews().view(VALUE))

    assert before == VALUE


def test_a_view_reads_and_encodes_like_the_value() -> None:
    view = ReadOnlyViews().view(VALUE)

    assert view == VALUE
    assert json.dumps(view) == json.dumps(VALUE)
    assert msgspec.json.encode(view) == msgspec.json.encode(VALUE)
    assert {**view, "more": 1} == {**VALUE, "more": 1}


@pytest.mark.parametrize("taken", [copy.deepcopy, lambda view: ReadOnlyViews().plain(view)])
def test_a_copy_of_a_view_can_be_changed(taken: Callable[[Any], Any]) -> None:
    mine = taken(ReadOnlyViews().view(VALUE))

    mine["a"]["b"][1]["c"] = 3

    assert VALUE["a"]["b"][1]["c"] == 2
    assert type(mine["a"]["b"]) is list


def test_structs_and_calls_are_looked_into() -> None:
    made = ReadOnlyViews()

    with pytest.raises(TypeError):
        made.view(TURN).parts[0].metadata["a"].append(2)  # type: ignore[union-attr]
    with pytest.raises(TypeError):
        made.view(CALL).input["x"] = 1  # type: ignore[index]
    with pytest.raises(TypeError):
        made.view(VIEW).config.agent["x"] = 1  # type: ignore[assignment]


def test_plugins_in_a_row_are_handed_the_same_view() -> None:
    made = ReadOnlyViews()
    view = made.given(REQUEST)

    assert made.given(REQUEST) is view
    assert made.given(msgspec.structs.replace(REQUEST)) is not view


def test_messages_of_a_request_stay_the_same_objects() -> None:
    assert ReadOnlyViews().view(REQUEST).messages is REQUEST.messages


def test_a_turn_is_copied_once_and_comes_back_itself() -> None:
    made = ReadOnlyViews()

    view = made.view((TURN,))

    assert made.view((TURN,))[0] is view[0] is not TURN
    assert made.view(view)[0] is view[0]
    assert made.plain(view)[0] is TURN


@pytest.mark.parametrize("name", ["agent", "config"])
def test_what_is_handed_out_with_every_session_is_copied_once(name: str) -> None:
    made = ReadOnlyViews()

    views = [made.view(msgspec.structs.replace(VIEW)) for _ in range(2)]

    assert getattr(views[0], name) is getattr(views[1], name)
    assert made.plain(getattr(views[0], name)) is getattr(VIEW, name)


def test_a_view_goes_with_its_value() -> None:
    made = ReadOnlyViews()
    turns = tuple(copy.copy(TURN) for _ in range(3))
    view = made.view(turns)[0]
    made.view(longer := (turns[0], copy.copy(TURN)))

    del turns
    assert made.plain(view) is longer[0]
    assert len(made._views) == len(made._values) == 2

    made.view((TURN,))
    del longer
    assert made.plain(view) == TURN
    assert len(made._views) == len(made._values) == 1


def test_a_long_history_is_handed_out_and_taken_back_as_itself() -> None:
    made = ReadOnlyViews()
    turns = tuple(copy.copy(TURN) for _ in range(5000))
    views = made.view(turns)
    longer = (*turns[:-1], copy.copy(TURN), copy.copy(TURN))

    assert made.view(turns) is views
    assert all(map(is_, made.view(longer)[:-2], views[:-1]))
    assert all(map(is_, made.plain(made.view(longer)), longer))


@pytest.mark.parametrize("part", [slice(3), slice(2, None), slice(None, None, -1), slice(0)])
def test_another_history_has_the_views_of_its_own_turns(part: slice) -> None:
    made = ReadOnlyViews()
    turns = tuple(copy.copy(TURN) for _ in range(5))
    views = made.view(turns)

    assert all(map(is_, made.view(turns[part]), views[part]))
    assert len(made.view(turns[part])) == len(turns[part])


def test_tools_are_handed_out_and_taken_back_as_one_series_and_no_view_is_left_in_it() -> None:
    made = ReadOnlyViews()
    tools = tuple(copy.copy(DEFINITION) for _ in range(5))
    views = made.view(tools)

    assert made.view(tools) is views
    assert made.plain(views) is tools
    assert all(map(is_, made.view((*tools, copy.copy(DEFINITION))), views))
    assert all(map(is_, made.plain(made.view((tools[0], views[1]))), tools))
    assert all(map(is_, made.plain(made.view(views)), tools))
