"""The sandbox around the processes of tools: what they may access, and which sandbox is used."""

from types import ModuleType
from typing import TYPE_CHECKING

from pegboard import HookCalls, hookimpl
from pegboard_plugins.sandbox import hookspecs
from pegboard_plugins.sandbox.hookspecs import Sandbox as Sandbox
from pegboard_plugins.sandbox.hookspecs import SandboxPolicy as SandboxPolicy
from pegboard_plugins.sandbox.hookspecs import register_sandboxes as register_sandboxes

if TYPE_CHECKING:
    from pegboard_plugins.sandbox.enclosure import Builder


@hookimpl
def register_hooks() -> tuple[ModuleType, ...]:
    """Register the hook with which plugins add sandboxes."""
    return (hookspecs,)


@hookimpl
async def register_encloser(hooks: HookCalls) -> "Builder":
    """Return a builder that encloses processes in the first sandbox that can enforce the level."""
    from pegboard_plugins.sandbox.enclosure import Builder  # only who asks for it pays for it

    return Builder(hooks)


class BuiltinSandboxes:
    """The plugin `sandboxes`, which registers bubblewrap, and Landlock as a substitute."""

    @hookimpl(optionalhook=True)
    async def register_sandboxes(self) -> list[Sandbox]:
        """Register bubblewrap, which can enforce every policy, before Landlock."""
        # Only who asks for a sandbox pays for these.
        from pegboard_plugins.sandbox.bubblewrap import Bubblewrap
        from pegboard_plugins.sandbox.landlock import Landlock

        return [Bubblewrap(), Landlock()]


sandboxes = BuiltinSandboxes()
