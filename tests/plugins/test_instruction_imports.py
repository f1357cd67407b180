"""What instruction files import, and the instruction files of other products."""

import os
import time
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from pegboard import PendingCall, SessionView, ToolResult
from pegboard.schema.config import Config
from pegboard.schema.event import SessionWarned
from pegboard.schema.session import Rule, Ruleset
from pegboard.testing import EventRecorder
from pegboard_plugins import instructions
from pegboard_plugins.instructions import chat_system_transform, tool_execute_after
from pegboard_plugins.instructions.imports import imported_names
from support.plugins.hook_house import House
from support.plugins.plugin_handles import handle
from support.sessions.session_views import view

RESULT = ToolResult(output="content", title="")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "project"
    (folder / "sub" / "deep").mkdir(parents=True)
    return folder


def put(folder: Path, **files: str) -> None:
    """Write files whose names have `__` for a slash and `_md` for `.md`."""
    for name, content in files.items():
        path = folder / name.replace("__", "/").replace("_md", ".md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def below(session: SessionView, paths: Iterable[str]) -> list[str]:
    return [os.path.relpath(each, session.worktree) for each in paths]


async def names(session: SessionView) -> list[str]:
    """Return the files whose text the system prompt has, below the worktree."""
    system = await chat_system_transform(session, ("prompt",), handle(instructions)) or ("prompt",)
    paths = [each.split('from="')[1].split('"')[0] for each in system[1:]]
    return below(session, paths)


async def loaded_by(session: SessionView, path: str, message: str) -> list[str]:
    """Return the files that reading a file brings."""
    call = PendingCall(id="call", tool="read", input={"filePath": path}, message_id=message)
    result = await tool_execute_after(session, call, RESULT)
    return below(session, result.metadata["loaded"] if result else [])


async def test_each_folder_has_its_own_first_name(project: Path) -> None:
    put(project, AGENTS_md="root", sub__CLAUDE_md="sub", sub__CONTEXT_md="later name")

    assert await names(view(project, directory=project / "sub")) == ["AGENTS.md", "sub/CLAUDE.md"]


async def test_the_files_of_claude_code_count(project: Path) -> None:
    put(project, CLAUDE_local_md="mine")
    (project / "CLAUDE.local.md").write_text("local")
    (project / ".claude" / "rules" / "db").mkdir(parents=True)
    (project / ".claude" / "CLAUDE.md").write_text("folder")
    (project / ".claude" / "rules" / "a.md").write_text("rule")
    (project / ".claude" / "rules" / "db" / "b.md").write_text("---\npaths: x/**\n---\nscoped")

    assert await names(view(project)) == [
        ".claude/CLAUDE.md",
        ".claude/rules/a.md",
        "CLAUDE.local.md",
    ]


async def test_a_rule_for_certain_files_comes_with_the_first_of_them(project: Path) -> None:
    rules = project / ".claude" / "rules"
    rules.mkdir(parents=True)
    (rules / "ts.md").write_text('---\npaths:\n  - "sub/**/*.{ts,tsx}"\n---\nUse tabs.')
    session = view(project)

    assert await names(session) == []
    assert await loaded_by(session, "sub/a.py", "msg_py") == []
    assert await loaded_by(session, "sub/deep/a.tsx", "msg_ts") == [".claude/rules/ts.md"]


@pytest.mark.parametrize(
    "name", ["GEMINI.md", ".github/copilot-instructions.md", ".cursorrules", ".windsurfrules"]
)
async def test_another_product_s_file_counts_where_there_is_no_other(
    project: Path, name: str
) -> None:
    path = project / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("theirs")

    assert await names(view(project)) == [name]
    put(project, sub__AGENTS_md="ours")
    assert await names(view(project, directory=project / "sub")) == ["sub/AGENTS.md"]


async def test_another_product_s_file_that_counts_is_a_warning_once(tmp_path: Path) -> None:
    house = House(tmp_path)
    (house.project / "GEMINI.md").write_text("theirs")
    async with house.played([{"steps": [{"text": "Hi."}]}]) as app, EventRecorder(app) as seen:
        for _ in range(2):
            await app.prompt(await app.create_session(), "Do it")
    (house.project / "AGENTS.md").write_text("ours")
    await house.run()

    text = "GEMINI.md is read, since there is no AGENTS.md or CLAUDE.md"
    assert [each.message for each in seen.of(SessionWarned)] == [text]
    assert house.warnings == []


async def test_rules_of_cursor_count_as_they_say(project: Path) -> None:
    rules = project / ".cursor" / "rules"
    rules.mkdir(parents=True)
    (rules / "always.mdc").write_text("---\nglobs: x\nalwaysApply: true\n---\nAlways.")
    (rules / "asked.mdc").write_text("---\ndescription: x\nalwaysApply: false\n---\nAsked.")
    (rules / "sub.mdc").write_text("---\nglobs: sub/*.py\nalwaysApply: false\n---\nSub.")
    session = view(project)

    assert await names(session) == [".cursor/rules/always.mdc"]
    assert await loaded_by(session, "sub/a.py", "msg_cursor") == [".cursor/rules/sub.mdc"]


async def test_an_import_comes_once_behind_the_file_that_names_it(project: Path) -> None:
    put(project, CLAUDE_md="See @docs/a.md and @docs/a.md, then @docs/b.md.\n@AGENTS_md")
    put(project, docs__a_md="a @b.md @../CLAUDE.md", docs__b_md="b", sub__AGENTS_md="deep")
    (project / "sub" / "AGENTS.md").write_text("@../docs/b.md @near.md")
    (project / "sub" / "near.md").write_text("near")

    assert await names(view(project, directory=project / "sub")) == [
        *("CLAUDE.md", "docs/a.md", "docs/b.md", "sub/AGENTS.md", "sub/near.md"),
    ]


async def test_a_second_file_that_imports_the_first_brings_both(project: Path) -> None:
    put(project, AGENTS_md="shared", CLAUDE_md="@AGENTS.md\n\nAnd this.")

    assert await names(view(project)) == ["CLAUDE.md", "AGENTS.md"]


async def test_a_file_that_only_imports_another_adds_nothing(project: Path) -> None:
    put(project, AGENTS_md="shared", CLAUDE_md="@AGENTS.md\n")
    (project / ".claude").mkdir()
    (project / ".claude" / "CLAUDE.md").write_text("@../AGENTS.md\n\nAnd this.")

    assert await names(view(project)) == [".claude/CLAUDE.md", "AGENTS.md"]


async def test_files_that_import_each_other_come_once(project: Path) -> None:
    put(project, AGENTS_md="a @CLAUDE.md", CLAUDE_md="b @AGENTS.md")

    assert await names(view(project)) == ["AGENTS.md", "CLAUDE.md"]


async def test_imports_go_four_hops_far(project: Path) -> None:
    put(project, CLAUDE_md="@1.md", **{f"{n}_md": f"{n} @{n + 1}.md" for n in range(1, 7)})

    assert await names(view(project)) == ["CLAUDE.md", "1.md", "2.md", "3.md", "4.md"]


@pytest.mark.parametrize(
    ("prose", "found"),
    [
        ("@a.md", ["a.md"]),
        ("see @a.md, @b.md.", ["a.md,", "b.md."]),  # without its full stop where it is a file
        ("`@a.md` ``x ` @b.md`` @c.md", ["c.md"]),
        ("```\n@a.md\n```\n@b.md", ["b.md"]),
        ("~~~~md\n@a.md\n~~~\n@b.md\n~~~~\n@c.md", ["c.md"]),
        ("a stray ` tick\n\n@a.md and another `", ["a.md"]),
        ("mail me@a.md or @@b.md", []),
        (r"@two\ words.md#part", ["two words.md"]),
        ("@~/x.md @/y.md @../z.md", ["~/x.md", "/y.md", "../z.md"]),
    ],
)
def test_names_in_code_are_no_imports(prose: str, found: list[str]) -> None:
    assert list(imported_names(prose)) == found


def test_a_text_of_ticks_takes_no_longer_than_another() -> None:
    def seconds(text: str) -> float:
        began = time.process_time()
        imported_names(text)
        return time.process_time() - began

    lone = "".join("`" * (n % 250 + 1) + " " for n in range(2000))

    assert seconds(lone) < 100 * max(seconds("word " * (len(lone) // 5)), 0.01)


TRAPS = {
    "outside": "../secret.md",
    "absolute": "{home}/secret.md",
    "home": "~/secret.md",
    "link": "link.md",
    "linked folder": "folder/secret.md",
    "environment": ".env",
    "key": "keys/id_rsa",
    "code": "settings.py",
    "git": ".git/config",
    "folder": "docs",
    "pipe": "pipe.md",
    "device": "/dev/zero",
    "process": "/proc/self/environ",
    "binary": "binary.md",
    "denied": "denied.md",
    "long name": "a" * 990 + ".md",
    "itself": "CLAUDE.md",
}


@pytest.mark.parametrize("name", TRAPS.values(), ids=TRAPS)
async def test_no_import_of_a_project_leads_elsewhere(project: Path, name: str) -> None:
    home = project.parent
    (home / "secret.md").write_text("SECRET")
    (project / "link.md").symlink_to(home / "secret.md")
    (project / "folder").symlink_to(home)
    for each in (".env", "keys/id_rsa", "settings.py", ".git/config", "docs/a.md", "denied.md"):
        (project / each).parent.mkdir(exist_ok=True)
        (project / each).write_text("SECRET")
    (project / "binary.md").write_bytes(b"SECRET\0")
    os.mkfifo(project / "pipe.md")
    (project / "CLAUDE.md").write_text(f"@{name.format(home=home)}")
    denied = Rule("read", f"{project}/denied.md", "deny")
    rulesets = (Ruleset(source="config", rules=(denied,)),)
    session = msgspec.structs.replace(view(project, rulesets=rulesets), home=home)

    assert await names(session) == ["CLAUDE.md"]


async def test_a_file_of_the_user_s_own_imports_what_the_user_names(project: Path) -> None:
    home = project.parent
    (home / ".claude" / "rules").mkdir(parents=True)
    (home / ".claude" / "CLAUDE.md").write_text("@~/own.md @settings.json @.env")
    (home / ".claude" / "settings.json").write_text("{}")
    (home / ".claude" / ".env").write_text("SECRET")
    (home / ".claude" / "rules" / "mine.md").write_text("mine")
    (home / "own.md").write_text("own")
    config = Config(instructions=(str(home / ".claude" / "CLAUDE.md"),))
    session = msgspec.structs.replace(view(project, config=config), home=home)

    assert await names(session) == [
        "../.claude/CLAUDE.md",
        "../own.md",
        "../.claude/settings.json",
        "../.claude/rules/mine.md",
    ]


async def test_imports_have_a_limit_together(project: Path) -> None:
    put(project, CLAUDE_md=" ".join(f"@{n}.md" for n in range(9)))
    for n in range(9):
        (project / f"{n}.md").write_text(f"{n}" * 40_000)

    assert await names(view(project)) == ["CLAUDE.md", "0.md", "1.md", "2.md"]


async def test_imports_without_room_are_named_to_the_model_and_the_user(
    tmp_path: Path,
) -> None:
    house = House(tmp_path)
    project = house.project
    for n in range(6):
        (project / f"part{n}.md").write_text(f"{n}" * 30_000)
    put(project, AGENTS_md=" ".join(f"@part{n}.md" for n in range(6)))

    await house.run()
    system = await chat_system_transform(view(project), ("prompt",), handle(instructions))

    assert system is not None
    note = "@part4.md, @part5.md not imported: all imports together have 128 KiB"
    assert f"({note}. Read them if you need them.)\n</instructions>" in system[1]
    assert sum(note in piece for piece in system) == 1
    assert house.warnings == [f"{project / 'AGENTS.md'}: {note}; shorten them"]
