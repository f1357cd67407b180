"""The progress of a session, computed from its events: finished parts to print, running work."""

from collections.abc import Iterator, Sequence

import msgspec

from pegboard.schema.event import (
    Event,
    MessageRemoved,
    MessageUpdated,
    PartDelta,
    PartRemoved,
    PartUpdated,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
    SessionCompacted,
    SessionCreated,
    SessionFailed,
    SessionIdle,
    SessionStatusChanged,
    SessionUpdated,
    SessionWarned,
    TodoUpdated,
)
from pegboard.schema.message import AbortedFailure, AssistantMessage, Failure, Turn, UserMessage
from pegboard.schema.part import (
    Completed,
    Failed,
    FilePart,
    Part,
    ReasoningPart,
    StepFinishPart,
    TextPart,
    ToolPart,
)
from pegboard.schema.session import (
    Idle,
    PermissionRequest,
    QuestionRequest,
    Retry,
    Session,
    SessionStatus,
    Todo,
    Tokens,
)
from pegboard.unstable import one_line
from pegboard_plugins.chat.finished import (
    STOPPED,
    Answered,
    Asked,
    Called,
    Finished,
    Noted,
    Steer,
    Thought,
    subject_of,
    was_stopped,
)
from pegboard_plugins.chat.turnprogress import TurnProgress, compacted_text, retry_text
from pegboard_plugins.chat.waitclock import WaitClock
from pegboard_plugins.shared.terminal import MarkdownBlocks

MS = 1000


class Child(msgspec.Struct):
    """The progress of a running subagent."""

    session: Session
    last: str = ""
    wait: Retry | None = None
    tokens: int = 0
    running: bool = True


