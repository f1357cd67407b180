"""The warnings about files that are not offered as skills, and settings without effect."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from pegboard import App
from pegboard_plugins.shared.frontend import SkillCheck, check_skill, check_text
from pegboard_plugins.skill import (
    FILE,
    IN_CONFIG,
    IN_HOME,
    LIMIT_BYTES,
    MOST_DEPTH,
    MOST_FOLDERS,
    MOST_LISTED,
    SkillSite,
    files_below,
    find_skills,
    is_within,
    project_folders,
    skill_line,
    with_libraries,
)
from pegboard_plugins.skill.libraries import library_skills
from pegboard_plugins.skill.listing import MOST_OF_LIBRARIES, described_skills

_NAMED = 5
_DEPARTS = "breaks Agent Skills 1.0, so that other agents may leave it out"


def skill_health(app: App) -> Iterator[str]:
    """Yield a warning for each file that is not offered and each setting without effect; blocks.

    Skills in bundles are not checked.
    """
    site = SkillSite(
        directory=app.workspace.directory,
        worktree=app.workspace.worktree,
        home=Path.home(),
        config_dir=app.places.config,
        libraries=with_libraries(app.config),
    )
    ignored: dict[str, list[str]] = {}
    for root, within in _folders(site):
        files = list(files_below(root, within=within))
        yield from _unreached(root, within, files)
        for file in files:
            yield from _of_file(file, root, ignored)
    if site.libraries:
        yield from _of_libraries(site, ignored)
    for note, names in ignored.items():
        yield f"{note}; in the skills {_short(names)}"


def _of_file(file: Path, root: Path, ignored: dict[str, list[str]]) -> Iterator[str]:
    subject, check = f"the skill {file}", check_skill(file)
    yield from _lines(subject, check)
    if not check.problem and file.parent.parent != root:
        yield f"{subject} {_DEPARTS}: it is in no direct child of {root}; move it up"
    for note in check.notes:
        ignored.setdefault(note, []).append(file.parent.name)
    if not check.problem and (size := file.stat().st_size) > LIMIT_BYTES:
        yield f"{subject} has {size:,} bytes, a model gets {LIMIT_BYTES >> 10} KiB; split it"


def _folders(site: SkillSite) -> Iterator[tuple[Path, Path | None]]:
    """Yield the folders of skills, each with the folder that symlinks must stay in, or None."""
    if site.home is not None:
        yield from ((site.home / name, None) for name in IN_HOME)
    if site.config_dir is not None:
        yield from ((site.config_dir / name, None) for name in IN_CONFIG)
    yield from ((folder, site.worktree) for folder in project_folders(site))


def _lines(subject: str, check: SkillCheck) -> Iterator[str]:
    if check.problem:
        yield f"{subject} is not offered: {check.problem}"
    for departure in check.departures:
        yield f"{subject} {_DEPARTS}: {departure}"


def _unreached(root: Path, within: Path | None, files: Sequence[Path]) -> Iterator[str]:
    """Yield a warning with a reason for each folder in `root` that contains no offered skill."""
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if not folder.is_dir() or any(file.is_relative_to(folder) for file in files):
            continue
        if (folder / FILE).is_file() and not is_within(folder / FILE, within):
            why = "a link leads out of the project; copy the folder"
            yield f"the skill {folder / FILE} is not offered: {why}"
        elif deep := next(islice(_deeper(folder), 1), None):
            why = f"it is more than {MOST_DEPTH} folders below {root}; move it up"
            yield f"the skill {deep} is not offered: {why}"
        else:
            yield f"the folder {folder} is not offered as a skill: it has no {FILE}; add one"


def _deeper(folder: Path) -> Iterator[Path]:
    for place, _, files in islice(os.walk(folder), MOST_FOLDERS):
        if FILE in files:
            yield Path(place, FILE)


def _of_libraries(site: SkillSite, ignored: dict[str, list[str]]) -> Iterator[str]:
    for each in library_skills(site.worktree):
        check = check_text(each.text, each.path.parent.name)
        yield from _lines(f"the skill {each.name} from library {each.library}", check)
        for note in check.notes:
            ignored.setdefault(note, []).append(each.name)
    skills = [each for each in find_skills(site).values() if each.for_model and not each.patterns]
    lines = {each.name: skill_line(each) for each in skills if each.library}
    described = described_skills(lines, most=max(0, MOST_LISTED - len(skills) + len(lines)))
    if rest := [name for name in lines if name not in described]:
        room = f"all of them have {MOST_OF_LIBRARIES >> 10} KiB of a request"
        way = "a skill of the project with the same name is listed in full"
        yield f"libraries' skills {_short(rest)} are listed without descriptions: {room}; {way}"


def _short(names: Sequence[str]) -> str:
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
