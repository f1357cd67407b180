"""Which files a command changes, by each way in which programs name them."""

import pytest

from pegboard_plugins.bash.scan import StartPlace, scan
from pegboard_plugins.bash.wildcards import looked_up
from support.tools.guarding import of_command


@pytest.fixture
def project(tmp_path):
    """A project with a few folders."""
    (tmp_path / "home/proj/src/sub").mkdir(parents=True)
    (tmp_path / "home/proj/docs").mkdir()
    (tmp_path / "home/proj/link").symlink_to("..")
    return (tmp_path / "home/proj").resolve()


def written(project, command):
    found = scan(command, StartPlace(cwd=project, home=project.parent, worktree=project))
    return {str(path).removeprefix(f"{project}/") for path in found.writes} - {str(project)}


PATCH = "--- a/src/one\n+++ b/src/one\n--- /dev/null\n+++ b/two\n"


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("git apply fix.patch", {"src/one", "two"}),
        ("git apply -R < fix.patch", {"src/one", "two"}),
        ("git apply --directory=docs fix.patch", {"docs/src/one", "docs/two"}),
        ("git apply -p2 fix.patch", {"one"}),
        (f"git apply <<'E'\n{PATCH}E", {"src/one", "two"}),
        ("git am fix.patch", {"src/one", "two"}),
        ("git apply other.patch", {"*"}),
        ("cat other.patch | git am", {"*"}),
        ("patch -p1 -d docs < fix.patch", {"docs/src/one", "docs/two"}),
        ("patch src/sub/a fix.patch", {"src/sub/a"}),
        ("patch src/sub/a < other.patch", {"src/sub/a", "*"}),
    ],
)
def test_a_patch_changes_what_it_names_else_any_file(project, command, writes):
    (project / "fix.patch").write_text(PATCH)

    assert written(project, command) >= writes


@pytest.mark.parametrize("option", ["--check", "--cached", "--stat"])
def test_a_patch_that_is_looked_at_changes_nothing(project, option):
    (project / "fix.patch").write_text(PATCH)

    assert written(project, f"git apply {option} fix.patch") == set()


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
        ("split -n 2 $(git ls-files '*.py')", {"*"}),
        ("uniq $(ls a b)", {"*"}),
        ("csplit a 1 -f new", {"new"}),
        ("mktemp -p src", {"src"}),
        ("install -d one two", {"one", "two"}),
        ("install one src", {"src"}),
        ("ln -s src/sub", {"src/sub", "sub"}),
        ("git init -q new", {"new"}),
        ("git clone -q . new", {"new"}),
        ("git worktree add new", {"new"}),
        ("git rm -q 'src/*.py'", {"src/*"}),
        ("git checkout main", set()),
        ("git checkout -b src/none", set()),
        ("git checkout main src", {"src"}),
        ("git checkout .", {"*"}),
        ("git clean -n src", set()),
        ("find src -name a -delete", {"src"}),
        ("find src docs -name a -exec rm {} +", {"src", "docs", "{}"}),
        ("mv -vtsrc a", {"a", "src"}),
        ("sort a -uonew", {"new"}),
        ("touch -- -n", {"-n"}),
        ("rm -- -rf", {"-rf"}),
        ("sort -o -n a", {"-n"}),
        ("cp a new -v", {"new"}),
        ("cp a new -S .old -b", {"new"}),
        ("install a new -m 600", {"new"}),
        ("mv a new -f", {"a", "new"}),
        ("link a new", {"new"}),
        ("iconv a -o new", {"new"}),
        ("mktemp src/t.XXXX", {"src"}),
        ("bash <<< 'xargs -a list rm'", {"*"}),
        ("echo *.log | xargs rm", set()),
        ("xargs -n1 rm <<< src/$((2)).x", {"src"}),
        ("echo src/$((2)).x | xargs rm", {"src"}),
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
        ('V=one; V=two; split -n 2 "$V"', {"x"}),
        ('test -d src && cd src; split -n 2 "$PWD"/a', {"x", "src/x"}),
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
        ("env --chdir={src,docs} touch a", "docs/a"),
        ("V=$(cd src; pwd)/a; cd docs; rm $V", "src/a"),
        ('cd docs; rm "$(cd ../src && pwd -P)/a"', "src/a"),
        ("V=$(cd gone; pwd)/a; rm $V", "a"),
        ("cd s*; touch a", "src/a"),
        ("mkdir fresh; cd fr*; touch a", "fresh/a"),
        ("pushd src; popd; touch a", "a"),
        ("pushd src; pushd ../docs; popd; touch a", "src/a"),
        ("cd src; cd -; touch a", "a"),
        ("cd src; cd ../docs; cd -; touch a", "src/a"),
        ("false && cd src; touch a", "a"),
        ("[ -d src ] && cd src; touch a", "a"),
        ("make && cd src && ls; touch a", "a"),
        ("builtin cd src; touch a", "src/a"),
        ("command cd src; touch a", "src/a"),
        ("pushd; touch a", "a"),
        ("cd -n; touch a", "a"),
        ('cd "$(dirname [sd]*/x)"; touch a', "a"),
        ("cd link/..; touch a", "a"),
        ("cd link/..; touch a", "link/../a"),
        ("cd src/..; touch $PWD/a", "a"),
        ("env -C src touch $PWD/a", "a"),
    ],
)
def test_a_line_goes_on_where_its_words_lead(project, command, path):
    assert path in written(project, command)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "touch f$((1 + 1))",
            "n=$((1 + 1)); touch f$n",
            "touch f$?",
            "touch f$$",
            "touch f$RANDOM",
        ),
        *("n=$(ls | wc -l); touch f$n", "for ((i=1;i<3;i++)); do touch f$i; done"),
        *("touch f$(date +%s)", "let n=1+1; touch f$n"),
    ],
)
def test_a_number_in_a_name_may_be_any(project, command):
    (project / "f25").touch()

    found = scan(command, StartPlace(cwd=project, home=project.parent, worktree=project))

    assert f"{project}/f25" in map(str, looked_up(found, command).writes)


def test_of_a_wildcard_that_is_cut_in_two_any_name_is_left(project):
    place = StartPlace(cwd=project, home=project.parent, worktree=project)

    found = scan("for f in *[.]txt; do cp a ${f%.*}.md; done", place)

    assert [each.path for each in found.globs if each.is_written] == [f"{project}/*.md"]


def test_another_shell_may_read_a_set_otherwise(project):
    place = StartPlace(cwd=project, home=project.parent, worktree=project)

    assert scan("sh -c 'cat .[^a]nv'", place).unclear.code == "dialect"
    assert scan("bash -c 'cat .[^a]nv'; sh -c 'cat .[!a]nv'", place).unclear is None


@pytest.mark.parametrize(
    "command", ["[ -d build ] && cd build; rm -rf *", "false && cd src || true; rm -rf *"]
)
async def test_behind_a_cd_that_may_not_have_run_the_line_is_judged_where_it_was(project, command):
    (project / "build").mkdir()

    verdict = await of_command(project, command)

    assert verdict.action == "deny"


@pytest.mark.parametrize(
    "command", ["mkdir -p build && cd build; rm -rf *", "cd src && cd sub; rm -rf *"]
)
async def test_a_cd_behind_what_succeeds_has_run(project, command):
    (project / "build").mkdir()

    assert await of_command(project, command) is None


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
