"""What cannot be noted does not happen, and happens again as soon as it can be."""

from pathlib import Path

from pegboard import tool
from pegboard_plugins import audit
from pegboard_plugins.audit.check import verify_audit
from support.models.played import Played, ToolsPlugin, call, calls, opened, text
from support.sessions.asked import outcomes

HI = "hi"
MORE_THAN_A_QUARANTINE = 5


async def test_without_a_line_no_call_is_made_until_there_can_be_one(tmp_path: Path) -> None:
    made: list[int] = []

    @tool(requires=False)
    async def act(number: int) -> str:
        """Act."""
        made.append(number)
        return "done"

    log = tmp_path / "state" / "audit.jsonl"
    log.mkdir(parents=True)
    acts = [calls(call("act", f'{{"number": {n}}}')) for n in range(MORE_THAN_A_QUARANTINE + 1)]
    answers = [each for act_ in acts for each in (act_, text("ok"))]
    async with opened(tmp_path, Played(*answers), ToolsPlugin(act), audit) as app:
        session = await app.create_session()
        for _ in range(MORE_THAN_A_QUARANTINE):
            await app.prompt(session.id, HI)
        refused = await outcomes(app, session.id)
        log.rmdir()
        await app.prompt(session.id, HI)

    assert made == [MORE_THAN_A_QUARANTINE]
    assert all(f"the audit log {log} cannot be written" in each for each in refused)
    assert verify_audit(log).lines == 1
