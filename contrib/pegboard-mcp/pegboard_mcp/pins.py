"""Pins: the tool definitions that Pegboard first listed or that the user last reviewed.

The instructions of a server are pinned in the same way. The pins are in the plugin's data folder,
which no tool may write. The catalogue, in contrast, is only a cache.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import unified_diff
from pathlib import Path
from typing import Any

import msgspec

from pegboard.plugins import lock_file, replace_file
from pegboard_mcp.listing import ServerTool


class Pin(msgspec.Struct, frozen=True, kw_only=True):
    """The definition of a tool that was listed first or reviewed last.

    The user's first call or review sets `is_approved`. `definition` is JSON text that only a review
    parses.
    """

    digest: str
    definition: msgspec.Raw = msgspec.Raw(b"{}")
    is_approved: bool = False


class Pins(msgspec.Struct, frozen=True):
    """The pins of a server by tool name; `server` is the server's name with its command or URL.

    `instructions` is None until the server has listed its tools once.
    """

    server: str = ""
    tools: dict[str, Pin] = {}
    instructions: str | None = None

    def offered(self, tools: Iterable[ServerTool]) -> tuple[ServerTool, ...]:
        """Return the tools with the same definition as their pin."""
        return tuple(each for each in tools if self._has(each))

    def changed(self, tools: Iterable[ServerTool]) -> tuple[ServerTool, ...]:
        """Return the tools with a different definition than their pin."""
        return tuple(each for each in tools if each.name in self.tools and not self._has(each))

    def is_approved(self, tool: str) -> bool:
        """Return whether the user has allowed a call of the tool, or has reviewed the tool."""
        return tool in self.tools and self.tools[tool].is_approved

    def _has(self, tool: ServerTool) -> bool:
        pin = self.tools.get(tool.name)
        return pin is not None and pin.digest == tool.digest


class PinFile:
    """The file that stores the pins of a server."""

    def __init__(self, path: Path, server: str) -> None:
        self._path = path
        self._server = server

    def read(self) -> Pins:
        """Read the pins; empty if there is no file.

        :raises OSError: when the file cannot be read.
        :raises msgspec.MsgspecError: when the file is damaged.
        """
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=Pins)
        except FileNotFoundError:
            return Pins(self._server)

    def pin_new(self, tools: Sequence[ServerTool], instructions: str) -> Pins:
        """Pin the tools without a pin, and return all pins."""
        known = self.read()
        new = [each for each in tools if each.name not in known.tools]
        if not new and known.instructions is not None:
            return known
        first = {each.name: _pin(each) for each in new}
        return self._change(
            lambda pins: Pins(
                self._server,
                {**first, **pins.tools},
                instructions if pins.instructions is None else pins.instructions,
            )
        )

    def approve(self, tools: Iterable[ServerTool], instructions: str | None = None) -> Pins:
        """Pin these definitions and instructions as approved by the user."""
        chosen = {each.name: _pin(each, is_approved=True) for each in tools}
        return self._change(
            lambda pins: Pins(
                self._server,
                {**pins.tools, **chosen},
                pins.instructions if instructions is None else instructions,
            )
        )

    def _change(self, change: Callable[[Pins], Pins]) -> Pins:
        with lock_file(self._path):
            pins = change(self.read())
            replace_file(self._path, msgspec.json.encode(pins))
        return pins


def definition_diff(pin: Pin | None, tool: ServerTool) -> str:
    """Return the difference between a tool's pinned and current definition as text."""
    old = _lines(msgspec.json.decode(pin.definition)) if pin is not None else []
    return "\n".join(unified_diff(old, _lines(tool.definition), "reviewed", "now", lineterm=""))


def instructions_diff(pin: str, now: str) -> str:
    """Return the difference between a server's pinned and current instructions as text."""
    lines = unified_diff(pin.splitlines(), now.splitlines(), "reviewed", "now", lineterm="")
    return "\n".join(lines)


def _lines(definition: Mapping[str, Any]) -> list[str]:
    return json.dumps(definition, indent=2, sort_keys=True).splitlines()


def _pin(tool: ServerTool, *, is_approved: bool = False) -> Pin:
    definition = msgspec.Raw(msgspec.json.encode(tool.definition))
    return Pin(digest=tool.digest, definition=definition, is_approved=is_approved)
