"""`pegboard doctor` names the skills that break a rule, and settings without effect."""

from pathlib import Path

import pytest

from plugins.cli.commands import CommandLine
from support.plugins.project_libraries import ProjectLibraries

DEPARTS = "breaks Agent Skills 1.0, so that other agents may leave it out"
SKILL = "---\nname: {}\ndescription: Makes tea.\n{}---\nBoil it."


@pytest.fixture
def project(pegboard: CommandLine) -> CommandLine:
    pegboard.env["HOME"] = str(pegboard.home)
    return pegboard


def put(folder: Path, name: str, text: str) -> Path:
    path = folder / name / "SKILL.md"
    path.parent.mkdir(parents=True)
    path.write_text(text)
    return path


async def named(project: CommandLine) -> list[str]:
    """Return the lines about skills, sorted, with the paths below the project or the home."""
    found = await project("doctor")
    lines = (line.split(maxsplit=2) for line in found.out.splitlines())
    texts = (each[2] for each in lines if each[:2] == ["warns", "skill"])
    roots = (f"{project.project.resolve()}/", f"{project.home}/")
    return sorted(text.replace(roots[0], "").replace(roots[1], "~/") for text in texts)


NOT_OFFERED = {
    "Only text.": "SKILL.md does not begin with settings between two lines `---`; add a"
    " description there",
    "---\nname: tea\n---\nx": "its settings have no description; add `description: ...`",
    SKILL.format("a b", ""): "its name 'a b' is not 1 to 64 letters, digits, hyphens and"
    " underscores; rename it",
}


@pytest.mark.parametrize("text", NOT_OFFERED)
async def test_a_file_that_is_not_a_skill_is_named_with_the_reason(
    project: CommandLine, text: str
) -> None:
    put(project.project / ".claude/skills", "tea", text)

    listed = await project("tool", "schema", "skill")

    assert await named(project) == [
        f"the skill .claude/skills/tea/SKILL.md is not offered: {NOT_OFFERED[text]}"
    ]
    assert "tea" not in listed.out


DEPARTURES = {
    SKILL.format("Tea", ""): "its name Tea is not of a-z, digits and single hyphens; rename it",
    SKILL.format("coffee", ""): "its name coffee is not that of its folder tea; rename one of them",
    "---\ndescription: d\n---\nx": "it has no name; add `name: tea`",
    SKILL.format("tea", "").replace("Makes", "M" * 1100): "its description has 1,105 letters;"
    " shorten it to 1,024",
}


@pytest.mark.parametrize("text", DEPARTURES)
async def test_a_skill_that_departs_from_agent_skills_is_offered_and_named(
    project: CommandLine, text: str
) -> None:
    put(project.home / ".claude/skills", "tea", text)

    listed = await project("tool", "schema", "skill")

    assert await named(project) == [
        f"the skill ~/.claude/skills/tea/SKILL.md {DEPARTS}: {DEPARTURES[text]}"
    ]
    assert "name is one of" in listed.out


async def test_a_skill_that_is_not_reached_is_named(project: CommandLine) -> None:
    root = project.project / ".agents/skills"
    put(root / "drinks", "tea", SKILL.format("tea", ""))
    put(root / "a/b/c/d", "deep", SKILL.format("deep", ""))
    outside = put(project.home / "elsewhere", "coffee", SKILL.format("coffee", ""))
    (root / "coffee").symlink_to(outside.parent)
    (root / "empty").mkdir()

    top = ".agents/skills"
    deep = f"it is more than 4 folders below {top}; move it up"
    linked = "a link leads out of the project; copy the folder"
    nested = f"it is in no direct child of {top}; move it up"
    assert await named(project) == [
        f"the folder {top}/empty is not offered as a skill: it has no SKILL.md; add one",
        f"the skill {top}/a/b/c/d/deep/SKILL.md is not offered: {deep}",
        f"the skill {top}/coffee/SKILL.md is not offered: {linked}",
        f"the skill {top}/drinks/tea/SKILL.md {DEPARTS}: {nested}",
    ]


async def test_settings_without_effect_are_named_once(project: CommandLine) -> None:
    root = project.project / ".claude/skills"
    for name in ("tea", "coffee"):
        more = "allowed-tools: Bash\nmodel: sonnet\n"
        put(root, name, SKILL.format(name, f"{more}license: MIT\nargument-hint: x\n"))
    put(root, "milk", SKILL.format("milk", "hooks:\n  Stop: []\nagent: explore\nmodel: a/b\n"))

    assert await named(project) == [
        "agent is not honoured: it counts with `context: fork`; in the skills milk",
        "allowed-tools is not honoured: a skill allows nothing; in the skills coffee, tea",
        "model is not honoured: the session's model answers; in the skills coffee, tea",
    ]


@pytest.mark.parametrize(("more", "is_named"), [("argument-hint: x\n", True), ("", False)])
async def test_a_skill_with_arguments_may_count_from_one(
    project: CommandLine,
    more: str,
    is_named: bool,
) -> None:
    put(project.project / ".claude/skills", "tea", SKILL.format("tea", more) + " It costs $5.")

    found = await project("doctor")

    line = ".claude/skills/tea/SKILL.md: `$1` is the second word of its arguments, `$0` the first"
    assert (line in found.out) == is_named


async def test_skills_of_libraries_are_named_as_well(project: CommandLine) -> None:
    libraries = ProjectLibraries(project.project)
    for n in range(8):
        libraries.install(f"lib{n}", name=f"skill-{n}", description="word " * 100)
    libraries.install("bare", name="bare", description="")
    names = [*(f"lib{n}" for n in range(8)), "bare"]
    (project.project / "requirements.txt").write_text("\n".join(names))

    bare, rest = await named(project)

    assert rest.startswith("the skill bare from library bare 1.0 is not offered: ")
    assert bare.startswith("libraries' skills skill-")
    assert "are listed without descriptions: all of them have 1 KiB of a request; " in bare


async def test_imports_without_room_are_named(project: CommandLine) -> None:
    before = await project("doctor")
    for n in range(6):
        (project.project / f"part{n}.md").write_text(f"{n}" * 30_000)
    file = project.project / "AGENTS.md"
    file.write_text(" ".join(f"@part{n}.md" for n in range(6)))

    found = await project("doctor")

    (line,) = (line for line in found.out.splitlines() if "not imported" in line)
    assert line.split(maxsplit=2)[2] == (
        f"{file.resolve()}: @part4.md, @part5.md not imported: all imports together have 128 KiB;"
        " shorten them"
    )
    assert "not imported" not in before.out
