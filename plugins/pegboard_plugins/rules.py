"""The rules of the configuration as a policy, and the rules that hold when it is silent."""

from pathlib import Path

import msgspec

from pegboard import SessionView, hookimpl, judge, rules_from_config
from pegboard.schema.config import Config
from pegboard.schema.permission import PermissionRequest, Verdict

DEFAULTS = rules_from_config(
    {
        "*": "allow",
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
    """What the session's rules say of the request."""
    home = session.home or Path.home()
    return judge(session.rulesets, request.permission, request.patterns, home=home)
