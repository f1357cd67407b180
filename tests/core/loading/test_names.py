"""Plugins of one name, and what a distribution requires of Pegboard."""

import pytest

from pegboard import __version__
from pegboard.loading.register import Register
from pegboard.schema.config import Config, PluginConfig
from support.plugins.plugin_places import Places

TWIN = """
from pegboard import __version__, hookimpl, tool

@tool
def {tool}() -> str:
    '''Say it.'''
    return "x"

@hookimpl
def register_tools():
    return [{tool}]
"""


def install_twins(places: Places) -> None:
    """Two distributions with a plugin `twin` each."""
    for name in ("first", "second"):
        places.write(f"site/{name}_module.py", TWIN.format(tool=name))
        points = f"[pegboard]\ntwin = {name}_module\n"
        places.write(f"site/{name}-1.0.dist-info/entry_points.txt", points)


async def test_of_two_distributions_with_a_plugin_of_one_name_the_second_is_left_out_and_both_named(
    places: Places,
) -> None:
    install_twins(places)

    register = await places.load()
    await register.collect_tools(Config())

    rows = [(each.distribution, each.tools) for each in register.infos]
    assert rows == [("first", ("first",)), ("second", ())]
    (problem,) = register.problems
    assert (problem.kind, problem.plugin) == ("clash", "twin")
    assert "first and second both have a plugin twin, and that of first is loaded" in problem.text
    assert '[plugins."second/twin"] enabled = false' in problem.text


async def test_one_of_two_plugins_of_a_name_can_be_switched_off_by_its_distribution(
    places: Places,
) -> None:
    install_twins(places)
    config = Config(plugins={"first/twin": PluginConfig(enabled=False)})

    register = await places.load(config=config)

    assert register.problems == ()
    assert list(await register.collect_tools(config)) == ["second"]


@pytest.mark.parametrize("by", ["config", "env"])
async def test_a_plugin_that_is_called_like_a_built_in_one_is_switched_off_alone(
    places: Places, by: str
) -> None:
    places.install("guard", TWIN.format(tool="extra"), distribution="house-guard")
    config = Config(plugins={"house-guard/guard": PluginConfig(enabled=False)})
    settings = {"config": config} if by == "config" else {}
    env = {"PEGBOARD_DISABLE_PLUGINS": "house-guard/guard"} if by == "env" else {}

    register = await places.load(builtins=True, env=env, **settings)
    other = await places.load(
        builtins=True, config=Config(plugins={"guard": PluginConfig(enabled=False)})
    )

    def blocked(found: Register) -> list[str]:
        return [each.distribution for each in found.infos if each.name == "guard" and each.blocked]

    assert blocked(register) == ["house-guard"]
    assert blocked(other) == ["pegboard"]


@pytest.mark.parametrize(
    ("requirement", "clause"),
    [
        ("pegboard>=99", ">=99"),
        ("pegboard (>=0.0.1,<0.1)", "<0.1"),
        ("pegboard[client]~=0.2", "~=0.2"),
        ("Pegboard !=0.1.*", "!=0.1.*"),
        ("pegboard>=0.1", ""),
        ("pegboard==0.1.0", ""),
        ("pegboard<1,>=0.1; python_version > '3'", ""),
        ("pegboard>=99; extra == 'future'", ""),
        ("pegboard-client>=99", ""),
        ("pegboard", ""),
        ("pegboard~=0.0.9", "~=0.0.9"),
        ("pegboard==0.*", ""),
        ("pegboard!=0.*", "!=0.*"),
        ("pegboard<=0.1", ""),
        ("pegboard!=0.1.0.1", ""),
        ("pegboard (>0.1)", ">0.1"),
    ],
)
async def test_what_a_distribution_requires_of_pegboard_is_honoured(
    places: Places, requirement: str, clause: str
) -> None:
    places.install("house", TWIN.format(tool="extra"))
    metadata = f"Metadata-Version: 2.1\nName: house\nRequires-Dist: {requirement}\n\nText.\n"
    places.write("site/house-2.5.dist-info/METADATA", metadata)

    register = await places.load()

    text = f"house 2.5 needs pegboard{clause}, and this is {__version__}"
    assert [(each.kind, each.text) for each in register.problems] == (
        [("version", text)] if clause else []
    )
    assert (register.infos[0].error == text) is bool(clause)


async def test_a_plugin_that_is_switched_off_is_not_asked_what_it_requires(places: Places) -> None:
    places.install("house", TWIN.format(tool="extra"))
    metadata = "Metadata-Version: 2.1\nName: house\nRequires-Dist: pegboard>=99\n"
    places.write("site/house-2.5.dist-info/METADATA", metadata)
    config = Config(plugins={"house": PluginConfig(enabled=False)})

    assert (await places.load(config=config)).problems == ()
