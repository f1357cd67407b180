"""No hook of a project runs before the user trusts exactly that hook."""

from pathlib import Path

import pytest

from pegboard import App
from pegboard.unstable import TrustStore
from support.plugins.hook_house import CLAUDE, CODEX, GEMINI, SHELL, House


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


TRAPS = (
    *("PreToolUse", "BeforeTool", "UserPromptSubmit", "BeforeAgent", "SessionStart"),
    *("SessionEnd", "Stop", "AfterTool", "PostToolUse"),
)


@pytest.mark.parametrize("at", [CLAUDE, ".claude/settings.local.json", CODEX, GEMINI])
@pytest.mark.parametrize(
    "event",
    [
        "PreToolUse",
        "BeforeTool",
        "UserPromptSubmit",
        "BeforeAgent",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "AfterTool",
        "PostToolUse",
    ],
)
async def test_no_hook_of_a_project_runs_without_trust(house: House, at: str, event: str) -> None:
    trap = house.project.parent / "trap"
    house.write(house.project / at, event, f"touch {trap}")
    await house.run(SHELL)

    assert house.ran
    assert not trap.exists()


async def test_trust_in_the_project_s_code_is_none_in_its_hooks(house: House) -> None:
    trap = house.project.parent / "trap"
    house.write(house.project / CLAUDE, "PreToolUse", f"touch {trap}")
    async with App.open(house.project, house.options()) as app:
        TrustStore(app.places.trust).allow(app.trust)
    await house.run(SHELL)

    assert not trap.exists()


@pytest.mark.parametrize(
    "command",
    [
        '"$CLAUDE_PROJECT_DIR"/.claude/check.sh',
        "${CLAUDE_PROJECT_DIR}/.claude/check.sh",
        "sh .claude/check.sh",
        "true && sh ./.claude/check.sh | cat; exit 2",
        "sh '.claude/my check.sh'",
        '"$CLAUDE_PROJECT_DIR/.claude/my check.sh"',
        "sh $(pwd)/.claude/check.sh",
    ],
)
async def test_a_trusted_hook_of_a_project_runs_until_its_script_changes(
    house: House, command: str
) -> None:
    script = house.project / ".claude" / ("my check.sh" if "my check" in command else "check.sh")
    house.write(house.project / CLAUDE, "PreToolUse", command, matcher="Bash")
    script.write_text("#!/bin/sh\necho rule >&2; exit 2\n")
    script.chmod(0o755)
    assert "PreToolUse" in house.trust()
    await house.run(SHELL)
    assert not house.ran

    trap = house.project.parent / "trap"
    script.write_text(f"#!/bin/sh\ntouch {trap}\n")
    await house.run(SHELL)
    assert house.ran
    assert not trap.exists()


@pytest.mark.parametrize(
    "command",
    [
        'echo ran >> "$CLAUDE_PROJECT_DIR"/log.txt',
        "echo ran>>log.txt 2>&1",
        "python3 .claude/hooks/main.py > 'log.txt'",
        "python3 .claude/hooks/main.py | tee log.txt",
        'python3 .claude/hooks/main.py | tee -a "$CLAUDE_PROJECT_DIR"/log.txt >&2',
        "python3 .claude/hooks/main.py | tee .claude/hooks/run.log log.txt",
    ],
)
async def test_a_hook_that_writes_a_log_runs_each_time(house: House, command: str) -> None:
    house.write(house.project / CLAUDE, "PreToolUse", command)
    folder = house.project / ".claude" / "hooks"
    folder.mkdir()
    (folder / "words.py").write_text("WORD = 'ran'\n")
    (folder / "audit-log.json").write_text("")
    program = (
        "open('.claude/hooks/audit-log.json', 'a').write('x')\n"
        "import words, pathlib\npathlib.Path('runs').open('a').write('x')\nprint(words.WORD)\n"
    )
    (folder / "main.py").write_text(program)
    house.trust()
    await house.run(SHELL)
    (house.project / "log.txt").write_text("")
    await house.run(SHELL)

    assert (house.project / "log.txt").read_text().startswith("ran")


@pytest.mark.parametrize(
    "command",
    [
        'true > "$(sh .claude/check.sh)"',
        "true > $(sh .claude/check.sh)",
        "true > x`sh .claude/check.sh`",
        "true >/dev/null;sh .claude/check.sh",
        "echo exit 0 > .claude/check.sh; sh .claude/check.sh",
    ],
)
async def test_a_file_that_is_written_and_run_is_one_that_is_run(
    house: House, command: str
) -> None:
    script = house.project / ".claude" / "check.sh"
    house.write(house.project / CLAUDE, "PreToolUse", command)
    script.write_text("true")

    assert "  .claude/check.sh" in house.trust()


async def test_a_trusted_hook_file_that_changes_does_not_run(house: House) -> None:
    trap = house.project.parent / "trap"
    house.write(house.project / CLAUDE, "PreToolUse", "true")
    assert "PreToolUse" in house.trust()
    house.write(house.project / CLAUDE, "PreToolUse", f"touch {trap}")
    await house.run(SHELL)

    assert not trap.exists()


async def test_trust_for_one_run_covers_the_hooks(house: House) -> None:
    house.write(house.project / CLAUDE, "PreToolUse", "echo no >&2; exit 2")
    await house.run(SHELL, trust=True)

    assert not house.ran


async def test_a_hook_that_does_not_run_is_named_with_the_first_prompt(house: House) -> None:
    house.write(house.project / CLAUDE, "PreToolUse", "true")
    await house.run()

    assert [text for text in house.warnings if "`pegboard trust allow` shows" in text] != []


@pytest.mark.parametrize("changed", ["", ".claude/check.sh", CLAUDE])
@pytest.mark.parametrize("with_code", [False, True])
async def test_a_lock_file_trusts_the_hooks_as_they_were(
    house: House, changed: str, *, with_code: bool
) -> None:
    command = 'sh "$CLAUDE_PROJECT_DIR"/.claude/check.sh'
    file = house.write(house.project / CLAUDE, "PreToolUse", command)
    (file.parent / "check.sh").write_text("exit 2\n")
    if with_code:
        (house.project / ".pegboard" / "tool").mkdir(parents=True)
        (house.project / ".pegboard" / "tool" / "own.py").write_text("")
    house.lock()
    if changed == CLAUDE:
        house.write(house.project / CLAUDE, "PreToolUse", f"touch {house.trap}; {command}")
    elif changed:
        (house.project / changed).write_text(f"touch {house.trap}; exit 2\n")
    await house.run(SHELL)

    assert house.ran == bool(changed)
    assert not house.sprung
