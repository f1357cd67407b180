"""What was decided is told before it has an effect, and happens only if nobody is against it."""

from pathlib import Path

import pytest

from pegboard import ToolContext, hookimpl, tool
from pegboard.schema.session import Decided, Verdict
from pegboard_plugins.shared.frontend import ShellOrder, run_shell
from support.models.played import Played, ToolsPlugin, call, calls, opened, text
from support.sessions.asked import outcomes

HI = "hi"


class Against:
    """Hears all, and is against one kind of it in a way of its own."""

    def __init__(self, kind: str, verdict: Verdict | None = None) -> None:
        self.heard: list[str] = []
        self._kind = kind
        self._verdict = verdict

    @hookimpl
    async def permission_decided(self, decided: Decided) -> Verdict | None:
        self.heard.append(decided.kind)
        if decided.kind != self._kind:
            return None
        if self._verdict is None:
            raise OSError("no room")
        return self._verdict


@pytest.mark.parametrize("kind", ["decision", "call"])
@pytest.mark.parametrize(
    ("verdict", "told"),
    [
        (Verdict(action="deny", reason="not noted"), "not noted"),
        (Verdict(action="ask", reason="not noted"), "not noted"),
        (None, "no room"),
    ],
)
async def test_what_a_plugin_is_against_or_fails_to_note_does_not_happen(
    tmp_path: Path, kind: str, verdict: Verdict | None, told: str
) -> None:
    made: list[str] = []

    @tool(requires=False)
    async def act(context: ToolContext) -> str:
        """Ask, and act."""
        await context.require("careful", ["a"])
        made.append("act")
        return "done"

    plugin = Against(kind, verdict)
    provider = Played(calls(call("act", "{}")), text("ok"))
    async with opened(tmp_path, provider, ToolsPlugin(act), plugin) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [said] = await outcomes(app, session.id)

    assert made == []
    assert told in said
    assert plugin.heard == ["call", "decision"][: 1 + (kind == "decision")]


async def test_a_line_of_the_user_s_own_is_told_too(tmp_path: Path) -> None:
    plugin = Against("call", Verdict(action="deny", reason="not noted"))
    made = tmp_path / "made"
    async with opened(tmp_path, Played(), plugin, builtins=True) as app:
        session = await app.create_session()
        await run_shell(app, session.id, ShellOrder(command=f"touch {made}", agent="build"))
        [said] = await outcomes(app, session.id)

    assert "not noted" in said
    assert not made.exists()
