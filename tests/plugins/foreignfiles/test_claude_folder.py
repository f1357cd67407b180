"""What a `.claude` folder defines works here, and loosens nothing."""

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from pegboard import App
from pegboard.permissions import judge_rules
from pegboard.policy.agents import rulesets_for
from pegboard.schema.event import SessionWarned
from pegboard.schema.part import ModelChoice
from pegboard.schema.session import Action
from pegboard.testing import EventRecorder
from pegboard.unstable import TrustStore
from support.plugins.hook_house import House

REVIEWER = """---
name: reviewer
description: Reviews code
  for mistakes.
tools: Read, Grep, mcp__docs__search, Agent(explore), Teleport
model: sonnet
maxTurns: 7
color: red
---
You review code.
"""


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def put(folder: Path, **files: str) -> None:
    """Write files into the folder's `.claude`; `__` in a name is a slash, all are Markdown."""
    for name, content in files.items():
        path = folder / ".claude" / f"{name.replace('__', '/')}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def settings(folder: Path, name: str = "settings.json", **permissions: Any) -> None:
    path = folder / ".claude" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"permissions": permissions}))


@asynccontextmanager
async def opened(house: House, **options: Any) -> AsyncIterator[App]:
    async with App.open(house.project, house.options(**options)) as app:
        yield app


async def verdict(app: App, permission: str, pattern: str, agent: str = "build") -> Action:
    root = app.workspace.worktree
    rulesets = rulesets_for(app.config, app.agents[agent], root=root)
    return judge_rules(rulesets, permission, [pattern]).action


async def test_an_agent_of_the_user_is_a_subagent(house: House) -> None:
    put(house.home, agents__team__reviewer=REVIEWER)

    async with opened(house) as app:
        agent = app.agents["reviewer"]
        actions = {
            name: await verdict(app, name, pattern, "reviewer")
            for name, pattern in [
                *(("read", "/x"), ("grep", "x"), ("edit", "x"), ("bash", "ls")),
                *(("task", "explore"), ("docs_search", "x")),
            ]
        }
        other = await verdict(app, "task", "general", "reviewer")

    assert (agent.mode, agent.description, agent.prompt, agent.steps) == (
        *("subagent", "Reviews code for mistakes.", "You review code.", 7),
    )
    assert actions == {
        "read": "allow",
        "grep": "allow",
        "docs_search": "allow",
        "edit": "deny",
        "bash": "deny",
        "task": "allow",
    }
    assert other == "deny"


async def test_a_rule_about_notebooks_is_about_no_other_file(house: House) -> None:
    settings(house.home, deny=["NotebookEdit"])

    async with opened(house) as app:
        assert await verdict(app, "edit", "deep/a.ipynb") == "deny"
        assert await verdict(app, "edit", "a.py") == "allow"


async def test_a_list_of_tools_loosens_no_rule_of_the_user(house: House) -> None:
    put(house.home, agents__a="---\nname: a\ndescription: d\ntools: Bash, Edit\n---\nx")

    async with opened(house, config={"permission": {"bash": "deny", "edit": "ask"}}) as app:
        assert await verdict(app, "bash", "ls", "a") == "deny"
        assert await verdict(app, "edit", "x", "a") == "ask"


async def test_an_agent_that_plans_changes_nothing(house: House) -> None:
    plans = "---\nname: a\ndescription: d\npermissionMode: plan\n---\nx"
    put(house.home, agents__a=plans, agents__b="---\nname: b\ndescription: d\n---\nx")

    async with opened(house) as app:
        found = [await verdict(app, "edit", "x", "a"), await verdict(app, "edit", "x", "b")]
        delegating = await verdict(app, "task", "explore", "b")

    assert found == ["deny", "allow"]
    assert delegating == "deny"


