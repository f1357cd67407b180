"""A suite gives a plugin what an App gives it: its options, its folders, and nobody else."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from pegboard import Plugin, Tool, hookimpl, tool
from pegboard.schema.config import Config, PluginConfig
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard.testing import check_hooks, check_policy, tools_of
from pegboard_plugins import webfetch
from support.models.played import Played, opened


class Settled:
    """A plugin whose hooks want what an App gives them: options of a class, and folders."""

    @dataclass
    class options:  # noqa: N801 - the attribute's name
        """Its options."""

        frozen: str = "src"

    @hookimpl
    def permission_ask(self, request: PermissionRequest, plugin: Plugin) -> Verdict | None:
        """Nothing is written below the frozen folder."""
        (plugin.data_dir / "asked").write_text(plugin.name)
        frozen = any(each.startswith(plugin.options.frozen) for each in request.patterns)
        return Verdict(action="deny", reason="frozen") if frozen else None

    @hookimpl
    def register_tools(self, plugin: Plugin) -> list[Tool]:
        """A tool that is named after an option."""

        @tool(id=f"look_{plugin.options.frozen}")
        def look() -> str:
            """Look."""
            return ""

        return [look]


async def test_a_plugin_has_its_options_and_folders_in_every_suite() -> None:
    config = Config(plugins={"Settled": PluginConfig(options={"frozen": "docs"})})

    assert await check_hooks(Settled(), config=config) == ()
    assert await check_policy(Settled(), config=config) == ()
    assert [each.id for each in await tools_of(Settled(), config=config)] == ["look_docs"]
    assert [each.id for each in await tools_of(Settled())] == ["look_src"]


async def test_options_and_settings_can_be_given_as_they_are_written() -> None:
    written = {"plugins": {"Settled": {"options": {"frozen": "docs"}}}}

    assert [each.id for each in await tools_of(Settled(), config=written)] == ["look_docs"]
    assert [each.id for each in await tools_of(Settled(), options={"frozen": "a"})] == ["look_a"]
    assert await check_policy(Settled(), options={"frozen": "docs"}) == ()
    (finding,) = await check_hooks(Settled(), options={"frozn": "docs"})
    assert "did you mean frozen?" in finding.text


async def test_options_that_do_not_fit_are_found_by_every_suite() -> None:
    config = Config(plugins={"Settled": PluginConfig(options={"frozn": "docs"})})

    (finding,) = await check_hooks(Settled(), config=config)
    assert (finding.rule, finding.text) == (
        "options",
        "frozn: unknown option; did you mean frozen?",
    )
    assert await check_policy(Settled(), config=config) == (finding,)
    with pytest.raises(AssertionError, match="did you mean frozen"):
        await tools_of(Settled(), config=config)


async def test_a_module_handed_to_an_app_has_the_settings_of_its_entry_point(
    tmp_path: Path,
) -> None:
    settings = {"plugins": {"webfetch": {"options": {"allow_privat": True}}}}

    async with opened(tmp_path, Played(), webfetch, config=settings) as app:
        (problem,) = app.plugins.problems

    assert "plugins.webfetch.options.allow_privat: unknown option" in problem.text
