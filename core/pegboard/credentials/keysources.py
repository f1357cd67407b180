"""Keys from elsewhere: the system's keyring, by the package `keyring`, which may hang.

Keys that a program of the user's prints, such as that of a password store.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from pegboard.errors import ConfigError, ProviderAuthError
from pegboard.kit.programs import find_program
from pegboard.kit.threads import in_own_thread
from pegboard.schema.config import Config

RING_TIMEOUT_S = 2.0
SWITCH = "PEGBOARD_KEYRING"
RING_SERVICE = "pegboard"
"""The name under which the keyring has keys of ours."""

_T = TypeVar("_T")


def ring_allowed(config: Config, env: Mapping[str, str]) -> bool:
    """Whether the keyring may be asked: `PEGBOARD_KEYRING=off` and `keyring = false` forbid it."""
    return config.keyring and env.get(SWITCH, "").lower() != "off"


async def ring_key(entry: str) -> str | None:
    """The key under this name, None if the keyring has none.

    :raises ConfigError: when there is no keyring, or it does not answer in time.
    """
    key = await ask_ring(lambda ring: ring.get_password(RING_SERVICE, entry))
    return key if isinstance(key, str) else None


async def ask_ring(question: Callable[[Any], _T]) -> _T:
    """What the package `keyring` answers, in a thread that nobody waits for when the program ends.

    No call outlasts two seconds.

    :raises ConfigError: when there is no keyring, it fails, or does not answer in time.
    """

    def answer() -> _T:
        return question(import_module("keyring"))

    limit = asyncio.timeout(RING_TIMEOUT_S)
    try:
        async with limit:
            return await in_own_thread(answer, name="pegboard-keyring")
    except ImportError as error:
        text = "the keyring needs a package: `pip install 'pegboard[keyring]'`"
        raise ConfigError(text) from error
    except (Exception, SystemExit) as error:  # foreign code, which may raise anything
        late = f"did not answer within {RING_TIMEOUT_S:g} s; {SWITCH}=off leaves it out"
        what = late if limit.expired() else f"fails: {type(error).__name__}"
        raise ConfigError(f"the keyring {what}") from error


COMMAND_TIMEOUT_S = 5.0
"""Long enough for a store that is unlocked; one that waits for a person is not waited for."""
_LIMIT_BYTES = 64 << 10


async def printed_key(
    provider_id: str, argv: Sequence[str], env: Mapping[str, str], *, home: Path, root: Path
) -> str:
    """The first line that the command prints; it runs in `home`, without a shell or input.

    No program of the project `root` stands in for it. What it prints is told nowhere.

    :raises ProviderAuthError: when it fails, prints nothing, or takes more than five seconds.
    """
    program = argv[0] if "/" in argv[0] else find_program(argv[0], env, root=root)
    if program is None:
        raise _failed(provider_id, argv, "there is no such program")
    try:
        code, output = await _ran([program, *argv[1:]], env, home)
    except TimeoutError as error:
        reason = f"it took more than {COMMAND_TIMEOUT_S:g} s"
        raise _failed(provider_id, argv, reason) from error
    except (OSError, ValueError) as error:
        raise _failed(provider_id, argv, f"cannot run {program!r} in {home}: {error}") from error
    if code:
        raise _failed(provider_id, argv, f"it ended with exit code {code}")
    lines = output.decode("utf-8", "replace").split()
    if not lines:
        raise _failed(provider_id, argv, "it printed nothing")
    return lines[0]


async def _ran(argv: Sequence[str], env: Mapping[str, str], home: Path) -> tuple[int, bytes]:
    """The exit code of a program, and as much of its output as a pipe holds.

    It ends with the call, and its group with it. One that prints more waits for a reader.

    :raises TimeoutError: after its time.
    """
    program = _started(argv, env, home)
    assert program.stdout is not None
    try:
        async with asyncio.timeout(COMMAND_TIMEOUT_S):
            code = await in_own_thread(program.wait, name="pegboard-key")
        os.set_blocking(program.stdout.fileno(), False)
        return code, program.stdout.read(_LIMIT_BYTES) or b""
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.pid, signal.SIGKILL)
        program.stdout.close()


def _started(argv: Sequence[str], env: Mapping[str, str], home: Path) -> subprocess.Popen[bytes]:
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        argv,
        cwd=home,
        env=env,
        stdin=quiet,
        stdout=subprocess.PIPE,
        stderr=quiet,
        start_new_session=True,
    )


def _failed(provider_id: str, argv: Sequence[str], reason: str) -> ProviderAuthError:
    text = f"the key command of {provider_id} ({argv[0]}) gives no key: {reason}"
    return ProviderAuthError(text, provider_id=provider_id)
