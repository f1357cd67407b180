"""The chat's key bindings: their names, default keys and help texts."""

from collections.abc import Callable, Mapping

import msgspec
from prompt_toolkit.filters import Filter, vi_mode
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from pegboard_plugins.chat.keyboard import FOCUS_IN, FOCUS_OUT, Keyboard
from pegboard_plugins.chat.vikeys import ALWAYS, DISPLACED, WRITES


class KeyAction(msgspec.Struct, frozen=True, kw_only=True):
    """An action with its default key; the configuration can assign another key to its name.

    `short` is the help text for the key card, in at most 26 letters.
    """

    name: str
    key: str
    help: str
    short: str


KEYS = (
    KeyAction(
        name="send",
        key="enter",
        help="send; while the agent works: steer it",
        short="send, or steer",
    ),
    KeyAction(
        name="answer",
        key="c-x",
        help="answer the dialog that waits while you write",
        short="answer the dialog",
    ),
    KeyAction(
        name="queue",
        key="escape enter",
        help="send when the agent has ended its turn",
        short="send after the turn",
    ),
    KeyAction(
        name="newline",
        key="c-j",
        help="a new line, as Shift+Enter, or `\\` and Enter",
        short="new line",
    ),
    KeyAction(
        name="stop",
        key="escape",
        help="leave a list, or stop; twice at rest: rewind",
        short="stop; twice: rewind",
    ),
    KeyAction(
        name="interrupt",
        key="c-c",
        help="empty the editor, stop, twice: leave",
        short="clear, stop; twice: leave",
    ),
    KeyAction(
        name="leave",
        key="c-d",
        help="leave an empty editor; twice while a turn runs",
        short="leave",
    ),
    KeyAction(
        name="next_agent",
        key="tab",
        help="the next agent; takes what is offered",
        short="next agent",
    ),
    KeyAction(name="next_model", key="c-p", help="the next model", short="next model"),
    KeyAction(name="last_model", key="escape p", help="the model before", short="model before"),
    KeyAction(
        name="mode",
        key="s-tab",
        help="the next mode: what runs before you are asked",
        short="next mode",
    ),
    KeyAction(
        name="effort", key="escape e", help="the next level of effort", short="next level of effort"
    ),
    KeyAction(
        name="output", key="c-o", help="the last tool's output in full", short="last output in full"
    ),
    KeyAction(
        name="transcript", key="c-t", help="the whole session on a page", short="whole session"
    ),
    KeyAction(
        name="editor", key="c-g", help="edit in $VISUAL or $EDITOR", short="write in your editor"
    ),
    KeyAction(name="history", key="c-r", help="search the history", short="search the history"),
    KeyAction(
        name="up", key="up", help="a line up; edit what waits; history", short="queue, history"
    ),
    KeyAction(name="down", key="down", help="a line down; history", short="history"),
    KeyAction(name="page_up", key="pageup", help="scroll a dialog up", short="scroll a dialog up"),
    KeyAction(
        name="page_down", key="pagedown", help="scroll a dialog down", short="scroll a dialog down"
    ),
    KeyAction(
        name="picture",
        key="c-v",
        help="attach the picture in the clipboard",
        short="attach a picture",
    ),
    KeyAction(name="redraw", key="c-l", help="draw the footer again", short="draw again"),
    KeyAction(name="suspend", key="c-z", help="suspend (`fg` resumes)", short="suspend"),
    KeyAction(name="help", key="?", help="on an empty line: list the keys", short="these keys"),
)

_NAMES = {"escape": "Esc", "pageup": "PgUp", "pagedown": "PgDn"}
_MODIFIERS = (("escape ", "Alt+"), ("c-", "Ctrl+"), ("s-", "Shift+"))


def key_name(key: str) -> str:
    """Return the key in readable form: `Ctrl+J` for `c-j`, `Alt+Enter` for `escape enter`."""
    for prefix, modifier in _MODIFIERS:
        if key.startswith(prefix):
            return modifier + key_name(key.removeprefix(prefix))
    return _NAMES.get(key, key.capitalize())


def bindings(keyboard: Keyboard, chosen: Mapping[str, str]) -> KeyBindings:
    """Return the key bindings for prompt_toolkit; `chosen` maps actions' names to other keys."""
    for sequence in (FOCUS_IN, FOCUS_OUT):
        ANSI_SEQUENCES.setdefault(sequence, Keys.Ignore)
    keys = KeyBindings()
    for action in KEYS:
        add_own_key(keys, chosen.get(action.name, action.key), action.name, keyboard)

    @keys.add(Keys.Any, filter=WRITES, save_before=lambda event: not event.is_repeat)
    def letter(event: KeyPressEvent) -> None:
        keyboard.letter(event.data)

    @keys.add("escape", "/", filter=~vi_mode)
    def command(event: KeyPressEvent) -> None:
        """Treat Alt+/ as Escape and a `/`, because terminals send the same bytes for both."""
        keyboard.stop()
        keyboard.letter(event.data)

    @keys.add(Keys.BracketedPaste)
    def pasted(event: KeyPressEvent) -> None:
        keyboard.paste(event.data)

    @keys.add(Keys.Ignore)
    def focus(event: KeyPressEvent) -> None:
        keyboard.focus(event.key_sequence[0].data)

    return keys


def add_own_key(keys: KeyBindings, key: str, name: str, keyboard: Keyboard) -> None:
    """Bind one of the chat's own actions to a key."""
    add_key(keys, key, getattr(keyboard, name), DISPLACED.get(name, ALWAYS))


def add_key(keys: KeyBindings, key: str, act: Callable[[], None], counts: Filter = ALWAYS) -> None:
    """Bind an action to a key or key sequence that is active while the filter `counts` is true."""

    @keys.add(*key.split(), filter=counts)
    def pressed(event: KeyPressEvent) -> None:  # noqa: ARG001 - prompt_toolkit's
        act()
