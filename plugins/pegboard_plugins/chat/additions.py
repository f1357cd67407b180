"""What plugins may give to the chat: commands, keys, items of its footer, themes."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from pegboard.kit import Span


def short_count(tokens: int) -> str:
    """Tokens in a few letters: 980, 128k, 1.05M."""
    for size, letter in ((10**6, "M"), (10**3, "k")):
        if tokens >= size:
            return f"{tokens / size:.3g}{letter}"
    return str(tokens)


class ChatState(msgspec.Struct, frozen=True, kw_only=True):
    """How things stand, for what is shown of them.

    `window` is what the model reads at most, in tokens, 0 where nobody knows; `cost` is in US
    dollars, None where a price is not known.
    """

    directory: Path
    session_id: str = ""
    title: str = ""
    agent: str = ""
    model: str = ""
    variant: str = ""
    busy: bool = False
    tokens: int = 0
    window: int = 0
    cost: float | None = 0.0
    files: int = 0
    additions: int = 0
    deletions: int = 0


class ChatContext(Protocol):
    """What a command or a key of a plugin may do.

    `choose`, `confirm` and `input` are questions in the session: every client that shows it can
    answer them, and whoever is first does. Who stops the session, leaves the chat or goes to
    another session leaves them unanswered.
    """

    @property
    def state(self) -> ChatState:
        """How things stand."""
        ...

    def say(self, text: str) -> None:
        """Put lines above the footer for good."""
        ...

    async def choose(self, title: str, choices: Sequence[str]) -> str | None:
        """One of these, None when the person leaves, or nobody is there."""
        ...

    async def confirm(self, question: str) -> bool:
        """Whether the person says yes."""
        ...

    async def input(self, title: str) -> str | None:
        """A short text, None when the person leaves."""
        ...

    async def edit(self, text: str) -> str | None:
        """The text as the person leaves it in their own editor, None when it fails."""
        ...

    async def open_page(self, title: str, text: str) -> None:
        """Show a long text on the whole screen until the person leaves it."""
        ...

    async def prompt(self, text: str) -> None:
        """Send a prompt as if the person had."""
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
    """A key in prompt_toolkit's spelling (`c-x`, `f5`, `escape o`), and what it does."""

    key: str
    name: str
    help: str
    action: Callable[[ChatContext], Awaitable[None]]


class StatusItem(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the status line; where there is no room those of low priority go first."""

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
    """A text that may stand where the person writes, and what it is."""

    text: str
    note: str = ""
