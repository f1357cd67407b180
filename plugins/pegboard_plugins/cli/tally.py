"""The memory of a viewer during a turn: authors of messages, parents of sessions, costs."""

from collections.abc import Iterable

import msgspec

from pegboard.schema.event import (
    Event,
    MessageUpdated,
    PartUpdated,
    PluginFailed,
    SessionCreated,
    SessionFailed,
    SessionUpdated,
)
from pegboard.schema.message import AssistantMessage, BudgetFailure, Failure
from pegboard.schema.part import Completed, Failed, Pending, ToolPart
from pegboard.schema.session import CacheTokens, Tokens
from pegboard_plugins.shared.terminal import denial_of, sum_costs


class Tally:
    """The messages of a session and its subagents, from the events as they come.

    Failures of plugins go to the list `plugins_failed`. `is_saved`: the session outlives the turn.
    """

    def __init__(
        self,
        session_id: str,
        plugins_failed: list[PluginFailed] | None = None,
        *,
        is_saved: bool = True,
    ) -> None:
        self.session_id = session_id
        self.is_saved = is_saved
        self._depths = {session_id: 0}
        self._answers: dict[str, AssistantMessage] = {}
        self._calls: dict[str, dict[str, dict[str, ToolPart]]] = {}
        self.failure: Failure | None = None
        self.sandbox = ""
        """How tightly the processes of a call were enclosed, as far as calls have told."""
        self._plugins_failed = [] if plugins_failed is None else plugins_failed

    def note(self, event: Event) -> None:
        """Take in what an event says about sessions and messages."""
        match event.properties:
            case SessionCreated(info=info) | SessionUpdated(info=info):
                if info.parent_id in self._depths:
                    self._depths[info.id] = self._depths[info.parent_id] + 1
            case MessageUpdated(info=AssistantMessage() as info):
                self._answers[info.id] = info
            case PartUpdated(part=ToolPart() as part):
                self._note_sandbox(part)
                if part.session_id in self._depths:
                    self._note_call(part)
            case SessionFailed(session_id=self.session_id, error=error):
                self.failure = error
            case PluginFailed() as failed:
                self._plugins_failed.append(failed)
            case _:
                pass

    def depth(self, session_id: str | None) -> int | None:
        """Return the number of subagents between this session and ours, None if unrelated."""
        return None if session_id is None else self._depths.get(session_id)

    def is_answer(self, message_id: str) -> bool:
        """Return whether the message is the model's, and not a summary of the history."""
        answer = self._answers.get(message_id)
        return answer is not None and not answer.summary

    @property
    def denial(self) -> str:
        """The reason for which a call of the last answer with calls was denied, "" without one.

        A subagent's call counts as the call that started it.
        """
        return self._denial(self.session_id)

    def _denial(self, session_id: str) -> str:
        answers = self._calls.get(session_id, {})
        last = next(reversed(answers.values()), {})
        reasons = (denial_of(part) or self._denial(_child(part)) for part in last.values())
        return next(filter(None, reasons), "")

    @property
    def is_answered(self) -> bool:
        """Whether a model has answered or counted anything, subagents included."""
        return any(each.error is None or each.tokens != Tokens() for each in self._ours())

    @property
    def steps(self) -> int:
        """The number of requests to a model, subagents included."""
        return sum(not _is_refused(answer) for answer in self._ours())

    @property
    def cost(self) -> float | None:
        """US dollars, subagents included; None when the cost of an answer is not known."""
        return sum_costs(answer.cost for answer in self._ours())

    @property
    def known_cost(self) -> float:
        """US dollars of the answers of known cost, subagents included."""
        return sum(answer.cost or 0.0 for answer in self._ours())

    @property
    def tokens(self) -> Tokens:
        """Tokens, subagents included."""
        return sum_tokens(answer.tokens for answer in self._ours())

    def _note_call(self, part: ToolPart) -> None:
        answers = self._calls.setdefault(part.session_id, {})
        answers.setdefault(part.message_id, {})[part.id] = part

    def _note_sandbox(self, part: ToolPart) -> None:
        facts = None if isinstance(part.state, Pending) else part.state.metadata
        self.sandbox = str((facts or {}).get("sandbox") or self.sandbox)

    def _ours(self) -> tuple[AssistantMessage, ...]:
        answers = self._answers.values()
        return tuple(answer for answer in answers if answer.session_id in self._depths)


def _child(part: ToolPart) -> str:
    """Return the id of the session that the call started, empty for calls without one."""
    match part.state:
        case Completed(metadata=metadata) | Failed(metadata=metadata):
            return str((metadata or {}).get("sessionId") or "")
        case _:
            return ""


def _is_refused(answer: AssistantMessage) -> bool:
    """Return whether a budget prevented the step's request."""
    return isinstance(answer.error, BudgetFailure) and answer.tokens == Tokens()


def sum_tokens(all_tokens: Iterable[Tokens]) -> Tokens:
    """Return the sum of all counts."""
    total = Tokens()
    for tokens in all_tokens:
        total = msgspec.structs.replace(
            total,
            input=total.input + tokens.input,
            output=total.output + tokens.output,
            reasoning=total.reasoning + tokens.reasoning,
            cache=CacheTokens(
                read=total.cache.read + tokens.cache.read,
                write=total.cache.write + tokens.cache.write,
            ),
        )
    return total
