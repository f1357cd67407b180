"""What git and editors do in a process of a tool, which has no terminal."""

import os
from pathlib import Path

import pytest

from pegboard.kit.redact import child_env
from pegboard.processes.process import run_process

REPOSITORY = (
    "git init -q; git config user.name me; git config user.email me@localhost;"
    " git commit -q --allow-empty -m one"
)


async def run(command, folder, *, env=os.environ):
    """What a command puts out in the environment of tools."""
    done = await run_process(
        ["bash", "-c", command],
        cwd=Path(folder),
        env=child_env(env),
        timeout_s=20,
        limit_bytes=1 << 20,
        spill_dir=Path(folder) / "spill",
    )
    return done.output


@pytest.mark.parametrize(
    "command",
    [
        *("git commit --allow-empty", "git rebase -i HEAD~1", "${EDITOR:-vi} file", "$VISUAL file"),
        *("git commit --amend --allow-empty", 'sh -c "$EDITOR file"'),
    ],
)
async def test_an_editor_fails_at_once_with_the_way_out(tmp_path, command):
    await run(f"{REPOSITORY}; git commit -q --allow-empty -m two", tmp_path)

    output = await run(f"{command}; test $? -ne 0 && git log --format=%s", tmp_path)

    assert "commands of Pegboard run without a terminal" in output
    assert "git commit -m TEXT" in output
    assert output.splitlines()[-2:] == ["two", "one"]


async def test_the_line_itself_chooses_an_editor(tmp_path):
    await run(REPOSITORY, tmp_path)

    output = await run(
        "GIT_EDITOR=true git commit --amend --allow-empty && git log --format=%s", tmp_path
    )

    assert output.splitlines()[-1] == "one"


async def test_git_obeys_no_folder_that_only_looks_like_a_repository(tmp_path):
    await run(
        f"{REPOSITORY}; git init -q --bare evil; git -C evil config core.bare false", tmp_path
    )
    (tmp_path / "evil" / "config").write_text(
        '[core]\nrepositoryformatversion = 0\nworktree = wt\nfsmonitor = "touch PWN; false"\n'
    )
    (tmp_path / "evil" / "wt").mkdir()

    output = await run("cd evil && git status; git -C .. status --short; ls wt", tmp_path)

    assert "safe.bareRepository is 'explicit'" in output
    assert not list(tmp_path.rglob("PWN"))


async def test_settings_that_the_user_gives_git_by_variables_hold_but_secrets(tmp_path):
    settings = {
        "user.name": "me",
        "http.proxy": "http://me:a-password-of-mine@localhost:1",
        "core.abbrev": "12",
    }
    own = {"GIT_CONFIG_COUNT": str(len(settings))}
    for number, (key, value) in enumerate(settings.items()):
        own |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}

    names = ("user.name", "core.abbrev", "safe.bareRepository", "http.proxy")
    command = "; ".join(f"git config {name}" for name in names)
    output = await run(command, tmp_path, env={**os.environ, **own})

    assert output.split()[:3] == ["me", "12", "explicit"]
    assert "password" not in output
