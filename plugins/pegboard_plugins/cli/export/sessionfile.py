"""Sessions as JSON lines, which `session import` reads.

A session has one line of type `session`, one `message` line per message with its parts, and
possibly one `todos` line. The sessions of subagents follow in the same form. The last line is `end`
with the number of lines before it, so that a reader detects an incomplete file.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from pegboard import App, InvalidInputError
from pegboard.schema.message import AssistantMessage, Message, Turn, UserMessage
from pegboard.schema.part import Part
from pegboard.schema.session import Session, Todo
from pegboard.schema.wire import Rest, encode
from pegboard.unstable import check_id
from pegboard_plugins.shared.frontend import Conversation, adopted

FORMAT = 1
"""The number of the format; a reader refuses numbers that it does not know."""
LINE_LIMIT_BYTES = 256 << 20
"""The maximum length of a line; a longer line is not a message."""


class SessionLine(Rest, frozen=True, tag_field="type", tag="session"):
    """The first line of a session."""

    format: int
    info: Session


class MessageLine(Rest, frozen=True, tag_field="type", tag="message"):
    """The line of a file that has a message with its parts."""

    info: Message
    parts: tuple[Part, ...]


class TodosLine(Rest, frozen=True, tag_field="type", tag="todos"):
    """The line of the session's todo list."""

    todos: tuple[Todo, ...]


class EndLine(Rest, frozen=True, tag_field="type", tag="end"):
    """The last line of a file; `lines` is the number of lines before it."""

    lines: int


Line = SessionLine | MessageLine | TodosLine | EndLine


async def read_conversations(
    app: App, session_id: str, *, last: int | None = None
) -> tuple[Conversation, ...]:
    """Return a session and the sessions of its subagents, each after its parent.

    `last` limits the session to its last prompts, with their answers and the subagents that these
    mention.

    :raises NotFoundError: when the session does not exist.
    """
    found: list[Conversation] = []
    waiting = [await app.storage.session(session_id)]
    while waiting:
        current = waiting.pop(0)
        turns = await app.storage.turns(current.id)
        children = await app.storage.children(current.id)
        if last is not None and not found:
            turns = _last(turns, last)
            named = encode(turns).decode()
            children = tuple(each for each in children if each.id in named)
        todos = await app.storage.todos(current.id)
        found.append(Conversation(info=current, turns=turns, todos=todos))
        waiting.extend(children)
    return tuple(found)


def _last(turns: tuple[Turn, ...], prompts: int) -> tuple[Turn, ...]:
    places = [n for n, turn in enumerate(turns) if isinstance(turn.info, UserMessage)]
    return turns[places[-prompts] :] if prompts < len(places) else turns


def exported_lines(conversations: Iterable[Conversation]) -> Iterator[bytes]:
    """Yield the JSON lines of the sessions, each with its line break."""
    lines = 0
    for each in conversations:
        for line in _lines_of(each):
            lines += 1
            yield _encode(line)
    yield _encode(EndLine(lines=lines))


def _lines_of(conversation: Conversation) -> Iterator[Line]:
    yield SessionLine(format=FORMAT, info=conversation.info)
    for turn in conversation.turns:
        yield MessageLine(info=turn.info, parts=turn.parts)
    if conversation.todos:
        yield TodosLine(todos=conversation.todos)


def _encode(line: Line) -> bytes:
    return encode(line) + b"\n"


@dataclass(slots=True)
class _StoredSession:
    """A session with its turns and todos, while they are read from a file."""

    info: Session
    turns: list[Turn] = field(default_factory=list)
    todos: tuple[Todo, ...] = ()

    @property
    def conversation(self) -> Conversation:
        return Conversation(info=self.info, turns=tuple(self.turns), todos=self.todos)


async def store_session(app: App, lines: Iterable[bytes]) -> Session:
    """Store the session that JSON lines describe in the App's project; return the new session.

    The session and its messages get new ids.

    :raises InvalidInputError: with the line number, when a line is not in the form of
        `exported_lines`; nothing is stored then.
    """
    return await adopted(app, [kept.conversation for kept in _read(lines)])


def _read(lines: Iterable[bytes]) -> list[_StoredSession]:
    """Return the sessions of a file; the first is the root of all others.

    :raises InvalidInputError: with the line number, when a line is invalid.
    """
    decode = msgspec.json.Decoder(Line).decode
    reading = _Reading()
    number = 0
    for number, raw in enumerate(lines, start=1):
        if len(raw) > LINE_LIMIT_BYTES:
            raise InvalidInputError(f"line {number}: longer than {LINE_LIMIT_BYTES:,} bytes")
        try:
            reading.take(decode(raw), number)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise InvalidInputError(f"line {number}: {error}") from error
        except InvalidInputError as error:
            raise InvalidInputError(f"line {number}: {error}") from error
    if not reading.ended:
        raise InvalidInputError(f"line {number}: the file is not complete; its last line is `end`")
    return reading.sessions


class _Reading:
    """The sessions that were read from a file so far, and their ids, to find duplicates."""

    def __init__(self) -> None:
        self.sessions: list[_StoredSession] = []
        self.ended = False
        self._ids: set[str] = set()

    def take(self, line: Line, number: int) -> None:
        """Add a line to the sessions.

        :raises InvalidInputError: when the line may not follow the lines before it.
        """
        if self.ended:
            raise InvalidInputError("nothing may follow the line `end`")
        match line:
            case SessionLine():
                self._session(line)
            case EndLine(lines=lines):
                if lines != number - 1 or not self.sessions:
                    raise InvalidInputError(f"{lines} lines should stand before it")
                self.ended = True
            case _ if not self.sessions:
                raise InvalidInputError("the first line must be a session")
            case MessageLine():
                self._message(line)
            case TodosLine(todos=todos):
                self.sessions[-1].todos = todos

    def _session(self, line: SessionLine) -> None:
        if line.format != FORMAT:
            raise InvalidInputError(f"format {line.format}; this version reads {FORMAT}")
        self._new("session", line.info.id)
        known = {kept.info.id for kept in self.sessions}
        if known and line.info.parent_id not in known:
            raise InvalidInputError(f"{line.info.id} is no subagent's session of those before it")
        self.sessions.append(_StoredSession(line.info))

    def _message(self, line: MessageLine) -> None:
        kept, info = self.sessions[-1], line.info
        self._new("message", info.id)
        if info.session_id != kept.info.id:
            raise InvalidInputError(f"the message {info.id} belongs to {info.session_id}")
        if isinstance(info, AssistantMessage) and info.parent_id not in self._ids:
            raise InvalidInputError(f"{info.id} answers {info.parent_id}, which is not before it")
        for part in line.parts:
            self._new("part", part.id)
            if (part.session_id, part.message_id) != (info.session_id, info.id):
                raise InvalidInputError(f"the part {part.id} belongs to another message")
        kept.turns.append(Turn(info=info, parts=line.parts))

    def _new(self, kind: Literal["session", "message", "part"], id_: str) -> None:
        check_id(kind, id_)
        if id_ in self._ids:
            raise InvalidInputError(f"{id_} is there twice")
        self._ids.add(id_)
