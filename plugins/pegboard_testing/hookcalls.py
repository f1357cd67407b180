"""For each hook the calls that the engine could make, plain ones and odd ones."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from pegboard import HookCalls, PendingCall, SessionView, ToolResult, Workspace
from pegboard.contract import hookspecs
from pegboard.embedding import Places
from pegboard.kit import Stash
from pegboard.providers import Keys, ModelMessage, ModelRequest, Text, ToolDefinition
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.event import TYPES, Custom, Event
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.part import (
    Completed,
    CompletedSpan,
    FilePart,
    ModelChoice,
    TextPart,
    ToolPart,
)
from pegboard.schema.session import Decided, PermissionRequest, Session, SessionTime
from pegboard_testing.samples import minimal
from pegboard_testing.scriptedmodel import MODEL

_AGENT = Agent(name="tester", mode="primary", permission=(), options={})
_TEXTS = ("hello", "", "a `b` [c](d) ünï\n\n```\nx\n```", "x" * 20_000)
_CREATED_MS = 1_772_366_400_000
"""2026-03-01T12:00:00Z."""
_DONE = ToolPart(
    id="prt_1",
    session_id="ses_test",
    message_id="msg_1",
    call_id="call_1",
    tool="look",
    state=Completed(
        input={"filePath": "a.py"},
        output="one\ntwo",
        title="a.py",
        metadata={},
        time=CompletedSpan(start=_CREATED_MS, end=_CREATED_MS),
    ),
)


def session_view(config: Config, project: Path) -> SessionView:
    """A session with one prompt, as plugins see it."""
    info = Session(
        id="ses_test",
        slug="test",
        project_id="project",
        directory=str(project),
        title="Test",
        version="0",
        time=SessionTime(created=_CREATED_MS, updated=_CREATED_MS),
    )
    return SessionView(
        info=info,
        directory=project,
        worktree=project,
        agent=_AGENT,
        agents=(_AGENT,),
        model=MODEL,
        config=config,
        rulesets=(),
        turns=(_turn("hello"),),
    )


def calls(
    hook: str, *, config: Config, hooks: HookCalls, project: Path, places: Places
) -> Iterator[Mapping[str, Any]]:
    """The arguments of calls of a hook of the core's, in a project; `hooks` calls the plugin's."""
    view = session_view(config, project)
    alone = _without_a_session(config=config, hooks=hooks, project=project, places=places)
    if hook in alone:
        yield from alone[hook]
    elif hook == "event":
        yield from ({"event": each} for each in _events())
    else:
        yield from ({"session": view, **each} for each in _in_a_session(view).get(hook, ()))


def _without_a_session(
    *, config: Config, hooks: HookCalls, project: Path, places: Places
) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """For each hook that is called while the App opens, or for a model, what it is called with."""
    workspace = Workspace(directory=project, worktree=project, project_id="0", git_dir=None)
    here = {"config": config, "workspace": workspace}
    return {
        "register_tools": [{"config": config, "hooks": hooks}],
        "register_providers": [{"config": config, "env": {}, "keys": Keys(config, {})}],
        "wrap_providers": [{"providers": {}, "keys": Keys(config, {}), **here}],
        "register_permissions": [{}],
        "register_agents": [{"config": config}],
        "register_commands": [{**here, "home": project.parent, "config_dir": places.config}],
        "register_snapshots": [{**here, "places": places, "env": {}}],
        "register_budget": [{}],
        "register_processes": [{}],
        "register_files": [{}],
        "register_keystore": [{"env": {}, "places": places, "workspace": here["workspace"]}],
        "register_storage": [{}],
        "register_compactors": [{}],
        "register_encloser": [{"hooks": hooks}],
        "permission_decided": [
            {
                "decided": Decided(kind="call", facts={"by": "model"}),
                "stash": Stash(),
                "places": places,
                "secrets": (),
            }
        ],
        "config_load": [{"config": config}],
        "render_tool": [{"part": _DONE, "width": width} for width in (1, 80, 400)],
        "model_facts": [{"provider": "test", "model": "model", "places": places}],
        "model_names": [{"provider": "test", "places": places}],
        "model_resolve": [{"name": name} for name in ("fast", "", "a/b/c", "ünï")],
    }


def specifications() -> Mapping[str, Any]:
    """The hooks that can be called here, by name."""
    unfit = {"register_hooks", "startup", "shutdown"}
    found = {name: each for name, each in vars(hookspecs).items() if hasattr(each, "pegboard_hook")}
    return {name: each for name, each in found.items() if name not in unfit}


def _in_a_session(view: SessionView) -> Mapping[str, Sequence[Mapping[str, Any]]]:
    """For each hook of a session what it is called with, beside the session."""
    call, command = _call({}), Command(name="c", template="t", hints=())
    turns = tuple(map(_turn, _TEXTS))
    context = SimpleNamespace(
        session=view,
        directory=view.directory,
        worktree=view.worktree,
        agent=view.agent.name,
        call_id=call.id,
        message_id=call.message_id,
        cancelled=False,
        changed=(),
    )
    return {
        "chat_message": [{"message": each} for each in turns],
        "expand_file": [
            {"file": _file(each), "files": SimpleNamespace(note_read=lambda _: None)}
            for each in ("data:,hello", "file:///nowhere/a.txt", "https://example.com/a", "", ":")
        ],
        "chat_messages_transform": [{"messages": each} for each in ((), turns[:1], turns)],
        "chat_system_transform": [{"model": MODEL, "system": ("be brief",)}],
        "chat_params": [{"request": _REQUEST}],
        "chat_headers": [{"headers": each} for each in ({}, {"x-a": "1"})],
        "text_complete": [{"part": _part(each), "text": each} for each in _TEXTS],
        "permission_ask": [{"request": _asked(each)} for each in (("a.py",), ("a", "b"), ())],
        "tool_definition": [{"tool": _DEFINITION}],
        "tool_execute_before": [{"call": _call(each)} for each in ({"filePath": "a.py"}, {})],
        "tool_execute_after": [
            {"call": call, "result": ToolResult(output=each), "context": context} for each in _TEXTS
        ],
        "command_execute_before": [
            {"command": command, "parts": each} for each in ((), (_part("hello"),))
        ],
        "shell_env": [{"env": each} for each in ({}, {"LANG": "C", "PATH": "/bin"})],
        "session_compacting": [{"prompt": "Summarise."}],
    }


def _events() -> Iterator[Event]:
    """One of each type, with as little in it as it may have, and one of a plugin's."""
    for kind in TYPES:
        yield Event(properties=minimal(kind))
    yield Event(properties=Custom(name="a.custom.event", data={"a": 1}))


