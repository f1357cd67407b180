"""The stored keys of a user, in the key file or the keyring: stored, listed and removed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.errors import ConfigError, NotFoundError
from pegboard.schema.config import Config
from pegboard_plugins.auth.systemkeyring import RING_SERVICE, ask_ring, ring_allowed
from pegboard_plugins.shared.frontend import KEYRING, KeyFile, entry_name


async def put_in_ring(entry: str, key: str) -> None:
    """Store a key in the keyring under this name.

    :raises ConfigError: when there is no keyring, or it does not answer in time.
    """
    await ask_ring(lambda ring: ring.set_password(RING_SERVICE, entry, key))


async def drop_from_ring(entry: str) -> None:
    """Delete the key with this name from the keyring.

    :raises ConfigError: when there is no keyring, the keyring does not have the key, or the keyring
        does not answer in time.
    """
    await ask_ring(lambda ring: ring.delete_password(RING_SERVICE, entry))


class KeptKey(msgspec.Struct, frozen=True, kw_only=True):
    """A stored key; `label` is "" for a provider's default key, `where` says where it is stored."""

    provider_id: str
    label: str
    where: str


class KeptKeys:
    """The stored keys that `pegboard auth` changes; `file` is the key file, which lists them."""

    def __init__(self, file: Path, config: Config, env: Mapping[str, str]) -> None:
        self._file = KeyFile(file)
        self._config = config
        self._env = env

    async def keep(self, provider_id: str, key: str, *, label: str = "", ring: bool = False) -> str:
        """Store a key in the keyring if `ring`, else in the key file; return where, for messages.

        :raises ConfigError: when the file or the keyring cannot keep it.
        """
        entry = entry_name(provider_id, label)
        if not ring:
            return self.keep_credential(provider_id, {"type": "api", "key": key}, label=label)
        if not ring_allowed(self._config, self._env):
            raise ConfigError(
                "the keyring is switched off, by PEGBOARD_KEYRING or `keyring = false`"
            )
        await put_in_ring(entry, key)
        self._file.put(entry, KEYRING)
        return "the keyring"

    def keep_credential(
        self, provider_id: str, credential: Mapping[str, Any], *, label: str = ""
    ) -> str:
        """Store a sign-in's credential unchanged in the key file; return its path for messages.

        :raises ConfigError: when the file cannot be written.
        """
        self._file.put(entry_name(provider_id, label), credential)
        return str(self._file.path)

    async def forget(self, provider_id: str, *, label: str = "") -> None:
        """Remove a key, from the keyring too.

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
        """Return all stored keys, by provider and label.

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
