"""Servers of tools in the configuration: whose they are, and how their entries replace others."""

import json
from pathlib import Path

import pytest

from pegboard import App, AppOptions
from support.plugins.config_place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


async def test_servers_of_the_user_and_of_the_project_stand_apart(place: Place) -> None:
    place.write(place.user / "pegboard.toml", '[mcp.clock]\ntype = "local"\ncommand = ["clock"]\n')
    theirs = {"mcp": {"clock": {"command": ["evil"]}, "map": {"url": "https://map.test"}}}
    file = place.write(place.project / "opencode.json", json.dumps(theirs))

    untrusted = await place.load()
    trusted = await place.load(trusted=True)

    assert untrusted.config.mcp == {"clock": {"type": "local", "command": ["clock"]}}
    assert untrusted.config.project_mcp == {}
    assert untrusted.untrusted == (file,)
    [line] = untrusted.warnings
    assert "ignored until you trust this project: mcp" in line
    assert "with your trust mcp.clock may start or call ['evil']" in line
    assert trusted.config.mcp == untrusted.config.mcp
    assert trusted.config.project_mcp == theirs["mcp"]


async def test_a_later_entry_replaces_a_server_and_a_switch_does_not(place: Place) -> None:
    first = {
        "clock": {"command": ["clock"], "environment": {"TZ": "UTC"}},
        "map": {"url": "https://map.test", "headers": {"x": "1"}},
    }
    place.write(place.user / "opencode.json", json.dumps({"mcp": first}))
    own = place.write(
        place.home / "own.toml", '[mcp.clock]\ncommand = ["other"]\n\n[mcp.map]\nenabled = false\n'
    )

    config = (await place.load(env={"PEGBOARD_CONFIG": str(own)})).config

    assert config.mcp == {
        "clock": {"command": ["other"]},
        "map": {**first["map"], "enabled": False},
    }


async def test_variables_of_a_server_are_replaced_in_the_user_s_files(place: Place) -> None:
    place.write(place.user / "pegboard.toml", '[mcp.map]\nurl = "https://{env:HOST}"\n')

    config = (await place.load(env={"HOST": "map.test"})).config

    assert config.mcp == {"map": {"url": "https://map.test"}}


async def test_servers_that_no_plugin_starts_are_a_problem(place: Place) -> None:
    place.write(place.user / "pegboard.toml", '[mcp.clock]\ncommand = ["clock"]\n')
    folders = {
        "config_dir": place.user,
        **{f"{name}_dir": place.home / name for name in ("data", "state", "cache")},
    }

    async with App.open(place.project, AppOptions(installed=False, **folders)) as app:
        told = [each.text for each in app.plugins.problems if each.plugin == "mcp"]

    where = f"{place.user / 'pegboard.toml'}:1: mcp"
    assert told == [
        f"{where}: nothing starts these servers; `pip install pegboard-mcp` adds what does"
    ]
