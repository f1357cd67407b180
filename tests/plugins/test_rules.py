from pathlib import Path

import pytest

from pegboard.plugins import Stash
from pegboard.schema.config import Config
from pegboard.schema.session import Action, PermissionRequest, Rule, Ruleset, Verdict
from pegboard_plugins.rules import DEFAULTS, config_load, permission_ask
from support.sessions.session_views import view


async def _verdict(permission: str, pattern: str, *more: Rule) -> Verdict:
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission=permission,
        patterns=(pattern,),
        metadata={},
        always=(),
    )
    config = await config_load(Config(permission=more))
    rulesets = (Ruleset(source="config", rules=config.permission),)
    return await permission_ask(view(Path("/p"), rulesets=rulesets), request, Stash())


@pytest.mark.parametrize(
    ("permission", "pattern", "action"),
    [
        ("bash", "rm -rf build", "allow"),
        ("bash", "[unclear] $CMD x", "ask"),
        ("edit", "src/a.py", "allow"),
        ("some_tool", "*", "allow"),
        ("doom_loop", "bash", "ask"),
        ("external_directory", "/etc/*", "ask"),
        ("read", "/p/src/a.py", "allow"),
        ("read", "/p/.env", "ask"),
        ("read", "/p/prod.env", "ask"),
        ("read", "/p/.env.local", "ask"),
        ("read", "/p/.env.example", "allow"),
        ("read", "/p/environment.py", "allow"),
    ],
)
async def test_the_defaults(permission: str, pattern: str, action: Action) -> None:
    assert (await _verdict(permission, pattern)).action == action


@pytest.mark.parametrize("rule", [Rule("*", "*", "allow"), Rule("bash", "*", "allow")])
async def test_the_user_s_own_word_for_everything_is_for_what_nobody_knows_too(rule: Rule) -> None:
    assert (await _verdict("bash", "[unclear] $CMD x", rule)).action == "allow"


@pytest.mark.parametrize("pattern", ["$CMD *", "[unclear] $CMD ?"])
async def test_no_narrower_rule_allows_what_nobody_knows(pattern: str) -> None:
    rule = Rule("bash", pattern, "allow")

    assert (await _verdict("bash", "[unclear] $CMD x", rule)).action == "ask"


async def test_the_user_has_the_last_word() -> None:
    verdict = await _verdict("bash", "git push", Rule("bash", "git *", "deny"))

    assert verdict == Verdict(
        action="deny",
        reason='denied by rule bash "git *" (config)',
        source="config",
        rule=Rule("bash", "git *", "deny"),
    )


async def test_the_home_folder_in_a_rule_is_the_user_s() -> None:
    verdict = await _verdict("read", f"{Path.home()}/x", Rule("read", "~/x", "deny"))

    assert verdict.action == "deny"


async def test_the_defaults_stand_in_front() -> None:
    rule = Rule("bash", "*", "ask")

    config = await config_load(Config(permission=(rule,), username="ana"))

    assert config == Config(permission=(*DEFAULTS, rule), username="ana")


async def _said(metadata: dict[str, object], *more: Rule) -> Verdict:
    pattern = "[unclear] $X; rm y" if metadata.get("unclear") else "python3 -c x"
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="bash",
        patterns=(pattern,),
        metadata=metadata,
        always=(),
    )
    config = await config_load(Config(permission=more))
    rulesets = (Ruleset(source="config", rules=config.permission),)
    return await permission_ask(view(Path("/p"), rulesets=rulesets), request, Stash())


async def test_a_known_command_of_an_unclear_line_is_denied_though_the_line_is_allowed() -> None:
    rules = (Rule("bash", "rm *", "deny"), Rule("bash", "[unclear] *", "allow"))

    verdict = await _said({"unclear": ["dynamic-args"], "commands": ["cat $X", "rm y"]}, *rules)
    other = await _said({"unclear": ["dynamic-args"], "commands": ["cat $X", "mv y"]}, *rules)

    assert (verdict.action, verdict.rule) == ("deny", rules[0])
    assert other.action == "allow"


async def test_code_that_names_what_is_denied_is_asked_for() -> None:
    told: list[object] = ["import os; os.system('rm -r x')"]

    assert (await _said({"told": told}, Rule("bash", "rm *", "deny"))).action == "ask"
    assert (await _said({"told": told}, Rule("bash", "mv *", "deny"))).action == "allow"
    assert (await _said({"told": ["form"]}, Rule("bash", "rm *", "deny"))).action == "allow"
