"""The catalogue: a stored copy of a server's tools, prompts and resources, for a quick start."""

import time
from pathlib import Path
from typing import Any

import msgspec

from pegboard.plugins import replace_file
from pegboard_mcp.listing import ServerPrompt, ServerResource, ServerTool

FILE_BYTES = 4 << 20
"""The most that is read or written; the lists of a server are cut to far less."""


class Catalogue(msgspec.Struct, frozen=True, kw_only=True):
    """The tools, prompts and resources of a server at `listed_at`, in seconds since the epoch.

    `version` is the negotiated protocol version, and `discovered` is the answer to
    `server/discover`. The next start reuses these two. `fresh_s` is the time for which the server
    allows the lists to be cached, or None if it sets no time. `notes` lists problems in the lists.
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
        """Return whether the server still allows the lists to be used from the cache."""
        age_s = time.time() - self.listed_at
        return self.fresh_s is not None and 0 <= age_s < self.fresh_s


def read_catalogue(path: Path) -> Catalogue | None:
    """Return the catalogue stored in a file, or None if the file is missing or invalid."""
    try:
        if path.stat().st_size > FILE_BYTES:
            return None
        return msgspec.json.decode(path.read_bytes(), type=Catalogue)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None


def write_catalogue(path: Path, catalogue: Catalogue) -> None:
    """Store a catalogue, readable only by this user, unless the catalogue exceeds the size limit.

    :raises OSError: when the folder cannot be written.
    """
    content = msgspec.json.encode(catalogue)
    if len(content) <= FILE_BYTES:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        replace_file(path, content)
