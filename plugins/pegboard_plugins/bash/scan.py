"""What a shell line would run and touch: it is known, or it is unclear, and says why.

A line is known when the reader takes each letter of it, each command in it is one by the grammar
of what stands before it, and each file whose content is moved is one that can be told.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from pegboard.kit import resolved_path
from pegboard_plugins.bash.findings import PROCESS, Findings
from pegboard_plugins.bash.judging import judge_line
from pegboard_plugins.bash.line import BASH_ONLY, Line
from pegboard_plugins.bash.source import LONGEST
from pegboard_plugins.bash.syntax import Block, Unclear
from pegboard_plugins.bash.unread import code_destruction, destruction, tells_of_process
from pegboard_plugins.bash.values import Values
from pegboard_plugins.bash.walking import walk

_RUNNING = frozenset({".git", ".pegboard", ".opencode"})
_ENDLESS = "what would be destroyed is not known"
_IN_CODE = "in the code of an interpreter it would destroy what is vital"


@dataclass(frozen=True, slots=True)
class Scan:
    """The commands, as words; the paths that they name; why the line is unclear, if it is.

    `writes` are those of the paths that would be written, `reads` those of them that another
    command reads. `destroys` would be gone with all
    that is in them: absolute paths or globs, empty for one that only the shell would know.
    At `lands` a file, folder or link may come to be; those of `linked` get another name. `globs`
    are the paths with wildcards, of which `paths` has the folder. `hazards` are commands that
    destroy what they do not name, each with the reason to ask. `overlays` are folders whose whole
    content would be written over. `told` are texts that are code for interpreters.
    """

    commands: tuple[tuple[str, ...], ...] = ()
    paths: tuple[Path, ...] = ()
    unclear: Unclear | None = None
    writes: tuple[Path, ...] = ()
    destroys: tuple[str, ...] = ()
    lands: tuple[Path, ...] = ()
    linked: tuple[Path, ...] = ()
    globs: tuple[str, ...] = ()
    hazards: tuple[tuple[str, str], ...] = ()
    overlays: tuple[str, ...] = ()
    reads: tuple[Path, ...] = ()
    told: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a line would be started, and by what.

    The `environment` is what its shell gets; one that `is_bash` reads all of the grammar.
    """

    cwd: Path
    home: Path
    worktree: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    is_bash: bool = True


def scan(command: str, place: Place) -> Scan:
    """What the line would run and touch when it is started there; nothing is executed."""
    home = str(place.home)
    own = {"HOME": home, "PWD": str(place.cwd), "OLDPWD": "", "IFS": " "}
    findings = Findings(
        home=home, cwd=(str(place.cwd),), values=Values({**place.environment, **own})
    )
    try:
        if not place.is_bash:
            _refuse_bash(command)
        line, body = judge_line(command, findings.values)
        if any(map(tells_of_process, line.told)):
            findings.tell_of_process()
        for destroyed in filter(None, (code_destruction(code, home) for code in line.told)):
            findings.hazards[destroyed] = _IN_CODE
        found = _walked(line, body, findings, place.worktree)
    except Unclear as error:
        destroyed = destruction(command[:LONGEST], home)
        found = Scan(unclear=error, hazards=((destroyed, _ENDLESS),) if destroyed else ())
    if found.unclear is None or not tells_of_process(command[:LONGEST]):
        return found
    return replace(found, paths=(*found.paths, Path(PROCESS)))


def _refuse_bash(command: str) -> None:
    """Nothing that another shell than bash, or an old one, reads otherwise."""
    found = BASH_ONLY.search(command)
    if found is not None:
        raise Unclear("dialect", *found.span())


def _walked(line: Line, body: Block, findings: Findings, worktree: Path | None) -> Scan:
    try:
        walk(body, findings)
    except RecursionError:
        raise Unclear("nested-too-deep") from None
    if worktree is not None:
        _note_running(findings)
    writes = tuple(Path(path) for path in findings.writes)
    return Scan(
        commands=tuple(line.commands),
        paths=tuple(Path(path) for path in findings.paths),
        unclear=findings.unclear,
        writes=writes,
        reads=tuple({*writes}.intersection(map(Path, findings.reads if writes else ()))),
        destroys=tuple(findings.destroys),
        lands=tuple(Path(path) for path in findings.lands),
        linked=tuple(Path(path) for path in findings.linked),
        globs=tuple(findings.globs),
        hazards=tuple(findings.hazards.items()),
        overlays=tuple(findings.overlays),
        told=tuple(line.told),
    )


def _note_running(findings: Findings) -> None:
    """What is named to a program that may write it is written, where it runs by itself."""
    folders: dict[str, str] = {}
    for path in findings.handed:
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = resolved_path(folder or "/")
        is_plain = name not in ("", ".", "..") and not os.path.islink(path)  # noqa: PTH114 - text
        real = f"{folders[folder]}/{name}" if is_plain else resolved_path(path)
        if not _RUNNING.isdisjoint(real.lower().split("/")):
            findings.writes[path] = None
