"""The built-in tools pass the suite that any author of tools can run."""

from importlib.metadata import entry_points
from pkgutil import resolve_name

import pytest

from pegboard.testing import check_hooks, check_policy, check_tools, tools_of

PLUGINS = sorted(
    point.value
    for point in entry_points(group="pegboard")
    if point.value.startswith("pegboard_plugins.")
)


def test_there_are_built_in_plugins() -> None:
    assert "pegboard_plugins.read" in PLUGINS


@pytest.mark.parametrize("plugin", PLUGINS)
async def test_the_tools_of_a_built_in_plugin_conform(plugin: str) -> None:
    tools = await tools_of(resolve_name(plugin))

    # What a name says already is not said again: each request carries these texts.
    findings = [each for each in check_tools(tools) if each.rule != "parameter"]

    assert findings == []


@pytest.mark.parametrize("plugin", PLUGINS)
async def test_the_hooks_of_a_built_in_plugin_conform(plugin: str) -> None:
    assert await check_hooks(resolve_name(plugin)) == ()


@pytest.mark.parametrize(
    "plugin", [each for each in PLUGINS if hasattr(resolve_name(each), "permission_ask")]
)
async def test_a_built_in_policy_conforms(plugin: str) -> None:
    assert await check_policy(resolve_name(plugin)) == ()
