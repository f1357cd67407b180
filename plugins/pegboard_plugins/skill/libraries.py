"""Skills of installed libraries, taken from the wheels of a project's direct dependencies.

Nothing is imported or run. A file counts only if its digest is in the wheel's RECORD. Of an Agent
Plugin in a wheel, only the skills are used.
"""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from pegboard.unstable import read_bounded
from pegboard_plugins.shared import environments
from pegboard_plugins.skill.record import CHANGED, LibraryEntry, text_as_recorded

MOST_LIBRARIES = 300
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_ENTRY = re.compile(
    r"^\"?((?:[^/,\"\n]+/)+\.agents/skills/[^/,\"\n]+/SKILL\.md)\"?,sha256=([\w-]+)=?,\d*\r?$",
    re.MULTILINE,
)
_PLACE = b".agents/skills/"
_MARKER = b".dist-info/agent_plugins.json"


class LibrarySkill(msgspec.Struct, frozen=True):
    """The text of a library's skill, checked by its digest, and the library with its version.

    A file with a `problem` is not offered.
    """

    path: Path
    text: str
    library: str
    problem: str = ""

    @property
    def name(self) -> str:
        """The name of the skill's folder; if the file is not Markdown, the name of the file."""
        return self.path.parent.name if self.path.suffix == ".md" else self.path.name


def library_skills(root: Path, *, every: bool = False) -> Iterator[LibrarySkill]:
    """Yield the skills that direct dependencies of the project at `root` bring along; blocks.

    With `every`, skills of all libraries and files with a problem are included. The libraries are
    those of the project's own environment. Its files are read again only after a change.
    """
    site = _site_packages(root)
    if site is None:
        return
    for entry in _entries(root, site, _stamps(root, site), every=every):
        text = None if entry.problem else text_as_recorded(entry.path, entry.digest)
        if text is not None:
            yield LibrarySkill(entry.path, text, entry.library)
        elif every:
            yield LibrarySkill(entry.path, "", entry.library, entry.problem or CHANGED)


def _site_packages(root: Path) -> Path | None:
    """Return the `site-packages` of the project's virtual environment, or None."""
    for folder in environments(root):
        if (folder / "pyvenv.cfg").is_file():
            found = [*folder.glob("lib/python*/site-packages"), folder / "Lib" / "site-packages"]
            return next((each for each in found if each.is_dir()), None)
    return None


def _stamps(root: Path, site: Path) -> tuple[tuple[str, int, int], ...]:
    """Return name, time and size of each file that changes when libraries are installed."""
    files = (site, root, root / "pyproject.toml", *_requirement_files(root))
    found = ((str(path), path.stat()) for path in files if path.exists())
    return tuple((name, facts.st_mtime_ns, facts.st_size) for name, facts in found)


@lru_cache(maxsize=32)
def _requirements(root: Path, changed_ns: int) -> tuple[str, ...]:  # noqa: ARG001 - the key
    return tuple(sorted(path.name for path in root.iterdir() if _is_requirements(path.name)))


def _is_requirements(name: str) -> bool:
    return name.startswith("requirements") and name.endswith(".txt")


def _requirement_files(root: Path) -> Iterator[Path]:
    return (root / name for name in _requirements(root, root.stat().st_mtime_ns))


@lru_cache(maxsize=32)
def _entries(
    root: Path,
    site: Path,
    stamps: object,  # noqa: ARG001 - the key
    *,
    every: bool = False,
) -> tuple[LibraryEntry, ...]:
    """Return the entries of skill files in the libraries' RECORD files."""
    wanted = frozenset() if every else set(direct_dependencies(root))
    found: list[LibraryEntry] = []
    folders = sorted(path.name for path in site.glob("*.dist-info"))
    for name in folders if wanted or every else ():
        library, _, version = name.removesuffix(".dist-info").partition("-")
        is_wanted = every or canonical(library) in wanted
        if not is_wanted or len(found) >= MOST_LIBRARIES:
            continue
        record = read_bounded(site / name / "RECORD")[0]
        if _PLACE in record:  # few libraries have skills, and a pattern is slow on long files
            found += _recorded_skills(site, f"{library} {version}", record)
        if _MARKER in record:
            from pegboard_plugins.skill.libraryplugin import plugin_entries  # fewer have plugins

            found += plugin_entries(site, name, record)
    return tuple(found)


def _recorded_skills(site: Path, library: str, record: bytes) -> Iterator[LibraryEntry]:
    real = site.resolve()
    for entry, digest in _ENTRY.findall(record.decode("utf-8", "replace")):
        path = Path(os.path.realpath(site / entry))
        if ".." not in entry.split("/") and path.is_relative_to(real):
            yield LibraryEntry(path, digest, library)


def direct_dependencies(root: Path) -> Iterator[str]:
    """Yield the normalised names (PEP 503) of the libraries that a project depends on directly."""
    content = read_bounded(root / "pyproject.toml")[0]
    try:
        table = tomllib.loads(content.decode())
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError):
        table = {}
    yield from _names_of(_dependencies(table))
    poetry = _table(_table(_table(table, "tool"), "poetry"), "dependencies")
    yield from _names_of(name for name in poetry if name != "python")
    for path in _requirement_files(root):
        yield from _names_of(read_bounded(path)[0].decode("utf-8", "replace").splitlines())


def _dependencies(table: Mapping[str, Any]) -> Iterator[object]:
    project = _table(table, "project")
    groups = (
        {"": project.get("dependencies")},
        _table(project, "optional-dependencies"),
        _table(table, "dependency-groups"),
    )
    for group in groups:
        for listed in group.values():
            yield from listed if isinstance(listed, list) else ()


def _names_of(requirements: Iterable[object]) -> Iterator[str]:
    for each in requirements:
        match = _NAME.match(each.strip()) if isinstance(each, str) else None
        if match:
            yield canonical(match[0])


def _table(table: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = table.get(name)
    return found if isinstance(found, Mapping) else {}


def canonical(name: str) -> str:
    """Return the normalised name of a library (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()
