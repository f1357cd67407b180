"""The hooks in skills' front matter, which run in a session that has used the skill."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from pegboard import SessionView, Workspace
from pegboard.app import Decision, UserFolders
from pegboard.schema.message import Turn, UserMessage
from pegboard.schema.part import Completed, TextPart, ToolPart
from pegboard.unstable import changed_files
from pegboard_plugins.commandhooks.hookfiles import HookFile, read_hooks
from pegboard_plugins.shared import has_bundles
from pegboard_plugins.shared.frontend import Bundle, UnseenDocuments, read_bundles
from pegboard_plugins.skill import (
    FILE,
    IN_CONFIG,
    IN_HOME,
    RELATIVE_TO,
    SkillSite,
    find_skills,
    with_libraries,
)

_OF_COMMAND = re.compile(rf"{re.escape(RELATIVE_TO)}([^\n]+)/[ \t]*$", re.MULTILINE)
"""The line with the folder in the text that the slash command of a skill sends."""


class SkillFile(msgspec.Struct, frozen=True, kw_only=True):
    """The `SKILL.md` at `path` of the skill in `folder`, which is the project's or the user's.

    `root` and `storage` are the folders of the skill's bundle.
    """

    folder: Path
    path: Path
    is_project: bool
    root: Path | None = None
    storage: Path | None = None

    def in_bundle(self, file: HookFile) -> HookFile:
        """Return the file's hooks with the folders of the skill's bundle."""
        if self.root is None:
            return file
        own = {"root": self.root, "storage": self.storage}
        hooks = tuple(msgspec.structs.replace(each, **own) for each in file.hooks)
        return msgspec.structs.replace(file, hooks=hooks)

    def accepted(self, file: HookFile, session: SessionView) -> HookFile:
        """Return the file, without its hooks if an agent wrote it and the user has not accepted it.

        A project's file needs no such check, because its hooks run by digest.
        """
        real = self.path.resolve()
        if self.is_project or session.places is None:
            return file
        unseen = UnseenDocuments(session.places.unseen_documents).among((real,))
        if not unseen and real not in changed_files(session.turns):
            return file
        why = "an agent wrote the file, and you have not accepted it"
        note = f"hooks of {self.path} do not run: {why}; `pegboard trust documents` shows it"
        return msgspec.structs.replace(file, hooks=(), notes=(note,))


class UsedSkills:
    """The skills with hooks that each session of this process has used."""

    def __init__(self) -> None:
        self._of: dict[str, dict[Path, SkillFile]] = {}

    def add(self, session: SessionView, skills: Iterable[SkillFile]) -> None:
        """Add skills to those that the session and its parent session have used."""
        if found := {each.path: each for each in (*self.of(session), *skills)}:
            self._of[session.id] = found

    def of(self, session: SessionView) -> tuple[SkillFile, ...]:
        """Return the skills that the session and its parent session have used, in order of use."""
        ids = (session.info.parent_id or "", session.id)
        found = {each.path: each for name in ids for each in self._of.get(name, {}).values()}
        return tuple(found.values())


def skill_site(
    place: Workspace | SessionView, home: Path, places: UserFolders | None, trust: Decision
) -> SkillSite:
    """Return the folders of skills of a project or a session."""
    return SkillSite(
        directory=place.directory,
        worktree=place.worktree,
        home=home,
        config_dir=places.config if places is not None else None,
        libraries=with_libraries(place.config) if isinstance(place, SessionView) else True,
        places=places,
        trusted=trust.files if trust.trusted else {},
    )


def skill_hooks(site: SkillSite) -> Iterator[HookFile]:
    """Yield the hooks of each skill that defines hooks, whether it was used or not; blocks."""
    for skill in _skill_files(site):
        if (file := read_hooks("claude", skill.path, is_project=skill.is_project)) is not None:
            yield skill.in_bundle(file)


def hooked_skills(session: SessionView) -> tuple[SkillFile, ...]:
    """Return the skills of a session that have hooks; blocks."""
    site = skill_site(session, session.home or Path.home(), session.places, session.trust)
    return tuple(
        each
        for each in _skill_files(site)
        if read_hooks("claude", each.path, is_project=each.is_project) is not None
    )


def used_folders(turns: Iterable[Turn]) -> Iterator[str]:
    """Yield the folders of the skills that a call or a slash command has used."""
    for turn in turns:
        for part in turn.parts:
            match part:
                case ToolPart(tool="skill", state=Completed(metadata=metadata)):
                    yield str(metadata.get("dir"))
                case TextPart(text=text) if isinstance(turn.info, UserMessage):
                    if used := _OF_COMMAND.search(text):
                        yield used[1]
                case _:
                    continue


def _skill_files(site: SkillSite) -> Iterator[SkillFile]:
    bundles: tuple[Bundle, ...] = ()
    if site.places is not None and has_bundles(site.places, site.worktree):
        bundles = read_bundles(site.places, site.worktree, site.trusted).active
    for folder in [each.folder for each in find_skills(site).values()]:
        file = folder / FILE
        own = next((each for each in bundles if folder.is_relative_to(each.root)), None)
        is_project = not _is_users(file, site, [each.root for each in bundles])
        is_linked = is_project and not file.is_relative_to(site.worktree)
        yield SkillFile(
            folder=folder,
            path=file.resolve() if is_linked else file,
            is_project=is_project,
            root=own.root if own else None,
            storage=own.storage if own else None,
        )


def _is_users(file: Path, site: SkillSite, bundles: Iterable[Path]) -> bool:
    """Return whether a file is in the user's folders, and is no link into the project."""
    folders = [each for each in bundles if not each.is_relative_to(site.worktree)]
    if site.home is not None:
        folders += [site.home / name for name in IN_HOME]
    if site.config_dir is not None:
        folders += [site.config_dir / name for name in IN_CONFIG]
    if not any(file.is_relative_to(each) for each in folders):
        return False
    root = site.worktree.resolve()
    at_home = site.home is not None and root == site.home.resolve()
    return at_home or not file.resolve().is_relative_to(root)