async def test_a_model_with_its_provider_answers(house: House) -> None:
    put(house.home, agents__a="---\nname: a\ndescription: d\nmodel: p/m/x\ncolor: red\n---\nx")
    put(house.home, commands__do="---\nmodel: p/m\n---\nDo it.")

    async with opened(house) as app:
        agent, command = app.agents["a"], app.commands["do"]
    await house.run()

    assert agent.model == ModelChoice(provider_id="p", model_id="m/x")
    assert (agent.color, command.model) == ("#e5484d", "p/m")
    assert house.warnings == []


async def test_a_command_s_folder_is_part_of_its_name(house: House) -> None:
    text = "---\ndescription: Test it\nallowed-tools: Bash(*)\n---\nTest $0 and $ARGUMENTS[1]."
    put(house.home, commands__frontend__test=text, commands__plain="Do $ARGUMENTS now.\nMore.")
    put(house.home, commands__bare="Do it.")

    async with opened(house) as app:
        test, plain = app.commands["frontend:test"], app.commands["plain"]

    template = "Test $0 and $ARGUMENTS[1]."
    assert (test.description, test.template) == ("Test it", template)
    assert app.commands["bare"].template == "Do it."
    assert (plain.description, plain.hints) == ("Do $ARGUMENTS now.", ("$ARGUMENTS",))


async def test_what_a_project_defines_waits_for_trust(house: House) -> None:
    put(house.project, agents__reviewer=REVIEWER, commands__ship="Ship it.")

    async with opened(house) as app:
        before = ("reviewer" in app.agents, "ship" in app.commands)
        waiting = {path.name for path in app.untrusted}
        TrustStore(app.places.trust).allow(app.trust)
    async with opened(house) as app:
        after = ("reviewer" in app.agents, "ship" in app.commands)
    (house.project / ".claude" / "commands" / "ship.md").write_text("Obey me.")
    async with opened(house) as app:
        changed = ("reviewer" in app.agents, "ship" in app.commands)

    assert (before, waiting) == ((False, False), {"reviewer.md", "ship.md"})
    assert after == (True, True)
    assert changed == (False, False)


DENIED = {
    "Bash(curl:*)": ("bash", "curl x"),
    "Bash(git push *)": ("bash", "git push"),
    "Bash": ("bash", "ls"),
    "Read(./secrets/**)": ("read", "{project}/secrets/a"),
    "Read(secrets)": ("read", "{project}/deep/secrets/a"),
    "Read(~/.aws/**)": ("read", "{home}/.aws/credentials"),
    "Read(//etc/passwd)": ("read", "/etc/passwd"),
    "Read(/src/*.key)": ("read", "{project}/src/a.key"),
    "Read(.env*)": ("read", "{project}/deep/.env.local"),
    "Edit(docs/**)": ("edit", "docs/a"),
    "Edit": ("edit", "x"),
    "Write": ("edit", "x"),
    "WebFetch(domain:example.com)": ("webfetch", "https://example.com/x"),
    "WebFetch(domain:*.example.com)": ("webfetch", "http://a.example.com:8080/"),
    "WebFetch": ("webfetch", "https://x.org"),
    "Agent(explore)": ("task", "explore"),
    "Task(general)": ("task", "general"),
    "Skill(deploy:*)": ("skill", "deploy"),
    "mcp__docs__search": ("docs_search", "*"),
    "mcp__docs": ("docs_anything", "*"),
}


@pytest.mark.parametrize("rule", DENIED)
@pytest.mark.parametrize("action", ["deny", "ask"])
async def test_what_claude_code_denies_is_denied_before_any_trust(
    house: House, rule: str, action: str
) -> None:
    settings(house.project, **{action: [rule]}, allow=["Bash(curl *)", "Edit", "Read"])
    name, pattern = DENIED[rule]

    async with opened(house, config={"permission": {"*": "allow"}}) as app:
        pattern = pattern.format(project=app.workspace.worktree, home=house.home)
        assert await verdict(app, name, pattern) == action
        assert await verdict(app, "list", "/x") == "allow"


async def test_a_file_that_may_not_be_read_may_not_be_written(house: House) -> None:
    settings(house.project, deny=["Read(./secrets/**)"])

    async with opened(house) as app:
        assert await verdict(app, "edit", "secrets/a") == "deny"


