"""What the wildcards of a line fit, and signs of wildcards that are letters."""

import pytest

from guarding import of_command
from pegboard_plugins.bash.scan import Place, scan
from pegboard_plugins.bash.wildcards import looked_up


@pytest.fixture
def tree(tmp_path):
    """A project with links in a home."""
    project = tmp_path.resolve() / "home" / "proj"
    for name in ("src/a.py", "src/b.py", "src/sub/c.py", "[x]/page.tsx", "x/page.tsx", ".env"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    (project / "../notes.txt").touch()
    (project / "link_env").symlink_to(".env")
    (project / "link_out").symlink_to("../notes.txt")
    (project / "link_new").symlink_to("../new.txt")
    (project / "up").symlink_to("..")
    return project


def found(project, command):
    place = Place(cwd=project, home=project.parent, worktree=project)
    return looked_up(scan(command, place), command)


def named(project, paths):
    return {str(path).removeprefix(f"{project}/") for path in paths}


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("touch '[x]/t'", {"[x]/t"}),
        ('sed -i s/a/b/ "[x]/page.tsx"', {"[x]/page.tsx"}),
        (r"rm \[x\]/page.tsx", {"[x]/page.tsx"}),
        ("echo x > '[x]/t'", {"[x]/t"}),
        ("cp src/a.py '[x]'/t", {"[x]/t"}),
        ("truncate -s0 'a*'", {"a*"}),
    ],
)
def test_a_sign_in_quotes_is_a_letter_of_the_name(tree, command, writes):
    assert named(tree, found(tree, command).writes) == writes


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("sed -i s/a/b/ src/*.py", {"src", "src/a.py", "src/b.py"}),
        (r"rm \[x]/*", {str, "[x]/page.tsx"}),
        ("rm [x]/*", {str, "x/page.tsx"}),
        ("touch src/new*", {"src", "src/new*"}),
        ("V='[x]'; touch $V/t", {str, "[x]/t", "x/t"}),
        ("shopt -s globstar; rm src/**/*.py", {"src", "src/a.py", "src/b.py", "src/sub/c.py"}),
    ],
)
def test_a_wildcard_that_is_written_names_each_file_that_it_fits(tree, command, writes):
    expected = {str(tree) if each is str else each for each in writes}

    assert named(tree, found(tree, command).writes) == expected


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("cat link_e*", "link_env"),
        ("cat .e*", ".env"),
        ("cat link_[o]ut", "link_out"),
        ("cat *", "link_out"),
        ("cat u?/*.txt", "up/notes.txt"),
        ("for f in link*; do echo x > $f; done", "link_new"),
        ("shopt -s globstar; cat **/.env", ".env"),
    ],
)
def test_a_wildcard_names_what_lies_elsewhere_and_secrets(tree, command, path):
    assert path in named(tree, found(tree, command).paths)


@pytest.mark.parametrize("command", ["cat src/*", "sed -i s/a/b/ src/*.py", "rm [x]/*"])
def test_a_wildcard_names_no_more_than_its_folder_of_what_is_in_it(tree, command):
    (folder,) = named(tree, found(tree, command).paths)

    assert folder in ("src", str(tree))


def test_signs_in_the_name_of_the_project_are_letters(tmp_path):
    project = tmp_path.resolve() / "[x]"
    (project / "src").mkdir(parents=True)

    found_here = found(project, "touch src/a; cat *.txt; rm -rf src/*")

    assert all(path.is_relative_to(project) for path in found_here.paths)


@pytest.mark.parametrize(
    "command", ["rm -rf *", "rm -rf .", "rm -rf ../*x*", "rm -rf $PWD/", "rm -rf '../[x]'"]
)
async def test_a_project_with_signs_in_its_name_is_refused_to_be_destroyed(tmp_path, command):
    project = tmp_path.resolve() / "[x]"
    (project / "src").mkdir(parents=True)
    (project / "docs").mkdir()

    verdict = await of_command(project, command)

    assert verdict.action == "deny"


async def test_a_neighbour_of_a_project_with_signs_in_its_name_may_go(tmp_path):
    project = tmp_path.resolve() / "[x]"
    (project / "src").mkdir(parents=True)

    assert await of_command(project, "rm -rf ../x src '../[y]'") is None
