"""References to variables that are not set."""

from pathlib import Path

import pytest

from support.plugins.config_place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def test_the_reference_to_an_unset_variable_stays_in_what_opens_a_provider(
    place: Place,
) -> None:
    place.write(
        place.user / "pegboard.toml",
        '[provider.x]\napi = "{env:NONE}"\nname = "{env:NONE}"\n[provider.x.options]\n'
        'apiKey = "{env:NONE}"\nheaders = { a = "b {env:NONE}" }\nother = "{env:NONE}"\n',
    )

    found = (await place.load(env={"NONE": ""})).config.provider["x"]

    assert (found.api, found.name) == ("{env:NONE}", "")
    assert found.options == {
        "apiKey": "{env:NONE}",
        "headers": {"a": "b {env:NONE}"},
        "other": "",
    }
