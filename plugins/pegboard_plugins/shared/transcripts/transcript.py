"""Transcripts: a session as titled messages, texts and collapsible sections, for HTML or text."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from pegboard import Host
from pegboard.display import Block, SpanLine, escape_controls, plain_line
from pegboard.schema.message import AssistantMessage, Turn, UserMessage
from pegboard.schema.part import (
    AgentPart,
    CompactionPart,
    Completed,
    Failed,
    FilePart,
    Part,
    PatchPart,
    Pending,
    ReasoningPart,
    RetryPart,
    StepFinishPart,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from pegboard.schema.session import FileDiff, Session
from pegboard.unstable import CallBlocks, block_lines, lines_of
from pegboard_plugins.shared.frontend import Conversation
from pegboard_plugins.shared.terminal import UNKNOWN_COST, cost_text

WIDTH = 100
"""The width in columns of blocks that depend on a width."""
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp")


class Words(msgspec.Struct, frozen=True):
    """Plain text of the user."""

    text: str


class AnswerText(msgspec.Struct, frozen=True):
    """Text of the model, in Markdown."""

    text: str


class Note(msgspec.Struct, frozen=True):
    """A line about an event, such as an error or changed files."""

    text: str
    is_error: bool = False


class Picture(msgspec.Struct, frozen=True):
    """An image, by its `data:` URL."""

    url: str
    name: str


class Fold(msgspec.Struct, frozen=True, kw_only=True):
    """A collapsible section of a transcript: a title above lines and nested entries."""

    title: str
    lines: tuple[SpanLine, ...] = ()
    inner: "tuple[Entry, ...]" = ()
    is_open: bool = False


class Inner(msgspec.Struct, frozen=True):
    """The transcript of a subagent's session."""

    transcript: "Transcript"


Entry = Words | AnswerText | Note | Picture | Fold | Inner


class MessageEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A message: its author, facts about it, and its entries; `id` is its anchor."""

    id: str
    by: str
    facts: tuple[str, ...]
    entries: tuple[Entry, ...]
    is_answer: bool


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A session: its title, facts about it, and its messages."""

    title: str
    facts: tuple[str, ...]
    messages: tuple[MessageEntry, ...]


async def transcribe(app: Host, conversations: Sequence[Conversation]) -> Transcript:
    """Return the transcript of the first session, with its subagents' transcripts at their calls.

    Tool calls have the same blocks as on a terminal.
    """
    drawer, blocks = CallBlocks(app), {}
    for each in conversations:
        for turn in each.turns:
            for part in turn.parts:
                if isinstance(part, ToolPart):
                    blocks[part.id] = await drawer.block(part, WIDTH)
    return _Transcriber(conversations, blocks).session(conversations[0])


