"""The chat's hooks, with which plugins add commands, keys, lines and themes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from pegboard import hookspec
from pegboard.display import Span


class ChatState(msgspec.Struct, frozen=True, kw_only=True):
    """The state of the chat, for drawing.

    `window` is what the model reads at most, in tokens, 0 where nobody knows. `cost` is that of
    the session in US dollars, with its subagents; None where that of a request is not known.
    `known_cost` is without those requests. `mode` is the permission mode.
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

    `choose`, `confirm` and `input` are questions in the session: every client that shows it can
    answer them, and whoever is first does. Who stops the session, leaves the chat or goes to
    another session leaves them unanswered.
    """

    @property
    def state(self) -> ChatState:
        """The state of the chat."""
        ...

    def say(self, text: str) -> None:
        """Put lines above the footer for good."""
        ...

    async def choose(self, title: str, choices: Sequence[str]) -> str | None:
        """Let the user choose one of these; None when they leave, or without a user."""
        ...

    async def confirm(self, question: str) -> bool:
        """Return whether the user says yes."""
        ...

    async def input(self, title: str) -> str | None:
        """Ask the user for a short text; None when they cancel."""
        ...

    async def edit(self, text: str) -> str | None:
        """Let the user edit the text in their own editor; None when that fails."""
        ...

    async def open_page(self, title: str, text: str) -> None:
        """Show a long text on the whole screen until the user leaves it."""
        ...

    async def prompt(self, text: str) -> None:
        """Send a prompt as if the user had."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    """A command: `/name argument`. `action` gets the context and the argument."""

    name: str
    help: str
    action: Callable[[ChatContext, str], Awaitable[None]]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatKey:
    """A key in prompt_toolkit's spelling (`c-x`, `f5`, `escape o`), and its action."""

    key: str
    name: str
    help: str
    action: Callable[[ChatContext], Awaitable[None]]


class StatusItem(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the status line; when room is short, low priority goes first."""

    id: str
    text: str
    priority: int = 0


class FooterWidget(msgspec.Struct, frozen=True, kw_only=True):
    """At most five lines of the footer."""

    id: str
    lines: tuple[tuple[Span, ...], ...]


class Theme(msgspec.Struct, frozen=True, kw_only=True):
    """Roles to styles: colours by name or as `#rrggbb`, `bold`, `dim`, `italic`, `reverse`."""

    name: str
    palette: Mapping[str, str]


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """A completion for the user's input, with a description."""

    text: str
    note: str = ""


DRAWN_WITHIN_S = 0.5


@hookspec("collect", when="show", since="0.1")
def register_slash() -> Sequence[SlashCommand] | None:
    """Return slash commands of the chat itself, in addition to those that become prompts.

    Called once when the chat has its App. A name that the chat has stays the chat's. Collect: a
    plugin that raises is reported and left out. What a command's action raises is shown with the
    plugin's name.

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
    """Return keys of the chat.

    Called once when the chat has its App. A key that is taken is reported and stays as it is;
    `plugins.chat.options.keys` of the user's configuration gives a name another key. Collect: a
    plugin that raises is reported and left out.

    The example of `register_slash` has one.
    """


@hookspec("collect", limit_s=DRAWN_WITHIN_S, when="show", since="0.1")
def status_items(state: ChatState) -> Sequence[StatusItem] | None:
    """Return pieces of the status line.

    Called when something of the state has changed, not more than once a second. Collect: a
    plugin that raises, or takes half a second, is reported and its items are missing.

    The example of `register_slash` has one.
    """


@hookspec("collect", limit_s=DRAWN_WITHIN_S, when="show", since="0.1")
def footer_widget(state: ChatState) -> Sequence[FooterWidget] | None:
    """Return lines of the footer.

    Called when something of the state has changed, not more than once a second; they are left
    out where the terminal has too few rows. Collect: a plugin that raises, or takes half a
    second, is reported and its lines are missing.

    The example of `register_slash` has one.
    """


@hookspec("collect", when="show", since="0.1")
def register_themes() -> Sequence[Theme] | None:
    """Return themes of the chat.

    Called once when the chat has its App. Collect: a plugin that raises is reported and left
    out; of two themes with one name the newest counts.

    The example of `register_slash` has one.
    """


@hookspec("collect", when="show", since="0.1")
def complete(kind: str, text: str, directory: Path) -> Sequence[Completion] | None:
    """Return completions for a word after a sign, such as `@` for a file.

    Called while the user writes such a word, at most once for each state of it. Collect: a plugin
    that raises is reported and its texts are missing.

    - kind: the sign, `@`.
    - text: what is written behind it.
    - directory: the project's folder.

    The example of `register_slash` has one.
    """
