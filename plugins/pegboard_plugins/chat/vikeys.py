"""The vi keys of the editor, and the chat's own keys that they replace."""

from collections.abc import Callable, Mapping

from prompt_toolkit.application import Application
from prompt_toolkit.application.current import get_app
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import (
    Always,
    Condition,
    Filter,
    vi_insert_mode,
    vi_mode,
    vi_navigation_mode,
)
from prompt_toolkit.key_binding.vi_state import InputMode

COMMAND_WAIT_S = 1.0
"""The time limit for the second key of a command such as `fx` or `gg`."""
ALWAYS = Always()
WRITES: Filter = ~vi_mode | vi_insert_mode
"""The filter that holds while letters are inserted."""
_IS_EMPTY = Condition(lambda: not get_app().current_buffer.text)
DISPLACED: Mapping[str, Filter] = {
    "stop": ~vi_mode | vi_navigation_mode,
    "help": WRITES | (vi_navigation_mode & _IS_EMPTY),
}
"""The filters that hold while actions have their keys; other actions always have them."""


class ViKeys:
    """The vi keys of the editor, active while no dialog or list has the keys."""

    def __init__(
        self, application: Application[None], *, key_wait_s: float, is_free: Callable[[], bool]
    ) -> None:
        self.chosen = False
        self._application = application
        self._key_wait_s = key_wait_s
        self._is_free = is_free
        application.key_processor.before_key_press += lambda _: self._choose()
        application.key_processor.after_key_press += lambda _: self._wait()

    @property
    def navigates(self) -> bool:
        """Whether letters are commands of vi."""
        is_inserting = self._application.vi_state.input_mode == InputMode.INSERT
        return self.chosen and self._is_free() and not is_inserting

    def begin(self) -> None:
        """Return to vi's insert mode, because the editor has got a new text."""
        self._application.vi_state.reset()

    def _choose(self) -> None:
        is_vi = self.chosen and self._is_free()
        self._application.editing_mode = EditingMode.VI if is_vi else EditingMode.EMACS

    def _wait(self) -> None:
        """Set how long to wait for a further key; within a vi command the wait is longer."""
        pressed = self._application.key_processor.key_buffer
        is_command = bool(pressed) and len(pressed[0].key) == 1
        self._application.timeoutlen = COMMAND_WAIT_S if is_command else self._key_wait_s
