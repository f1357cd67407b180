"""The tally of a turn: its answers, subagents, tokens, costs and denied calls."""

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
    """The answers, tokens, costs and failures of a session and its subagents, from their events.

    Failures of plugins are appended to `plugins_failed`. `is_saved` means that the session is
    still stored after the run.
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
        """Update the tally with an event."""
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
        """Return the depth of a subagent's session; 0 for the main session, None for others."""
        return None if session_id is None else self._depths.get(session_id)

    def is_answer(self, message_id: str) -> bool:
        """Return whether the message is an answer of the model that is not a summary."""
        answer = self._answers.get(message_id)
        return answer is not None and not answer.summary

    @property
    def denial(self) -> str:
        """The reason why one of the last tool calls was denied, or "" if none was denied.

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
        """Whether a model has answered or used tokens, subagents included."""
        return any(each.error is None or each.tokens != Tokens() for each in self._ours())

    @property
    def steps(self) -> int:
        """The number of requests to a model, subagents included."""
        return sum(not _is_refused(answer) for answer in self._ours())

    @property
    def cost(self) -> float | None:
        """The cost in US dollars, subagents included; None if the cost of an answer is unknown."""
        return sum_costs(answer.cost for answer in self._ours())

    @property
    def known_cost(self) -> float:
        """The cost in US dollars of the answers with a known cost, subagents included."""
        return sum(answer.cost or 0.0 for answer in self._ours())

    @property
    def tokens(self) -> Tokens:
        """The tokens of all answers, subagents included."""
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
    """Return the session id of the subagent that a tool call started, or "" for other calls."""
    match part.state:
        case Completed(metadata=metadata) | Failed(metadata=metadata):
            return str((metadata or {}).get("sessionId") or "")
        case _:
            return ""


def _is_refused(answer: AssistantMessage) -> bool:
    """Return whether a budget prevented the request of the answer."""
    return isinstance(answer.error, BudgetFailure) and answer.tokens == Tokens()


def sum_tokens(all_tokens: Iterable[Tokens]) -> Tokens:
    """Return the sum of the token counts."""
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
