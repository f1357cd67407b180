"""What the wildcards of a line fit, and signs of wildcards that are letters."""

import os

import pytest

from pegboard.unstable import shell_paths
from pegboard_plugins.bash.scan import StartPlace, scan
from pegboard_plugins.bash.wildcards import looked_up
from support.tools.guarding import of_command


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
    place = StartPlace(cwd=project, home=project.parent, worktree=project)
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
        ("V='a*'; touch \"$V\"", {"a*"}),
        ('V=a*; W=$V; touch "${W%?}x"', {"ax"}),
        ("touch $NONE' a b'", {" a b"}),
        ('touch $NONE"a b"/t', {"a b/t"}),
        ("V='a b'; touch $V' c'", {"a", "b c"}),
        ("read -r V <<< 'a b*'; touch \"$V\"", {"a", "a b*", "b*"}),
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
        ("for f in '[x]'/*; do touch \"$f\"; done", {str, "[x]/page.tsx"}),
        ("for f in '[x]'/*.t; do touch \"${f%.t}.m\"; done", {str, "[x]/*.m", "[[]x]/*.m"}),
        ("V=src/[^.]*; touch ${V%%.*}.md", {"src", "src/[^.md"}),
        ('for f in src/*.py; do W=$f; touch "$W"; done', {"src", "src/a.py", "src/b.py"}),
        ("mkdir [s]rc/new", {str, "src/new", "[s]rc/new"}),
        ("V='s*'; touch $V/new", {str, "src/new", "s*/new"}),
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


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("for f in src/*.md; do touch $f; done", {"src/x y.md", "src/x", "y.md"}),
        ("V=(src/*.md); touch ${V[0]}", {"src/x y.md", "src/x", "y.md"}),
        ('for f in src/*.md; do touch "$f"; done', {"src/x y.md"}),
        ("touch src/*.md", {"src/x y.md"}),
    ],
)
def test_the_blanks_in_a_name_part_it_outside_of_quotes_alone(tree, command, writes):
    (tree / "src" / "x y.md").touch()

    assert named(tree, found(tree, command).writes) == {"src", *writes}


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("grep -r x '[x]'", "[x]"),
        ('zip -r out "[x]"', "[x]"),
        ("grep -r x [x]", "x"),
        ("unknown '[x]'", "[x]"),
        ("unknown '[x]'", "x"),
    ],
)
def test_what_a_program_takes_for_a_wildcard_may_be_a_name(tree, command, path):
    seen = found(tree, command)

    fitting = {name for each in seen.globs for name in shell_paths(each.pattern)}
    assert path in named(tree, {*seen.paths, *fitting})


@pytest.mark.parametrize(
    "command",
    [
        "find ../other -name x -exec chmod 600 {} +",
        "find ../other -name x | xargs rm",
        "grep -rl x ../other | while read -r f; do sed -i s/x/y/ $f; done",
        "while read -r f; do rm $f; done < <(find ../other -name x)",
        "for f in $(ls ../other/*); do rm $f; done",
        "ls | xargs -I{} touch ../other/{}",
        "for f in $(ls); do touch ../other/$f; done",
    ],
)
def test_what_is_listed_elsewhere_is_written_there(tree, command):
    assert str(tree / "../other/*") in map(str, found(tree, command).writes)


def test_what_is_written_to_a_link_to_a_listed_file_is_written_to_any(tree):
    seen = found(tree, "cp -l $(cd src && ls a.py) new; echo x > new")

    assert str(tree / "*") in map(str, seen.writes)


def test_above_a_temporary_folder_is_the_folder_of_all_of_them(tree):
    seen = found(tree, "D=$(mktemp -d); cd $D; chmod -R 700 ..; cd -")

    assert "/tmp" in {os.path.normpath(path) for path in seen.writes}


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("cp $(cd src && ls a.py) $PWD/new", "new"),
        ("rm -f $(git rev-parse --git-dir)/config", ".git/config"),
        ('for f in $(git rev-parse --git-dir)/config; do rm "./$f"; done', ".git/config"),
        ("ln -s src/a.py l; echo x > l", "src/a.py"),
        ("ln -s ../.. src/l; touch src/l/new", "../new"),
    ],
)
def test_a_path_is_the_one_of_then(tree, command, path):
    (tree / ".git").mkdir()

    assert os.path.normpath(tree / path) in map(os.path.normpath, found(tree, command).writes)


def test_a_copy_with_its_folders_lands_in_them(tree):
    seen = found(tree, "cp --parents ../notes.txt src")

    assert "notes.txt" in {os.path.relpath(path, tree) for path in seen.lands}


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
