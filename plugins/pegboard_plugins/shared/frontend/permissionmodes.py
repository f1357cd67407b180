"""Permission modes: how much an agent may do before the user is asked."""

from collections.abc import Mapping
from typing import Any

import msgspec

from pegboard import App
from pegboard.schema.config import Config, Effect
from pegboard.schema.session import Rule, Session
from pegboard.storage import ChangeSession

ASK = "ask"
ACCEPT_EDITS = "accept-edits"
PLAN = "plan"
EVERYTHING = "everything"
_KEY = "mode"
"""The key of the permission mode in a session's metadata."""


class PermissionMode(msgspec.Struct, frozen=True, kw_only=True):
    """A permission mode, in which tools with one of these `effects` need no permission.

    A configured rule can still ask or deny.
    """

    name: str
    help: str
    effects: frozenset[Effect]


_LOOKS: frozenset[Effect] = frozenset({"reads", "delegates"})
MODES: Mapping[str, PermissionMode] = {
    each.name: each
    for each in (
        PermissionMode(name=ASK, help="ask before edits and commands", effects=_LOOKS),
        PermissionMode(
            name=ACCEPT_EDITS, help="edit freely, ask before commands", effects=_LOOKS | {"edits"}
        ),
        PermissionMode(name=PLAN, help="look and plan, change nothing", effects=_LOOKS),
        PermissionMode(
            name=EVERYTHING,
            help="ask only where a rule says so",
            effects=_LOOKS | {"edits", "runs"},
        ),
    )
}
"""The modes by name; `plan` is `ask` with the agent of that name."""


def is_for_all(rule: Rule) -> bool:
    """Return whether the rule allows everything, as `permission = "allow"` does."""
    return (rule.permission, rule.pattern, rule.action) == ("*", "*", "allow")


def default_mode(config: Config) -> str:
    """Return the permission mode of new sessions: the configured mode, or else `ask`.

    If the user's configuration allows everything, the mode is `everything`.
    """
    if config.permission_mode:
        return config.permission_mode
    is_open = any(is_for_all(rule) and not rule.by for rule in config.permission)
    return EVERYTHING if is_open or config.auto_approve else ASK


def mode_of(session: Session) -> str:
    """Return the permission mode that a front end has set for the session, or ""."""
    return str((session.metadata or {}).get(_KEY) or "")


def with_mode(session: Session, mode: str) -> dict[str, Any]:
    """Return the session's metadata with this permission mode."""
    return {**(session.metadata or {}), _KEY: mode}


async def change_mode(app: App, session_id: str, mode: str) -> None:
    """Set the session's permission mode, and approve waiting requests that this mode allows.

    :raises NotFoundError: when the session does not exist.
    """
    metadata = with_mode(await app.session(session_id), mode)
    await app.storage.commit(ChangeSession(session_id=session_id, metadata=metadata))
    await app.permissions.recheck()
