"""Tools: from a function to a schema, and from a model's arguments to a call."""

import asyncio
import inspect
import json
import threading
from collections.abc import Awaitable, Mapping
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import pytest
from pydantic import Field

from pegboard import Tool, ToolContext, ToolError, ToolResult, tool
from pegboard.errors import InvalidInputError, SignatureError

_FILE = Path(__file__).parent.parent / "data" / "schema_cases.json"
CASES = json.loads(_FILE.read_text(encoding="utf-8"))[1:]
CONTEXT: Any = object()


def normal(schema: Any, definitions: Mapping[str, Any] | None = None) -> Any:
    """A schema after the normalisation that the file of cases describes."""
    if isinstance(schema, list):
        return [normal(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = definitions or schema.get("$defs", {})
    if "$ref" in schema:
        target = dict(definitions[schema["$ref"].rpartition("/")[2]])
        return normal(target | {k: v for k, v in schema.items() if k != "$ref"}, definitions)
    left = {k: v for k, v in schema.items() if k not in ("title", "$defs")}
    if left.get("format") == "path":
        del left["format"]
    if isinstance(left.get("additionalProperties"), bool):
        del left["additionalProperties"]
    if "const" in left:
        left["enum"] = [left.pop("const")]
    left = {
        key: {name: normal(item, definitions) for name, item in value.items()}
        if key == "properties"
        else value
        if key == "default"
        else normal(value, definitions)
        for key, value in left.items()
    }
    if isinstance(left.get("description"), str):
        left["description"] = " ".join(left["description"].split())
    for key in ("anyOf", "enum", "required"):
        if key in left:
            left[key] = sorted(left[key], key=repr)
    return {key: value for key, value in left.items() if (key, value) != ("required", [])}


def load(source: str, name: str) -> ModuleType:
    module = ModuleType(name)
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)
    return module


def cases(*, refused: bool) -> list[Any]:
    return [
        pytest.param(case, id=case["id"])
        for case in CASES
        if ("refused" in case["expect"]) is refused
    ]


@pytest.mark.parametrize("case", cases(refused=False))
def test_the_schema_is_that_of_the_case(case: dict[str, Any]) -> None:
    expect = case["expect"]

    made: Tool = getattr(load(case["source"], "case"), case["function"])

    assert made.parameters["type"] == "object"
    if "properties" in expect:
        schema = normal(dict(made.parameters))
        expected = {"properties": expect["properties"], "required": expect["required"]}
        assert schema == normal(expected) | {"type": "object"}
    description = " ".join(made.description.split())
    for text in expect.get("description_contains", ()):
        assert text in description
    for text in expect.get("description_lacks", ()):
        assert text not in description


@pytest.mark.parametrize("case", cases(refused=False))
async def test_the_function_receives_the_values_of_the_case(case: dict[str, Any]) -> None:
    made: Tool = getattr(load(case["source"], "case"), case["function"])

    for call in case["expect"]["calls"]:
        values = made.validate(call["args"])
        assert {name: repr(value) for name, value in values.items()} == call["receives"]
        assert isinstance(await made.call(CONTEXT, values), ToolResult)


@pytest.mark.parametrize("case", cases(refused=False))
def test_arguments_that_do_not_fit_are_refused(case: dict[str, Any]) -> None:
    made: Tool = getattr(load(case["source"], "case"), case["function"])

    for args in case["expect"]["rejects"]:
        with pytest.raises(ToolError, match="Write the call again"):
            made.validate(args)


@pytest.mark.parametrize("case", cases(refused=True))
def test_a_signature_that_cannot_be_described_is_refused(case: dict[str, Any]) -> None:
    with pytest.raises(SignatureError) as caught:
        load(case["source"], "case")

    assert all(word in str(caught.value) for word in case["expect"]["refused"])


async def test_text_becomes_a_result_and_a_result_stays() -> None:
    @tool
    async def text() -> str:
        """Text."""
        return "hello"

    @tool
    async def result() -> ToolResult:
        """Result."""
        return ToolResult(output="hello", title="Greeting")

    assert await text.call(CONTEXT, {}) == ToolResult(output="hello")
    assert await result.call(CONTEXT, {}) == ToolResult(output="hello", title="Greeting")


@pytest.mark.parametrize("answer", [None, 3, b"bytes", ["a"]], ids=repr)
async def test_any_other_answer_is_an_error_that_names_the_tool(answer: object) -> None:
    @tool
    async def odd() -> object:
        """Odd."""
        return answer

    with pytest.raises(ToolError, match=rf"\bodd\b.*{type(answer).__name__}"):
        await odd.call(CONTEXT, {})


async def test_a_plain_function_runs_in_a_worker_thread() -> None:
    @tool
    def where() -> str:
        """Where."""
        return threading.current_thread().name

    result = await where.call(CONTEXT, {})

    assert result.output != threading.current_thread().name


async def test_a_plain_function_that_gives_an_awaitable_is_awaited() -> None:
    async def later(text: str) -> str:
        return text

    @tool
    def wrapped(text: str) -> Awaitable[str]:
        """Wrapped."""
        return later(text)

    assert (await wrapped.call(CONTEXT, {"text": "a"})).output == "a"


async def test_stop_iteration_in_a_thread_is_an_error_and_no_hang() -> None:
    @tool
    def first() -> str:
        """First."""
        return next(iter(()))

    async with asyncio.timeout(5):
        with pytest.raises(RuntimeError, match="StopIteration"):
            await first.call(CONTEXT, {})


async def test_what_the_function_raises_is_raised() -> None:
    @tool
    async def fail() -> str:
        """Fail."""
        raise ToolError("no such port")

    with pytest.raises(ToolError, match="no such port"):
        await fail.call(CONTEXT, {})


async def test_a_tool_is_still_the_function_for_python() -> None:
    @tool
    async def hail(ship: str, *, loud: bool = False) -> str:
        """Call a ship."""
        return ship.upper() if loud else ship

    assert await hail("Heron", loud=True) == "HERON"
    assert (vars(hail)["__name__"], inspect.getdoc(hail)) == ("hail", "Call a ship.")
    assert list(inspect.signature(hail).parameters) == ["ship", "loud"]


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

    answer = await made.call(lambda: "given", made.validate({}))  # type: ignore[arg-type]  # seen only

    assert answer.output == "given"
    assert made.parameters["properties"] == {}


async def test_the_context_need_not_be_imported_at_run_time() -> None:
    source = (
        "from __future__ import annotations\nfrom pegboard import tool\n"
        "@tool\nasync def here(a: int, ctx: ToolContext) -> str:\n    return ctx() * a"
    )
    made: Tool = load(source, "late").here

    answer = await made.call(lambda: "ab", made.validate({"a": "2"}))  # type: ignore[arg-type]  # seen only

    assert answer.output == "abab"


def test_each_call_gets_a_default_of_its_own() -> None:
    @tool
    async def crew(names: list[str] = []) -> str:  # noqa: B006 - the point of the test
        """Hire."""
        return ",".join(names)

    first = crew.validate({})["names"]

    assert isinstance(first, list)
    first.append("Ann")
    assert crew.validate({}) == {"names": []}


def test_the_model_reads_what_is_wrong_with_each_argument() -> None:
    @tool
    async def dive(depth: int, mix: Literal["air", "ean"] = "air") -> str:
        """Dive."""
        return mix

    with pytest.raises(ToolError) as caught:
        dive.validate({"mix": "helium", "gear": ["fins"]})

    assert str(caught.value).splitlines() == [
        "The arguments of this call of dive are invalid:",
        "- depth: is required, and missing",
        "- mix: Input should be 'air' or 'ean', got 'helium'",
        "- gear: is not an argument of this tool",
        "Write the call again with valid arguments.",
    ]


def test_a_long_list_of_problems_is_cut() -> None:
    @tool
    async def add(numbers: list[int]) -> str:
        """Add."""
        return ""

    with pytest.raises(ToolError) as caught:
        add.validate({"numbers": ["x" * 10_000] * 500})

    assert str(caught.value).count("\n- ") == 11
    assert "- and more" in str(caught.value)
    assert len(str(caught.value)) < 2_000


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


def test_a_property_called_title_stays() -> None:
    @tool
    async def note(title: str, row: dict[str, int], when: datetime) -> str:
        """Note."""
        return title

    assert note.parameters["properties"] == {
        "title": {"type": "string"},
        "row": {"type": "object", "additionalProperties": {"type": "integer"}},
        "when": {"type": "string", "format": "date-time"},
    }


def test_the_authors_own_alias_is_the_name_for_the_model() -> None:
    @tool
    async def move(from_: Annotated[str, Field(alias="from")]) -> str:
        """Move."""
        return from_

    assert move.parameters["required"] == ["from"]
    assert move.validate({"from": "a"}) == {"from_": "a"}


def test_the_decorator_takes_what_differs_from_the_function() -> None:
    @tool(id="net_get", description="Fetch.", permission="webfetch", timeout_s=5)
    async def get(url: str) -> str:
        """Not this.

        Args:
            url: Where.
        """
        return url

    assert (get.id, get.description, get.permission) == ("net_get", "Fetch.", "webfetch")
    assert get.timeout_s == 5
    assert get.parameters["properties"]["url"]["description"] == "Where."


def test_a_renamed_tool_has_its_id_as_permission_unless_another_is_given() -> None:
    @tool
    async def low(place: str) -> str:
        """Low."""
        return place

    renamed = low.renamed("tides_low")

    assert (renamed.id, renamed.permission) == ("tides_low", "tides_low")
    assert (low.id, low.permission) == ("low", "low")
    with pytest.raises(ToolError, match="tides_low"):
        renamed.validate({})


@pytest.mark.parametrize("name", ["", "tide table", "marée", "a" * 65, "a.b"])
def test_an_id_that_providers_refuse_is_refused(name: str) -> None:
    @tool
    async def low(place: str) -> str:
        """Low."""
        return place

    with pytest.raises(InvalidInputError, match="cannot be the id"):
        low.renamed(name)


def raw(schema: dict[str, Any]) -> Tool:
    async def echo(context: ToolContext, args: Mapping[str, Any]) -> str:
        return json.dumps(args)

    return Tool.raw("far_echo", "Echo.", schema, echo)


async def test_a_raw_tool_gets_what_the_model_wrote_once_it_fits() -> None:
    made = raw({"properties": {"n": {"type": "integer", "minimum": 1, "default": 4}}})

    answer = await made.call(CONTEXT, made.validate({"more": True}))

    assert answer.output == '{"more": true}'
    assert (made.id, made.description, made.permission) == ("far_echo", "Echo.", "far_echo")
    assert made.parameters["type"] == "object"
    with pytest.raises(ToolError, match=r"n: '3' is not of type 'integer'"):
        made.validate({"n": "3"})


def test_a_wrong_raw_schema_is_an_error_that_names_the_tool() -> None:
    with pytest.raises(SignatureError, match="far_echo"):
        raw({"type": "objekt"}).validate({})


@pytest.mark.parametrize("rule", [{"$ref": "http://127.0.0.1:1/x.json"}, {"pattern": r"\p{L}"}])
def test_what_cannot_be_checked_here_is_left_to_the_raw_tool(rule: dict[str, Any]) -> None:
    assert raw({"properties": {"a": rule}}).validate({"a": "b"}) == {"a": "b"}


def test_a_warm_tool_has_its_validator() -> None:
    @tool
    async def low(place: str) -> str:
        """Low."""
        return place

    low.warm()
    raw({}).warm()

    assert low.validate({"place": "a"}) == {"place": "a"}
