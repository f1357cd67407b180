"""Retries: whether a failed request is repeated, when, and with which model.

Only a failure that the provider reports as temporary is retried. The number of retries and their
total time are limited. The wait is the one that the provider requests; otherwise it doubles up to a
limit. If the model cannot answer, a fallback model of the user is asked.
"""

import asyncio
import random
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import msgspec
from msgspec.structs import replace

from pegboard.engine.engine import Engine
from pegboard.engine.finish import EmptyAnswerError
from pegboard.engine.models import Models
from pegboard.errors import ModelNotFoundError, ProviderAuthError, ProviderError, ToolSchemaError
from pegboard.kit.hosts import is_loopback
from pegboard.providers import ModelRequest
from pegboard.schema.config import Config, ProviderConfig, RetryConfig
from pegboard.schema.model import Model

FIRST_WAIT_S = 2.0
"""The wait after the first attempt (opencode `session/retry.ts`)."""
OWN_JITTER = 0.5
"""Our own guess is shortened by up to this share, so that many clients do not come at once."""
ASKED_JITTER = 0.1
"""What the provider asks for is a lower bound, and is lengthened by up to this share."""
LONGEST_SHOWN_S = 366 * 86_400
"""Beyond a year no date is shown: such a hint is a mistake."""
EMPTY_ANSWERS = 2
"""The number of empty answers after which the turn fails."""

_REFUSING = (400, 422)
_FORM = (
    r"response.?(format|mime|schema|json.?schema)|output.?(format|config)|json.?schema"
    r"|structured.?output|\bformat\b"
)
"""What a server calls the field of a request that has the schema of the answer."""
_UNUSABLE = (401, 402, 403, 404, 407, 410)
"""The model is not there, or not for this key."""
_GONE = r"model.{0,80}(not.?found|does not exist|deprecated|decommissioned|no longer|retired)"
_TOO_MANY = 429
_SERVER_FAULT = 500


class RetryDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision after a failed request; `wait_s` is the wait before a retry, None for no retry.

    `note` gives the reason for no retry if the error does not. `hopeless` means that this model
    cannot answer soon, so another model should be asked.
    """

    wait_s: float | None = None
    note: str = ""
    hopeless: bool = False


class RetryAttempts:
    """The attempts of a request, after `made` earlier attempts; it decides after each failure.

    The time limit starts at the first failure, because an answer or its tools may take long. It is
    measured by the event loop's clock, which changes of the system time do not affect.
    """

    def __init__(self, config: Config, *, made: int = 0) -> None:
        self.made = made
        self._config = config
        self._empty = 0
        self._failed_at: float | None = None

    def failed(self, error: ProviderError) -> RetryDecision:
        """Return what to do after this failure of the request."""
        now = asyncio.get_running_loop().time()
        self._failed_at = now if self._failed_at is None else self._failed_at
        elapsed_s = now - self._failed_at
        self.made += 1
        self._empty += isinstance(error, EmptyAnswerError)
        if self._empty >= EMPTY_ANSWERS:
            decision = RetryDecision(note=f"{self._empty} times")
        else:
            limits = self._config.retry
            decision = decide(
                error, self.made, elapsed_s=elapsed_s, limits=limits, draw=random.random
            )
        left_s = self._config.fallback_after_s - elapsed_s
        return replace(decision, hopeless=is_hopeless(error, decision, left_s=left_s))


def decide(
    error: ProviderError,
    attempt: int,
    *,
    elapsed_s: float,
    limits: RetryConfig,
    draw: Callable[[], float],
) -> RetryDecision:
    """Return the decision after the failure of an attempt (counted from 1), after `elapsed_s`.

    `draw` returns numbers from 0 to 1 for the random part of the wait.
    """
    if not error.retryable:
        return RetryDecision()
    if attempt >= limits.attempts:
        return RetryDecision(note=f"gave up after {attempt} attempts" if attempt > 1 else "")
    if error.wait_s is not None:
        wait_s = error.wait_s * (1 + ASKED_JITTER * draw())
    else:
        guess_s = min(FIRST_WAIT_S * 2 ** (attempt - 1), limits.cap_s)
        wait_s = guess_s * (1 - OWN_JITTER * draw())
    if elapsed_s + wait_s <= limits.total_s:
        return RetryDecision(wait_s=wait_s)
    if error.wait_s is not None:
        return RetryDecision(note=_asked_too_long(error.wait_s))
    return RetryDecision(note=f"gave up after {elapsed_s:.0f} s")


def _asked_too_long(asked_s: float) -> str:
    if asked_s > LONGEST_SHOWN_S:
        return "the provider asks to wait for more than a year"
    until = datetime.now(UTC) + timedelta(seconds=asked_s)
    return f"the provider asks to wait {asked_s:.0f} s, until {until:%Y-%m-%d %H:%M:%S %Z}"


def is_hopeless(error: ProviderError, decision: RetryDecision, *, left_s: float) -> bool:
    """Return whether to ask another model instead of the model that failed.

    This is so if the model does not exist, cannot be reached, or refuses the API key or a tool. It
    is also so if the model could only be asked again after more than `left_s` seconds.
    """
    status = error.status or 0
    if isinstance(error, ProviderAuthError | ToolSchemaError) or status in _UNUSABLE:
        return True
    # Compiled at the first failure (and kept by `re`), not at every start.
    if status and re.search(_GONE, f"{error}\n{error.body}", re.IGNORECASE | re.DOTALL):
        return True
    unreached = isinstance(error.__cause__, OSError)  # no server there, or no trust in it
    held_up = error.retryable or unreached or status == _TOO_MANY or status >= _SERVER_FAULT
    return held_up and (decision.wait_s is None or decision.wait_s > left_s)


def _refuses_form(error: ProviderError) -> bool:
    text = f"{error}\n{error.body}"
    return error.status in _REFUSING and re.search(_FORM, text, re.IGNORECASE) is not None


def leave_out(engine: Engine, error: ProviderError, request: ModelRequest | None) -> str:
    """Exclude the refused tools or answer schema from later requests, and return a warning.

    The warning names each tool and its plugin. It is empty if the error refuses none.
    """
    if request is not None and request.output_schema is not None and _refuses_form(error):
        name = f"{request.model.provider_id}/{request.model.id}"
        engine.formless.add(name)
        return f"{name} takes no schema of an answer, and is asked without it: {error}"
    if request is None or not isinstance(error, ToolSchemaError):
        return ""
    refused = [tool for tool in request.tools if tool.name in error.tools]
    name, owners = f"{request.model.provider_id}/{request.model.id}", engine.hooks.owners
    engine.refused.setdefault(name, {}).update({tool.name: tool.parameters for tool in refused})
    plugins = [owners[tool.name].name if tool.name in owners else "" for tool in refused]
    named = ", ".join(
        f"the tool `{tool.name}`" + (f" of the plugin {plugin}" if plugin else "")
        for tool, plugin in zip(refused, plugins, strict=True)
    )
    keyword = f" for its keyword `{error.keyword}`" if error.keyword else ""
    return (
        named and f"{name} refuses the schema of {named}{keyword}, and is not offered it: {error}"
    )


async def next_model(config: Config, models: Models, model: Model, tried: set[str]) -> Model | None:
    """Return the first fallback model that is not in `tried`, and add it to `tried`.

    The fallback list in the provider's settings replaces the general list. A remote model of the
    general list never replaces a local model. Return None if no model is left.
    """
    own = config.provider.get(model.provider_id, ProviderConfig()).fallback
    for name in own or config.fallback:
        if name in tried:
            continue
        tried.add(name)
        try:
            found = await models.find(name)
        except ModelNotFoundError:
            continue
        if own or is_local(found) or not is_local(model):
            return found
    return None


def is_local(model: Model) -> bool:
    """Return whether the model seems to run on this machine.

    It does if its address is a loopback address, or if it has no address and costs nothing.
    """
    if model.api.url:
        return is_loopback(urlsplit(model.api.url).hostname or "")
    return model.cost is not None and not (model.cost.input or model.cost.output)
