"""Every request to a model passes the same hooks, and one that is required stops it by failing."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from pegboard import App, Prompt, SessionView, ToolContext, evolve, hookimpl, tool
from pegboard.contract.host import ModelQuestion
from pegboard.errors import RequiredHookError
from pegboard.providers import ModelRequest, StreamEvent, TextDelta, ToolDefinition
from pegboard.schema.config import Agent, Command
from pegboard.schema.event import Event, PluginFailed
from pegboard.schema.message import Turn
from pegboard.schema.part import Completed, Part, TextPart, ToolPart
from pegboard_plugins import agents, compact, environment, instructions, title
from pegboard_plugins.shared.frontend import CommandOrder, run_command
from support.models.compacting import error_of
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text, texts

SECRET = "tango-7731"
PROMPT = f"remember {SECRET}"
DELEGATE = f"delegate {SECRET}"
ASIDE = Agent(name="aside", mode="primary", permission=(), options={}, prompt=f"Mind {SECRET}.")
FILTERED = ("chat_messages_transform", "chat_system_transform", "chat_params", "chat_headers")


@tool(description=f"Has a subagent do it; the word is {SECRET}.", effect="delegates")
async def delegate(context: ToolContext) -> str:
    result = await context.run_subagent("helper", f"find {SECRET}", description="find")
    return result.text


class Remember:
    """A slash command."""

    @hookimpl
    async def register_commands(self) -> list[Command]:
        return [Command(name="remember", template=f"remember $ARGUMENTS and {SECRET}", hints=())]


class Filter:
    """Takes the secret out of all that goes to a model, unless it is broken at a hook."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, SessionView]] = []
        self.failures: list[PluginFailed] = []
        self.broken: tuple[str, Callable[[SessionView], bool]] = ("", lambda _: False)

    def _clean(self, hook: str, session: SessionView, said: str) -> str:
        self.seen.append((hook, session))
        if hook == self.broken[0] and self.broken[1](session):
            raise RuntimeError("broken")
        return said.replace(SECRET, "[gone]")

    @hookimpl(required=True)
    async def chat_messages_transform(
        self, session: SessionView, messages: tuple[Turn, ...]
    ) -> tuple[Turn, ...]:
        def clean(part: Part) -> Part:
            if isinstance(part, ToolPart) and isinstance(part.state, Completed):
                return evolve(part, state=evolve(part.state, output="[hidden]"))
            if not isinstance(part, TextPart):
                return part
            return evolve(part, text=self._clean("chat_messages_transform", session, part.text))

        return tuple(evolve(turn, parts=tuple(map(clean, turn.parts))) for turn in messages)

    @hookimpl(required=True, trylast=True)
    async def chat_system_transform(
        self, session: SessionView, system: tuple[str, ...]
    ) -> tuple[str, ...]:
        kept = tuple(self._clean("chat_system_transform", session, piece) for piece in system)
        return (*kept, self._clean("chat_system_transform", session, "Filtered."))

    @hookimpl(required=True)
    async def tool_definition(self, session: SessionView, tool: ToolDefinition) -> ToolDefinition:
        said = self._clean("tool_definition", session, tool.description)
        return evolve(tool, description=said)

    @hookimpl(required=True)
    async def chat_params(self, session: SessionView, request: ModelRequest) -> ModelRequest:
        self._clean("chat_params", session, "")
        return evolve(request, top_p=0.25)

    @hookimpl(required=True)
    async def chat_headers(
        self, session: SessionView, headers: Mapping[str, str]
    ) -> Mapping[str, str]:
        return {**headers, "x-filter": self._clean("chat_headers", session, "on")}

    @hookimpl(required=True)
    async def text_complete(self, session: SessionView, text: str) -> str:
        return self._clean("text_complete", session, text)

    @hookimpl
    async def event(self, event: Event) -> None:
        if isinstance(event.properties, PluginFailed):
            self.failures.append(event.properties)


class Listening(Played):
    """Calls the tool for what begins with `delegate`, and says the secret to all else."""

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        self.requests.append(request)
        asked = "delegate [gone]" in str(request.messages[-1])
        for event in calls(call("delegate", "{}")) if asked else text(f"It is {SECRET}."):
            yield event


async def prompt(app: App, session: str) -> None:
    await app.prompt(session, Prompt(PROMPT, system=f"Say {SECRET}."))


async def subagent(app: App, session: str) -> None:
    await app.prompt(session, DELEGATE)


async def command(app: App, session: str) -> None:
    await run_command(app, session, CommandOrder(name="remember", arguments=SECRET))


async def summary(app: App, session: str) -> None:
    await app.summarize(session)


async def aside(app: App, session: str) -> None:
    await app.ask_model(session, ModelQuestion(agent=ASIDE, text=f"What is {SECRET}?"))


async def is_titled(app: App, session: str) -> bool:
    return (await app.session(session)).title.startswith("It is")


async def titled(app: App, session: str) -> None:
    """Wait for the title of the prompt that came before, or for the hook that stops it."""
    async with asyncio.timeout(30):
        while not (app.failures or await is_titled(app, session)):  # noqa: ASYNC110 - no event
            await asyncio.sleep(0.01)


