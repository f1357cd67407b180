"""Sample arguments of hooks: ordinary and unusual values that the engine may pass to hooks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from pegboard import HookCalls, PendingCall, SessionView, Tool, ToolContext, ToolResult, Workspace
from pegboard.contract.context import FileAccess
from pegboard.contract.plugin import Stash
from pegboard.loading.registration import core_specs
from pegboard.paths import UserFolders
from pegboard.providers import ModelMessage, ModelRequest, Provider, Text, ToolDefinition
from pegboard.providers.keylookup import Keys
from pegboard.schema.config import Agent, Command, Config
from pegboard.schema.event import TYPES, Custom, Event
from pegboard.schema.message import MessageTime, Turn, UserMessage
from pegboard.schema.model import Model
from pegboard.schema.part import (
    Completed,
    CompletedSpan,
    FilePart,
    ModelChoice,
    Part,
    TextPart,
    ToolPart,
)
from pegboard.schema.session import Decided, PermissionRequest, Session, SessionTime
from pegboard.testing.samples import minimal
from pegboard.testing.scriptedmodel import MODEL
from pegboard.trust.decisions import Decision

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
    """Return a session with one prompt, as plugins see it."""
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
        trust=Decision(trusted=False, root=project),
        turns=(_turn("hello"),),
    )


def calls(
    spec: Callable[..., Any],
    *,
    config: Config,
    hooks: HookCalls,
    project: Path,
    places: UserFolders,
) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments for several calls of a hook, ordinary values first.

    `hooks` calls the plugin that is tested. The values follow from the types of the arguments, so a
    new hook needs no change here.
    """
    view = session_view(config, project)
    known = _values_in_a_session(view) | {
        Config: (config,),
        HookCalls: (hooks,),
        Keys: (Keys(config, {}),),
        Mapping[str, Provider]: ({},),
        Path: (project,),
        UserFolders: (places,),
        Stash: (Stash(),),
        Workspace: (Workspace(directory=project, worktree=project, project_id="0", git_dir=None),),
    }
    wanted = get_type_hints(spec)
    rows = {name: _values(kind, known) for name, kind in wanted.items() if name != "return"}
    for number in range(max(map(len, rows.values()), default=1)):
        yield {name: values[number % len(values)] for name, values in rows.items()}


def _values(kind: Any, known: Mapping[Any, Sequence[Any]]) -> Sequence[Any]:  # noqa: ANN401 - a type
    """Return sample values of a type; of an unknown struct, one with only the required fields."""
    if kind in known:
        return known[kind]
    if get_origin(kind) is tuple:
        return (tuple(_values(get_args(kind)[0], known)[:1]),)
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return (object(),)
    fields = [each for each in msgspec.structs.fields(kind) if each.required]
    return (kind(**{each.name: _values(each.type, known)[0] for each in fields}),)


def specifications() -> Mapping[str, Any]:
    """Return the core's hooks that can be called without an App, by name."""
    unfit = {"register_hooks", "startup", "shutdown"}
    return {name: each for name, each in core_specs().items() if name not in unfit}


def _values_in_a_session(view: SessionView) -> dict[Any, Sequence[Any]]:
    """Return sample values by type; the same text appears in all arguments of a call."""
    turns = tuple(map(_turn, _TEXTS))
    context = SimpleNamespace(
        session=view,
        directory=view.directory,
        worktree=view.worktree,
        agent=view.agent.name,
        call_id="call_1",
        message_id="msg_2",
        cancelled=False,
        changed=(),
    )
    urls = ("data:,hello", "file:///nowhere/a.txt", "https://example.com/a", "", ":")
    return {
        Command: (Command(name="c", template="t", hints=()),),
        Decided: (Decided(kind="call", facts={"by": "model"}),),
        Event: tuple(_events()),
        FileAccess: (SimpleNamespace(note_read=lambda _: None),),
        FilePart: tuple(map(_file, urls)),
        Mapping[str, str]: ({}, {"LANG": "C", "PATH": "/bin"}),
        Model: (MODEL,),
        ModelRequest: (_REQUEST,),
        PendingCall: tuple(map(_call, ({"filePath": "a.py"}, {}))),
        PermissionRequest: tuple(map(_request, (("a.py",), ("a", "b"), ()))),
        SessionView: (view,),
        TextPart: tuple(map(_part, _TEXTS)),
        Tool | None: (None, Tool.raw("look", "", {"type": "object"}, print)),
        ToolContext: (context,),
        ToolDefinition: (_DEFINITION,),
        ToolPart: (_DONE,),
        ToolResult: tuple(ToolResult(output=each) for each in _TEXTS),
        Turn: turns,
        int: (80, 1, 400),
        str: (*_TEXTS, "a/b/c"),
        tuple[Part, ...]: ((), (_part("hello"),)),
        tuple[Turn, ...]: ((), turns[:1], turns),
        tuple[str, ...]: (("be brief",),),
    }


def _events() -> Iterator[Event]:
    """Yield an event of each type, with only its required fields, and an event of a plugin."""
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


def _request(patterns: tuple[str, ...]) -> PermissionRequest:
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
