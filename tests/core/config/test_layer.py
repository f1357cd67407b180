"""Profiles: tables of the user's configuration, of which one is laid over the rest."""

from pathlib import Path

import pytest

from pegboard.errors import ConfigError
from support.plugins.config_place import Place

USERS = """model = "a/base"
default_agent = "plan"

[profile.quick]
model = "a/quick"

[profile.quick.budget.run]
usd = 1.5
"""


async def test_a_profile_counts_more_than_all_files_and_less_than_the_program(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path)
    file = place.write(place.user / "pegboard.toml", USERS)
    place.write(place.project / "pegboard.toml", 'model = "a/project"\n')

    plain = await place.load(trusted=True)
    quick = await place.load(trusted=True, profile="quick")
    over = await place.load(profile="quick", overrides={"model": "a/given"})

    assert plain.config.model == "a/project"
    assert (quick.config.model, quick.config.default_agent) == ("a/quick", "plan")
    assert quick.config.budget.run.usd == 1.5
    assert quick.place("model") == f"{file}:1: model"
    assert over.config.model == "a/given"


async def test_an_unknown_profile_names_the_nearest(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.write(place.user / "pegboard.toml", USERS)

    with pytest.raises(ConfigError, match=r"no such profile.*did you mean quick\?"):
        await place.load(profile="quik")


async def test_a_mistake_in_a_profile_has_its_own_line(tmp_path: Path) -> None:
    place = Place(tmp_path)
    file = place.write(place.user / "pegboard.toml", USERS + 'modle = "x"\n')
    place.write(file, 'model = "a/b"\n\n[profile.slow]\nmodel = 3\n')

    with pytest.raises(ConfigError) as raised:
        await place.load(profile="slow")

    assert str(raised.value).startswith(f"{file}:4: model")


async def test_a_project_has_no_profiles(tmp_path: Path) -> None:
    place = Place(tmp_path)
    file = place.write(place.project / "pegboard.toml", "[profile.quick]\nauto_approve = true\n")

    loaded = await place.load(trusted=True)

    assert loaded.warnings == (f"{file}: ignored, only you can set it: profile",)
    assert loaded.config.profile == {}
    with pytest.raises(ConfigError, match="its profiles: none"):
        await place.load(trusted=True, profile="quick")
