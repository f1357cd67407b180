"""The chat's hooks, with which plugins add commands, keys, footer lines and themes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from pegboard import hookspec
from pegboard.display import Span


class ChatState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the chat, for display.

    `window` is the model's context window in tokens, or 0 if unknown. `cost` is the cost of the
    session and its subagents in US dollars, or None if the cost of a request is unknown.
    `known_cost` is the sum of the known costs. `mode` is the permission mode.
    """

    directory: Path
    session_id: str = ""
    title: str = ""
    agent: str = ""
    model: str = ""
    variant: str = ""
    mode: str = ""
    busy: bool = False
    tokens: int = 0
    window: int = 0
    cost: float | None = 0.0
    known_cost: float = 0.0
    files: int = 0
    additions: int = 0
    deletions: int = 0


class ChatContext(Protocol):
    """The context of a plugin's command or key.

    `choose`, `confirm` and `input` ask questions in the session. Every client of the session can
    answer them, and the first answer counts. They stay unanswered when the user stops the session,
    leaves the chat, or switches to another session.
    """

    @property
    def state(self) -> ChatState:
        """The current state of the chat."""
        ...

    def say(self, text: str) -> None:
        """Print lines above the footer."""
        ...

    async def choose(self, title: str, choices: Sequence[str]) -> str | None:
        """Let the user choose one of `choices`; return None if they decline, or without a user."""
        ...

    async def confirm(self, question: str) -> bool:
        """Ask a yes-or-no question, and return whether the user chose yes."""
        ...

    async def input(self, title: str) -> str | None:
        """Ask the user for a short text; return None if they cancel."""
        ...

    async def edit(self, text: str) -> str | None:
        """Let the user edit the text in their own editor; return None if this fails."""
        ...

    async def open_page(self, title: str, text: str) -> None:
        """Show a long text in a pager until the user leaves it."""
        ...

    async def prompt(self, text: str) -> None:
        """Send a prompt as if the user had typed it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    """A slash command `/name argument`; `action` gets the context and the argument."""

    name: str
    help: str
    action: Callable[[ChatContext, str], Awaitable[None]]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatKey:
    """A key in prompt_toolkit's notation (`c-x`, `f5`, `escape o`), and its action."""

    key: str
    name: str
    help: str
    action: Callable[[ChatContext], Awaitable[None]]


class StatusItem(msgspec.Struct, frozen=True, kw_only=True):
    """An item of the status line; in a narrow window, items of low priority are left out."""

    id: str
    text: str
    priority: int = 0


class FooterWidget(msgspec.Struct, frozen=True, kw_only=True):
    """A widget of at most five lines in the footer."""

    id: str
    lines: tuple[tuple[Span, ...], ...]


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """A theme of colours for the chat.

    `palette` maps a role, such as `added`, to colours (by name or `#rrggbb`) and words such as
    `bold`.
    """

    name: str
    palette: Mapping[str, str]


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """A completion of the word before the cursor, with a description."""

    text: str
    note: str = ""


DRAWN_WITHIN_S = 0.5


@hookspec("collect", when="show", since="0.1")
def register_slash() -> Sequence[SlashCommand] | None:
    """Return slash commands of the chat itself, in addition to those that become prompts.

    Called once when the chat has opened its App. The chat's own commands cannot be replaced.
    Collect: a plugin that raises is reported and left out. An error of a command's action is
    displayed with the plugin's name.

    ```python
    from pathlib import Path

    from pegboard import hookimpl
    from pegboard.display import Span
    from pegboard_plugins.chat import (
        ChatContext,
        ChatKey,
        ChatState,
        Completion,
        FooterWidget,
        SlashCommand,
        StatusItem,
        Theme,
    )


    async def greet(ctx: ChatContext, text: str) -> None:
        ctx.say(f"Good day, {text or 'you'}!")


    async def wave(ctx: ChatContext) -> None:
        ctx.say("o/")


    @hookimpl(optionalhook=True)
    async def register_slash() -> tuple[SlashCommand, ...]:
        return (SlashCommand(name="greet", help="Greets somebody.", action=greet),)


    @hookimpl(optionalhook=True)
    async def register_keys() -> tuple[ChatKey, ...]:
        return (ChatKey(key="f9", name="wave", help="Waves.", action=wave),)


    @hookimpl(optionalhook=True)
    async def status_items(state: ChatState) -> tuple[StatusItem, ...]:
        return (StatusItem(id="folder", text=state.directory.name),)


    @hookimpl(optionalhook=True)
    async def footer_widget(state: ChatState) -> tuple[FooterWidget, ...]:
        return (FooterWidget(id="tokens", lines=((Span(f"{state.tokens} tokens", "dim"),),)),)


    @hookimpl(optionalhook=True)
    async def register_themes() -> tuple[Theme, ...]:
        return (Theme(name="plain", palette={"added": "green", "removed": "red"}),)


    @hookimpl(optionalhook=True)
    async def complete(kind: str, text: str, directory: Path) -> tuple[Completion, ...]:
        return (Completion(text="issue-12", note="the one about the cart"),) if kind == "@" else ()
    ```
    """


@hookspec("collect", when="show", since="0.1")
def register_keys() -> Sequence[ChatKey] | None:
    """Return keys for the chat.

    Called once when the chat has opened its App. A key that is already bound is reported and stays
    as it is. The user's setting `plugins.chat.options.keys` can assign another key to a name.
    Collect: a plugin that raises is reported and left out.

    The example of `register_slash` also registers a key.
    """


@hookspec("collect", limit_s=DRAWN_WITHIN_S, when="show", since="0.1")
def status_items(state: ChatState) -> Sequence[StatusItem] | None:
    """Return items of the status line.

    Called when the state has changed, at most once a second. Collect: a plugin that raises, or
    takes half a second, is reported and its items are missing.

    The example of `register_slash` also has a status item.
    """


@hookspec("collect", limit_s=DRAWN_WITHIN_S, when="show", since="0.1")
def footer_widget(state: ChatState) -> Sequence[FooterWidget] | None:
    """Return widgets for the footer.

    Called when the state has changed, at most once a second. Widgets are left out if the terminal
    has too few rows. Collect: a plugin that raises, or takes half a second, is reported and its
    widgets are missing.

    The example of `register_slash` also has a widget.
    """


@hookspec("collect", when="show", since="0.1")
def register_themes() -> Sequence[Theme] | None:
    """Return themes for the chat.

    Called once when the chat has opened its App. Collect: a plugin that raises is reported and left
    out. Of two themes with the same name, the theme of the newest plugin counts.

    The example of `register_slash` also registers a theme.
    """


@hookspec("collect", when="show", since="0.1")
def complete(kind: str, text: str, directory: Path) -> Sequence[Completion] | None:
    """Return completions for a word that begins with `@`.

    Called each time the word changes while the user types it. Collect: a plugin that raises is
    reported and its completions are missing.

    - kind: the first character of the word, always `@`.
    - text: the letters after this character.
    - directory: the project's folder.

    The example of `register_slash` also has a completion.
    """
