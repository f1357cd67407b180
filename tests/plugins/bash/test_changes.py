"""Which files a command changes, by each way in which programs name them."""

import pytest

from guarding import of_command
from pegboard_plugins.bash.scan import Place, scan


@pytest.fixture
def project(tmp_path):
    """A project with a few folders."""
    (tmp_path / "home/proj/src/sub").mkdir(parents=True)
    (tmp_path / "home/proj/docs").mkdir()
    return (tmp_path / "home/proj").resolve()


def written(project, command):
    found = scan(command, Place(cwd=project, home=project.parent, worktree=project))
    return {str(path).removeprefix(f"{project}/") for path in found.writes}


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("gzip a", {"a"}),
        ("gzip -c a", set()),
        ("zstd a", {"a"}),
        ("tar cf new.tar a", {"new.tar"}),
        ("tar -C src -czf new.tgz .", {"new.tgz"}),
        ("tar xf old.tar", set()),
        ("tar --file=old.tar --append a", {"old.tar"}),
        ("zip -q new.zip a", {"new.zip"}),
        ("shuf a -o new", {"new"}),
        ("split -l 1 a new", {"new"}),
        ("split a", {"x"}),
        ("csplit a 1 -f new", {"new"}),
        ("mktemp -p src", {"src"}),
        ("install -d one two", {"one", "two"}),
        ("install one src", {"src"}),
        ("ln -s src/sub", {"src/sub", "sub"}),
        ("git init -q new", {"new"}),
        ("git clone -q . new", {"new"}),
        ("git worktree add new", {"new"}),
        ("git rm -q 'src/*.py'", {"src"}),
        ("find src -name a -delete", {"src"}),
        ("find src docs -name a -exec rm {} +", {"src", "docs", "{}"}),
        ("mv -vtsrc a", {"a", "src"}),
        ("sort a -uonew", {"new"}),
        ("touch -- -n", {"-n"}),
        ("rm -- -rf", {"-rf"}),
        ("sort -o -n a", {"-n"}),
    ],
)
def test_a_command_changes_what_it_names(project, command, writes):
    assert written(project, command) == writes


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("V=one; V=two; cp a $V", {"one", "two"}),
        ("V=one; V=two; sort a -o $V", {"one", "two"}),
        ("for f in 'a b'/*.x; do rm \"$f\"; done", {"a b"}),
        ("for f in one two; do cp a $f; done", {"one", "two"}),
    ],
)
def test_each_value_of_a_word_is_changed(project, command, writes):
    assert writes <= written(project, command)


@pytest.mark.parametrize(
    ("command", "path"),
    [
        ("cd -- src; touch a", "src/a"),
        ("cd src docs; touch a", "a"),
        ("cd {src,docs}; touch a", "a"),
        ("cd s*; touch a", "src/a"),
        ("mkdir fresh; cd fr*; touch a", "fresh/a"),
        ("pushd src; popd; touch a", "a"),
        ("pushd src; pushd ../docs; popd; touch a", "src/a"),
        ("cd src; cd -; touch a", "a"),
        ("cd src; cd ../docs; cd -; touch a", "src/a"),
    ],
)
def test_a_line_goes_on_where_its_words_lead(project, command, path):
    assert path in written(project, command)


@pytest.mark.parametrize(
    "command",
    ["find -delete -name a", "find . -type f -delete -name a", "find . -exec rm {} + -name a"],
)
async def test_a_test_behind_what_deletes_narrows_nothing(project, command):
    verdict = await of_command(project, command)

    assert verdict.action == "deny"


@pytest.mark.parametrize(
    "command", ["find . -name a -delete", "find . -name a -exec rm {} +", "pushd src; popd; rm a"]
)
async def test_what_is_narrow_is_not_refused(project, command):
    assert await of_command(project, command) is None
