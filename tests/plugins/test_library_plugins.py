"""Agent Plugins that come with libraries: their skills are offered, and nothing else of them."""

import json
import os
from pathlib import Path

import pytest

from pegboard_plugins.skill import FILE
from pegboard_plugins.skill.libraries import library_skills
from support.plugins.project_libraries import ProjectLibraries, digest

GREEN = "---\nname: green\ndescription: Makes green tea.\n---\nBoil it."


@pytest.fixture
def project(tmp_path: Path) -> ProjectLibraries:
    return ProjectLibraries(tmp_path)


def problems(project: ProjectLibraries) -> dict[str, str]:
    found = library_skills(project.root, every=True)
    return {each.path.parent.name: each.problem for each in found if each.problem}


def rewrite(project: ProjectLibraries, name: str, text: str) -> None:
    """Change a file of the plugin's library, and its line in RECORD."""
    (info,) = project.site.glob("tea_kit-*.dist-info")
    path = project.site / name
    record = (info / "RECORD").read_text()
    old = digest(path.read_bytes())
    path.write_text(text)
    (info / "RECORD").write_text(record.replace(old, digest(text.encode())))


async def test_a_direct_dependency_s_plugin_gives_its_skills(project: ProjectLibraries) -> None:
    project.install()
    project.plugin(green=GREEN, black=GREEN.replace("green", "black"))

    assert await project.lines() == [
        "- green (from library tea_kit 1.0): Makes green tea.",
        "- black (from library tea_kit 1.0): Makes black tea.",
        "- tea (from library tea_shop 1.0): Makes tea.",
    ]
    (project.root / "pyproject.toml").write_text("[project]\n")
    assert await project.lines() == []


async def test_a_skill_that_differs_from_its_record_is_named(project: ProjectLibraries) -> None:
    root = project.plugin(green=GREEN)
    await project.lines()
    (root / "skills" / "green" / FILE).write_text(GREEN.replace("Boil", "Spill"))

    assert await project.lines() == []
    assert problems(project) == {
        "green": "the file differs from its RECORD; install the library again"
    }


async def test_servers_of_a_library_do_not_start_and_are_named(project: ProjectLibraries) -> None:
    root = project.plugin(green=GREEN)
    marker = "tea_kit-1.0.dist-info/agent_plugins.json"
    names = json.loads((project.site / marker).read_text())["files"]
    (root / "mcp.json").write_text('{"mcpServers": {"x": {"command": "evil"}}}')
    rewrite(project, marker, json.dumps({"root": root.name, "files": [*names, "mcp.json"]}))

    assert len(await project.lines()) == 1
    assert problems(project) == {
        root.name: "its servers do not start: a library gives skills alone"
    }


TRAPS = {
    "marker": "agent_plugins.json: the file differs from its RECORD; install the library again",
    "other root": "agent_plugins.json does not name the folder tea_kit-1.0.agent-plugin of this"
    " version with its files",
    "no JSON": "agent_plugins.json is not valid JSON",
    "manifest": "plugin.json: the file differs from its RECORD; install the library again",
    "schema": "$schema is 'other'",
    "no description": "its settings have no description",
    "other name": "its name Green is not of a-z",
    "link": "is a link that leads out of the bundle",
    "folder link": "its folder is a link that leads out of site-packages",
    "pipe": "the file differs from its RECORD; install the library again",
}


@pytest.mark.parametrize("trap", TRAPS)
async def test_no_other_file_is_a_plugin_s_skill(  # noqa: C901 - a case for each trap
    project: ProjectLibraries, trap: str
) -> None:
    root = project.plugin(green=GREEN)
    marker = "tea_kit-1.0.dist-info/agent_plugins.json"
    file = root / "skills" / "green" / FILE
    outside = project.root / "outside.md"
    outside.write_text(GREEN)
    match trap:
        case "marker":
            (project.site / marker).write_text("{}")
        case "other root":
            rewrite(project, marker, json.dumps({"root": "..", "files": ["skills/green/SKILL.md"]}))
        case "no JSON":
            rewrite(project, marker, "{")
        case "manifest":
            (root / "plugin.json").write_text("{}")
        case "schema":
            rewrite(project, f"{root.name}/plugin.json", '{"$schema": "other", "name": "tea-kit"}')
        case "no description":
            rewrite(project, f"{root.name}/skills/green/{FILE}", "---\nname: green\n---\nx")
        case "other name":
            text = GREEN.replace("name: green", "name: Green")
            rewrite(project, f"{root.name}/skills/green/{FILE}", text)
        case "link":
            file.unlink()
            file.symlink_to(outside)
        case "folder link":
            root.rename(project.root / "elsewhere")
            root.symlink_to(project.root / "elsewhere")
        case "pipe":
            file.unlink()
            os.mkfifo(file)

    assert await project.lines() == []
    assert TRAPS[trap] in "; ".join(problems(project).values())


@pytest.mark.parametrize("variable", ["VIRTUAL_ENV", "UV_PROJECT_ENVIRONMENT"])
async def test_the_active_environment_counts_if_it_is_the_project_s(
    project: ProjectLibraries, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    project.plugin(green=GREEN)
    (project.root / ".venv").rename(project.root / "env")

    assert await project.lines() == []
    monkeypatch.setenv(variable, str(project.root / "env"))
    assert len(await project.lines()) == 1
    (project.root / "env").rename(project.root.parent / f"{project.root.name}-env")
    monkeypatch.setenv(variable, f"{project.root}-env")
    assert await project.lines() == []
