"""The check of a `SKILL.md`: whether it is a valid skill, and which settings are ignored."""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

import msgspec

from pegboard.unstable import read_bounded
from pegboard_plugins.shared.frontend.frontmatter import front_matter

SKILL_FILE = "SKILL.md"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_IGNORED = {
    "allowed-tools": "a skill allows nothing",
    "model": "the session's model answers",
    "hooks": "a skill runs nothing",
    "effort": "the session's variant counts",
    "shell": "a skill runs nothing",
    "arguments": "the text takes $ARGUMENTS, $1 and so on",
}
"""Settings of skills of other agents, each with the reason why it has no effect."""


class SkillCheck(msgspec.Struct, frozen=True):
    """Why a file is not a skill, empty for a skill, and a line for each setting without effect."""

    problem: str = ""
    notes: tuple[str, ...] = ()


def check_skill(file: Path) -> SkillCheck:
    """Check a file without running anything; blocks."""
    content, why = read_bounded(file)
    if why:
        return SkillCheck(f"{SKILL_FILE} {why}")
    return _check(content.decode("utf-8-sig", "replace"), file.parent.name)


@lru_cache(maxsize=128)
def _check(text: str, folder: str) -> SkillCheck:
    settings, _ = front_matter(text)
    if settings is None:
        return SkillCheck(f"{SKILL_FILE} does not begin with settings between two lines `---`")
    if problem := skill_problem(settings, folder):
        return SkillCheck(problem)
    lines = (f"{key} is not honoured: {why}" for key, why in _IGNORED.items() if key in settings)
    return SkillCheck(notes=tuple(lines))


def skill_problem(settings: Mapping[str, object], folder: str) -> str:
    """Return why the settings in a folder are not a valid skill's, "" if they are."""
    name, description = settings.get("name", folder), settings.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return f"its name {name!r} is not 1 to 64 letters, digits, hyphens and underscores"
    if (
        not isinstance(description, str)
        or not "".join(filter(str.isprintable, description)).strip()
    ):
        return "its settings have no description"
    return ""
