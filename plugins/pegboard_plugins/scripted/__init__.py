"""A model that plays a transcript, for demonstrations and for tests without a network.

`scripted/demo` comes with Pegboard; `scripted/path/to/file.json` plays a file of your own::

    {"scripts": [{"when": {"prompt": "rename"}, "steps": [
        {"text": "I look.", "calls": [{"tool": "read", "input": {"filePath": "a.txt"}}]},
        {"text": "It says {{result.0 | name: (.*)}}."}]}]}

The model plays the first script whose `when` matches. The number of answers since the user's
last prompt decides which step comes next. In texts and inputs `{{prompt}}` is the user's last
prompt. `{{result.0}}` is the first tool's output since then, and `{{result.-1}}` the newest.
`| REGEX` selects the first group of the first match.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pegboard import hookimpl
from pegboard.errors import ContextOverflowError, ProviderAuthError, ProviderError
from pegboard.providers import (
    ModelRequest,
    Provider,
    ReasoningDelta,
    StreamEvent,
    StreamFinish,
    TextDelta,
    ToolCall,
    ToolInputDelta,
)
from pegboard.schema.config import Config
from pegboard.schema.model import (
    Capabilities,
    Modalities,
    Model,
    ModelApi,
    ModelCost,
    ModelLimit,
)

if TYPE_CHECKING:
    from pegboard_plugins.scripted.transcript import (
        ScriptedFault,
        ScriptedTranscript,
        ScriptedTurn,
        ScriptStep,
    )

ID = "scripted"
_DEMO = "demo"
_CONTEXT_TOKENS = 200_000
_OUTPUT_TOKENS = 32_000
_AUTH = (401, 403)
_TOO_LARGE = 413


class ScriptedProvider:
    """The provider of scripted models."""

    def __init__(self) -> None:
        self._struck: dict[tuple[str, str, int], int] = {}

    @property
    def id(self) -> str:
        """The provider's id, as in `scripted/MODEL`."""
        return ID

    @property
    def name(self) -> str:
        """The name that the user sees."""
        return "ScriptedProvider"

    @property
    def env(self) -> Sequence[str]:
        """An empty sequence: the provider needs no key."""
        return ()

    def models(self) -> Sequence[Model]:
        """Return the transcript that comes with Pegboard."""
        return (_model(_DEMO),)

    def resolve(self, model_id: str) -> Model | None:
        """Return the model of the demo or of an existing transcript file, or None otherwise."""
        found = model_id == _DEMO or (model_id.endswith(".json") and Path(model_id).is_file())
        return _model(model_id) if found else None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[StreamEvent, None]:
        """Yield the events of the scripted step that the conversation has reached.

        :raises ProviderError: when the transcript is unreadable, lacks the step or has a fault.
        """
        # 3 ms of structs that a start with another model does not need.
        from pegboard_plugins.scripted.transcript import ScriptedTurn, play, read_transcript

        try:
            transcript = await asyncio.to_thread(read_transcript, request.model.id)
            turn = ScriptedTurn(request)
            step = _step(transcript, turn)
            await asyncio.sleep(step.delay_s)
            fault = self._fault(step, request, turn)
            for event in play(step, transcript, turn):
                if fault and isinstance(event, StreamFinish | ToolCall):
                    raise ProviderError(f"{ID}: {fault.message}", provider_id=ID, retryable=True)
                if isinstance(event, TextDelta | ReasoningDelta | ToolInputDelta):
                    await asyncio.sleep(transcript.chunk_delay_s)
                yield event
        except (OSError, ValueError, re.error) as error:
            raise ProviderError(f"{ID}/{request.model.id}: {error}", provider_id=ID) from error

    async def aclose(self) -> None:
        """Do nothing; there is no connection to close."""

    def _fault(
        self, step: "ScriptStep", request: ModelRequest, turn: "ScriptedTurn"
    ) -> "ScriptedFault | None":
        """Return the fault with which this answer must break off, or None if it must not.

        :raises ProviderError: when the fault has a `status`.
        """
        if step.fault is None:
            return None
        place = (request.session_id, turn.prompt, turn.step)
        self._struck[place] = self._struck.get(place, 0) + 1
        if self._struck[place] > step.fault.times:
            return None
        if step.fault.status:
            raise _refusal(step.fault, step.fault.status)
        return step.fault


def _step(transcript: "ScriptedTranscript", turn: "ScriptedTurn") -> "ScriptStep":
    script = next((one for one in transcript.scripts if turn.fits(one.when)), None)
    if script is None:
        raise ValueError(f"no script fits the prompt {turn.prompt[:100]!r}")
    if turn.step >= len(script.steps):
        raise ValueError(f"the script has {len(script.steps)} steps, and no more")
    return script.steps[turn.step]


def _refusal(fault: "ScriptedFault", status: int) -> ProviderError:
    from pegboard.http import asked_wait_s  # where a script has faults

    facts: dict[str, Any] = {
        "provider_id": ID,
        "status": status,
        "headers": fault.headers,
        "wait_s": asked_wait_s(fault.headers, status, fault.message),
    }
    message = f"{ID}: {fault.message} ({status})"
    if status in _AUTH:
        return ProviderAuthError(message, **facts)
    if status == _TOO_LARGE:
        return ContextOverflowError(message, **facts)
    return ProviderError(message, **facts)


def _model(model_id: str) -> Model:
    every = Modalities(image=True, pdf=True, audio=True, video=True)
    return Model(
        id=model_id,
        provider_id=ID,
        name=f"Transcript {model_id}",
        api=ModelApi(id=model_id),
        capabilities=Capabilities(reasoning=True, attachment=True, input=every),
        cost=ModelCost(input=0, output=0),
        limit=ModelLimit(context=_CONTEXT_TOKENS, output=_OUTPUT_TOKENS),
    )


@hookimpl
async def register_providers(config: Config) -> tuple[Provider, ...]:  # noqa: ARG001 - the hook's
    """Return the provider `scripted`."""
    return (ScriptedProvider(),)
