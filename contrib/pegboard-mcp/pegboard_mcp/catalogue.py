"""The stored lists of a server, so that no start of Pegboard waits for the server."""

import time
from pathlib import Path
from typing import Any

import msgspec

from pegboard.plugins import replace_file
from pegboard_mcp.listing import ServerPrompt, ServerResource, ServerTool

FILE_BYTES = 4 << 20
"""The most that is read or written; the lists of a server are cut to far less."""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """The lists of a server at `listed_at`, in seconds since the epoch.

    `version` is the protocol's that was agreed on, and `discovered` what the server answered to
    `server/discover`, so that the next start asks for neither. `fresh_s` is how long the server
    lets its lists be used without another question, None where it does not say. `notes` are the
    flaws of the lists.
    """

    listed_at: float = 0.0
    version: str = ""
    discovered: dict[str, Any] | None = None
    server_name: str = ""
    server_version: str = ""
    instructions: str = ""
    tools: tuple[ServerTool, ...] = ()
    prompts: tuple[ServerPrompt, ...] = ()
    resources: tuple[ServerResource, ...] = ()
    templates: tuple[ServerResource, ...] = ()
    fresh_s: float | None = None
    notes: tuple[str, ...] = ()

    def is_fresh(self) -> bool:
        """Return whether the server lets its lists be used without another question."""
        age_s = time.time() - self.listed_at
        return self.fresh_s is not None and 0 <= age_s < self.fresh_s


def read_catalogue(path: Path) -> Catalogue | None:
    """Return the stored catalogue, None without a valid one."""
    try:
        if path.stat().st_size > FILE_BYTES:
            return None
        return msgspec.json.decode(path.read_bytes(), type=Catalogue)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write_catalogue(path: Path, catalogue: Catalogue) -> None:
    """Store the catalogue, for this user alone; one that is too long is not stored.

    :raises OSError: when the folder cannot be written.
    """
    content = msgspec.json.encode(catalogue)
    if len(content) <= FILE_BYTES:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, content)
