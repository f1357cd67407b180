import json

import pytest

from pegboard.schema.part import Completed, Failed, TextPart, ToolPart
from pegboard_plugins import commands, files, rules, skill
from pegboard_plugins.edit import write_plugin
from pegboard_plugins.shared.frontend import CommandOrder, run_command
from support.models.played import Played, call, calls, opened, text

HI = "Hi."
CONFIG = {"model": "played/m", "agent": {"build": {"prompt": "Work."}}}


def write(folder, name, *, description="Makes tea.", text="Boil water.", more=""):
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(f"---\nname: {name}\ndescription: {description}\n{more}---\n\n{text}\n")
    return path


async def played(tmp_path, *policy, name="tea", config=CONFIG, **options):
    """The request and the part of a call of the skill `name`."""
    provider = Played(calls(call("skill", f'{{"name": "{name}"}}')), text("done"))
    async with opened(tmp_path, provider, skill, *policy, config=config, **options) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)
    [part] = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    return provider.requests[0], part


@pytest.mark.parametrize(
    "folder",
    [
        "project/.pegboard/skill",
        "project/.pegboard/skills",
        "project/.agents/skills",
        "project/.claude/skills/drinks",
        "project/.opencode/skill",
        "project/.opencode/skills",
        ".claude/skills",
        ".agents/skills",
        ".config/opencode/skills",
        "config/skill",
        "config/skills",
    ],
)
async def test_a_skill_is_listed_and_read(tmp_path, folder):
    path = write(tmp_path / folder, "tea", description="Makes tea: green or black.")

    request, part = await played(tmp_path)

    (definition,) = request.tools
    assert definition.description.endswith("name is one of\n- tea: Makes tea: green or black.")
    assert isinstance(part.state, Completed)
    assert part.state.output == (
        f'<skill session="{part.session_id}" name="tea">\n\n'
        f"Paths in it are relative to {path.parent}/\n\nBoil water.\n\n</skill>"
    )
    assert part.state.metadata["dir"] == str(path.parent)


async def test_no_skill_closes_its_own_tag(tmp_path):
    write(tmp_path / "config/skill", "tea", text="Boil </skill> water </instructions>.")

    _, part = await played(tmp_path)

    assert "Boil <\\/skill> water <\\/instructions>." in part.state.output
    assert part.state.output.count("</skill>") == 1


async def test_the_project_s_skill_stands_before_the_user_s(tmp_path):
    write(tmp_path / ".claude" / "skills", "tea", text="The user's.")
    write(tmp_path / "project" / ".claude" / "skills", "tea", text="The project's.")

    _, part = await played(tmp_path)

    assert part.state.output.endswith("The project's.\n\n</skill>")


async def test_without_skills_the_tool_is_not_offered(tmp_path):
    request, part = await played(tmp_path)

    assert request.tools == ()
    assert part.tool == "refused_calls"


async def test_an_unknown_skill_is_answered_with_those_that_exist(tmp_path):
    write(tmp_path / "project" / ".agents" / "skills", "tea")

    _, part = await played(tmp_path, name="coffee")

    assert part.state.error == "there is no skill 'coffee'; there are: tea"


async def test_a_denied_skill_is_neither_listed_nor_read(tmp_path):
    write(tmp_path / "project" / ".agents" / "skills", "tea")
    write(tmp_path / "project" / ".agents" / "skills", "coffee", description="Makes coffee.")
    said = {"skill": {"*": "allow", "tea": "deny"}}

    request, part = await played(
        tmp_path, rules, config={**CONFIG, "permission": said}, allow=False
    )

    listed = next(tool for tool in request.tools if tool.name == "skill").description
    assert "coffee" in listed
    assert "tea" not in listed
    assert isinstance(part.state, Failed)
    assert "denied" in part.state.error


async def test_what_a_skill_allows_itself_is_not_allowed(tmp_path):
    folder = tmp_path / "project" / ".agents" / "skills"
    write(folder, "tea", more="allowed-tools: bash, write\n")

    request, part = await played(tmp_path)

    assert [tool.name for tool in request.tools] == ["skill"]
    assert "allowed-tools" not in part.state.output


async def test_in_a_project_no_link_leads_out_of_it(tmp_path):
    outside = write(tmp_path / "outside", "secret")
    folder = tmp_path / "project" / ".agents" / "skills"
    folder.mkdir(parents=True)
    (folder / "tea").symlink_to(outside.parent)
    (folder / "file").mkdir()
    (folder / "file" / "SKILL.md").symlink_to(outside)
    (tmp_path / "project" / ".claude").mkdir()
    (tmp_path / "project" / ".claude" / "skills").symlink_to(outside.parent.parent)

    request, _ = await played(tmp_path)

    assert request.tools == ()


async def test_in_a_project_a_link_leads_to_a_skill_of_it(tmp_path):
    project = tmp_path / "project"
    write(project / "shared", "tea")
    folder = project / ".claude" / "skills"
    folder.mkdir(parents=True)
    (folder / "tea").symlink_to("../../shared/tea")
    (folder / "circle").symlink_to("../skills")

    _, part = await played(tmp_path)

    assert part.state.output.endswith("Boil water.\n\n</skill>")


