"""The format of a transcript file, and the stream events of a scripted answer."""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from pegboard.providers import (
    ModelMessage,
    ModelRequest,
    ReasoningDelta,
    ReasoningEnd,
    ReasoningStart,
    Result,
    StreamEvent,
    StreamFinish,
    Text,
    TextDelta,
    TextEnd,
    TextStart,
    ToolCall,
    ToolInputDelta,
    ToolInputEnd,
    ToolInputStart,
    Usage,
)

FinishReason = Literal[
    "stop", "length", "content-filter", "tool-calls", "error", "other", "unknown"
]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of a transcript's tables, in which unknown fields are errors."""


class ScriptedCall(Strict, frozen=True):
    """A scripted tool call; an `input` that is a string is sent unchanged, valid JSON or not."""

    tool: str
    input: dict[str, Any] | str = {}


class ScriptedFault(Strict, frozen=True):
    """A scripted failure: an error with an HTTP `status`, or else a connection lost in mid-answer.

    Only the first `times` requests for the step fail, so a later retry succeeds.
    """

    status: int | None = None
    cut: bool = False
    message: str = "a fault of the script"
    headers: dict[str, str] = {}
    times: int = 1


class ScriptStep(Strict, frozen=True):
    """One scripted answer; the model waits `delay_s` seconds before it."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: FinishReason | None = None
    delay_s: float = 0
    fault: ScriptedFault | None = None


class When(Strict, frozen=True):
    """The condition of a script.

    The regular expressions must match somewhere in the user's prompt and the system prompt.
    `tools` says whether the request must offer tools; None means either.
    """

    prompt: str = ""
    system: str = ""
    tools: bool | None = None


class Script(Strict, frozen=True):
    """The scripted answers of a turn for which the condition `when` holds."""

    steps: tuple[ScriptStep, ...]
    when: When = When()


class ScriptedTranscript(Strict, frozen=True):
    """The content of a transcript file.

    The model streams `chunk_chars` characters every `chunk_delay_s` seconds.
    """

    scripts: tuple[Script, ...]
    chunk_chars: int = 12
    chunk_delay_s: float = 0


def read_transcript(model_id: str) -> ScriptedTranscript:
    """Read the transcript of a model, which comes with Pegboard or is a JSON file.

    :raises OSError: when there is no such file.
    :raises ValueError: when the content is not a transcript.
    """
    is_file = model_id.endswith(".json")
    source = Path(model_id) if is_file else Path(__file__).with_name(f"{model_id}.json")
    return msgspec.json.decode(source.read_bytes(), type=ScriptedTranscript)


CHARS_PER_TOKEN = 4
_REMINDER = "<system-reminder"
"""How a text begins that Pegboard has put behind the user's."""
_TEMPLATE = r"\{\{\s*(prompt|result\.(-?\d+))\s*(?:\|\s*(.*?)\s*)?\}\}"


class ScriptedTurn:
    """The state of a conversation: the user's last prompt, and the messages after the prompt."""

    def __init__(self, request: ModelRequest) -> None:
        messages = request.messages
        users = [place for place, message in enumerate(messages) if message.role == "user"]
        since = messages[users[-1] + 1 :] if users else messages
        self.prompt = _join_texts(messages[users[-1]], reminders=False) if users else ""
        self.step = sum(message.role == "assistant" for message in since)
        self.results = [
            part.output for message in since for part in message.content if isinstance(part, Result)
        ]
        self.count = len(messages)
        self.read = sum(len(_join_texts(message)) for message in messages) // CHARS_PER_TOKEN
        self._system = "\n".join(request.system)
        self._tools = bool(request.tools)

    def fits(self, when: When) -> bool:
        """Return whether the conversation meets a script's condition."""
        return (
            (when.tools is None or when.tools == self._tools)
            and re.search(when.prompt, self.prompt) is not None
            and re.search(when.system, self._system) is not None
        )

    def filled(self, value: Any) -> Any:  # noqa: ANN401 - JSON of the transcript
        """Return a JSON value with the `{{…}}` templates in it replaced, at any depth."""
        match value:
            case str():
                return re.sub(_TEMPLATE, self._replacement, value)
            case dict():
                return {key: self.filled(inner) for key, inner in value.items()}
            case list():
                return [self.filled(inner) for inner in value]
            case _:
                return value

    def _replacement(self, found: re.Match[str]) -> str:
        name, number, pattern = found.groups()
        try:
            value = self.prompt if name == "prompt" else self.results[int(number)]
        except IndexError:
            raise ValueError(f"{found[0]}: there are {len(self.results)} results") from None
        if not pattern:
            return value
        hit = re.search(pattern, value)
        if hit is None:
            raise ValueError(f"{found[0]}: the text does not match: {value[:200]!r}")
        return str(hit[1] if hit.re.groups else hit[0])


def play(
    step: ScriptStep, transcript: ScriptedTranscript, turn: ScriptedTurn
) -> Iterator[StreamEvent]:
    """Yield the stream events of a step, in chunks of the transcript's size.

    :raises ValueError: when a template cannot be replaced.
    """
    wrote = 0
    if step.reasoning:
        thought = turn.filled(step.reasoning)
        wrote += len(thought)
        yield ReasoningStart("reasoning")
        for piece in _pieces(thought, transcript):
            yield ReasoningDelta("reasoning", piece)
        yield ReasoningEnd("reasoning")
    if step.text:
        text = turn.filled(step.text)
        wrote += len(text)
        yield TextStart("text")
        for piece in _pieces(text, transcript):
            yield TextDelta("text", piece)
        yield TextEnd("text")
    for number, call in enumerate(step.calls):
        written = _arguments(turn.filled(call.input))
        wrote += len(written)
        call_id = f"call_{turn.count}_{number}"
        yield ToolInputStart(call_id, call.tool)
        for piece in _pieces(written, transcript):
            yield ToolInputDelta(call_id, piece)
        yield ToolInputEnd(call_id)
        yield ToolCall(call_id, call.tool, written)
    reason: FinishReason = step.finish or ("tool-calls" if step.calls else "stop")
    yield StreamFinish(reason, Usage(input=turn.read, output=wrote // CHARS_PER_TOKEN))


def _pieces(text: str, transcript: ScriptedTranscript) -> Iterator[str]:
    size = max(1, transcript.chunk_chars)
    return (text[start : start + size] for start in range(0, len(text), size))


def _arguments(value: Mapping[str, Any] | str) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _join_texts(message: ModelMessage, *, reminders: bool = True) -> str:
    texts = (
        part.text if isinstance(part, Text) else part.output
        for part in message.content
        if isinstance(part, Text | Result)
    )
    return "\n".join(text for text in texts if reminders or not text.startswith(_REMINDER))