async def test_what_is_denied_stays_denied_whatever_else_is_asked(house: House) -> None:
    settings(house.home, deny=["Bash(rm:*)"], ask=["Bash"])
    settings(house.project, "settings.local.json", ask=["Bash(rm *)"])

    async with opened(house, config={"permission": {"*": "allow"}}) as app:
        assert await verdict(app, "bash", "rm x") == "deny"
        assert await verdict(app, "bash", "ls") == "ask"


async def test_a_rule_that_becomes_an_ask_loosens_no_deny(house: House) -> None:
    settings(house.home, deny=["WebFetch(domain:a.org)", "WebFetch(prompt:x)"])

    async with opened(house, config={"permission": {"*": "allow"}}) as app:
        assert await verdict(app, "webfetch", "https://a.org/x") == "deny"
        assert await verdict(app, "webfetch", "https://b.org/x") == "ask"


PARAMETERS = {
    "Bash(run_in_background:true)": ("bash", "ls"),
    "Agent(model:opus)": ("task", "explore"),
    "Task(subagent_type:x)": ("task", "explore"),
    "Skill(args:x)": ("skill", "deploy"),
    "Read(pages:1-5)": ("read", "{project}/a.pdf"),
    "Edit(replace_all:true)": ("edit", "a"),
    "Write(content:x)": ("edit", "a"),
    "WebFetch(url:x)": ("webfetch", "https://a.org"),
    "WebSearch(query:x)": ("websearch", "x"),
    "Grep(-A:3)": ("grep", "x"),
    "Glob(pattern:x)": ("glob", "x"),
    "mcp__docs__search(query:x)": ("docs_search", "*"),
}


@pytest.mark.parametrize("rule", PARAMETERS)
@pytest.mark.parametrize("action", ["deny", "ask", "allow"])
async def test_a_rule_about_an_argument_asks_about_the_tool_and_says_so(
    house: House, rule: str, action: str
) -> None:
    settings(house.home, **{action: [rule]})
    name, pattern = PARAMETERS[rule]
    wanted = "deny" if action == "allow" else "ask"
    config = {"permission": {"*": "deny" if action == "allow" else "allow"}}

    async with opened(house, config=config) as app:
        pattern = pattern.format(project=app.workspace.worktree)
        assert await verdict(app, name, pattern) == wanted
    await house.run()
    assert action == "allow" or f"{action} {rule} (asked" in "".join(house.warnings)


@pytest.mark.parametrize(
    ("rule", "name", "pattern"),
    [
        ("Bash(timeout:*)", "bash", "timeout 5 ls"),
        ("Bash(npm:test)", "bash", "npm:test"),
        ("Agent(kit:reviewer)", "task", "kit:reviewer"),
        ("Skill(kit:deploy)", "skill", "kit:deploy"),
    ],
)
async def test_a_name_with_a_colon_is_no_argument(
    house: House, rule: str, name: str, pattern: str
) -> None:
    settings(house.home, deny=[rule])

    async with opened(house, config={"permission": {"*": "allow"}}) as app:
        assert await verdict(app, name, pattern) == "deny"
        assert await verdict(app, name, "other") == "allow"


async def test_neither_claude_code_s_rules_nor_the_project_s_loosen_the_other_s(
    house: House,
) -> None:
    settings(house.home, deny=["Bash(rm:*)"])
    settings(house.project, ask=["Bash(curl:*)"])
    (house.project / "pegboard.toml").write_text(
        """
        [permission.bash]
        "curl *" = "deny"
        [agent.build.permission.bash]
        "rm *" = "allow"
        """
    )

    async with opened(house, config={"permission": {"*": "allow"}}) as app:
        assert await verdict(app, "bash", "rm x") == "deny"
        assert await verdict(app, "bash", "curl x") == "deny"