def _part(text: str) -> TextPart:
    return TextPart(
        id="prt_1", session_id="ses_test", message_id="msg_1", text=text, metadata={"a": [1]}
    )


def _file(url: str) -> FilePart:
    return FilePart(
        id="prt_1", session_id="ses_test", message_id="msg_1", mime="text/plain", url=url
    )


def _turn(text: str) -> Turn:
    info = UserMessage(
        id="msg_1",
        session_id="ses_test",
        time=MessageTime(created=_CREATED_MS),
        agent=_AGENT.name,
        model=ModelChoice(provider_id=MODEL.provider_id, model_id=MODEL.id),
    )
    return Turn(info=info, parts=(_part(text),))


def _asked(patterns: tuple[str, ...]) -> PermissionRequest:
    return PermissionRequest(
        id="per_1",
        session_id="ses_test",
        permission="look",
        patterns=patterns,
        metadata={},
        always=(),
    )


def _call(arguments: dict[str, Any]) -> PendingCall:
    return PendingCall(id="call_1", tool="look", input=arguments, message_id="msg_2")


_DEFINITION = ToolDefinition(
    name="look", description="Reads.", parameters={"type": "object"}, permission="look"
)
_REQUEST = ModelRequest(
    model=MODEL,
    system=("be brief",),
    messages=(ModelMessage(role="user", content=(Text(text="hello"),)),),
    tools=(_DEFINITION,),
    options={"a": {"b": 1}},
    session_id="ses_test",
)
