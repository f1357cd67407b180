"""Agent Plugins of libraries in the commands of bundles."""

import json

from plugins.cli.commands import CommandLine
from support.plugins.project_libraries import ProjectLibraries

GREEN = "---\nname: green\ndescription: Makes green tea.\n---\nBoil it."


async def test_plugins_of_libraries_are_listed_with_what_acts(pegboard: CommandLine) -> None:
    before = await pegboard("plugins", "bundle", "list")
    libraries = ProjectLibraries(pegboard.project)
    root = libraries.plugin(green=GREEN)
    libraries.install()

    listed = await pegboard("plugins", "bundle", "list")
    rows = await pegboard("plugins", "bundle", "list", "--format", "json")
    shown = await pegboard("plugins", "bundle", "info", "tea-kit")
    other = await pegboard("plugins", "bundle", "info", "tea_shop")

    assert before.out.startswith("no bundles are installed")
    assert listed.out == "tea-kit 1.0 (skills alone): library tea_kit 1.0\n"
    assert json.loads(rows.out) == [
        {
            "name": "tea-kit",
            "version": "1.0",
            "source": "library tea_kit 1.0",
            "market": "",
            "revision": "",
            "trusted": True,
            "place": root.relative_to(pegboard.project).as_posix(),
        }
    ]
    assert shown.out.splitlines() == [
        "tea-kit (Agent Plugins)",
        "  skill: skills/green/SKILL.md",
        "from library tea_kit 1.0 of this project",
        "its skills act, and nothing else of it: a library gives skills alone",
    ]
    assert other.code == 2


async def test_doctor_names_what_of_a_library_s_plugin_is_not_offered(
    pegboard: CommandLine,
) -> None:
    root = ProjectLibraries(pegboard.project).plugin(green=GREEN)
    (root / "plugin.json").write_text("{}")

    health = await pegboard("doctor")

    line = next(each for each in health.out.splitlines() if "tea_kit" in each)
    assert "tea_kit-1.0.agent-plugin from library tea_kit 1.0 is not offered: plugin.json: " in line
    assert "install the library again" in line
