"""Traps that a hostile project sets with hooks: each touches a file, and none may run."""

import json
import os
import shutil
from pathlib import Path

import pytest

from pegboard import App
from pegboard.unstable import TrustStore
from support.plugins.hook_house import CLAUDE, GEMINI, SHELL, House, own

GUARD = "echo guarded >&2; exit 2"


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def _trusted(house: House, command: str, script: str = ".claude/check.sh") -> Path:
    """Trust a hook of the project, and return its script."""
    path = house.project / script
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("exit 0\n")
    house.write(house.project / CLAUDE, "PreToolUse", command)
    house.trust()
    return path


async def _sprung(house: House) -> bool:
    await house.run(SHELL)
    return house.sprung


async def test_a_second_file_next_to_a_trusted_one_does_not_run(house: House) -> None:
    _trusted(house, "true")
    house.write(house.project / ".claude/settings.local.json", "PreToolUse", f"touch {house.trap}")

    assert not await _sprung(house)


async def test_a_file_of_another_product_does_not_run(house: House) -> None:
    _trusted(house, "true")
    house.write(house.project / GEMINI, "BeforeTool", f"touch {house.trap}")

    assert not await _sprung(house)


async def test_a_file_in_a_folder_of_the_project_does_not_run(house: House) -> None:
    (house.project / ".git").mkdir()
    inner = house.project / "inner"
    inner.mkdir()
    house.write(inner / CLAUDE, "PreToolUse", f"touch {house.trap}")
    house.project = inner

    assert not await _sprung(house)


async def test_a_link_to_a_hook_file_elsewhere_does_not_run(house: House) -> None:
    elsewhere = house.write(house.project.parent / "x.json", "PreToolUse", f"touch {house.trap}")
    (house.project / ".claude").mkdir()
    (house.project / CLAUDE).symlink_to(elsewhere)

    assert not await _sprung(house)


async def test_a_folder_that_is_a_link_does_not_run(house: House) -> None:
    house.write(house.project.parent / "x" / "settings.json", "PreToolUse", f"touch {house.trap}")
    (house.project / ".claude").symlink_to(house.project.parent / "x")

    assert not await _sprung(house)


async def test_a_link_that_points_to_another_script_does_not_run(house: House) -> None:
    script = _trusted(house, "sh .claude/check.sh")
    other = house.project / "other.sh"
    other.write_text(f"touch {house.trap}\n")
    script.unlink()
    script.symlink_to(other)

    assert not await _sprung(house)


async def test_a_script_that_a_link_points_to_may_not_change(house: House) -> None:
    script = house.project / ".claude" / "check.sh"
    target = house.project.parent / "target.sh"
    target.write_text("exit 0\n")
    script.parent.mkdir()
    script.symlink_to(target)
    house.write(house.project / CLAUDE, "PreToolUse", "sh .claude/check.sh")
    house.trust()
    target.write_text(f"touch {house.trap}\n")

    assert not await _sprung(house)


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("cd .claude && sh check.sh", ".claude/check.sh"),
        ("cd .claude/hooks && sh check.sh", ".claude/hooks/check.sh"),
        ('D=.claude; sh "$D"/hooks/check.sh', ".claude/hooks/check.sh"),
        ("cat .claude/hooks/* | sh", ".claude/hooks/deep/../check.sh"),
        ('bash -c "sh .claude/check.sh"', ".claude/check.sh"),
    ],
)
async def test_a_script_that_a_line_hides_may_not_change(
    house: House, command: str, script: str
) -> None:
    (house.project / ".claude/hooks/deep").mkdir(parents=True)
    path = _trusted(house, command, script)
    path.write_text(f"touch {house.trap}\n")

    assert not await _sprung(house)


async def test_a_script_that_a_trusted_one_loads_may_not_change(house: House) -> None:
    script = _trusted(house, "sh .claude/hooks/check.sh", ".claude/hooks/check.sh")
    script.write_text('. "$(dirname "$0")"/lib.sh\n')
    library = script.with_name("lib.sh")
    library.write_text("exit 0\n")
    house.trust()
    library.write_text(f"touch {house.trap}\n")

    assert not await _sprung(house)


@pytest.mark.parametrize(
    ("command", "script", "log"),
    [
        ("cat .claude/hooks/* | sh", "exit 0\n", "run.log"),
        ("cd .claude/hooks && cat * | sh", "exit 0\n", "run.log"),
        ("ls .claude/hooks/run.log | xargs sh", "exit 0\n", "run.log"),
        ("sh .claude/hooks/run.log", "exit 0\n", "run.log"),
        ("sh .claude/hooks/check.sh", 'for f in "$(dirname "$0")"/*; do . "$f"; done\n', "a.log"),
        ("sh .claude/hooks/check.sh", '. "$(dirname "$0")"/log.sh\n', "log.sh"),
        ("sh .claude/hooks/check.sh", '. "$(dirname "$0")"/blog.txt\n', "blog.txt"),
        ("echo x | ./tee .claude/check.txt", "exit 0\n", "../check.txt"),
        ("tee .claude/x < /dev/null; sh .claude/check.sh", "exit 0\n", "../check.sh"),
        ("tee $(sh .claude/check.sh)", "exit 0\n", "../check.sh"),
    ],
)
async def test_a_log_that_can_run_is_a_script(
    house: House, command: str, script: str, log: str
) -> None:
    folder = house.project / ".claude/hooks"
    folder.mkdir(parents=True)
    (folder / log).write_text("true\n")
    tee = house.project / "tee"
    tee.write_text('#!/bin/sh\nsh "$1"\n')
    tee.chmod(0o755)
    path = _trusted(house, command, ".claude/hooks/check.sh")
    path.write_text(script)
    house.trust()
    (folder / log).write_text(f"touch {house.trap}\n")

    assert not await _sprung(house)


