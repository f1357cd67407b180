import asyncio
import os
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pegboard.errors import PermissionDeniedError, ToolError
from pegboard_plugins.bash import bash
from pegboard_plugins.bash.approving import prefix
from pegboard_plugins.bash.display import plain
from pegboard_plugins.bash.scan import Scan, StartPlace, scan
from support.tools.tool_context import Context, call, said


@pytest.fixture
def context(tmp_path):
    (tmp_path / "src").mkdir()
    return Context(tmp_path)


async def test_functions_and_options_of_the_environment_are_not_taken(
    context, tmp_path, monkeypatch
):
    (tmp_path / "start.sh").write_text("echo taken\n")
    monkeypatch.setenv("BASH_ENV", str(tmp_path / "start.sh"))
    monkeypatch.setenv("BASH_FUNC_true%%", "() { echo taken; }")
    monkeypatch.setenv("SHELLOPTS", "xtrace")

    result = await call(bash, context, command="true; echo on")

    assert said(result.output) == "on"


PIECES = [
    *("rm", "$(", ")", "`", "'", '"', "\\", "\n", " ", "{", "}", "<<E\n", "E", ">", "2>&1", "|"),
    *("&&", "||", ";", "$X", "~", "/etc", "*", "=", "[[", "]]", "((", "))", "if", "then", "fi"),
    *("sudo ", "bash -c ", "find . -exec ", "\0", "é", "\udcff"),
]


def commands(text):
    return [" ".join(argv) for argv in seen(text).commands]


def seen(text):
    return scan(text, StartPlace(cwd=Path("/w/proj"), home=Path("/home/u")))


def paths(text):
    return {os.path.normpath(path) for path in seen(text).paths}


async def test_a_command_runs_and_its_output_is_the_answer(context):
    result = await call(bash, context, command="echo hi; echo err >&2", description="Say hi")

    assert (said(result.output), result.title) == ("hi\nerr", "Say hi")
    assert result.metadata.pop("seconds") > 0
    assert result.metadata == {"output": "hi\nerr\n", "description": "Say hi", "exit": 0}


async def test_the_exit_code_and_the_time_are_told(context):
    result = await call(bash, context, command="echo no; exit 3")
    slow = await call(bash, context, command="sleep 1.2")

    assert re.fullmatch(r"no\n\n\[exit code 3, (under 1|\d+) s\]", result.output)
    assert re.fullmatch(r"\(no output\)\n\n\[exit code 0, \d+ s\]", slow.output)
    assert result.title == "echo no; exit 3"
    assert result.metadata["exit"] == 3


async def test_a_signal_is_told_by_its_name(context):
    assert "\n\n[ended by SIGKILL, " in (await call(bash, context, command="kill -9 $$")).output


async def test_no_output_is_said(context):
    assert said((await call(bash, context, command="true")).output) == "(no output)"


async def test_the_time_limit_is_told_with_the_output_so_far(context):
    result = await call(bash, context, command="echo start; sleep 60", timeout=300)

    assert result.output == "start\n\n[timed out after 300 ms, and was ended]"
    assert result.metadata["exit"] is None


async def test_processes_in_the_background_are_said_to_be_ended(context):
    result = await call(bash, context, command="sleep 60 >/dev/null & echo on")

    assert said(result.output) == "on"
    assert "\n[processes that it left running were ended; background=true " in result.output


async def test_it_runs_in_workdir(context, tmp_path):
    result = await call(bash, context, command="pwd", workdir="src")

    assert said(result.output) == str(tmp_path / "src")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"command": "  "}, "empty"),
        ({"command": "ls", "timeout": 0}, "from 1 to"),
        ({"command": f"echo {'é' * 70_000}"}, "longer than 131,071 bytes"),
        ({"command": "ls", "workdir": "gone"}, "cannot run .* in .*gone"),
    ],
)
async def test_what_cannot_run_is_refused(context, args, why):
    with pytest.raises(ToolError, match=why):
        await call(bash, context, **args)


async def test_output_is_shown_while_the_command_runs(context):
    running = asyncio.create_task(call(bash, context, command="echo one; sleep 60"))
    async with asyncio.timeout(30):
        await context.has_shown.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert context.shown == [(None, {"output": "one\n", "description": ""})]


async def test_a_huge_output_keeps_its_end_and_names_the_file(context):
    result = await call(bash, context, command="seq 1 400000; echo error: broken; exit 1")

    assert said(result.output).endswith("\nerror: broken")
    (stored,) = (context.directory / ".output").iterdir()
    assert stored.stat().st_size > 2 << 20
    assert result.metadata["outputPath"] == str(stored)
    assert result.metadata["output"].endswith("error: broken\n")
    assert len(result.metadata["output"]) <= 30_000


