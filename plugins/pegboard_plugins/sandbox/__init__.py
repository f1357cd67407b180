"""The walls around the processes of tools: how far they may reach, and who holds them to it."""

from collections.abc import Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from pegboard import HookCalls, hookimpl
from pegboard_plugins.sandbox import hookspecs
from pegboard_plugins.sandbox.hookspecs import Sandbox as Sandbox
from pegboard_plugins.sandbox.hookspecs import SandboxPolicy as SandboxPolicy

if TYPE_CHECKING:
    from pegboard_plugins.sandbox.enclosure import Builder


@hookimpl
def register_hooks() -> Sequence[ModuleType]:
    """`register_sandboxes`, for the ways to hold processes."""
    return (hookspecs,)


@hookimpl
async def register_encloser(hooks: HookCalls) -> "Builder":
    """What encloses processes by the first sandbox that can hold the level."""
    from pegboard_plugins.sandbox.enclosure import Builder  # only who asks for it pays for it

    return Builder(hooks)
