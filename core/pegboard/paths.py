"""The user's folders for configuration, data, state and cache, and resolved paths."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Self

import msgspec

from pegboard.errors import ConfigError

# XDG Base Directory Specification 0.8: a relative path in a variable is ignored.
_IN_HOME = {"config": ".config", "data": ".local/share", "state": ".local/state", "cache": ".cache"}


class UserFolders(msgspec.Struct, frozen=True, kw_only=True):
    """The user's folders for Pegboard; each folder is created at its first use."""

    config: Path
    data: Path
    state: Path
    cache: Path

    @classmethod
    def of(cls, env: Mapping[str, str], **chosen: Path | None) -> Self:
        """Return the `chosen` folders, else `PEGBOARD_<NAME>_DIR`, else the operating system's own.

        `chosen` has the names of the fields.

        :raises ConfigError: when the user has no home folder, or a path is not UTF-8.
        """
        found = {name: chosen.get(name) or _place(name, env) for name in cls.__struct_fields__}
        for name, path in found.items():
            if not is_utf8(str(path)):
                variable = f"PEGBOARD_{name.upper()}_DIR"
                raise ConfigError(
                    f"the path {path} is not UTF-8; set HOME or {variable} to another"
                )
        return cls(**found)

    @property
    def kept(self) -> tuple[Path, ...]:
        """The folders whose content determines what Pegboard does and remembers."""
        return (self.config, self.data, self.state, self.cache)

    @property
    def database(self) -> Path:
        """The path of the database with the sessions of all projects."""
        return self.data / "pegboard.db"

    @property
    def keys(self) -> Path:
        """The path of providers' keys that clients have set through a server."""
        return self.data / "auth.json"

    @property
    def secrets(self) -> Path:
        """The path of the file with the secrets of plugins."""
        return self.data / "secrets.json"

    @property
    def snapshots(self) -> Path:
        """The folder for states of projects' files, used for undo."""
        return self.data / "snapshot"

    @property
    def tool_output(self) -> Path:
        """The folder for tool outputs that were too long for the model."""
        return self.data / "tool-output"

    @property
    def unseen_documents(self) -> Path:
        """The path of the list of instructions by agents that the user has not accepted."""
        return self.data / "unseen-documents.json"

    @property
    def audit(self) -> Path:
        """The path of the log of permission decisions and tool calls."""
        return self.state / "audit.jsonl"

    @property
    def audit_witness(self) -> Path:
        """The path of a file, outside the log's folder, that shows whether an audit log existed."""
        return self.data / "audit.known"

    @property
    def bundles(self) -> Path:
        """The path of the record of installed and trusted bundles for other coding agents."""
        return self.state / "bundles.json"

    @property
    def trust(self) -> Path:
        """The path of the record of projects whose code may run."""
        return self.state / "trust.json"


def _place(name: str, env: Mapping[str, str]) -> Path:
    if variable := env.get(f"PEGBOARD_{name.upper()}_DIR"):
        return Path(variable)
    if os.uname().sysname == "Darwin":
        import platformdirs  # 3 ms

        return Path(getattr(platformdirs, f"user_{name}_path")("pegboard"))
    base = Path(env.get(f"XDG_{name.upper()}_HOME", "").strip())
    return (base if base.is_absolute() else home_of(env) / _IN_HOME[name]) / "pegboard"


def home_of(env: Mapping[str, str]) -> Path:
    """Return the home folder of the user: `HOME`, or else that of the user database.

    :raises ConfigError: when neither names one.
    """
    try:
        return Path(env.get("HOME") or Path.home())
    except RuntimeError as error:
        raise ConfigError(
            f"no home folder: HOME is not set and the user id {os.getuid()} has no entry in the "
            "user database; set HOME to a folder"
        ) from error


def is_utf8(text: str) -> bool:
    """Return whether a string that came from the system can be encoded in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def resolved_path(path: str | Path) -> str:
    """Resolve the links of a path as far as links can be read; never fail.

    If a link may not be read, such as that of another user's process in /proc, the result ends with
    that link. A string that is not a path is returned unchanged.
    """
    try:
        return os.path.realpath(path)
    except OSError as error:
        return str(error.filename or path)
    except ValueError:  # with a zero byte, or letters that no name of a file has
        return os.path.abspath(path)  # noqa: PTH100 - it may be no path
