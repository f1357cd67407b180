"""Formatters and language servers in the configuration."""

from pathlib import Path

import pytest

from pegboard.schema.config import FormatterConfig, LspConfig
from support.plugins.config_place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def test_formatters_and_language_servers_are_tables_by_name(place: Place) -> None:
    text = """
[formatter.mine]
command = ["mine", "$FILE"]
extensions = [".m"]
[lsp.rust]
initialization = { check = false }
"""
    place.write(place.user / "pegboard.toml", text)

    config = (await place.load()).config

    assert config.formatter == {
        "mine": FormatterConfig(command=("mine", "$FILE"), extensions=(".m",))
    }
    assert config.lsp == {"rust": LspConfig(initialization={"check": False})}


async def test_a_project_s_programs_wait_for_trust(place: Place) -> None:
    text = '{"formatter": {"x": {"command": ["x"]}}, "lsp": {"y": {"command": ["y"]}}}'
    file = place.write(place.project / "opencode.json", text)

    before = await place.load()
    after = await place.load(trusted=True)

    assert (before.config.formatter, before.config.lsp) == ({}, {})
    assert before.untrusted == (file,)
    assert (set(after.config.formatter), set(after.config.lsp)) == ({"x"}, {"y"})


async def test_both_can_be_switched_off_as_in_opencode(place: Place) -> None:
    place.write(place.user / "opencode.json", '{"formatter": false, "lsp": true}')

    config = (await place.load()).config

    assert {name: each.enabled for name, each in config.plugins.items()} == {
        "format": False,
        "lsp": True,
    }
