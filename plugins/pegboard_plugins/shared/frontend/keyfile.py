"""The file of providers' keys, readable only by its owner.

It has OpenCode's format: each provider's id with its credential. `ID/LABEL` is a further key of the
provider. A credential of the type `keyring` is stored in the system's keyring.

The secrets of plugins are in another file, `secrets.json` in the same folder.
"""

import logging
import os
import stat
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.app import UserFolders
from pegboard.errors import ConfigError
from pegboard.plugins import lock_file, replace_file
from pegboard.unstable import set_aside

KEYRING: Mapping[str, Any] = {"type": "keyring"}
"""The entry in the file for a key that is stored in the system's keyring."""
Credentials = dict[str, dict[str, Any]]
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_log = logging.getLogger("pegboard.credentials")


class KeyFile:
    """The file of credentials at `path`, which all processes of the user share."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def put(self, entry: str, credential: Mapping[str, Any]) -> None:
        """Store a credential; blocks briefly.

        :raises ConfigError: when the file cannot be written.
        """
        self.change(lambda known: {**known, entry: dict(credential)})

    def drop(self, entry: str) -> None:
        """Delete a credential, if the file has an entry of this name.

        :raises ConfigError: when the file cannot be written.
        """
        self.change(lambda known: {name: known[name] for name in known if name != entry})

    def change(self, changed: Callable[[Credentials], Credentials]) -> None:
        """Replace the credentials by the result of `changed`, under a lock.

        :raises ConfigError: when the file cannot be written.
        """
        try:
            with lock_file(self.path):
                before, damage = self.read()
                if (after := changed(before)) == before:
                    return
                if damage:
                    self._keep_aside(damage)
                replace_file(self.path, msgspec.json.encode(after))
        except OSError as error:
            text = f"cannot be written: {error.strerror or error}"
            raise ConfigError(text, file=self.path) from error

    def read(self) -> tuple[Credentials, str]:
        """Return the file's credentials, and why the file is unusable, or "" if it is usable.

        If others can read the file, its mode is restricted to the owner, which is logged.
        """
        try:
            return msgspec.json.decode(self._content(), type=Credentials), ""
        except FileNotFoundError:
            return {}, ""
        except (ConfigError, OSError, msgspec.DecodeError, UnicodeDecodeError) as error:
            return {}, str(error)

    def _content(self) -> bytes:
        with self.path.open("rb") as file:
            facts = os.fstat(file.fileno())
            if facts.st_uid != os.geteuid():
                raise ConfigError("it belongs to another user, who knows the keys in it")
            if facts.st_mode & _OTHERS:
                os.fchmod(file.fileno(), stat.S_IRUSR | stat.S_IWUSR)
                text = "%s could be read by others (mode %o); it is its owner's alone again"
                _log.warning(text, self.path, stat.S_IMODE(facts.st_mode))
            return file.read()

    def _keep_aside(self, damage: str) -> None:
        aside = set_aside(self.path)
        text = "%s is damaged (%s): it is kept as %s, with the keys that it had, and begun anew"
        _log.error(text, self.path, damage, aside)


def entry_name(provider_id: str, label: str | None) -> str:
    """Return the name of the key file's entry for a provider's key; further keys have a label."""
    return f"{provider_id}/{label}" if label else provider_id


def key_of(credential: Mapping[str, Any]) -> str | None:
    """Return the API key or token of a credential; None if it is missing or has expired."""
    match credential:
        case {"type": "oauth", "access": str(token), "expires": int(until_ms)}:
            return token if not until_ms or until_ms > time.time() * 1000 else None
        case {"type": "wellknown", "token": str(token)}:
            return token
        case {"type": "api", "key": str(key)}:
            return key
    return None


def kept_names(places: UserFolders, plugin: str) -> tuple[str, ...]:
    """Return the names of a plugin's stored secrets."""
    return tuple(sorted(kept_secrets(places).get(plugin, {})))


def store_secret(places: UserFolders, plugin: str, name: str, value: str | None) -> None:
    """Store a secret of a plugin, readable only by the user; None deletes it. Blocks.

    :raises ConfigError: when the file cannot be written; it then stays unchanged.
    """

    def changed(known: Credentials) -> Credentials:
        table = {key: each for key, each in known.get(plugin, {}).items() if key != name}
        if value is not None:
            table[name] = value
        rest = {key: each for key, each in known.items() if key != plugin}
        return {**rest, plugin: table} if table else rest

    KeyFile(places.secrets).change(changed)


def kept_secrets(places: UserFolders) -> Mapping[str, Mapping[str, Any]]:
    """Return the secrets of plugins, by plugin and name; empty if the file is unusable."""
    return KeyFile(places.secrets).read()[0] if places.secrets.exists() else {}
