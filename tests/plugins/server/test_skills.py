"""What clients are told of skills."""

from pathlib import Path

import httpx


def test_a_skill_is_told_of_with_its_file(client: httpx.Client, tmp_path: Path) -> None:
    path = tmp_path / ".pegboard/skills/tea/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: tea\ndescription: Makes tea.\n---\n\nBoil water.\n")
    content = f"Boil water.\n\nPaths in this skill are relative to {path.parent}/"
    asked = {"directory": str(tmp_path)}

    skills = client.get("/skill", params=asked).json()
    commands = client.get("/command", params=asked).json()

    assert skills == [
        {"name": "tea", "description": "Makes tea.", "location": str(path), "content": content}
    ]
    assert [each for each in commands if each["name"] == "tea"] == [
        {
            "name": "tea",
            "description": "Makes tea.",
            "source": "skill",
            "template": content,
            "hints": [],
        }
    ]


def test_clients_see_texts_of_claude_code_as_they_are_written(
    client: httpx.Client, tmp_path: Path
) -> None:
    path = tmp_path / ".claude/skills/tea/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: tea\ndescription: Makes tea.\n---\nBoil $0 as !`date $0` says.\n")
    asked = {"directory": str(tmp_path)}

    skills = client.get("/skill", params=asked).json()
    commands = client.get("/command", params=asked).json()

    content = f"Boil $0 as !`date $0` says.\n\nPaths in this skill are relative to {path.parent}/"
    assert [each["content"] for each in skills if each["name"] == "tea"] == [content]
    found = {each["name"]: each for each in commands}
    assert found["tea"]["template"] == content
    assert "argumentNames" not in found["tea"]


def test_the_list_of_tools_has_what_plugins_add_for_a_model(
    client: httpx.Client, tmp_path: Path
) -> None:
    path = tmp_path / ".pegboard/skills/tea/SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text("---\nname: tea\ndescription: Make tea.\n---\nBoil water.\n")

    asked = {"directory": str(tmp_path), "provider": "fake", "model": "fake-model"}
    tools = client.get("/experimental/tool", params=asked).json()

    (skill,) = (each for each in tools if each["id"] == "skill")
    assert "- tea: Make tea." in skill["description"]
