"""Who answers when a model cannot: the models that the user has listed for that."""

import re
from urllib.parse import urlsplit

from pegboard.engine.ending.retry import Kind, RetryDecision
from pegboard.engine.models import Models
from pegboard.errors import ModelNotFoundError, ProviderError
from pegboard.kit.addresses import is_loopback
from pegboard.schema.config import Config, ProviderConfig
from pegboard.schema.model import Model

_HELD_UP: frozenset[Kind] = frozenset({"rate_limit", "overloaded", "server", "network"})
"""What may pass by itself, and is waited for as long as the user wants."""
_NOT_FOUND = (404, 410)
_GONE = r"model.{0,80}(not.?found|does not exist|deprecated|decommissioned|no longer|retired)"


def is_hopeless(
    error: ProviderError, kind: Kind, decision: RetryDecision, *, left_s: float
) -> bool:
    """Whether another model shall be asked instead of this one, again or at all.

    That is where it is gone, refuses the key, or would be asked again only when the `left_s`
    seconds are over in which it may be waited for.
    """
    if kind == "auth" or _is_gone(error):
        return True
    return kind in _HELD_UP and (decision.wait_s is None or decision.wait_s > left_s)


def _is_gone(error: ProviderError) -> bool:
    return error.status in _NOT_FOUND or (
        error.status is not None
        and re.search(_GONE, f"{error}\n{error.body}", re.IGNORECASE | re.DOTALL) is not None
    )


async def next_model(config: Config, models: Models, model: Model, tried: set[str]) -> Model | None:
    """The first model of the user's list that was not `tried`, which it is then; None at its end.

    What is asked of a model on the user's own machine goes to another machine only where the
    provider's own list says so.
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
    """Whether the model is on this machine, as far as can be seen.

    That is at a loopback address; without any address, one that costs nothing.
    """
    if model.api.url:
        return is_loopback(urlsplit(model.api.url).hostname or "")
    return model.cost is not None and not (model.cost.input or model.cost.output)
