from pathlib import Path
from types import SimpleNamespace

import pytest

from pegboard.context import Ruleset
from pegboard.schema.permission import PermissionRequest, Rule
from pegboard_plugins.bash.scan import scan
from pegboard_plugins.guard import permission_ask


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    return folder


@pytest.fixture
def project(home):
    folder = home / "code" / "project"
    (folder / "build").mkdir(parents=True)
    (folder / "away").symlink_to(home)
    return folder


async def said(project, permission, patterns, *, rules=(), **metadata):
    session = SimpleNamespace(
        worktree=project,
        directory=project,
        rulesets=(Ruleset(source="config", rules=tuple(rules)),),
    )
    request = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission=permission,
        patterns=tuple(patterns),
        metadata=metadata,
        always=(),
    )
    return await permission_ask(session, request)


async def of_command(project, command, *, rules=()):
    found = scan(command, cwd=project, home=Path.home(), worktree=project)
    patterns = [" ".join(argv) for argv in found.commands]
    return await said(
        project,
        "bash",
        patterns,
        rules=rules,
        writes=[str(path) for path in found.writes],
        destroys=list(found.destroys),
    )


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf ~",
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
        "rm -rf {build,~}",
        "A=rm; B=-rf; $A $B ~",
        "F=-delete; find . $F",
        "env - rm -rf ~",
        'if ls; then X=a; fi; rm -rf "$X/"',
        '(X=a); rm -rf "$X/"',
        "X=a; X=~; rm -rf $X",
        "cd ~ && rm -rf $PWD",
    ],
)
async def test_the_destruction_of_what_is_vital_is_refused(project, command):
    verdict = await of_command(project, command)

    assert verdict.action == "deny"
    assert verdict.reason.startswith("refused: ")


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
        "git clean -fdx",
        "if ls; then D=build; rm -rf $D; fi",
        "D=build && mkdir -p $D && rm -rf $D/x",
        "for d in a b; do if ls $d; then rm -rf $d; fi; done",
        "ls ~",
    ],
)
async def test_other_deletions_are_not_its_business(project, command):
    assert await of_command(project, command) is None


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
        "../../.bashrc",
        "../../.ssh/authorized_keys",
        "../../.config/pegboard/pegboard.toml",
        "away/.profile",
    ],
)
async def test_what_runs_by_itself_is_asked_for_every_time(project, path):
    verdict = await said(project, "edit", [path], rules=[Rule("*", "*", "allow")])

    assert (verdict.action, verdict.firm) == ("ask", True)


@pytest.mark.parametrize("path", ["src/main.py", "tool/data.json", "src/tool/x.py", ".gitignore"])
async def test_other_files_are_not_its_business(project, path):
    assert await said(project, "edit", [path]) is None


async def test_a_redirection_to_a_start_up_file_is_asked_for(project):
    verdict = await of_command(project, "echo x >> ~/.bashrc")

    assert (verdict.action, verdict.firm) == ("ask", True)


async def test_a_rule_may_allow_a_protected_path(project):
    rules = [Rule("protected", str(project / "tool/*"), "allow")]

    assert await said(project, "edit", ["tool/hello.py"], rules=rules) is None
    assert await said(project, "edit", [".git/config"], rules=rules) is not None
