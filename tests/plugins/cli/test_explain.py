"""`pegboard explain` and `pegboard permission`, as a user runs them."""

import json
import tomllib
from typing import Any

import pytest

from pegboard.ids import IdSource
from pegboard.schema.session import Session, SessionTime
from pegboard.storage.changes import CreateSession
from pegboard.workspace import open_workspace
from pegboard_plugins.audit.trail import Audit
from pegboard_plugins.sqlite import open_sqlite
from plugins.cli.commands import CommandLine, approve, quick_model


async def explained(pegboard: CommandLine, *arguments: str) -> dict[str, Any]:
    done = await pegboard("explain", "--format", "json", *arguments)
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


async def test_a_command_is_explained_in_parts(pegboard: CommandLine) -> None:
    pegboard.configure(permission={"bash": {"*": "ask", "git *": "allow", "git push *": "deny"}})

    found = await explained(pegboard, "git status && git push --force > /etc/out")

    assert found["commands"] == ["git status", "git push --force"]
    assert found["paths_outside"] == ["/etc/out"]
    assert found["opaque"] == []
    assert found["verdict"] == "deny"
    spoken = {(each["pattern"], each["rule"][1]) for each in found["rules"]}
    assert {("git status", "git *"), ("git push --force", "git push *")} <= spoken
    assert {each["plugin"] for each in found["plugins"]} == {"rules"}


async def test_a_line_whose_variables_decide_is_explained_as_it_is_written(
    pegboard: CommandLine,
) -> None:
    lines = ("for x in a b; do ls $x; done", "x=a; ls $x", "if ls a; then ls b; fi", "ls a")

    found = [await explained(pegboard, line) for line in lines]
    shown = await pegboard("explain", "for x in a b; do\n  ls $x\ndone")

    assert [each["line"] for each in found] == [*lines[:-1], ""]
    assert "in the command\n  for x in a b; do\n    ls $x\n  done\n" in shown.out


async def test_what_is_unclear_is_not_allowed_by_a_rule_about_a_part(pegboard: CommandLine) -> None:
    pegboard.configure(permission={"bash": {"*": "ask", "cat *": "allow", "* | sh": "allow"}})

    found = await explained(pegboard, "cat notes | sh")

    assert (found["verdict"], found["opaque"]) == ("ask", ["code-on-stdin"])


async def test_the_guard_speaks_where_everything_is_allowed(pegboard: CommandLine) -> None:
    pegboard.configure(permission="allow")

    found = await explained(pegboard, "rm -rf ~")

    assert found["verdict"] == "deny"
    assert [each["action"] for each in found["plugins"] if each["plugin"] == "guard"] == ["deny"]


async def test_other_tools_are_explained_by_their_arguments(pegboard: CommandLine) -> None:
    found = await explained(
        pegboard, "--tool", "write", "--args", '{"filePath": ".git/hooks/x", "content": ""}'
    )

    assert found["requests"] == [
        {
            "permission": "edit",
            "patterns": [".git/hooks/x"],
            "always": [],
            "verdict": "ask",
            "by": "guard",
            "rule": None,
        }
    ]
    assert (found["verdict"], found["headless"], found["to_allow"]) == ("ask", "deny", [])


async def test_what_to_add_is_told_for_what_is_asked_and_for_nothing_else(
    pegboard: CommandLine,
) -> None:
    pegboard.configure(permission={"bash": {"*": "ask", "ls *": "allow"}})

    found = await explained(pegboard, "git push origin > out")
    allowed = await explained(pegboard, "ls -l")

    assert found["to_allow"] == ['permission."bash"."git push *" = "allow"']
    assert (allowed["verdict"], allowed["headless"], allowed["to_allow"]) == ("allow", "allow", [])
    assert (allowed["by"], allowed["requests"][0]["rule"]) == ("config", ["bash", "ls *", "allow"])

    shown = await pegboard("explain", "git push")
    assert "\nask: asked by rule " in shown.out
    assert shown.out.count("rule bash") == 1  # a lone rule is named once
    shown_parts = await pegboard("explain", "rm x && ls")
    assert shown_parts.out.count("rule ") == 4  # one for each part, and the one that decides
    assert "deny without a terminal to ask on" in shown.out
    assert 'to allow it: permission."bash"."git push *" = "allow"' in shown.out


