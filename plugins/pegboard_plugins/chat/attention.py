"""The decision whether keys go to the editor or to a dialog that opened without a key press."""

import asyncio
from collections.abc import Callable

from pegboard_plugins.chat.modes import Mode
from pegboard_plugins.shared.terminal import QUIET_S

WAITING = "keys go to the editor until it is empty · {} to answer"
"""The line under a dialog without the keys; it names the key that gives them to the dialog."""


class Attention:
    """The decision whether keys go to the editor or to a dialog that opened without a key press.

    The user may still be typing when a request opens a dialog. The dialog therefore gets the keys
    only after `QUIET_S` seconds without a key while the editor is empty, or when `turn` is called.
    The editor gets them back when the dialog closes, or after a letter that chooses no answer.
    """

    def __init__(self, is_writing: Callable[[], bool], changed: Callable[[], None]) -> None:
        self._is_writing = is_writing
        self._changed = changed
        self._dialog: Mode | None = None
        self._has_keys = False
        self._pause: asyncio.TimerHandle | None = None

    def has(self, dialog: Mode) -> bool:
        """Return whether keys go to this dialog."""
        return self._has_keys and dialog is self._dialog

    def show(self, dialog: Mode | None) -> None:
        """Set the dialog that is visible, or None; a new dialog does not get the keys at once."""
        if dialog is not self._dialog:
            self._dialog, self._has_keys = dialog, False
            self.key()

    def key(self) -> None:
        """Restart the wait of `QUIET_S` seconds, because a key was pressed."""
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None
        if self._dialog is not None and not self._has_keys:
            self._pause = asyncio.get_running_loop().call_later(QUIET_S, self._paused)

    def _paused(self) -> None:
        if not self._is_writing():
            self.turn()

    def leave(self) -> None:
        """Send further keys to the editor."""
        self._has_keys = False
        self.key()

    def turn(self) -> None:
        """Send further keys to the visible dialog, if there is one."""
        if self._dialog is not None:
            self._has_keys = True
            self._changed()
