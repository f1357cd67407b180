"""The rules of the configuration as a policy, and the rules that hold when it is silent."""

from pathlib import Path

import msgspec

from pegboard import UNKNOWN, SessionView, hookimpl, judge, rules_from_config
from pegboard.schema.config import Config
from pegboard.schema.permission import PermissionRequest, Verdict

_UNKNOWN_LINES = f"{UNKNOWN}*"
DEFAULTS = rules_from_config(
    {
        "*": "allow",
        "bash": {_UNKNOWN_LINES: "ask"},
        "doom_loop": "ask",
        "external_directory": "ask",
        "read": {"*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow"},
    }
)


@hookimpl(tryfirst=True)
async def config_load(config: Config) -> Config:
    """The configuration with the default rules in front of the user's."""
    return msgspec.structs.replace(config, permission=DEFAULTS + config.permission)


@hookimpl
async def permission_ask(session: SessionView, request: PermissionRequest) -> Verdict:
    """What the session's rules say of the request.

    A line of which nobody can say what it would do is asked for with the reasons, and the way
    out of each, which a request has in its metadata as `advice`.
    """
    home = session.home or Path.home()
    verdict = judge(session.rulesets, request.permission, request.patterns, home=home)
    advice = request.metadata.get("advice")
    if verdict.action != "ask" or not isinstance(advice, list):
        return verdict
    is_default = verdict.rule is not None and verdict.rule.pattern == _UNKNOWN_LINES
    reasons = [*([] if is_default else [verdict.reason]), *map(str, advice)]
    return msgspec.structs.replace(verdict, reason="; ".join(reasons))
