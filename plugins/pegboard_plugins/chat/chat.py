"""The chat: the editor, the footer, the keys, and the conversation behind them."""

import asyncio
import sys
from collections.abc import Awaitable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from pegboard import PegboardError
from pegboard.display import Span
from pegboard.schema.model import Model
from pegboard.schema.session import Session
from pegboard.unstable import one_line
from pegboard_plugins.chat import choosing, permissionmode, slash
from pegboard_plugins.chat.attention import WAITING, Attention
from pegboard_plugins.chat.chatoptions import Open, StartOptions
from pegboard_plugins.chat.chatstate import chat_state
from pegboard_plugins.chat.draft import Draft
from pegboard_plugins.chat.feed import Feed
from pegboard_plugins.chat.finished import Noted, rows_of
from pegboard_plugins.chat.firstrun import first_run
from pegboard_plugins.chat.footer import Footing, footer_lines
from pegboard_plugins.chat.guestcontext import GuestContext
from pegboard_plugins.chat.guests import Guests, palette_of
from pegboard_plugins.chat.hookspecs import ChatKey, ChatState, Theme
from pegboard_plugins.chat.installedcode import InstalledCode
from pegboard_plugins.chat.modes import Choice, Item, Menu, Mode, SpanLine, TextLine
from pegboard_plugins.chat.notices import Notices
from pegboard_plugins.chat.offers import Offers
from pegboard_plugins.chat.outside import Outside, private_file
from pegboard_plugins.chat.statusline import status_line
from pegboard_plugins.chat.surface import has_all_colours
from pegboard_plugins.chat.talk import Talk
from pegboard_plugins.chat.themes import ThemeChoice
from pegboard_plugins.chat.window import Window
from pegboard_plugins.shared.terminal import PALETTE

if TYPE_CHECKING:
    from pegboard_plugins.shared.terminal import Pen

TICK_S = 1.0
"""How often the seconds of running work are counted; at rest there is no timer."""
ENTERED_S = 30.0
"""How long `/reload` waits for the commands that were entered before it."""
SHELL = "shell command: Enter runs it unasked, and the agent sees its output"
UNKNOWN = "{} is from another chat: paste the text again, or press Enter to send it unchanged"


