"""The App: one project directory with its plugins, its configuration and its sessions.

This is the composition root, and the public API for embedding: the command line and the
server use nothing else.
"""

import asyncio
import os
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

from pegboard.agents import agents_from, default_agent
from pegboard.bus import Bus, Subscription
from pegboard.config import LoadedConfig, load_config
from pegboard.errors import ConfigError, PegboardError
from pegboard.files import FileLedger
from pegboard.hooks import Hooks
from pegboard.ids import IdSource
from pegboard.models import find_model
from pegboard.paths import Places
from pegboard.permissions import Desk
from pegboard.plugins import Register, load_plugins
from pegboard.providers import Provider
from pegboard.schema.agent import Agent, Command
from pegboard.schema.config import Config
from pegboard.schema.event import Event, PluginFailed
from pegboard.schema.message import Turn
from pegboard.schema.model import Model
from pegboard.schema.permission import Reply, Rule
from pegboard.schema.prompt import PartInput
from pegboard.schema.session import Session, SessionStatus
from pegboard.session.engine import Engine
from pegboard.session.prompt import Prompt
from pegboard.session.runs import Runs
from pegboard.session.sessions import new_session
from pegboard.storage import open_storage
from pegboard.storage.protocol import Storage
from pegboard.tools import Tool
from pegboard.trust import Decision, TrustStore
from pegboard.workspace import Workspace, open_workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class AppOptions:
    """How an App is opened.

    `config` is laid over the configuration's files, in their syntax. `plugins` are objects that
    are plugins too, the newest of all. `interactive` says that somebody answers permission
    requests; without it an ask is a deny. `trust` decides about the project's own code for this
    App alone, None leaves it to what the user said before. `env` stands for the environment,
    the folders for the user's.
    """

    config: Mapping[str, object] = field(default_factory=dict)
    plugins: tuple[object, ...] = ()
    builtins: bool = True
    installed: bool = True
    interactive: bool = False
    trust: bool | None = None
    env: Mapping[str, str] | None = None
    config_dir: Path | None = None
    data_dir: Path | None = None
    state_dir: Path | None = None
    cache_dir: Path | None = None


