"""Rules that a plugin brings for its own permission names."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pegboard import App, PermissionContext, hookimpl, tool
from pegboard.permissions import rules_from_config
from pegboard.schema.part import Completed, Failed
from pegboard.schema.session import Rule
from pegboard_plugins import rules
from pegboard_plugins.shared.frontend import explain
from support.models.played import HI, Played, call, calls, opened, shout, text, tools_of

ASK = rules_from_config({"ticket_close": {"*": "ask", "spam *": "allow"}})


async def may_close(context: PermissionContext, name: str) -> None:
    await context.require("ticket_close", [name])


@tool(permission="ticket_close", requires=may_close)
async def close_ticket(name: str) -> str:
    """Close a ticket.

    Args:
        name: which one.
    """
    return "closed"


class Tickets:
    """A plugin whose tool writes, and that ships with `ask`."""

    def __init__(self, *said: Rule) -> None:
        self._rules = said

    @hookimpl
    def register_tools(self) -> list[object]:
        """Its tool."""
        return [close_ticket]

    @hookimpl
    def register_permissions(self) -> Sequence[Rule]:
        """Its rules."""
        return self._rules


class Others:
    """Another plugin with a tool."""

    @hookimpl
    def register_tools(self) -> list[object]:
        """Its tool."""
        return [shout]


async def closed(app: App) -> Any:
    """The state of the call."""
    session = await app.create_session()
    await app.prompt(session.id, HI)
    (part,) = tools_of(await app.list_turns(session.id))
    return part.state


@pytest.mark.parametrize(
    ("name", "said", "allowed"),
    [
        ("one", {}, False),
        ("spam one", {}, True),
        ("one", {"ticket_close": "allow"}, True),
        ("spam one", {"ticket_close": "ask"}, False),
        ("spam one", {"*": "ask"}, False),
    ],
)
@pytest.mark.fires("register_permissions")
async def test_a_plugin_s_rules_hold_until_the_user_says_otherwise(
    tmp_path: Path, name: str, said: dict[str, str], *, allowed: bool
) -> None:
    provider = Played(calls(call("close_ticket", f'{{"name": "{name}"}}')), text("done"))
    settings = {"model": "played/m", "permission": said}
    plugins = (rules, Tickets(*ASK))
    async with opened(tmp_path, provider, *plugins, allow=False, config=settings) as app:
        state = await closed(app)

    assert isinstance(state, Completed if allowed else Failed)


@pytest.mark.parametrize(
    ("rule", "why"),
    [
        (Rule("*", "*", "deny"), "permission * is left out: it is about more than one"),
        (Rule("edit", "*", "allow"), "permission edit is left out: that is Pegboard's own"),
        (
            Rule("shout", "*", "deny"),
            "permission shout is left out: that is the plugin Others's own",
        ),
    ],
)
async def test_a_plugin_has_no_say_in_what_is_not_its_own(
    tmp_path: Path, rule: Rule, why: str
) -> None:
    plugins = (rules, Others(), Tickets(rule))
    async with opened(tmp_path, Played(text("done")), *plugins, allow=False) as app:
        (problem,) = app.plugins.problems
        assert rule not in app.config.permission

    assert (problem.plugin, problem.text) == ("Tickets", f"its rule about the {why}")


class Policy:
    """A plugin that wants to be asked."""

    @hookimpl
    async def permission_ask(self, request: object) -> object:
        """Ask about tickets."""
        from pegboard.schema.session import Verdict

        return Verdict(action="ask", reason="Tickets are dear.")


@pytest.mark.parametrize("by", ["rule", "policy", "agent"])
async def test_what_is_advised_allows_it_or_it_is_said_that_no_rule_does(
    tmp_path: Path, by: str
) -> None:
    provider = Played(calls(call("close_ticket", '{"name": "one"}')), text("done"))
    settings: dict[str, Any] = {"model": "played/m"}
    if by == "agent":
        settings["agent"] = {"build": {"permission": {"ticket_close": "ask"}}}
    plugins = (rules, Tickets(*ASK), *((Policy(),) if by == "policy" else ()))
    async with opened(tmp_path, provider, *plugins, allow=False, config=settings) as app:
        state = await closed(app)

    assert isinstance(state, Failed)
    advice = (state.metadata or {})["advice"]
    if by == "rule":
        assert advice.endswith('permission = { ticket_close = { one = "allow" } }')
        settings["permission"] = {"ticket_close": {"one": "allow"}}
        again = Played(calls(call("close_ticket", '{"name": "one"}')), text("done"))
        async with opened(tmp_path, again, *plugins, allow=False, config=settings) as app:
            assert isinstance(await closed(app), Completed)
    else:
        who = {"policy": "the plugin Policy", "agent": "a rule of the agent"}[by]
        assert (
            advice == f"no rule allows it: {who} asks; `pegboard run --allow` allows it for a run"
        )


@pytest.mark.parametrize(
    ("said", "whose"),
    [({}, "(plugin Tickets)"), ({"ticket_close": "ask"}, "(config)"), (None, "(built-in)")],
)
async def test_a_reason_says_whose_the_rule_is(
    tmp_path: Path, said: dict[str, str] | None, whose: str
) -> None:
    plugins = (rules, Tickets(*(ASK if said is not None else ())))
    settings = {"model": "played/m", "permission": said or {}}
    async with opened(
        tmp_path, Played(text("")), *plugins, allow=False, config=settings, interactive=True
    ) as app:
        found = await explain(app, "close_ticket", {"name": "one"})

    assert [whose in verdict.reason for verdict in found.verdicts] == [True]