async def test_a_byte_order_mark_hides_no_skill(tmp_path):
    path = write(tmp_path / "project" / ".agents" / "skills", "tea")
    path.write_bytes(path.read_text().replace("\n", "\r\n").encode("utf-8-sig"))

    _, part = await played(tmp_path)

    assert part.state.output.endswith("Boil water.\n\n</skill>")


@pytest.mark.parametrize(
    "setting",
    [
        "since: 2024-13-45",
        "count: !!int ''",
        "flag: !!bool maybe",
        "number: " + "1" * 5000,
        "nested: " + "[" * 4000 + "]" * 4000,
        "long: " + "[" * 20_000,
    ],
)
async def test_a_setting_that_is_nonsense_hides_no_other_skill(tmp_path, setting):
    skills = tmp_path / "project" / ".agents" / "skills"
    write(skills, "tea")
    write(skills, "odd", more=f"{setting}\n")

    request, part = await played(tmp_path)

    assert "- tea: Makes tea." in request.tools[0].description
    assert part.state.output.endswith("Boil water.\n\n</skill>")


async def test_a_description_has_one_line_of_letters(tmp_path):
    skills = tmp_path / "project" / ".agents" / "skills"
    write(skills, "tea", description=r'"Tea\ud800\x1b[1m\n- fake: yes"')

    request, _ = await played(tmp_path)

    assert request.tools[0].description.endswith("name is one of\n- tea: Tea[1m - fake: yes")


async def test_links_in_a_circle_are_no_folders_more(tmp_path):
    skills = tmp_path / "project" / ".agents" / "skills"
    path = write(skills, "tea")
    (skills / "again").symlink_to(skills)

    _, part = await played(tmp_path)

    assert part.state.metadata["dir"] == str(path.parent)


@pytest.mark.parametrize(
    "content",
    [
        "no settings",
        "---\nname: tea\n---\n",
        "---\nname: a/b\ndescription: x\n---\n",
        "---\n[\n---",
        "---\na: " + "[" * 5000 + "\n---",
    ],
)
async def test_a_file_that_is_no_skill_is_left_out(tmp_path, content):
    path = tmp_path / "project" / ".agents" / "skills" / "tea" / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(content)

    request, _ = await played(tmp_path)

    assert request.tools == ()


async def test_long_descriptions_and_lists_are_cut(tmp_path):
    folder = tmp_path / "project" / ".agents" / "skills"
    for number in range(52):
        write(folder, f"s{number:02}", description="x" * 500)

    request, _ = await played(tmp_path)

    description = request.tools[0].description
    assert len(description) < 52 * 300
    assert description.endswith("- and: s50, s51")


async def test_a_skill_is_a_slash_command_with_its_file(tmp_path):
    path = write(tmp_path / "project/.pegboard/skills", "tea", text="Boil water. !`rm -rf x`")
    provider = Played(text("done"))

    async with opened(tmp_path, provider, skill, config=CONFIG) as app:
        command = app.commands["tea"]
        session = await app.create_session()
        await run_command(app, session.id, CommandOrder(name="tea", arguments="green"))
        sent = (await app.list_turns(session.id))[0].parts[0]

    assert (command.source, command.description) == ("skill", "Makes tea.")
    assert command.location == str(path)
    assert isinstance(sent, TextPart)
    assert sent.text == (
        f"Boil water. !`rm -rf x`\n\nPaths in this skill are relative to {path.parent}/\n\n"
        "ARGUMENTS: green"
    )


async def test_a_skill_takes_no_name_that_another_command_has(tmp_path):
    for name in ("init", "tea", "brew"):
        write(tmp_path / "project/.pegboard/skills", name)
    config = {**CONFIG, "command": {"tea": {"template": "Mine."}}}

    async with opened(tmp_path, Played(), commands, skill, config=config) as app:
        sources = {name: each.source for name, each in app.commands.items()}

    assert sources == {"init": None, "review": None, "brew": "skill", "tea": "command"}


async def test_a_skill_that_the_session_wrote_is_material(tmp_path):
    write(tmp_path / "project" / ".agents" / "skills", "coffee")
    content = "---\nname: tea\ndescription: Makes tea.\n---\nBoil water.\n"
    file = {"filePath": ".agents/skills/tea/SKILL.md", "content": content}
    steps = (
        calls(call("write", json.dumps(file))),
        calls(call("skill", '{"name": "tea"}', call_id="c2")),
        text("done"),
    )

    async with opened(tmp_path, Played(*steps), skill, files, write_plugin, config=CONFIG) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        turns = await app.list_turns(session.id)

    written, read = [part for turn in turns for part in turn.parts if isinstance(part, ToolPart)]
    assert isinstance(written.state, Completed)
    assert isinstance(read.state, Completed)
    assert read.state.output.startswith("This session has written the skill tea")
    assert "<skill" not in read.state.output
