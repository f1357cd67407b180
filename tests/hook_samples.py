"""For every hook a call that the engine could make, for tests over all hooks."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pegboard import hookimpl
from pegboard.contract import hookspecs
from pegboard.contract.marks import HookMark, Origin, mark_of
from pegboard.contract.providers import ModelMessage, ModelRequest, Text, ToolDefinition
from pegboard.contract.results import PendingCall, ToolResult
from pegboard.hooks.callers import Hooks
from pegboard.loading.registration import Registrant, Registry
from pegboard.paths import Places
from pegboard.schema.agent import Command
from pegboard.schema.config import Config
from pegboard.schema.event import Custom, Event, PluginFailed
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.part import Completed, CompletedSpan, ModelChoice, TextPart, ToolPart
from pegboard.schema.permission import Decided, PermissionRequest
from pegboard.workspace import Workspace
from pegboard_plugins import auth, chat, sandbox, server, websearch
from session_views import MODEL, view

BRINGING = (auth, chat, sandbox, server, websearch)
"""The built-in plugins that bring hooks."""
_BROUGHT = [module for plugin in BRINGING for module in plugin.register_hooks()]
SPECS: dict[str, Callable[..., Any]] = {
    name: each
    for module in (hookspecs, *_BROUGHT)
    for name, each in vars(module).items()
    if isinstance(getattr(each, "pegboard_hook", None), HookMark) and name != "register_hooks"
}
"""Every hook but the one that is called before the others are known."""
PLACES = Places.of({"HOME": "/home"})
VIEW = view(Path("/project"))
PART = TextPart(
    id="prt_1", session_id=VIEW.id, message_id="msg_1", text="hello", metadata={"a": [1]}
)
TURN = Turn(
    info=UserMessage(
        id="msg_1",
        session_id=VIEW.id,
        time=MessageTime(created=1),
        agent="build",
        model=ModelChoice(provider_id="p", model_id="m"),
    ),
    parts=(PART,),
)
REQUEST = ModelRequest(
    model=MODEL,
    system=("be brief",),
    messages=(ModelMessage(role="user", content=(Text(text="hello"),)),),
    options={"a": {"b": 1}},
    session_id=VIEW.id,
)
CALL = PendingCall(id="call_1", tool="read", input={"filePath": "a.py"}, message_id="msg_2")
CALLED = ToolPart(
    id="prt_2",
    session_id=VIEW.id,
    message_id="msg_2",
    call_id="call_1",
    tool="read",
    state=Completed(
        input={"filePath": "a.py"},
        output="x",
        title="",
        metadata={},
        time=CompletedSpan(start=1, end=2),
    ),
)
ASKED = PermissionRequest(
    id="per_1", session_id=VIEW.id, permission="read", patterns=("a.py",), metadata={}, always=()
)
DEFINITION = ToolDefinition(
    name="read", description="Reads.", parameters={"type": "object"}, permission="read"
)
WORKSPACE = Workspace(
    directory=Path("/project"), worktree=Path("/project"), project_id="0", git_dir=None
)
SAMPLES: dict[str, dict[str, Any]] = {
    "register_tools": {"config": Config(), "hooks": object()},
    "register_providers": {"config": Config(), "env": {}, "keys": object()},
    "wrap_providers": {
        "providers": {},
        "config": Config(),
        "keys": object(),
        "workspace": WORKSPACE,
    },
    "register_permissions": {},
    "register_agents": {"config": Config()},
    "register_commands": {
        "config": Config(),
        "workspace": WORKSPACE,
        "home": Path("/home"),
        "config_dir": Path("/config"),
    },
    "register_routes": {},
    "register_storage": {},
    "register_compactors": {},
    "register_sandboxes": {},
    "register_encloser": {"hooks": object()},
    "register_snapshots": {
        "config": Config(),
        "workspace": WORKSPACE,
        "places": PLACES,
        "env": {},
    },
    "register_logins": {"config": Config()},
    "register_search_backends": {"config": Config()},
    "services": {"app": object()},
    "register_slash": {},
    "register_keys": {},
    "register_themes": {},
    "status_items": {"state": chat.ChatState(directory=Path("/project"))},
    "footer_widget": {"state": chat.ChatState(directory=Path("/project"))},
    "complete": {"kind": "@", "text": "a", "directory": Path("/project")},
    "config_load": {"config": Config()},
    "chat_message": {"session": VIEW, "message": TURN},
    "chat_messages_transform": {"session": VIEW, "messages": (TURN,)},
    "chat_system_transform": {"session": VIEW, "model": MODEL, "system": ("be brief",)},
    "chat_params": {"session": VIEW, "request": REQUEST},
    "chat_headers": {"session": VIEW, "headers": {"x-a": "1"}},
    "text_complete": {"session": VIEW, "part": PART, "text": "hello"},
    "render_tool": {"part": CALLED, "width": 80},
    "permission_ask": {"session": VIEW, "request": ASKED},
    "permission_decided": {
        "decided": Decided(kind="call", facts={"tool": "read"}),
        "stash": object(),
        "places": Places.of({"HOME": "/home"}),
        "secrets": (),
    },
    "tool_definition": {"session": VIEW, "tool": DEFINITION},
    "tool_execute_before": {"session": VIEW, "call": CALL},
    "tool_execute_after": {
        "session": VIEW,
        "call": CALL,
        "result": ToolResult(output="x"),
        "context": object(),
    },
    "command_execute_before": {
        "session": VIEW,
        "command": Command(name="c", template="t", hints=()),
        "parts": (PART,),
    },
    "shell_env": {"session": VIEW, "env": {"LANG": "C"}},
    "session_compacting": {"session": VIEW, "prompt": "summarise"},
    "model_resolve": {"name": "fast"},
    "model_facts": {"provider": "p", "model": "m", "places": PLACES},
    "model_names": {"provider": "p", "places": PLACES},
    "event": {"event": Event(properties=Custom(name="x", data={"a": 1}))},
    "startup": {"app": object()},
    "shutdown": {"app": object()},
}


def kind(hook: str) -> str:
    """How the answers of a hook combine."""
    return mark_of(SPECS[hook]).kind


def subject(hook: str) -> str:
    """The argument of a fold that its answers replace."""
    return mark_of(SPECS[hook]).subject


def of_kind(*kinds: str) -> list[str]:
    """All hooks of these kinds, from the specifications themselves."""
    return [hook for hook in SPECS if kind(hook) in kinds]


class Functions:
    """A plugin that is nothing but these functions, by the name of their hook."""

    def __init__(self, **functions: Callable[..., object]) -> None:
        for name, function in functions.items():
            setattr(self, name, hookimpl(function))


class Registered:
    """Hooks over plugins (oldest first), registered as an App does it, with the failures."""

    def __init__(
        self, *plugins: object, config: Config | None = None, origin: Origin = "installed"
    ) -> None:
        registry = Registry(config or Config())
        for each in BRINGING:
            name = each.__name__
            registry.bring(Registrant(key=name, name=name, origin="builtin", plugin=each))
        for number, plugin in enumerate(plugins):
            name = f"p{number}"
            registry.add(Registrant(key=name, name=name, origin=origin, plugin=plugin))
        self.problems = registry.problems
        self.failures: list[PluginFailed] = []
        self.failed = asyncio.Event()
        self.hooks = Hooks(registry.implementations(), on_failure=self._fail)

    async def __aenter__(self) -> "Registered":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.hooks.aclose()

    def _fail(self, failure: PluginFailed) -> None:
        self.failures.append(failure)
        self.failed.set()

    async def call(self, hook: str, **changes: object) -> Any:
        """What the caller of a hook gives for its sample."""
        caller = "tables" if hook == "register_storage" else kind(hook)
        if hook == "shutdown":
            caller = "notify_last"
        answer = getattr(self.hooks, caller)(SPECS[hook], **SAMPLES[hook] | changes)
        return answer if answer is None else await answer
