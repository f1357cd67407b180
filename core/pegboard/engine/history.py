"""The turns of a running session, and the messages that the model receives for them.

Each turn is converted once, and later requests reuse the same message objects. Thus providers can
cache the encoded form, and the cost of a step does not grow with the session.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

import msgspec

from pegboard.providers import Call, Content, Media, ModelMessage, Reasoning, Result, Text
from pegboard.schema.message import (
    AbortedFailure,
    AssistantMessage,
    BudgetFailure,
    Message,
    OutputLengthFailure,
    StoppedFailure,
    Turn,
    UserMessage,
)
from pegboard.schema.model import Model
from pegboard.schema.part import (
    AgentPart,
    CompactionPart,
    Completed,
    Failed,
    FilePart,
    Part,
    Pending,
    ReasoningPart,
    Running,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from pegboard.storage.rows import INTERRUPTED_CALLS

CLEARED = "[The output of this call was cleared to save space.]"
INTERRUPTED = "[The call was interrupted before it had a result.]"
SUMMARISE = "What have we done so far?"
REFUSED = "refused"
"""The key in the metadata of a part that makes its prompt a refused one; the value is why."""
COMPACTION = "compaction"
"""The key in the metadata of a summary with which the model's view begins."""
GO_ON = "Go on."
SUBTASK = "The user had a subagent do the following task."
_CUT_SHORT = AbortedFailure | BudgetFailure | OutputLengthFailure | StoppedFailure
_UNREADABLE_MIMES = ("text/plain", "application/x-directory")


class _Sent(msgspec.Struct):
    """The turns of the newest model request, and the messages that these turns were converted to.

    The next request starts with the same turns, so only new turns are converted. The message "Go
    on." that a request may end with is not included.
    """

    model: str
    turns: tuple[Turn, ...] = ()
    messages: list[ModelMessage] = msgspec.field(default_factory=list)


