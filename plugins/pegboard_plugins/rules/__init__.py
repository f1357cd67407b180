"""The permission policy: the configured rules, and built-in default rules before them.

A permission mode can make Pegboard ask about requests that only the default rules allow.
"""

import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from pegboard import Host, SessionView, hookimpl
from pegboard.permissions import UNCLEAR, Ruleset, judge_rules, rules_from_config
from pegboard.plugins import Stash, StashKey
from pegboard.schema.config import Config
from pegboard.schema.session import PermissionRequest, Verdict

_APP = StashKey[Host]()
_WORD = re.compile(r"[\w.+-]+")
DEFAULTS = tuple(
    msgspec.structs.replace(rule, by="built-in")
    for rule in rules_from_config(
        {
            "*": "allow",
            "bash": {"unclear": "ask"},
            "doom_loop": "ask",
            "external_directory": "ask",
            "read": {"*": "allow", "*.env": "ask", "*.env.*": "ask", "*.env.example": "allow"},
        }
    )
)


@hookimpl(tryfirst=True)
async def config_load(config: Config) -> Config:
    """Put the default rules before the user's rules."""
    if config.permission_mode is not None:
        from pegboard_plugins.rules.modes import with_plan  # most runs have no mode

        config = with_plan(config)
    return msgspec.structs.replace(config, permission=DEFAULTS + config.permission)


@hookimpl
async def startup(app: Host) -> None:
    """Store the App, because this policy looks up sessions and tools in the App.

    :raises ConfigError: when the configured permission mode does not exist.
    """
    app.stash.setdefault(_APP, lambda: app)
    if app.config.permission_mode is not None:
        from pegboard_plugins.rules.modes import check_mode  # most runs have no mode

        check_mode(app.config.permission_mode)


@hookimpl
async def permission_ask(session: SessionView, request: PermissionRequest, stash: Stash) -> Verdict:
    """Return the verdict of the session's rules; a permission mode can turn "allow" into "ask"."""
    verdict = _judge(session, request)
    if verdict.source == "agent":
        reason = verdict.reason.replace("(agent)", f"(agent {session.agent.name})")
        verdict = msgspec.structs.replace(verdict, reason=reason)
    info = session.info
    if verdict.action != "allow" or not (
        session.config.permission_mode or info.metadata or info.parent_id
    ):
        return verdict
    from pegboard_plugins.rules.modes import asked  # most runs have no mode

    return await asked(session, request, stash.get(_APP)) or verdict


def _judge(session: SessionView, request: PermissionRequest) -> Verdict:
    """Return the verdict of the session's rules on a request.

    The metadata of a request to run a command line can refine the verdict. `commands` are the
    line's commands that Pegboard could read: if a rule denies one, the verdict is "deny". `told`
    holds code for other programs, as in `python -c`: if it contains the name of a denied command,
    "allow" becomes "ask". `advice` says why a line is unclear, and what the model should do: it
    becomes the reason of an "ask".
    """
    home = session.home or Path.home()
    verdict = judge_rules(session.rulesets, request.permission, request.patterns, home=home)
    known = _texts(request, "commands")
    if verdict.action != "deny" and known:
        of_known = judge_rules(session.rulesets, request.permission, known, home=home)
        verdict = of_known if of_known.action == "deny" else verdict
    if verdict.action == "allow" and (said := _ask_about_code(session.rulesets, request)):
        return said
    advice = _texts(request, "advice")
    if verdict.action != "ask" or not advice:
        return verdict
    is_default = verdict.rule is not None and verdict.rule.pattern == f"{UNCLEAR}*"
    reasons = [*([] if is_default else [verdict.reason]), *advice]
    return msgspec.structs.replace(verdict, reason="; ".join(reasons))


def _ask_about_code(rulesets: Sequence[Ruleset], request: PermissionRequest) -> Verdict | None:
    """Return an "ask" if code in the request contains the name of a denied command, else None."""
    words = {word for text in _texts(request, "told") for word in _WORD.findall(text)}
    for ruleset in rulesets if words else ():
        for rule in ruleset.rules:
            name = rule.pattern.partition(" ")[0]
            is_meant = fnmatchcase(request.permission, rule.permission)
            if rule.action == "deny" and name in words and is_meant:
                reason = f'{name} stands in its code, and rule bash "{rule.pattern}" denies that'
                return Verdict(action="ask", reason=reason, source=ruleset.source, rule=rule)
    return None


def _texts(request: PermissionRequest, key: str) -> list[str]:
    value = request.metadata.get(key)
    return [str(text) for text in value] if isinstance(value, list) else []
