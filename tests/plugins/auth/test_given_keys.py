"""Keys that others give: a command of the user's, and the system's keyring."""

import asyncio
import os
import sys

import pytest

from pegboard.app import UserFolders
from pegboard.errors import ProviderAuthError
from pegboard.providers import Keys
from pegboard.schema.config import Config, ProviderConfig
from pegboard_plugins.auth import KeptKeyStore, keycommand, systemkeyring
from pegboard_plugins.auth.keptkeys import drop_from_ring, put_in_ring
from pegboard_plugins.shared.frontend import KEYRING, KeyFile
from support.processes.processes import MARK, alive

RING = """
import json, pathlib, time
_PLACE = pathlib.Path({place!r})

def _all():
    return json.loads(_PLACE.read_text()) if _PLACE.exists() else {{}}

def get_password(service, name):
    if _PLACE.with_suffix(".hangs").exists():
        time.sleep(5)
    with _PLACE.with_suffix(".asked").open("a") as asked:
        asked.write(name + "\\n")
    return _all().get(f"{{service}} {{name}}")

def set_password(service, name, value):
    _PLACE.write_text(json.dumps({{**_all(), f"{{service}} {{name}}": value}}))

def delete_password(service, name):
    known = _all()
    del known[f"{{service}} {{name}}"]
    _PLACE.write_text(json.dumps(known))
"""


@pytest.fixture
def root(tmp_path):
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def ring(tmp_path, monkeypatch):
    """A keyring that keeps what it has in a file, in the place of the package."""
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "keyring.py").write_text(RING.format(place=str(tmp_path / "ring.json")))
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "keyring", raising=False)
    yield tmp_path / "ring.json"
    sys.modules.pop("keyring", None)


def lookup(root, env=None, *, keyring=True, **said):
    config = Config(provider={"acme": ProviderConfig(**said)}, keyring=keyring)
    environ = {"HOME": str(root.parent), "PATH": os.environ["PATH"], **(env or {})}
    here = root.parent
    places = UserFolders(config=here, data=here, state=here, cache=here)
    return Keys(config, environ, KeptKeyStore(places, environ, root=root))


def shell(script):
    return ("sh", "-c", script)


async def gone():
    """Return when nothing is left; the test's own time limit ends it otherwise."""
    while alive(MARK):  # noqa: ASYNC110 - the kernel tells nobody
        await asyncio.sleep(0.01)


async def failure(keys):
    with pytest.raises(ProviderAuthError) as caught:
        await keys.find("acme", ("ACME_KEY",))
    return str(caught.value)


async def test_a_command_comes_after_the_environment_and_before_what_is_kept(root):
    KeyFile(root.parent / "auth.json").put("acme", {"type": "api", "key": "kept"})
    command = shell("echo printed; echo more")

    key = await lookup(root, key_command=command).find("acme", ("ACME_KEY",))
    other = await lookup(root, {"ACME_KEY": "e"}, key_command=command).find("acme", ("ACME_KEY",))

    assert key is not None
    assert other is not None
    assert (key.value, key.source, other.value) == ("printed", "the command sh", "e")


async def test_a_command_runs_once_in_the_home_folder_and_not_for_a_list(root):
    keys = lookup(root, key_command=shell("pwd; echo x >> asked"))
    listed, asked = keys.source("acme"), root.parent / "asked"
    ran_for_list = asked.exists()

    found = [await keys.find("acme") for _ in range(3)]

    assert (listed, ran_for_list) == ("the command sh", False)
    assert {key.value for key in found if key} == {str(root.parent)}
    assert asked.read_text() == "x\n"
    assert str(root.parent) in keys.values()


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("echo a-secret; exit 3", "it ended with exit code 3"),
        ("echo a-secret >&2; exit 1", "it ended with exit code 1"),
        ("true", "it printed nothing"),
    ],
)
async def test_a_command_that_fails_ends_the_request_and_tells_nothing_it_printed(
    root, script, reason
):
    text = await failure(lookup(root, key_command=shell(script)))

    assert text == f"the key command of acme (sh) gives no key: {reason}"


async def test_a_command_that_waits_is_ended(root, monkeypatch):
    monkeypatch.setattr(keycommand, "COMMAND_TIMEOUT_S", 0.2)

    assert "took more than 0.2 s" in await failure(lookup(root, key_command=("sleep", "60")))


async def test_what_a_command_has_left_behind_delays_no_key_and_ends_with_it(root):
    left = f"exec -a 'sleep {MARK}' sleep 1000"
    command = ("bash", "-c", f"({left}) & (setsid sleep 1) & echo printed")

    key = await lookup(root, key_command=command).find("acme")

    assert key is not None
    assert key.value == "printed"
    await gone()


async def test_a_command_that_prints_without_an_end_is_ended(root, monkeypatch):
    monkeypatch.setattr(keycommand, "COMMAND_TIMEOUT_S", 0.2)

    assert "took more than 0.2 s" in await failure(lookup(root, key_command=("yes", MARK)))
    await gone()


async def test_a_command_that_cannot_be_run_says_why(root):
    folder = str(root)

    assert "cannot run" in await failure(lookup(root, key_command=(folder,)))


async def test_no_program_of_the_project_stands_in_for_a_command(root):
    program = root / "pass-acme"
    program.write_text("#!/bin/sh\necho stolen\n")
    program.chmod(0o755)
    env = {"PATH": f"{root}{os.pathsep}{os.environ['PATH']}"}

    text = await failure(lookup(root, env, key_command=("pass-acme",)))

    assert text.endswith("there is no such program")


async def test_the_keyring_gives_what_was_put_there_and_is_asked_once(root, ring):
    file = KeyFile(root.parent / "auth.json")
    await put_in_ring("acme/work", "ringed-0123")
    file.put("acme/work", KEYRING)
    keys = lookup(root, key="work")

    found = [await keys.find("acme") for _ in range(2)]

    assert [(key.value, key.source) for key in found if key] == [("ringed-0123", "the keyring")] * 2
    assert keys.source("acme") == "the keyring"
    assert ring.with_suffix(".asked").read_text() == "acme/work\n"
    assert keys.values() == ("ringed-0123",)
    await drop_from_ring("acme/work")
    assert "it has none" in await failure(lookup(root, key="work"))


async def test_the_keyring_is_not_asked_for_what_is_not_there(root, ring):
    assert await lookup(root).find("acme") is None
    assert not ring.with_suffix(".asked").exists()


@pytest.mark.parametrize(
    ("env", "keyring"), [({"PEGBOARD_KEYRING": "off"}, True), ({}, False)], ids=["env", "config"]
)
async def test_a_keyring_that_is_off_is_left_alone(root, ring, env, keyring):
    KeyFile(root.parent / "auth.json").put("acme", KEYRING)
    keys = lookup(root, env, keyring=keyring)

    assert "it is switched off" in await failure(keys)
    assert keys.source("acme") is None
    assert not ring.with_suffix(".asked").exists()


async def test_a_keyring_that_hangs_is_given_up(root, ring, monkeypatch):
    monkeypatch.setattr(systemkeyring, "RING_TIMEOUT_S", 0.2)
    KeyFile(root.parent / "auth.json").put("acme", KEYRING)
    ring.with_suffix(".hangs").touch()

    text = await failure(lookup(root))

    assert "did not answer within 0.2 s; PEGBOARD_KEYRING=off" in text


async def test_without_the_package_it_is_said_what_to_install(root, monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)
    KeyFile(root.parent / "auth.json").put("acme", KEYRING)

    assert "pip install 'pegboard[keyring]'" in await failure(lookup(root))
