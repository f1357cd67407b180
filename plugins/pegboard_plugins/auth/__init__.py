"""The keys that are kept, and sign-ins of plugins: `pegboard auth login PROVIDER --with NAME`.

A sign-in that has ended is renewed by its plugin when the provider is asked next.
"""

from collections.abc import Mapping, Sequence
from types import ModuleType

from pegboard import Host, Workspace, hookimpl
from pegboard.embedding import Places
from pegboard.providers import KeyStore
from pegboard_plugins.auth import hookspecs
from pegboard_plugins.auth.hookspecs import Login as Login
from pegboard_plugins.auth.keystore import KeptKeyStore


@hookimpl
def register_hooks() -> Sequence[ModuleType]:
    """The hook by which other plugins bring sign-ins."""
    return (hookspecs,)


@hookimpl
async def register_keystore(
    env: Mapping[str, str], places: Places, workspace: Workspace
) -> KeyStore:
    """The user's key commands, the system's keyring, and the files beside the user's data."""
    return KeptKeyStore(places, env, root=workspace.worktree)


@hookimpl
async def startup(app: Host) -> None:
    """Have the plugins renew what they have signed in with."""
    if app.hooks.has(hookspecs.register_logins):
        for answer in await app.hooks.collect(hookspecs.register_logins, config=app.config):
            app.keys.renew_with(answer.value.provider_id, answer.value.renew)
