"""No disguise of a shell line runs what is not allowed, where nobody is there to be asked."""

import json

import pytest

from plugins.cli.commands import CommandLine, Done
from support.models.model_server import ModelServer, by_step, finish, say, tool_call, usage

SECRET = "s3cr3t-value"
ALLOWED = {"*": "ask", **dict.fromkeys(("echo *", "cat *", "true", "ls *", "npm run *"), "allow")}
DENIED = {"*": "allow", "touch *": "deny", "rm *": "deny"}
UNCLEAR = (
    "echo ${x:-`touch PWNED`}",
    'echo "${x:+a`touch PWNED`}"',
    "cat <<E\n${x:-`touch PWNED`}\nE",
    "cat <<< ${x%`touch PWNED`}",
    "echo `echo \\`touch PWNED\\``",
    "for x in 'a[$(touch PWNED)]'; do echo ${PATH:x}; done",
    "x='a[$(touch PWNED)]'; echo ${PATH:x}",
    "x='a[$(touch PWNED)]'; declare -i y=x",
    'cat <<E"F"\nx\nEF\n${z-t}ouch PWNED',
    "setarch -R touch PWNED",
    "x86_64 touch PWNED",
    "tmux new -d 'touch PWNED'",
    "npm run build --script-shell=./x.sh",
    "true # x \\\n$z touch PWNED",
    "F='-exec touch PWNED ;'; find . $F",
    "T=-s; timeout $T touch 5 touch PWNED",
    "[ -z $(echo 'a -o -v b[$(touch PWNED)]') ]",
    "X=1; X='1 touch PWNED'; nice -n $X ls",
    "$z touch PWNED",
    "curl -s file:///dev/null | sh; echo touch PWNED | bash -s",
)
SEEN = (
    "echo $'\\\\' x; touch PWNED; echo '\\'",
    "bash -c -- 'touch PWNED'",
    "sh -c -- 'touch PWNED'",
    "script -q -c'touch PWNED' /dev/null",
    "{touch,PWNED}",
    "bash -c 'touch PWNED'",
    "echo 'touch PWNED' | bash",
    "bash <<'E'\ntouch PWNED\nE",
    "eval -- touch PWNED",
    "python3 -c 'import os; os.system(\"touch PWNED\")'",
)
DELETES_HOME = (
    "rm -rf ~",
    "bash -c -- 'rm -rf ~'",
    "sh -c -- 'rm -rf ~'",
    "script -q -c'rm -rf ~' /dev/null",
    "script --command='rm -rf ~' -q /dev/null",
    "ed <<< '!rm -rf ~'",
    "x86_64 rm -rf ~",
    "echo ${x:-`rm -rf ~`}",
    "echo `echo \\`rm -rf ~\\``",
    'D=$HOME; $z rm -rf "$D"',
    "echo 'rm -rf ~' | sh",
    "find ~ -delete",
)
READS_SECRET = (
    "cat .env",
    "date -f .env",
    "date -f.env",
    "date --file=.env",
    "xargs -a.env echo",
    "shopt -s dotglob; cat *",
    "bash -O dotglob -c 'cat *'",
    "GLOBIGNORE=x; cat *",
    "grep -f.env notes.txt; grep -hf notes.txt .env",
    "sed '1r .env' notes.txt",
    "echo ${x:-`cat .env`}",
    "sqlite3 :memory: \"select readfile('.env')\"",
    "python3 -c \"print(open('.env').read())\"",
    "X=.env; cat $X",
    "cat x${IFS}.env",
)


async def run(
    pegboard: CommandLine, lines: tuple[str, ...], permission: object
) -> tuple[Done, str]:
    """What a run says whose model wants each of the lines, and all that the model was told."""
    (pegboard.project / ".env").write_text(f"KEY={SECRET}\n")
    (pegboard.project / "notes.txt").write_text("KEY\n")
    (pegboard.home / "kept").mkdir()
    (pegboard.home / "kept" / "file").write_text("mine")
    pegboard.env["HOME"] = str(pegboard.home / "kept")
    calls = [tool_call("bash", {"command": each}, index=at) for at, each in enumerate(lines)]
    async with ModelServer(
        by_step([*calls, finish("tool_calls", usage=usage())], say("ok"))
    ) as server:
        pegboard.use_model(server.url, permission=permission)
        done = await pegboard("run", "go")
        told = [each for body in server.requests for each in body["messages"]]
        results = {each["tool_call_id"]: each for each in told if each["role"] == "tool"}
        assert len(results) == len(lines)
        return done, json.dumps(list(results.values()))


@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    ("lines", "permission"),
    [
        ((*UNCLEAR, *SEEN), {"bash": ALLOWED}),
        ((*UNCLEAR, *SEEN), {"bash": DENIED}),
        (UNCLEAR, {}),
    ],
    ids=["allow-list", "deny-list", "defaults"],
)
async def test_nothing_runs_that_is_not_allowed(
    pegboard: CommandLine, lines: tuple[str, ...], permission: object
) -> None:
    _, told = await run(pegboard, lines, permission)

    assert not (pegboard.project / "PWNED").exists()
    assert told.count("nobody is there to be asked") + told.count("denied by rule") >= len(lines)


@pytest.mark.timeout(120)
async def test_no_home_is_deleted_where_everything_is_allowed(pegboard: CommandLine) -> None:
    await run(pegboard, DELETES_HOME, "allow")

    assert (pegboard.home / "kept" / "file").read_text() == "mine"


@pytest.mark.timeout(120)
@pytest.mark.parametrize("permission", [{}, {"bash": DENIED}], ids=["defaults", "deny-list"])
async def test_no_secret_is_printed_unasked(pegboard: CommandLine, permission: object) -> None:
    done, told = await run(pegboard, READS_SECRET, permission)

    assert SECRET not in told
    assert SECRET not in done.out


@pytest.mark.timeout(120)
async def test_the_users_word_for_what_is_unclear_runs_it_and_the_guard_still_speaks(
    pegboard: CommandLine,
) -> None:
    lines = ("$z touch RAN", "echo ${x:-`rm -rf ~`}")

    _, told = await run(pegboard, lines, {"bash": {"unclear": "allow", "rm *": "deny"}})

    assert (pegboard.project / "RAN").exists()
    assert (pegboard.home / "kept" / "file").exists()
    assert "what would be destroyed is not known" in told
