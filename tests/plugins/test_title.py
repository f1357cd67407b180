"""Titles are written beside the work, by the model that the user allows, and once."""

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pegboard import App, Prompt, hookimpl
from pegboard.errors import ProviderError
from pegboard.providers import ModelRequest, StreamEvent, StreamFinish, TextDelta, Usage
from pegboard.schema.model import CacheCost, Model, ModelApi, ModelCost, ModelFacts
from pegboard.schema.part import TextInput
from pegboard.schema.session import title_from
from pegboard_plugins import title
from pegboard_plugins.title import cleaned
from support.models.played import Played, opened, text

PROMPT = "mend the parser"
PRICE = ModelCost(input=1_000_000, output=0, cache=CacheCost())


class TwoModels(Played):
    """Answers the model `small` with a title and every other with the played answers."""

    def __init__(self, *answers: object, title: str = "Parser mended") -> None:
        super().__init__(*answers)  # type: ignore[arg-type]  # as Played takes them
        self.title = title
        self.titled: list[ModelRequest] = []
        self.go = asyncio.Event()
        self.go.set()
        self.told, self.ends = asyncio.Event(), asyncio.Event()
        self.ends.set()
        self.fails = False

    def resolve(self, model_id: str) -> Model:
        return Model(
            id=model_id, provider_id="played", name="M", api=ModelApi(id=model_id), cost=PRICE
        )

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        if request.model.id == "m" and "title generator" not in "".join(request.system):
            async for event in super().stream(request):
                yield event
            return
        self.titled.append(request)
        await self.go.wait()
        if self.fails:
            raise ProviderError("no")
        yield TextDelta("t", self.title)
        yield StreamFinish("stop", Usage(input=1))
        self.told.set()
        await self.ends.wait()


async def titled(app: App, session_id: str, title: str) -> None:
    async with asyncio.timeout(30):
        while (await app.session(session_id)).title != title:  # noqa: ASYNC110 - may have come
            await asyncio.sleep(0.01)


def config(**more: str) -> dict[str, str]:
    return {"model": "played/m", **more}


class SmallIsKnown:
    """A plugin that knows the provider's small model."""

    @hookimpl
    async def model_facts(self) -> ModelFacts:
        return ModelFacts(small_model="small")


async def test_without_a_choice_the_small_model_of_the_provider_that_answers_is_asked(
    tmp_path: Path,
) -> None:
    provider = TwoModels(text("done"))
    async with opened(tmp_path, provider, title, SmallIsKnown(), config=config()) as app:
        session = await app.create_session()
        await app.prompt(session.id, PROMPT)
        await titled(app, session.id, "Parser mended")

    assert [request.model.id for request in provider.titled] == ["small"]


async def test_the_small_model_replaces_the_first_line_of_the_prompt(tmp_path: Path) -> None:
    provider = TwoModels(text("done"))
    small = config(small_model="played/small")
    async with opened(tmp_path, provider, title, config=small) as app:
        session = await app.create_session()
        await app.prompt(session.id, PROMPT)
        assert (await app.session(session.id)).title in ("mend the parser", "Parser mended")
        await titled(app, session.id, "Parser mended")
        assert (await app.session(session.id)).cost == pytest.approx(10 + 1)
        assert len(await app.list_turns(session.id)) == 2

    [request] = provider.titled
    assert request.model.id == "small"
    assert request.tools == ()


async def test_a_title_that_is_paid_for_counts_though_the_app_closes(tmp_path: Path) -> None:
    provider = TwoModels(text("done"))
    provider.ends.clear()
    small = config(small_model="played/small")
    async with opened(tmp_path, provider, title, config=small) as app:
        session = await app.create_session()
        await app.prompt(session.id, PROMPT)
        await asyncio.wait_for(provider.told.wait(), 30)

    async with opened(tmp_path, provider, title, config=small) as app:
        stored = await app.session(session.id)
    assert (stored.title, stored.cost) == ("Parser mended", pytest.approx(10 + 1))


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        (config(), []),
        (config(title="model"), ["m"]),
        (config(title="off", small_model="played/small"), []),
        (config(title="model", small_model="played/small"), ["small"]),
    ],
)
async def test_the_user_says_who_writes_titles(
    tmp_path: Path, settings: dict[str, str], asked: list[str]
) -> None:
    provider = TwoModels(text("done"))
    async with opened(tmp_path, provider, title, config=settings) as app:
        session = await app.create_session()
        await app.prompt(session.id, PROMPT)
        await titled(app, session.id, "Parser mended" if asked else "mend the parser")

    assert [request.model.id for request in provider.titled] == asked


async def test_without_the_agent_there_are_no_titles(tmp_path: Path) -> None:
    provider = TwoModels(text("done"))
    async with opened(tmp_path, provider, config=config(title="model")) as app:
        session = await app.create_session()
        await app.prompt(session.id, PROMPT)

    assert provider.titled == []


async def test_a_title_that_hangs_delays_neither_the_answer_nor_the_end(tmp_path: Path) -> None:
    provider = TwoModels(text("done"))
    provider.go.clear()
    async with asyncio.timeout(30):
        async with opened(tmp_path, provider, title, config=config(title="model")) as app:
            session = await app.create_session()
            await app.prompt(session.id, PROMPT)
            await app.prompt(session.id, PROMPT)

    assert len(provider.titled) == 1