async def test_the_user_s_auto_decides_in_the_explanation_too(pegboard: CommandLine) -> None:
    pegboard.configure(permission={"bash": "ask"}, auto_approve=True)

    found = await explained(pegboard, "make")

    assert (found["verdict"], found["by"], found["headless"]) == ("allow", "auto", "allow")


async def test_auto_loosens_no_denial_no_guard_and_no_secret(pegboard: CommandLine) -> None:
    pegboard.configure(permission={"bash": {"*": "ask", "git push *": "deny"}}, auto_approve=True)
    hook = '{"filePath": ".git/hooks/x", "content": ""}'
    secret = '{"filePath": ".env"}'

    denied = await explained(pegboard, "git push --force")
    destroyed = await explained(pegboard, "rm -rf ~")
    protected = await explained(pegboard, "--tool", "write", "--args", hook)
    read = await explained(pegboard, "--tool", "read", "--args", secret)

    assert [(each["verdict"], each["by"]) for each in (denied, destroyed, protected, read)] == [
        ("deny", "config"),
        ("deny", "guard"),
        ("ask", "guard"),
        ("ask", "secrets"),
    ]
    assert (protected["headless"], read["headless"]) == ("deny", "deny")


async def test_searches_say_beforehand_what_they_ask(pegboard: CommandLine) -> None:
    for name, args in (("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})):
        found = await explained(
            pegboard, "--tool", name, "--args", json.dumps({**args, "path": "/etc"})
        )

        assert [each["permission"] for each in found["requests"]] == ["external_directory", name]
        assert found["verdict"] == "ask"


async def test_an_output_that_was_kept_is_read_unasked(pegboard: CommandLine) -> None:
    output = pegboard.home / "data" / "tool-output" / "tool_1.txt"

    found = await explained(
        pegboard, "--tool", "read", "--args", json.dumps({"filePath": str(output)})
    )

    assert [each["permission"] for each in found["requests"]] == ["read"]


async def test_a_person_reads_what_a_terminal_would_obey(pegboard: CommandLine) -> None:
    done = await pegboard("explain", "ls \x1b[2K\u202e; rm x")

    assert done.code == 0
    assert "\x1b" not in done.out
    assert "\\x1b[2K\\u202e" in done.out
    assert "unclear control-char" in done.out
    assert "    ls \\x1b[2K" in done.out.replace("\n  ", "\n    ")


async def test_what_is_unclear_is_shown_with_its_place_and_the_way_out(
    pegboard: CommandLine,
) -> None:
    done = await pegboard("explain", "ls; echo ${x:-`id`} > out")
    found = await explained(pegboard, "ls; echo ${x:-`id`} > out")

    assert found["place"] == "ls; echo ${x:-`id`} > out\n         ^"
    assert (found["opaque"], found["commands"]) == (["expansion"], [])
    assert "outside of the braces" in found["advice"][0]
    assert "         ^" in done.out
    assert "column 10" in done.out


@pytest.mark.parametrize(
    ("permission", "command"),
    [
        ({}, "$CMD x"),
        ({"bash": {"*": "ask"}}, "$CMD x * y"),
        ({"bash": {"*": "allow", "rm *": "deny"}}, "tmux new 'ls'"),
        ({"bash": {"*": "ask"}}, "git push && ls *.py"),
        ({"bash": {"rm *": "ask"}}, 'cat "$(jq -r .x a.json)"'),
    ],
)
async def test_advice_that_is_followed_changes_the_verdict(
    pegboard: CommandLine, permission: dict[str, Any], command: str
) -> None:
    pegboard.configure(permission=permission)
    advice = (await explained(pegboard, command))["to_allow"]
    assert advice
    given = tomllib.loads("\n".join(advice))["permission"]["bash"]

    pegboard.configure(permission={"bash": {**permission.get("bash", {}), **given}})

    assert (await explained(pegboard, command))["verdict"] == "allow"


async def test_where_no_rule_can_allow_it_that_is_said(pegboard: CommandLine) -> None:
    pegboard.configure(permission="allow")

    found = await explained(pegboard, "cat .env")
    shown = await pegboard("explain", "cat .env")

    assert (found["verdict"], found["to_allow"]) == ("ask", [])
    often = " every time" if found["firm"] else ""
    assert f"no rule of yours can allow it: {found['by']} wants it asked{often}" in shown.out


@pytest.mark.parametrize("path", ["a\\u0000b", "\\ud800"])
async def test_what_is_no_path_is_a_plain_error(pegboard: CommandLine, path: str) -> None:
    done = await pegboard("explain", "--tool", "read", "--args", f'{{"filePath": "{path}"}}')

    assert done.code != 0
    assert "is no path" in done.err


async def test_an_unknown_tool_is_a_plain_error(pegboard: CommandLine) -> None:
    done = await pegboard("explain", "--tool", "nothing", "--args", "{}")

    assert done.code != 0
    assert "there is no tool 'nothing'" in done.err


async def listed(pegboard: CommandLine) -> list[dict[str, Any]]:
    done = await pegboard("permission", "list", "--format", "json")
    found: list[dict[str, Any]] = json.loads(done.out)
    return found


async def test_an_approval_is_named_in_the_explanation(pegboard: CommandLine) -> None:
    pegboard.configure(permission={"bash": "ask"})
    await approve(pegboard, "git push *")

    found = await explained(pegboard, "git push origin")

    assert (found["verdict"], found["by"]) == ("allow", "approvals")
    assert found["reason"] == 'approved before, for the project: bash "git push *"'
    assert found["requests"][0]["rule"] == ["bash", "git push *", "allow"]


async def test_an_approval_is_listed_in_full_and_nothing_in_it_is_obeyed(
    pegboard: CommandLine,
) -> None:
    pattern = f"echo {'x' * 200} \u202e\x9b *"
    await approve(pegboard, pattern)

    shown = await pegboard("permission", "list")
    as_json = await pegboard("permission", "list", "--format", "json")

    assert f"echo {'x' * 200} \\u202e\\x9b *" in shown.out
    assert as_json.out.replace("\n", "").isprintable()
    assert [each["pattern"] for each in json.loads(as_json.out)] == [pattern]


async def test_approvals_are_listed_with_whom_they_are_for_and_since_when(
    pegboard: CommandLine,
) -> None:
    session = await make_session(pegboard)
    await approve(pegboard, "make *", key=session, agent="plan")
    await approve(pegboard, "git\x1b push *")
    await approve(pegboard, "ls *", key="user")

    shown = await pegboard("permission", "list")

    assert await listed(pegboard) == [
        {
            "id": number,
            "scope": scope,
            "session": session if scope == "session" else None,
            "agent": agent,
            "permission": "bash",
            "pattern": pattern,
            "at": 1_700_000_000_000,
        }
        for number, scope, agent, pattern in (
            (1, "session", "plan", "make *"),
            (2, "project", None, "git\x1b push *"),
            (3, "user", None, "ls *"),
        )
    ]
    assert session in shown.out
    assert "plan" in shown.out
    assert "git\\x1b push *" in shown.out
    assert "2023-11-1" in shown.out


async def make_session(pegboard: CommandLine) -> str:
    storage = await open_sqlite(pegboard.home / "data" / "pegboard.db", ids=IdSource())
    session = Session(
        id="ses_0000000000000000000000000a",
        slug="s",
        project_id=open_workspace(pegboard.project).project_id,
        directory=str(pegboard.project),
        title="",
        version="",
        time=SessionTime(created=1, updated=1),
    )
    await storage.commit(CreateSession(session))
    await storage.aclose()
    return session.id


async def test_approvals_are_taken_back_by_words_by_number_and_all(pegboard: CommandLine) -> None:
    await approve(pegboard, "git push *", "ls *", "make *", "cat *")

    by_words = await pegboard("permission", "revoke", "bash", "git*")
    by_number = await pegboard("permission", "revoke", "2", "3")
    unknown = await pegboard("permission", "revoke", "2", "4")
    left = await listed(pegboard)
    everything = await pegboard("permission", "revoke", "--all")
    nothing = await pegboard("permission", "revoke", "--all")

    assert by_words.out == "revoked: bash git push * (project)\n"
    assert by_number.out == "revoked: bash ls * (project)\nrevoked: bash make * (project)\n"
    assert unknown.code != 0
    assert "approval" in unknown.err
    assert [each["id"] for each in left] == [4]
    assert everything.out == "revoked: bash cat * (project)\n"
    assert (nothing.code, nothing.out) == (0, "")


async def test_what_is_to_be_taken_back_has_to_be_said(pegboard: CommandLine) -> None:
    for words in ((), ("--all", "bash"), ("1", "bash"), ("bash", "a", "b")):
        done = await pegboard("permission", "revoke", *words)

        assert (done.code, "give " in done.err) == (2, True)


async def test_taking_back_what_was_never_approved_is_an_error(pegboard: CommandLine) -> None:
    done = await pegboard("permission", "revoke", "bash")

    assert done.code != 0
    assert "approval" in done.err


async def test_the_audit_log_can_be_checked(pegboard: CommandLine) -> None:
    log = pegboard.home / "state" / "audit.jsonl"
    await Audit(log).write("call", {"tool": "bash"})

    good = await pegboard("audit", "verify")
    log.write_text(log.read_text().replace("bash", "read"))
    bad = await pegboard("audit", "verify")

    assert (good.code, good.out) == (0, f"1 entries, none altered: {log}\n")
    assert bad.code != 0
    assert "line 1: it was changed" in bad.err
    log.write_text("")
    unasked = await pegboard("audit", "acknowledge")
    known = await pegboard("audit", "acknowledge", "--yes")
    again = await pegboard("audit", "verify")
    assert (unasked.code != 0, known.code, again.code) == (True, 0, 0)
    assert "there is no terminal to ask on" in unasked.err
    assert (await pegboard("audit", "acknowledge")).out == "nothing to acknowledge\n"
    log.write_text("")
    gone = await pegboard("audit", "verify")
    assert "it is gone, with all behind it" in gone.err


async def test_a_log_that_is_gone_as_a_whole_is_missed_until_a_person_knows(
    pegboard: CommandLine,
) -> None:
    run = ("run", "--trust", "-m", quick_model(pegboard), "hello")
    await pegboard(*run)
    assert (await pegboard("audit", "verify")).code == 0

    for name in ("audit.jsonl", "audit.head"):
        (pegboard.home / "state" / name).unlink(missing_ok=True)
    before = await pegboard("audit", "verify")
    await pegboard(*run)
    after = await pegboard("audit", "verify")
    await pegboard("audit", "acknowledge", "--yes")
    known = await pegboard("audit", "verify")

    assert (before.code != 0, after.code != 0, known.code) == (True, True, 0)
    assert "the log is gone as a whole; `pegboard audit acknowledge`" in before.err
    assert "says: the log before this one is gone as a whole" in after.err


async def test_a_rule_that_no_file_has_is_built_in_by_the_same_word_everywhere(
    pegboard: CommandLine,
) -> None:
    pegboard.configure(permission={"webfetch": "ask"})
    unsaid = await pegboard("explain", "ls /etc")
    said = await pegboard("explain", "--tool", "webfetch", "--args", '{"url": "http://a.b/"}')
    pegboard.configure(permission={"external_directory": "ask"})
    mine = await pegboard("explain", "ls /etc")
    shown = await pegboard("config", "show")

    assert 'ask: rule external_directory "*" (built-in)' in unsaid.out
    assert 'asked by rule external_directory "*" (built-in)' in unsaid.out
    assert 'asked by rule webfetch "*" (config)' in said.out
    assert 'asked by rule external_directory "*" (config)' in mine.out
    assert "# built-in" in shown.out