class App:
    """An open project; `await App.open(directory)` makes one, `aclose` ends it."""

    def __init__(  # noqa: PLR0913 - the parts of an App, all keyword-only
        self,
        *,
        engine: Engine,
        runs: Runs,
        register: Register,
        loaded: LoadedConfig,
        decision: Decision,
        bus: Bus,
        commands: Mapping[str, Command],
    ) -> None:
        self._engine = engine
        self._runs = runs
        self._bus = bus
        self.register = register
        self.loaded = loaded
        self.decision = decision
        self.commands = commands

    @classmethod
    async def open(cls, directory: Path | str, options: AppOptions | None = None) -> "App":
        """An App for this directory, with everything registered and nothing running.

        :raises InvalidInputError: when it is not a directory.
        :raises ConfigError: when the configuration cannot be used.
        :raises StorageError: when the database cannot be opened.
        """
        return await _Opening(Path(directory), options or AppOptions()).app()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Stop what runs, tell the plugins, and close providers and database."""
        await self._runs.aclose()
        await self.hooks.shutdown(app=self)
        await self.hooks.aclose()
        for provider in self.providers.values():
            await provider.aclose()
        self._bus.close()
        await self.storage.aclose()

    @property
    def workspace(self) -> Workspace:
        """The directory and its repository."""
        return self._engine.workspace

    @property
    def config(self) -> Config:
        """The configuration, after all files and plugins."""
        return self._engine.config

    @property
    def config_sources(self) -> Mapping[str, str]:
        """Each key that a file sets, dotted, with that file."""
        return self.loaded.sources

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents by name."""
        return self._engine.agents

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by id."""
        return self._engine.tools

    @property
    def providers(self) -> Mapping[str, Provider]:
        """The providers by id."""
        return self._engine.providers

    @property
    def hooks(self) -> Hooks:
        """The plugins' hooks."""
        return self._engine.hooks

    @property
    def storage(self) -> Storage:
        """The database."""
        return self._engine.storage

    @property
    def permissions(self) -> Desk:
        """The permission requests that wait for an answer."""
        return self._engine.desk

    @property
    def untrusted(self) -> tuple[Path, ...]:
        """The project's files that were not run, because nobody has trusted them."""
        return () if self.decision.trusted else tuple(self.decision.files)

    def subscribe(self, *, limit: int = 1000) -> Subscription:
        """The events from here on, at most `limit` of them queued."""
        return self._bus.subscribe(limit=limit)

    def status(self, session_id: str) -> SessionStatus:
        """Whether a session runs in this App."""
        return self._runs.status(session_id)

    async def create_session(
        self,
        *,
        title: str | None = None,
        parent_id: str | None = None,
        agent: str | None = None,
        permission: Sequence[Rule] = (),
    ) -> Session:
        """A new session; `permission` are rules that can only tighten."""
        return await new_session(
            self._engine,
            title=title,
            parent_id=parent_id,
            agent=agent,
            permission=tuple(permission),
        )

    async def session(self, session_id: str) -> Session:
        """The session.

        :raises NotFoundError: when nothing has this id.
        """
        return await self.storage.session(session_id)

    async def sessions(
        self, *, limit: int | None = None, search: str | None = None, roots: bool = True
    ) -> tuple[Session, ...]:
        """The project's sessions, those used last first; `roots` leaves subagents' out."""
        return await self.storage.sessions(
            self.workspace.project_id, limit=limit, search=search, roots=roots
        )

    async def turns(self, session_id: str) -> tuple[Turn, ...]:
        """The messages of a session with their parts, in order."""
        return await self.storage.turns(session_id)

    async def prompt(  # noqa: PLR0913 - the protocol's fields, all keyword-only
        self,
        session_id: str,
        parts: Sequence[PartInput],
        *,
        agent: str | None = None,
        model: str | None = None,
        message_id: str | None = None,
        system: str | None = None,
        tools: Mapping[str, bool] | None = None,
        variant: str | None = None,
        no_reply: bool = False,
    ) -> Turn:
        """The last answer, once this prompt and all that wait with it are answered.

        The prompt is stored before anything can refuse it; a model is named `provider/model`.
        What went wrong with the model is in the answer's `info.error`.

        :raises NotFoundError: for an unknown session or agent.
        :raises ModelNotFoundError: when no provider serves the model.
        :raises AbortedError: when the turn was stopped before there was an answer.
        :raises SessionBusyError: when another process runs the session.
        """
        prompt = Prompt(
            parts=tuple(parts),
            agent=agent,
            model=model,
            message_id=message_id,
            system=system,
            tools=dict(tools) if tools else None,
            variant=variant,
            no_reply=no_reply,
        )
        session = await self.storage.session(session_id)
        return await self._runs.prompt(self._engine, session, prompt)

    async def abort(self, session_id: str) -> bool:
        """Stop the session's run and wait until it has ended; False when none ran."""
        return await self._runs.abort(session_id)

    async def reply(self, request_id: str, reply: Reply, message: str | None = None) -> None:
        """Answer a permission request; a `message` with `reject` says what to do instead.

        :raises NotFoundError: when no request of this id waits.
        """
        self.permissions.reply(request_id, reply, message)

    async def resolve_model(self, name: str) -> Model:
        """The model of this name.

        :raises ModelNotFoundError: with the nearest names, when no provider serves it.
        """
        return await self._engine.resolve_model(name)

    def default_agent(self) -> Agent:
        """The agent that talks to the user when none is named."""
        return default_agent(self.config, self.agents)


