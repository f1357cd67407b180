"""The parts of a chat that its commands and keys use: editor, lists, pages and notices."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from pegboard import PegboardError
from pegboard.display import Span
from pegboard.schema.model import Model
from pegboard_plugins.chat.answering import Answering
from pegboard_plugins.chat.attention import WAITING, Attention
from pegboard_plugins.chat.chatoptions import StartOptions
from pegboard_plugins.chat.chatstate import chat_state, ticks
from pegboard_plugins.chat.draft import Draft
from pegboard_plugins.chat.finished import Noted, rows_of
from pegboard_plugins.chat.footer import Footing, footer_lines
from pegboard_plugins.chat.guests import Guests, palette_of
from pegboard_plugins.chat.hookspecs import ChatKey, ChatState, Theme
from pegboard_plugins.chat.installedcode import InstalledCode
from pegboard_plugins.chat.modes import Choice, Item, Menu, Mode, SpanLine, TextLine
from pegboard_plugins.chat.notices import Notices
from pegboard_plugins.chat.offers import Offers
from pegboard_plugins.chat.outside import Outside, private_file
from pegboard_plugins.chat.statusline import status_line
from pegboard_plugins.chat.surface import FooterScreen, Frames, Painter, has_all_colours
from pegboard_plugins.chat.talk import Talk
from pegboard_plugins.chat.themes import ThemeChoice
from pegboard_plugins.chat.vikeys import ViKeys
from pegboard_plugins.shared.terminal import PALETTE

if TYPE_CHECKING:
    from pegboard_plugins.shared.terminal import Pen

TICK_S = 1.0
"""The interval of redraws that count the seconds of running work; without work there are none."""
SHELL = "shell command: Enter runs it unasked, and the agent sees its output"


class DeskWindow(Protocol):
    """The interface of the chat's terminal window."""

    painter: Painter
    screen: FooterScreen
    frames: Frames
    vi: ViKeys

    @property
    def width(self) -> int:
        """The width of the text above the footer, in columns."""
        ...

    def key_of(self, action: str) -> str:
        """Return the key of one of the chat's own actions, in readable form."""
        ...

    def anew(self) -> None:
        """Erase the footer and draw it again."""
        ...

    def restyle(self, palette: Mapping[str, str]) -> None:
        """Draw in the colours of this palette."""
        ...

    def type(self, content: bytes) -> None:
        """Process keys that another reader of the terminal has read."""
        ...

    def leave(self) -> None:
        """End the chat."""
        ...


Act = Callable[["Desk", str], Awaitable[None]]


class Slash(msgspec.Struct, frozen=True, kw_only=True):
    """A slash command; `act` is its action, or None if the command becomes a prompt."""

    name: str
    help: str
    act: Act | None = None


def slash_items(slashes: Mapping[str, Slash]) -> Sequence[Item]:
    """Return the slash commands as items of a menu."""
    return [
        Item(value=each.name, text=f"/{each.name}", note=each.help) for each in slashes.values()
    ]


