"""Whole turns in a test: an App in temporary folders, with a scripted model."""

import asyncio
import os
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

from pegboard import App, AppOptions, Tool, hookimpl
from pegboard.arguments.binding import Arguments
from pegboard.errors import AbortedError, ModelNotFoundError, PluginError, TimeLimitError
from pegboard.loading.registrant import variable_of
from pegboard.providers import Provider
from pegboard.schema.event import PartUpdated, PermissionAsked
from pegboard.schema.message import (
    AbortedFailure,
    AssistantMessage,
    Failure,
    Prompt,
    TextData,
    Turn,
    UnknownFailure,
)
from pegboard.schema.part import (
    Completed,
    Failed,
    PartInput,
    Running,
    TextInput,
    TextPart,
    ToolPart,
)
from pegboard.schema.session import PermissionRequest, Reply
from pegboard.testing.loneplugin import with_own_table
from pegboard.testing.recorder import EventRecorder
from pegboard.testing.scriptedmodel import MODEL, PROVIDER, Script, ScriptedModel
from pegboard.testing.turnrecord import TurnRecord, call_record

BEGIN_LIMIT_S = 10.0
"""How long a cancel waits for the calls before it to begin."""
SILENT_S = 0.5
"""How long a call without progress reports runs before it is cancelled."""
_OF_THE_TEST = ("options", "order", "clash")
"""Problems of a built-in plugin that come of what the test sets."""
Begun = defaultdict[str, asyncio.Event]
"""By the id of a call, whether it has begun."""
Replies = Reply | Callable[[PermissionRequest], Reply | tuple[Reply, str]]
"""Behind the answer may stand what to do instead."""


