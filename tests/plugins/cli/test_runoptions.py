"""What can be said to `pegboard run`, alone and together."""

import asyncio
import json
import os
import re
import signal
import subprocess
from pathlib import Path

import click
import pytest

from pegboard.cli import Exit
from pegboard.errors import InvalidInputError
from pegboard_plugins.cli.foreignoptions import ALIASES, FOREIGN, PRINT, SANDBOXES
from pegboard_plugins.cli.run import run as run_command
from pegboard_plugins.cli.worktree import Worktree
from plugins.cli.commands import LIMIT_S, CommandLine, Done, HalfAnswer, finished
from support.models.model_server import (
    Answer,
    ModelServer,
    Pause,
    by_step,
    call,
    reasoning,
    say,
    text,
)
from support.tools.worktrees import git, small_repository

OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
ALLOW_ALL = {"*": "allow"}


async def run(
    pegboard: CommandLine, *words: str, answers: tuple[Answer, ...] = (say("Done."),)
) -> tuple[Done, list[dict[str, object]]]:
    """One prompt, and the requests with tools that it made."""
    async with ModelServer(by_step(*answers)) as server:
        pegboard.use_model(server.url, permission=ALLOW_ALL)
        done = await pegboard("run", *words)
    return done, [body for body in server.requests if body.get("tools")]


async def test_an_option_of_another_agent_is_answered_with_what_takes_its_place(
    pegboard: CommandLine,
) -> None:
    done = await pegboard("run", "--permission-mode", "plan", "hi")

    assert done.code == 2
    assert "no such option --permission-mode: " in done.err
    assert "`--agent plan`" in done.err


def test_no_option_of_the_table_exists_and_all_that_take_their_place_do() -> None:
    known = {name for each in run_command.params for name in each.opts}

    assert known.isdisjoint({*FOREIGN, *ALIASES})
    assert {*ALIASES.values()} <= known
    assert {name for text in FOREIGN.values() for name in OPTION.findall(text)} <= known | {"-C"}
    assert len({*FOREIGN, *ALIASES, *PRINT}) >= 60


@pytest.mark.parametrize("option", FOREIGN)
@pytest.mark.parametrize("form", ["{} x hi", "{}=x hi", "hi {}"])
def test_each_option_of_the_table_is_answered_with_what_takes_its_place(
    option: str, form: str
) -> None:
    words = form.format(option).split()

    if not option.startswith("--") and "=" in words[0]:
        words = [option, "=x", "hi"]
    with pytest.raises(click.UsageError, match=re.escape(FOREIGN[option])) as error:
        run_command.make_context("run", words)

    assert error.value.exit_code == Exit.USAGE
    assert f"no such option {option}: " in error.value.message


@pytest.mark.parametrize(("given", "level"), SANDBOXES.items())
async def test_a_level_of_a_sandbox_is_no_session(
    pegboard: CommandLine, given: str, level: str
) -> None:
    done = await pegboard("run", "-s", given, "hi")

    assert (done.code, f"`--sandbox {level}`" in done.err) == (2, True)


@pytest.mark.parametrize("option", ["-p", "--print"])
async def test_an_option_that_asks_for_what_a_run_does_changes_nothing(
    pegboard: CommandLine, option: str
) -> None:
    done, _ = await run(pegboard, option, "hi")

    assert (done.code, done.out) == (0, "Done.\n")


