"""Sign-ins of plugins, beside keys: `pegboard auth login PROVIDER --with NAME`.

A sign-in that has ended is renewed by its plugin when the provider is asked next.
"""

from collections.abc import Sequence
from types import ModuleType

from pegboard import Host, hookimpl
from pegboard_plugins.auth import hookspecs
from pegboard_plugins.auth.hookspecs import Login as Login


@hookimpl
def register_hooks() -> Sequence[ModuleType]:
    """The hook by which other plugins bring sign-ins."""
    return (hookspecs,)


@hookimpl
async def startup(app: Host) -> None:
    """Have the plugins renew what they have signed in with."""
    if app.hooks.has(hookspecs.register_logins):
        for answer in await app.hooks.collect(hookspecs.register_logins, config=app.config):
            app.keys.renew_with(answer.value.provider_id, answer.value.renew)
