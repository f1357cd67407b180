"""The system's keyring, by the package `keyring`, which may hang: no call outlasts two seconds."""

import asyncio
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar

from pegboard.errors import ConfigError
from pegboard.kit.threads import Threads
from pegboard.schema.config import Config

RING_TIMEOUT_S = 2.0
SWITCH = "PEGBOARD_KEYRING"
_SERVICE = "pegboard"

_T = TypeVar("_T")


def ring_allowed(config: Config, env: Mapping[str, str]) -> bool:
    """Whether the keyring may be asked: `PEGBOARD_KEYRING=off` and `keyring = false` forbid it."""
    return config.keyring and env.get(SWITCH, "").lower() != "off"


async def ring_key(entry: str) -> str | None:
    """The key under this name, None if the keyring has none.

    :raises ConfigError: when there is no keyring, or it does not answer in time.
    """
    key = await _asked(lambda ring: ring.get_password(_SERVICE, entry))
    return key if isinstance(key, str) else None


async def put_in_ring(entry: str, key: str) -> None:
    """Keep a key under this name.

    :raises ConfigError: when there is no keyring, or it does not answer in time.
    """
    await _asked(lambda ring: ring.set_password(_SERVICE, entry, key))


async def drop_from_ring(entry: str) -> None:
    """Forget the key under this name.

    :raises ConfigError: when there is no keyring, it has none, or does not answer in time.
    """
    await _asked(lambda ring: ring.delete_password(_SERVICE, entry))


async def _asked(question: Callable[[Any], _T]) -> _T:
    """What the package answers in a thread that nobody waits for when the program ends."""

    def answer() -> _T | Exception:
        try:
            return question(import_module("keyring"))
        except Exception as error:  # noqa: BLE001 - foreign code, which may raise anything
            return error

    threads = Threads("pegboard-keyring")
    try:
        async with asyncio.timeout(RING_TIMEOUT_S):
            found = await threads.run(answer)
    except TimeoutError as error:
        text = f"the keyring did not answer within {RING_TIMEOUT_S:g} s; {SWITCH}=off leaves it out"
        raise ConfigError(text) from error
    finally:
        threads.close()
    if isinstance(found, ImportError):
        text = "the keyring needs a package: `pip install 'pegboard[keyring]'`"
        raise ConfigError(text) from found
    if isinstance(found, Exception):
        raise ConfigError(f"the keyring fails: {type(found).__name__}") from found
    return found
