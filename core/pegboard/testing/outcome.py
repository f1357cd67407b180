"""The outcome of a request to a provider, and checks of such an outcome."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pegboard.errors import ProviderError
from pegboard.providers import StreamEvent, StreamFinish, TextDelta, ToolCall
from pegboard.testing.finding import must
from pegboard.testing.providerchecks import check_answer
from pegboard.testing.wireframes import meant


@dataclass(slots=True)
class Outcome:
    """The outcome of a model request: the events of the answer, and the error if one occurred."""

    events: list[StreamEvent] = field(default_factory=list)
    error: BaseException | None = None

    @property
    def text(self) -> str:
        """The whole text of the model's answer."""
        return "".join(each.text for each in self.events if isinstance(each, TextDelta))

    @property
    def calls(self) -> list[ToolCall]:
        """The tool calls of the model's answer, in order."""
        return [each for each in self.events if isinstance(each, ToolCall)]

    @property
    def finish(self) -> StreamFinish | None:
        """The last event of the model's answer, or None if the answer broke off."""
        found = [each for each in self.events if isinstance(each, StreamFinish)]
        return found[-1] if found else None


Check = Callable[[Outcome], None]


def fails(
    *,
    retry: bool | None = None,
    kind: type[ProviderError] = ProviderError,
    headers: Sequence[str] = (),
    wait_s: float | None = None,
    hides: str = "",
) -> Check:
    """Return a check that the request fails with an error of the type `kind`.

    The error must have these `headers`. Its `retryable` must be `retry` and its `wait_s` must be
    `wait_s`, unless they are None. Its text must not contain `hides`.
    """

    def check(outcome: Outcome) -> None:
        error = outcome.error
        must(error is not None, f"it is taken for a whole answer: {outcome.events[-2:]}")
        must(isinstance(error, kind), f"{type(error).__name__}, not {kind.__name__}: {error}")
        assert isinstance(error, ProviderError)
        must(retry in (None, error.retryable), f"retryable is {error.retryable}: {error}")
        must(error.headers.keys() >= {*headers}, f"not all of {headers} are in the error's headers")
        must(wait_s in (None, error.wait_s), f"wait_s is {error.wait_s}, not {wait_s}: {error}")
        must(not hides or hides not in str(error), f"the error shows the raw page: {error}")
        acted = [*outcome.calls, *filter(None, (outcome.finish,))]
        must(not acted, f"before the error came {acted[:1]}")

    return check


def answers(
    text: str | None = None, *, calls: Sequence[str] | None = (), reason: str | None = None
) -> Check:
    """Return a check that the answer is complete, with this text and these calls (None: any)."""

    def check(outcome: Outcome) -> None:
        must(outcome.error is None, f"{type(outcome.error).__name__}: {outcome.error}")
        flaws = check_answer(outcome.events)
        must(not flaws, "; ".join(each.text for each in flaws))
        must(text in (None, outcome.text), f"the text is {outcome.text[:80]!r}, not {text!r}")
        made = [each.input for each in outcome.calls]
        same = calls is None or [*map(meant, made)] == [*map(meant, calls)]
        must(same, f"the calls are {made}")
        finish = outcome.finish
        assert finish is not None
        must(reason in (None, finish.reason), f"it ends with {finish.reason}, not {reason}")

    return check
