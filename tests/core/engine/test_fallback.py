"""Other models answer where one cannot: which, when, and never behind what was shown."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from pegboard import Prompt, hookimpl
from pegboard.engine.retry import is_local
from pegboard.errors import ProviderAuthError, ProviderError
from pegboard.providers import ModelRequest, Provider, StreamEvent, TextDelta, TextStart
from pegboard.schema.config import Agent
from pegboard.schema.event import SessionIdle, SessionWarned
from pegboard.schema.message import APIFailure
from pegboard.schema.model import Capabilities, Modalities, Model, ModelApi, ModelCost
from pegboard.schema.part import FileInput
from pegboard_plugins import openai_compatible
from support.models.played import HI, Played, assistant, call, calls, opened, text, texts
from support.tools.media_files import data_url, png

DOLLAR = ModelCost(input=100_000, output=100_000)


def model(provider: str, **facts: object) -> Model:
    return Model(id="m", provider_id=provider, name="M", api=ModelApi(id="m"), **facts)


class Other(Played):
    """A provider of the same kind under another name."""

    def __init__(self, name: str, *answers: object, **facts: object) -> None:
        super().__init__(*answers, model=model(name, **facts))
        self.id = name


class Providers:
    def __init__(self, *providers: Provider) -> None:
        self._providers = providers

    @hookimpl
    async def register_providers(self) -> Sequence[Provider]:
        return self._providers


def failing(error: ProviderError, *before: StreamEvent) -> object:
    async def answer(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        for event in before:
            yield event
        raise error

    return answer


def refused(status: int, words: str = "no", wait_s: float | None = None) -> ProviderError:
    return ProviderError(
        words, provider_id="played", status=status, wait_s=wait_s, retryable=status >= 429
    )


AUTH = ProviderAuthError("the key is refused", provider_id="played", status=401)


def config(*names: str, **more: object) -> dict[str, object]:
    return {"model": "played/m", "fallback": list(names), "fallback_after_s": 0, **more}


@pytest.mark.parametrize(
    "error",
    [
        AUTH,
        refused(404, "model m not found"),
        refused(400, "The model `m` has been deprecated"),
        refused(529, "overloaded"),
        refused(503, "unavailable"),
        refused(429, "slow down", wait_s=3600),
        ProviderError("connection refused", provider_id="played", retryable=True),
    ],
    ids=["key", "gone", "deprecated", "overloaded", "down", "limit", "unreachable"],
)
async def test_the_next_model_answers_where_one_cannot(
    tmp_path: Path, error: ProviderError
) -> None:
    played, other = Played(failing(error)), Other("other", text("done"), cost=DOLLAR)
    async with opened(tmp_path, played, Providers(other), config=config("other/m")) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)
        session = await app.session(session.id)

    assert texts(turn) == ["done"]
    assert (assistant(turn).provider_id, assistant(turn).cost) == ("other", 1.5)
    assert (len(played.requests), len(other.requests)) == (1, 1)
    assert session.cost == 1.5
    assert session.model
    assert session.model.provider_id == "played"  # which the next prompt asks again


async def test_it_is_said_which_model_answers_instead_and_why(tmp_path: Path) -> None:
    other = Other("other", text("done"))
    async with opened(
        tmp_path, Played(failing(AUTH)), Providers(other), config=config("other/m")
    ) as app:
        session = await app.create_session()
        async with app.subscribe(limit=1000) as events:
            await app.prompt(session.id, HI)
            told = []
            async for event in events:
                told.append(event.properties)
                if isinstance(event.properties, SessionIdle):
                    break

    [warning] = [each.message for each in told if isinstance(each, SessionWarned)]
    assert warning == ("played/m does not answer (the key is refused): other/m is asked instead")


@pytest.mark.parametrize(("own", "cost"), [(["other/m"], None), ([], ModelCost(input=0, output=0))])
async def test_another_model_is_asked_where_the_first_refuses_the_connection(
    tmp_path: Path, own: list[str], cost: ModelCost | None
) -> None:
    house = {"api": "http://127.0.0.1:1/v1", "fallback": own}
    settings = config("other/m") | {"model": "house/m", "provider": {"house": house}}
    other = Other("other", text("done"), cost=cost)
    async with opened(
        tmp_path, Played(), Providers(other), openai_compatible, config=settings
    ) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert texts(turn) == ["done"]


@pytest.mark.parametrize(
    "error", [refused(400, "bad request"), refused(400, "content policy"), refused(413, "no")]
)
async def test_a_request_that_no_model_would_take_goes_to_no_other(
    tmp_path: Path, error: ProviderError
) -> None:
    other = Other("other", text("done"))
    async with opened(
        tmp_path, Played(failing(error)), Providers(other), config=config("other/m")
    ) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert isinstance(assistant(turn).error, APIFailure)
    assert other.requests == []


async def test_nothing_is_asked_of_another_model_behind_text_that_was_shown(
    tmp_path: Path,
) -> None:
    shown = (TextStart("0"), TextDelta("0", "I look"))
    other = Other("other", text("done"))
    settings = config("other/m", retry={"attempts": 1})
    async with opened(
        tmp_path, Played(failing(refused(529), *shown)), Providers(other), config=settings
    ) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert assistant(turn).error is not None
    assert other.requests == []


async def test_each_model_is_asked_at_most_once_a_step_in_the_order_of_the_list(
    tmp_path: Path,
) -> None:
    second, third = Other("second", failing(AUTH)), Other("third", failing(AUTH))
    played = Played(failing(AUTH))
    names = ("played/m", "second/m", "none/such", "second/m", "third/m")
    async with opened(tmp_path, played, Providers(second, third), config=config(*names)) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert assistant(turn).provider_id == "third"
    assert assistant(turn).error is not None
    assert [len(each.requests) for each in (played, second, third)] == [1, 1, 1]


async def test_the_model_that_stepped_in_goes_on_until_the_prompt_is_answered(
    tmp_path: Path,
) -> None:
    played = Played(failing(AUTH))
    other = Other("other", calls(call("none", "{}")), text("done"), text("again"))
    async with opened(tmp_path, played, Providers(other), config=config("other/m")) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        asked = len(played.requests), len(other.requests)
        await app.prompt(session.id, HI)

    assert asked == (1, 2)
    assert (len(played.requests), len(other.requests)) == (2, 3)


@pytest.mark.parametrize("listed", [False, True])
async def test_what_a_local_model_was_asked_leaves_the_machine_only_where_its_provider_says_so(
    tmp_path: Path, *, listed: bool
) -> None:
    here = replace(model("played"), api=ModelApi(id="m", url="http://127.0.0.1:1/v1"))
    other = Other("other", text("done"))
    own = {"provider": {"played": {"fallback": ["other/m"]}}} if listed else {}
    settings = config("other/m", **own)
    played = Played(failing(AUTH), model=here)
    async with opened(tmp_path, played, Providers(other), config=settings) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert assistant(turn).provider_id == ("other" if listed else "played")
    assert len(other.requests) == listed


@pytest.mark.parametrize(
    ("url", "cost", "local"),
    [
        ("http://127.0.0.1:1/v1", None, True),
        ("http://[::1]/v1", DOLLAR, True),
        ("https://api.example/v1", ModelCost(input=0, output=0), False),
        ("", ModelCost(input=0, output=0), True),
        ("", None, False),
        ("", DOLLAR, False),
    ],
)
def test_which_model_is_on_this_machine(url: str, cost: ModelCost | None, *, local: bool) -> None:
    found = replace(model("p"), api=ModelApi(id="m", url=url), cost=cost)

    assert is_local(found) is local


async def test_a_failure_that_passes_in_time_is_waited_for(tmp_path: Path) -> None:
    other = Other("other", text("other"))
    played = Played(failing(refused(529, wait_s=0.001)), text("mine"))
    settings = config("other/m") | {"fallback_after_s": 60}
    async with opened(tmp_path, played, Providers(other), config=settings) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, HI)

    assert texts(turn) == ["mine"]
    assert other.requests == []


async def test_a_prompt_with_a_picture_goes_to_the_model_that_sees(tmp_path: Path) -> None:
    url = data_url("image/png", png())
    sees = Capabilities(input=Modalities(image=True))
    played = Played(text("blind"))
    other = Other("other", text("seen"), capabilities=sees)
    settings = {"model": "played/m", "models": {"vision": "other/m"}}
    async with opened(tmp_path, played, Providers(other), config=settings) as app:
        session = await app.create_session()
        shown = await app.prompt(
            session.id, Prompt(HI, parts=(FileInput(mime="image/png", url=url),))
        )
        plain = await app.prompt(session.id, "and now?")

    assert (texts(shown), texts(plain)) == (["seen"], ["blind"])


async def test_agents_without_a_model_of_their_own_get_that_of_their_work(tmp_path: Path) -> None:
    agents = (
        Agent(name="titles", mode="primary", serves="titles", permission=(), options={}),
        Agent(name="sums", mode="primary", serves="summaries", permission=(), options={}),
    )
    roles = {"small": "p/small", "compact": "p/compact", "task": "p/task"}

    class Agents:
        @hookimpl
        async def register_agents(self) -> Sequence[Agent]:
            return agents

    own = {"helper": {}, "chosen": {"mode": "subagent", "model": "p/own"}}
    settings = {"model": "played/m", "models": roles, "agent": own}
    async with opened(tmp_path, Played(text("hi")), Agents(), config=settings) as app:
        found = {name: agent.model and agent.model.model_id for name, agent in app.agents.items()}

    assert found == {
        "build": None,
        "helper": "task",
        "titles": "small",
        "sums": "compact",
        "chosen": "own",
    }


async def test_planning_and_titles_have_models_of_their_own(tmp_path: Path) -> None:
    roles = {"small": "p/small", "title": "p/title", "plan": "p/plan"}
    settings = {"model": "played/m", "models": roles}
    async with opened(tmp_path, Played(text("hi")), builtins=True, config=settings) as app:
        agents = app.agents.values()
        found = {agent.serves or agent.name: agent.model for agent in agents if agent.model}

    assert {name: model.model_id for name, model in found.items()} == {
        "plan": "plan",
        "titles": "title",
    }
