"""The ends of steps and turns: finish reasons, failures, and whether another step follows.

Another step follows only a step with tool calls, whatever finish reason the provider gives:

- A step without calls ends the turn. If the provider announced calls, a warning says so.
- An empty answer is requested once more; a second empty answer fails the turn.
- A step that breaks off after a call keeps the call's result. The next step counts as its retry:
  after `retry.attempts` such steps in a row the turn ends with the failure.
- A call that is cut by the output limit is returned to the model `CUT_ANSWERS` times per turn.
- After `FRUITLESS_STEPS` steps in a row in which no call could run, the turn ends. The limit is
  `DENIED_STEPS` if a call of the newest step was denied.
- A call that keeps returning the same result needs a permission to run again (`RepeatedCalls`).
"""

import hashlib
import json
from asyncio import CancelledError
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from pegboard.contract.results import ToolResult
from pegboard.errors import (
    AbortedError,
    BudgetError,
    ContextOverflowError,
    PegboardError,
    PluginError,
    ProviderAuthError,
    ProviderError,
)
from pegboard.providers import StreamFinish
from pegboard.schema.message import (
    AbortedFailure,
    APIData,
    APIFailure,
    AssistantMessage,
    AuthData,
    BudgetFailure,
    CallsFailure,
    ContentFilterFailure,
    ContextOverflowFailure,
    Failure,
    NoData,
    OutputLengthFailure,
    OverflowData,
    PluginFailure,
    ProviderAuthFailure,
    StoppedFailure,
    TextData,
    Turn,
    UnknownFailure,
)
from pegboard.schema.part import Failed, Pending, ToolPart
from pegboard.storage.rows import INTERRUPTED_ANSWERS

CUT_OFF = "The answer broke off before the call was complete."
TOO_LONG = (
    "The answer reached the model's output limit before this call was complete, so the call did "
    "not run. Write less at once: split the work into several smaller calls."
)
CUT_ANSWERS = 2
"""How often in a turn a model learns that its call was too long; then the turn ends."""
REFUSED = "The provider's content filter, or the model itself, refused to go on with the answer."
MAY_BE_EMPTY = frozenset({"stop", "other", "unknown", "tool-calls"})
"""An answer that ended for one of these reasons, and says nothing, is a failed attempt."""
GOES_ON = "tool-calls"
"""Why a step is stored to have ended that another one follows."""
PROMISED = "The model's server said that calls follow, and sent none: the turn ends here."
FRUITLESS_STEPS = 3
"""A model that writes so many calls in a row which cannot be made does not learn from errors."""
DENIED_STEPS = 5
"""Where a call was denied there may be another way, which takes a model some tries."""
_REASON_LETTERS = 200


class EmptyAnswerError(ProviderError):
    """An answer of the model that ended without content; a retry may help."""


def ending(
    finish: StreamFinish, calls: Iterable[ToolPart], turns: Iterable[Turn]
) -> tuple[str, Failure | None]:
    """Return the finish reason to store in the message, and the failure that it means.

    `calls` are the calls of the answer, `turns` the turns of the same prompt. A call that was cut
    off is returned to the model with an error. An answer with calls is continued although some
    servers report "stop". An answer without calls ends although some servers report "tool-calls".
    """
    states = [part.state for part in calls]
    cut = any(isinstance(state, Pending) for state in states)
    match finish.reason:
        case "length" if states and (not cut or _cuts(turns) < CUT_ANSWERS):
            return GOES_ON, None
        case "length":
            return "length", OutputLengthFailure(data=NoData())
        case "content-filter":
            return "content-filter", ContentFilterFailure(data=TextData(message=REFUSED))
        case reason:
            ended = "other" if reason in ("tool-calls", "unknown") else reason
            return (GOES_ON if states else ended), None


def goes_on(turn: Turn) -> bool:
    """Return whether the model is asked again after this turn, because its calls have results."""
    return (
        isinstance(turn.info, AssistantMessage)
        and turn.info.error is None
        and turn.info.finish == GOES_ON
        and any(isinstance(part, ToolPart) for part in turn.parts)
    )


def was_interrupted(turn: Turn) -> bool:
    """Return whether the user or the end of a process interrupted this answer."""
    error = turn.info.error if isinstance(turn.info, AssistantMessage) else None
    match error:
        case AbortedFailure():
            return True
        case UnknownFailure(data=TextData(message=message)):
            return message in INTERRUPTED_ANSWERS
        case _:
            return False


class StalledSteps(msgspec.Struct):
    """Counters of a turn's newest steps without progress.

    `cuts` counts failed answers that broke off after a call. `fruitless` counts steps in which no
    call could run.
    """

    cuts: int = 0
    fruitless: int = 0

    def stalled(
        self, calls: Collection[ToolPart], *, made: bool, denied: bool, refusing: str
    ) -> CallsFailure | None:
        """Count a request whose answer made these calls; return the failure if the turn must end.

        `made` is whether a tool was run, `denied` whether a call was denied. `refusing` is the id
        of the tool in whose name the calls with an unknown tool or invalid arguments are stored.
        """
        if made or not calls:
            self.fruitless = 0
            return None
        self.fruitless += 1
        if self.fruitless < (DENIED_STEPS if denied else FRUITLESS_STEPS):
            return None
        advice = (
            "Allow what is needed (`pegboard explain` names the rule), or ask for another way."
            if denied
            else "Name the tools to use in a prompt, or choose another model."
        )
        told = dict.fromkeys(_refused(part, refusing) for part in calls)
        text = (
            f"No call of the last {self.fruitless} steps could be made, so the turn ends. "
            f"The last ones: {'; '.join(told)}. {advice}"
        )
        return CallsFailure(data=TextData(message=text))


