"""The fleet options in the user's configuration: the table `plugins.fleet.options`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard.app import UserFolders
from pegboard.errors import ConfigError
from pegboard.unstable import load_config, open_workspace

VARIABLE = "PEGBOARD_DATABASE"
_KEY = "plugins.fleet.options"


class FleetOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configured options of `pegboard fleet`, for options that the command line does not set.

    `database_file` is a file with the address of the database, used if `PEGBOARD_DATABASE` is not
    set. `pool`, `concurrency`, `remote` and `work` are the options of `pegboard fleet worker`.
    """

    database_file: str | None = None
    pool: str | None = None
    concurrency: int | None = None
    remote: str | None = None
    work: str | None = None

    def url(self) -> str:
        """Return the database address in `database_file`, or "" if the option is not set.

        :raises ConfigError: when the file cannot be read.
        """
        if self.database_file is None:
            return ""
        try:
            return Path(self.database_file).expanduser().read_text().strip()
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise ConfigError(
                f"{_KEY}.database_file: cannot read {self.database_file}: {reason}; write the "
                "address of the database into it, or set PEGBOARD_DATABASE",
                key=f"{_KEY}.database_file",
            ) from error

    def defaults(self) -> dict[str, Any]:
        """Return the default option values by command, for click's `default_map`."""
        worker = {
            name: value
            for name in ("pool", "concurrency", "remote", "work")
            if (value := getattr(self, name)) is not None
        }
        submit = {"pool": self.pool} if self.pool is not None else {}
        doctor = {"remote": self.remote} if self.remote is not None else {}
        return {"worker": worker, "submit": submit, "doctor": doctor}


async def read_options(env: Mapping[str, str]) -> FleetOptions:
    """Return the options in the user's configuration; a project's configuration is ignored.

    :raises ConfigError: when a file is not valid, or an option is unknown or of another type.
    """
    loaded = await load_config(
        open_workspace(Path()),
        config_dir=UserFolders.of(env).config,
        env=env,
        overrides=None,
        trusted=False,
    )
    found = loaded.config.plugins.get("fleet")
    table = {} if found is None else found.options
    try:
        return msgspec.convert(table, FleetOptions)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{_KEY}: {error}", key=_KEY) from error
