"""The check of a `SKILL.md` file: whether it is a valid skill, and which settings are ignored."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from pegboard.unstable import read_bounded
from pegboard_plugins.shared.frontend.frontmatter import front_matter

SKILL_FILE = "SKILL.md"
MOST_OF_DESCRIPTION = 1024
"""The maximum length of a description in Agent Skills 1.0."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_PORTABLE_NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_IGNORED = {
    "allowed-tools": "a skill allows nothing",
    "effort": "the session's variant counts",
    "shell": "a skill runs nothing",
}
"""Settings of skills of other agents, each with the reason why it has no effect."""


class SkillCheck(msgspec.Struct, frozen=True):
    """The result of a check; `problem` says why the file is no valid skill, or is "" if it is.

    `departures` are lines about broken rules of Agent Skills 1.0. `notes` are lines about settings
    without effect.
    """

    problem: str = ""
    departures: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def check_skill(file: Path) -> SkillCheck:
    """Check the `SKILL.md` at `file`, without running its code; blocks."""
    content, why = read_bounded(file)
    if why:
        return SkillCheck(f"{SKILL_FILE} {why}")
    return check_text(content.decode("utf-8-sig", "replace"), file.parent.name)


@lru_cache(maxsize=128)
def check_text(text: str, folder: str) -> SkillCheck:
    """Check the text of a `SKILL.md` in a folder of the name `folder`."""
    settings, _ = front_matter(text)
    if settings is None:
        missing = "does not begin with settings between two lines `---`; add a description there"
        return SkillCheck(f"{SKILL_FILE} {missing}")
    if problem := skill_problem(settings, folder):
        return SkillCheck(problem)
    lines = [f"{key} is not honoured: {why}" for key, why in _IGNORED.items() if key in settings]
    model = settings.get("model", "inherit")
    if model != "inherit" and "/" not in model:
        lines.append("model is not honoured: the session's model answers")
    if "agent" in settings and settings.get("context") != "fork":
        lines.append("agent is not honoured: it counts with `context: fork`")
    return SkillCheck(departures=tuple(_departures(settings, folder)), notes=tuple(lines))


def _departures(settings: Mapping[str, Any], folder: str) -> Iterator[str]:
    """Yield a line for each rule of Agent Skills 1.0 that a skill breaks."""
    name = settings.get("name")
    if name is None:
        yield f"it has no name; add `name: {folder}`"
    elif not _PORTABLE_NAME.fullmatch(name):
        yield f"its name {name} is not of a-z, digits and single hyphens; rename it"
    elif name != folder:
        yield f"its name {name} is not that of its folder {folder}; rename one of them"
    if (length := len(settings["description"])) > MOST_OF_DESCRIPTION:
        yield f"its description has {length:,} letters; shorten it to {MOST_OF_DESCRIPTION:,}"


def skill_problem(settings: Mapping[str, object], folder: str) -> str:
    """Return why the front matter is not that of a valid skill, or "" if it is."""
    name, description = settings.get("name", folder), settings.get("description")
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        return (
            f"its name {name!r} is not 1 to 64 letters, digits, hyphens and underscores; rename it"
        )
    if (
        not isinstance(description, str)
        or not "".join(filter(str.isprintable, description)).strip()
    ):
        return "its settings have no description; add `description: ...`"
    return ""