class Chat:
    """One chat on one terminal; `run` returns when the user leaves."""

    def __init__(self, options: StartOptions, env: Mapping[str, str], open_feed: Open) -> None:
        self.options = options
        self.env = env
        self._open = open_feed
        self.talk: Talk | None = None
        self.guests = Guests(None, self.warn)
        self.slashes: dict[str, slash.Slash] = {}
        self.palette: dict[str, str] = dict(PALETTE)
        self._pen: Pen | None = None
        self.modes: list[Choice | TextLine] = []
        self.notice = ""
        self.failed = ""
        self.models: Sequence[Model] = ()
        self.draft = Draft(private_file(env, "chat-history"), self._changed)
        self.offers = Offers(
            self.draft, lambda: slash.items(self.slashes), self._look_up, self.touch
        )
        self.draft.on_placed = self.offers.close
        self.theme = ThemeChoice(self._draw_in)
        self.window = Window(self)
        self.notices = Notices(self.window.painter)
        self.outside = Outside(self.window.screen, self.window.frames, self.notices)
        self.attention = Attention(lambda: bool(self.draft.text), self.touch)
        self.installed = InstalledCode()
        self._aside = False
        self._ready = asyncio.Event()
        self._hearing: asyncio.Task[None] | None = None
        self._ticking: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> int:
        """Run until the user leaves, and return the exit code."""
        loading = asyncio.create_task(self._load())
        try:
            await self.window.run()
        finally:
            loading.cancel()
            await asyncio.gather(loading, return_exceptions=True)
            way_back = self._way_back()
            await self.unload()
        with suppress(OSError):  # the terminal was closed
            sys.stdout.write(way_back)
            sys.stdout.flush()
        return 1 if self.failed else 0

    def _way_back(self) -> str:
        """Return the line on how to resume the session, "" without a session."""
        if self.talk is None or self.talk.course is None:
            return ""
        attach = f" --attach {self.options.attach}" if self.options.attach else ""
        return f"Resume this session: pegboard chat -s {self.talk.course.session.id}{attach}\n"

    async def _load(self) -> None:
        """Open the engine behind the footer that is there already."""
        self.notice = "starting …"
        try:
            await self.load(self.options.session_id, continued=self.options.continued)
            await first_run(self)
        except PegboardError as error:
            self.failed = str(error)
            self.warn(f"{error}\nthe chat cannot start; Ctrl+D leaves")
            return
        finally:
            self.notice = ""
            self.touch()
        if self.options.prompt:
            self.submit(self.options.prompt)

    async def load(self, session_id: str | None, *, continued: bool = False) -> None:
        """Open the feed, and the session to go on with, if there is one."""
        feed = await self._open(self.options)
        frames = self.window.frames
        self.talk = talk = Talk(
            feed, frames.commit, self.touch, lambda: self.window.width, lambda: self.pen
        )
        talk.on_asked = self.notices.asked
        talk.on_rest = self.notices.rested
        talk.on_unsent = lambda order: self.draft.put_back(order.typed)
        talk.choices.agent = self.options.agent or ""
        talk.choices.model = self.options.model or ""
        talk.choices.mode = feed.facts.mode
        self.guests = Guests(feed.hooks, self.warn)
        await self.guests.register()
        self.window.vi.chosen = self.option("editing") == "vi"
        if name := self.option("theme"):
            choosing.draw_in_theme(self, str(name))
        self.models = await feed.models()
        self.slashes = slash.table(await feed.commands(), self.guests.slash)
        self.window.add_keys(self.guests.keys)
        self._hearing = asyncio.create_task(talk.hear())
        self._hearing.add_done_callback(self.window.follow)
        talk.warn_of(feed.facts)
        session = await self._session(feed, session_id, continued=continued)
        if session is not None:
            await talk.resume(session, replayed=self.options.replayed)
        if self.options.mode:
            permissionmode.switch(self, self.options.mode)
        self._changed(self.draft.text)
        self.installed.look()
        self._ready.set()

    async def _session(
        self, feed: Feed, session_id: str | None, *, continued: bool
    ) -> Session | None:
        if session_id is not None:
            return await feed.session(session_id)
        found = await feed.sessions() if continued else ()
        own = [each for each in found if each.directory == str(feed.facts.directory)]
        return await feed.session((own or found)[0].id) if found else None

    async def unload(self) -> None:
        """Close the feed."""
        self._ready.clear()
        self.guests.close()
        if self._ticking is not None:
            self._ticking.cancel()
        for task in tuple(self._tasks):
            task.cancel()
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.gather(self._hearing, return_exceptions=True)
        if self.talk is not None:
            talk, self.talk = self.talk, None
            await talk.aclose()

    async def reload(self) -> None:
        """Reload everything: plugins, settings, the project's own code."""
        session = self.talk.course.session.id if self.talk and self.talk.course else None
        options = self.options
        self.options = msgspec.structs.replace(options, replayed=None, mode=None)
        self._tasks.discard(asyncio.current_task())
        if self._tasks:  # commands that were entered before the reload take effect
            await asyncio.wait(self._tasks, timeout=ENTERED_S)
        await self.unload()
        await self.installed.renew()
        try:
            await self.load(session)
        finally:
            self.options = options

    def leave(self) -> None:
        """End the chat."""
        self.window.leave()

    def touch(self) -> None:
        """Draw the footer with the next frame."""
        self._settle()
        if self.talk is not None:
            self.guests.note(self.state, self.window.frames.touch)
            if self.talk.busy and self._ticking is None:
                self._ticking = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self.window.frames.touch()

    def _tick(self) -> None:
        self._ticking = None
        self.touch()

    def warn(self, text: str) -> None:
        """Say what went wrong, above the footer."""
        if self.talk is not None:
            self.talk.say(text, "warning")
        else:
            self.window.frames.commit(rows_of(Noted(text, "warning"), self.pen, 80))

    @property
    def pen(self) -> "Pen":
        """The pen for the theme's colours, loaded with the first row."""
        if self._pen is None:
            from pegboard_plugins.shared.terminal import Pen, colours_of

            self._pen = Pen(self.palette, colours=colours_of(self.env))
        return self._pen

    @property
    def mode(self) -> Mode | None:
        """The dialog or list that has the keys: a request of the engine before a list."""
        return next((mode for mode in reversed(self.open_modes) if self._has_keys(mode)), None)

    @property
    def open_modes(self) -> Sequence[Mode]:
        """All dialogs and lists that are open, the uppermost last."""
        dialog = self.talk.answering.dialog if self.talk else None
        return (*self.modes, dialog) if dialog else tuple(self.modes)

    def _has_keys(self, mode: Mode) -> bool:
        return not mode.is_unasked or self.attention.has(mode)

    @property
    def state(self) -> ChatState:
        """The state of the chat."""
        assert self.talk is not None
        return chat_state(self.talk, slash.windows(self))

    def footer(self, width: int, room: int) -> Sequence[SpanLine]:
        """Return the lines above the editor."""
        talk = self.talk
        top = next(reversed(self.open_modes), None)
        waits = top is not None and not self._has_keys(top)
        footing = Footing(
            course=talk.course if talk else None,
            mode=self.mode or top,
            hint=WAITING.format(self.window.key_of("answer")) if waits else "",
            queue=[order.text for order in talk.queue] if talk else (),
            edit_key="" if self.draft.text else self.window.key_of("up"),
            is_connected=talk is None or talk.feed.is_connected,
            offered=() if self.mode else self.offers.spans,
            chosen=self.offers.chosen,
            widgets=self.guests.widgets,
            notice=self.notice or (talk.rest.notice if talk else "") or self._shell_notice(),
        )
        return footer_lines(footing, width, room)

    def _shell_notice(self) -> str:
        return SHELL if self.mode is None and self.draft.text.startswith("!") else ""

    def status_line(self, width: int) -> SpanLine:
        """Return the last line: folder, agent, model, window and cost."""
        if self.talk is None:
            return (Span(self.notice, "dim"),)
        queued = len(self.talk.queue)
        return status_line(self.talk.feed.facts, self.state, queued, self.guests.status, width)

    def _draw_in(self, theme: Theme) -> None:
        """Draw in its colours from here on."""
        self.palette = palette_of(theme, has_all_colours=has_all_colours(self.env))
        self._pen = None
        self.window.restyle(self.palette)

    async def choose(self, title: str, items: Sequence[Item], *, current: str = "") -> str | None:
        """Let the user choose an item, and return its value."""
        return await self.answer_of(Choice(title, items, current=current))

    async def pick(
        self, title: str, items: Sequence[Item], *, is_called: bool = False
    ) -> str | None:
        """Return the item whose letter is pressed; `is_called` gives the list the keys at once."""
        return await self.answer_of(Menu(title, items), is_called=is_called)

    async def ask(self, title: str) -> str | None:
        """Ask the user for a short text."""
        return await self.answer_of(TextLine(title))

    async def confirm(self, question: str) -> bool:
        """Return whether the user says yes; no comes first."""
        return await self.choose(question, [Item(value="no"), Item(value="yes")]) == "yes"

    async def answer_of(self, mode: Choice | TextLine, *, is_called: bool = False) -> str | None:
        """Show a list or a line until it is answered."""
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
        """Let the editor be the mode's own while it edits, and as it was afterwards."""
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
        """Run it in the background."""
        task = asyncio.ensure_future(self._guarded(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _guarded(self, work: Awaitable[None]) -> None:
        try:
            await work
        except PegboardError as error:
            if self.talk is None or not self.talk.has_told(error):
                self.warn(str(error))
        self.touch()

    def submit(self, text: str, *, later: bool = False) -> None:
        """Take what was written: a command, a shell line, or words for the model."""
        self.window.vi.begin()
        if not text.strip():
            return
        self.spawn(self._submit(text, later=later))

    async def _submit(self, text: str, *, later: bool) -> None:
        await self._ready.wait()
        talk = self.talk
        assert talk is not None
        if chip := self.draft.unknown(text):
            self.warn(UNKNOWN.format(chip))
            self.draft.put_before(text)
            return
        words, files = self.draft.expanded(text)
        if text.startswith("!") and text[1:].strip():
            async with talk.rest.before(one_line(text)):
                talk.shell(talk.order(words[1:].strip(), typed=text))
        elif not (text.startswith("/") and await slash.run(self, text)):
            order = talk.order(words, files=files, typed=text)
            (talk.later if later else talk.send)(order)

    async def slash(self, name: str) -> None:
        """Run the command of a key, when the session is loaded."""
        await self._ready.wait()
        await slash.act(self, name)

    async def guest_key(self, plugin: str, key: ChatKey) -> None:
        """Run the action of a plugin's key."""
        context = GuestContext(self)
        await self.guests.run(
            plugin, f"the key {key.name}", lambda: key.action(context), waits=lambda: context.waits
        )

    async def show_page(self, lines: Sequence[SpanLine]) -> None:
        """Show lines on the whole screen until the user leaves them."""
        await self.show_rows(self.pen.lines([tuple(line) for line in lines], self.window.width))

    async def show_rows(self, rows: Sequence[str]) -> None:
        """Show drawn rows on the whole screen until the user leaves them."""
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
        """Return the user's setting of this name under `plugins.chat.options`."""
        return slash.options(self).get(name)
