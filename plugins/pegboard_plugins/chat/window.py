"""The chat's window in prompt_toolkit: footer lines, a rule, the editor, and the status line."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from prompt_toolkit.data_structures import Size
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
)
from prompt_toolkit.layout import Window as Pane
from prompt_toolkit.layout.processors import (
    ConditionalProcessor,
    Processor,
    Transformation,
    TransformationInput,
)
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.styles import Style

from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.footer import cut, fragments, style_rules
from pegboard_plugins.chat.hookspecs import ChatKey
from pegboard_plugins.chat.keyboard import Keyboard
from pegboard_plugins.chat.keys import KEYS, add_key, add_own_key, bindings, key_name
from pegboard_plugins.chat.surface import (
    FOOTER_LINES,
    KEY_WAIT_S,
    ROWS_LEFT,
    ROWS_PER_ROW_LEFT,
    FooterScreen,
    Frames,
    Painter,
    colour_depth,
    reports_colours,
    wraps_anew,
)
from pegboard_plugins.chat.terminalinput import ASK_BACKGROUND, TerminalInput
from pegboard_plugins.chat.vikeys import ViKeys
from pegboard_plugins.shared.terminal import on_hangup

if TYPE_CHECKING:
    from pegboard_plugins.chat.modes import SpanLine

EDITOR_LINES = 8
PROMPT, COMMAND_PROMPT = "❯ ", "\u276e "
"""The prefixes of the text; the second one is used while letters are commands of vi."""
PARKED_S = 0.5
"""The time after a turn within which a terminal may still report a resize."""
UNSEEN = "\N{REPLACEMENT CHARACTER}"


class UnseenLetters(Processor):
    """A processor that replaces invisible and control characters by a visible sign."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the text with the same number of letters, so that the cursor stays in place."""
        fragments = explode_text_fragments(transformation_input.fragments)
        shown: StyleAndTextTuples = [(style, _seen(text)) for style, text, *_ in fragments]
        return Transformation(shown)


class DrawnCursor(Processor):
    """A processor that draws the cursor, while the terminal's cursor is outside the editor."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the line, with a reversed cell at the cursor if the cursor is in this line."""
        document = transformation_input.document
        fragments = explode_text_fragments(transformation_input.fragments)
        if transformation_input.lineno == document.cursor_position_row:
            column = document.cursor_position_col
            letter = fragments[column][1] if column < len(fragments) else " "
            fragments[column : column + 1] = [("reverse", letter)]
        return Transformation(fragments)


def _seen(letter: str) -> str:
    return letter if letter.isprintable() or letter in "\n\t" else UNSEEN