class History:
    """The turns of a session in the order in which the model saw them, and their model messages.

    `subagents` is the name of the tool with which the model calls subagents.
    """

    def __init__(self, turns: Iterable[Turn], *, subagents: str = "subagents") -> None:
        self.turns = as_seen(turns)
        self._subagents = subagents
        self._places = {turn.info.id: place for place, turn in enumerate(self.turns)}
        self._users: list[int] = []
        self._memo: dict[str, tuple[Turn, str, tuple[ModelMessage, ...]]] = {}
        self._sent = _Sent("")
        self._go_on = ModelMessage(role="user", content=(Text(text=GO_ON),))
        self._aside: set[str] = set()
        self._summary: str | None = None
        self._count_users()
        for turn in self.turns:
            self._note(turn)

    def put(self, turn: Turn) -> None:
        """Add a turn at the end, or replace the turn with the same id."""
        place = self._places.get(turn.info.id)
        if place is None:
            self._places[turn.info.id] = len(self.turns)
            if isinstance(turn.info, UserMessage):
                self._users.append(len(self.turns))
            self.turns.append(turn)
        else:
            self.turns[place] = turn
        self._note(turn)

    def _note(self, turn: Turn) -> None:
        info = turn.info
        if is_aside(turn):
            self._aside.add(info.id)
        if isinstance(info, AssistantMessage) and COMPACTION in (info.metadata or {}):
            self._summary = info.id

    def drop(self, message_id: str) -> None:
        """Remove the turn with this message id."""
        self.turns = [turn for turn in self.turns if turn.info.id != message_id]
        self._places = {turn.info.id: place for place, turn in enumerate(self.turns)}
        self._count_users()

    def _count_users(self) -> None:
        places = enumerate(self.turns)
        self._users = [place for place, turn in places if isinstance(turn.info, UserMessage)]

    @property
    def prompts(self) -> int:
        """The number of the user's messages in the session."""
        return len(self._users)

    def get(self, message_id: str) -> Turn:
        """Return the turn with this message id, which must exist."""
        return self.turns[self._places[message_id]]

    def summary(self) -> Turn | None:
        """Return the newest summary, which replaces all earlier turns, or None."""
        return self.get(self._summary) if self._summary in self._places else None

    def view(self) -> tuple[Turn, ...]:
        """Return the turns that the model sees: all of them, or those from the newest summary on.

        After a compaction these are the request for the summary, the summary, the kept turns and
        all later turns. Failed compactions and refused prompts are left out.
        """
        if not self._aside:
            return tuple(self.turns)
        summary = self.summary()
        if summary is None:
            return self._without_compactions(0)
        assert isinstance(summary.info, AssistantMessage)
        request = self._places.get(summary.info.parent_id)
        if request is None:
            return (summary, *self._without_compactions(self._places[summary.info.id]))
        names = set(kept_ids(summary.info)) - self._aside
        places = (self._places.get(name, request) for name in names)
        kept = [self.turns[place] for place in sorted(places) if place < request]
        return (self.turns[request], summary, *kept, *self._without_compactions(request))

    def _without_compactions(self, start: int) -> tuple[Turn, ...]:
        return tuple(turn for turn in self.turns[start:] if turn.info.id not in self._aside)

    def next_subtask(self, message_id: str) -> SubtaskPart | None:
        """Return the first subtask of a prompt that has not run yet, or None."""
        asked = [part for part in self.get(message_id).parts if isinstance(part, SubtaskPart)]
        parts = (part for turn in self.turns for part in turn.parts) if asked else ()
        taken = {part.call_id for part in parts if isinstance(part, ToolPart)}
        return next((part for part in asked if part.id not in taken), None)

    def users(self) -> Iterator[tuple[int, Turn]]:
        """Yield the user's messages that no plugin refused, with their indices, newest first."""
        for place in reversed(self._users):
            if refusal_of(self.turns[place]) is None:
                yield place, self.turns[place]

    def messages(self, model: Model, turns: Sequence[Turn]) -> tuple[ModelMessage, ...]:
        """Convert turns to messages for the model, ending with a message that is not the model's.

        Some providers reject a request that ends with an answer, or has two answers in a row.
        """
        name = f"{model.provider_id}/{model.id}"
        sent, turns = self._sent, tuple(turns)
        if sent.model != name or turns[: len(sent.turns)] != sent.turns:
            sent = self._sent = _Sent(name)
        found = sent.messages
        for turn in turns[len(sent.turns) :]:
            converted = self.converted(model, turn)
            if converted and converted[0].role == "assistant" and _ends_with_answer(found):
                found.append(self._go_on)
            found.extend(converted)
        sent.turns = turns
        return (*found, self._go_on) if _ends_with_answer(found) else tuple(found)

    def converted(self, model: Model, turn: Turn) -> tuple[ModelMessage, ...]:
        """Convert one turn to messages for the model; later calls return the same objects."""
        name = f"{model.provider_id}/{model.id}"
        known = self._memo.get(turn.info.id)
        if known is None or known[0] is not turn or known[1] != name:
            known = (turn, name, convert(turn, model, subagents=self._subagents))
            self._memo[turn.info.id] = known
        return known[2]


def as_seen(turns: Iterable[Turn]) -> list[Turn]:
    """Sort stored turns into the order in which the model received the turns.

    A prompt is stored before its files are read. An answer to an earlier prompt may start
    meanwhile. It is then stored after the new prompt but belongs before it.
    """
    found: list[Turn] = []
    known: set[str] = set()
    for turn in turns:
        place = len(found)
        if isinstance(turn.info, AssistantMessage) and turn.info.parent_id in known:
            while _came_later(found[place - 1], turn.info.parent_id):
                place -= 1
        found.insert(place, turn)
        known.add(turn.info.id)
    return found


def _came_later(turn: Turn, parent_id: str) -> bool:
    """Return whether the turn is a prompt with another id than `parent_id`.

    `parent_id` is the prompt that an answer belongs to.
    """
    is_prompt = isinstance(turn.info, UserMessage) and not is_compaction(turn)
    return is_prompt and turn.info.id != parent_id


def is_compaction(turn: Turn) -> bool:
    """Return whether the turn is a summary of the history, or the request for such a summary."""
    if isinstance(turn.info, AssistantMessage):
        return turn.info.summary
    return compaction_of(turn) is not None


def is_aside(turn: Turn) -> bool:
    """Return whether the turn is a compaction or a refused prompt."""
    return is_compaction(turn) or refusal_of(turn) is not None


def refusal_of(turn: Turn) -> str | None:
    """Return why a plugin has refused this prompt, or None if the prompt was not refused."""
    if not isinstance(turn.info, UserMessage):
        return None
    metadata = (part.metadata or {} for part in turn.parts if isinstance(part, TextPart))
    return next((str(each[REFUSED]) for each in metadata if REFUSED in each), None)


