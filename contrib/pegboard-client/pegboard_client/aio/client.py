"""The asynchronous client for a project on a Pegboard server."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pegboard.schema.config import Agent, Command
from pegboard.schema.event import Event
from pegboard.schema.message import Prompt, Turn
from pegboard.schema.part import FileInput
from pegboard.schema.session import FileDiff, Session, Todo
from pegboard_client.address import ServerAddress, Token, route
from pegboard_client.aio.files import AsyncFiles
from pegboard_client.aio.link import AsyncLink
from pegboard_client.aio.sessions import AsyncSessions
from pegboard_client.aio.stream import AsyncEventStream
from pegboard_client.aio.waiting import AsyncPermissions, AsyncQuestions
from pegboard_client.events import GlobalEvent, event_of, global_event_of
from pegboard_client.runtime import find_server
from pegboard_client.wording import chosen, id_of, prompt_body
from pegboard_plugins.shared.frontend import (
    Branch,
    CommandBody,
    ConfiguredProviders,
    Health,
    PluginEntry,
    PromptBody,
    Protection,
    ShellBody,
    TraceEntry,
)


class AsyncClient:
    """A client for a project on a Pegboard server.

    More methods are in `sessions`, `permissions`, `questions` and `files`. A request may take a
    minute. Requests that a model answers have no time limit; if their connection is lost, the turn
    continues on the server.

    :raises ServerError: from every method, when the server refuses; `status`, `name`, `message`
        and `data` say why.
    :raises ServerUnreachableError: from every method, when no server answers.
    :raises TimeLimitError: from every method, when an answer takes longer than a minute.
    """

    def __init__(
        self,
        url: str,
        *,
        token: Token = None,
        username: str | None = None,
        password: str | None = None,
        directory: Path | str | None = None,
    ) -> None:
        address = ServerAddress.of(
            url, token=token, username=username, password=password, directory=directory
        )
        self._link = link = AsyncLink(address)
        self.sessions = AsyncSessions(link)
        self.permissions = AsyncPermissions(link)
        self.questions = AsyncQuestions(link)
        self.files = AsyncFiles(link)

    @classmethod
    def discover(
        cls,
        directory: Path | str | None = None,
        *,
        url: str | None = None,
        password: str | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Self:
        """Return a client for a directory, of a server that this user has started.

        Running servers write files with their address and token. The server that was started
        nearest to the directory is used, or the server at `url`. A server without such a file needs
        `password`, or the password in the environment variable `PEGBOARD_SERVER_PASSWORD`.

        :raises ServerUnreachableError: when no server runs.
        """
        found = find_server(directory, url=url, env=env, password=password)
        return cls(
            found.url,
            token=found.token,
            username=found.username,
            password=found.password,
            directory=directory,
        )

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
        """Close all connections."""
        await self._link.aclose()

    @property
    def url(self) -> str:
        """The URL of the server."""
        return self._link.address.url

    def events(self) -> AsyncEventStream[Event]:
        """Return a stream of the project's events, from now on."""
        return AsyncEventStream(self._link, route("event"), event_of)

    def global_events(self) -> AsyncEventStream[GlobalEvent]:
        """Return a stream of the events of all projects on the server, from now on."""
        return AsyncEventStream(self._link, route("global", "event"), global_event_of)

    async def messages(self, session_id: str, *, limit: int | None = None) -> tuple[Turn, ...]:
        """Return the messages with their parts, oldest first; `limit` keeps the newest."""
        place = route("session", session_id, "message")
        return await self._link.get(tuple[Turn, ...], place, limit=limit)

    async def message(self, session_id: str, message_id: str) -> Turn:
        """Return a message with its parts."""
        return await self._link.get(Turn, route("session", session_id, "message", message_id))

    async def prompt(
        self,
        session: Session | str,
        prompt: str | Prompt,
        *,
        mentions: str | None = None,
        checked: bool = False,
    ) -> Turn:
        """Send a prompt, wait until the turn has ended, and return its last answer.

        `mentions` is text that a user typed, in which `@name` stands for a file or an agent. If the
        model failed, `info.error` of the answer says why. Paths in `files` of the prompt are
        relative to the client's directory. With `checked`, a prompt for an unknown agent or model
        is refused before it is stored.
        """
        place = route("session", id_of(session), "message")
        return await self._link.turn(
            Turn, place, await self._body(prompt, mentions, checked=checked)
        )

    async def prompt_async(
        self, session: Session | str, prompt: str | Prompt, *, mentions: str | None = None
    ) -> None:
        """Send a prompt, and return when the prompt is stored; the answer arrives as events."""
        place = route("session", id_of(session), "prompt_async")
        await self._link.post(type(None), place, await self._body(prompt, mentions))

    async def _body(
        self, prompt: str | Prompt, mentions: str | None, *, checked: bool = False
    ) -> PromptBody:
        directory = self._link.address.directory
        return await asyncio.to_thread(prompt_body, prompt, mentions, directory, checked=checked)

    async def withdraw(self, session_id: str, message_id: str) -> bool:
        """Withdraw a prompt; return False if a model has read the prompt already."""
        place = route("session", session_id, "message", message_id, "withdraw")
        return await self._link.post(bool, place)

    async def command(  # noqa: PLR0913 - the protocol's fields, all keyword-only
        self,
        session_id: str,
        name: str,
        arguments: str = "",
        *,
        typed: bool = True,
        agent: str | None = None,
        model: str | None = None,
        variant: str | None = None,
        files: Sequence[FileInput] = (),
    ) -> Turn:
        """Run a slash command, wait until the turn has ended, and return the model's last answer.

        `typed` says that a user wrote the arguments, so that mentions in them are resolved.
        """
        body = CommandBody(
            command=name,
            arguments=arguments,
            typed=typed,
            agent=agent,
            model=model,
            variant=variant,
            parts=tuple(files),
        )
        return await self._link.turn(Turn, route("session", session_id, "command"), body)

    async def shell(
        self, session_id: str, command: str, *, agent: str | None = None, model: str | None = None
    ) -> Turn:
        """Run a shell command as the user, without a permission request; return the new message."""
        body = ShellBody(command=command, agent=agent, model=chosen(model))
        return await self._link.turn(Turn, route("session", session_id, "shell"), body)

    async def todo(self, session_id: str) -> tuple[Todo, ...]:
        """Return the session's todo list."""
        return await self._link.get(tuple[Todo, ...], route("session", session_id, "todo"))

    async def diff(self, session_id: str, *, message_id: str | None = None) -> tuple[FileDiff, ...]:
        """Return the files that the session, or only the answer to `message_id`, has changed."""
        place = route("session", session_id, "diff")
        return await self._link.get(tuple[FileDiff, ...], place, messageID=message_id)

    async def agents(self) -> tuple[Agent, ...]:
        """Return the agents, the default agent first."""
        return await self._link.get(tuple[Agent, ...], route("agent"))

    async def commands(self) -> tuple[Command, ...]:
        """Return the slash commands."""
        return await self._link.get(tuple[Command, ...], route("command"))

    async def tools(self) -> tuple[str, ...]:
        """Return the names of the tools."""
        return await self._link.get(tuple[str, ...], route("experimental", "tool", "ids"))

    async def plugins(self) -> tuple[PluginEntry, ...]:
        """Return the server's plugins with their errors and their tools."""
        return await self._link.get(tuple[PluginEntry, ...], route("pegboard", "plugins"))

    async def branch(self) -> Branch:
        """Return the checked-out branch and the repository's default branch."""
        return await self._link.get(Branch, route("vcs"))

    async def protection(self) -> Protection:
        """Return the server's sandbox level, and the project's files that Pegboard ignores."""
        return await self._link.get(Protection, route("pegboard", "protection"))

    async def standing(self, session_id: str, agent: str) -> dict[str, int]:
        """Return the characters that each request contains besides the conversation, by source."""
        place = route("pegboard", "standing")
        return await self._link.get(dict[str, int], place, session=session_id, agent=agent)

    async def trace(self, session_id: str) -> tuple[TraceEntry, ...]:
        """Return the changes that plugins made to the session's prompts since `begin_trace`."""
        place = route("pegboard", "trace")
        return await self._link.get(tuple[TraceEntry, ...], place, session=session_id)

    async def begin_trace(self) -> None:
        """Start to record which changes plugins make to prompts."""
        await self._link.post(bool, route("pegboard", "trace"))

    async def providers(self) -> ConfiguredProviders:
        """Return the providers that can be used, with their models."""
        return await self._link.get(ConfiguredProviders, route("config", "providers"))

    async def config(self) -> dict[str, Any]:
        """Return the configuration in OpenCode's format, with masked secrets."""
        return await self._link.get(dict[str, Any], route("config"))

    async def health(self) -> Health:
        """Return the version of the server; raise an error if the server does not answer."""
        return await self._link.get(Health, route("global", "health"))
