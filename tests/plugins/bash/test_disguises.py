"""Lines that do what their words do not show at first: shortened options, tildes, odd outputs."""

from pathlib import Path

import pytest

from pegboard_plugins.bash.approving import covered, prefix
from pegboard_plugins.bash.scan import StartPlace, scan

PROJECT, HOME = Path("/w/proj"), Path("/home/u")


def seen(text):
    return scan(text, StartPlace(cwd=PROJECT, home=HOME, worktree=PROJECT))


def texts(paths):
    return {str(path) for path in paths}


@pytest.mark.parametrize(
    "text",
    [
        *("sort --comp=id x", "tar tf x --to-com=id", "tar --use=id -tf x"),
        *("tar -Iid -tf x", "tar tIf id x", "tar cf x --checkpoint=1 --checkpoint-act=exec=id y"),
        *("sed --in-p s/a/b/ x", "sed --exp=1e x", "sed --fil=x y", "git log --outp=x"),
        *("git log --ext", "git fetch --upload-p=id x", "go test --exec=id", "go test --exec id"),
        *("fd -x id", "fd . --exec-batch id", "fdfind -X id", "fd -HX id", "hyperfine id"),
        *("awk -f x y", "gawk -i inplace 1 x", "gawk -l x 1", "awk --file=x y"),
        *("make CC='id;' x", "make test MAKEFLAGS=--eval=x", "make 'X=$(shell id)'"),
        *("bat --pager id x", "cmake -P x", "split --filt=id x"),
        *("python -m pytest -p evil", "python3 -m pytest -pevil"),
    ],
)
def test_what_a_program_is_made_to_do_by_an_option_is_unclear(text):
    assert seen(text).unclear


@pytest.mark.parametrize(
    "text",
    [
        *("uniq a .git/hooks/x", "tree -o .git/hooks/x", "less -o.git/hooks/x y"),
        *("xxd -r y .git/hooks/x", "git checkout-index --prefix=.git/hooks/ -a"),
        *("git archive -o .git/hooks/x HEAD", "foo --output=.git/config", "foo -o.git/config"),
        *("tar xf x --directory=.git/hooks", "curl x -o.git/hooks/y", "git -C .git/hooks init"),
        *("git config core.hooksPath x", "git config alias.x '!y'"),
    ],
)
def test_what_a_program_is_told_to_write_where_it_runs_by_itself_is_written(text):
    assert any(".git" in path.parts for path in seen(text).writes)


@pytest.mark.parametrize(
    "text",
    [
        *("git diff --text", "git log --oneline --extended-regexp", "sort --reverse x"),
        *("tar -czf x.tgz dir", "tar xf x.tar", "tar tvf x", "fd -e py src", "fd --hidden x"),
        *("make -j4 test V=1", "make PREFIX=/w/proj/out install", "uniq -c x", "xxd -l 16 x"),
        *("git add .gitignore", "git log -- .github"),
        *("awk -F: '{print $1}' x", "awk -v n=1 'NR==n' x", "cmake -B build", "less x"),
        *("git add .pegboard/tool/x.py", "rsync -av src/ out/"),
    ],
)
def test_what_looks_like_it_and_is_not_stays_clear(text):
    assert seen(text).unclear is None


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('D=~; cat "$D/.ssh/id"', "/home/u/.ssh/id"),
        ('D=~/.ssh; cat "$D/id"', "/home/u/.ssh/id"),
        ('export D=~; cat "$D/x"', "/home/u/x"),
        ('declare -r D=~/a; cat "$D/x"', "/home/u/a/x"),
        ("cat /dev/fd/../../../etc/shadow", "/dev/fd/../../../etc/shadow"),
        ("curl file:///etc/shadow", "/etc/shadow"),
        ("curl FILE://localhost/etc/shadow", "/etc/shadow"),
    ],
)
def test_a_path_is_seen_behind_its_disguise(text, path):
    assert path in texts(seen(text).paths)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("uniq -f 1 a b", "/w/proj/b"),
        ("xxd -c 8 a b", "/w/proj/b"),
        ("tree -o b", "/w/proj/b"),
        ("sed --in-place s/a/c/ b", "/w/proj/b"),
        ("git archive -o b HEAD", "/w/proj/b"),
        ("curl -ob http://x", "/w/proj/b"),
        *(
            (f"git {act} b", "/w/proj/b")
            for act in ("rm -r", "mv a", "restore", "checkout HEAD --")
        ),
        ("git restore --staged --worktree b", "/w/proj/b"),
    ],
)
def test_the_outputs_of_readers_are_writes(text, path):
    assert path in texts(seen(text).writes)


