import shlex

import pytest

from pegboard.schema.session import Rule
from support.tools.guarding import all_of_command, of_command, said


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf ~",
        'D=~; rm -rf "$D/"',
        "rm --recur ~",
        "rm -rf /usr/bin /var/lib",
        "rm -rf /home/somebody",
        "mv /Users/somebody x",
        "find . -type f -delete",
        "echo > /dev/sda",
        "dd if=/dev/zero of=/dev/nvme0n1",
        "mkfs.ext4 /dev/mapper/root",
        "rm -rf ~/",
        "rm -rf $HOME/*",
        "rm -rf /",
        "rm -rf /*",
        "rm -fr /ho*",
        "rm -r .",
        "rm -rf *",
        "rm -rf ../project",
        "rm -rf ..",
        "rm -rf build/..",
        "rm -rf away/",
        "rm -rf /etc",
        "sudo rm -rf /usr",
        "sh -c 'cd / && rm -rf home'",
        "rm -rf $(pwd)",
        'rm -rf "$TARGET"',
        "git ls-files | xargs rm -rf",
        "find . -delete",
        "find / -exec rm -rf {} +",
        "mv ../project /tmp/x",
        "mv ~ /tmp/x",
        "rsync -a --delete empty/ ~/",
        "rm -rf /proc",
        "X=$HOME; rm -rf $X",
        "A=rm; B=-rf; $A $B ~",
        "env - rm -rf ~",
        'if ls; then X=a; fi; rm -rf "$X/"',
        '(X=a); rm -rf "$X/"',
        "X=a; X=~; rm -rf $X",
        "cd ~ && rm -rf $PWD",
        "ls | xargs -n1 sudo rm -rf",
        "ls | xargs env A=b nice rm -rf",
        "ls | xargs -I{} rm -rf {}",
        'ls | while read -r f; do rm -rf "./$f"; done',
        'rm -rf "$HOME/$X"',
        'rm -rf "../$X"',
        "cd build && find -L ~ -delete",
        "cd build && find -O3 -P -- ~ -delete",
        "cd build && find -D exec ~ -delete",
        "script -qc 'rm -rf ~' log",
        "conda run -n env rm -rf ~",
        "direnv exec . rm -rf ~",
    ],
)
async def test_the_destruction_of_what_is_vital_is_refused(project, command):
    verdict = await of_command(project, command)

    assert verdict.action == "deny"
    assert verdict.reason.startswith("refused: ")


@pytest.mark.parametrize(
    "command",
    [
        *("rm -rf {build,~}", "F=-delete; find . $F", "ls | parallel 'rm -rf {}'"),
        *("ls | xargs -I{} sh -c 'rm -rf {}'", "ls | xargs -I X sh -c 'rm -rf ./X'"),
        *("ls | parallel 'rm -rf'", "find . -exec sh -c 'rm -rf {}' \\;", "npx rimraf ~ -c x"),
        *("su -lc 'rm -rf ~' me", "ed <<< '!rm -rf ~'", "x86_64 rm -rf ~", "tmux new 'rm -rf ~'"),
        *("echo ${x:-`rm -rf ~`}", "echo `echo \\`rm -rf ~\\``", "nsenter mv ~ /tmp/x"),
        *('cat <<E"F"\nx\nEF\nrm -r $HOME', "echo $'\\xff'; rm -rf /", "screen git clean -fdx $X"),
        *("setarch -R find . -delete", "unshare dd if=x of=/dev/sda", "chroot . chmod -R 0 ~"),
    ],
)
async def test_what_a_line_that_is_not_known_would_destroy_is_asked_for_every_time(
    project, command
):
    verdict = await of_command(project, command)

    assert (verdict.action, verdict.firm) == ("ask", True)


