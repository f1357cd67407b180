"""Files that name the running sessions, so that the next server can resume them."""

import asyncio
import logging
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pegboard.schema.event import Event, SessionStatusChanged
from pegboard.schema.session import Idle

_log = logging.getLogger("pegboard.server")


class RunningSessions:
    """A file for each running session, in a folder that all servers of the user share.

    The file's name is the session's id, its content the session's directory.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ending = False

    def end(self) -> None:
        """Keep the files from now on, so that the next server resumes the sessions."""
        self._ending = True

    async def note(self, events: Iterable[Event], directory: Path) -> None:
        """Add or remove the files of sessions that start or stop in these events."""
        for event in events:
            match event.properties:
                case SessionStatusChanged(session_id=session_id, status=Idle()):
                    if not self._ending:
                        await asyncio.to_thread(self.drop, session_id)
                case SessionStatusChanged(session_id=session_id):
                    await asyncio.to_thread(self._add, session_id, directory)
                case _:
                    pass

    def _add(self, session_id: str, directory: Path) -> None:
        file = self._folder / session_id
        try:
            if not file.exists():
                self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
                file.write_bytes(bytes(directory))
        except OSError as error:
            _log.warning("cannot record that %s runs: %s; it will not go on", session_id, error)

    def left(self) -> list[tuple[str, Path]]:
        """Return the sessions that an earlier server left running, and their directories."""
        found = []
        for file in sorted(self._folder.glob("ses_*")):
            with suppress(OSError):  # its session has ended
                found.append((file.name, Path(os.fsdecode(file.read_bytes()))))
        return found

    def drop(self, session_id: str) -> None:
        """Remove the file of a session that has ended or cannot go on; blocks."""
        try:
            (self._folder / session_id).unlink(missing_ok=True)
        except OSError as error:
            _log.warning("cannot record that %s has ended: %s", session_id, error)
