"""`pegboard explain` and `pegboard permission`, as a user runs them."""

import json
from typing import Any

from core.cli.commands import CommandLine
from pegboard.audit import Audit
from pegboard.ids import IdSource
from pegboard.schema.permission import Rule
from pegboard.storage import open_storage
from pegboard.storage.changes import PutApproval
from pegboard.workspace import open_workspace


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
        {"permission": "edit", "patterns": [".git/hooks/x"], "always": ["*"]}
    ]
    assert found["verdict"] == "ask"


async def test_searches_say_beforehand_what_they_ask(pegboard: CommandLine) -> None:
    for name, args in (("glob", {"pattern": "*"}), ("grep", {"pattern": "x"})):
        found = await explained(
            pegboard, "--tool", name, "--args", json.dumps({**args, "path": "/etc"})
        )

        assert [each["permission"] for each in found["requests"]] == ["external_directory", name]
        assert (found["told"], found["verdict"]) == (True, "ask")


async def test_a_person_reads_what_a_terminal_would_obey(pegboard: CommandLine) -> None:
    done = await pegboard("explain", "ls \x1b[2K\u202e; rm x")

    assert done.code == 0
    assert "\x1b" not in done.out
    assert "\\x1b[2K\\u202e" in done.out
    assert "unclear control-char, unicode-bidi" in done.out


async def test_an_unknown_tool_is_a_plain_error(pegboard: CommandLine) -> None:
    done = await pegboard("explain", "--tool", "nothing", "--args", "{}")

    assert done.code != 0
    assert "there is no tool 'nothing'" in done.err


async def approve(pegboard: CommandLine, *patterns: str) -> None:
    storage = await open_storage(pegboard.home / "data" / "pegboard.db", ids=IdSource())
    project = open_workspace(pegboard.project).project_id
    rules = tuple(Rule("bash", pattern, "allow") for pattern in patterns)
    await storage.commit(PutApproval(project, rules))
    await storage.aclose()


async def test_approvals_are_listed_and_taken_back(pegboard: CommandLine) -> None:
    await approve(pegboard, "git push *", "ls *")

    listed = await pegboard("permission", "list", "--format", "json")
    revoked = await pegboard("permission", "revoke", "bash", "git*")
    left = await pegboard("permission", "list", "--format", "json")

    assert [each["pattern"] for each in json.loads(listed.out)] == ["git push *", "ls *"]
    assert revoked.out == "revoked: bash git push * (project)\n"
    assert [each["pattern"] for each in json.loads(left.out)] == ["ls *"]


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

    assert (good.code, good.out) == (0, f"1 lines are as they were written: {log}\n")
    assert bad.code != 0
    assert "line 1: it was changed" in bad.err
