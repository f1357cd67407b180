"""Bundles: skills are direct children of their folder, and parts without effect are named."""

import json
from pathlib import Path

import pytest

from pegboard_plugins.shared.frontend import read_bundle
from pegboard_plugins.shared.frontend.bundlemanifest import SCHEMAS

PLUGIN = json.dumps({"$schema": f"{SCHEMAS}/plugin.schema.json", "name": "house-kit"})
FORMS = {"plugin.json": PLUGIN, ".claude-plugin/plugin.json": '{"name": "house-kit"}'}
SKILL = "---\nname: {}\ndescription: Does it.\n{}---\nText.\n"


@pytest.fixture(params=[*FORMS], ids=[*FORMS])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write(tmp_path / "kit" / request.param, FORMS[request.param])
    write(tmp_path / "kit" / "skills" / "good" / "SKILL.md", SKILL.format("good", ""))
    return tmp_path / "kit"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def found(root: Path) -> tuple[list[str], tuple[str, ...]]:
    """Return the names of the skills of a bundle, and what of it is not honoured."""
    bundle = read_bundle(root, root.parent / "data")
    return [each.name for each in bundle.skills], bundle.notes


@pytest.mark.parametrize("inner", ["a/b", "good/b"])
def test_a_nested_skill_is_none_of_the_bundle_s(root: Path, inner: str) -> None:
    write(root / "skills" / inner / "SKILL.md", SKILL.format("b", ""))
    names, notes = found(root)

    assert names == ["good"]
    assert [note for note in notes if "SKILL.md" in note] == (
        ["the folder a of skills is not honoured: it has no SKILL.md"] if inner == "a/b" else []
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("Only text.\n", "does not begin with settings"),
        ("---\nname: bad\n---\nText.\n", "no description"),
        (SKILL.format("../bad", ""), "its name"),
    ],
)
def test_a_file_that_is_not_a_skill_is_left_out_and_named(root: Path, text: str, why: str) -> None:
    write(root / "skills" / "bad" / "SKILL.md", text)
    names, (note,) = found(root)

    assert names == ["good"]
    assert note.startswith("the skill bad is not honoured: ")
    assert why in note


@pytest.mark.parametrize("key", ["allowed-tools", "model", "shell"])
def test_a_setting_of_a_skill_without_effect_is_named(root: Path, key: str) -> None:
    write(root / "skills" / "good" / "SKILL.md", SKILL.format("good", f"{key}: x\n"))
    names, (note,) = found(root)

    assert names == ["good"]
    assert note.startswith(f"the skill good: {key} is not honoured: ")


def test_a_file_in_the_place_of_the_skills_is_named(tmp_path: Path) -> None:
    write(tmp_path / "kit" / "plugin.json", PLUGIN)
    write(tmp_path / "kit" / "skills", "x")

    assert found(tmp_path / "kit") == (
        [],
        ("the file skills is not honoured: a folder is expected",),
    )


def test_what_a_bundle_has_beyond_its_form_is_named(tmp_path: Path) -> None:
    root = tmp_path / "kit"
    write(
        root / "plugin.json", json.dumps({**json.loads(PLUGIN), "colour": "red", "extensions": []})
    )
    write(root / "mcp.json", json.dumps({"$schema": "x", "mcpServers": {"a": {}}}))
    notes = " ".join(read_bundle(root, tmp_path / "data").notes)

    assert "the key colour" in notes
    assert "the key extensions" in notes
    assert "mcp.json" in notes