def compaction_of(turn: Turn) -> CompactionPart | None:
    """Return the part that makes this turn a request for a summary, or None."""
    return next((part for part in turn.parts if isinstance(part, CompactionPart)), None)


def kept_ids(info: Message) -> tuple[str, ...]:
    """Return the ids of the turns that stay visible to the model next to a summary."""
    metadata = info.metadata if isinstance(info, AssistantMessage) else None
    return tuple((metadata or {}).get(COMPACTION, {}).get("kept", ()))


def convert(turn: Turn, model: Model, *, subagents: str = "subagents") -> tuple[ModelMessage, ...]:
    """Convert a turn to messages for a model; each call has a result.

    `subagents` is the tool that the model is asked to use for a subagent named by the user.
    """
    match turn.info:
        case UserMessage():
            content = tuple(item for part in turn.parts for item in _user_content(part, subagents))
            return (ModelMessage(role="user", content=content),) if content else ()
        case AssistantMessage() as info:
            if info.error is not None and not _worth_keeping(info, turn.parts):
                return ()
            same = info.provider_id == model.provider_id and info.model_id == model.id
            return _answer_messages(turn.parts, own=same and not info.summary)
        case unknown:
            assert_never(unknown)


def _ends_with_answer(messages: Sequence[ModelMessage]) -> bool:
    return bool(messages) and messages[-1].role == "assistant"


def _worth_keeping(info: AssistantMessage, parts: Sequence[Part]) -> bool:
    """Return whether a failed answer has tool results or partial text for the model."""
    states = [part.state for part in parts if isinstance(part, ToolPart)]
    ended = [state for state in states if isinstance(state, Completed | Failed)]
    if any(isinstance(each, Completed) or each.error in INTERRUPTED_CALLS for each in ended):
        return True
    stopped = isinstance(info.error, _CUT_SHORT)
    return stopped and any(isinstance(part, TextPart | ToolPart) for part in parts)


def _user_content(part: Part, subagents: str) -> tuple[Content, ...]:
    match part:
        case TextPart(ignored=False, text=text) if text:
            return (Text(text=text),)
        case FilePart(mime=mime) if mime not in _UNREADABLE_MIMES:
            return (Media(mime=part.mime, url=part.url, filename=part.filename),)
        case CompactionPart():
            return (Text(text=SUMMARISE),)
        case SubtaskPart():
            return (Text(text=f"{SUBTASK}\n{part.prompt}"),)
        case AgentPart(name=name):
            return (Text(text=f"Use the {subagents} tool with the subagent {name} for this."),)
        case _:
            return ()


def _answer_messages(parts: Sequence[Part], *, own: bool) -> tuple[ModelMessage, ...]:
    said: list[Content] = []
    results: list[Content] = []
    for part in parts:
        match part:
            case TextPart(text=text) if text:
                said.append(Text(text=text, metadata=part.metadata if own else None))
            case ReasoningPart(text=text, metadata=metadata) if text or metadata:
                said.append(Reasoning(text=text, metadata=metadata if own else None))
            case ToolPart():
                said.append(
                    Call(
                        id=part.call_id,
                        name=part.tool,
                        input=part.state.input,
                        metadata=part.metadata if own else None,
                    )
                )
                results.append(_result(part))
            case _:
                continue
    messages = []
    if said:
        messages.append(ModelMessage(role="assistant", content=tuple(said)))
    if results:
        messages.append(ModelMessage(role="tool", content=tuple(results)))
    return tuple(messages)


def _result(part: ToolPart) -> Result:
    match part.state:
        case Completed(time=time) if time.compacted:
            return Result(id=part.call_id, name=part.tool, output=CLEARED)
        case Completed(output=output, attachments=files):
            media = tuple(
                Media(mime=file.mime, url=file.url, filename=file.filename)
                for file in files
                if file.url.startswith("data:")
            )
            return Result(id=part.call_id, name=part.tool, output=output, media=media)
        case Failed(error=error):
            return Result(id=part.call_id, name=part.tool, output=error, is_error=True)
        case Pending() | Running():
            return Result(id=part.call_id, name=part.tool, output=INTERRUPTED, is_error=True)
        case unknown:
            assert_never(unknown)