@pytest.mark.parametrize(
    "command",
    [
        *(
            "tmux new 'npm run dev'",
            "gdb -ex run ./a.out",
            "parallel gzip ::: *.log",
            "$X -rf build",
        ),
        *("screen rm -rf build", "setarch rm x.o", "echo ${x:-`ls ~`}", "su me -c 'mv a b'"),
    ],
)
async def test_other_lines_that_are_not_known_are_not_its_business(project, command):
    assert await of_command(project, command) is None


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build",
        "rm -rf build/*",
        "rm -rf ./build dist *.egg-info",
        "rm -rf away",
        "rm file",
        "find . -name '*.pyc' -delete",
        "find . -type d -name __pycache__ -exec rm -rf {} +",
        "cd build && rm -rf *",
        "mv a.txt b.txt",
        "mv build/* .",
        'T=$(mktemp -d); cd "$T" && ls; rm -rf "$T"',
        "for f in a b; do rm -rf $f; done",
        "git clean -fdx build",
        "if ls; then D=build; rm -rf $D; fi",
        "D=build && mkdir -p $D && rm -rf $D/x",
        "for d in a b; do if ls $d; then rm -rf $d; fi; done",
        "ls ~",
        "ls build | xargs rm -f",
        "find . -name '*.pyc' | xargs rm -f",
        "ls | parallel 'gzip {}'",
        "ls | xargs -I{} sh -c 'rm -rf build/{}'",
        'ls | while read -r f; do rm -rf "build/$f"; done',
        'ls | while read -r f; do mv "./$f" build; done',
    ],
)
async def test_other_deletions_are_not_its_business(project, command):
    assert await of_command(project, command) is None


IN_PLACE = (
    *(
        "rm -f ~/*",
        "gzip -r ~",
        "gzip ~/*",
        "bzip2 ~/*",
        "xz -z ~/*",
        "zstd --rm ~/*",
        "gunzip -r ~",
    ),
    *(
        "tee ~/* < x",
        "shred ~/*",
        "truncate -s 0 ~/*",
        "mv ~/* /dev/null",
        "find ~ -type f -exec xz {} +",
    ),
    *(
        "sed -i s/a/b/ ~/*",
        "perl -i -pe s/a/b/ ~/*",
        "chmod -R 700 ~/*",
        "chown -R a ~/*",
        "chattr -R +i ~",
    ),
    *("gzip -r .", "rm -f ../../*", 'for f in ~/*; do rm "$f"; done', "rsync -a --delete x/ ~"),
)
NOT_IN_PLACE = (
    *("gzip -c ~/*", "gzip -rk ~", "gzip build/*", "rm -f *.o", "sed -i s/a/b/ *", "gzip -r build"),
    *("zstd ~/*", "find . -name '*.log' -exec gzip {} +", "chmod -R 700 build/*", "tee a b < x"),
)


async def test_a_home_is_not_changed_file_by_file_either(home, project):
    for number in range(4):
        (home / f"file {number}").touch()

    said = {line: await of_command(project, line) for line in (*IN_PLACE, *NOT_IN_PLACE)}

    assert [line for line in IN_PLACE if not said[line] or said[line].action != "deny"] == []
    assert [line for line in NOT_IN_PLACE if said[line]] == []


CODE = (
    *("shutil.rmtree('.git')", 'shutil.rmtree(os.path.expanduser("~"))', "rmtree(Path.home())"),
    *("os.system('rm -rf ~')", "os.rename('.git', 'x')", "fs.rmSync('/', {recursive: true})"),
    *('FileUtils.rm_rf(".git/hooks")', "shutil.move('.', '/tmp/x')", "shutil.rmtree('./.git')"),
    *(
        "subprocess.run(['rm','-rf','.git'])",
        'spawnSync("rm",["-rf",".git"])',
        "rmtree(os.getcwd())",
    ),
    *("shutil.rmtree(os.environ['HOME'])", "fs.rmSync(process.env.HOME, {recursive: true})"),
    *("FileUtils.rm_rf(ENV['HOME'])", "shutil.rmtree(os.getenv('HOME'))", "rmtree $ENV{HOME}"),
    *("exec('rm', '-rf', '/')", 'system "rm", "-rf", ENV["HOME"]', "run('find ~ -delete'.split())"),
)
HARMLESS_CODE = (
    *("shutil.rmtree('build')", "os.remove('x')", "shutil.move('a', 'b')", "print('rm')"),
    *("os.rename(a, b)", "shutil.rmtree(path)", "open('.git/HEAD').read()"),
    *("shutil.rmtree(os.environ['HOME'] + '/x')", "run(['rm', 'x']); print(a / b)", "rmtree(cwd)"),
    *("os.unlink(os.path.join(os.environ['HOME'], 'x'))", "fs.rmSync(process.env.HOME + '/x')"),
)


