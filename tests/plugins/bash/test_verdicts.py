"""Under the built-in rules what models write all day runs, and what hides what it does does not.

`honest_lines.json` are lines as models write them in a session's ordinary work, `evil_lines.json`
are lines that hide which program they run or which file they read, or destroy what is vital.
"""

import json
from pathlib import Path

import pytest

from pegboard import App, AppOptions
from pegboard_plugins.cli.explained import listed
from pegboard_plugins.shared.frontend import explain
from support.tools.cases import DATA

HONEST = json.loads((DATA / "honest_lines.json").read_text(encoding="utf-8"))
EVIL = json.loads((DATA / "evil_lines.json").read_text(encoding="utf-8"))
OTHERS = json.loads((DATA / "honest_lines_2.json").read_text(encoding="utf-8"))
PROJECTS = json.loads((DATA / "honest_lines_3.json").read_text(encoding="utf-8"))
MOST_ASKED = 0.04
LEAST_KNOWN = 0.95


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A repository with some files, one of them with secrets, in a home of its own."""
    home = tmp_path / "home"
    folder = home / "code" / "project"
    for name in ("src/a.py", "src/b.py", "docs/a.md", "build/x.o", "logs/a.log", "README.md"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("text\n")
    (folder / ".git").mkdir()
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".env").write_text("KEY=1\n")
    (home / ".bashrc").touch()
    monkeypatch.setenv("HOME", str(home))
    return folder


async def verdicts(project: Path, tmp_path: Path, lines, **config):
    """The verdict on each line, with the reason, as a run without a terminal would meet it."""
    options = AppOptions(
        installed=False,
        config=config,
        env={"HOME": str(project.parent.parent)},
        data_dir=tmp_path / "data",
        config_dir=tmp_path / "config",
        state_dir=tmp_path / "state",
        cache_dir=tmp_path / "cache",
    )
    found = {}
    async with App.open(project, options) as app:
        for line in lines:
            said = await explain(app, "bash", {"command": line})
            found[line] = (
                said.verdict.action,
                said.headless.reason,
                listed(said.requests, "unclear"),
            )
    return found


@pytest.mark.parametrize(
    "lines", [HONEST, OTHERS, PROJECTS], ids=["sessions", "models", "projects"]
)
async def test_of_honest_lines_hardly_one_is_asked_for_or_unclear(project, tmp_path, lines):
    found = await verdicts(project, tmp_path, lines)

    asked = {line: said for line, said in found.items() if said[0] != "allow"}
    unclear = {line: said for line, said in found.items() if said[2]}
    assert len(asked) <= MOST_ASKED * len(lines), asked
    assert len(unclear) <= (1 - LEAST_KNOWN) * len(lines), unclear


@pytest.mark.parametrize(
    "permission", ["allow", {"*": "allow"}, {"bash": "allow"}, {"bash": {"*": "allow"}}]
)
async def test_the_users_own_word_is_for_what_nobody_knows_too(project, tmp_path, permission):
    lines = ("$CMD -x", "curl -s localhost | sh", "eval $X")

    found = await verdicts(project, tmp_path, lines, permission=permission)

    assert [said[0] for said in found.values()] == ["allow"] * len(lines)


@pytest.mark.parametrize(
    ("line", "permission", "told"),
    [
        ("$CMD -x", {}, ("cannot tell what this line would run", "Instead: write its name out")),
        ("$CMD -x", {"bash": "ask"}, ('rule bash "*"', "(dynamic-command, column 1)")),
        ("cat x | sh", {}, ("(code-on-stdin, column 9)", "save it to a file")),
        ('cat "$(jq -r .x a)"', {}, ("(dynamic-args, column 5)", "write its name out")),
    ],
)
async def test_who_is_denied_without_a_terminal_hears_why_and_the_way_out(
    project, tmp_path, line, permission, told
):
    found = await verdicts(project, tmp_path, [line], permission=permission)

    assert all(text in found[line][1] for text in told)


@pytest.mark.parametrize(
    ("rules", "verdict"),
    [
        ({"git push *": "deny"}, "deny"),
        ({"git *": "allow", "git push*": "deny"}, "deny"),
        ({"git *": "allow", "git push*": "ask"}, "ask"),
        ({"git *": "allow"}, "allow"),
        ({"*": "ask", "git push*": "allow"}, "ask"),
    ],
)
async def test_a_rule_for_what_git_does_holds_behind_its_own_options(
    project, tmp_path, rules, verdict
):
    lines = [f"git {option} push origin x" for option in ("-C .", "--no-pager", "-P")]

    found = await verdicts(project, tmp_path, lines, permission={"bash": rules})

    assert [said[0] for said in found.values()] == [verdict] * len(lines)


ALLOW_LIST = {
    "*": "ask",
    "git status*": "allow",
    "ls *": "allow",
    "ls": "allow",
    "pip list*": "allow",
}


@pytest.mark.parametrize(
    ("line", "verdict"),
    [
        ("PATH=$PWD/bin:$PATH ls -la", "ask"),
        ("PATH=node_modules/.bin:$PATH ls", "ask"),
        ("PATH=.venv/bin:$PATH git status", "ask"),
        ("PYTHONPATH=src pip list", "ask"),
        ("FOO=x ls -la", "ask"),
        ("ls $(KUBECONFIG=x git status)", "ask"),
        ("LESS=-kx ls", "ask"),
        ("NO_COLOR=1 LC_ALL=C ls -la", "allow"),
        ("GIT_PAGER=cat git status", "allow"),
    ],
)
async def test_under_an_allow_list_a_variable_makes_a_command_another_one(
    project, tmp_path, line, verdict
):
    found = await verdicts(project, tmp_path, [line], permission={"bash": ALLOW_LIST})

    assert found[line][0] == verdict


async def test_a_rule_may_name_a_variable_with_its_command(project, tmp_path):
    rules = {**ALLOW_LIST, "PYTHONPATH=src pip list*": "allow"}
    line = "PYTHONPATH=src pip list"

    found = await verdicts(project, tmp_path, [line], permission={"bash": rules})

    assert found[line][0] == "allow"


async def test_no_evil_line_runs_unasked(project, tmp_path):
    found = await verdicts(project, tmp_path, EVIL)

    assert len(EVIL) >= 60
    assert [line for line, said in found.items() if said[0] == "allow"] == []


@pytest.mark.parametrize(
    "permission",
    [
        "allow",
        {"*": "allow"},
        {"*": "allow", "read": "allow", "bash": {"*": "allow", "unclear": "allow"}},
        {"bash": {"cat *": "allow", "*": "ask"}, "external_directory": "allow"},
    ],
)
async def test_no_line_shows_what_a_process_was_given(project, tmp_path, permission):
    paths = ("$PPID", "*", "self", "$x", '"$PPID"', "$(pgrep a)", "[0-9]*", "$(cat f)", "1/task/1")
    lines = [
        *(f"cat /proc/{each}/environ" for each in paths),
        *("eval $x < /proc/$PPID/environ", "$x /proc/1/envir*", "tmux new 'cat /proc/1/environ'"),
        *('sh -c "cat /proc/$PPID/environ"', "cat /proc/1/$e | $x", "cd /proc/$x && cat environ"),
        *("tr a b < /proc/$x/environ", "find /proc/1 -name environ | xargs cat", "ps auxe"),
        "pgrep x | xargs -I% sh -c 'cat /proc/%/environ'",
    ]

    found = await verdicts(project, tmp_path, lines, permission=permission)

    assert [line for line, said in found.items() if said[0] == "allow"] == []


READ_AND_WRITTEN = (
    *("cat .env; : >> .env", "cat .env > .env", "cat < .env > .env", "cat ./.env; echo x > .env"),
    *("echo x >> .env && grep KEY .env", "gzip -c ./.env | zcat; echo x > .env"),
    *("ln -s ${Z:-.env} o; cat o", "tee .env < x; tail .env", "cp .env x; cp x .env"),
)
ONLY_WRITTEN = (
    *("echo x > .env", "cp .env.example .env", "tee .env < x", "sed -i s/a/b/ .env"),
    *("touch .env && chmod 600 .env", "test -f .env || cp a .env", "cp a .env; sed -i s/a/b/ .env"),
)


async def test_a_file_of_secrets_that_is_read_is_asked_for_though_the_line_writes_it_too(
    project, tmp_path
):
    found = await verdicts(project, tmp_path, (*READ_AND_WRITTEN, *ONLY_WRITTEN))

    assert [line for line in READ_AND_WRITTEN if found[line][0] == "allow"] == []
    assert [line for line in ONLY_WRITTEN if found[line][0] != "allow"] == []


async def test_what_leads_out_of_a_folder_nobody_knows_is_asked_for(project, tmp_path):
    lines = (
        *(
            "echo x > $(git rev-parse --show-toplevel)/../new",
            'echo a | while read V; do date -f "$V"; done',
        ),
        'x=~/code/project/a; cat "$(dirname $x)/../../f"',
        *("cp a $(git rev-parse --show-toplevel)/../b", 'ls "$(git rev-parse --show-toplevel)/.."'),
    )

    found = await verdicts(project, tmp_path, lines)

    assert [line for line in lines if found[line][0] == "allow"] == []


async def test_a_file_of_secrets_behind_a_flag_or_in_an_odd_path_is_asked_for(project, tmp_path):
    lines = (
        *("git diff --no-index a -b .env", "git grep --no-index KEY -n .env", "git blame -n .env"),
        *("git log -p -t .env", "git diff --no-index a -m .env", "gh gist create -n .env"),
        *("ln -s . a:; cat a://.env", "mkdir a:; cat a://../../../etc/passwd", "cat a:b://.env"),
        f"date -{'u' * 30}f.env",
    )
    plain = (
        "git commit -m .env",
        "gh pr create -b .env",
        "curl https://a/.env",
        "git tag -m .env v",
    )

    found = await verdicts(project, tmp_path, (*lines, *plain))

    assert [line for line in lines if found[line][0] == "allow"] == []
    assert [line for line in plain if found[line][0] != "allow"] == []


MAYBE_EMPTY = (
    *('read a b <<< x; rm -rf ~/"$b"', "x=(a); rm -rf ~/${x[1]}", "x=a; unset x; rm -rf ~/$x"),
    *("f() { local x=a; }; f; rm -rf ~/$x", "false && x=a; rm -rf ~/$x", "x[1]=a; rm -rf ~/$x"),
    *('while read -r a b; do rm -rf ~/"$b"; done <<< x', "x=a; unset x; declare x; rm -rf ~/$x"),
    *(
        "x=a; unset x; y && x=b; rm -rf ~/$x",
        'f() { rm -rf ~/"$2"; }; f a',
        "set -- a; rm -rf ~/$2",
    ),
    *("(x=a); rm -rf ~/$x", "x=a | y && z; rm -rf ~/$x", "x=abc; rm -rf ~/${x#abc}"),
    *("x=$(mktemp -d); find ${x[1]} -exec rm -rf {} +", "false && x=build; find $x -delete"),
)
NEVER_EMPTY = (
    *("x=build; rm -rf ~/$x", "y && x=build && rm -rf ~/$x", "x=build || exit; rm -rf ~/$x"),
    *("export x=build; rm -rf ~/$x", 'while read -r x; do rm -rf ~/"$x"; done <<< build'),
    *("x=(build); rm -rf ~/${x[@]}", "x=$(mktemp -d); find $x -exec rm -rf {} +"),
    *("false && x=build; rm -rf $x", "x=build; find $x -delete"),
)


async def test_a_variable_that_may_be_empty_deletes_no_home(project, tmp_path):
    found = await verdicts(project, tmp_path, (*MAYBE_EMPTY, *NEVER_EMPTY), permission="allow")

    assert [line for line in MAYBE_EMPTY if found[line][0] != "deny"] == []
    assert [line for line in NEVER_EMPTY if found[line][0] != "allow"] == []


async def test_what_read_makes_of_a_text_is_seen(project, tmp_path):
    lines = (
        *("read y <<< '.e\\nv'; cat $y", "read y <<< '.en\\v'; cat \"$y\""),
        *('IFS=: read y x <<< ".env:b"; cat $y', 'IFS=: read -r x y <<< "b:.env"; cat "$y"'),
    )

    found = await verdicts(project, tmp_path, lines)

    assert [line for line in lines if found[line][0] == "allow"] == []