async def sessions(pegboard: CommandLine) -> list[str]:
    listed = await pegboard("session", "list", "--all", "--format", "json")
    return [each["id"] for each in json.loads(listed.out)]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--fork", "hi"), "say which with -c or -s"),
        (("--no-save", "-c", "hi"), "with --fork its copy goes"),
        (("--worktree", "-c", "hi"), "-c and -s go on where theirs began"),
        (("-c", "-s", "ses_1", "hi"), "exclude each other"),
        (("--command", "init", "/review"), "exclude each other"),
        (("--tools", " , ", "hi"), "`pegboard tool list` shows them"),
        (("--wait-permission", "3", "hi"), "it needs --attach"),
        (("--password-file", "x", "hi"), "it needs --attach"),
        (("--attach", "http://127.0.0.1:9", "--profile", "x", "hi"), "the server's to decide"),
        (("--attach", "http://127.0.0.1:9", "--worktree", "hi"), "the server's to decide"),
        (("--variannt", "x", "hi"), "Did you mean '--variant'"),
        (("--bare", "--trust", "hi"), "--bare and --trust exclude each other"),
        (("--attach", "http://127.0.0.1:9", "--bare", "hi"), "--bare is the server's to decide"),
        (("--attach", "http://127.0.0.1:9", "--set", "a=1", "hi"), "--set is the server's"),
        (("--max-steps", "0", "hi"), "0 is not in the range x>=1"),
        (("--set", "model", "hi"), "--set: model has no value: write it as KEY=VALUE"),
        (("--set", "a b=1", "hi"), "'a b' is not a key"),
        (("--append-system", "@none", "hi"), "cannot read none: No such file or directory"),
        (("--append-system", "x", "/init"), "--append-system is for a message"),
        (("--resume", "--append-system", "x"), "--resume and --append-system exclude each other"),
        (("-o", "none/answer", "hi"), "cannot write none/answer: No such file or directory"),
    ],
)
async def test_what_cannot_be_is_refused_with_the_way_out(
    pegboard: CommandLine, words: tuple[str, ...], said: str
) -> None:
    done = await pegboard("run", *words)

    assert done.code == 2
    assert said in done.err
    assert await sessions(pegboard) == []


async def test_a_variant_is_sent_and_one_that_is_none_is_refused(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("Done."), say("Done."))) as server:
        pegboard.use_model(server.url)
        file = pegboard.home / "config" / "opencode.json"
        config = json.loads(file.read_text())
        model = config["provider"]["fake"]["models"]["model"]
        model["variants"] = {"deep": {"reasoningEffort": "high"}}
        file.write_text(json.dumps(config))
        deep = await pegboard("run", "--variant", "deep", "hi")
        wrong = await pegboard("run", "--variant", "depp", "hi")

    assert deep.code == 0
    assert [body.get("reasoning_effort") for body in server.requests if body.get("tools")] == [
        "high"
    ]
    assert (wrong.code, wrong.err) == (
        2,
        "error: fake/model has no variant depp: did you mean deep?\n",
    )


async def test_the_efforts_that_a_model_knows_are_its_variants(pegboard: CommandLine) -> None:
    pegboard.configure(provider={"openai": {"options": {"apiKey": "k"}}})
    models = await pegboard("models", "--json", "--all", "gpt-5")

    found = [each for each in json.loads(models.out) if each.get("variants")]
    assert found


async def test_thinking_is_shown_in_full_when_it_is_wanted(pegboard: CommandLine) -> None:
    answers = ([*reasoning("First.\nThen."), *say("Done.")],)
    folded, _ = await run(pegboard, "hi", answers=answers)
    whole, _ = await run(pegboard, "--thinking", "hi", answers=answers)

    assert "First." not in folded.err + folded.out
    assert "  First.\n  Then.\n" in whole.err
    assert whole.out == "Done.\n"


async def test_a_command_runs_by_its_name(pegboard: CommandLine) -> None:
    folder = pegboard.home / "config" / "command"
    folder.mkdir(parents=True)
    (folder / "greet.md").write_text("Say hello to $ARGUMENTS in $1.")
    done, requests = await run(pegboard, "--command", "greet", "Ada", "Turing")
    empty, _ = await run(pegboard, "--command", "/greet")
    wrong, _ = await run(pegboard, "--command", "grete", "Ada")

    assert (done.code, empty.code) == (0, 0)
    assert "Say hello to Ada Turing in Ada Turing." in str(requests[0]["messages"])
    assert (wrong.code, "command not found: grete. Did you mean greet" in wrong.err) == (2, True)


async def test_a_fork_goes_on_beside_the_session(pegboard: CommandLine) -> None:
    await run(pegboard, "remember seven")
    (first,) = await sessions(pegboard)
    done, requests = await run(pegboard, "-c", "--fork", "what was it?")
    copy, *_ = await sessions(pegboard)
    shown = await pegboard("session", "show", first)

    assert (done.code, copy != first) == (0, True)
    assert "remember seven" in str(requests[0]["messages"])
    assert "what was it?" not in shown.out


