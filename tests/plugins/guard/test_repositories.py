"""What git takes for a repository is protected as `.git` is, whatever it is called."""

import pytest

from pegboard.schema.session import Rule
from support.tools.guarding import all_of_command, said


def make_repository(folder, *names):
    """A folder in which these of the names by which git knows a repository are."""
    for name in names or ("HEAD", "objects/info/x", "refs/x"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


@pytest.mark.parametrize("path", ["evil/config", "evil/hooks/pre-commit", "evil/a/b", "evil/HEAD"])
async def test_a_repository_under_another_name_is_protected(project, path):
    make_repository(project / "evil")

    verdict = await said(project, "edit", [path], rules=[Rule("*", "*", "allow")])

    assert (verdict.action, verdict.firm) == ("ask", True)


@pytest.mark.parametrize(
    ("there", "path"),
    [
        (("HEAD", "objects/x"), "evil/refs/x"),
        (("HEAD", "refs/x"), "evil/objects/info/x"),
        (("objects/x", "refs/x"), "evil/HEAD"),
        (("objects/x", "refs/x"), "evil/head"),
        (("HEAD",), "evil/commondir"),
        (("config",), "evil/HEAD evil/objects/x evil/refs/x"),
    ],
)
async def test_what_makes_a_folder_one_is_asked_for_too(project, there, path):
    make_repository(project / "evil", *there)

    verdict = await said(project, "edit", path.split())

    assert (verdict.action, verdict.firm) == ("ask", True)


async def test_a_line_that_makes_one_is_asked_for(project):
    lines = (
        "mkdir -p evil/objects evil/refs; echo 'ref: refs/heads/x' > evil/HEAD",
        "cp HEAD evil/; mkdir evil/refs; touch evil/objects",
    )
    make_repository(project / "other")

    for line in (*lines, "cp x other/config", "cd other; echo x > config"):
        assert ("ask", True) in await all_of_command(project, line)


async def test_a_project_in_such_a_repository_is_worked_on(home, project):
    make_repository(project.parent)
    make_repository(project / "sub")
    (project / "sub" / ".git").touch()
    make_repository(project / "docs", "HEAD", "objects.md", "refs.md")

    for path in ("src/main.py", "sub/a", "docs/x", "HEAD", "a/objects/x"):
        assert await said(project, "edit", [path]) is None
