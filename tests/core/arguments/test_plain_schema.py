"""The schema that is made without pydantic is the one that pydantic makes."""

import math
import operator
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass
from functools import reduce
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.arguments.pydantic_model import build_model, model_schema
from pegboard.arguments.signature import (
    REQUIRED,
    NotPlainError,
    Parameter,
    is_exactly,
    is_scalar,
    plain_schema,
)


@dataclass
class Port:
    """A place to land."""

    name: str
    depth: float | None = None
    berths: list[str] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Voyage:
    start: Port
    stops: list[Port]
    kind: Literal["cargo", "mail"] = "cargo"


@dataclass
class Loop:
    inner: "Loop | None" = None


@dataclass
class Counted:
    name: str
    length: int = field(init=False, default=0)


@dataclass
class Unknown:
    part: "Nowhere"  # type: ignore[name-defined]  # noqa: F821 - the point


Namesake = make_dataclass("Port", [("dock", int)])


def refuse(parameter: str, reason: str) -> Exception:
    return AssertionError(f"{parameter}: {reason}")


def parameters(*given: tuple[Any, Any]) -> tuple[Parameter, ...]:
    return tuple(
        Parameter(name=f"x{index}", annotation=annotation, default=default)
        for index, (annotation, default) in enumerate(given)
    )


def assert_same(wanted: Sequence[Parameter]) -> None:
    assert plain_schema(wanted) == model_schema(wanted, refuse)


SCALARS = [str, int, float, bool, type(None), Path, Any, object, Literal["a"], Literal["b", "a"]]
SCALARS += [Literal[1], Literal[1, 2], dict, list, Port, Voyage]
DEFAULTS = [REQUIRED, None, 0, -3, True, 1.5, "", "text", [], ["a"], {}, {"a": [1, None]}, Path()]

ANNOTATIONS = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda kind: GenericAlias(list, (kind,))),
        inner.map(lambda kind: GenericAlias(dict, (str, kind))),
        st.lists(inner, min_size=2, max_size=4).map(lambda kinds: reduce(operator.or_, kinds)),
        inner.map(Optional.__getitem__),  # typing's own kind of union
    ),
    max_leaves=5,
)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(ANNOTATIONS, st.sampled_from(DEFAULTS)), max_size=3))
def test_plain_types_have_the_schema_that_pydantic_makes(given: list[tuple[Any, Any]]) -> None:
    assert_same(parameters(*given))


@pytest.mark.parametrize("annotation", SCALARS)
@pytest.mark.parametrize("default", DEFAULTS, ids=repr)
def test_every_default_is_written_as_pydantic_writes_it(annotation: Any, default: Any) -> None:
    assert_same(parameters((annotation, default)))


@pytest.mark.parametrize(
    "annotation",
    [
        *(Loop, Counted, Unknown, Port | Namesake),
        *(tuple[int, ...], set[str], bytes, dict[int, str], Literal["a", 1], complex),
    ],
)
def test_other_types_are_left_to_pydantic(annotation: Any) -> None:
    with pytest.raises(NotPlainError):
        plain_schema(parameters((annotation, REQUIRED)))


@pytest.mark.parametrize(
    "default",
    [math.nan, math.inf, (1, 2), object(), {1: 2}],
    ids=["nan", "inf", "tuple", "object", "dict"],
)
def test_other_defaults_are_left_to_pydantic(default: Any) -> None:
    with pytest.raises(NotPlainError):
        plain_schema(parameters((Any, default)))


VALUES: list[Any] = [None, 0, 1, 10**30, True, False, 1.0, 0.5, math.inf, "", "a", "1", "\ud800"]
VALUES += ["true", "none", [], ["a"], {}, {"name": "a"}, Path("a"), b"a", Port("a")]


@settings(max_examples=300, deadline=None)
@given(ANNOTATIONS, st.sampled_from(VALUES))
def test_a_value_that_is_taken_as_it_is_is_the_one_that_pydantic_gives(
    annotation: Any, value: Any
) -> None:
    if not is_exactly(value, annotation):
        return

    model = build_model(parameters((annotation, REQUIRED)), refuse).model_validate({"x0": value})

    given = model.p0  # type: ignore[attr-defined]  # made a line above
    assert (type(given), given) == (type(value), value)


def test_of_scalars_what_is_of_its_type_is_taken_as_it_is() -> None:
    taken = {str: "a", int: 3, float: 0.5, bool: True, Literal["a", "b"]: "b", str | None: None}
    others = {str: 1, int: True, float: 1, bool: 1, Literal[1]: True, int | bool: "1"}
    composed = (list, list[str], str | list[str], Path, Any, object, Port, Annotated[str, "a"])

    assert all(is_exactly(value, annotation) for annotation, value in taken.items())
    assert not any(is_exactly(value, annotation) for annotation, value in others.items())
    assert all(map(is_scalar, (*taken, *others)))
    assert not any(map(is_scalar, composed))


def test_a_change_to_one_schema_leaves_the_next_alone() -> None:
    wanted = parameters((str, REQUIRED), (str, REQUIRED))
    schema = plain_schema(wanted)

    schema["properties"]["x0"]["description"] = "Changed."

    assert_same(wanted)


PLAIN_TOOL = '''
import sys
from pegboard import Tool, ToolContext, tool

@tool
async def report(ctx: ToolContext, place: str, days: int = 3, tags: list[str] | None = None) -> str:
    """Report the weather.

    Args:
        place: Where.
    """
    return place

assert report.parameters["properties"]["place"]["description"] == "Where."
assert report.description == "Report the weather."
print(*sorted({"pydantic", "docstring_parser", "jsonschema"} & set(sys.modules)))
'''


def test_a_plain_tool_is_described_without_heavy_imports() -> None:
    source = PLAIN_TOOL.replace("ctx: ToolContext", 'ctx: "ToolContext"').replace(
        "ToolContext, tool\n", "tool\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, check=True, timeout=30
    )

    assert done.stdout == "\n"