Act = Callable[[App, str], Awaitable[None]]
KINDS: dict[str, tuple[Act, Callable[[SessionView], bool], int]] = {
    "prompt": (prompt, lambda session: session.purpose == "turn", 0),
    "subagent": (subagent, lambda session: session.depth > 0, 1),
    "command": (command, lambda session: session.purpose == "turn", 0),
    "title": (titled, lambda session: session.purpose == "titles", 1),
    "summary": (summary, lambda session: session.purpose == "summaries", 1),
    "aside": (aside, lambda session: session.purpose == "aside", 0),
}
"""What makes the request, which session its hooks are told of, and how many come before it."""
EVERY = pytest.mark.parametrize("kind", KINDS)


async def played(folder: Path, kind: str, broken: str = "") -> tuple[Filter, Listening]:
    """The hooks and the requests of one kind, with those that have to come before."""
    act, fits, _ = KINDS[kind]
    provider, words = Listening(), Filter()
    words.broken = (broken, fits)
    config = {"model": "played/m", "title": "model" if kind == "title" else "off"}
    plugins = (words, title, compact, Remember(), ToolsPlugin(delegate))
    async with opened(folder, provider, *plugins, config=config) as app:
        session = await app.create_session()
        if kind in ("title", "summary"):
            await prompt(app, session.id)
        with suppress(RequiredHookError):  # what is stored has it as the error of its message
            await act(app, session.id)
    return words, provider


@EVERY
async def test_each_kind_of_request_passes_all_hooks(tmp_path: Path, kind: str) -> None:
    _, fits, before = KINDS[kind]

    words, provider = await played(tmp_path, kind)

    assert set(FILTERED) <= {hook for hook, session in words.seen if fits(session)}
    assert len(provider.requests) > before
    for request in provider.requests:
        assert SECRET not in repr(request)
        assert (request.system[-1], request.top_p) == ("Filtered.", 0.25)
        assert request.headers["x-filter"] == "on"


@EVERY
@pytest.mark.parametrize("hook", FILTERED)
async def test_a_required_hook_that_fails_stops_each_kind(
    tmp_path: Path, kind: str, hook: str
) -> None:
    words, provider = await played(tmp_path, kind, hook)

    assert len(provider.requests) == KINDS[kind][2]
    assert ("Filter", hook) in {(failed.plugin, failed.hook) for failed in words.failures}


@pytest.mark.parametrize("broken", ["", "text_complete"])
async def test_no_answer_is_stored_or_given_past_the_filter_for_texts(
    tmp_path: Path, broken: str
) -> None:
    provider, words = Listening(), Filter()
    config = {"model": "played/m", "title": "model"}
    async with opened(tmp_path, provider, words, title, compact, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, "remember it")
        words.broken = (broken, lambda _: True)
        await titled(app, session.id)
        summed = await app.summarize(session.id)
        try:
            answer = await app.ask_model(session.id, ModelQuestion(agent=ASIDE, text="What is it?"))
        except RequiredHookError as error:
            answer = str(error)
        name = (await app.session(session.id)).title
        turns = await app.list_turns(session.id)

    assert SECRET not in repr((turns, name, answer))
    assert (name == "It is [gone]") or broken
    assert ("text_complete" in answer, error_of(summed) is not None) == (bool(broken),) * 2


@pytest.mark.parametrize("broken", ["", "text_complete"])
async def test_a_text_that_is_cut_off_is_stored_through_the_filter_too(
    tmp_path: Path, broken: str
) -> None:
    said = asyncio.Event()

    async def endless(_: ModelRequest) -> AsyncIterator[StreamEvent]:
        yield TextDelta("0", f"It is {SECRET}.")
        said.set()
        await asyncio.sleep(60)

    words = Filter()
    words.broken = (broken, lambda _: True)
    async with opened(tmp_path, Played(endless), words) as app:
        session = await app.create_session()
        asking = asyncio.create_task(app.prompt(session.id, HI))
        await asyncio.wait_for(said.wait(), 30)
        await app.abort(session.id)
        turn = await asking

    assert texts(turn) == ["" if broken else "It is [gone]."]


async def test_a_compactor_reads_what_a_model_may_read(tmp_path: Path) -> None:
    """What a filter takes out by the kind of its part would be text like any other there."""

    @tool(effect="reads")
    def vault() -> str:
        """Open the vault."""
        return "the code is 1234"

    provider = Played(calls(call("vault", "{}")), text("done"), text("a summary"))
    async with opened(tmp_path, provider, Filter(), compact, ToolsPlugin(vault)) as app:
        session = await app.create_session()
        await app.prompt(session.id, PROMPT)
        summed = await app.summarize(session.id)

    assert error_of(summed) is None
    assert "[hidden]" in repr(provider.requests[-1].messages)
    assert "1234" not in repr(provider.requests)


async def test_what_the_main_turn_is_told_is_told_to_no_other_request(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("Speak Latin.")
    provider = Listening()
    plugins = (title, compact, agents, environment, instructions)
    config = {"model": "played/m", "title": "model"}
    async with opened(tmp_path, provider, *plugins, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, PROMPT)
        await titled(app, session.id)
        await app.summarize(session.id)
        await app.ask_model(
            session.id, ModelQuestion(agent=evolve(ASIDE, prompt=None), text="Why?")
        )

    turn, *others = [request.system for request in provider.requests]
    assert "Speak Latin." in "".join(turn)
    assert others == [(title.SYSTEM,), (compact.SYSTEM,), ()]