async def test_no_session_is_left_behind(pegboard: CommandLine) -> None:
    await run(pegboard, "remember seven")
    kept = await sessions(pegboard)
    alone, _ = await run(pegboard, "--no-save", "hi")
    forked, requests = await run(pegboard, "-c", "--fork", "--no-save", "what was it?")
    failed = await pegboard("run", "--no-save", "-m", "fake/none", "hi")

    assert (alone.code, forked.code) == (0, 0)
    assert "remember seven" in str(requests[0]["messages"])
    assert (failed.code, "saved" in failed.err) == (4, False)
    assert await sessions(pegboard) == kept


@pytest.mark.parametrize("unsaved", [(), ("--no-save",)])
async def test_an_end_calls_a_session_saved_only_where_it_is(
    pegboard: CommandLine, unsaved: tuple[str, ...]
) -> None:
    part = [*text("half an answer"), Pause()]
    late, _ = await run(pegboard, *unsaved, "--time-limit", "1", "hi", answers=(part,))
    async with ModelServer(half := HalfAnswer()) as server:
        pegboard.use_model(server.url)
        process = await pegboard.start("run", *unsaved, "hi")
        await asyncio.wait_for(half.asked.wait(), LIMIT_S)
        process.send_signal(signal.SIGINT)
        stopped = await finished(process)

    assert (late.code, stopped.code) == (7, 130)
    for done in (late, stopped):
        assert ("; the session is saved" in done.err) is not bool(unsaved), done.err


async def test_only_the_chosen_tools_are_offered_and_run(pegboard: CommandLine) -> None:
    answers = (call("bash", {"command": "echo no > made", "description": "x"}), say("Done."))
    done, requests = await run(pegboard, "--tools", "read,web*", "hi", answers=answers)
    wrong, _ = await run(pegboard, "--tools", "raed", "hi")

    offered = {tool["function"]["name"] for tool in requests[0]["tools"]}  # type: ignore[attr-defined]
    assert offered == {"read", "webfetch", "websearch"} & offered
    assert "read" in offered
    assert not (pegboard.project / "made").exists()
    assert done.code == 0
    assert (wrong.code, "tool not found: raed. Did you mean read" in wrong.err) == (2, True)


async def test_a_profile_of_the_user_s_is_laid_over_the_rest(pegboard: CommandLine) -> None:
    async with ModelServer(by_step(say("Done."))) as server:
        pegboard.use_model(server.url, profile={"other": {"model": "fake/none"}})
        plain = await pegboard("run", "hi")
        other = await pegboard("run", "--profile", "other", "hi")
        wrong = await pegboard("run", "--profile", "othr", "hi")

    assert plain.code == 0
    assert (other.code, "model not found: fake/none" in other.err) == (4, True)
    assert (wrong.code, "did you mean other?" in wrong.err) == (3, True)


async def test_a_worktree_of_its_own_keeps_the_changes_apart(pegboard: CommandLine) -> None:
    small_repository(pegboard.project)
    write = call("write", {"filePath": "new.txt", "content": "new\n"})
    done, _ = await run(pegboard, "--worktree", "hi", answers=(write, say("Done.")))

    (place,) = (pegboard.home / "project.worktrees").iterdir()
    assert (done.code, done.out) == (0, "Done.\n")
    assert not (pegboard.project / "new.txt").exists()
    assert (place / "new.txt").read_text() == "new\n"
    assert f"worktree {place} on pegboard/{place.name}\n" in done.err
    assert len(await sessions(pegboard)) == 1


@pytest.mark.parametrize("committed", [False, True])
async def test_the_lines_after_a_worktree_show_take_and_drop_it_in_any_folder(
    pegboard: CommandLine, *, committed: bool
) -> None:
    pegboard.project = pegboard.home / "my project"
    pegboard.project.mkdir()
    small_repository(pegboard.project)
    calls = [call("write", {"filePath": "new.txt", "content": "new\n"})]
    if committed:
        order = "git add -A && git -c user.name=A -c user.email=a@b commit -qm new"
        calls.append(call("bash", {"command": order, "description": "commit"}))
    done, _ = await run(pegboard, "--worktree", "hi", answers=(*calls, say("Done.")))

    ways = dict(re.findall(r"^  to (see|take|drop) it (.+)$", done.err, re.MULTILINE))
    seen = [bash(ways[way], pegboard.home) for way in ("see", "take", "drop")]
    assert "+new" in seen[0]
    assert (pegboard.project / "new.txt").read_text() == "new\n"
    assert git(pegboard.project, "branch", "--list", "pegboard/*") == ""
    assert list((pegboard.home / "my project.worktrees").iterdir()) == []


