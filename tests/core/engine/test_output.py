"""A final answer by a schema: the order, the check, at most two repairs, and what is stored."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pydantic import BaseModel, field_validator

from pegboard import App, Prompt, evolve, hookimpl, provider
from pegboard.engine.expected import Expected, MismatchError
from pegboard.errors import InvalidInputError, OutputError, ProviderError
from pegboard.providers import ModelRequest, ToolCall
from pegboard.schema.message import AssistantMessage, JsonFormat, UserMessage
from pegboard.schema.part import TextPart
from support.models.played import HI, Played, opened

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "year": {"type": "integer"}},
    "required": ["name", "year"],
}
FRAM = '{"name": "Fram", "year": 1892}'


@dataclass
class Ship:
    name: str
    year: int


class ShipStruct(msgspec.Struct):
    name: str
    year: int


class ShipModel(BaseModel):
    name: str
    year: int

    @field_validator("year")
    @classmethod
    def is_past(cls, year: int) -> int:
        if year > 1900:
            raise ValueError("this ship is older")
        return year


class Answers:
    """A provider that gives these answers, one for each request; an error is raised."""

    def __init__(self, *answers: object) -> None:
        self.answers = answers
        self.requests: list[ModelRequest] = []

    @hookimpl
    def register_providers(self) -> list[object]:
        @provider("ships")
        async def ships(request: ModelRequest) -> AsyncIterator[object]:
            self.requests.append(request)
            answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
            if isinstance(answer, Exception):
                raise answer
            yield answer

        return [ships]


async def asked(app: App, output: Any, **facts: Any) -> Any:
    session = await app.create_session()
    return await app.prompt(
        session, Prompt("Nansen's ship?", output=output, model="ships/any", **facts)
    )


@pytest.mark.parametrize(
    ("output", "value"),
    [
        (Ship, Ship("Fram", 1892)),
        (ShipStruct, ShipStruct("Fram", 1892)),
        (ShipModel, ShipModel(name="Fram", year=1892)),
        (SCHEMA, {"name": "Fram", "year": 1892}),
        (list[Ship], [Ship("Fram", 1892)]),
    ],
)
async def test_the_value_is_of_the_type(tmp_path: Path, output: Any, value: object) -> None:
    answers = Answers(f"[{FRAM}]" if output == list[Ship] else FRAM)
    async with opened(tmp_path, Played(), answers) as app:
        turn = await asked(app, output)
        [prompt, stored] = await app.list_turns(turn.info.session_id)

    assert turn.output == value
    assert isinstance(prompt.info, UserMessage)
    assert isinstance(stored.info, AssistantMessage)
    assert stored.output == stored.info.structured == msgspec.json.decode(str(answers.answers[0]))
    [request] = answers.requests
    assert prompt.info.format == JsonFormat(schema=request.output_schema)
    assert "one JSON value and nothing else" in request.system[-1]


@pytest.mark.parametrize(
    "text",
    [
        FRAM,
        f"\n {FRAM}\n",
        f"```json\n{FRAM}\n```",
        f"It was the Fram [1]:\n\n```\n{FRAM}\n```\nAnything else?",
        f"The answer is {FRAM}",
    ],
)
def test_the_json_of_an_answer_is_found(text: str) -> None:
    assert Expected(SCHEMA).read(text) == {"name": "Fram", "year": 1892}


@pytest.mark.parametrize(
    ("output", "text", "reason"),
    [
        (SCHEMA, "It was the Fram.", "not a JSON value"),
        (SCHEMA, '{"name": "Fram"}', "'year' is a required property"),
        (SCHEMA, '{"name": "Fram", "year": "old"}', r"\$\.year: 'old' is not of type 'integer'"),
        (ShipModel, '{"name": "Fram", "year": 1992}', "this ship is older"),
    ],
)
def test_what_does_not_fit_is_named(output: Any, text: str, reason: str) -> None:
    with pytest.raises(MismatchError, match=reason):
        Expected(output).read(text)


async def test_an_answer_is_repaired_twice(tmp_path: Path) -> None:
    answers = Answers("It was the Fram.", '{"name": "Fram"}', FRAM)
    async with opened(tmp_path, Played(), answers) as app:
        turn = await asked(app, Ship, system="Be brief.", tools={"*": False})
        turns = await app.list_turns(turn.info.session_id)

    assert turn.output == Ship("Fram", 1892)
    assert len(answers.requests) == 3
    assert all("Be brief." in " ".join(request.system) for request in answers.requests)
    repairs = [each for each in turns if isinstance(each.info, UserMessage)][1:]
    assert ["not a JSON value" in repairs[0].text, "'year'" in repairs[1].text] == [True, True]
    assert all(
        part.synthetic for each in repairs for part in each.parts if isinstance(part, TextPart)
    )


async def test_an_answer_that_fits_never_is_an_error(tmp_path: Path) -> None:
    answers = Answers("no")
    async with opened(tmp_path, Played(), answers) as app:
        turn = await asked(app, Ship)
        stored = (await app.list_turns(turn.info.session_id))[-1]

    assert len(answers.requests) == 3
    for each in (turn, stored):
        assert isinstance(each.info, AssistantMessage)
        assert each.info.error is not None
        assert each.info.error.data.retries == 2
        with pytest.raises(OutputError, match="not a JSON value") as raised:
            _ = each.output
        assert (raised.value.answer, raised.value.exit_code) == ("no", 9)


@pytest.mark.parametrize(("most", "requests"), [(1, 1), (2, 2)])
async def test_repairs_are_steps_of_the_agent(tmp_path: Path, most: int, requests: int) -> None:
    answers = Answers("no")
    config = {"agent": {"build": {"steps": most}}}
    async with opened(tmp_path, Played(), answers, builtins=True, config=config) as app:
        turn = await asked(app, Ship, agent="build")

    assert len(answers.requests) == requests
    with pytest.raises(OutputError):
        _ = turn.output


async def test_repairs_are_within_the_budget(tmp_path: Path) -> None:
    answers = Answers("no")
    async with opened(tmp_path, Played(), answers, config={"budget": {"steps": 2}}) as app:
        turn = await asked(app, Ship)

    assert len(answers.requests) == 2
    assert isinstance(turn.info, AssistantMessage)
    assert turn.info.error is not None
    assert turn.info.error.__struct_config__.tag == "BudgetError"


async def test_only_the_final_answer_is_checked(tmp_path: Path) -> None:
    def area(width: int, height: int) -> str:
        """Work out the area of a rectangle."""
        return str(width * height)

    call = ToolCall("c1", "area", '{"width": 3, "height": 4}')
    answers = Answers(call, "12")
    async with opened(tmp_path, Played(), answers, tools=[area]) as app:
        turn = await asked(app, {"type": "integer"})

    assert turn.output == 12
    assert len(answers.requests) == 2


@pytest.mark.parametrize(
    ("error", "requests"),
    [
        (ProviderError("400: response_format json_schema is not supported", status=400), 3),
        (ProviderError("bad request", status=400, body='{"param": "output_config"}'), 3),
        (ProviderError("400: no such model", status=400), 1),
    ],
)
async def test_a_server_that_refuses_the_field_is_asked_without_it(
    tmp_path: Path, error: ProviderError, requests: int
) -> None:
    answers = Answers(error, "no", FRAM)
    async with opened(tmp_path, Played(), answers) as app:
        turn = await asked(app, Ship)

    schemas = [request.output_schema is not None for request in answers.requests]
    assert schemas == [True, False, False][:requests]
    assert all("JSON Schema" in request.system[-1] for request in answers.requests)
    assert isinstance(turn.info, AssistantMessage)
    assert (turn.info.error is None) is (requests == 3)


class Changing:
    @hookimpl
    def chat_params(self, request: ModelRequest) -> ModelRequest:
        return evolve(request, output_schema=None, temperature=0.5)


async def test_no_plugin_changes_the_schema(tmp_path: Path) -> None:
    answers = Answers(FRAM)
    async with opened(tmp_path, Played(), answers, Changing()) as app:
        await asked(app, Ship)
        failures = [each.message for each in app.failures]

    [request] = answers.requests
    assert request.output_schema is not None
    assert request.temperature is None
    assert any("another schema of the answer" in each for each in failures)


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        ({"type": "obj"}, "JSON Schema of the output is wrong"),
        (Callable[[], None], "there is no JSON Schema for the output"),
        ({"enum": ["x" * 300_000]}, "more than 262,144 letters"),
    ],
)
async def test_an_output_without_a_schema_is_refused(
    tmp_path: Path, output: Any, reason: str
) -> None:
    async with opened(tmp_path, Played()) as app:
        session = await app.create_session()

        with pytest.raises(InvalidInputError, match=reason):
            await app.prompt(session, Prompt(HI, output=output))

        assert await app.list_turns(session.id) == ()
