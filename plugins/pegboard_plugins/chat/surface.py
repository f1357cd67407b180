"""The chat's terminal output: finished rows scroll above a footer that is redrawn."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from prompt_toolkit.application import Application
from prompt_toolkit.data_structures import Point, Size
from prompt_toolkit.input.base import Input
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.layout import Layout
from prompt_toolkit.layout.screen import Char
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import BaseStyle

from pegboard_plugins.shared.terminal import SIGNS

FRAMES = 15
"""The maximum number of frames per second while a turn streams; keys are drawn at once."""
KEY_WAIT_S = 0.05
"""The time after an escape byte within which bytes belong to the same key."""
FOOTER_LINES = 16
ROWS_LEFT = 4
"""Rows of the terminal that the footer leaves to the conversation."""
ROWS_PER_ROW_LEFT = 8
"""The number of rows for each of which the footer leaves one row, up to `ROWS_LEFT`."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
_NO_REFLOW = ("linux", "vt100", "vt220", "screen.linux")


class Painter(Vt100_Output):
    """A terminal output that writes each frame as a synchronised update (DEC private mode 2026)."""

    def __init__(self, stdout: TextIO, size: Callable[[], Size], term: str) -> None:
        super().__init__(stdout, size, term=term, enable_cpr=False)
        self.holding = False
        self.is_drawn = False

    def erase_down(self) -> None:
        """Erase from the cursor to the end of the screen.

        tmux treats an erasure from the top left as one of the whole screen, and keeps the erased
        content in its history. Therefore a footer of several rows is erased from its second row on.
        The cursor gets there by a line feed, because the terminal may have cut all rows but the
        first.
        """
        if self.is_drawn:
            self.write_raw("\x1b[K\r\n\x1b[J\x1b[A")
        else:
            super().erase_down()

    def flush(self) -> None:
        """Write the buffered output to the terminal, unless a frame is incomplete."""
        if self.holding or not self._buffer:
            return
        self._buffer.insert(0, _BEGIN)
        self._buffer.append(_END)
        encoding = self.encoding()
        self._buffer = ["".join(self._buffer).encode(encoding, SIGNS).decode(encoding)]
        super().flush()


