"""The permission modes: they make Pegboard ask about requests that only a default rule allows.

The mode is the session's, or the configured `permission_mode`. The user's own rules take
precedence over it. A mode never allows a request that another rule asks about or denies.
"""

from contextlib import suppress

from msgspec.structs import replace

from pegboard import Host, SessionView
from pegboard.errors import ConfigError, NotFoundError
from pegboard.permissions import deciding_rule
from pegboard.schema.config import Config, Effect
from pegboard.schema.session import PermissionRequest, Rule, Session, Verdict
from pegboard_plugins.shared.frontend import ASK, MODES, PLAN, PermissionMode, is_for_all, mode_of

_USERS = "config"
_LONGEST_FAMILY = 16
"""Sessions above one; subagents may call others a few levels deep."""


def with_plan(config: Config) -> Config:
    """Return the configuration, with the permission mode `plan` replaced by the agent `plan`."""
    if config.permission_mode != PLAN:
        return config
    return replace(config, permission_mode=ASK, default_agent=PLAN)


def check_mode(name: str) -> None:
    """Check that a permission mode exists.

    The policy itself would treat an unknown mode as the strictest mode.

    :raises ConfigError: when the mode does not exist.
    """
    if name not in MODES:
        message = f'no mode is called "{name}"; the modes are {", ".join(MODES)}'
        raise ConfigError(message, key="permission_mode")


async def asked(
    session: SessionView, request: PermissionRequest, app: Host | None
) -> Verdict | None:
    """Return an "ask" if neither permission mode nor user rules cover the request, else None."""
    mode = await _mode(session, app)
    if mode is None or _effects(request, app) <= mode.effects:
        return None
    if not any(_is_undecided(session, request, each) for each in request.patterns or ("*",)):
        return None
    rule = Rule("*", "*", "ask", by=f"mode {mode.name}")  # in place of the default
    reason = f"mode {mode.name}: {mode.help}"
    return Verdict(action="ask", reason=reason, source=_USERS, rule=rule)


async def _mode(session: SessionView, app: Host | None) -> PermissionMode | None:
    """Return the strictest mode of the session and its parent sessions, or None without a mode.

    An unknown mode counts as the strictest mode.
    """
    infos = [session.info] if app is None else await _family(session, app)
    names = [name for name in map(mode_of, infos) if name] or [session.config.permission_mode or ""]
    found = (MODES.get(name, MODES[ASK]) for name in names if name)
    return min(found, key=lambda mode: len(mode.effects), default=None)


async def _family(session: SessionView, app: Host) -> list[Session]:
    """Return the stored session, followed by its parent sessions."""
    infos = [session.info]
    with suppress(NotFoundError):  # that of `explain` is stored nowhere
        infos[0] = await app.session(session.id)
        while (parent := infos[-1].parent_id) and len(infos) < _LONGEST_FAMILY:
            infos.append(await app.session(parent))
    return infos


def _effects(request: PermissionRequest, app: Host | None) -> frozenset[Effect]:
    """Return {"reads"} if the request is marked as reading only, else its tools' effects."""
    if request.metadata.get("effect") == "reads":
        return frozenset({"reads"})
    tools = app.tools.values() if app is not None else ()
    effects = {tool.effect for tool in tools if tool.permission == request.permission}
    return frozenset(effects or {"runs"})


def _is_undecided(session: SessionView, request: PermissionRequest, pattern: str) -> bool:
    """Return whether no rule of the user, or only a rule for everything, allows the pattern."""
    users = next((each for each in session.rulesets if each.source == _USERS), None)
    home = session.home
    rule = users and deciding_rule(users, request.permission, pattern, home=home)
    return not rule or (rule.action == "allow" and (bool(rule.by) or is_for_all(rule)))
