"""Pegboard: a plugin-first coding-agent framework.

These names are for authors of tools, policies, prompt pieces, text filters and commands, and for
programs that embed an agent. `pegboard.providers`, `pegboard.kit`, `pegboard.storage`,
`pegboard.schema`, `pegboard.errors`, `pegboard.embedding` and `pegboard.cli` have the others;
`pegboard_testing` is the kit for their authors' tests. `pegboard_files` has what tools for files
share, `pegboard_http` what providers do, `pegboard_frontend` and `pegboard_terminal` front ends,
`pegboard_processes` what runs programs.
"""

from functools import cache, partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from pegboard.app import App as App
    from pegboard.contract.context import ChildResult as ChildResult
    from pegboard.contract.context import PermissionContext as PermissionContext
    from pegboard.contract.context import SessionView as SessionView
    from pegboard.contract.context import ToolContext as ToolContext
    from pegboard.contract.host import Compaction as Compaction
    from pegboard.contract.host import CompactionRequest as CompactionRequest
    from pegboard.contract.host import Compactor as Compactor
    from pegboard.contract.host import HookCalls as HookCalls
    from pegboard.contract.host import Host as Host
    from pegboard.contract.host import SideQuestion as SideQuestion
    from pegboard.contract.plugin import Plugin as Plugin
    from pegboard.contract.plugin import evolve as evolve
    from pegboard.contract.plugin import hookimpl as hookimpl
    from pegboard.contract.plugin import hookspec as hookspec
    from pegboard.contract.results import Attachment as Attachment
    from pegboard.contract.results import PendingCall as PendingCall
    from pegboard.contract.results import ToolResult as ToolResult
    from pegboard.contract.tools import Tool as Tool
    from pegboard.contract.tools import tool as tool
    from pegboard.embedding.script import run as run
    from pegboard.errors import InvalidInputError as InvalidInputError
    from pegboard.errors import PegboardError as PegboardError
    from pegboard.errors import PermissionDeniedError as PermissionDeniedError
    from pegboard.errors import ToolError as ToolError
    from pegboard.opening.options import AppOptions as AppOptions
    from pegboard.providers.function import provider as provider
    from pegboard.schema.message import Prompt as Prompt
    from pegboard.schema.session import Ruleset as Ruleset
    from pegboard.workspace import Workspace as Workspace

__version__ = "0.1.0"


def late_names(ring: str, file: str) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """`__getattr__` and `__dir__` of a module that imports its names for type checkers only.

    A name is loaded when it is first asked for, from the module that the ring's source imports it
    from: each name is written once, and importing a ring costs nothing.
    """
    homes = cache(partial(_homes, file))

    def value_of(name: str) -> object:
        if name == "__all__":
            return sorted(homes())
        if name.startswith("__") or name not in homes():
            raise AttributeError(f"module {ring!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(homes()[name]), name)

    return value_of, lambda: sorted(homes())


def _homes(file: str) -> dict[str, str]:
    """Each name of a ring with the module that the ring's source imports it from."""
    import re
    from pathlib import Path

    source = Path(file).read_text("utf-8")
    imports = re.findall(r"^    from (\S+) import (\w+) as \2$", source, re.MULTILINE)
    return {name: home for home, name in imports}


if not TYPE_CHECKING:
    __getattr__, __dir__ = late_names(__name__, __file__)
