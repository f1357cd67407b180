"""The data of web pages about sessions: rows of the session list, messages, changes by turn."""

from collections.abc import Iterable

from pegboard import App
from pegboard.display import escape_controls
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import Part, ReasoningPart, TextPart
from pegboard.schema.session import FileDiff, Session, Todo
from pegboard.schema.wire import Wire
from pegboard_plugins.server.serverstate import ServerState
from pegboard_plugins.shared.frontend import Conversation, session_diff
from pegboard_plugins.shared.transcripts import message_html, transcribe
from pegboard_plugins.web.nodes import Node, diff_nodes, html_nodes

PROMPT_LETTERS = 200


class SessionRow(Wire, frozen=True):
    """A session in a list; `cost` is None if the cost of a request is unknown."""

    id: str
    title: str
    updated: int
    state: str
    waiting: int
    cost: float | None
    agent: str
    model: str
    parent: str | None
    directory: str


class MessageNodes(Wire, frozen=True):
    """A message as nodes."""

    id: str
    nodes: tuple[Node, ...]


class LiveText(Wire, frozen=True):
    """A text that the model is still writing."""

    message: str
    part: str
    kind: str
    text: str


class SessionPage(Wire, frozen=True):
    """A session with its newest messages; `earlier` is the number of the messages before them."""

    info: SessionRow
    messages: tuple[MessageNodes, ...]
    live: tuple[LiveText, ...]
    earlier: int
    todos: tuple[Todo, ...]
    children: tuple[SessionRow, ...]


class FileChanges(Wire, frozen=True):
    """The changes of one file in a session or in a turn."""

    file: str
    additions: int
    deletions: int
    status: str
    nodes: tuple[Node, ...]


class TurnChanges(Wire, frozen=True):
    """The file changes of the answer to one prompt."""

    id: str
    prompt: str
    files: tuple[FileChanges, ...]


class SessionChanges(Wire, frozen=True):
    """The file changes of a session, in total and by turn."""

    info: SessionRow
    total: tuple[FileChanges, ...]
    turns: tuple[TurnChanges, ...]


def session_rows(app: App, state: ServerState, sessions: Iterable[Session]) -> list[SessionRow]:
    """Return a list row for each session, with its state and the number of its open requests."""
    statuses = state.pool.member(app).statuses
    waiting = [each.session_id for each in app.permissions.pending()]
    waiting += [each.session_id for each in app.questions.pending()]
    return [
        SessionRow(
            id=each.id,
            title=escape_controls(each.title),
            updated=each.time.updated,
            state=str(statuses[each.id].__struct_config__.tag) if each.id in statuses else "idle",
            waiting=waiting.count(each.id) if waiting else 0,
            cost=each.known_cost,
            agent=each.agent or "",
            model=f"{each.model.provider_id}/{each.model.id}" if each.model else "",
            parent=each.parent_id,
            directory=each.directory,
        )
        for each in sessions
    ]


async def session_page(app: App, state: ServerState, info: Session, *, last: int) -> SessionPage:
    """Return a session with its newest messages, at most `last`."""
    turns = await app.list_turns(info.id)
    shown = turns[-last:]
    return SessionPage(
        info=session_rows(app, state, (info,))[0],
        messages=await message_nodes(app, info, shown),
        live=tuple(each for turn in shown for each in _live(turn)),
        earlier=len(turns) - len(shown),
        todos=await app.storage.todos(info.id),
        children=tuple(session_rows(app, state, await app.children(info.id))),
    )


async def message_nodes(app: App, info: Session, turns: Iterable[Turn]) -> tuple[MessageNodes, ...]:
    """Return messages as nodes, without the texts that the model is still writing."""
    ended = tuple(
        Turn(info=turn.info, parts=tuple(each for each in turn.parts if not _is_live(turn, each)))
        for turn in turns
    )
    transcript = await transcribe(app, (Conversation(info=info, turns=ended),))
    return tuple(
        MessageNodes(id=each.id, nodes=html_nodes(message_html(each)))
        for each in transcript.messages
    )


def live_texts(turn: Turn) -> tuple[LiveText, ...]:
    """Return the texts of a message that the model is still writing."""
    return tuple(_live(turn))


def _live(turn: Turn) -> Iterable[LiveText]:
    for part in turn.parts:
        if isinstance(part, TextPart | ReasoningPart) and _is_live(turn, part):
            kind = "text" if isinstance(part, TextPart) else "reasoning"
            yield LiveText(message=turn.info.id, part=part.id, kind=kind, text=part.text)


def _is_live(turn: Turn, part: Part) -> bool:
    info = turn.info
    if not isinstance(info, AssistantMessage) or info.time.completed is not None:
        return False
    if not isinstance(part, TextPart | ReasoningPart):
        return False
    return part.time is None or part.time.end is None


async def session_changes(app: App, state: ServerState, info: Session) -> SessionChanges:
    """Return the file changes of a session, in total and by turn."""
    total = await session_diff(app, info.id)
    turns = await app.storage.turns(info.id)
    found = []
    for turn in turns:
        diffs = _diffs(turn)
        if diffs:
            texts = (part.text for part in turn.parts if isinstance(part, TextPart))
            prompt = escape_controls(" ".join(texts))[:PROMPT_LETTERS]
            files = tuple(map(_file_changes, diffs))
            found.append(TurnChanges(id=turn.info.id, prompt=prompt, files=files))
    return SessionChanges(
        info=session_rows(app, state, (info,))[0],
        total=tuple(map(_file_changes, total)),
        turns=tuple(found),
    )


def _diffs(turn: Turn) -> tuple[FileDiff, ...]:
    if not isinstance(turn.info, UserMessage) or turn.info.summary is None:
        return ()
    return tuple(turn.info.summary.diffs)


def _file_changes(diff: FileDiff) -> FileChanges:
    return FileChanges(
        file=escape_controls(diff.file),
        additions=diff.additions,
        deletions=diff.deletions,
        status=diff.status or "modified",
        nodes=diff_nodes(diff.patch) if diff.patch else (),
    )