class Window:
    """The window of one chat."""

    def __init__(self, chat: Desk) -> None:
        self._chat = chat
        self._drawn: tuple[SpanLine, ...] | None = None
        self._added: set[str] = set()
        self._own = {action.name: action.key for action in KEYS}
        self._went_on_s = -PARKED_S
        self._unparking: asyncio.TimerHandle | None = None
        keyboard = Keyboard(chat)
        self.keys = bindings(keyboard, {})
        self.painter = Painter(sys.stdout, _size, chat.env.get("TERM", ""))
        self._input = TerminalInput(sys.stdin, chat.theme.background)
        self.screen = FooterScreen(
            layout=self._layout(),
            style=Style.from_dict(style_rules(chat.palette)),
            keys=self.keys,
            painter=self.painter,
            terminal_input=self._input,
            colours=colour_depth(chat.env),
            height=self._height,
            parks=self._parks,
            reflows=wraps_anew(chat.env),
        )
        self.frames = Frames(self.screen)
        self.screen.key_processor.before_key_press += lambda _: chat.attention.key()
        self.screen.key_processor.before_key_press += lambda _: keyboard.begin_key()
        self.screen.key_processor.after_key_press += lambda _: keyboard.end_key()
        self.vi = ViKeys(self.screen, key_wait_s=KEY_WAIT_S, is_free=lambda: chat.mode is None)

    @property
    def width(self) -> int:
        """The width of the text above the footer, in columns."""
        return max(20, _size().columns - 1)

    def _layout(self) -> Layout:
        buffer = self._chat.draft.buffer
        cursor = ConditionalProcessor(DrawnCursor(), Condition(self._draws_cursor))
        control = BufferControl(buffer, input_processors=[UnseenLetters(), cursor])
        is_elsewhere = Condition(lambda: self.screen.is_parked)
        self._editor = Pane(
            control,
            wrap_lines=True,
            height=self._editor_height,
            always_hide_cursor=is_elsewhere,
            get_line_prefix=self._prefix,
        )
        above = Pane(FormattedTextControl(self._above), height=self._above_height, wrap_lines=False)
        status = Pane(FormattedTextControl(self._status), height=1, wrap_lines=False)
        shown = ConditionalContainer(above, Condition(lambda: bool(self._lines())))
        rule = Pane(char="─", height=1, style="class:rule")
        return Layout(HSplit([shown, rule, self._editor, status]), focused_element=self._editor)

    def _prefix(self, line_number: int, wraps: int) -> StyleAndTextTuples:
        """Return the prefix of an editor row; all rows begin in the same column."""
        prompt = COMMAND_PROMPT if self.vi.navigates else PROMPT
        return [("class:active", " " * len(prompt) if line_number or wraps else prompt)]

    def _parks(self) -> bool:
        """Return whether to park the terminal's cursor in the footer's first cell between frames.

        It is parked while frames are expected, except for input methods, which need it in the
        editor.
        """
        talk = self._chat.talk
        now = time.monotonic()
        goes_on = bool(self._chat.open_modes) or (talk is not None and talk.goes_on)
        if goes_on:
            self._went_on_s = now
        lasts = now - self._went_on_s < PARKED_S
        if lasts and not goes_on and self._unparking is None:
            self._unparking = asyncio.get_running_loop().call_later(PARKED_S, self._unpark)
        return lasts and not self._chat.draft.is_composed

    def _unpark(self) -> None:
        self._unparking = None
        self.frames.touch()

    def _draws_cursor(self) -> bool:
        mode = self._chat.mode
        return self.screen.is_parked and (mode is None or mode.edits)

    def _lines(self) -> "tuple[SpanLine, ...]":
        """Return the lines above the editor, computed once per frame."""
        if self._drawn is None:
            room = self._room() - self._editor_rows() - 2
            self._drawn = tuple(self._chat.footer(self.width, max(0, room)))
        return self._drawn

    def _room(self) -> int:
        """Return the maximum number of footer rows; a dialog gets almost the whole window."""
        rows, modes = _size().rows, self._chat.open_modes
        most = rows if modes else FOOTER_LINES
        left = min(ROWS_LEFT, rows // ROWS_PER_ROW_LEFT)
        return max(3, min(most, rows - left))

    def _editor_rows(self) -> int:
        document = self._chat.draft.buffer.document
        columns = max(1, _size().columns - len(PROMPT))
        rows = sum(1 + len(line) // columns for line in document.lines[: EDITOR_LINES + 1])
        return min(EDITOR_LINES, rows, self._room() - 2)

    def _editor_height(self) -> Dimension:
        return Dimension.exact(self._editor_rows())

    def _above_height(self) -> Dimension:
        return Dimension.exact(len(self._lines()))

    def _height(self) -> int:
        """Return the number of rows of the next frame, and drop the lines of the last frame."""
        self._drawn = None
        return len(self._lines()) + 1 + self._editor_rows() + 1

    def _above(self) -> StyleAndTextTuples:
        return fragments(self._lines())

    def _status(self) -> StyleAndTextTuples:
        return fragments([cut(self._chat.status_line(self.width), self.width)])

    async def run(self) -> None:
        """Show the window until `leave` is called; then restore the terminal."""
        loop = asyncio.get_running_loop()
        acts = {
            signal.SIGTERM: self.leave,
            signal.SIGTSTP: lambda: self._chat.spawn(self._chat.outside.suspend()),
        }
        for number, act in acts.items():
            loop.add_signal_handler(number, act)
        loop.set_exception_handler(self._unhandled)
        try:
            with on_hangup(partial(loop.call_soon_threadsafe, self.leave)):
                await self.screen.run_async(
                    pre_run=self._begun, handle_sigint=False, set_exception_handler=False
                )
        finally:
            loop.set_exception_handler(None)
            for number in acts:
                loop.remove_signal_handler(number)
            self._chat.notices.end()
            rest = "".join(f"{row}\r\n" for row in self.frames.rest())
            self.painter.write_raw(rest)
            self.painter.flush()

    def _begun(self) -> None:
        self._chat.notices.begin()
        if reports_colours(self._chat.env):
            self.painter.write_raw(ASK_BACKGROUND)

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Print an error that occurred outside all tasks, as in a plugin's callback; go on."""
        error = context.get("exception")
        if isinstance(error, MemoryError) and "handle" in context:
            loop.default_exception_handler(context)  # it ends the program
            return
        what = f"{type(error).__name__}: {error}" if error else context["message"]
        self._chat.warn(f"error outside the conversation: {what}")

    def follow(self, task: asyncio.Task[None]) -> None:
        """End `run` with the error of a task that the chat cannot work without."""
        if not task.cancelled() and (error := task.exception()) and self.screen.is_running:
            self.screen.exit(exception=error)

    def type(self, content: bytes) -> None:
        """Process keys pressed before `run`, or while another program used the terminal."""
        presses = self._input.presses(content)
        if self.screen.is_running:
            self._process(presses)
        else:
            store_typeahead(self._input, presses)

    def edit_with(self, editing: object) -> None:
        """Use the key bindings of the setting `editing`, and process the keys typed before."""
        self.vi.chosen = editing == "vi"
        self._process(self._input.release())

    def _process(self, presses: list[KeyPress]) -> None:
        self.screen.key_processor.feed_multiple(presses)
        self.screen.key_processor.process_keys()

    def leave(self) -> None:
        """End `run`, after the unfinished answer is drawn."""
        if self.screen.is_running and not self.screen.is_done:
            if self._chat.talk is not None:
                self._chat.talk.conclude()
            self.screen.exit()

    def anew(self) -> None:
        """Erase the footer and draw it again."""
        self.screen.anew()

    def restyle(self, palette: Mapping[str, str]) -> None:
        """Draw in the colours of this palette."""
        self.screen.style = Style.from_dict(style_rules(dict(palette)))
        self.anew()

    def add_keys(self, keys: Mapping[str, tuple[str, ChatKey]]) -> None:
        """Bind the keys of plugins; a key of the chat itself is never replaced."""
        chat = self._chat
        chosen = chat.option("keys") or {}
        self._bind_own({each.name: chosen.get(each.name, each.key) for each in KEYS})
        own = set(self._own.values())
        for plugin, key in keys.values():
            wanted = chosen.get(key.name, key.key)
            if wanted in own:
                chat.warn(f"plugin {plugin}: the key {wanted} is the chat's own")
            elif wanted not in self._added:
                self._added.add(wanted)
                self._add(plugin, key, wanted)

    def _bind_own(self, wanted: Mapping[str, str]) -> None:
        """Bind the chat's own actions to these keys; an invalid key leaves the default."""
        changed = {name: key for name, key in wanted.items() if key != self._own[name]}
        for name in changed:
            self.keys.remove(*self._own[name].split())
        for name, key in changed.items():
            keyboard = Keyboard(self._chat)
            try:
                add_own_key(self.keys, key, name, keyboard)
            except ValueError:
                self._chat.warn(f"plugins.chat.options.keys: {key!r} is not a key")
                key = next(each.key for each in KEYS if each.name == name)  # noqa: PLW2901
                add_own_key(self.keys, key, name, keyboard)
            self._own[name] = key

    def _add(self, plugin: str, key: ChatKey, wanted: str) -> None:
        chat = self._chat

        def act() -> None:
            chat.spawn(chat.guest_key(plugin, key))

        try:
            add_key(self.keys, wanted, act)
        except ValueError as error:
            chat.warn(f"plugin {plugin}: {wanted!r} is not a key: {error}")

    def key_of(self, action: str) -> str:
        """Return the key of one of the chat's own actions, in readable form."""
        return key_name(self._own[action])


def _size() -> Size:
    try:
        found = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        return Size(rows=24, columns=80)
    return Size(rows=found.lines or 24, columns=found.columns or 80)