@dataclass(slots=True, kw_only=True)
class ScriptedApp:
    """An open App whose model follows a script; `project` is its folder."""

    app: App
    model: ScriptedModel
    recorder: EventRecorder
    project: Path
    session_id: str

    async def turn(self, prompt: str | Sequence[PartInput] = "go") -> TurnRecord:
        """Send a prompt, wait for the end of the turn, and return the record of the turn."""
        parts = (TextInput(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
        return await self._play(self.app.prompt(self.session_id, Prompt(parts=parts)))

    async def command(self, name: str, arguments: str = "") -> TurnRecord:
        """Run the slash command `/name arguments` to the end of the turn, and return its record.

        :raises NotFoundError: when the command does not exist.
        """
        from pegboard_plugins.shared.frontend import CommandOrder, run_command

        order = CommandOrder(name=name, arguments=arguments)
        return await self._play(run_command(self.app, self.session_id, order))

    async def _play(self, work: Coroutine[Any, Any, Turn]) -> TurnRecord:
        asked, published = len(self.model.requests), len(self.recorder.events)
        known = len(await self.app.list_turns(self.session_id))
        failure = await _failure(work)
        turns = (await self.app.list_turns(self.session_id))[known:]
        parts = (part for turn in turns for part in turn.parts)
        await asyncio.sleep(0)  # the recorder hears what was published last
        return TurnRecord(
            text=_last_text(turns),
            error=str(getattr(failure.data, "message", "")) if failure else "",
            failures=self._faults(),
            cancelled=isinstance(failure, AbortedFailure),
            calls=tuple(call_record(part) for part in parts if isinstance(part, ToolPart)),
            project=self.project,
            requests=tuple(self.model.requests[asked:]),
            events=tuple(self.recorder.events[published:]),
        )

    def _faults(self) -> tuple[str, ...]:
        infos = self.app.plugins.infos
        tested = {each.name for each in infos if each.origin != "builtin"}
        others = {each.name for each in infos} - tested
        problems = (
            f"{each.plugin}: {each.text}"
            for each in self.app.plugins.problems
            if each.kind in _OF_THE_TEST or each.plugin not in others
            if each.kind != "replaced"
        )
        failed = (each.message for each in self.app.failures if each.plugin not in others)
        return (*problems, *failed)


async def _failure(work: Coroutine[Any, Any, Turn]) -> Failure | None:
    try:
        answer = await work
    except AbortedError as error:
        return AbortedFailure(data=TextData(message=str(error)))
    except (PluginError, ModelNotFoundError) as error:
        if isinstance(error, PluginError) and error.plugin == _Brought.__name__:
            raise  # the script is at fault, and not what is tested
        return UnknownFailure(data=TextData(message=str(error)))
    return answer.info.error if isinstance(answer.info, AssistantMessage) else None


@asynccontextmanager
async def scripted_app(  # noqa: PLR0913 - what a test can set, all keyword-only
    folder: Path,
    *plugins: object,
    script: Script,
    reply: Replies | None = None,
    config: Mapping[str, object] | None = None,
    options: Mapping[str, Any] | None = None,
    secrets: Mapping[str, str] | None = None,
    files: Mapping[str, str | bytes] | None = None,
) -> AsyncIterator[ScriptedApp]:
    """Open an App with the built-in plugins and `plugins`, with all its folders below `folder`.

    - `plugins`: modules, objects with hooks, or tools.
    - `script`: the model's answers, one for each request: a text, a call as `(tool, arguments)`, a
      list of these, `CANCEL`, a `ProviderError`, a stream event, or a function that gets the
      request and returns an answer.
    - `reply`: the user's answer to permission requests; without it no user is there, and requests
      are denied.
    - `config`: settings, as in a `pegboard.toml`.
    - `options`, `secrets`: options and secrets for each of the plugins.
    - `files`: files for the project. The project is trusted, so that tools and plugins in these
      files are loaded.
    """
    project = _project(folder, files or {})
    begun: Begun = defaultdict(asyncio.Event)
    stopping = list[asyncio.Task[bool]]()

    async def cancel(session_id: str, calls: Sequence[str]) -> None:
        for call in calls:
            await _at_work(recorder, begun, call)
        stopping.append(asyncio.create_task(app.abort(session_id)))
        await asyncio.Event().wait()  # the abort ends it

    model = ScriptedModel(script, cancel=cancel)
    others = [each for each in plugins if not _given_tools(each)]
    settled = AppOptions(
        config=_config(config or {}, others, options),
        plugins=(
            _Brought(model, tuple(tool for each in plugins for tool in _given_tools(each))),
            *others,
        ),
        env=_env(folder, config or {}, others, secrets or {}),
        interactive=reply is not None,
        installed=False,
        trust=True,
        config_dir=folder / "config",
        data_dir=folder / "data",
        state_dir=folder / "state",
        cache_dir=folder / "cache",
    )
    async with App.open(project, settled) as app, EventRecorder(app) as recorder:
        _watch(app, begun)
        answering = asyncio.create_task(_answer_requests(app, reply))
        session = await app.create_session(title="test")
        try:
            yield ScriptedApp(
                app=app, model=model, recorder=recorder, project=project, session_id=session.id
            )
        finally:
            answering.cancel()
            await asyncio.wait({answering, *stopping})  # the abort has a limit of its own


async def play_turn(
    folder: Path,
    *plugins: object,
    script: Script,
    prompt: str | Sequence[PartInput] = "go",
    **options: Any,  # noqa: ANN401 - those of `scripted_app`
) -> TurnRecord:
    """Run a single turn in a `scripted_app`, which gets the `options`, and return its record."""
    async with scripted_app(folder, *plugins, script=script, **options) as scripted:
        return await scripted.turn(prompt)


@dataclass(frozen=True)
class _Brought:
    """The plugin that adds the scripted model and the tools that the test has passed."""

    model: Provider
    tools: tuple[Tool, ...]

    @hookimpl
    async def register_providers(self) -> tuple[Provider, ...]:
        return (self.model,)

    @hookimpl
    async def register_tools(self) -> tuple[Tool, ...]:
        return self.tools


@dataclass(frozen=True)
class _Watched:
    """The `arguments` object of a tool, wrapped to record when each call starts to work."""

    arguments: Arguments
    begun: Begun

    def bind(self, context: object, values: Mapping[str, object]) -> Callable[[], Any]:
        self.begun[getattr(context, "call_id", "")].set()
        return self.arguments.bind(context, values)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - the rest of the protocol
        return getattr(self.arguments, name)


def _watch(app: App, begun: Begun) -> None:
    tools = app.tools
    assert isinstance(tools, dict)
    for name, tool in tools.items():
        tools[name] = replace(tool, arguments=_Watched(tool.arguments, begun))


async def _at_work(recorder: EventRecorder, begun: Begun, call: str) -> None:
    """Wait until the tool of a call has begun to work, or the call has ended without that.

    A tool that reports no progress counts as working after a short time.
    """

    def ended(event: PartUpdated) -> bool:
        match event.part:
            case ToolPart(call_id=it, state=Completed() | Failed()):
                return it == call
            case _:
                return False

    def has_progress(event: PartUpdated) -> bool:
        match event.part:
            case ToolPart(call_id=it, state=Running(title=title, metadata=facts)) if it == call:
                return bool(title or facts)
            case _:
                return ended(event)

    either = {
        asyncio.create_task(begun[call].wait()),
        asyncio.create_task(recorder.wait_for(PartUpdated, ended, timeout_s=BEGIN_LIMIT_S)),
    }
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED, timeout=BEGIN_LIMIT_S)
    finally:
        for task in either:
            task.cancel()
        await asyncio.gather(*either, return_exceptions=True)
    if begun[call].is_set():
        with suppress(TimeLimitError):
            await recorder.wait_for(PartUpdated, has_progress, timeout_s=SILENT_S)


async def _answer_requests(app: App, reply: Replies | None) -> None:
    """Answer each permission request in place of a user."""
    async with app.subscribe() as events:
        async for event in events:
            if isinstance(asked := event.properties, PermissionAsked) and reply is not None:
                answer = reply(asked.request) if callable(reply) else reply
                decision = (answer,) if isinstance(answer, str) else answer
                await app.answer_permission(asked.request.id, *decision)


def _project(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    project = folder / "project"
    project.mkdir(parents=True, exist_ok=True)
    (folder / "home").mkdir(exist_ok=True)
    for name, content in files.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    return project


def _config(
    settings: Mapping[str, Any], plugins: Sequence[object], options: Mapping[str, Any] | None
) -> Mapping[str, object]:
    """Return the configuration with the test's model and the plugins' options."""
    tables = dict(settings.get("plugins", {}))
    for name in (with_own_table(each, tables).table for each in plugins if options is not None):
        tables[name] = {**tables.get(name, {}), "options": options}
    return {"model": f"{PROVIDER}/{MODEL.id}", **settings, "plugins": tables}


def _env(
    folder: Path, settings: Mapping[str, Any], plugins: Sequence[object], secrets: Mapping[str, str]
) -> Mapping[str, str]:
    """Return the App's environment: a home, the PATH and the secrets, nothing else."""
    tables = settings.get("plugins", {})
    names = [with_own_table(each, tables).name for each in plugins]
    variables = {variable_of(name, key): value for name in names for key, value in secrets.items()}
    return {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(folder / "home"), **variables}


def _given_tools(plugin: object) -> tuple[Tool, ...]:
    """Return the tools in a plugin that is a tool, or a module that has tools but no hooks."""
    if isinstance(plugin, Tool):
        return (plugin,)
    if not isinstance(plugin, ModuleType):
        return ()
    values = tuple(vars(plugin).values())
    if any(hasattr(each, "pegboard_impl") for each in values if callable(each)):
        return ()
    return tuple(each for each in values if isinstance(each, Tool))


def _last_text(turns: Sequence[Turn]) -> str:
    texts = (
        part.text
        for turn in reversed(turns)
        if isinstance(turn.info, AssistantMessage)
        for part in reversed(turn.parts)
        if isinstance(part, TextPart)
    )
    return next(texts, "")
