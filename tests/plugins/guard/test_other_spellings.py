"""What is asked for in its plain form is asked for in every other spelling."""

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pegboard.schema.session import PermissionRequest, Ruleset
from pegboard_plugins import secrets
from pegboard_plugins.bash.scan import StartPlace, scan
from pegboard_plugins.bash.wildcards import looked_up
from pegboard_plugins.rules import DEFAULTS
from support.tools.guarding import of_command


@pytest.fixture
def tracked(project: Path) -> Path:
    """A repository with a secret that is tracked, and one that is not."""
    (project / ".env").write_text("KEY=x\n")
    (project / "server.key").write_text("x\n")
    (project / "a.py").write_text("x\n")
    for line in ("git init -q", "git add .env a.py"):
        subprocess.run(line.split(), cwd=project, check=True)
    return project


@pytest.fixture
def nested(tracked: Path) -> Path:
    """A repository in which there are two others, one with a program in its settings."""
    setting = "git -C nest config core.fsmonitor id"
    for line in ("git init -q nest", "git init -q plain", setting):
        subprocess.run(line.split(), cwd=tracked, check=True)
    return tracked


async def reading(project: Path, command: str) -> str:
    """What the policy of files of secrets says of a line."""
    found = scan(command, StartPlace(cwd=project, home=Path.home(), worktree=project))
    found = looked_up(found, command)
    session: Any = SimpleNamespace(
        home=Path.home(), rulesets=(Ruleset(source="config", rules=DEFAULTS),)
    )
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="bash",
        patterns=(command,),
        metadata={
            "paths": [str(path) for path in found.paths],
            "writes": [str(path) for path in found.writes],
            "reads": [str(path) for path in found.reads],
        },
        always=(),
    )
    verdict = await secrets.permission_ask(session, request)
    return verdict.action if verdict else "allow"


@pytest.mark.parametrize(
    "command",
    [
        *("rg -g .env --hidden .", "rg -g '.e*' -uu .", "rg --iglob .ENV x", "rg --glob=.env x"),
        *("rg -g '**/.env' x", "git cat-file --batch <<< HEAD:.env"),
        *("echo HEAD:.env | git cat-file --batch", "git ls-files | xargs cat"),
        *("cat $(git ls-files)", "for f in $(git ls-files); do cat $f; done"),
        *("grep -raz KEY /proc/$PPID/", "rg -uuu KEY /proc/$PPID", "cp -r /proc/self x"),
        *("grep -r KEY /proc/1/task/1", "tar cf x.tar /proc/*", "ln -s /proc p"),
        "cat ~/.local/state/pegboard/server-4096.json",
    ],
)
async def test_a_secret_is_asked_for(tracked: Path, command: str) -> None:
    assert await reading(tracked, command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("rg -g '*.py' x", "rg -g '!.env' --hidden x", "rg x .github"),
        *("git cat-file --batch <<< HEAD:a.py", "git ls-files '*.py' | xargs cat"),
        *("git ls-files | xargs wc -l", "git ls-files"),
        *("cat /proc/cpuinfo", "cat /proc/self/status", "ls /proc/1", "cat server-1.json"),
    ],
)
async def test_other_files_are_not(tracked: Path, command: str) -> None:
    assert await reading(tracked, command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        *("mount -t proc x m", "mount --bind ~ m", "mount -o bind ~ m", "gcore 1234"),
        *("echo b > /proc/sysrq-trigger", "echo mem | tee /sys/power/state"),
        *("zip -rm x.zip $(echo ~)", "cd ~; git stash -uq", "cd ~ && git stash push -a"),
    ],
)
async def test_what_endangers_more_than_the_project_is_asked_for(
    project: Path, command: str
) -> None:
    verdict = await of_command(project, command)

    assert verdict is not None
    assert (verdict.action, verdict.firm) == ("ask", True)


@pytest.mark.parametrize(
    "command",
    [
        "mount",
        "mount -l -t ext4",
        "git stash -u",
        "cd ~; git stash list",
        "zip -rq x.zip ~",
    ],
)
async def test_what_endangers_nothing_is_not(project: Path, command: str) -> None:
    assert await of_command(project, command) is None


async def test_git_is_asked_for_in_a_repository_that_brings_programs_of_its_own(
    nested: Path,
) -> None:
    verdict = await of_command(nested, "cd nest && git status")

    assert verdict is not None
    assert verdict.action == "ask"
    assert "core.fsmonitor" in verdict.reason
    assert await of_command(nested, "git status; cd plain && git status") is None


@pytest.mark.parametrize(
    ("command", "is_written"),
    [
        ("sqlite3 app.db 'delete from x'", True),
        ("sqlite3 app.db 'select 1; drop table x'", True),
        ("sqlite3 app.db < x.sql", True),
        ("sqlite3 app.db 'select * from x'", False),
        ("sqlite3 -readonly app.db .tables", False),
        ("sqlite3 app.db .schema 'pragma table_info(x)'", False),
    ],
)
def test_a_database_is_written_by_all_that_does_not_only_look(
    project: Path, command: str, *, is_written: bool
) -> None:
    found = scan(command, StartPlace(cwd=project, home=Path.home(), worktree=project))

    assert (project / "app.db" in found.writes) == is_written