class Course:
    """The progress of one session; `take` yields each part to print when an event completes it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.status: SessionStatus = Idle()
        self.calls: dict[str, ToolPart] = {}
        self.children: dict[str, Child] = {}
        self.todos: tuple[Todo, ...] = ()
        self.steers: dict[str, Steer] = {}
        self.requests: dict[str, PermissionRequest | QuestionRequest] = {}
        self.tokens: Tokens | None = None
        self.progress = TurnProgress()
        self.thinking = ""
        self.model = ""
        self.agent = session.agent or ""
        self._users: set[str] = set()
        self._answers: dict[str, AssistantMessage] = {}
        self._texts: dict[str, MarkdownBlocks] = {}
        self._streamed: dict[str, list[str]] = {}
        self._done: set[str] = set()
        self._ended: dict[str, ToolPart] = {}
        self.failures: set[str] = set()  # of the last prompt, as they are shown
        self._failed_answers: set[str] = set()
        self._clock = WaitClock()

    @property
    def busy(self) -> bool:
        """Whether a turn runs in the session."""
        return not isinstance(self.status, Idle)

    @property
    def writes(self) -> bool:
        """Whether the model is writing an answer, and not reasoning."""
        return bool(self._texts)

    def knows_prompt(self, message_id: str) -> bool:
        """Return whether an event has already reported this prompt."""
        return message_id in self._users

    def waited_s(self, part: ToolPart) -> float | None:
        """Return the seconds that a call has waited for the user; None if not observed."""
        return self._clock.waited_s(part.call_id)

    def tail(self, lines: int, letters: int) -> str:
        """Return the end of the text that the model is writing."""
        live = [blocks.tail(lines, letters) for blocks in self._texts.values()]
        text = next((tail for tail in reversed(live) if tail.strip()), "")
        return text or self.thinking[-letters * lines :]

    def read(self, turns: Sequence[Turn]) -> Iterator[Finished]:
        """Yield the parts to print of stored messages, and after each failed answer its error."""
        for turn in turns:
            info = turn.info
            if isinstance(info, UserMessage) and info.id not in self._users:
                self.failures.clear()
            yield from self._met(info)
            for part in turn.parts:
                if isinstance(part, ToolPart) and part.id not in self.calls:
                    self._clock.miss(part.call_id)
                yield from self._part(part)
            is_done = not isinstance(info, AssistantMessage) or info.error or info.time.completed
            if not self.busy or is_done:
                yield from self.texts_end()
            yield from self._why_failed(info)

    def take(self, event: Event) -> Iterator[Finished]:
        """Yield the parts to print that the event completes, such as a tool call or a paragraph."""
        match event.properties:
            case PermissionAsked(request=request) | QuestionAsked(request=request):
                if self._has(request.session_id):
                    self.asked(request)
            case (
                PermissionReplied(request_id=gone)
                | QuestionReplied(request_id=gone)
                | (QuestionRejected(request_id=gone))
            ):
                self.answered(gone)
            case SessionCreated(info=info) | SessionUpdated(info=info):
                self._session(info)
            case SessionWarned(message=message, session_id=whose) if self._has(whose):
                yield Noted(message, "warning")
            case _ if event.session_id == self.session.id:
                yield from self._own(event)
            case _ if event.session_id in self.children:
                self._childs(self.children[event.session_id], event)
            case _:
                pass

    def _has(self, session_id: str | None) -> bool:
        return session_id == self.session.id or session_id in self.children

    def waits_for(self, requests: Sequence[PermissionRequest | QuestionRequest]) -> None:
        """Replace the requests that wait for the user."""
        waiting = {each.id: each for each in requests if self._has(each.session_id)}
        for gone in self.requests.keys() - waiting.keys():
            self.answered(gone)
        for request_id in waiting.keys() - self.requests.keys():
            self.asked(waiting[request_id])

    def asked(self, request: PermissionRequest | QuestionRequest) -> None:
        """Add a request that waits for the user."""
        self.requests[request.id] = request
        self._clock.begin(request)

    def answered(self, request_id: str) -> None:
        """Remove a waiting request."""
        self.requests.pop(request_id, None)
        self._clock.end(request_id)

    def _session(self, info: Session) -> None:
        if info.id == self.session.id:
            self.session = info
        elif info.parent_id == self.session.id or info.parent_id in self.children:
            known = self.children.setdefault(info.id, Child(info))
            known.session = info

    def _own(self, event: Event) -> Iterator[Finished]:
        match event.properties:
            case PartDelta() as delta:
                yield from self._delta(delta)
            case PartUpdated(part=part):
                yield from self._part(part)
            case PartRemoved(part_id=gone):
                yield from self._removed(gone)
            case MessageRemoved(message_id=gone):
                self.steers.pop(gone, None)
            case MessageUpdated(info=info):
                yield from self._met(info)
                yield from self._why_failed(info)
            case SessionStatusChanged(status=status):
                self.status = status
                self.progress.look(busy=self.busy)
                if isinstance(status, Retry):
                    yield Noted(retry_text(status), "warning")
            case SessionIdle():
                yield from self.rest()
            case TodoUpdated(todos=todos):
                still_open = any(t.status not in ("completed", "cancelled") for t in todos)
                self.todos = tuple(todos) if still_open else ()
            case properties:
                yield from self._take_session(properties)

    def _take_session(self, properties: object) -> Iterator[Finished]:
        match properties:
            case SessionFailed(error=error) if error is not None:
                yield from self._failed(error)
            case SessionCompacted():
                yield Noted(compacted_text(self.tokens), "dim")

    def _childs(self, child: Child, event: Event) -> None:
        match event.properties:
            case PartUpdated(part=ToolPart() as part):
                child.last = f"{part.tool} {one_line(subject_of(part), 40)}"
            case PartUpdated(part=ReasoningPart()):
                child.last = "thinking"
            case PartUpdated(part=TextPart(time=span)) if span:  # a prompt has none
                child.last = "writing"
            case PartUpdated(part=StepFinishPart(tokens=tokens)):
                child.tokens += tokens.input + tokens.output + tokens.cache.read
            case SessionIdle():
                child.running = False
            case SessionStatusChanged(status=status):
                child.running = not isinstance(status, Idle)
                child.wait = status if isinstance(status, Retry) else None

    def _met(self, info: UserMessage | AssistantMessage) -> Iterator[Finished]:
        if isinstance(info, UserMessage):
            self._users.add(info.id)
            self.agent = info.agent
            return
        if info.id not in self._answers:
            yield from self._taken()
        self._answers[info.id] = info
        if not info.summary:
            self.model = f"{info.provider_id}/{info.model_id}"

    def _why_failed(self, info: UserMessage | AssistantMessage) -> Iterator[Finished]:
        """Yield the error of a failed answer, unless an earlier call has yielded the error."""
        if isinstance(info, AssistantMessage) and info.error is not None:
            is_new = info.id not in self._failed_answers
            self._failed_answers.add(info.id)
            if is_new:
                yield from self._failed(info.error)

    def _failed(self, error: Failure) -> Iterator[Finished]:
        is_stop = isinstance(error, AbortedFailure)
        text = STOPPED if is_stop else error.data.message or type(error).__name__
        if text not in self.failures and not (is_stop and self.calls):  # whose heads say it
            self.failures.add(text)
            yield Noted("stopped", "dim") if is_stop else Noted(text, "error")

    def rest(self) -> Iterator[Finished]:
        """Yield unfinished texts, ended calls and unread prompts when the session becomes idle."""
        self.status = Idle()
        self.thinking = ""
        yield from self.texts_end()
        yield from self._in_order(every=True)
        yield from self._taken()
        self.calls.clear()
        self.children = {key: each for key, each in self.children.items() if each.running}

    def _taken(self) -> Iterator[Finished]:
        """Yield the prompts that the model reads now, except prompts that the user withdraws."""
        steers = self.steers
        self.steers = {key: each for key, each in steers.items() if each.leaving}
        for key, steer in steers.items():
            if key not in self.steers:
                yield from steer.pieces

    def _part(self, part: Part) -> Iterator[Finished]:
        if part.id in self._done:
            return
        match part:
            case TextPart(synthetic=False, ignored=False) if part.message_id in self._users:
                yield from self._prompt_piece(part, Asked(part.text))
            case FilePart(filename=str(name)) if part.message_id in self._users:
                yield from self._prompt_piece(part, Noted(f"+ {name}", "dim"))
            case TextPart(synthetic=False) if self._is_answer(part.message_id):
                yield from self._take_text(part)
            case ReasoningPart():
                yield from self._reasoning(part)
            case ToolPart():
                yield from self._call(part)
            case StepFinishPart(tokens=tokens):
                self._done.add(part.id)
                self.tokens = tokens
                self.progress.step(tokens)
            case _:
                pass

    def _prompt_piece(self, part: Part, piece: Asked | Noted) -> Iterator[Finished]:
        """Yield a part of a prompt, or store the part until the model has read the prompt."""
        self._done.add(part.id)
        if self.busy and self._answers and part.message_id > max(self._answers):
            self.steers.setdefault(part.message_id, Steer()).pieces.append(piece)
        else:
            yield piece

    def _is_answer(self, message_id: str) -> bool:
        answer = self._answers.get(message_id)
        return answer is not None and not answer.summary

    def _delta(self, delta: PartDelta) -> Iterator[Finished]:
        if delta.field != "text":
            return
        self.progress.letters += len(delta.delta)
        if delta.part_id in self._texts:
            self._streamed[delta.part_id].append(delta.delta)
            for block in self._texts[delta.part_id].feed(delta.delta):
                yield Answered(block)
        elif delta.part_id not in self._done:
            self.thinking = (self.thinking + delta.delta)[-MS:]

    def _take_text(self, part: TextPart) -> Iterator[Finished]:
        blocks = self._texts.get(part.id)
        if blocks is None:
            blocks = self._texts[part.id] = MarkdownBlocks()
            self._streamed[part.id] = []
            self.thinking = ""
        if part.time is not None and part.time.end is not None:
            yield from self._text_end(part.id, part.text)
            return
        seen = "".join(self._streamed[part.id])
        if part.text.startswith(seen) and part.text != seen:
            self._streamed[part.id].append(part.text[len(seen) :])
            yield from (Answered(block) for block in blocks.feed(part.text[len(seen) :]))

    def texts_end(self) -> Iterator[Finished]:
        """Yield the rest of each text that the model was still writing."""
        for part_id in tuple(self._texts):
            yield from self._text_end(part_id, None)

    def _text_end(self, part_id: str, text: str | None) -> Iterator[Finished]:
        """Yield the unprinted rest of a text; `text` is the whole text, or None if unknown."""
        blocks, seen = self._texts.pop(part_id), "".join(self._streamed.pop(part_id))
        self._done.add(part_id)
        if text is not None and not text.startswith(seen.rstrip()):
            blocks = MarkdownBlocks()
            yield Noted("changed by a plugin:", "dim")
            seen = ""
        rest = text[len(seen) :] if text is not None else ""
        yield from (Answered(block) for block in blocks.feed(rest))
        yield from (Answered(block) for block in blocks.flush())

    def _reasoning(self, part: ReasoningPart) -> Iterator[Finished]:
        if part.time.end is not None:
            self._done.add(part.id)
            self.thinking = ""
            if part.text.strip():
                yield Thought(part.text, (part.time.end - part.time.start) / MS)

    def _removed(self, part_id: str) -> Iterator[Finished]:
        shown = "".join(self._streamed.pop(part_id, ()))
        self._texts.pop(part_id, None)
        if shown:
            yield Noted("the answer broke off and starts again", "dim")

    def _call(self, part: ToolPart) -> Iterator[Finished]:
        self.thinking = ""
        self.calls[part.id] = part
        if isinstance(part.state, Completed | Failed):
            self._ended[part.id] = part
            yield from self._in_order()

    def _in_order(self, *, every: bool = False) -> Iterator[Finished]:
        """Yield the ended calls in order, up to the first running call unless `every`."""
        for part_id, part in tuple(self.calls.items()):
            if part_id in self._ended:
                del self.calls[part_id]
                del self._ended[part_id]
                self._done.add(part_id)
                self.failures |= {STOPPED} if was_stopped(part) else set()
                yield Called(part, self.waited_s(part))
                self._clock.forget(part.call_id)
            elif not every:
                return