def _refused(part: ToolPart, refusing: str) -> str:
    """Describe a call that could not run, for the user.

    A call of an unknown tool, or with invalid arguments, is stored as a call of the tool
    `refusing`. For it, the original tool's name is shown.
    """
    error = part.state.error if isinstance(part.state, Failed) else part.state.input.get("error")
    name = part.state.input.get("tool", part.tool) if part.tool == refusing else part.tool
    reason = " ".join(str(error).split())
    cut = f"{reason[:_REASON_LETTERS]}…" if len(reason) > _REASON_LETTERS else reason
    return f"{name} ({cut})"


def answers_to(turns: Iterable[Turn], user_id: str) -> Iterator[Turn]:
    """Yield the model's messages that answer this prompt, lazily."""
    return (
        turn
        for turn in turns
        if isinstance(turn.info, AssistantMessage) and turn.info.parent_id == user_id
    )


def _cuts(turns: Iterable[Turn]) -> int:
    return sum(
        any(
            isinstance(part, ToolPart)
            and isinstance(part.state, Failed)
            and part.state.error == TOO_LONG
            for part in turn.parts
        )
        for turn in turns
    )


ABORTED = "The user stopped the turn."


def denial(error: PegboardError) -> dict[str, Any]:
    """Return the metadata of a denied call; `advice` is for the user and not for the model."""
    advice = getattr(error, "advice", "")
    return {"denied": True, "advice": advice} if advice else {"denied": True}


def failure_of(error: BaseException, note: str = "") -> Failure:
    """Convert an error to a message's failure; `note` is added to a provider's message."""
    match error:
        case ProviderAuthError():
            data = AuthData(provider_id=error.provider_id, message=str(error))
            return ProviderAuthFailure(data=data)
        case ContextOverflowError():
            text = f"{error}; {note}" if note else str(error)
            overflow = OverflowData(message=text, response_body=error.body or None)
            return ContextOverflowFailure(data=overflow)
        case ProviderError():
            return APIFailure(
                data=APIData(
                    message=f"{error} ({note})" if note else str(error),
                    is_retryable=error.retryable,
                    status_code=error.status,
                    response_headers=error.headers or None,
                    response_body=error.body or None,
                )
            )
        case BudgetError() | PluginError():
            kind = BudgetFailure if isinstance(error, BudgetError) else PluginFailure
            return kind(data=TextData(message=str(error)))
        case AbortedError() | CancelledError():
            why = next(iter(error.args), ABORTED) or ABORTED
            plain = AbortedFailure(data=TextData(message=str(why)))
            return why if isinstance(why, StoppedFailure) else plain
        case _:
            return UnknownFailure(data=TextData(message=str(error) or type(error).__name__))


_DIGEST_BYTES = 16


class _Latest(msgspec.Struct, frozen=True):
    """The newest result of a repeated call, given as a digest.

    `answer` is the digest of the result, and `times` counts how often it came in a row. `news` is
    the number of changes in `RepeatedCalls` at that time.
    """

    answer: bytes
    times: int
    news: int


class RepeatedCalls:
    """The calls of a turn and their results, to detect a model that repeats itself.

    Calls count as repeated if they return the same result while nothing else changes. A change is a
    result that the call did not have before in this turn, or a new state of the files; it restarts
    the count. Thus running tests after each edit, or reading a file again after other work, is not
    a repetition. Making and reverting the same edit in turns is one. Without snapshots only results
    count.
    """

    def __init__(self) -> None:
        self._news = 0
        self._tree = ""
        self._trees: set[str] = set()
        self._answers: set[tuple[bytes, bytes]] = set()
        self._latest: dict[tuple[bytes, str], _Latest] = {}

    def clear(self) -> None:
        """Forget all calls and results, because another turn begins."""
        self._trees.clear()
        self._answers.clear()
        self._latest.clear()

    def found(self, tree: str) -> None:
        """Record the state of the project's files, given as the id of their snapshot."""
        self._tree = tree
        if tree not in self._trees:
            self._trees.add(tree)
            self._news += 1

    def ended(self, call: bytes, answer: bytes) -> None:
        """Record the result of a call; both arguments are digests."""
        if (call, answer) not in self._answers:
            self._answers.add((call, answer))
            self._news += 1
        before = self._latest.get((call, self._tree))
        same = before is not None and (before.answer, before.news) == (answer, self._news)
        times = before.times + 1 if before is not None and same else 1
        self._latest[call, self._tree] = _Latest(answer, times, self._news)

    def times(self, call: bytes) -> int:
        """Return how often the call had the same result since results or files last changed."""
        latest = self._latest.get((call, self._tree))
        return latest.times if latest is not None and latest.news == self._news else 0


def digest_of_call(tool: str, args: Mapping[str, Any]) -> bytes:
    """Return the digest of a call; the order of the arguments has no effect."""
    return digest(tool, json.dumps(args, sort_keys=True))


def digest_of_result(result: ToolResult) -> bytes:
    """Return the digest of a result, without the name of its output file, which always differs."""
    path = str(result.metadata.get("outputPath") or "\0")
    return digest(result.output.replace(path, ""), *(each.url for each in result.attachments))


def digest(*texts: str) -> bytes:
    """Return the digest of strings."""
    sum_of = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        sum_of.update(text.encode(errors="surrogatepass"))
        sum_of.update(b"\0")
    return sum_of.digest()