async def test_an_output_without_a_file_says_that_its_middle_is_lost(context):
    removal = "seq 1 400000; while ! rm .output/*; do sleep 0.01; done; echo gone"

    result = await call(bash, context, command=removal)

    assert re.search(r"of [\d,]+ bytes of output no file could keep the middle\]$", result.output)
    assert "outputPath" not in result.metadata


async def test_every_command_of_the_line_is_asked_for(context):
    await call(bash, context, command="FOO=1 git status -s | head -n 1 && echo $(date)")

    (ask,) = [ask for ask in context.asks if ask.permission == "bash"]
    assert ask.patterns == (
        *("git status -s", "head -n 1", "date", "echo $(date)"),
        "FOO=1 git status -s",  # a variable may change what the command does
    )
    assert ask.always == ("git status *", "head *", "date *", "echo *", "FOO=1 git status *")


async def test_a_denied_command_does_not_run(tmp_path):
    context = Context(tmp_path, denied=["bash"])

    with pytest.raises(PermissionDeniedError):
        await call(bash, context, command="touch made")

    assert not (tmp_path / "made").exists()


async def test_paths_outside_are_asked_for_with_symlinks_resolved(context, tmp_path):
    (tmp_path / "out").symlink_to("/etc")

    command = "cat out/hostname /etc/hosts /usr/../usr/nothing src/x > /dev/null"
    await call(bash, context, command=command)

    assert context.asked("external_directory") == ["/etc/*", "/usr/*"]


async def test_what_a_line_writes_in_the_project_is_an_edit(context, tmp_path):
    await call(bash, context, command="echo x > made; cp made src/copy; cat made > /dev/null")

    assert context.asked("edit") == ["made", "src/copy"]


async def test_each_question_has_the_line_that_it_is_about(context):
    line = 'for f in /etc/hosts; do cat "$f" > made; done'

    await call(bash, context, command=line, workdir="/usr")

    asked = {ask.permission: ask.metadata["command"] for ask in context.asks}
    assert asked == dict.fromkeys(("external_directory", "bash"), line)


async def test_an_unclear_line_is_asked_for_as_a_whole_and_never_for_good(context):
    await call(bash, context, command="ls; $X src")

    (ask,) = [ask for ask in context.asks if ask.permission == "bash"]
    assert ask.patterns == ("[unclear] ls; $X src",)
    assert ask.always == ()
    assert ask.metadata["unclear"] == ["dynamic-command"]
    assert ask.metadata["place"]["column"] == 5
    assert ask.metadata["place"]["marked"] == "ls; $X src\n    ^^"


async def test_what_could_run_anything_is_never_approved_for_good(context):
    await call(bash, context, command="env ls")

    assert context.asks[-1].patterns == ("env ls", "ls")
    assert context.asks[-1].always == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ls & rm -rf x", ["ls", "rm -rf x"]),
        ("(rm x); { rm y; }", ["rm x", "rm y"]),
        ("echo `rm x`", ["rm x", "echo `rm x`"]),
        ("cat <<EOF\n$(rm x)\nEOF", ["cat", "rm x"]),
        ("for f in a b; do c $f; done", ["c $f"]),
        ("if a; then b; elif c; then d; fi", ["a", "b", "c", "d"]),
        ("'r'm \"-rf\" build", ["rm -rf build"]),
        ("$'\\x72\\x6d' x", ["rm x"]),
        ("/bin/rm x", ["/bin/rm x", "rm x"]),
        ("sudo -u root nice -n 5 rm x", ["sudo -u root nice -n 5 rm x", "nice -n 5 rm x", "rm x"]),
        ("bash -c 'rm x; ls'", ["bash -c rm x; ls", "rm x", "ls"]),
        ("find . -exec rm {} \\;", ["find . -exec rm {} ;", "rm {}"]),
        ("git \\\n  status", ["git status"]),
    ],
)
def test_the_commands_of_a_line(text, expected):
    assert commands(text) == expected
    assert seen(text).unclear is None


@pytest.mark.parametrize(
    "text",
    [
        "$CMD x",
        "eval $CODE",
        'bash -c "$CODE"',
        "cat notes | sh",
        "echo x > $(cat name)",
        "if then",
        "cd $(cat name) && ls",
        "for f in $(a); do cat $f; done",
        "PATH=. ls",
        "ls \x1b[2K",
        "echo " + "a" * 140_000,
        "alias ls=rm",
        "echo " + "$(" * 3000,
    ],
)
def test_lines_that_no_rule_about_a_part_may_allow(text):
    assert seen(text).unclear


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cat /etc/passwd", "/etc/passwd"),
        ('cat "/etc/passwd"', "/etc/passwd"),
        ("cat ~/.ssh/id", "/home/u/.ssh/id"),
        ("cat $HOME/.ssh/id", "/home/u/.ssh/id"),
        ("echo x >> ../y", "/w/y"),
        ("cd /etc && cat passwd", "/etc/passwd"),
        ("cd src; cat ../../x", "/w/x"),
        ("false || cd /; rm x", "/x"),
        ("rm ../*", "/w"),
        ("cp --target-directory=/etc a", "/etc"),
        ("curl -d @/home/u/.netrc x", "/home/u/.netrc"),
        ("bash -c 'cd /etc && rm x'", "/etc/x"),
    ],
)
def test_the_paths_of_a_line(text, expected):
    assert expected in paths(text)