class Desk(ABC):
    """The base of a chat: the parts that its commands and keys use."""

    def __init__(
        self, options: StartOptions, env: Mapping[str, str], window: "Callable[[Desk], DeskWindow]"
    ) -> None:
        self.options = options
        self.env = env
        self.talk: Talk | None = None
        self.answering: Answering | None = None
        self.guests = Guests(None, self.warn)
        self.slashes: dict[str, Slash] = {}
        self.palette: dict[str, str] = dict(PALETTE)
        self._pen: Pen | None = None
        self.modes: list[Choice | TextLine] = []
        self.notice = ""
        self.failed = ""
        self.models: Sequence[Model] = ()
        self.draft = Draft(private_file(env, "chat-history"), self._changed)
        self.offers = Offers(
            self.draft, lambda: slash_items(self.slashes), self._look_up, self.touch
        )
        self.draft.on_placed = self.offers.close
        self.theme = ThemeChoice(self._draw_in)
        self.window = window(self)
        self.notices = Notices(self.window.painter)
        screen, frames = self.window.screen, self.window.frames
        self.outside = Outside(screen, frames, self.notices, self.window.type)
        self.attention = Attention(lambda: bool(self.draft.text), self.touch)
        self.installed = InstalledCode()
        self._aside = False
        self.ticking: asyncio.TimerHandle | None = None
        self.tasks: set[asyncio.Task[None]] = set()

    @abstractmethod
    def submit(self, text: str, *, later: bool = False) -> None:
        """Run the text as a slash command or shell command, or else send it as a prompt."""

    @abstractmethod
    async def slash(self, name: str) -> None:
        """Run the slash command that a key is bound to, once the session is loaded."""

    @abstractmethod
    async def guest_key(self, plugin: str, key: ChatKey) -> None:
        """Run the action of a plugin's key."""

    @abstractmethod
    async def reload(self) -> None:
        """Connect to the sessions again, with the current plugins, settings and project code."""

    def leave(self) -> None:
        """End the chat."""
        self.window.leave()

    def touch(self) -> None:
        """Redraw the footer with the next frame."""
        self._settle()
        if self.talk is not None:
            self.guests.note(self.state, self.window.frames.touch)
            if ticks(self.talk.course) and self.ticking is None:
                self.ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self.window.frames.touch()

    def _tick(self) -> None:
        self.ticking = None
        self.touch()

    def warn(self, text: str) -> None:
        """Print a warning above the footer."""
        if self.talk is not None:
            self.talk.say(text, "warning")
        else:
            self.window.frames.commit(rows_of(Noted(text, "warning"), self.pen, 80))

    @property
    def pen(self) -> "Pen":
        """The renderer in the theme's colours, created at first use."""
        if self._pen is None:
            from pegboard_plugins.shared.terminal import Pen, colours_of

            self._pen = Pen(self.palette, colours=colours_of(self.env))
        return self._pen

    @property
    def mode(self) -> Mode | None:
        """The dialog or list that gets the keys; None if the editor gets them."""
        return next((mode for mode in reversed(self.open_modes) if self._has_keys(mode)), None)

    @property
    def open_modes(self) -> Sequence[Mode]:
        """All open dialogs and lists; the last is in front of the others."""
        dialog = self.answering.dialog if self.answering else None
        return (*self.modes, dialog) if dialog else tuple(self.modes)

    def _has_keys(self, mode: Mode) -> bool:
        return not mode.is_unasked or self.attention.has(mode)

    @property
    def state(self) -> ChatState:
        """The state of the chat."""
        assert self.talk is not None
        windows = {f"{it.provider_id}/{it.id}": it.limit.context or 0 for it in self.models}
        return chat_state(self.talk, windows)

    def footer(self, width: int, room: int) -> Sequence[SpanLine]:
        """Return the lines above the editor, at most `room` lines."""
        talk = self.talk
        top = next(reversed(self.open_modes), None)
        waits = top is not None and not self._has_keys(top)
        is_new = isinstance(top, Menu) and waits and not self.draft.text
        if isinstance(top, Menu):
            top.waits = waits
        footing = Footing(
            course=talk.course if talk else None,
            mode=self.mode or top,
            hint=WAITING.format(self.window.key_of("answer")) if waits and not is_new else "",
            queue=[order.text for order in talk.queue] if talk else (),
            edit_key="" if self.draft.text else self.window.key_of("up"),
            is_connected=talk is None or talk.feed.is_connected,
            offered=() if self.mode else self.offers.spans,
            chosen=self.offers.chosen,
            widgets=self.guests.widgets,
            notice=(self.notice or talk.rest.notice or self._shell_notice()) if talk else "",
        )
        return footer_lines(footing, width, room)

    def _shell_notice(self) -> str:
        return SHELL if self.mode is None and self.draft.text.startswith("!") else ""

    def status_line(self, width: int) -> SpanLine:
        """Return the line with agent, model and cost; while the chat starts, return a notice."""
        if self.talk is None:
            return (Span(self.notice, "dim"),)
        queued = len(self.talk.queue)
        return status_line(self.talk.feed.facts, self.state, queued, self.guests.status, width)

    def _draw_in(self, theme: Theme) -> None:
        """Draw in this theme's colours."""
        self.palette = palette_of(theme, has_all_colours=has_all_colours(self.env))
        self._pen = None
        self.window.restyle(self.palette)

    async def choose(self, title: str, items: Sequence[Item], *, current: str = "") -> str | None:
        """Let the user choose an item from a list; return its value, or None."""
        return await self.answer_of(Choice(title, items, current=current))

    async def pick(
        self, title: str, items: Sequence[Item], *, is_called: bool = False
    ) -> str | None:
        """Let the user pick an item by its letter; `is_called` gives the list all keys at once."""
        return await self.answer_of(Menu(title, items), is_called=is_called)

    async def ask(self, title: str) -> str | None:
        """Ask the user for a short text."""
        return await self.answer_of(TextLine(title))

    async def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question, and return whether the user chose yes."""
        return await self.choose(question, [Item(value="no"), Item(value="yes")]) == "yes"

    async def answer_of(self, mode: Choice | TextLine, *, is_called: bool = False) -> str | None:
        """Show a list or text line and return its answer; `is_called` gives it keys at once."""
        self.modes.append(mode)
        self.touch()
        if is_called:
            self.attention.turn()
        try:
            return await mode.answer
        finally:
            self.modes.remove(mode)
            self.touch()

    def _settle(self) -> None:
        """Clear the editor for a dialog that needs text, or restore the user's draft."""
        self.attention.show(next((m for m in reversed(self.open_modes) if m.is_unasked), None))
        mode = self.mode
        wants = mode is not None and mode.edits
        if wants and not self._aside:
            self._aside = True
            self.draft.put_aside()
            self.window.vi.begin()
        elif self._aside and not wants:
            self._aside = False
            self.draft.bring_back()

    def spawn(self, work: Awaitable[None]) -> None:
        """Run a coroutine in the background; its error becomes a warning."""
        task = asyncio.ensure_future(self._guarded(work))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except PegboardError as error:
            if self.talk is None or not self.talk.has_told(error):
                self.warn(str(error))
        self.touch()

    async def show_page(self, lines: Sequence[SpanLine]) -> None:
        """Show lines in the pager until the user leaves it."""
        await self.show_rows(self.pen.lines([tuple(line) for line in lines], self.window.width))

    async def show_rows(self, rows: Sequence[str]) -> None:
        """Show rendered rows in the pager, or above the footer if `less` is missing."""
        if not await self.outside.page(rows):
            self.warn("`less` is not installed, so the page is here:")
            self.window.frames.commit(rows)

    async def _look_up(self, sign: str, letters: str) -> Sequence[Item]:
        if self.talk is None:
            return ()
        directory = self.talk.feed.facts.directory
        own = [Item(value=path) for path in await self.talk.feed.files(letters)]
        return [*own, *await self.guests.complete(sign, letters, directory)]

    def _changed(self, text: str) -> None:
        mode = self.mode
        if mode is not None and mode.edits:
            mode.changed(text)
        else:
            self.offers.changed(text)

    def option(self, name: str) -> Any:  # noqa: ANN401 - what the user's file says
        """Return a setting of the user in `plugins.chat.options`."""
        return self.talk.feed.facts.options.get(name) if self.talk else None