class _Transcriber:
    def __init__(self, conversations: Sequence[Conversation], blocks: Mapping[str, Block]) -> None:
        self._blocks = blocks
        self._waiting = {each.info.id: each for each in conversations[1:]}

    def session(self, conversation: Conversation) -> Transcript:
        """Return a session's transcript; subagents that no call mentions are at its end."""
        messages = [self._message(turn) for turn in conversation.turns]
        mine = [
            each for each in self._waiting.values() if each.info.parent_id == conversation.info.id
        ]
        if left := tuple(self._inner(each) for each in mine):
            id_ = f"{conversation.info.id}-subagents"
            messages.append(
                MessageEntry(id=id_, by="Subagents", facts=(), entries=left, is_answer=True)
            )
        return Transcript(
            title=conversation.info.title,
            facts=_session_facts(conversation.info),
            messages=tuple(messages),
        )

    def _inner(self, conversation: Conversation) -> Inner:
        del self._waiting[conversation.info.id]
        return Inner(self.session(conversation))

    def _message(self, turn: Turn) -> MessageEntry:
        info = turn.info
        entries = [entry for part in turn.parts for entry in self._entries(part, turn)]
        if isinstance(info, UserMessage):
            diffs = info.summary.diffs if info.summary else ()
            return MessageEntry(
                id=info.id,
                by="You",
                facts=(_moment(info.time.created),),
                entries=(*entries, *(_change(diff) for diff in diffs if diff.patch)),
                is_answer=False,
            )
        if info.error is not None:
            entries.append(Note(f"error: {info.error.data.message}", is_error=True))
        return MessageEntry(
            id=info.id,
            by=info.agent,
            facts=_answer_facts(info),
            entries=tuple(entries),
            is_answer=True,
        )

    def _entries(self, part: Part, turn: Turn) -> Iterator[Entry]:
        match part:
            case TextPart(synthetic=True, text=text):
                yield Fold(title="added by the program", lines=lines_of(escape_controls(text)))
            case TextPart(text=text):
                is_answer = isinstance(turn.info, AssistantMessage)
                yield AnswerText(text) if is_answer else Words(text)
            case ReasoningPart(text=text):
                yield Fold(title="reasoning", lines=lines_of(escape_controls(text)))
            case FilePart():
                yield _file(part)
            case ToolPart():
                yield self._call(part)
            case SubtaskPart():
                yield Note(f"task for {part.agent}: {part.description}")
                yield Words(part.prompt)
            case _ if note := _note(part):
                yield note
            case _:
                pass

    def _call(self, part: ToolPart) -> Fold:
        block, state = self._blocks[part.id], part.state
        lines = block_lines(block, "whole").lines
        inner: list[Entry] = []
        if state.input:
            arguments = json.dumps(state.input, ensure_ascii=False, indent=2, sort_keys=True)
            inner.append(Fold(title="arguments", lines=lines_of(escape_controls(arguments))))
        elif isinstance(state, Pending) and state.raw:
            inner.append(Fold(title="arguments", lines=lines_of(escape_controls(state.raw))))
        match state:
            case Completed(output=output) | Failed(error=output):
                read = lines_of(escape_controls(output))
                if not set(map(plain_line, read)) <= set(map(plain_line, lines)):
                    inner.append(Fold(title="output", lines=read))
                if isinstance(state, Completed):
                    inner += map(_file, state.attachments)
            case _:
                inner.append(Note(f"the call has not ended: {state.__struct_config__.tag}"))
        inner += self._subagents(part)
        title = f"{part.tool} {block.title}".rstrip()
        is_open = 0 < len(lines) <= block.fold or isinstance(state, Failed)
        return Fold(title=title, lines=lines, inner=tuple(inner), is_open=is_open)

    def _subagents(self, part: ToolPart) -> Iterator[Inner]:
        """Yield the transcripts of subagents that this tool call is the first to mention."""
        if not self._waiting:
            return
        named = msgspec.json.encode(part.state).decode()
        for each in [each for id_, each in self._waiting.items() if id_ in named]:
            if each.info.id in self._waiting and each.info.parent_id == part.session_id:
                yield self._inner(each)


def _change(diff: FileDiff) -> Fold:
    return Fold(
        title=f"changed {diff.file} +{diff.additions} -{diff.deletions}",
        lines=block_lines(Block(diff=diff.patch), "whole").lines,
    )


def _session_facts(info: Session) -> tuple[str, ...]:
    known = info.known_cost
    model = f"{info.model.provider_id}/{info.model.id}" if info.model else ""
    tokens = info.tokens
    read = f"{tokens.input + tokens.cache.read:,} tokens read" if tokens else ""
    written = f"{tokens.output + tokens.reasoning:,} written" if tokens else ""
    cost = _cost(info.cost, is_whole=known is not None)
    facts = (info.id, _moment(info.time.created), info.directory, model, read, written, cost)
    return tuple(filter(None, facts))


def _answer_facts(info: AssistantMessage) -> tuple[str, ...]:
    tokens = info.tokens
    return (
        _moment(info.time.created),
        f"{info.provider_id}/{info.model_id}",
        f"{tokens.input + tokens.cache.read:,} tokens read",
        f"{tokens.output + tokens.reasoning:,} written",
        _cost(info.cost, is_whole=info.cost is not None),
    )


def _cost(cost: float | None, *, is_whole: bool) -> str:
    text = cost_text(cost or 0.0, is_whole=is_whole)
    return f"cost {text}" if text == UNKNOWN_COST else text


def _moment(milliseconds: int) -> str:
    """Format a time in UTC, so that the text does not depend on the machine's time zone."""
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _file(part: FilePart) -> Entry:
    name = part.filename or part.mime
    if part.mime in _PICTURES and part.url.startswith(f"data:{part.mime};base64,"):
        return Picture(part.url, name)
    where = "" if part.url.startswith("data:") else f" {part.url}"
    return Note(f"file: {name} ({part.mime}){where}")


def _reason(error: Mapping[str, Any]) -> str:
    match error:
        case {"data": {"message": str(message)}}:
            return message
        case _:
            return json.dumps(error, ensure_ascii=False, sort_keys=True)


def _note(part: Part) -> Note | None:
    """Return the line for a part without text, or None."""
    match part:
        case StepFinishPart(reason=reason) if reason not in ("stop", "tool-calls"):
            return Note(f"the model stopped: {reason}")
        case PatchPart(files=files):
            return Note(f"changed files: {', '.join(files)}")
        case AgentPart(name=name):
            return Note(f"agent: {name}")
        case CompactionPart():
            return Note("what came before is summarised")
        case RetryPart(attempt=attempt, error=error):
            return Note(f"attempt {attempt} failed: {_reason(error)}", is_error=True)
        case _:
            return None
