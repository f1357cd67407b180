"""How far an approval goes, and what none can cover."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from pegboard import ToolContext, hookimpl, tool
from pegboard.permissions import UNCLEAR
from pegboard.schema.event import PermissionAsked
from pegboard.schema.part import Completed, ToolPart
from pegboard.schema.permission import Rule, Verdict
from pegboard.schema.prompt import TextInput
from played import Played, ToolsPlugin, call, calls, heard, opened, text

HI = (TextInput(text="hi"),)


@tool
async def careful(context: ToolContext, what: str = "a") -> str:
    """Ask first."""
    await context.ask("careful", [what], always=["*"])
    return "done"


class Asks:
    """Asks for everything; `firm` asks whatever was approved."""

    def __init__(self, *, firm: bool = False) -> None:
        self._firm = firm

    @hookimpl
    async def permission_ask(self) -> Verdict:
        return Verdict(action="ask", firm=self._firm)


async def one_turn(folder: Path, plugin: object, scope: str, *, what: str = "a") -> tuple[Any, ...]:
    """A turn whose one call somebody approves; the request, and what the project then knows."""
    provider = Played(calls(call("careful", f'{{"what": "{what}"}}')), text("ok"))
    options = {"allow": False, "interactive": True}
    async with opened(folder, provider, plugin, ToolsPlugin(careful), **options) as app:
        session = await app.create_session()
        listening = asyncio.create_task(
            heard(app, lambda event: isinstance(event.properties, PermissionAsked))
        )
        await asyncio.sleep(0)
        prompt = asyncio.create_task(app.prompt(session.id, HI))
        request = (await listening)[-1].properties.request
        app.policy.approve(request.id, scope)
        await prompt
        return session.id, request, await app.policy.approvals()


async def asked_again(folder: Path, session_id: str | None = None) -> bool:
    provider = Played(calls(call("careful", "{}")), text("ok"))
    async with opened(folder, provider, Asks(), ToolsPlugin(careful), allow=False) as app:
        used = session_id or (await app.create_session()).id
        await app.prompt(used, HI)
        last = (await app.turns(used))[-2]
        part = next(part for part in last.parts if isinstance(part, ToolPart))
        return not isinstance(part.state, Completed)


async def test_an_approval_for_a_session_ends_with_it(tmp_path: Path) -> None:
    session_id, _, approvals = await one_turn(tmp_path, Asks(), "session")

    assert [(each.scope, each.key) for each in approvals] == [("session", session_id)]
    assert not await asked_again(tmp_path, session_id)
    assert await asked_again(tmp_path)


async def test_an_approval_for_the_user_holds_in_every_project(tmp_path: Path) -> None:
    await one_turn(tmp_path, Asks(), "user")
    (tmp_path / "project").rename(tmp_path / "other")

    assert not await asked_again(tmp_path)


async def test_approvals_name_their_scope_and_can_be_taken_back(tmp_path: Path) -> None:
    _, _, approvals = await one_turn(tmp_path, Asks(), "project")

    async with opened(tmp_path, Played(text("x"))) as app:
        gone = await app.policy.revoke("care*")
        left = await app.policy.approvals()

    assert [(each.scope, each.rule) for each in approvals] == [
        ("project", Rule("careful", "*", "allow"))
    ]
    assert (gone, left) == (approvals, ())
    assert await asked_again(tmp_path)


@pytest.mark.parametrize(
    ("plugin", "what"),
    [(Asks(firm=True), "a"), (Asks(), f"{UNCLEAR}$CMD")],
    ids=["firm", "unclear"],
)
async def test_what_is_asked_every_time_cannot_be_approved_for_good(
    tmp_path: Path, plugin: Asks, what: str
) -> None:
    _, request, approvals = await one_turn(tmp_path, plugin, "project", what=what)

    assert (request.always, request.metadata["once"]) == ((), True)
    assert approvals == ()
    assert await asked_again(tmp_path)
