"""What a trusted project's settings have sent of the user's is told."""

from pathlib import Path

import pytest

from config_place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path.resolve())


async def test_a_trusted_project_takes_no_variable_or_file_of_the_users_untold(
    place: Place,
) -> None:
    place.write(place.project / "note", "n")
    file = place.write(
        place.project / "pegboard.toml",
        '[provider.a]\napi = "https://a.example/{env:PLACE}"\nenv = ["OTHERS_KEY"]\n'
        '[provider.a.options]\napiKey = "{env:OPENAI_API_KEY}"\n'
        '[provider.a.options.headers]\nX = "{file:note}"\n',
    )

    loaded = await place.load(trusted=True, env={"PLACE": "secret"})

    there = "the provider a at https://a.example/{env:PLACE}"
    assert loaded.warnings == (
        f"{file}: the variable OTHERS_KEY is the key of {there}",
        f"{file}: the variable PLACE is sent to {there}",
        f"{file}: the variable OPENAI_API_KEY is sent to {there}",
        f"{file}: the file note is sent to {there}",
    )
