"""The dialog that opens unasked, and the time from which keys are meant for it."""

import asyncio
from collections.abc import Callable

from pegboard_plugins.chat.modes import Mode
from pegboard_plugins.shared.terminal import QUIET_S

WAITING = "keys go to the editor until it is empty · {} to answer"
"""The line under a dialog that waits, with the key that turns to it."""


class Attention:
    """Holds keys back from a dialog until the user has turned to it.

    A dialog has the keys after `QUIET_S` without a key over an empty editor, or at once after
    `turn`. It then has them until it goes, or until a letter comes that is none of its answers.
    """

    def __init__(self, is_writing: Callable[[], bool], changed: Callable[[], None]) -> None:
        self._is_writing = is_writing
        self._changed = changed
        self._dialog: Mode | None = None
        self._has_keys = False
        self._pause: asyncio.TimerHandle | None = None

    def has(self, dialog: Mode) -> bool:
        """Return whether keys are meant for this dialog."""
        return self._has_keys and dialog is self._dialog

    def show(self, dialog: Mode | None) -> None:
        """Note the visible dialog, if any; a new one waits for the user."""
        if dialog is not self._dialog:
            self._dialog, self._has_keys = dialog, False
            self.key()

    def key(self) -> None:
        """Note a key: the pause begins again."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._dialog is not None and not self._has_keys:
            self._pause = asyncio.get_running_loop().call_later(QUIET_S, self._paused)

    def _paused(self) -> None:
        if not self._is_writing():
            self.turn()

    def leave(self) -> None:
        """Give the keys back to the editor, so that typed text is no answer."""
        self._has_keys = False
        self.key()

    def turn(self) -> None:
        """Give the keys to the dialog that waits."""
        if self._dialog is not None:
            self._has_keys = True
            self._changed()