@pytest.mark.parametrize(
    "text", ["git rm --cached b", "git restore --staged b", "git checkout main", "git mv -n a b"]
)
def test_what_git_leaves_alone_is_no_write(text):
    assert seen(text).writes == ()


def test_the_inputs_of_readers_are_no_writes():
    assert seen("uniq -c a; uniq -f 1 a; xxd -l 16 a; tree src").writes == ()


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ('D=~; rm -rf "$D/"', "/home/u/"),
        ('D=~; E=$D; rm -rf "$E"', "/home/u"),
        ('for D in ~; do rm -rf "$D"; done', "/home/u"),
        ('D=/ho; D+=me; rm -rf "$D"', "/home"),
        ('export D=/ho; declare D+=me; rm -rf "$D"', "/home"),
        ('D+=me; rm -rf "$D"', ""),
        ("npx rimraf ~", "/home/u"),
        ("mv ~/* x", "/home/u/*"),
        ("rm --recur ~", "/home/u"),
        ("rm --r -f ~", "/home/u"),
        ("find . -type f -delete", "/w/proj/."),
        ("find . -name '*' -delete", "/w/proj/."),
        ("find . ! -name keep -delete", "/w/proj/."),
        ("find . -name x -o -delete", "/w/proj/."),
        ("echo > /dev/sda", "/dev/sda"),
        ("cat x | tee /dev/nvme0n1", "/dev/nvme0n1"),
    ],
)
def test_a_destruction_is_seen_behind_its_disguise(text, target):
    assert target in seen(text).destroys


@pytest.mark.parametrize(
    "text",
    [
        *("shopt -s extglob\nrm -rf ~/!(x)", "fd . ~ -x rm -rf", "env --split 'rm -rf /home/u'"),
        *("env -iS 'rm -rf /home/u'", "env -u X -S 'rm -rf /home/u'", "rm -rf ~-", "rm -rf ~2/x"),
    ],
)
def test_a_destruction_in_a_line_that_is_not_known_is_a_hazard(text):
    assert seen(text).unclear
    assert seen(text).hazards


@pytest.mark.parametrize(
    "text",
    [
        *("find . -name '*.pyc' -delete", "find . -type d -name __pycache__ -exec rm -rf {} +"),
        *("find build -empty -delete", "echo x > /dev/null", "rm --force x", "rm --verbose x"),
        *("mv * x/", "mv src/* x/"),
    ],
)
def test_a_narrow_deletion_destroys_nothing_vital(text):
    assert set(seen(text).destroys) <= {"/w/proj/x", "/w/proj/{}"}


def test_no_prefix_is_an_option():
    assert prefix(["git", "-C", "src", "log"]) == ""
    assert prefix(["make", "-j4"]) == ""
    assert prefix(["uv", "run", "--with", "x", "pytest"]) == ""
    assert prefix(["npm", "test"]) == "npm test"


@pytest.mark.parametrize(
    ("text", "always"),
    [
        ("npm run build", ["npm run build *"]),
        ("npx tsc", []),
        ("npm exec tsc", []),
        ("uv run pytest -q", ["uv run pytest *", "pytest *"]),
        ("uv run python x.py", []),
        ("uv run --with x pytest", []),
        ("find . -name x -exec grep y {} +", ["find *", "grep *"]),
        ("fd -e py", ["fd *"]),
        ("timeout 9 pytest", []),
        ("python -m pytest -q tests | tail", ["python -m pytest *", "tail *"]),
        ("python3.12 -m mypy src", ["python3.12 -m mypy *"]),
        ("python -m evil", []),
        ("python x.py -m pytest", []),
        ("git -C . push", []),
        ("git --no-pager log -3", ["git --no-pager log *", "git log *"]),
        ("git --no-pager -c a.b=c push", []),
        ("npm run 'test:*'", []),
        ("git ?ush", []),
        ("docker rm x*", ["docker rm *"]),
        ("rm -rf build", []),
        ("/bin/rm build && ls", []),
        ("shred x", []),
        ("rmdir x", []),
        ("find . -name x -delete", []),
        ("find . -name x -exec rm {} +", []),
        ("git clean -fd", []),
        ("git rm x", []),
        ("git -C . rm x", []),
    ],
)
def test_what_an_everyday_line_can_be_approved_as(text, always):
    assert covered(seen(text)) == always
