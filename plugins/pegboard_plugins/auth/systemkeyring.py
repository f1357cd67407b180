"""The system's keyring, through the package `keyring`, which may hang."""

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from pegboard.errors import ConfigError
from pegboard.plugins import run_in_thread
from pegboard.schema.config import Config

RING_TIMEOUT_S = 2.0
SWITCH = "PEGBOARD_KEYRING"
RING_SERVICE = "pegboard"
"""The name under which the keyring has keys of ours."""

_T = TypeVar("_T")


def ring_allowed(config: Config, env: Mapping[str, str]) -> bool:
    """Return whether the keyring may be used.

    `PEGBOARD_KEYRING=off` and `keyring = false` forbid it.
    """
    return config.keyring and env.get(SWITCH, "").lower() != "off"


async def ring_key(entry: str) -> str | None:
    """Return the key with this name, or None if the keyring has none.

    :raises ConfigError: when there is no keyring, or it does not answer in time.
    """
    key = await ask_ring(lambda ring: ring.get_password(RING_SERVICE, entry))
    return key if isinstance(key, str) else None


async def ask_ring(question: Callable[[Any], _T]) -> _T:
    """Call `question` with the package `keyring`, in a thread that cannot delay the program's end.

    A call takes at most two seconds.

    :raises ConfigError: when there is no keyring, it fails, or does not answer in time.
    """

    def answer() -> _T:
        return question(import_module("keyring"))

    limit = asyncio.timeout(RING_TIMEOUT_S)
    try:
        async with limit:
            return await run_in_thread(answer, name="pegboard-keyring")
    except ImportError as error:
        text = "the keyring needs a package: `pip install 'pegboard[keyring]'`"
        raise ConfigError(text) from error
    except (Exception, SystemExit) as error:  # foreign code, which may raise anything
        late = f"did not answer within {RING_TIMEOUT_S:g} s; {SWITCH}=off leaves it out"
        what = late if limit.expired() else f"fails: {type(error).__name__}"
        raise ConfigError(f"the keyring {what}") from error
