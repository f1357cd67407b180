"""Who may say where keys come from: the user, and no project."""

from pathlib import Path

import pytest

from support.plugins.config_place import Place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


SAID = '[provider.acme]\nkey_command = ["sh", "-c", "echo k"]\nname = "Acme"\n'


async def test_the_user_names_commands_that_print_keys_and_a_project_never_does(
    place: Place,
) -> None:
    user = place.write(place.user / "pegboard.toml", "keyring = false\n" + SAID)
    mine = (await place.load()).config
    user.unlink()
    file = place.write(place.project / "pegboard.toml", "keyring = false\n" + SAID)

    theirs = await place.load(trusted=True)

    assert mine.provider["acme"].key_command == ("sh", "-c", "echo k")
    assert not mine.keyring
    assert (theirs.config.provider["acme"].key_command, theirs.config.keyring) == ((), True)
    assert theirs.config.provider["acme"].name == "Acme"
    text = f"{file}: ignored, only you can set it: keyring, provider.acme.key_command"
    assert theirs.warnings == (text,)
    assert (await place.load()).config.provider == {}
