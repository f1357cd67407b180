"""What destroys more than it names: wildcards, whole repositories, processes of others."""

from pathlib import Path

import pytest

from pegboard.schema.session import Rule
from support.tools.guarding import of_command


@pytest.fixture
def full(project):
    """The project with a few folders and files, some of them hidden."""
    for name in ("src", "docs", "tests", ".git", ".cache"):
        (project / name).mkdir()
    for name in ("README.md", "setup.py", "Makefile", ".env"):
        (project / name).touch()
    return project


@pytest.mark.parametrize(
    "command",
    [
        *("rm -rf [a-zA-Z]*", "rm -rf */ .[a-z]* *.* M*", "rm -rf *.* *", "rm -rf {,.}*"),
        *("rm -rf [^x]*", "rm -rf [[:alnum:]]*", "mv [^.]* /tmp/"),
        *("rm -rf ~/[^x]*", "rm -rf ~/[[:alnum:]]*", "cd ~; rm -rf [^x]*", "mv ~/[^x]* /tmp/o"),
        *("rm -rf $(ls)", "rm -rf [!.]*", "rm -rf [a-m]* [n-z]* [A-Z]*", "rm -rf ?*"),
        *("rm -rf ../proj*/[a-zA-Z]*", "rm -rf a* b*; rm -rf d* s*; rm -rf t* R* M*"),
        *("rm -rf away build docs src tests README.md setup.py Makefile", "mv [a-zA-Z]* /tmp/"),
        *("mv * /tmp/", "mv * ../other", "shred -u *", "git rm -rf .", "chmod -R 000 ."),
        *("cp -rT x ~", "cp -a x/. ~", "cp -r x/. /", "rsync -a x/ ~", "rsync -a --delete x/ ./"),
        *("tar -C / -xf x.tar", "tar xzf x.tgz -C ~", "unzip x.zip -d /", "chown -R me ~"),
        *("chmod 000 ~", "setfacl -R -b ~", "gio trash ~", "truncate -s 0 *", "sed -i d ./*"),
        *("find . -type f -exec truncate -s0 {} +", "find . -exec chmod 000 {} +"),
        *("rsync -a --remove-source-files . /tmp/x", "rsync -a --remove-source-files ~/ /tmp/x"),
        *("sed -i '1,$d' ./*", "fd -t f . ~ | xargs rm"),
        *("find . -exec mv {} /tmp/x \\;", "git rm -rf ':/'"),
        *("7z a -sdel x.7z ~", "7z a -sdel x.7z ."),
        *("wipefs -a /dev/sda", "blkdiscard /dev/sda", "cd nowhere || true; rm -rf *"),
        *(
            "chmod -R 777 /",
            'rm -rf "$UNSET"/*',
            "rm -rf ~/[a-z]*",
            "for f in [a-zA-Z]*; do rm -rf $f; done",
        ),
    ],
)
async def test_what_leaves_next_to_nothing_of_a_vital_folder_is_refused(full, command):
    (Path.home() / "music").mkdir()

    verdict = await of_command(full, command)

    assert verdict.action == "deny"
    assert verdict.reason.startswith("refused: ")


@pytest.mark.parametrize(
    "command",
    [
        *("rm -rf b*", "rm -rf [a-d]*", "rm -rf *.md *.py", "rm -rf build docs", "mv *.py src"),
        *("mkdir old && mv [a-zA-Z]* old/", "mv docs/* src", "cp -r x/. .", "rsync -a x/ src/"),
        *("tar xzf x.tgz", "tar -C build -xf x.tar", "chmod -R u+w .", "chmod -R 000 build"),
        *(
            "git rm -r --cached .",
            "git rm -r docs",
            "shred -u build/key",
            "cd docs && rm -rf [a-z]*",
        ),
        *("find . -type f -exec chmod 644 {} +", "chmod 000 build", "truncate -s 0 *.log"),
        *("find . -path ./.git -prune -o -name '*.x' -delete", "sed -i '/x/d' *.md"),
        *("git ls-files '*.x' | xargs rm -f", "find . -name '*.x' -exec mv {} build \\;"),
        *("find . -not -path './.git/*' -name '*.x' -delete", "setfacl -R -m u:me:r src"),
        *(
            'find . -type f | while read f; do rm -f "$f.bak"; done',
            'find . -type f | while read f; do sort "$f" > "$f.sorted"; done',
        ),
        *("rm -rf .c*", "cp -r src ~", "unzip x.zip", "chown -R me src", "tar czf x.tgz ."),
    ],
)
async def test_what_leaves_most_of_the_project_is_not_its_business(full, command):
    assert await of_command(full, command) is None


@pytest.mark.parametrize(
    "command",
    [
        *("a[ # ]=x rm -rf ~", "a=(b)ls rm -rf ~", "((HOME=1)); rm -rf ~/x"),
        *("git -c clean.requireForce=false clean -dx", "git ls-files | xargs truncate -s 0"),
        *("git ls-files -z | xargs -0 rm -f", "git update-ref -d HEAD", "sed -i d *"),
        *("find . -path './.git/*' -delete",),
        *("tar czf x.tgz --remove-files *",),
        *("echo 'rm -rf ~' | sh", "bash <<'E'\nrm -rf ~\nE", "$(echo rm) -rf ~", "$X -fr ~"),
        *(
            "for c in ls rm; do $c -rf ~; done",
            "git -c alias.p='!rm -rf ~' p",
            "vim -c ':!rm -r ~'",
        ),
        *(
            "HOME=/; rm -rf ~/usr",
            "cd() { :; }; cd build; rm -rf *",
            "f() { cd /; }; f; rm -rf usr",
        ),
        *(
            'D=build; f() { rm -rf "$D"; }; D=~; f',
            'f() { "$@"; }; f rm -rf ~',
            "rm$IFS-rf$IFS$HOME",
        ),
        *(
            'cd "$(echo /)"; rm -rf usr',
            'read X; cd "$X" && cd y && rm -rf z',
            "echo `ls` `rm -rf ~`",
        ),
    ],
)
async def test_deletions_behind_what_nobody_can_judge_are_refused(full, command):
    verdict = await of_command(full, command)

    assert verdict.action == "deny" or verdict.firm


