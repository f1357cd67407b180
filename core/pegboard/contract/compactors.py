"""A way to shorten a history: the engine decides when, and a compactor of a plugin how.

The engine stores the outcome, and refuses one that gains too little. What came before stays in the
database; only the model's view of the session begins anew.
"""

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from pegboard.contract.context import SessionView
from pegboard.schema.message import Turn
from pegboard.schema.session import Todo


class CompactionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A history that has to become shorter.

    `session.turns` are what the model sees now, after `chat_messages_transform`; so is `first`, the
    session's first prompt, also when it is out of the model's view already. `session.model` is
    the one that `ask` asks.
    `answering` are the ids of the prompts that wait for their answer: they stay whatever the
    compactor says. `prompt` asks for a summary, in the words that the `session_compacting` hook
    has left. `room_tokens` is about how much a text for `ask` may hold, `keep_tokens` how much
    may stay word for word. `auto` says that the window is full and not the user asked.

    `ask` gives the model's answer to a text, and shows it as it comes. It raises
    `ContextOverflowError` when the text is too long, and `ProviderError` when the model cannot
    be asked.
    """

    session: SessionView
    first: Turn | None
    answering: tuple[str, ...]
    todos: tuple[Todo, ...]
    prompt: str
    room_tokens: int
    keep_tokens: int
    auto: bool
    ask: Callable[[str], Awaitable[str]]


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """The replacement of a history: a summary, and what stays word for word.

    `pinned` are texts that the model reads before the summary. `kept` are ids of turns of the
    view that follow it as they were; a turn keeps its tool calls with their results.
    """

    summary: str
    pinned: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Compactor(Protocol):
    """A way to shorten a history; the newest one that plugins register is used."""

    async def compact(self, request: CompactionRequest) -> Compaction:
        """The replacement of the history.

        Any error ends the turn with its text and leaves the history as it is. The engine waits
        ten minutes at most.
        """
        ...