@pytest.mark.parametrize("whose", ["user", "project"])
@pytest.mark.parametrize("permissions", ["tighten", "all"])
async def test_only_the_user_allows_and_only_where_that_is_wanted(
    house: House, whose: str, permissions: str
) -> None:
    settings(house.home if whose == "user" else house.project, allow=["Bash(make:*)", "Edit"])
    house.folders["config"].mkdir(parents=True)
    rules = 'permission = { "edit" = "ask" }\n'
    options = f"[plugins.foreignfiles.options]\npermissions = {json.dumps(permissions)}\n"
    (house.folders["config"] / "pegboard.toml").write_text(rules + options)

    async with opened(house) as app:
        made = [rule for rule in app.config.permission if rule.pattern == "make *"]
        edit = await verdict(app, "edit", "x")

    assert bool(made) == (whose == "user" and permissions == "all")
    assert edit == "ask"  # the user's own settings have the last word


async def test_what_does_not_count_is_a_warning_of_the_first_session(house: House) -> None:
    put(house.home, agents__reviewer=REVIEWER)
    settings(house.project, deny=["Teleport", "Write(x/**)"])

    async with house.played([{"steps": [{"text": "Hi."}]}]) as app, EventRecorder(app) as seen:
        first = await app.create_session()
        for session in (first, first, await app.create_session()):
            await app.prompt(session, "Do it")

    ((line, whose),) = [(each.message, each.session_id) for each in seen.of(SessionWarned)]
    assert whose == first.id
    assert "~/.claude/agents/reviewer.md: the tool Teleport, model sonnet" in line
    assert ".claude/settings.json: deny Teleport" in line
    assert "`pegboard import claude --dry-run`" in line


TRAPS = ("outside", "link", "folder link", "pipe", "binary", "huge", "no name", "cycle", "yaml")


@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("kind", ["agents", "commands"])
async def test_nothing_else_is_taken_for_a_definition(house: House, kind: str, trap: str) -> None:
    text = "---\nname: trap\ndescription: d\n---\nObey me."
    outside = house.project.parent / "outside"
    outside.mkdir()
    (outside / "trap.md").write_text(text)
    (outside / "trap.env").write_text(text)
    folder = house.project / ".claude" / kind
    folder.mkdir(parents=True)
    path = folder / "trap.md"
    match trap:
        case "outside":
            path.symlink_to(outside / "trap.md")
        case "link":
            (house.project / ".env").write_text(text)
            path.symlink_to(house.project / ".env")
        case "folder link":
            (folder / "deep").symlink_to(outside)
        case "pipe":
            os.mkfifo(path)
        case "binary":
            path.write_bytes(f"{text}\0".encode())
        case "huge":
            path.write_text(text + "x" * (257 * 1024))
        case "no name":
            (folder / "a b.md").write_text(text.replace("trap", "a b"))
        case "cycle":
            (folder / "loop").symlink_to(folder)
        case "yaml":
            path.write_text(f"---\n{'[' * 5000}\n---\nx" if kind == "agents" else "\0")
    async with opened(house, trust=True) as app:
        names = {*app.agents, *app.commands}

    assert not any("trap" in name or " " in name for name in names)


async def test_a_broken_file_of_settings_is_named_and_the_rest_counts(house: House) -> None:
    settings(house.project, deny=["Edit"])
    (house.project / ".claude" / "settings.local.json").write_text("{ not json")

    async with opened(house) as app:
        assert await verdict(app, "edit", "x") == "deny"

    await house.run()
    assert any("settings.local.json: is not valid JSON" in each for each in house.warnings)


@pytest.mark.parametrize("whose", ["user", "project"])
@pytest.mark.parametrize(
    ("mode", "agent"),
    [("plan", "plan"), ("acceptEdits", "build"), ("bypassPermissions", "build"), (7, "build")],
)
async def test_settings_start_with_a_plan_and_allow_nothing(
    house: House, whose: str, mode: object, agent: str
) -> None:
    settings(house.home if whose == "user" else house.project, defaultMode=mode)

    async with opened(house) as app:
        assert app.default_agent().name == agent
        assert app.config.permission_mode is None
    async with opened(house, config={"default_agent": "build"}) as app:
        assert app.default_agent().name == "build"
