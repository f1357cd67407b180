"""A provider whose answers a test has written, and an App around it."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from pegboard import App, AppOptions, hookimpl, tool
from pegboard.providers import (
    ModelRequest,
    Provider,
    StreamEvent,
    StreamFinish,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputStart,
    Usage,
)
from pegboard.schema.config import Agent
from pegboard.schema.event import Event
from pegboard.schema.message import AssistantMessage, Turn
from pegboard.schema.model import Model, ModelApi
from pegboard.schema.part import Part, StepFinishPart, StepStartPart, TextPart, ToolPart
from pegboard.schema.session import Rule
from pegboard_plugins import attachments, budget, files, processes, snapshots, sqlite
from support.storage import server_database
from support.storage.slow_storage import SlowStoragePlugin, slow_seed, slow_url

Answer = Callable[[ModelRequest], AsyncIterator[StreamEvent]]
USAGE = Usage(input=10, output=5)


HI = "hi"
"""A prompt."""


@tool
async def shout(words: str) -> str:
    """Say it loud.

    Args:
        words: what to say.
    """
    return words.upper()


def as_told(part: Part) -> Part:
    """The part as events tell it: the snapshot of a step is known late, and stored untold."""
    if isinstance(part, StepStartPart | StepFinishPart):
        return msgspec.structs.replace(part, snapshot=None)
    return part


def assistant(turn: Turn) -> AssistantMessage:
    assert isinstance(turn.info, AssistantMessage)
    return turn.info


def texts(turn: Turn) -> list[str]:
    return [part.text for part in turn.parts if isinstance(part, TextPart)]


def tools_of(turns: tuple[Turn, ...]) -> list[ToolPart]:
    return [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]


def text(said: str, *, reason: str = "stop", usage: Usage | None = USAGE) -> list[StreamEvent]:
    """An answer of one text."""
    return [
        TextStart("0"),
        *(TextDelta("0", piece) for piece in re.findall(r"\s*\S+", said)),
        TextEnd("0"),
        StreamFinish(reason, usage),
    ]


def call(name: str, arguments: str, *, call_id: str = "call_0") -> list[StreamEvent]:
    """A tool call, without the answer's end."""
    return [ToolInputStart(call_id, name), ToolCall(call_id, name, arguments)]


def calls(*events: Sequence[StreamEvent]) -> list[StreamEvent]:
    """An answer that makes these calls."""
    return [*(event for group in events for event in group), StreamFinish("tool-calls", USAGE)]


class Played(Provider):
    """Provider `played`: each request takes the next answer; the last one is repeated."""

    id = "played"
    name = "Played"
    env = ("PLAYED_KEY",)

    def __init__(
        self, *answers: Sequence[StreamEvent] | Answer, model: Model | None = None
    ) -> None:
        self.requests: list[ModelRequest] = []
        self.closed = False
        self._answers = answers
        self._model = model or Model(id="m", provider_id="played", name="M", api=ModelApi(id="m"))

    def models(self) -> tuple[Model, ...]:
        return (self._model,)

    def resolve(self, model_id: str) -> Model | None:
        return self._model if model_id == self._model.id else None

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        answer = self._answers[min(len(self.requests), len(self._answers) - 1)]
        self.requests.append(request)
        if callable(answer):
            async for event in answer(request):
                yield event
            return
        for event in answer:
            yield event

    async def aclose(self) -> None:
        self.closed = True


class PlayedPlugin:
    """Registers a provider and the agents `build` (free) and `helper` (a subagent)."""

    def __init__(self, provider: Provider, *, agents: Sequence[Agent] = ()) -> None:
        self._provider = provider
        free = (Rule("*", "*", "allow"),)
        self._agents = [
            Agent(name="build", mode="primary", permission=free, options={}),
            Agent(name="helper", mode="subagent", permission=free, options={}),
            *agents,
        ]

    @hookimpl
    async def register_providers(self) -> list[Provider]:
        return [self._provider]

    @hookimpl
    async def register_agents(self) -> list[Agent]:
        return self._agents


class ToolsPlugin:
    """Registers tools."""

    def __init__(self, *tools: object) -> None:
        self._tools = tools

    @hookimpl
    async def register_tools(self) -> list[object]:
        return list(self._tools)


class AllowAll:
    """A policy that allows everything, so that nothing else has to speak."""

    @hookimpl
    async def permission_ask(self) -> object:
        from pegboard.schema.session import Verdict

        return Verdict(action="allow")


@asynccontextmanager
async def opened(
    folder: Path,
    provider: Provider,
    *plugins: object,
    allow: bool = True,
    env: Mapping[str, str] | None = None,
    **options: object,
) -> AsyncIterator[App]:
    """An App in `folder/project` with these plugins, SQLite and what it needs for tools.

    Its data is beside the project.

    Its database answers late where `slow_storage` is asked for, or is that of `--database`.
    """
    project = folder / "project"
    project.mkdir(exist_ok=True)
    policy = (AllowAll(),) if allow else ()
    variables = dict(env or {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(folder)})
    own = (attachments, budget, files, processes, snapshots, sqlite)
    kept = () if options.get("builtins") else own
    slow: tuple[object, ...] = ()
    if (seed := slow_seed()) is not None:
        slow = (SlowStoragePlugin(seed),)
        variables["PEGBOARD_DATABASE"] = slow_url(folder / "data" / "pegboard.db")
    elif server_database.is_asked_for():
        slow = (server_database.plugin(),)
        variables["PEGBOARD_DATABASE"] = server_database.database_of(folder)
    chosen = AppOptions(
        installed=False,
        plugins=(PlayedPlugin(provider), *kept, *policy, *slow, *plugins),
        config_dir=folder / "config",
        data_dir=folder / "data",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
        env=variables,
        **{
            "builtins": False,
            "config": {"model": "played/m"},
            **options,
        },
    )
    async with App.open(project, chosen) as app:
        yield app


async def heard(app: App, wait_for: Callable[[Event], bool]) -> list[Event]:
    """The events until one fits, that one included."""
    events: list[Event] = []
    async with app.subscribe(limit=100_000) as subscription:
        async for event in subscription:
            events.append(event)
            if wait_for(event):
                break
    return events