@pytest.mark.parametrize("around", ["python3 -c {}", "node -e {}", "python3 - <<'E'\n{}\nE"])
async def test_code_that_names_what_is_vital_where_it_deletes_is_asked_for(project, around):
    lines = {code: around.format(code if "<<" in around else shlex.quote(code)) for code in CODE}
    others = [
        around.format(code if "<<" in around else shlex.quote(code)) for code in HARMLESS_CODE
    ]

    said = {code: await of_command(project, line) for code, line in lines.items()}

    assert [code for code, verdict in said.items() if not verdict or not verdict.firm] == []
    assert [line for line in others if await of_command(project, line)] == []


async def test_a_rule_of_the_users_own_allows_just_that(project):
    named = Rule("destroy", str(project / "build" / ".."), "allow")
    exact = Rule("bash", "rm -rf ..", "allow")
    wide = Rule("bash", "rm *", "allow")

    assert await of_command(project, "rm -rf build/..", rules=[named]) is None
    assert await of_command(project, "rm -rf ..", rules=[exact]) is None
    assert (await of_command(project, "rm -rf ..", rules=[wide])).action == "deny"


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".GIT/config",
        "sub/.git/config",
        ".pegboard/pegboard.toml",
        "pegboard.toml",
        "tool/hello.py",
        ".vscode/tasks.json",
        ".claude/settings.json",
        "web/.husky/pre-commit",
        ".venv/bin/ruff",
        "../other/.cursor/mcp.json",
        "../../.bashrc",
        "../../.ssh/authorized_keys",
        "../../.config/pegboard/pegboard.toml",
        "away/.profile",
    ],
)
async def test_what_runs_by_itself_is_asked_for_every_time(project, path):
    verdict = await said(project, "edit", [path], rules=[Rule("*", "*", "allow")])

    assert (verdict.action, verdict.firm) == ("ask", True)


@pytest.mark.parametrize(
    "path",
    ["src/main.py", "tool/data.json", "src/tool/x.py", ".gitignore", "node_modules", "conftest.py"],
)
async def test_other_files_are_not_its_business(project, path):
    assert await said(project, "edit", [path]) is None


async def test_a_redirection_to_a_start_up_file_is_asked_for(project):
    verdict = await of_command(project, "echo x >> ~/.bashrc")

    assert (verdict.action, verdict.firm) == ("ask", True)


async def test_a_rule_may_allow_a_protected_path(project):
    rules = [Rule("protected", str(project / "tool/*"), "allow")]

    assert await said(project, "edit", ["tool/hello.py"], rules=rules) is None
    assert await said(project, "edit", [".git/config"], rules=rules) is not None


