"""The chat: the editor, the footer, the keys, and the conversation."""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from pegboard import PegboardError
from pegboard.schema.session import Session
from pegboard.unstable import one_line
from pegboard_plugins.chat import choosing, permissionmode, sessioning, slash
from pegboard_plugins.chat.answering import Answering
from pegboard_plugins.chat.chatoptions import Choices, Open, StartOptions
from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.firstrun import first_run
from pegboard_plugins.chat.guestcontext import GuestContext
from pegboard_plugins.chat.guests import Guests
from pegboard_plugins.chat.hookspecs import ChatKey
from pegboard_plugins.chat.talk import Talk
from pegboard_plugins.chat.window import Window
from pegboard_plugins.shared.frontend import Feed

ENTERED_S = 30.0
"""The longest wait of `/reload` for commands that were entered before it."""
UNKNOWN = "{} is from another chat: paste the text again, or press Enter to send it unchanged"


class Chat(Desk):
    """One chat on one terminal; `run` returns when the user leaves."""

    window: Window

    def __init__(self, options: StartOptions, env: Mapping[str, str], open_feed: Open) -> None:
        super().__init__(options, env, Window)
        self._open = open_feed
        self._ready = asyncio.Event()
        self._hearing: asyncio.Task[None] | None = None

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
        """Return the line with the command that resumes the session, or "" without a session."""
        if self.talk is None or self.talk.course is None:
            return ""
        attach = f" --attach {self.options.attach}" if self.options.attach else ""
        return f"Resume this session: pegboard chat -s {self.talk.course.session.id}{attach}\n"

    async def _load(self) -> None:
        """Load the sessions, show the first screen, and send the prompt of the command line."""
        self.notice = "starting …"
        try:
            await self.load(self.options.session_id, continued=self.options.continued)
            await first_run(self)
        except PegboardError as error:
            self.failed = str(error)
            self.window.edit_with(None)
            self.warn(f"{error}\nthe chat cannot start; Ctrl+D leaves")
            return
        finally:
            self.notice = ""
            self.touch()
        if self.options.prompt:
            self.submit(self.options.prompt)

    async def load(
        self, session_id: str | None, *, continued: bool = False, chosen: Choices | None = None
    ) -> None:
        """Connect to the project's sessions, and resume a session if the caller asks for one.

        This is the session `session_id`, or with `continued` the newest one. `chosen` are the
        user's choices so far, except the permission mode; None means the start options.
        """
        feed = await self._open(self.options)
        options, frames = self.options, self.window.frames
        chosen = chosen or Choices(agent=options.agent or "", model=options.model or "")
        self.talk = talk = Talk(
            feed, frames.commit, self.touch, lambda: self.window.width, lambda: self.pen
        )
        self.answering = Answering(talk, self.notices.asked)
        talk.on_requests = self.answering.look
        talk.on_rest = self.notices.rested
        talk.on_unsent = lambda order: self.draft.put_back(order.typed)
        talk.choices = replace(chosen, mode=feed.mode)
        self.guests = Guests(feed.hooks, self.warn)
        await self.guests.register()
        self.window.edit_with(self.option("editing"))
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
            return await sessioning.session_here(feed, session_id)
        newest = await feed.newest() if continued else None
        return await sessioning.session_here(feed, newest.id) if newest else None

    async def unload(self) -> None:
        """Stop the background tasks, and close the connection to the sessions."""
        self._ready.clear()
        self.guests.close()
        if self.ticking is not None:
            self.ticking.cancel()
        for task in tuple(self.tasks):
            task.cancel()
        if self._hearing is not None:
            self._hearing.cancel()
            await asyncio.gather(self._hearing, return_exceptions=True)
        if self.talk is not None:
            talk, self.talk, self.answering = self.talk, None, None
            await talk.aclose()

    async def reload(self) -> None:
        """Connect to the sessions again, with the current plugins, settings and project code."""
        session = self.talk.course.session.id if self.talk and self.talk.course else None
        options, chosen = self.options, self.talk.choices if self.talk else None
        self.options = replace(options, replayed=None, mode=None)
        self.tasks.discard(asyncio.current_task())
        if self.tasks:  # commands that were entered before the reload take effect
            await asyncio.wait(self.tasks, timeout=ENTERED_S)
        await self.unload()
        await self.installed.renew()
        try:
            await self.load(session, chosen=chosen)
        finally:
            self.options = options

    def submit(self, text: str, *, later: bool = False) -> None:
        """Run the text as a slash command or shell command, or else send it as a prompt."""
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
        """Run the slash command that a key is bound to, once the session is loaded."""
        await self._ready.wait()
        await slash.act(self, name)

    async def guest_key(self, plugin: str, key: ChatKey) -> None:
        """Run the action of a plugin's key."""
        context = GuestContext(self)
        await self.guests.run(
            plugin, f"the key {key.name}", lambda: key.action(context), waits=lambda: context.waits
        )