class _Opening:
    """The steps of opening an App; what takes the disk's time runs beside the rest."""

    def __init__(self, directory: Path, options: AppOptions) -> None:
        self._directory = directory
        self._options = options
        self._env = dict(os.environ if options.env is None else options.env)
        self._places = Places.of(
            self._env,
            config=options.config_dir,
            data=options.data_dir,
            state=options.state_dir,
            cache=options.cache_dir,
        )
        self._bus = Bus()
        self._hooks: Hooks | None = None
        self._registered: asyncio.Future[Hooks] = asyncio.get_running_loop().create_future()
        self._ids = IdSource()

    async def app(self) -> App:
        workspace = open_workspace(self._directory)
        storage = asyncio.ensure_future(self._storage())
        try:
            app = await self._assembled(workspace, storage)
        except BaseException:
            self._registered.cancel()
            await _discard(storage)
            raise
        await app.hooks.startup(app=app)
        return app

    async def _assembled(self, workspace: Workspace, storage: "asyncio.Future[Storage]") -> App:
        options, places = self._options, self._places
        loaded, decision = await self._configured(workspace)
        register = await load_plugins(
            directory=workspace.directory,
            worktree=workspace.worktree,
            config_dir=places.config,
            config=loaded.config,
            env=self._env,
            decision=decision,
            extra=options.plugins,
            builtins=options.builtins,
            installed=options.installed,
            on_failure=self._plugin_failed,
        )
        self._hooks = hooks = register.hooks
        self._registered.set_result(hooks)
        config = await hooks.config_load(config=loaded.config)
        tools = await register.collect_tools(config)
        providers = await _providers(hooks, config)
        agents = await _agents(hooks, config)
        opened = await storage
        runs = Runs()
        engine = Engine(
            workspace=workspace,
            config=config,
            hooks=hooks,
            storage=opened,
            publish=self._publish,
            desk=Desk(interactive=options.interactive),
            ids=self._ids,
            files=FileLedger(),
            tools=tools,
            agents=agents,
            providers=providers,
            approvals=list(await opened.approvals(workspace.project_id)),
            warmed=set(),
            env=self._env,
            output_dir=places.tool_output,
            now=_now,
            resolve_model=lambda name: find_model(name, providers, hooks),
            run_child=lambda request: runs.run_child(engine, request),
        )
        return App(
            engine=engine,
            runs=runs,
            register=register,
            loaded=loaded,
            decision=decision,
            bus=self._bus,
            commands=await _commands(hooks, config),
        )

    async def _storage(self) -> Storage:
        """The database: SQLite at once, another kind when the plugins are there to open it."""
        url = self._env.get("PEGBOARD_DATABASE", "")
        scheme = url.partition("://")[0]
        if scheme == url:
            path = Path(url) if url else self._places.database
            return await open_storage(path, ids=self._ids, on_commit=self._publish)
        hooks = await self._registered
        kinds = {
            known: opener
            for answer in await hooks.register_storage()
            for known, opener in answer.value.items()
        }
        if scheme not in kinds:
            raise ConfigError(
                f"no plugin opens {scheme}:// databases; known: {', '.join(kinds) or 'none'}",
                key="PEGBOARD_DATABASE",
            )
        return await kinds[scheme](url, ids=self._ids, on_commit=self._publish)

    def _publish(self, events: Sequence[Event]) -> None:
        self._bus.publish(*events)
        if self._hooks is not None and self._hooks.has("event"):
            for event in events:
                self._hooks.event(event)

    def _plugin_failed(self, failure: PluginFailed) -> None:
        self._bus.publish(Event(properties=failure))

    async def _configured(self, workspace: Workspace) -> tuple[LoadedConfig, Decision]:
        """The configuration, read again in full when the project turns out to be trusted."""
        loaded = await self._config(workspace, trusted=False)
        lock = self._env.get("PEGBOARD_TRUST_LOCK")
        decision = TrustStore(self._places.trust).decide(
            directory=workspace.directory,
            worktree=workspace.worktree,
            config_files=loaded.untrusted,
            answer=self._options.trust,
            lock=Path(lock) if lock else None,
        )
        if decision.trusted and loaded.untrusted:
            loaded = await self._config(workspace, trusted=True)
        return loaded, decision

    async def _config(self, workspace: Workspace, *, trusted: bool) -> LoadedConfig:
        return await load_config(
            workspace,
            config_dir=self._places.config,
            env=self._env,
            overrides=self._options.config,
            trusted=trusted,
        )


async def _providers(hooks: Hooks, config: Config) -> dict[str, Provider]:
    """The providers by id, without those that the user has switched off."""
    found = {
        answer.value.id: answer.value for answer in await hooks.register_providers(config=config)
    }
    wanted = config.enabled_providers
    return {
        name: provider
        for name, provider in found.items()
        if name not in config.disabled_providers and (wanted is None or name in wanted)
    }


async def _agents(hooks: Hooks, config: Config) -> Mapping[str, Agent]:
    answers = await hooks.register_agents(config=config)
    return agents_from(config, [answer.value for answer in answers])


async def _commands(hooks: Hooks, config: Config) -> dict[str, Command]:
    """The slash commands by name: the plugins' ones, then the user's."""
    found = {
        answer.value.name: answer.value for answer in await hooks.register_commands(config=config)
    }
    for name, said in config.command.items():
        found[name] = Command(
            name=name,
            template=said.template,
            hints=_hints(said.template),
            description=said.description,
            agent=said.agent,
            model=said.model,
            source="command",
            subtask=said.subtask,
        )
    return found


def _hints(template: str) -> tuple[str, ...]:
    """The placeholders of a template: `$1`, `$2` ... and `$ARGUMENTS`."""
    return tuple(sorted(set(re.findall(r"\$\d+|\$ARGUMENTS", template))))


async def _discard(storage: "asyncio.Future[Storage]") -> None:
    """Close a database whose App did not come to be."""
    try:
        opened = await storage
    except (PegboardError, asyncio.CancelledError):
        return
    await opened.aclose()


def _now() -> int:
    return time.time_ns() // 1_000_000
