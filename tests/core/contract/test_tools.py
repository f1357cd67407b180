"""Tools: from a function to a schema, and from a model's arguments to a call."""

import asyncio
import inspect
import json
import sys
import threading
from collections.abc import Awaitable, Mapping
from pathlib import Path
from types import FrameType, ModuleType
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator

from pegboard import Tool, ToolError, ToolResult, tool
from pegboard.errors import InvalidInputError, SignatureError

_FILE = Path(__file__).parent.parent.parent / "data" / "schema_cases.json"
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


@pytest.mark.parametrize("answer", [None, 3, b"bytes", 3j], ids=repr)
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

    async with asyncio.timeout(30):
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

    renamed = low.with_id("tides_low")

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
        low.with_id(name)


async def test_a_function_that_hangs_holds_up_neither_the_time_limit_nor_the_exit() -> None:
    source = (
        "import asyncio, threading\nfrom pegboard import tool\n"
        "@tool\ndef hang() -> str:\n    threading.Event().wait()\n    return ''\n"
        "async def main():\n    async with asyncio.timeout(0.1):\n"
        "        await hang.call(None, {})\n"
        "asyncio.run(main())\n"
    )

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", source, stderr=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(30):
        _, errors = await process.communicate()

    assert errors.decode().strip().endswith("TimeoutError")


@pytest.mark.parametrize("kind", ["async def", "def"])
async def test_a_tool_cannot_end_the_process(kind: str) -> None:
    source = f"import sys\nfrom pegboard import tool\n\n@tool\n{kind} leave():\n    sys.exit(3)"
    made: Tool = load(source, "leave").leave

    with pytest.raises(ToolError, match="leave tried to end the process"):
        await made.call(CONTEXT, {})


def test_only_exact_scalars_and_plain_arguments_that_were_checked_before_need_no_thread() -> None:
    def count(number: int, others: list[int] | None = None) -> str:
        """Count."""
        return f"{number} {others}"

    def odd(number: Annotated[int, AfterValidator(lambda value: value)], others: list[int]) -> str:
        """Count."""
        return f"{number} {others}"

    raw = Tool.raw("raw", "Count.", {"type": "object"}, lambda _context, _args: "")
    plain, strange = tool(count), tool(odd)

    def say(text: str, times: int = 1) -> str:
        """Say."""
        return text * times

    said = tool(say)
    given = {"number": 1, "others": []}
    before = [each.quick(given) for each in (plain, strange, raw)]
    for each in (plain, strange, raw):
        each.validate(given)

    assert before == [False, False, False]
    assert [each.quick(given) for each in (plain, strange, raw)] == [True, False, False]
    assert said.quick({"text": "a"})
    assert not any(map(said.quick, ({}, {"text": 1}, {"text": "a", "more": 1})))


def test_a_function_is_made_a_tool_with_facts_without_a_decorator() -> None:
    def count(number: int) -> str:
        """Count."""
        return str(number)

    made = tool(count, id="counted", effect="reads")

    assert (made.id, made.effect) == ("counted", "reads")


async def test_the_signature_of_requires_is_read_once() -> None:
    given: list[dict[str, object]] = []
    read = 0

    async def names_one(context: object, one: int) -> None:
        given.append({"one": one})

    async def takes_all(context: object, **values: object) -> None:
        given.append(values)

    def note(frame: FrameType, event: str, argument: object) -> None:
        nonlocal read
        read += event == "call" and frame.f_code is inspect.signature.__code__

    for requires in (names_one, takes_all):

        @tool(requires=requires)
        def act(one: int, two: int) -> str:
            """Act."""
            return f"{one} {two}"

        await act.require(CONTEXT, {"one": 1, "two": 2})
        sys.setprofile(note)
        await act.require(CONTEXT, {"one": 3, "two": 4})
        sys.setprofile(None)

    assert given == [{"one": 1}, {"one": 3}, {"one": 1, "two": 2}, {"one": 3, "two": 4}]
    assert read == 0
