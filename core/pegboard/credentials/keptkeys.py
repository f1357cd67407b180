"""The keys that a user keeps: put into the file or the keyring, listed, and forgotten.

The system's keyring, by the package `keyring`, which may hang: no call outlasts two seconds.

Keys that a program of the user's prints, such as that of a password store.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from pegboard.credentials.keyfile import KEYRING, KeyFile, entry_name
from pegboard.errors import ConfigError, NotFoundError, ProviderAuthError, ToolError
from pegboard.kit.programs import find_program
from pegboard.kit.threads import Threads
from pegboard.processes.process import run_program
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
        done = await run_program(
            [program, *argv[1:]],
            cwd=home,
            env=env,
            timeout_s=COMMAND_TIMEOUT_S,
            limit_bytes=_LIMIT_BYTES,
        )
    except ToolError as error:
        raise _failed(provider_id, argv, str(error)) from error
    if done.timed_out:
        raise _failed(provider_id, argv, f"it took more than {COMMAND_TIMEOUT_S:g} s")
    if done.exit_code:
        raise _failed(provider_id, argv, f"it ended with exit code {done.exit_code}")
    lines = done.output.decode("utf-8", "replace").split()
    if not lines:
        raise _failed(provider_id, argv, "it printed nothing")
    return lines[0]


def _failed(provider_id: str, argv: Sequence[str], reason: str) -> ProviderAuthError:
    text = f"the key command of {provider_id} ({argv[0]}) gives no key: {reason}"
    return ProviderAuthError(text, provider_id=provider_id)


class KeptKey(msgspec.Struct, frozen=True, kw_only=True):
    """That there is a key; `label` is empty for the provider's usual one, `where` for people."""

    provider_id: str
    label: str
    where: str


class KeptKeys:
    """What `pegboard auth` changes; `file` is that of the kept keys."""

    def __init__(self, file: Path, config: Config, env: Mapping[str, str]) -> None:
        self._file = KeyFile(file)
        self._config = config
        self._env = env

    async def keep(self, provider_id: str, key: str, *, label: str = "", ring: bool = False) -> str:
        """Keep a key, in the keyring if `ring` says so; gives where it is, for people.

        :raises ConfigError: when the file or the keyring cannot keep it.
        """
        entry = entry_name(provider_id, label)
        if not ring:
            return self.keep_credential(provider_id, {"type": "api", "key": key}, label=label)
        if not ring_allowed(self._config, self._env):
            raise ConfigError(f"the keyring is switched off, by {SWITCH} or `keyring = false`")
        await put_in_ring(entry, key)
        self._file.put(entry, KEYRING)
        return "the keyring"

    def keep_credential(
        self, provider_id: str, credential: Mapping[str, Any], *, label: str = ""
    ) -> str:
        """Keep what a sign-in gave, as it is, in the file; gives where that is.

        :raises ConfigError: when the file cannot be written.
        """
        self._file.put(entry_name(provider_id, label), credential)
        return str(self._file.path)

    async def forget(self, provider_id: str, *, label: str = "") -> None:
        """Forget a key, in the keyring too.

        :raises NotFoundError: when none is kept under this name.
        :raises ConfigError: when the file cannot be written, or the keyring does not forget it.
        """
        entry = entry_name(provider_id, label)
        known, _ = self._file.read()
        if entry not in known:
            raise NotFoundError("key", entry, suggestions=tuple(known))
        if known[entry] == KEYRING:
            await drop_from_ring(entry)
        self._file.drop(entry)

    def listed(self) -> tuple[KeptKey, ...]:
        """All of them, by provider and label.

        :raises ConfigError: when the file cannot be read.
        """
        known, damage = self._file.read()
        if damage:
            raise ConfigError(
                f"cannot be used, and the keys in it do not count: {damage}", file=self._file.path
            )
        return tuple(self._listed(entry, known[entry]) for entry in sorted(known))

    def _listed(self, entry: str, credential: Mapping[str, Any]) -> KeptKey:
        provider_id, _, label = entry.partition("/")
        where = "the keyring" if credential == KEYRING else str(self._file.path)
        return KeptKey(provider_id=provider_id, label=label, where=where)
