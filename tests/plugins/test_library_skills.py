"""Skills that come with a project's libraries, and settings of skills that Claude Code has."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from pegboard.schema.config import Config, PluginConfig
from pegboard.schema.part import Completed, CompletedSpan, ToolPart
from pegboard.workspace import open_workspace
from pegboard_plugins.shared.frontend.claudetemplate import template_of
from pegboard_plugins.shared.frontend.slashcommand import fill
from pegboard_plugins.skill import FILE, register_commands, tool_definition
from pegboard_plugins.skill.libraries import library_skills
from pegboard_plugins.skill.listing import MOST_OF_LIBRARIES, MOST_OF_NAMES, names_line
from support.plugins.project_libraries import TOOL, ProjectLibraries, digest
from support.sessions.session_views import turn_of, view


@pytest.fixture
def project(tmp_path: Path) -> ProjectLibraries:
    return ProjectLibraries(tmp_path)


async def test_a_direct_dependency_s_skill_is_listed_with_its_library(
    project: ProjectLibraries,
) -> None:
    project.install()
    project.install("transitive", name="other")

    assert await project.lines() == ["- tea (from library tea_shop 1.0): Makes tea."]

    (project.root / "pyproject.toml").write_text("[project]\n")
    assert await project.lines() == []


async def test_all_libraries_can_be_looked_at(project: ProjectLibraries) -> None:
    project.install()
    project.install("transitive", name="other")

    found = [(each.path.parent.name, each.library) for each in library_skills(project.root)]
    every = [each.library for each in library_skills(project.root, every=True)]

    assert found == [("tea", "tea_shop 1.0")]
    assert sorted(every) == ["tea_shop 1.0", "transitive 1.0"]


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("pyproject.toml", '[dependency-groups]\ndev = ["tea-shop", {include-group = "x"}]'),
        ("pyproject.toml", '[project.optional-dependencies]\nx = ["tea.shop==1"]'),
        ("pyproject.toml", '[tool.poetry.dependencies]\npython = "3"\nTea-Shop = "^1"'),
        ("requirements-dev.txt", "# a comment\n-r other.txt\ntea-shop>=1  # hot\n"),
    ],
)
async def test_dependencies_are_found_where_projects_name_them(
    project: ProjectLibraries, file: str, content: str
) -> None:
    (project.root / "pyproject.toml").unlink()
    (project.root / file).write_text(content)
    project.install()

    assert len(await project.lines()) == 1


async def test_another_version_s_text_comes_with_the_next_request(
    project: ProjectLibraries,
) -> None:
    project.install()
    await project.lines()
    project.install(version="2.0", description="Makes better tea.")

    assert await project.lines() == ["- tea (from library tea_shop 2.0): Makes better tea."]


async def test_a_project_s_own_skill_goes_first(project: ProjectLibraries) -> None:
    project.install()
    own = project.root / ".claude" / "skills" / "tea" / FILE
    own.parent.mkdir(parents=True)
    own.write_text("---\nname: tea\ndescription: Ours.\n---\nx")

    assert await project.lines() == ["- tea: Ours."]


async def test_libraries_have_little_of_a_request(project: ProjectLibraries) -> None:
    for n in range(20):
        project.install(f"lib{n}", name=f"skill-{n}", description="word " * 100)
    (project.root / "pyproject.toml").write_text(
        f"[project]\ndependencies = {json.dumps([f'lib{n}' for n in range(20)])}\n"
    )

    lines = await project.lines()

    assert len(lines) > 1
    assert lines[-1].startswith("- and from libraries: skill-")
    named = [f"skill-{n}" for n in range(20) if any(f"skill-{n}" in line for line in lines)]
    assert len(named) == 20
    assert len("\n".join(lines).encode()) <= MOST_OF_LIBRARIES


def test_the_line_of_names_is_cut_where_it_is_too_long() -> None:
    line = names_line([f"a-rather-long-name-{n}" for n in range(40)])

    assert len(line.encode()) < MOST_OF_NAMES
    assert re.fullmatch(r"- and from libraries: a-rather-long-name-0, .* and \d\d more", line)


async def test_the_user_can_leave_libraries_out(project: ProjectLibraries) -> None:
    project.install()
    config = Config(plugins={"skill": PluginConfig(options={"libraries": False})})

    assert await project.lines(view(project.root, config=config)) == []


TRAPS = (
    *("changed", "no digest", "outside", "above", "link", "no environment", "huge", "record"),
    *("folder", "broken pyproject"),
)


@pytest.mark.parametrize("trap", TRAPS)
async def test_no_other_file_is_a_library_s_skill(  # noqa: C901 - a case for each trap
    project: ProjectLibraries, trap: str
) -> None:
    path = project.install()
    content = path.read_bytes()
    inner = path.relative_to(project.site).as_posix()
    outside = project.root.parent / f"{project.root.name}.agents" / "skills" / "x" / FILE
    outside.parent.mkdir(parents=True)
    outside.write_bytes(content)
    match trap:
        case "changed":
            await project.lines()
            path.write_bytes(content.replace(b"Boil", b"Spil"))
        case "no digest":
            project.install(entry=f"{inner},,")
        case "outside":
            project.install(entry=f"{outside},sha256={digest(content)},1")
        case "above":
            away = f"{'../' * len(project.site.parts)}{outside}"
            project.install(entry=f"{away},sha256={digest(content)},1")
        case "link":
            path.unlink()
            path.symlink_to(outside)
        case "no environment":
            (project.root / ".venv" / "pyvenv.cfg").unlink()
        case "huge":
            big = content + b"x" * (257 * 1024)
            path.write_bytes(big)
            project.install(entry=f"{inner},sha256={digest(big)},1")
            path.write_bytes(big)
        case "record":
            (record,) = project.site.glob("*.dist-info/RECORD")
            record.unlink()
            os.mkfifo(record)
        case "folder":
            path.unlink()
            path.mkdir()
        case "broken pyproject":
            (project.root / "pyproject.toml").write_text("[project")

    assert await project.lines() == []


OPENED = """
import asyncio, sys
from pathlib import Path
from pegboard_plugins.skill import SkillSite, find_skills

