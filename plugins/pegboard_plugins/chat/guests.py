"""The additions of plugins to the chat, and calls of plugins' code."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from math import inf
from pathlib import Path

from pegboard import HookCalls
from pegboard_plugins.chat import hookspecs
from pegboard_plugins.chat.hookspecs import ChatKey, ChatState, SlashCommand, StatusItem, Theme
from pegboard_plugins.chat.modes import Item, SpanLine
from pegboard_plugins.shared.terminal import PALETTE

WIDGET_LINES = 5
ASKED_EVERY_S = 1.0
BEAT_S, HELD_S, HANGS_S = 0.5, 1.0, 10.0
"""The interval of checks on a plugin's code, and the times after which it counts as blocking or
hanging."""
Report = Callable[[str], None]
Action = Callable[[], Awaitable[None]]


class Guests:
    """The additions of one App's plugins to the chat: commands, keys, themes and widgets."""

    def __init__(self, hooks: HookCalls | None, report: Report) -> None:
        self._hooks = hooks
        self._report = report
        self.slash: dict[str, tuple[str, SlashCommand]] = {}
        self.keys: dict[str, tuple[str, ChatKey]] = {}
        self.themes: dict[str, Theme] = {}
        self.status: tuple[StatusItem, ...] = ()
        self.widgets: tuple[SpanLine, ...] = ()
        self._asked: ChatState | None = None
        self._wanted: ChatState | None = None
        self._asking: asyncio.Task[None] | None = None

    async def register(self) -> None:
        """Collect the commands, keys and themes of the plugins."""
        if self._hooks is None:
            return
        for command in await self._hooks.collect(hookspecs.register_slash):
            self.slash.setdefault(command.value.name, (command.plugin, command.value))
        for key in await self._hooks.collect(hookspecs.register_keys):
            if key.value.key in self.keys:
                other = self.keys[key.value.key][0]
                self._report(f"plugin {key.plugin}: the key {key.value.key} is {other}'s")
            else:
                self.keys[key.value.key] = (key.plugin, key.value)
        for theme in await self._hooks.collect(hookspecs.register_themes):
            self.themes[theme.value.name] = theme.value

    def note(self, state: ChatState, touch: Callable[[], None]) -> None:
        """Ask plugins for status items and widgets if `state` changed; `touch` draws the footer."""
        self._wanted = state
        if self._hooks is None or state == self._asked or self._asking is not None:
            return
        self._asking = asyncio.create_task(self._ask(self._hooks, touch))

    async def _ask(self, hooks: HookCalls, touch: Callable[[], None]) -> None:
        while (state := self._wanted) is not None and state != self._asked:
            self._asked = state
            items = await hooks.collect(hookspecs.status_items, state=state)
            widgets = await hooks.collect(hookspecs.footer_widget, state=state)
            self.status = tuple(item.value for item in items)
            self.widgets = tuple(
                line for each in widgets for line in each.value.lines[:WIDGET_LINES]
            )
            touch()
            await asyncio.sleep(ASKED_EVERY_S)
        self._asking = None

    async def complete(self, kind: str, text: str, directory: Path) -> Sequence[Item]:
        """Return the plugins' completions for `text`, a word after the sign `kind`, such as `@`."""
        if self._hooks is None:
            return ()
        found = await self._hooks.collect(
            hookspecs.complete, kind=kind, text=text, directory=directory
        )
        return [Item(value=each.value.text, note=each.value.note) for each in found]

    async def run(
        self, plugin: str, what: str, action: Action, *, waits: Callable[[], bool]
    ) -> None:
        """Run an action of a plugin, and report the plugin if it raises, blocks the chat, or hangs.

        `what` names the action in the report. `waits` returns whether the action waits for the
        user, which does not count as hanging.
        """
        name = f"plugin {plugin}: {what}"
        watch = asyncio.create_task(self._watch(name, waits))
        await asyncio.sleep(0)  # the watch begins
        try:
            await action()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a plugin's command or key is foreign code
            self._report(f"{name} raised {type(error).__name__}: {error}")
        finally:
            watch.cancel()

    async def _watch(self, name: str, waits: Callable[[], bool]) -> None:
        """Report each time that the action `name` blocks the event loop, and once if it hangs."""
        loop = asyncio.get_running_loop()
        ends_by = loop.time() + HANGS_S
        while True:
            begun = loop.time()
            try:
                await asyncio.sleep(BEAT_S)
            finally:
                held_s = loop.time() - begun - BEAT_S
                if held_s > HELD_S:
                    self._report(f"{name} held everything up for {held_s:.0f} s")
            if waits():
                ends_by = loop.time() + HANGS_S
            elif loop.time() > ends_by:
                ends_by = inf
                self._report(f"{name} has not ended in {HANGS_S:g} s; the chat goes on without it")

    def close(self) -> None:
        """Stop calling the plugins."""
        self._hooks = None
        if self._asking is not None:
            self._asking.cancel()


def palette_of(theme: Theme, *, has_all_colours: bool) -> dict[str, str]:
    """Return the styles of a theme by role, such as `added`; missing roles get default styles.

    A terminal with few colours gets no background for changed rows of a diff, because its nearest
    colour may be far too bright.
    """
    palette = {**PALETTE, **theme.palette}
    return palette if has_all_colours else {**palette, "added_row": "", "removed_row": ""}
