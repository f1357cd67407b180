"""The built-in slash commands."""

from pathlib import Path

from pegboard.schema.part import SubtaskPart, TextPart
from pegboard_plugins import commands
from pegboard_plugins.shared.frontend import CommandOrder, run_command
from support.models.played import Played, opened, text


async def test_init_is_a_prompt_of_the_users_agent(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("done")), commands) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="init", arguments="mind the tests"))
        [user, _] = await app.list_turns(session.id)

    [part] = user.parts
    assert isinstance(part, TextPart)
    assert part.text.startswith("Write an AGENTS.md")
    assert part.text.endswith("mind the tests")


async def test_review_is_a_task_for_a_subagent(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("fine"), text("No problems.")), commands) as app:
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="review", arguments="main..topic"))
        [user, *_] = await app.list_turns(session.id)

    [part] = user.parts
    assert isinstance(part, SubtaskPart)
    assert "What to review: main..topic" in part.prompt
    assert part.command == "review"
