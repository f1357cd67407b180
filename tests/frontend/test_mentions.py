"""What counts as a mention, and what a mention leads to."""

import subprocess
from pathlib import Path

import pytest

from pegboard import Host, hookimpl
from pegboard.schema.part import AgentInput, FileInput, TextInput
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard.workspace import open_workspace
from pegboard_plugins.shared.frontend import mentioned
from pegboard_plugins.shared.frontend.mentions import Mention, find_files, mentions
from support.models.played import Played, opened, text


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        ("see @README.md.", ["README.md"]),
        ("(@src/a.py), @b.txt; and @c!", ["src/a.py", "b.txt", "c"]),
        ("@.env and @.github/x.yml", [".env", ".github/x.yml"]),
        ("me@example.com, `@code`, a `@b`", []),
        ("@a @a @b", ["a", "b"]),
        ("@ alone, @@twice, @../up", []),
        ("@helper, look", ["helper"]),
        ("no mention", []),
    ],
)
def test_a_mention_is_a_name_behind_an_at_sign(typed: str, names: list[str]) -> None:
    assert [mention.name for mention in mentions(typed)] == names


@pytest.mark.parametrize(
    ("typed", "mention"),
    [
        ("@a.py#10", Mention(name="a.py", start=10, end=10)),
        ("@a.py#L10-L20", Mention(name="a.py", start=10, end=20)),
        ("@a.py#10-20.", Mention(name="a.py", start=10, end=20)),
        ("@a#b", Mention(name="a#b")),
    ],
)
def test_a_mention_can_select_lines(typed: str, mention: Mention) -> None:
    assert mentions(typed) == (mention,)


def test_a_mention_leads_to_a_file_in_the_worktree_and_nowhere_else(tmp_path: Path) -> None:
    root = tmp_path / "repo"
    subprocess.run(["git", "init", "-q", root], check=True)
    sub = root / "sub"
    sub.mkdir()
    (tmp_path / "secret.txt").write_text("s")
    (root / "top.txt").write_text("t")
    (sub / "low.txt").write_text("l")
    (sub / "link.txt").symlink_to(tmp_path / "secret.txt")
    workspace = open_workspace(sub)

    names = ["low.txt", "top.txt", "link.txt", str(tmp_path / "secret.txt"), "~/x", "none", "/"]
    found = find_files([Mention(name=name) for name in names], workspace)

    assert [each.path for each in found] == [sub / "low.txt", root / "top.txt"]


async def test_files_and_subagents_become_parts_and_nothing_else_does(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("x"))) as app:
        project = app.workspace.directory
        (project / "a.py").write_text("1\n2\n3\n")
        (project / "pic.png").write_bytes(b"\x89PNG")
        (project / "docs").mkdir()
        session = await app.create_session()
        parts = await mentioned(app, session.id, "@a.py#2-3 @pic.png @docs @helper @build @none")

    assert parts == (
        FileInput(
            mime="text/plain",
            url=f"{(project / 'a.py').as_uri()}?start=2&end=3",
            filename="a.py",
        ),
        FileInput(mime="image/png", url=(project / "pic.png").as_uri(), filename="pic.png"),
        FileInput(mime="application/x-directory", url=(project / "docs").as_uri(), filename="docs"),
        AgentInput(name="helper"),
    )


class NoSecrets:
    """Asks before an `.env` is read."""

    @hookimpl
    async def permission_ask(self, request: PermissionRequest) -> Verdict:
        secret = any(pattern.endswith(".env") for pattern in request.patterns)
        reason = "secrets are asked for" if secret else ""
        return Verdict(action="ask" if secret else "allow", reason=reason)


async def test_a_secret_is_not_attached_without_a_permission(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("x")), NoSecrets(), allow=False) as app:
        project = app.workspace.directory
        (project / ".env").write_text("KEY=1")
        (project / "harmless").symlink_to(project / ".env")
        session = await app.create_session()
        parts = await mentioned(app, session.id, "@.env @harmless")

    assert parts == (
        TextInput(
            text="[@.env is not attached: plugin NoSecrets: secrets are asked for]", synthetic=True
        ),
        TextInput(
            text="[@harmless is not attached: plugin NoSecrets: secrets are asked for]",
            synthetic=True,
        ),
    )


async def test_what_a_prompt_says_is_not_searched_for_mentions(tmp_path: Path) -> None:
    provider = Played(text("x"))
    async with opened(tmp_path, provider) as app:
        (app.workspace.directory / "a.py").write_text("secret")
        session = await app.create_session()
        await app.prompt(session.id, "look at @a.py")
        [turn, _] = await app.list_turns(session.id)

    assert len(turn.parts) == 1


class Tickets:
    """Knows tickets by their number."""

    @hookimpl
    async def mention(self, app: Host, name: str) -> tuple[TextInput, ...] | None:
        kind, _, number = name.partition(":")
        if kind != "ticket":
            return None
        return (TextInput(text=f"{number} of {app.workspace.directory.name}", synthetic=True),)


@pytest.mark.fires("mention")
async def test_plugins_are_asked_for_names_that_are_no_files_and_no_agents(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(text("x")), Tickets()) as app:
        (app.workspace.directory / "ticket:1").write_text("a file")
        session = await app.create_session()
        found = await mentioned(app, session.id, "Do @ticket:7, @helper, @ticket:1 and @nothing.")

    assert [type(each) for each in found] == [AgentInput, FileInput, TextInput]
    assert found[2] == TextInput(text="7 of project", synthetic=True)
