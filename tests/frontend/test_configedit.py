"""Changes of the user's configuration: what is not meant stays, and nothing wrong is written."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pegboard.config.layer import json_config
from pegboard.errors import InvalidInputError
from pegboard_plugins.shared.frontend.configedit import patched, update_user_config

COMMENTED = """\
// my settings
{
  "model": "a/b", // the good one
  /* asked for each line */
  "permission": {
    "bash": "ask", // always
  },
  "username": "ada"
}
"""


def test_comments_and_layout_stay(tmp_path: Path) -> None:
    file = tmp_path / "opencode.jsonc"
    file.write_text(COMMENTED)

    changes = {"model": "c/d", "permission": {"edit": "deny"}, "username": None, "snapshot": False}
    edit = update_user_config(tmp_path, changes, env={})

    assert edit.file == file
    assert (
        file.read_text()
        == """\
// my settings
{
  "model": "c/d", // the good one
  /* asked for each line */
  "permission": {
    "bash": "ask", // always
    "edit": "deny"
  },
  "snapshot": false
}
"""
    )


def test_a_file_is_made_for_its_owner_alone(tmp_path: Path) -> None:
    folder = tmp_path / "not" / "there"

    edit = update_user_config(folder, {"agent": {"plan": {"model": "a/b"}}}, env={})
    file = edit.file

    assert file == folder / "opencode.json"
    assert json.loads(file.read_text()) == {"agent": {"plan": {"model": "a/b"}}}
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(folder.iterdir()) == [file]
    edit.undo()
    assert list(folder.iterdir()) == []


def test_the_file_that_is_read_last_is_written(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text('{"model": "a/b"}')
    (tmp_path / "opencode.jsonc").write_text("{}")

    file = update_user_config(tmp_path, {"model": "c/d"}, env={}).file

    assert file.name == "opencode.jsonc"
    assert (tmp_path / "opencode.json").read_text() == '{"model": "a/b"}'


def test_a_link_is_written_through(tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    (tmp_path / "opencode.json").symlink_to(real)

    update_user_config(tmp_path, {"model": "c/d"}, env={})

    assert (tmp_path / "opencode.json").is_symlink()
    assert json.loads(real.read_text()) == {"model": "c/d"}


@pytest.mark.parametrize(
    "changes",
    [
        {"model": 5},
        {"permission": {"bash": "maybe"}},
        {"agent": "build"},
        {"agent": {"build": {"steps": "many"}}},
        {"provider": []},
        {"model": "{file:/no/such/file}"},
    ],
)
def test_what_would_not_be_valid_is_not_written(tmp_path: Path, changes: dict[str, Any]) -> None:
    file = tmp_path / "opencode.jsonc"
    file.write_text(COMMENTED)

    with pytest.raises(InvalidInputError, match=r"opencode\.jsonc"):
        update_user_config(tmp_path, changes, env={})

    assert file.read_text() == COMMENTED
    assert list(tmp_path.iterdir()) == [file]


def test_settings_are_not_nested_without_an_end(tmp_path: Path) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}

    with pytest.raises(InvalidInputError, match="nested at most"):
        update_user_config(tmp_path, deep, env={})


def test_a_broken_file_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "opencode.json"
    file.write_text('{"model": ')

    with pytest.raises(InvalidInputError, match="not valid JSON"):
        update_user_config(tmp_path, {"model": "a/b"}, env={})

    assert file.read_text() == '{"model": '


def test_json5_is_kept_in_its_meaning(tmp_path: Path) -> None:
    (tmp_path / "opencode.json").write_text("{model: 'a/b', username: 'ada'}")

    edit = update_user_config(tmp_path, {"model": "c/d"}, env={})
    file = edit.file

    assert json.loads(file.read_text()) == {"model": "c/d", "username": "ada"}
    edit.undo()
    assert file.read_text() == "{model: 'a/b', username: 'ada'}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "a": 1\n}\n'),
        ("{}", '{\n  "a": 1\n}'),
        ("{ // empty\n}", '{ // empty\n  "a": 1\n}'),
        ('{"b": 2}', '{"b": 2,\n  "a": 1}'),
        ('{"b": 2 // two\n}', '{"b": 2, // two\n  "a": 1\n}'),
        ('{"b": "}//"}', '{"b": "}//",\n  "a": 1}'),
        ('{"a": {"deep": [1, "]"]}}', '{"a": 1}'),
    ],
)
def test_a_key_finds_its_place(text: str, expected: str) -> None:
    assert patched(text, {"a": 1}) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', "{}"),
        ('{"a": 1, "b": 2}', '{"b": 2}'),
        ('{"b": 2, "a": 1}', '{"b": 2}'),
        ('{"b": 2, "a": 1,}', '{"b": 2, }'),
        ('{"b": 2}', '{"b": 2}'),
    ],
)
def test_a_key_is_taken_out(text: str, expected: str) -> None:
    assert patched(text, {"a": None}) == expected


_ODD = "a\u2028b", "\x85", "\x1c\x0b\r", "\t", "/*", 'q"', "ä//", "\\"
_NAMES = st.sampled_from(["a", "b", *_ODD])
_VALUES = st.recursive(
    st.integers() | st.text(max_size=5) | st.sampled_from(_ODD) | st.booleans(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=6,
)
_TABLES = st.dictionaries(_NAMES, _VALUES, max_size=3)


@given(before=_TABLES, changes=_TABLES, indent=st.sampled_from([None, 2]))
@settings(max_examples=100, deadline=None)
def test_a_changed_text_says_what_it_said_and_what_is_new(
    before: dict[str, Any], changes: dict[str, Any], indent: int | None
) -> None:
    text = json.dumps(before, indent=indent)

    changed = json_config(patched(text, changes), None)

    assert changed == _merged(before, changes)


def _merged(below: object, above: dict[str, Any]) -> dict[str, Any]:
    merged = dict(below) if isinstance(below, dict) else {}
    for name, value in above.items():
        is_table = isinstance(value, dict) and value
        merged[name] = _merged(merged.get(name), value) if is_table else value
    return merged