@pytest.mark.parametrize(
    "command",
    [
        *("echo 'rm -rf build' | sh", "$X -rf build", 'cd "$X"; ls', 'cd "$X"; rm -rf /tmp/x'),
        *('cd "$(git rev-parse --show-toplevel)" && rm -rf build', 'cd "$X"; cd /tmp; rm -rf x'),
        *('(cd "$X"; ls); rm -rf build', "f() { cd build; }; f; rm -rf x"),
    ],
)
async def test_what_they_delete_is_not_its_business_when_it_is_not_vital(full, command):
    assert await of_command(full, command) is None


async def test_a_wildcard_that_empties_the_project_may_be_named_in_a_rule(full):
    rule = Rule("destroy", f"{full}/[a-zA-Z]*", "allow")

    assert await of_command(full, "rm -rf [a-zA-Z]*", rules=[rule]) is None


@pytest.mark.parametrize(
    "command",
    [
        *("git clean -fdx", "git clean -xfd .", "git clean -ffd -e .env", "sudo git clean -d -f"),
        *("git clean --force -x", "cd build && git -C .. clean -fdx", "git clean -fd :/"),
        *('for f in *; do mv "$f" "$f.bak"; done; git clean -f', "mv b* x; git clean -f"),
        *("kill $PPID", "kill -9 ${PPID}", "kill -9 -1", "kill -s KILL -- -1", "kill 1"),
        *("kill $(pgrep -f pegboard)", "kill $(ps -o ppid= $$)", "pkill -f pegboard"),
        *("pkill peg", "pkill -f python3", "killall pegboard", "pkill -9 -u me", "killall -u me"),
        *("pkill -v bash", "sh -c 'kill -9 $PPID'", "git -C clean/.. -C .. clean -fdx :/"),
        *("pkill -f '(.|.|.|.)*!'", "pkill -f '(node|pegboard)'", "P=$PPID; kill $P"),
        *("P=$PPID; Q=$P; kill -9 $Q", "killall python", "pkill python3", "kill $(pidof python3)"),
        *("ps -e -o pid= | xargs kill", "ps aux | awk '{print $2}' | xargs kill -9"),
        *("ps aux | grep python | awk '{print $2}' | xargs kill", "kill $(pgrep -f pegboard)"),
        *("pgrep -f python | xargs -r kill", "P=$(ps -o ppid= -p $$); kill $P", "reboot"),
        *("sudo shutdown -h now", "systemctl poweroff", "for p in $PPID; do kill $p; done"),
    ],
)
async def test_what_destroys_more_than_it_names_is_asked_for_every_time(project, command):
    (project / ".git").mkdir()

    verdict = await of_command(project, command, rules=[Rule("*", "*", "allow")])

    assert (verdict.action, verdict.firm) == ("ask", True)


@pytest.mark.parametrize(
    "command",
    [
        *("git clean -n", "git clean -fdxn", "git clean -f", "git clean -fdx build", "git status"),
        *("cd build && git clean -fdx", "git -C build clean -fdx", "git log --grep clean -d"),
        *("kill 123", "kill -1 123", "kill %1", "kill $!", 'kill "$SERVER"', "kill -l 1"),
        *("kill -0 $PPID", "kill $(lsof -ti :8000)", "pkill -f 'python -m http.server'"),
        *("npm start & P=$!; sleep 1; kill $P", "kill $(cat server.pid)", "systemctl status x"),
        *(
            "ps aux | grep '[h]ttp.server' | awk '{print $2}' | xargs kill",
            "pgrep vite | xargs kill",
        ),
        *("ps aux | awk '/vite/ {print $2}' | xargs kill", "kill $(ps -o pid= -C node)"),
        *(
            "pkill -f '(uvicorn|gunicorn)'",
            "pkill node",
            "pkill -P $$",
            "pkill -f uvicorn",
            "killall -v node",
            "pkill -u me node",
        ),
        *("tar -C build --remove-files -cf /tmp/x.tar x", "tar czf x.tgz .", "zip -r x.zip ."),
    ],
)
async def test_what_ends_or_deletes_what_it_names_is_not_asked_for(project, command):
    (project / ".git").mkdir()

    assert await of_command(project, command) is None


@pytest.mark.parametrize(
    "command",
    [
        *("tar --remove-files -cf /tmp/x.tar .", "tar czf x.tgz --remove-files ./*"),
        *("tar -C .. --remove-files -cf /tmp/x.tar project", "zip -rm x.zip ."),
        *("git clean -fdx; rm -rf ~", "pegboard run x; rm -rf ~"),
    ],
)
async def test_what_is_gone_into_an_archive_or_beside_a_question_is_refused(project, command):
    (project / ".git").mkdir()

    assert (await of_command(project, command)).action == "deny"


async def test_the_users_rule_about_a_command_that_destroys_decides(project):
    (project / ".git").mkdir()
    named = Rule("destroy", "git clean -fdx", "allow")

    assert await of_command(project, "git clean -fdx", rules=[named]) is None
    assert (await of_command(project, "git clean -ffdx", rules=[named])).firm
