"""The form of a transcript's file."""

from pathlib import Path
from typing import Any, Literal

import msgspec

FinishReason = Literal[
    "stop", "length", "content-filter", "tool-calls", "error", "other", "unknown"
]


class Strict(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings that every table of a transcript shares."""


class ScriptedCall(Strict, frozen=True):
    """A tool call; an `input` that is a text is sent as it is, valid or not."""

    tool: str
    input: dict[str, Any] | str = {}


class Fault(Strict, frozen=True):
    """A failure instead of the rest of a step: an HTTP `status`, or a `cut` in mid-answer.

    It strikes the first `times` that the step is asked for, so that a retry can succeed.
    """

    status: int | None = None
    cut: bool = False
    message: str = "a fault of the script"
    headers: dict[str, str] = {}
    times: int = 1


class Step(Strict, frozen=True):
    """One answer. `delay_s` passes before it."""

    reasoning: str = ""
    text: str = ""
    calls: tuple[ScriptedCall, ...] = ()
    finish: FinishReason | None = None
    delay_s: float = 0
    fault: Fault | None = None


class When(Strict, frozen=True):
    """What a script is for: regexes that are searched for, and whether tools are offered."""

    prompt: str = ""
    system: str = ""
    tools: bool | None = None


class Script(Strict, frozen=True):
    """The answers of one turn."""

    steps: tuple[Step, ...]
    when: When = When()


class Transcript(Strict, frozen=True):
    """A file: scripts, and how fast they are spoken: `chunk_chars` every `chunk_delay_s`."""

    scripts: tuple[Script, ...]
    chunk_chars: int = 12
    chunk_delay_s: float = 0


def read_transcript(model_id: str) -> Transcript:
    """The transcript of a model: one that comes with Pegboard, or a file.

    :raises OSError: when there is no such file.
    :raises ValueError: when it is no transcript.
    """
    is_file = model_id.endswith(".json")
    source = Path(model_id) if is_file else Path(__file__).with_name(f"{model_id}.json")
    return msgspec.json.decode(source.read_bytes(), type=Transcript)
