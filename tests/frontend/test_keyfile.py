"""The file of keys: whole, its owner's alone, and never thrown away."""

import json
import stat
from concurrent.futures import ThreadPoolExecutor

import pytest

from pegboard_plugins.shared.frontend import KeyFile, entry_name, key_of

DAMAGED = b'{"anthropic":{"type":"api","key":"their-secret"},"gro'
LATER_MS = 10**15
"""Long after this test."""


def test_keys_that_are_set_at_once_are_all_kept(tmp_path):
    path = tmp_path / "data" / "auth.json"
    files = (KeyFile(path), KeyFile(path))
    names = [f"p{at}" for at in range(40)]

    with ThreadPoolExecutor(8) as threads:
        for at, name in enumerate(names):
            threads.submit(files[at % 2].put, name, {"type": "api", "key": name})
    files[0].drop("p0")

    expected = {name: {"type": "api", "key": name} for name in names[1:]}
    assert files[1].read() == (expected, "")
    assert {each.name for each in path.parent.iterdir()} == {"auth.json", "auth.json.lock"}


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o601])
def test_a_file_that_others_can_use_is_made_its_owner_s_alone(tmp_path, caplog, mode):
    file = KeyFile(tmp_path / "auth.json")
    file.put("groq", {"type": "api", "key": "k-123"})
    file.path.chmod(mode)

    known, damage = file.read()

    assert (known, damage) == ({"groq": {"type": "api", "key": "k-123"}}, "")
    assert stat.S_IMODE(file.path.stat().st_mode) == 0o600
    [message] = caplog.messages
    assert (f"mode {mode:o}" in message, "k-123" in message) == (True, False)


@pytest.mark.parametrize("content", [DAMAGED, b"\xff\x00", b"[]", b'{"anthropic": "their-secret"}'])
def test_a_damaged_file_is_kept_beside_the_new_one_and_said(tmp_path, caplog, content):
    file = KeyFile(tmp_path / "auth.json")
    file.path.write_bytes(content)
    file.path.chmod(0o600)

    file.drop("unknown")
    assert file.path.read_bytes() == content
    file.put("groq", {"type": "api", "key": "another-secret"})

    [aside] = tmp_path.glob("auth.json.damaged-*")
    assert (aside.read_bytes(), aside.stat().st_mode & 0o777) == (content, 0o600)
    assert json.loads(file.path.read_text()) == {"groq": {"type": "api", "key": "another-secret"}}
    assert str(aside) in caplog.text
    assert "their-secret" not in caplog.text


def test_a_place_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "data").write_text("a file")
    file = KeyFile(tmp_path / "data" / "auth.json")

    with pytest.raises(ValueError, match=r"auth\.json: cannot be written"):
        file.put("groq", {"type": "api", "key": "k"})


@pytest.mark.parametrize(
    ("credential", "key"),
    [
        ({"type": "api", "key": "k"}, "k"),
        ({"type": "wellknown", "key": "COMPANY_TOKEN", "token": "t"}, "t"),
        ({"type": "oauth", "refresh": "r", "access": "a", "expires": LATER_MS}, "a"),
        ({"type": "oauth", "refresh": "r", "access": "a", "expires": 0}, "a"),
        ({"type": "oauth", "refresh": "r", "access": "a", "expires": 1}, None),
        ({"type": "unheard"}, None),
    ],
)
def test_what_was_signed_in_with_opens_the_provider_until_it_ends(credential, key):
    assert key_of(credential) == key


def test_no_label_makes_the_name_of_another_provider():
    assert (entry_name("openai", None), entry_name("openai", "work")) == ("openai", "openai/work")