root = Path(sys.argv[1])
site = SkillSite(directory=root, worktree=root, home=None, config_dir=None)
first = find_skills(site)
opened = []
sys.addaudithook(lambda name, args: opened.append(args[0]) if name in ("open", "os.listdir",
    "os.scandir", "subprocess.Popen", "import") else None)
second = find_skills(site)
below = [str(each) for each in opened if str(each).startswith(str(root / ".venv"))]
print(len(first), first == second, [each for each in below if "site-packages/" in each])
print(any(name.startswith("tea_shop") for name in sys.modules))
"""


def test_what_is_known_of_libraries_is_not_read_again(project: ProjectLibraries) -> None:
    project.install()
    (project.site / "evil.pth").write_text("import tea_shop\n")
    (project.site / "tea_shop" / "__init__.py").write_text("raise SystemExit('it ran')\n")

    done = subprocess.run(
        [sys.executable, "-c", OPENED, str(project.root)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stdout.splitlines() == ["1 True []", "False"], done.stderr


FIRST_OPENED = """
import sys
from pathlib import Path
from pegboard_plugins.skill import SkillSite, find_skills
import pegboard_plugins.skill.libraries

root = Path(sys.argv[1])
opened = []
sys.addaudithook(lambda name, args: opened.append(str(args[0])) if name == "open" else None)
find_skills(SkillSite(directory=root, worktree=root, home=None, config_dir=None))
inside = sorted(each for each in opened if each.startswith(str(root)))
print("\\n".join(str(Path(each).relative_to(root)) for each in inside))
"""


def test_a_first_look_opens_one_file_of_each_direct_dependency(project: ProjectLibraries) -> None:
    project.install()
    for n in range(20):
        project.install(f"transitive{n}", name=f"other-{n}")

    done = subprocess.run(
        [sys.executable, "-c", FIRST_OPENED, str(project.root)],
        capture_output=True,
        text=True,
        check=False,
    )

    site = project.site.relative_to(project.root).as_posix()
    assert done.stdout.splitlines() == [
        f"{site}/tea_shop-1.0.dist-info/RECORD",
        f"{site}/tea_shop/.agents/skills/tea/SKILL.md",
        "pyproject.toml",
    ], done.stderr


async def test_settings_of_claude_code_say_who_may_use_a_skill(tmp_path: Path) -> None:
    for name, setting in {
        "user": "disable-model-invocation: true",
        "model": "user-invocable: false",
        "when": "when_to_use: Before a release.",
        "forked": "context: fork\nagent: explore",
        "scoped": "paths: src/**/*.py, *.toml",
    }.items():
        path = tmp_path / ".claude" / "skills" / name / FILE
        path.parent.mkdir(parents=True)
        path.write_text(f"---\ndescription: Does {name}.\n{setting}\n---\nx")
    state = Completed(
        input={"filePath": "src/a/b.py"},
        output="",
        title="",
        metadata={},
        time=CompletedSpan(start=1, end=2),
    )
    part = ToolPart(
        id="prt_1", session_id="s", message_id="msg_0", call_id="c", tool="read", state=state
    )

    before = await tool_definition(view(tmp_path), TOOL)
    after = await tool_definition(view(tmp_path, turns=(turn_of(part),)), TOOL)
    commands = await register_commands(
        config=Config(),
        workspace=open_workspace(tmp_path),
        home=tmp_path / "home",
        config_dir=tmp_path / "config",
    )

    assert before is not None
    assert after is not None
    assert before.description.splitlines()[2:] == [
        "- forked: Does forked.",
        "- model: Does model.",
        "- when: Does when. Before a release.",
    ]
    assert "- scoped: Does scoped." in after.description
    assert {each.name: (each.agent, each.subtask) for each in commands} == {
        "user": (None, None),
        "when": (None, None),
        "scoped": (None, None),
        "forked": ("explore", True),
    }


async def test_a_skill_takes_arguments_and_settings_as_in_claude_code(tmp_path: Path) -> None:
    path = tmp_path / ".claude" / "skills" / "tea" / FILE
    path.parent.mkdir(parents=True)
    settings = "arguments: kind cups\nargument-hint: KIND CUPS\nmodel: a/b\n"
    hidden = "disable-model-invocation: True\n"
    path.write_text(
        f"---\ndescription: d\n{settings}{hidden}---\nBoil $cups of $0 by ${{CLAUDE_SKILL_DIR}}/x."
    )

    listed = await tool_definition(view(tmp_path), TOOL)
    (command,) = await register_commands(
        config=Config(),
        workspace=open_workspace(tmp_path),
        home=tmp_path / "home",
        config_dir=tmp_path / "config",
    )
    assert command.argument_names == ("kind", "cups")
    template = template_of(command.template, command.argument_names)
    filled = fill(template, "green 2", {}).text

    assert listed is None
    assert (command.hints, command.model) == (("KIND CUPS",), "a/b")
    assert filled.startswith(f"Boil 2 of green by {path.parent}/x.\n\nPaths in this skill")