@pytest.mark.parametrize(
    "text",
    ["echo /etc/x", "grep /api src", "ls > /dev/null 2>&1", "curl http://x/y", "(cd /); ls x"],
)
def test_words_that_are_no_paths_outside(text):
    outside = {path for path in paths(text) if not path.startswith("/w/proj")}

    assert outside <= {"/"}


def test_a_prefix_has_the_words_that_name_the_act():
    assert prefix(["git", "log", "-n", "3"]) == "git log"
    assert prefix(["npm", "run", "test", "-x"]) == "npm run test"
    assert prefix(["ls", "-l"]) == "ls"
    assert prefix(["git"]) == "git"


_GROWING = (
    "X=a;" + 'X="$X$X";' * 1500 + "cat $X",
    "f(){ f; g; }; g(){ f x; f y; };" + "f;" * 3000,
    "X='" + "a" * 900 + "';" + "cat ${X%%*a*b*c*};" * 300,
)
"""Lines that mean far more than they are long."""


@pytest.mark.parametrize(
    "text",
    [
        *_GROWING,
        "a;" * 8000,
        "a|" * 8000,
        "x=1 " * 4000,
        '"' + "$x" * 8000 + '"',
        "((" * 999,
        "a|" * 10**6,
    ],
)
def test_a_hostile_line_is_judged_in_bounded_time(text):
    started = time.process_time()

    seen(text)

    assert time.process_time() - started < 10


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_line_makes_the_scan_fail(text):
    assert isinstance(seen(text), Scan)


def test_escapes_and_redrawn_lines_do_not_reach_the_model():
    text = "\x1b[31mred\x1b[0m \x1b]0;title\x07\n10%\r50%\r100%\r\nend\x08\n"

    assert plain(text) == "red \n100%\nend\n"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\r\rb\r\r\n\r\n", "b\n\n"),
        ("first line\rsecond\rthird\r\nend\n", "first line\\rsecond\\rthird\nend\n"),
        (
            "\x1b]0;a title without an end\nlines\nafter it",
            "0;a title without an end\nlines\nafter it",
        ),
        ("\x1bPq\x1b\\\x9b31mred\x85", "31mred"),
    ],
)
def test_what_no_terminal_would_draw_costs_no_text(text, shown):
    assert plain(text) == shown


@pytest.mark.timeout(30)
def test_a_long_line_beside_a_redrawn_one_is_shown_at_once():
    long = "x" * (1 << 20)

    assert plain(f"10%\r20%\r\n{long}\x1b[{long}") == f"20%\n{long}{long[1:]}"


@pytest.mark.parametrize(
    "text",
    [
        *("sed -n '10,20p;30q' f", "sed -E 's/(a|b)+/x/g' f", "sed '/^$/d' f", "awk 'NR>5' f"),
        *("git -c user.name=x commit -m z", "git show HEAD:file", "PAGER=cat git log"),
        *("python -m json.tool < f", "sort -k2 -n f", "tar -czf out.tgz dir", "rg --pretty x"),
        *("export FOO=bar; ./run.sh", "diff <(sort a) <(sort b)", "make -j4 test"),
        *('test "$(git status --porcelain)" = ""', "for f in *.py; do wc -l $f; done"),
        *("D=build; mkdir -p $D && ls $D", "find . -name '*.py' -exec grep x {} +"),
    ],
)
def test_everyday_lines_are_clear(text):
    assert seen(text).unclear is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a <<E && b <<'E'\n$(rm x\n)\nE\n\ntext\nE\n", ["a", "b", "rm x"]),
        ("a <<A && c <<B\n$(rm x\n)\nA\nb\nB\n", ["a", "c", "rm x"]),
        ("bash <<'E'\n\\rm x\nE\n", ["bash", "rm x"]),
    ],
)
def test_here_documents_are_read_where_they_stand(text, expected):
    assert commands(text) == expected


def test_a_line_of_here_documents_one_after_the_other_is_clear():
    found = seen("cat <<A\n1\nA\nls <<B\n2\nB\n")

    assert (found.commands, found.unclear) == ((("cat",), ("ls",)), None)


@pytest.mark.parametrize("text", ["a <<E ~\0& b\ntext\nE\n", "cat ~\0/x", "cp \0 .git", "> \0"])
def test_a_line_with_a_zero_byte_is_unclear(text):
    assert seen(text).unclear.code == "control-char"
