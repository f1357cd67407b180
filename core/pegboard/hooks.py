"""One typed caller per hook: what the engine calls, so that a wrong argument fails the type check.

Each method is named like its hook in `hookspecs`, with the same arguments by keyword. Without
an implementation it gives the subject back at once. None of them raises because of a plugin,
but for the two errors with which `tool_execute_before` stops a call.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from pegboard import answers
from pegboard.dispatch import Answer, Dispatch, Implementation
from pegboard.errors import PermissionDeniedError, ToolError
from pegboard.health import Timing
from pegboard.schema.event import PluginFailed
from pegboard.stalls import Holder
from pegboard.trace import Step

if TYPE_CHECKING:
    from pegboard.app import App
    from pegboard.compactors import Compactor
    from pegboard.context import SessionView, ToolContext
    from pegboard.providers import ModelRequest, Provider, ToolDefinition
    from pegboard.sandbox import Sandbox
    from pegboard.schema.agent import Agent, Command
    from pegboard.schema.config import Config
    from pegboard.schema.event import Event
    from pegboard.schema.message import Turn
    from pegboard.schema.model import Model
    from pegboard.schema.part import Part, TextPart
    from pegboard.schema.permission import PermissionRequest, Verdict
    from pegboard.schema.service import Service
    from pegboard.search_backends import SearchBackend
    from pegboard.storage.protocol import OpenStorage
    from pegboard.tools import PendingCall, Tool, ToolResult
    from pegboard.workspace import Workspace

_T = TypeVar("_T")


class Hooks:
    """The hooks of one App.

    `implementations` are given oldest plugin first. `on_failure` hears of every plugin that
    raises, hangs or answers with the wrong type; it must not raise.
    """

    def __init__(
        self,
        implementations: Mapping[str, Sequence[Implementation]],
        *,
        on_failure: Callable[[PluginFailed], None],
        trace: bool = False,
    ) -> None:
        self._dispatch = Dispatch(implementations, on_failure=on_failure, trace=trace)
        self._owners: Mapping[str, str] = {}

    def has(self, hook: str) -> bool:
        """Whether any plugin implements the hook."""
        return bool(self._dispatch.implementations(hook))

    def quarantined(self, key: str) -> bool:
        """Whether the plugin with this key is no longer called."""
        return self._dispatch.quarantined(key)

    def timings(self) -> tuple[Timing, ...]:
        """What each implementation has cost until this moment; `plugin` is a plugin's key."""
        return self._dispatch.timings()

    def steps(self, session_id: str | None = None) -> tuple[Step, ...]:
        """What each plugin changed, oldest first; empty unless tracing is on."""
        return self._dispatch.steps(session_id)

    def set_owners(self, owners: Mapping[str, str]) -> None:
        """Say which plugin each tool is of, by the tool's id."""
        self._owners = owners

    def calling(self, tool: str) -> AbstractContextManager[None]:
        """While this lasts, what the current task does is done by the tool of this id."""
        holder = Holder(self._owners.get(tool, tool), f"tool {tool}")
        return self._dispatch.stalls.running(asyncio.current_task(), holder)

    async def aclose(self) -> None:
        """End what plugins still do; called after `shutdown`."""
        await self._dispatch.aclose()

    async def register_tools(
        self, *, config: "Config", search_backends: "tuple[SearchBackend, ...]"
    ) -> "tuple[Answer[Tool], ...]":
        """The tools of all plugins, one by one."""
        arguments = {"config": config, "search_backends": search_backends}
        return await self._items("register_tools", arguments, answers.tools)

    async def register_providers(
        self, *, config: "Config", env: Mapping[str, str]
    ) -> "tuple[Answer[Provider], ...]":
        """The providers of all plugins, one by one."""
        arguments = {"config": config, "env": env}
        return await self._items("register_providers", arguments, answers.providers)

    async def register_agents(self, *, config: "Config") -> "tuple[Answer[Agent], ...]":
        """The agents of all plugins, one by one."""
        return await self._items("register_agents", {"config": config}, answers.agents)

    async def register_commands(
        self, *, config: "Config", workspace: "Workspace", home: Path, config_dir: Path
    ) -> "tuple[Answer[Command], ...]":
        """The slash commands of all plugins, one by one."""
        arguments = {
            "config": config,
            "workspace": workspace,
            "home": home,
            "config_dir": config_dir,
        }
        return await self._items("register_commands", arguments, answers.commands)

    async def register_routes(self) -> tuple[Answer[object], ...]:
        """The routers of all plugins, one by one."""
        return await self._items("register_routes", {}, answers.anything)

    async def register_storage(self) -> "tuple[Answer[Mapping[str, OpenStorage]], ...]":
        """The URL schemes with their openers, one table per plugin."""
        return await self._dispatch.collect("register_storage", {}, answers.openers)

    async def register_compactors(self) -> "tuple[Answer[Compactor], ...]":
        """The compactors of all plugins, one by one."""
        return await self._items("register_compactors", {}, answers.compactors)

    async def register_sandboxes(self) -> "tuple[Answer[Sandbox], ...]":
        """The sandboxes of all plugins, one by one."""
        return await self._items("register_sandboxes", {}, answers.sandboxes)

    async def register_search_backends(
        self, *, config: "Config"
    ) -> "tuple[Answer[SearchBackend], ...]":
        """The search backends of all plugins, one by one."""
        arguments = {"config": config}
        return await self._items("register_search_backends", arguments, answers.search_backends)

    async def services(self, *, app: "App") -> "tuple[Answer[Service], ...]":
        """The programs of all plugins, one by one."""
        return await self._items("services", {"app": app}, answers.services)

    async def config_load(self, *, config: "Config") -> "Config":
        """The configuration with what plugins set."""
        return await self._dispatch.fold(
            "config_load", "config", {"config": config}, answers.config
        )

    async def chat_message(self, *, session: "SessionView", message: "Turn") -> "Turn":
        """The user's message as the model shall get it."""
        arguments = {"session": session, "message": message}
        return await self._dispatch.fold("chat_message", "message", arguments, answers.message)

    async def chat_messages_transform(
        self, *, session: "SessionView", messages: "tuple[Turn, ...]"
    ) -> "tuple[Turn, ...]":
        """The history as the model shall see it; turns left alone are the same objects."""
        arguments = {"session": session, "messages": messages}
        return await self._dispatch.fold(
            "chat_messages_transform", "messages", arguments, answers.messages
        )

    async def chat_system_transform(
        self, *, session: "SessionView", model: "Model", system: tuple[str, ...]
    ) -> tuple[str, ...]:
        """The pieces of the system prompt."""
        arguments = {"session": session, "model": model, "system": system}
        return await self._dispatch.fold(
            "chat_system_transform", "system", arguments, answers.system
        )

    async def chat_params(
        self, *, session: "SessionView", request: "ModelRequest"
    ) -> "ModelRequest":
        """The request with the parameters that plugins set."""
        arguments = {"session": session, "request": request}
        return await self._dispatch.fold("chat_params", "request", arguments, answers.request)

    async def chat_headers(
        self, *, session: "SessionView", headers: Mapping[str, str]
    ) -> Mapping[str, str]:
        """The headers of a request to a model."""
        arguments = {"session": session, "headers": headers}
        return await self._dispatch.fold("chat_headers", "headers", arguments, answers.text_table)

    async def text_complete(self, *, session: "SessionView", part: "TextPart", text: str) -> str:
        """The text as it shall be stored."""
        arguments = {"session": session, "part": part, "text": text}
        return await self._dispatch.fold("text_complete", "text", arguments, answers.text)

    async def permission_ask(
        self, *, session: "SessionView", request: "PermissionRequest"
    ) -> "Verdict | None":
        """The strictest opinion of the plugins, None when nobody has one."""
        arguments = {"session": session, "request": request}
        return await self._dispatch.strictest("permission_ask", arguments, answers.verdict)

    async def permission_opinions(
        self, *, session: "SessionView", request: "PermissionRequest"
    ) -> "tuple[Answer[Verdict], ...]":
        """What each plugin that has an opinion about the request says, oldest plugin first."""
        arguments = {"session": session, "request": request}
        return await self._dispatch.opinions("permission_ask", arguments, answers.verdict)

    async def tool_definition(
        self, *, session: "SessionView", tool: "ToolDefinition"
    ) -> "ToolDefinition":
        """The tool as the model shall see it."""
        arguments = {"session": session, "tool": tool}
        return await self._dispatch.fold("tool_definition", "tool", arguments, answers.definition)

    async def tool_execute_before(
        self, *, session: "SessionView", call: "PendingCall"
    ) -> "PendingCall":
        """The call with the arguments that it shall run with.

        :raises ToolError: when a plugin stops the call; the text is for the model.
        :raises PermissionDeniedError: when a plugin forbids it.
        """
        arguments = {"session": session, "call": call}
        return await self._dispatch.fold(
            "tool_execute_before",
            "call",
            arguments,
            answers.call,
            passing=(ToolError, PermissionDeniedError),
        )

    async def tool_execute_after(
        self,
        *,
        session: "SessionView",
        call: "PendingCall",
        result: "ToolResult",
        context: "ToolContext",
    ) -> "ToolResult":
        """The tool's answer as the model shall get it."""
        arguments = {"session": session, "call": call, "result": result, "context": context}
        return await self._dispatch.fold("tool_execute_after", "result", arguments, answers.result)

    async def command_execute_before(
        self, *, session: "SessionView", command: "Command", parts: "tuple[Part, ...]"
    ) -> "tuple[Part, ...]":
        """The parts that a slash command sends."""
        arguments = {"session": session, "command": command, "parts": parts}
        return await self._dispatch.fold(
            "command_execute_before", "parts", arguments, answers.parts
        )

    async def shell_env(
        self, *, session: "SessionView", env: Mapping[str, str]
    ) -> Mapping[str, str]:
        """The environment of a process that a tool starts."""
        arguments = {"session": session, "env": env}
        return await self._dispatch.fold("shell_env", "env", arguments, answers.text_table)

    async def session_compacting(self, *, session: "SessionView", prompt: str) -> str:
        """The prompt that asks for a summary."""
        arguments = {"session": session, "prompt": prompt}
        return await self._dispatch.fold("session_compacting", "prompt", arguments, answers.text)

    async def model_resolve(self, *, name: str) -> "Model | None":
        """The model that the newest plugin which knows the name says it is."""
        return await self._dispatch.first("model_resolve", {"name": name}, answers.model)

    def event(self, event: "Event") -> None:
        """Queue the event for every plugin that listens; it never blocks."""
        self._dispatch.notify("event", {"event": event})

    async def startup(self, *, app: "App") -> None:
        """Queue the news that the App is open; nobody waits for the plugins."""
        self._dispatch.notify("startup", {"app": app})

    async def shutdown(self, *, app: "App") -> None:
        """Tell every plugin that the App closes, and wait for it within its time limit."""
        await self._dispatch.notify_last("shutdown", {"app": app})

    async def _items(
        self,
        hook: str,
        arguments: Mapping[str, object],
        check: Callable[[object], tuple[_T, ...]],
    ) -> tuple[Answer[_T], ...]:
        """The items of all answers in one row, each with its plugin."""
        found = await self._dispatch.collect(hook, arguments, check)
        return tuple(
            Answer(answer.plugin, answer.origin, item) for answer in found for item in answer.value
        )