async def test_a_title_that_somebody_gave_stays(tmp_path: Path) -> None:
    provider = TwoModels(text("done"))
    async with opened(tmp_path, provider, title, config=config(title="model")) as app:
        session = await app.create_session(title="My own")
        await app.prompt(session.id, PROMPT)

    assert provider.titled == []


async def test_a_failure_keeps_the_title_and_says_nothing(tmp_path: Path) -> None:
    provider = TwoModels(text("done"))
    provider.fails = True
    async with opened(tmp_path, provider, title, config=config(title="model")) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, PROMPT)
        await asyncio.sleep(0.05)
        assert (await app.session(session.id)).title == "mend the parser"
        assert "error=None" in str(turn.info)


async def test_a_title_that_comes_while_the_session_runs_is_not_lost(tmp_path: Path) -> None:
    running, go = asyncio.Event(), asyncio.Event()

    async def slow(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        running.set()
        await go.wait()
        for event in text("second"):
            yield event

    provider = TwoModels(text("first"), slow)
    provider.go.clear()
    async with opened(tmp_path, provider, title, config=config(title="model")) as app:
        session = await app.create_session()
        await app.prompt(session.id, PROMPT)
        second = asyncio.create_task(app.prompt(session.id, PROMPT))
        await running.wait()
        provider.go.set()
        await titled(app, session.id, "Parser mended")
        go.set()
        await second
        after = await app.session(session.id)

    assert (after.title, after.cost) == ("Parser mended", pytest.approx(21))


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("Mend the parser", "Mend the parser"),
        ('\n\n"Mend the parser."\nmore', "Mend the parser"),
        ("<think>hm\nhm</think>\n# Mend it", "Mend it"),
        ("x" * 120, "x" * 97 + "..."),
        ("<think>only thoughts</think>", ""),
    ],
)
def test_a_title_is_one_clean_line(said: str, title: str) -> None:
    assert cleaned(said) == title


async def test_no_half_of_a_word_is_sent(tmp_path: Path) -> None:
    provider = TwoModels(text("done"))
    prompt = (TextInput(text="word " * 799 + "tango-7731"),)  # 4,000 characters end in it
    async with opened(tmp_path, provider, title, config=config(title="model")) as app:
        session = await app.create_session()
        await app.prompt(session.id, Prompt(parts=prompt))
        await titled(app, session.id, "Parser mended")

    [request] = provider.titled
    assert str(request.messages).count("word") == 799
    assert "tan" not in str(request.messages)


@pytest.mark.parametrize(("tokens", "asked"), [(10_000, 1), (350, 0)])
async def test_a_title_needs_room_in_the_budget(tmp_path: Path, tokens: int, asked: int) -> None:
    provider = TwoModels(text("done", usage=Usage(input=1)))
    limited = config(small_model="played/small", budget={"tokens": tokens})
    async with opened(tmp_path, provider, title, config=limited) as app:
        session = await app.create_session()
        turn = await app.prompt(session.id, PROMPT)
        if asked:
            await titled(app, session.id, provider.title)

    assert "done" in str(turn.parts)
    assert len(provider.titled) == asked


async def test_a_session_without_a_title_has_the_one_that_clients_know_as_such(
    tmp_path: Path,
) -> None:
    async with opened(tmp_path, Played()) as app:
        session = await app.create_session()

    instant = r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z"
    assert re.fullmatch(f"New session - {instant}", session.title)


@pytest.mark.parametrize("turns", range(0, 40, 4))
async def test_a_title_that_comes_while_the_next_run_begins_is_kept_with_its_cost(
    tmp_path: Path, turns: int
) -> None:
    provider = TwoModels(text("done"))
    provider.go.clear()
    small = config(small_model="played/small")

    async def let_go() -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        provider.go.set()

    async with opened(tmp_path, provider, title, config=small) as app:
        session = await app.create_session()
        await app.prompt(session.id, PROMPT)
        await asyncio.gather(app.prompt(session.id, PROMPT), let_go())
        await titled(app, session.id, "Parser mended")

        assert (await app.session(session.id)).cost == pytest.approx(10 + 10 + 1)


@pytest.mark.parametrize(
    ("prompt", "title"),
    [
        ("Mend the parser. Then run the tests.", "Mend the parser."),
        ("Why does it fail? Look at the log\nand mend it", "Why does it fail?"),
        ("Hi. Mend the parser", "Hi. Mend the parser"),
        (
            "Rename the files, e.g. those of the parser",
            "Rename the files, e.g. those of the parser",
        ),
        ("raise pytest to 8.3.1 in the lock file", "raise pytest to 8.3.1 in the lock file"),
        ("\n  two\nlines", "two"),
        ("word " * 20, "word " * 11 + "word…"),
        ("\u4fee\u6b63" * 8 + "\u3002" + "\u6b21" * 9, "\u4fee\u6b63" * 8 + "\u3002"),
        (" \n ", None),
    ],
)
def test_without_a_model_the_title_is_the_first_sentence(prompt: str, title: str | None) -> None:
    assert title_from(prompt) == title
