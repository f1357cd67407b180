"""What hooks want the user to read: warnings of the session, which each client shows."""

import json
from pathlib import Path

import pytest

from pegboard.schema.event import SessionWarned
from pegboard.testing import EventRecorder
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer, by_step, call, say
from support.plugins.hook_house import SHELL, House

SLOW = "the tests are slow today"


@pytest.fixture
def pegboard(tmp_path: Path) -> CommandLine:
    home = tmp_path / "home"
    project = home / "project"
    project.mkdir(parents=True)
    return CommandLine(home, project, env={"HOME": str(home)})


def use_hooks(home: Path, **commands: str) -> None:
    hooks = {
        event: [{"hooks": [{"type": "command", "command": command}]}]
        for event, command in commands.items()
    }
    (home / ".claude").mkdir()
    (home / ".claude" / "settings.json").write_text(json.dumps({"hooks": hooks}))


async def test_a_run_shows_the_words_of_hooks_once(pegboard: CommandLine) -> None:
    message = json.dumps({"systemMessage": SLOW})
    use_hooks(pegboard.home, PreToolUse=f"echo '{message}'", PostToolUse="exit 3")
    bash = call("bash", {"command": "true", "description": "Try"})
    async with ModelServer(by_step(bash, bash, say("Done."), bash, say("Done."))) as server:
        pegboard.use_model(server.url, permission={"*": "allow"})
        text = await pegboard("run", "hi")
        records = await pegboard("run", "--format", "json", "hi")

    assert text.code == records.code == 0, text.err + records.err
    assert text.err.count(f"warning: {SLOW}\n") == text.err.count(SLOW) == 1
    assert "failed: exit code 3" in text.err
    warnings = [each["message"] for each in records.records if each["type"] == "warning"]
    assert warnings.count(SLOW) == 1
    assert SLOW not in records.err


async def test_the_words_of_a_hook_for_a_subagent_are_a_warning_of_its_session(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    house.hook("SubagentStart", house.saying({"systemMessage": SLOW}))
    task = {"description": "Look", "prompt": "Look.", "subagent_type": "explore"}
    scripts = [
        {"steps": [{"calls": [{"tool": "task", "input": task}]}, {"text": "Done."}]},
        {"steps": [{"text": "Seen."}]},
    ]
    async with house.played(scripts) as app:
        session = await app.create_session()
        async with EventRecorder(app) as seen:
            await app.prompt(session, "Do it")
        (child,) = await app.children(session.id)

    assert seen.of(SessionWarned) == [SessionWarned(session_id=child.id, message=SLOW)]


async def test_the_words_of_a_hook_at_the_end_are_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    house = House(tmp_path)
    house.hook("SessionEnd", house.saying({"systemMessage": SLOW}))
    await house.run(SHELL)

    assert house.warnings == []
    assert caplog.messages.count(f"plugin commandhooks: {SLOW}") == 1
