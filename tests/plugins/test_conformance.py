"""The built-in tools pass the suite that any author of tools can run."""

from importlib import import_module
from importlib.metadata import entry_points

import pytest

from pegboard_testing import check_hooks, check_policy, check_tools, tools_of

MODULES = sorted(
    point.value
    for point in entry_points(group="pegboard")
    if point.value.startswith("pegboard_plugins.")
)


def test_there_are_built_in_plugins() -> None:
    assert "pegboard_plugins.read" in MODULES


@pytest.mark.parametrize("module", MODULES)
async def test_the_tools_of_a_built_in_plugin_conform(module: str) -> None:
    tools = await tools_of(import_module(module))

    # What a name says already is not said again: each request carries these texts.
    findings = [each for each in check_tools(tools) if each.rule != "parameter"]

    assert findings == []


@pytest.mark.parametrize("module", MODULES)
async def test_the_hooks_of_a_built_in_plugin_conform(module: str) -> None:
    assert await check_hooks(import_module(module)) == ()


@pytest.mark.parametrize(
    "module", [each for each in MODULES if hasattr(import_module(each), "permission_ask")]
)
async def test_a_built_in_policy_conforms(module: str) -> None:
    assert await check_policy(import_module(module)) == ()