def bash(line: str, folder: Path) -> str:
    """What a line prints in a shell that goes on after no failure."""
    return subprocess.run(
        ["bash", "-o", "pipefail", "-ec", line],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout


async def test_a_worktree_in_which_nothing_was_changed_is_gone(pegboard: CommandLine) -> None:
    small_repository(pegboard.project)
    (pegboard.project / "a.txt").write_text("changed\n")
    done, _ = await run(pegboard, "--worktree", "hi")

    assert done.code == 0
    assert "what you have not committed is not in it" in done.err
    assert "nothing was changed in the worktree, and it is gone" in done.err
    assert not (pegboard.home / "project.worktrees").exists()
    assert git(pegboard.project, "branch", "--list", "pegboard/*") == ""


@pytest.mark.parametrize("way", ["path", "filter"])
def test_a_worktree_is_made_without_a_program_of_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    project, ran = tmp_path / "project", tmp_path / "ran"
    small_repository(project)
    program = project / "git"
    program.write_text(f'#!/bin/sh\ntouch {ran}\nexec cat "$@"\n')
    program.chmod(0o755)
    if way == "path":
        monkeypatch.setenv("PATH", f"{project}:{os.environ['PATH']}")
        Worktree.make(project).end_lines()
    else:
        (project / ".git" / "info" / "attributes").write_text("* filter=own\n")
        git(project, "config", "filter.own.smudge", str(program))
        with pytest.raises(InvalidInputError, match=r"filter\.own\.smudge.*git worktree add"):
            Worktree.make(project)

    assert not ran.exists()


async def test_a_worktree_needs_a_repository_with_a_commit(pegboard: CommandLine) -> None:
    none, _ = await run(pegboard, "--worktree", "hi")
    git(pegboard.project, "init", "-q")
    empty, _ = await run(pegboard, "--worktree", "hi")

    assert (none.code, "is in no git repository; make one with git init" in none.err) == (2, True)
    assert (empty.code, "has no commit to begin at" in empty.err) == (2, True)


async def test_a_password_is_the_first_line_of_its_file(
    pegboard: CommandLine, tmp_path: Path
) -> None:
    (tmp_path / "empty").write_text("\n")
    at = ("--attach", "http://127.0.0.1:9", "--password-file")
    gone = await pegboard("run", *at, "none", "hi")
    empty = await pegboard("run", *at, str(tmp_path / "empty"), "hi")

    assert (gone.code, "cannot read none: No such file" in gone.err) == (2, True)
    assert (empty.code, "has no password" in empty.err) == (2, True)


async def test_a_prompt_that_no_model_answered_is_kept_and_not_listed(
    pegboard: CommandLine,
) -> None:
    failed = await pegboard("run", "-m", "fake/none", "hello")
    listed = await pegboard("session", "list")
    every = await pegboard("session", "list", "--all")
    await run(pegboard, "hi")

    assert (failed.code, "The prompt is saved in session" in failed.err) == (4, True)
    assert (listed.out, listed.err) == ("", "no sessions yet\n")
    assert "hello" in every.out
    assert len(await sessions(pegboard)) == 2
    assert (await pegboard("session", "list")).out.count("ses_") == 1


async def test_nothing_is_counted_where_nothing_was_answered(pegboard: CommandLine) -> None:
    provider = {"options": {"baseURL": "http://127.0.0.1:9", "apiKey": "k"}, "models": {"m": {}}}
    pegboard.configure(model="fake/m", provider={"fake": provider}, retry={"attempts": 1})
    done = await pegboard("run", "hi")

    assert done.code == 4
    assert "0 tokens" not in done.err
