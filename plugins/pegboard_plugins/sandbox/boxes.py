"""The built-in sandboxes: bubblewrap where it is installed, else what Landlock can hold."""

from pegboard import hookimpl
from pegboard_plugins.sandbox.hookspecs import Sandbox


@hookimpl(optionalhook=True)
async def register_sandboxes() -> list[Sandbox]:
    """Bubblewrap, which can hold everything, before Landlock."""
    # Only who asks for a sandbox pays for these.
    from pegboard_plugins.sandbox.bubblewrap import Bubblewrap
    from pegboard_plugins.sandbox.landlock import Landlock

    return [Bubblewrap(), Landlock()]
