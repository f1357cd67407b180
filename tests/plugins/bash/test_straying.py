"""Where a line goes on when its `cd` fails: the commands behind it are judged there, too."""

import pytest

from pegboard_plugins.bash.scan import StartPlace, scan


@pytest.fixture
def project(tmp_path):
    (tmp_path / "build/sub").mkdir(parents=True)
    return tmp_path.resolve()


def destroyed(project, command):
    found = scan(command, StartPlace(cwd=project, home=project / "home", worktree=project))
    return {target.removeprefix(f"{project}/") for target in found.destroys}


@pytest.mark.parametrize(
    "command",
    [
        *("cd gone; rm -rf *", "cd gone\nrm -rf *", "pushd gone; rm -rf *", "(cd gone; rm -rf *)"),
        *("cd gone && make; rm -rf *", "cd gone && make || rm -rf *", "cd gone || rm -rf *"),
        *(
            "cd gone || true && rm -rf *",
            "cd gone || return; rm -rf *",
            "sh -c 'cd gone; rm -rf *'",
        ),
        *("cd gone || (exit 1); rm -rf *", "cd gone || echo exit; rm -rf *", "cd bu*d; rm -rf *"),
        *("set -e; cd gone && make; rm -rf *", "(set -e); cd gone; rm -rf *"),
        *("set -e; set +e; cd gone; rm -rf *", "set -e; sh -c 'cd gone; rm -rf *'"),
        *(
            "rm -rf build; cd build; rm -rf *",
            "{ cd gone; } > log; rm -rf *",
            "! cd gone; rm -rf *",
        ),
        *("cd /dev/null; rm -rf *", "cd /dev/fd/0; rm -rf *", "pushd /dev/tty; rm -rf *"),
        *("cd gone; cd also; rm -rf *", "eval 'cd gone'; rm -rf *", "D=gone; cd $D; rm -rf *"),
    ],
)
def test_behind_a_cd_that_would_fail_the_line_is_where_it_was(project, command):
    assert "*" in destroyed(project, command)


@pytest.mark.parametrize(
    "command",
    [
        *("cd gone && rm -rf *", "cd gone && make && rm -rf *", "cd build; rm -rf *"),
        *("cd gone || exit 1; rm -rf *", "cd gone || { echo no >&2; exit 1; }\nrm -rf *"),
        *("cd gone && make || exit\nrm -rf *", "set -e; cd gone; rm -rf *"),
        *("set -euo pipefail\ncd gone\nrm -rf *", "set -o errexit; cd gone; rm -rf *"),
        *("mkdir -p gone/x; cd gone; rm -rf *", "git clone u gone; cd gone; rm -rf *"),
        *("git clone https://e/gone.git; cd gone; rm -rf *", "git clone e:gone; cd gone; rm -rf *"),
        *("cp -r build gone; cd gone; rm -rf *", "T=$(mktemp -d); cd $T; rm -rf *"),
        *("rm -rf build; mkdir build; cd build; rm -rf *", "cd build/sub; rm -rf *; cd ../.."),
        *("(cd gone; ls); rm -rf build/*", "env -C gone ls; rm -rf build/*"),
        *("git -C gone status; rm -rf build/*", "cd gone | ls; rm -rf build/*", "cd gone & ls"),
    ],
)
def test_a_cd_that_succeeds_or_ends_the_line_leaves_nothing_behind(project, command):
    assert not {"*", "gone/../*"} & destroyed(project, command)