@pytest.mark.parametrize(
    "command",
    [
        *("mv evil tool", "ln -s evil tool", "cp -r evil plugins", "cp a.py tool", "mv a.py tool/"),
        *("mv evil .vscode", "cp -t tool a.py", "cp --target-directory=tool a.py", "mv x/.git ."),
        *("cp -r x/.pegboard .", "ln -s ../x .opencode", "mv .git old", "tar -C .git/hooks -xf a"),
        *(
            "unzip a.zip -d .pegboard",
            "patch .git/config a.diff",
            "cp x/.bashrc ~",
            "mv x ~/.config",
        ),
        *("cp -r x/pegboard ~/.config", "mkdir -p .pegboard/tool", "touch .git/hooks/pre-commit"),
        *(
            "git config core.hooksPath x",
            "git -C sub config alias.x '!y'",
            "git config -f x/.git/config core.pager y",
        ),
        *("git config --global core.pager x", "git config set core.fsmonitor x"),
        *("git mv a.py tool/", "git clone http://e/x .pegboard", "git worktree add .vscode"),
        *("mv ~/.config ~/c", "ln -sf x ~/.ssh", "install -m755 x .git/hooks/post-checkout"),
    ],
)
async def test_what_comes_to_be_where_things_run_by_themselves_is_asked_for(project, command):
    (project / "tool").mkdir()

    verdicts = await all_of_command(project, command)

    assert ("ask", True) in verdicts or ("deny", False) in verdicts


@pytest.mark.parametrize(
    "command",
    [
        *("mkdir tools", "mv a b", "cp -r src dst", "ln -s a b", "cp a.py src/tool", "mv tool old"),
        *("git config core.hooksPath", "git config user.name me", "git config --get core.pager"),
        *("git config get core.pager x", "git log -- config core.x y"),
        *("git clone http://e/x", "git clone x build/x", "git mv a b", "git worktree list"),
        *("ls .git", "cat .git/HEAD", "git log", "pytest tool/test_x.py", "rsync -a src/ dst/"),
    ],
)
async def test_other_places_are_not_its_business(project, command):
    assert await all_of_command(project, command) == []


@pytest.fixture
def places(tmp_path):
    return tuple(tmp_path / name for name in ("cfg/peg", "data", "state", "real.git"))


@pytest.mark.parametrize(
    "name",
    ["cfg/peg/pegboard.toml", "data/pegboard.db", "data/../state/trust.json", "real.git/hooks/x"],
)
async def test_pegboards_own_folders_are_asked_for_wherever_they_are(
    project, tmp_path, places, name
):
    verdict = await said(project, "edit", [f"../../../{name}"], private=places)

    assert (verdict.action, verdict.firm) == ("ask", True)


@pytest.mark.parametrize(
    "command", ["mv x {}/cfg", "ln -s x {}/cfg", "echo x > {}/real.git/config", "mv {}/cfg y"]
)
async def test_neither_are_they_replaced_with_their_parents(project, tmp_path, places, command):
    verdicts = await all_of_command(project, command.format(tmp_path), private=places)

    assert ("ask", True) in verdicts or ("deny", False) in verdicts


@pytest.mark.parametrize(
    "command",
    [
        *(
            "pegboard trust allow -y",
            "pegboard -C 'x trust list' trust allow",
            "pegboard run --auto x",
        ),
        *(
            "env pegboard serve",
            "/usr/bin/pegboard permission revoke 1",
            "python3 -m pegboard run x",
        ),
        *("pegboard audit acknowledge -y", "pegboard trust program x --yes"),
        *("ls && pegboard trust lock", "sh -c 'pegboard run --trust x'", "pegboard config set a b"),
        *("timeout 9 pegboard trust revoke", "python -I -m pegboard.cli trust allow"),
    ],
)
async def test_no_agent_decides_for_itself_with_pegboards_own_commands(project, command):
    verdict = await of_command(project, command)

    assert (verdict.action, verdict.firm) == ("ask", True)


@pytest.mark.parametrize(
    "command",
    [
        *("pegboard explain 'ls'", "pegboard trust list", "pegboard plugins list", "pegboard"),
        *("pegboard --version", "pip install pegboard", "pegboard-bench run", "cat pegboard.toml"),
        *(
            "pytest -q tests/pegboard run",
            "pegboard audit verify",
            "pegboard config",
            "pegboard audit",
        ),
    ],
)
async def test_pegboards_commands_that_only_show_are_not_asked_for(project, command):
    assert await of_command(project, command) is None


async def test_the_users_rule_about_pegboards_commands_decides(project):
    rule = Rule("protected", "pegboard run *", "allow")

    assert await of_command(project, "pegboard run x", rules=[rule]) is None
