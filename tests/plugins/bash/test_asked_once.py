"""A user who was asked about a line is not asked again about the files that it writes."""

import asyncio
import json
from pathlib import Path

import pytest

from pegboard import App
from pegboard.schema.event import PermissionAsked
from pegboard.schema.session import Reply
from pegboard_plugins import bash, guard, rules
from support.models.played import Played, call, calls, opened, text


async def asked(
    folder: Path,
    command: str,
    permission: dict[str, object],
    reply: Reply = "once",
    workdir: str = "",
) -> list[str]:
    """Return the permissions that a user is asked for, who gives each of them this reply."""
    args = json.dumps({"command": command, "workdir": workdir})
    provider = Played(calls(call("bash", args)), text("done"))
    found: list[str] = []

    async def answer(app: App) -> None:
        async with app.subscribe() as events:
            async for event in events:
                if isinstance(event.properties, PermissionAsked):
                    found.append(event.properties.request.permission)
                    await app.answer_permission(event.properties.request.id, reply)

    config = {"model": "played/m", "permission": {"*": "allow", **permission}}
    async with opened(
        folder, provider, rules, guard, bash, allow=False, interactive=True, config=config
    ) as app:
        answering = asyncio.create_task(answer(app))
        session = await app.create_session()
        await app.prompt(session.id, "go")
        answering.cancel()
    return found


@pytest.mark.parametrize(
    ("command", "permission", "questions"),
    [
        ("touch made", {"bash": "ask", "edit": "ask"}, ["bash"]),
        ("touch made; touch more", {"bash": "ask", "edit": "ask"}, ["bash"]),
        ("touch made", {"edit": "ask"}, ["edit"]),
        ("touch made", {"bash": "ask", "edit": "deny"}, []),
        ("ls", {"bash": "ask", "edit": "ask"}, ["bash"]),
        (
            "echo x > .git/hooks/commit-msg; touch made",
            {"bash": "ask", "edit": "ask"},
            ["bash", "edit"],
        ),
    ],
)
async def test_what_a_line_does_is_one_question(
    tmp_path: Path, command: str, permission: dict[str, object], questions: list[str]
) -> None:
    assert await asked(tmp_path, command, permission) == questions
    made = "made" in command and permission["edit"] != "deny"
    assert (tmp_path / "project" / "made").exists() is made


async def test_a_no_to_the_line_is_one_to_its_files(tmp_path: Path) -> None:
    permission: dict[str, object] = {"bash": "ask", "edit": "ask"}

    assert await asked(tmp_path, "touch made", permission, "reject") == ["bash"]
    assert not (tmp_path / "project" / "made").exists()


@pytest.mark.parametrize(
    ("first", "second", "questions"),
    [
        ("touch made", "touch made", []),
        ("mkdir -p made", "mkdir -p made", []),
        ("touch made; ls > names", "touch made; ls > names", []),
        ("touch made; ls > names", "touch made; ls > others", ["edit"]),
        ("touch made", "touch other", ["edit"]),
    ],
)
async def test_a_line_that_is_allowed_for_good_is_allowed_with_the_files_that_it_writes(
    tmp_path: Path, first: str, second: str, questions: list[str]
) -> None:
    permission: dict[str, object] = {"bash": "ask", "edit": "ask"}

    assert await asked(tmp_path, first, permission, "always") == ["bash"]
    assert await asked(tmp_path, second, permission) == questions


async def test_a_line_that_is_allowed_for_good_is_not_so_in_another_folder(tmp_path: Path) -> None:
    permission: dict[str, object] = {"bash": "ask", "edit": "ask"}
    (tmp_path / "project" / "sub").mkdir(parents=True)

    assert await asked(tmp_path, "touch made", permission, "always") == ["bash"]
    assert await asked(tmp_path, "touch made", permission, workdir="sub") == ["edit"]