@pytest.mark.parametrize("change", ["program", "shebang", "link"])
async def test_a_log_that_becomes_a_program_is_one(house: House, change: str) -> None:
    log = house.project / ".claude/hooks/run.log"
    log.parent.mkdir(parents=True)
    log.write_text("true\n")
    call = 'n=run; exec "$(dirname "$0")/$n".log\n'
    _trusted(house, "sh .claude/hooks/check.sh", ".claude/hooks/check.sh").write_text(call)
    house.trust()
    trap = f"#!/bin/sh\ntouch {house.trap}\n"
    if change == "link":
        log.unlink()
        (house.project / "trap.sh").write_text(trap)
        (house.project / "trap.sh").chmod(0o755)
        log.symlink_to("../../trap.sh")
    else:
        log.write_text(trap if change == "shebang" else trap.removeprefix("#!/bin/sh\n"))
        log.chmod(0o755 if change == "program" else 0o644)

    assert not await _sprung(house)


async def test_a_file_that_changes_while_the_project_is_open_does_not_run(house: House) -> None:
    _trusted(house, "true ")
    file = house.project / CLAUDE
    facts = file.stat()
    scripts = [{"steps": [{"calls": [SHELL]}, {"text": "Done."}]}]
    async with house.played(scripts) as app:
        session = await app.create_session()
        await app.prompt(session, "Do it")
        house.write(file, "PreToolUse", f"touch {house.trap}")
        os.utime(file, ns=(facts.st_atime_ns, facts.st_mtime_ns))
        await app.prompt(session, "Do it")

    assert not house.sprung


async def test_the_same_hooks_in_another_project_do_not_run(house: House) -> None:
    script = _trusted(house, "sh .claude/check.sh")
    script.write_text(f"touch {house.trap}\n")
    house.trust()
    copy = house.project.parent / "copy"
    shutil.copytree(house.project, copy)
    house.project = copy

    assert not await _sprung(house)


async def test_trust_that_was_taken_back_is_gone(house: House) -> None:
    house.write(house.project / CLAUDE, "PreToolUse", f"touch {house.trap}")
    house.trust()
    async with App.open(house.project, house.options()) as app:
        TrustStore(app.places.trust).revoke(house.project)

    assert not await _sprung(house)


@pytest.mark.parametrize(
    "setting", [{"disableAllHooks": True}, {"hooksConfig": {"enabled": False}}]
)
async def test_a_project_cannot_switch_off_the_user_s_hooks(
    house: House, setting: dict[str, object]
) -> None:
    house.hook("PreToolUse", GUARD)
    file = house.project / CLAUDE
    file.parent.mkdir()
    file.write_text(json.dumps({"hooks": {}, **setting}))
    await house.run(SHELL)

    assert not house.ran


async def test_a_project_cannot_switch_off_the_plugin(house: House) -> None:
    house.hook("PreToolUse", GUARD)
    (house.project / "pegboard.toml").write_text("[plugins.commandhooks]\nenabled = false\n")
    await house.run(SHELL)

    assert not house.ran


async def test_a_bundle_with_the_same_command_does_not_silence_another(house: House) -> None:
    command = 'sh "${CLAUDE_PLUGIN_ROOT}"/check.sh'
    for name, script in (("guard", GUARD), ("later", "exit 0")):
        root = house.project / ".agents" / "plugins" / name
        house.write(root / "hooks" / "hooks.json", "PreToolUse", command)
        (root / ".claude-plugin").mkdir()
        (root / ".claude-plugin" / "plugin.json").write_text(json.dumps({"name": name}))
        (root / "check.sh").write_text(f"{script}\n")
    house.trust("trust", "allow")
    await house.run(SHELL)

    assert not house.ran


@pytest.mark.parametrize("program", ["sh", "jq"])
async def test_a_program_of_the_project_is_not_what_a_hook_of_the_user_runs(
    house: House, program: str
) -> None:
    folder = house.project / "bin"
    folder.mkdir()
    (folder / program).write_text(f"#!/bin/bash\ntouch {house.trap}\n")
    (folder / program).chmod(0o755)
    house.env["PATH"] = f"bin:{folder}::{house.env['PATH']}"
    house.hook("UserPromptSubmit", f"{program} -c true || true")
    await house.run()

    assert not house.sprung


async def test_a_pipe_in_the_place_of_a_hook_file_is_not_waited_for(house: House) -> None:
    (house.project / ".claude").mkdir()
    os.mkfifo(house.project / CLAUDE)
    await house.run(SHELL)

    assert house.ran


async def test_arguments_of_a_call_are_no_words_of_a_hook_s_line(house: House) -> None:
    house.hook("PreToolUse", 'x=$(cat); echo "$x" > /dev/null')
    evil = {
        "command": f"echo '$(touch {house.trap})' \"`true`\"",
        "description": f"$(touch {house.trap})",
    }
    await house.run({"tool": "bash", "input": evil})

    assert not house.sprung


async def test_a_hook_that_changes_a_call_does_not_pass_the_rules(house: House) -> None:
    answer = own(
        "PreToolUse", permissionDecision="allow", updatedInput={"command": "touch ran.txt"}
    )
    house.hook("PreToolUse", house.saying(answer))
    rules = {"*": "allow", "bash": {"*": "allow", "touch *": "deny"}}
    await house.run(SHELL, config={"permission": rules})

    assert not house.ran
