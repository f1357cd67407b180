"""The options of one chat, as the command line gives them."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from pegboard_plugins.chat.feed import Feed


class StartOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The user's options on the command line."""

    directory: Path
    continued: bool = False
    session_id: str | None = None
    attach: str | None = None
    password: str | None = None
    model: str | None = None
    agent: str | None = None
    mode: str | None = None
    trust: bool = False
    sandbox: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    replayed: int | None = 20
    prompt: str = ""


Open = Callable[[StartOptions], Awaitable[Feed]]