class FooterScreen(Application[None]):
    """A prompt_toolkit application that uses only the rows of its footer.

    A resized terminal wraps or cuts its lines at once, but the program learns of it later, under
    tmux up to 250 ms. Output written meanwhile is meant for the old size. Therefore the cursor is
    parked in the footer's first cell while frames are expected. Every terminal keeps this position:
    finished rows are above it, and only the footer is below.
    """

    def __init__(  # noqa: PLR0913 - what prompt_toolkit takes, all keyword-only
        self,
        *,
        layout: Layout,
        style: BaseStyle,
        keys: KeyBindings,
        painter: Painter,
        terminal_input: Input | None,
        colours: ColorDepth,
        height: Callable[[], int],
        parks: Callable[[], bool],
        reflows: bool,
    ) -> None:
        super().__init__(
            layout=layout,
            style=style,
            key_bindings=keys,
            output=painter,
            input=terminal_input,
            color_depth=colours,
            mouse_support=False,
            min_redraw_interval=None,
            terminal_size_polling_interval=None,
            include_default_pygments_style=False,
            erase_when_done=True,
        )
        self.ttimeoutlen = KEY_WAIT_S
        self.timeoutlen = KEY_WAIT_S
        self._painter = painter
        self._height = height
        self._parks = parks
        self._reflows = reflows
        self.is_parked = False
        self.paused = False
        self._drawn_for = painter.get_size()

    def _redraw(self, render_as_done: bool = False) -> None:  # noqa: FBT001, FBT002 - prompt_toolkit's
        if self.paused and not render_as_done:
            return
        was, self._painter.holding = self._painter.holding, True
        height, last = self._height(), self.renderer.last_rendered_screen
        size = self._painter.get_size()
        if last is not None and (last.height > height or size != self._drawn_for):
            self._take_away(size)
        self._drawn_for = size
        self.is_parked = self._parks() and not render_as_done
        super()._redraw(render_as_done)
        if self.is_parked:
            self._park()
        self._painter.holding = was
        self._painter.flush()

    def _park(self) -> None:
        """Move the cursor from the editor to the footer's first cell."""
        renderer = self.renderer
        self._painter.write_raw("\r")
        self._painter.cursor_up(renderer._cursor_pos.y)  # noqa: SLF001 - nothing else says it
        renderer._cursor_pos = Point(x=0, y=0)  # noqa: SLF001 - nor takes it

    def _on_resize(self) -> None:
        """Redraw the footer, which the terminal may have rewrapped."""
        self._redraw()

    def _take_away(self, size: Size) -> None:
        """Erase the footer, including rows that the terminal has rewrapped."""
        wrapped = self._reflows and size != self._drawn_for and not self.is_parked
        if wrapped and (extra := self._wrapped_rows()) > 0:
            self._painter.cursor_up(extra)
        last = self.renderer.last_rendered_screen
        self._painter.is_drawn = last is not None and last.height > 1
        self.renderer.erase(leave_alternate_screen=False)
        self._painter.is_drawn = False

    def _wrapped_rows(self) -> int:
        """Return how many rows the terminal's rewrap has added to the footer above the cursor."""
        last = self.renderer.last_rendered_screen
        if last is None:
            return 0
        columns = max(1, self._painter.get_size().columns)
        cursor = last.get_cursor_position(self.layout.current_window)
        widths = [_width(row) for n, row in last.data_buffer.items() if n < cursor.y]
        above = sum(max(1, -(-width // columns)) for width in widths)
        above += cursor.y - len(widths)
        return above + cursor.x // columns - cursor.y

    def anew(self) -> None:
        """Erase the footer and draw it again."""
        self._painter.holding = True
        self._take_away(self._painter.get_size())
        self._painter.holding = False
        self._redraw()

    def above(self, rows: Sequence[str]) -> None:
        """Print rows above the footer."""
        self._painter.holding = True
        self._take_away(self._painter.get_size())
        self._drawn_for = self._painter.get_size()
        self._painter.write_raw("".join(f"{row}\r\n" for row in rows))
        self._redraw()
        self._painter.holding = False
        self._painter.flush()


def _width(row: Mapping[int, Char]) -> int:
    """Return the width of a row in cells, without trailing blanks."""
    return max((place for place, each in row.items() if each.char != " "), default=-1) + 1


class Frames:
    """A scheduler of frames: it draws many changes in one frame, and nothing without a change."""

    def __init__(self, screen: FooterScreen) -> None:
        self._screen = screen
        self._rows: list[str] = []
        self._timer: asyncio.TimerHandle | None = None
        self._last = 0.0

    def commit(self, rows: Sequence[str]) -> None:
        """Print finished rows above the footer with the next frame."""
        self._rows.extend(rows)
        self.touch()

    def touch(self) -> None:
        """Redraw the footer with the next frame."""
        if self._timer is None and not self._screen.paused:
            loop = asyncio.get_running_loop()
            wait_s = max(0.0, self._last + 1 / FRAMES - loop.time())
            self._timer = loop.call_later(wait_s, self.draw)

    def draw(self) -> None:
        """Draw pending changes now."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._screen.paused or not self._screen.is_running:
            return
        self._last = asyncio.get_running_loop().time()
        if self._rows:
            rows, self._rows = self._rows, []
            self._screen.above(rows)
        else:
            self._screen._redraw()  # noqa: SLF001 - ours: `FooterScreen` overrides it

    def rest(self) -> Sequence[str]:
        """Return the rows that no frame has drawn yet."""
        rows, self._rows = self._rows, []
        return rows


def wraps_anew(env: Mapping[str, str]) -> bool:
    """Return whether the terminal rewraps lines when its width changes.

    Most terminals rewrap lines; a few cut them.
    """
    if env.get("TMUX"):
        return True
    if env.get("XTERM_VERSION") or env.get("STY"):
        return False
    return env.get("TERM", "") not in _NO_REFLOW


def colour_depth(env: Mapping[str, str]) -> ColorDepth:
    """Return the colours that the terminal supports: sixteen unless it declares more."""
    if env.get("NO_COLOR"):
        return ColorDepth.DEPTH_1_BIT
    if env.get("COLORTERM") in ("truecolor", "24bit"):
        return ColorDepth.DEPTH_24_BIT
    return ColorDepth.DEPTH_8_BIT if "256color" in env.get("TERM", "") else ColorDepth.DEPTH_4_BIT


def has_all_colours(env: Mapping[str, str]) -> bool:
    """Return whether the terminal draws all 24-bit colours."""
    return colour_depth(env) is ColorDepth.DEPTH_24_BIT


def reports_colours(env: Mapping[str, str]) -> bool:
    """Return whether the terminal may report its background colour, which a theme can match."""
    many = (ColorDepth.DEPTH_8_BIT, ColorDepth.DEPTH_24_BIT)
    return colour_depth(env) in many and env.get("TERM", "") not in _NO_REFLOW
