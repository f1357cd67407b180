"""The App: one open project, and the public API that the command line and the server use."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import UNSET

from pegboard.config.configuration import LoadedConfig
from pegboard.contract import apphooks
from pegboard.contract.host import ModelQuestion
from pegboard.contract.plugin import Stash
from pegboard.contract.tools import Tool
from pegboard.engine.bus import Subscription
from pegboard.engine.engine import Engine
from pegboard.engine.input.usermessage import UserCall, send_prompt
from pegboard.engine.runs import Runs
from pegboard.engine.sessions import change_session, claim_session, new_session, unstored_view
from pegboard.hooks.callers import Hooks
from pegboard.loading.register import Register
from pegboard.opening.assembly import assemble, close
from pegboard.opening.opener import Opener
from pegboard.opening.options import AppOptions
from pegboard.opening.reload import Reload
from pegboard.policy.agents import default_agent
from pegboard.providers import Provider
from pegboard.providers.keylookup import Keys
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.event import Custom, Event, PluginFailed, SessionWarned
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.model import Model
from pegboard.schema.part import Completed
from pegboard.schema.session import Answers, Question, Reply, Rule, Session, SessionStatus
from pegboard.snapshots import Snapshots
from pegboard.storage import Fence, SearchHit, Storage
from pegboard.storage.changes import ChangeSession, PublishEvent
from pegboard.trust.decisions import Decision
from pegboard.workspace import Workspace

if TYPE_CHECKING:
    from pegboard.enclosing import Enclosed, Enclosure
    from pegboard.engine.asking.judgement import Policy
    from pegboard.paths import UserFolders
    from pegboard.policy.pending import PendingRequests, Questions


class App:
    """An open project, from `App.open(directory)` to `aclose` or the end of `async with`."""

    def __init__(self, engine: Engine, loaded: LoadedConfig, reload: Reload) -> None:
        self._engine, self._loaded, self._reload = engine, loaded, reload
        self._runs = Runs(engine)

    @classmethod
    def open(cls, directory: Path | str, options: AppOptions | None = None) -> "Opener[App]":
        """Open a directory: `async with App.open(directory) as app`, or `await App.open(...)`.

        :raises InvalidInputError: when it is not a directory.
        :raises ConfigError: when the configuration is invalid.
        :raises StorageError: when the database cannot be opened.
        """
        return Opener(partial(cls._open, Path(directory), options or AppOptions()))

    @classmethod
    async def _open(cls, directory: Path, options: AppOptions) -> "App":
        app = cls(*await assemble(directory, options))
        app.hooks.notify(apphooks.startup, app=app)
        return app

    async def __aenter__(self) -> "App":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Abort running turns, call the `shutdown` hooks, and close providers and database."""
        await self._runs.aclose()
        await self.hooks.notify_last(apphooks.shutdown, app=self)
        await close(self._engine, self._reload)

    @property
    def workspace(self) -> Workspace:
        """The project directory that was opened, and the git repository around it."""
        return self._engine.workspace

    @property
    def config(self) -> Config:
        """The configuration, merged from all files and changed by plugins."""
        return self._engine.config

    @property
    def plugins(self) -> Register:
        """The registered plugins, with the problems that were found while they were loaded."""
        return self._reload.register

    @property
    def failures(self) -> Sequence[PluginFailed]:
        """The last hundred failures of plugins, which raised, hung or answered wrongly."""
        return tuple(self._reload.opening.failures)

    @property
    def places(self) -> "UserFolders":
        """The folders in which Pegboard keeps this user's settings, data and caches."""
        return self._engine.places

    @property
    def config_sources(self) -> LoadedConfig:
        """The files that the configuration was read from, and the warnings about them."""
        return self._loaded

    @property
    def trust(self) -> Decision:
        """The decision whether the project's own code may run, renewed before each prompt."""
        return self._reload.seen

    @property
    def commands(self) -> Mapping[str, Command]:
        """The slash commands by name, without the slash."""
        return self._engine.commands

    @property
    def agents(self) -> Mapping[str, Agent]:
        """The agents by name."""
        return self._engine.agents

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by id."""
        return self._engine.tools

    def replace_tools(self, plugin: str, tools: Sequence[Tool]) -> tuple[str, ...]:
        """Replace a plugin's tools from the next turn on; return the problems of the new tools."""
        wrong = self.plugins.replace_tools(plugin, tools)
        self._engine.set_tools(self.plugins.tools)
        return wrong

    def replace_commands(self, plugin: str, commands: Sequence[Command]) -> None:
        """Replace the plugin's slash commands; raise `NotFoundError` for an unknown plugin."""
        self._reload.replace_commands(plugin, commands)

    @property
    def providers(self) -> Mapping[str, Provider]:
        """The providers by id."""
        return self._engine.providers

    @property
    def keys(self) -> Keys:
        """The lookup of API keys and tokens for the providers of models."""
        return self._engine.keys

    @property
    def hooks(self) -> Hooks:
        """The callers of hooks, which ask the plugins and combine the plugins' answers."""
        return self._engine.hooks

    @property
    def snapshots(self) -> Snapshots | None:
        """The snapshots of the project's files, or None if no plugin takes any."""
        return self._engine.snapshots

    @property
    def enclosure(self) -> "Enclosure | None":
        """The sandbox for tools' processes, or None if the user has configured no sandbox."""
        return self._engine.enclosure

    @property
    def in_sandbox(self) -> "Enclosed":
        """The function that wraps a command line in the sandbox, for a process of the App."""
        return self._engine.enclosed

    @property
    def storage(self) -> Storage:
        """The database of sessions."""
        return self._engine.storage

    @property
    def stash(self) -> Stash:
        """Values that plugins keep in memory; a plugin closes its own values in `shutdown`."""
        return self._engine.stash

    @property
    def permissions(self) -> "PendingRequests":
        """The permission requests that wait for an answer; `pending()` lists them."""
        return self._engine.requests

    @property
    def questions(self) -> "Questions":
        """The questions to the user that wait for an answer; `pending()` lists them."""
        return self._engine.questions

    @property
    def untrusted(self) -> tuple[Path, ...]:
        """The project's files that are not run because the user has not trusted their content."""
        return self._reload.untrusted

    def subscribe(self, *, limit: int = 1000) -> Subscription:
        """Return a subscription to all future events, which queues at most `limit` events."""
        return self._engine.bus.subscribe(limit=limit)

    def publish(self, name: str, data: Mapping[str, Any]) -> None:
        """Publish an event that a plugin defines; clients receive it as `Custom`."""
        self._engine.bus.publish(Event(properties=Custom(name=name, data=dict(data))))

    async def warn(self, session_id: str, message: str) -> None:
        """Show the user a warning in a session."""
        warning = SessionWarned(session_id=session_id, message=message)
        await self.storage.commit(PublishEvent(warning))

    def session_status(self, session_id: str) -> SessionStatus:
        """Return the status of a session in this App: an `Idle`, `Busy` or `Retry`."""
        return self._runs.status(session_id)

    async def create_session(
        self,
        *,
        id: str | None = None,  # noqa: A002 - the field's name
        title: str | None = None,
        parent_id: str | None = None,
        agent: str | None = None,
        permission: Sequence[Rule] = (),
    ) -> Session:
        """Create and return a session, or return the one with this `id`; errors as in `Host`."""
        fields = dict(title=title, parent_id=parent_id, agent=agent, permission=permission)  # noqa: C408 - no keys of a plugin's
        return await new_session(self._engine, id, **fields)

    async def session(self, session_id: str) -> Session:
        """Return the session; raise `NotFoundError` if the id is unknown."""
        return await self.storage.session(session_id)

    async def sessions(
        self, *, limit: int | None = None, search: str | None = None, roots: bool = True
    ) -> tuple[Session, ...]:
        """Return up to `limit` sessions, last used first; `roots` excludes subagents' sessions."""
        project = self.workspace.project_id
        return await self.storage.sessions(project, limit=limit, search=search, roots=roots)

    async def list_turns(self, session_id: str, *, files: bool = False) -> tuple[Turn, ...]:
        """Return a session's messages with their parts, in order, including an unfinished answer.

        With `files`, first wait for the snapshot with the file changes of all ended steps.
        """
        await self._runs.store_text(session_id, files=files)
        return await self.storage.turns(session_id)

    async def store_text(self, session_id: str) -> None:
        """Wait until the text that the model has written so far is in the database."""
        await self._runs.store_text(session_id)

    async def reload_project_code(self) -> None:
        """Reload the code in the project's files if it has changed and is trusted."""
        await self._reload.look()

    async def prompt(self, session: Session | str, prompt: str | Prompt) -> Turn:
        """Send a prompt and return the last answer, as `Host.prompt` does.

        The prompt is stored first. If the model fails, `info.error` of the answer is the failure.
        """
        await self.reload_project_code()
        send = partial(self._runs.prompt, session if isinstance(session, str) else session.id)
        return await send_prompt(prompt, self.workspace.directory, send)

    async def resume(self, session_id: str) -> Turn:
        """Continue an answer that was aborted or whose process died; return the last answer.

        An interrupted call has an error. Without any prompt, `InvalidInputError` is raised.
        """
        await self.reload_project_code()
        return await self._runs.resume(session_id)

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Delete a prompt if no model has read it yet; return whether the prompt was deleted."""
        return await self._runs.withdraw(session_id, message_id)

    async def call_tool(
        self,
        session_id: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        agent: str | None = None,
        model: str | None = None,
    ) -> Completed:
        """Call a tool under the session's permissions, without storing the call.

        :raises PermissionDeniedError: when the call is denied.
        :raises ToolError: when the tool fails, AbortedError when the session is aborted meanwhile.
        """
        from pegboard.engine.input.usercall import call_tool  # only who calls needs it

        calling = partial(call_tool, tool=tool, args=args, agent=agent, model=model)
        return await self._runs.alone(session_id, calling)

    async def run_user_call(self, session_id: str, order: UserCall) -> Turn:
        """Run a tool call for the user, without a permission request; return the turn with it.

        :raises NotFoundError: for an unknown session or agent, ModelNotFoundError for a model.
        :raises SessionBusyError: while the session runs.
        """
        return await self._runs.carry_out(session_id, order)

    async def user_env(self) -> Mapping[str, str]:
        """Return the environment variables for a program of the user, without secrets."""
        return await self._engine.user_env(unstored_view(self._engine, self.default_agent()))

    async def update_session(
        self,
        session_id: str,
        *,
        title: str | None = None,
        if_title: str | None = None,
        archived: bool | None = None,
    ) -> Session:
        """Rename, archive or restore a session; `Host.update_session` explains `if_title`."""
        name = (title or "").strip() or UNSET
        at = UNSET if archived is None else self._engine.now() if archived else None
        was = UNSET if if_title is None else if_title
        change = ChangeSession(session_id=session_id, title=name, archived=at, title_was=was)
        return await change_session(self.storage, change)

    async def ask_model(self, session_id: str, question: ModelQuestion) -> str:
        """Ask the model outside of the conversation; `Host.ask_model` lists the errors."""
        from pegboard.engine.sidecall import SideCall  # only who asks needs it

        call = SideCall(self._engine, session_id, question)
        return await call.answer(self._runs.budget(session_id))

    async def delete_session(self, session_id: str) -> None:
        """Stop and delete a session, its subagents' sessions and all their data."""
        await self._runs.delete(session_id)

    async def children(self, session_id: str) -> tuple[Session, ...]:
        """Return the sessions of a session's subagents, in the order of their creation."""
        await self.storage.session(session_id)
        return await self.storage.children(session_id)

    async def search(self, text: str, *, limit: int = 50) -> tuple[SearchHit, ...]:
        """Search the titles and texts of sessions; return at most `limit` of the project's."""
        return await self.storage.search(self.workspace.project_id, text, limit=limit)

    async def summarize(self, session_id: str, *, model: str | None = None) -> Turn:
        """Summarise the history for later requests; if this fails, the turn has an `info.error`.

        :raises SessionBusyError: while the session runs, AbortedError when the summary is stopped.
        """
        return await self._runs.summarize(session_id, model)

    @asynccontextmanager
    async def hold_session(self, session_id: str) -> AsyncIterator[Fence]:
        """Keep a session idle in a block; prompts wait. Yield the right to run it, a `Fence`.

        :raises NotFoundError: when the session does not exist, SessionBusyError while it runs.
        """
        async with self._runs.at_rest(session_id), claim_session(self.storage, session_id) as fence:
            yield fence

    async def abort(self, session_id: str, *, reason: str = "") -> bool:
        """Stop the session's run as `Host.abort` does; return False if none was running."""
        return await self._runs.abort(session_id, reason)

    async def ask_user(self, session_id: str, questions: Sequence[Question]) -> Answers | None:
        """Ask the user questions without a tool call; return None if no user is present."""
        from pegboard.engine.asking.toolquestion import ask_person

        return await ask_person(self._engine, self._runs.beside, session_id, questions)

    async def answer_permission(
        self, request_id: str, reply: Reply, message: str | None = None
    ) -> None:
        """Answer "once", "always" (in this project) or "reject", or raise `NotFoundError`."""
        await self.permissions.reply(request_id, reply, message)

    @property
    def policy(self) -> "Policy":
        """The judge of calls and permission requests, and the user's permanent approvals."""
        from pegboard.engine.asking.judgement import Policy  # few look at it

        return Policy(self._engine)

    async def answer_question(self, request_id: str, answers: Sequence[Sequence[str]]) -> None:
        """Answer questions: for each the labels that the user chose, or the user's own text."""
        self.questions.answer(request_id, tuple(tuple(labels) for labels in answers))

    async def reject_question(self, request_id: str) -> None:
        """Reject the questions of a request, which ends its turn; `NotFoundError` if none waits."""
        self.questions.reject(request_id)

    async def resolve_model(self, name: str) -> Model:
        """Return the model with this name; `ModelNotFoundError` suggests similar names."""
        return await self._engine.models.find(name)

    async def models(self, *, without_keys: bool = False) -> tuple[Model, ...]:
        """Return the models with a known key, or all models, with all known facts."""
        return await self._engine.models.known(without_keys=without_keys)

    def default_agent(self) -> Agent:
        """Return the agent for prompts that name no agent."""
        return default_agent(self.config, self.agents)
