"""What of a signature the model fills, where the context goes, and what is refused."""

from functools import partial
from types import ModuleType
from typing import Any

import pytest

from pegboard import Tool, tool
from pegboard.errors import SignatureError

CONTEXT: Any = object()


def load(source: str, name: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


IN_ANY_SPELLING = [
    "ctx: ToolContext",
    "ctx: 'ToolContext'",
    "ctx: 'pegboard.ToolContext'",
    "ctx: 'NotImported.ToolContext'",
    "ctx: Ctx",
    "ctx: ToolContext | None = None",
    "ctx: 'ToolContext | None' = None",
    "*, ctx: Annotated[ToolContext, 'ours']",
]


@pytest.mark.parametrize("spelling", IN_ANY_SPELLING)
async def test_the_context_is_given_in_any_spelling(spelling: str) -> None:
    imports = (
        "import pegboard\nfrom typing import Annotated\nfrom pegboard import ToolContext, tool"
    )
    source = f"{imports}\nCtx = ToolContext\n\n@tool\nasync def here({spelling}):\n    return ctx()"
    made: Tool = load(source, "spelling").here
    context: Any = partial(str, "given")

    answer = await made.call(context, made.validate({}))

    assert answer.output == "given"
    assert made.parameters["properties"] == {}


async def test_the_context_need_not_be_imported_at_run_time() -> None:
    source = (
        "from __future__ import annotations\nfrom pegboard import tool\n"
        "@tool\nasync def here(a: int, ctx: ToolContext) -> str:\n    return ctx() * a"
    )
    made: Tool = load(source, "late").here
    context: Any = partial(str, "ab")

    answer = await made.call(context, made.validate({"a": "2"}))

    assert answer.output == "abab"


REFUSED = {
    "def bad(*places: str): ...": "places",
    "def bad(a: int, **more: str): ...": "more",
    "def bad(place, /): ...": "place",
    "def bad(self, place: str): ...": "self",
    "def bad(a: int, when: Callable[[], int]): ...": "when",
    "def bad(a: int, line: socket): ...": "line",
    "def bad(a: int, line: list[socket] | None = None): ...": "line",
    "def bad(a: int, b: Annotated[str, Field(ge=complex)] = ''): ...": "b",
    "def bad(a: int, b: 'int +'): ...": "b",
}


@pytest.mark.parametrize("signature", REFUSED)
def test_a_refusal_names_tool_and_parameter(signature: str) -> None:
    imports = "from collections.abc import Callable\nfrom socket import socket\n"
    imports += (
        "from typing import Annotated\nfrom pydantic import Field\nfrom pegboard import tool\n"
    )

    with pytest.raises(
        SignatureError, match=f"tool bad, parameter {REFUSED[signature]}: "
    ) as caught:
        load(f"{imports}@tool\n{signature}\n", "refused")

    assert (caught.value.tool, caught.value.parameter) == ("bad", REFUSED[signature])


def test_a_refusal_of_a_type_says_which_can_be_taken() -> None:
    source = "from pegboard import tool\nclass Crate: ...\n@tool\ndef load(all: list[Crate]): ...\n"

    with pytest.raises(
        SignatureError, match=r"no JSON becomes a list\[.*Crate\]: take .*dataclass"
    ):
        load(source, "uncrated")


@pytest.mark.parametrize("given", ["hello", lambda: "", 3])
def test_what_is_no_function_with_a_name_is_refused(given: Any) -> None:
    with pytest.raises(SignatureError, match="id="):
        tool(given)


async def test_a_name_may_come_into_being_after_the_decorator() -> None:
    source = (
        "from dataclasses import dataclass\nfrom pegboard import tool\n"
        "@tool\nasync def load(crate: 'Crate') -> str:\n    return str(crate.kg)\n"
        "@dataclass\nclass Crate:\n    kg: int\n"
    )
    made: Tool = load(source, "forward").load

    assert (await made.call(CONTEXT, made.validate({"crate": {"kg": "3"}}))).output == "3"
    assert made.parameters["$defs"]["Crate"]["properties"] == {"kg": {"type": "integer"}}


def test_a_name_that_never_comes_is_an_error_at_first_use() -> None:
    made: Tool = load(
        "from pegboard import tool\n@tool\ndef load(crate: 'Crate'): ...", "never"
    ).load

    with pytest.raises(SignatureError, match=r"load.*Crate"):
        _ = made.parameters


def test_a_type_that_never_is_complete_is_an_error_at_first_use() -> None:
    source = (
        "from pydantic import BaseModel\nfrom pegboard import tool\n"
        "class Crate(BaseModel):\n    label: 'Label'\n"
        "@tool\ndef load(weight: int, crate: Crate): ...\n"
    )
    made: Tool = load(source, "incomplete").load

    with pytest.raises(SignatureError, match="load, parameter crate"):
        made.validate({"weight": 1, "crate": {"label": "a"}})


def test_a_parameter_without_annotation_takes_anything() -> None:
    made: Tool = load("from pegboard import tool\n@tool\ndef keep(thing, n=3): ...", "bare").keep

    assert made.parameters["properties"] == {"thing": {}, "n": {"default": 3}}
    assert made.validate({"thing": [None]}) == {"thing": [None], "n": 3}
