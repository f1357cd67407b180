"""An approval may be for less than what is offered, and is never for more."""

import asyncio
import json
import re
from pathlib import Path

import pytest

from core.engine.asking.test_approvals import Asks, app_with, audited, one_turn
from pegboard import InvalidInputError, ToolContext, tool
from pegboard.policy.permissions import UNCLEAR, unapproved
from pegboard.schema.session import Rule
from pegboard.storage import PutApproval
from pegboard_plugins import audit
from pegboard_plugins.shared.frontend import approvals_of
from support.models.played import HI, Played, ToolsPlugin, call, calls, opened, text
from support.sessions.asked import asked, outcomes


async def test_an_approval_of_an_unclear_star_covers_nothing_else_that_is_unclear(
    tmp_path: Path,
) -> None:
    wanted = json.dumps({"what": f"{UNCLEAR}*"})

    _, request, approvals = await one_turn(tmp_path, Asks(), "project", wanted)

    rules = [each.rule for each in approvals]
    assert unapproved(rules, "careful", request.patterns) == ()
    assert unapproved(rules, "careful", [f"{UNCLEAR}$CMD"]) == (f"{UNCLEAR}$CMD",)


@tool(requires=False)
async def runs(context: ToolContext, lines: str) -> str:
    """Ask as a shell does."""
    await context.require("runs", lines.split(";"), always=["git push *", "make *"])
    return "done"


NARROWED = [
    (("git push origin *", "make *"), ""),
    (("git push origin main", "make test"), ""),
    (
        ("git push*", "make *"),
        '"git push*" would allow more than is offered: "git push *", "make *"',
    ),
    (("*",), '"*" would allow more than is offered: "git push *", "make *"'),
    (("git push origin *",), 'a pattern must still match "make test"'),
    (("git push upstream *", "make *"), 'must still match "git push origin main", the present'),
    ((f"{UNCLEAR}*", "make *"), f'"{UNCLEAR}*" would allow more than is offered'),
]


@pytest.mark.parametrize(("patterns", "refusal"), NARROWED)
async def test_an_approval_may_be_for_less_than_what_is_offered(
    tmp_path: Path, patterns: tuple[str, ...], refusal: str
) -> None:
    wanted = call("runs", json.dumps({"lines": "git push origin main;make test"}))
    options = {"allow": False, "interactive": True}
    provider = Played(calls(wanted), text("ok"))
    async with opened(tmp_path, provider, Asks(), ToolsPlugin(runs), audit, **options) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        if refusal:
            with pytest.raises(InvalidInputError, match=re.escape(refusal)):
                await app.policy.approve(request.id, "project", patterns=patterns)
            assert app.permissions.pending() == (request,)
            await app.answer_permission(request.id, "reject")
        else:
            await app.policy.approve(request.id, "project", patterns=patterns)
        await prompt
        approvals = await approvals_of(app)

    stored = () if refusal else patterns
    assert tuple(each.rule.pattern for each in approvals) == stored
    [reply] = [line for line in audited(tmp_path) if line["kind"] == "reply"]
    assert reply.get("approved", []) == list(stored)


@pytest.mark.parametrize("arguments", ['{"once": true}', json.dumps({"what": f"{UNCLEAR}$X *"})])
async def test_there_is_nothing_narrower_of_what_is_asked_as_the_very_text(
    tmp_path: Path, arguments: str
) -> None:
    async with app_with(tmp_path, Asks(), arguments) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        [request] = await asked(app)
        with pytest.raises(InvalidInputError):
            await app.policy.approve(request.id, "project", patterns=[f"{UNCLEAR}$X y"])
        await app.answer_permission(request.id, "reject")
        await prompt
        assert await approvals_of(app) == ()


async def test_only_a_user_who_reads_a_command_line_allows_all_of_it(tmp_path: Path) -> None:
    @tool(requires=False)
    async def line(context: ToolContext) -> str:
        """Ask for both parts of a command line."""
        for what in ("a", "b"):
            await context.require("careful", [what], metadata={"command": "a; b"})
        return "done"

    provider = Played(calls(call("line", "{}")), text("ok"))
    plugins = (Asks(), ToolsPlugin(line))
    async with opened(tmp_path, provider, *plugins, allow=False, interactive=True) as app:
        session = await app.create_session()
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        await asked(app)
        await app.storage.commit(PutApproval(session.id, (Rule("careful", "a", "allow"),)))
        await app.permissions.recheck()
        [request] = await asked(app)
        assert request.patterns == ("b",)
        await app.answer_permission(request.id, "once")
        await prompt
        assert await outcomes(app, session.id) == ["done"]
