"""What a command line would run and touch, as far as its text says.

tree-sitter parses it, so that lists, pipelines, subshells, substitutions, here-documents and
redirections are all seen. What cannot be known from the text makes the line `unclear`: then no
rule about a part of it may allow the whole.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path

from pegboard import protected_folder, protected_path
from pegboard_plugins.bash.destroying import DELETING, look_for_deletions
from pegboard_plugins.bash.findings import Findings
from pegboard_plugins.bash.origins import Origin
from pegboard_plugins.bash.walking import walk_text

_EXTENDED_GLOB = re.compile(r"[!@+*?]\(")
_RUNNING = frozenset({".git", ".pegboard", ".opencode"})


@dataclass(frozen=True, slots=True)
class Scan:
    """The commands, as words; the paths that they name; what is unclear, in codes.

    `writes` are those of the paths that would be written. `destroys` would be gone with all
    that is in them: absolute paths or globs, empty for one that only the shell would know.
    At `lands` a file, folder or link may come to be; those of `linked` get another name. `globs`
    are the paths with wildcards, of which `paths` has the folder. `hazards` are commands that
    destroy what they do not name, each with the reason to ask. `unknown` are those of what is
    unclear that leave open what would run, be read or be written at all. `overlays` are folders
    whose whole content would be written over.
    """

    commands: tuple[tuple[str, ...], ...]
    paths: tuple[Path, ...]
    unclear: tuple[str, ...] = ()
    writes: tuple[Path, ...] = ()
    destroys: tuple[str, ...] = ()
    lands: tuple[Path, ...] = ()
    linked: tuple[Path, ...] = ()
    globs: tuple[str, ...] = ()
    hazards: tuple[tuple[str, str], ...] = ()
    unknown: tuple[str, ...] = ()
    overlays: tuple[str, ...] = ()


def scan(command: str, *, cwd: Path, home: Path, worktree: Path | None = None) -> Scan:
    """What the line would run and touch when it is started in `cwd`; nothing is executed.

    A write to what runs by itself in the `worktree` makes it unclear, too.
    """
    findings = Findings(home=str(home), cwd=(str(cwd),))
    findings.values |= {"PWD": frozenset({str(cwd)}), "IFS": frozenset({" "})}
    try:
        walk_text(command, findings, 0)
    except RecursionError:
        findings.doubt("nested-too-deep")
    if findings.calculates and findings.untold:
        findings.doubt("arith-eval", unknown=findings.untold is Origin.UNKNOWN)
    if findings.unknown:
        look_for_deletions(command, findings)
    is_unread = not {"nested-too-deep", "too-long"}.isdisjoint(findings.unclear)
    if (is_unread and DELETING.search(command)) or (
        findings.destroys and _EXTENDED_GLOB.search(command)
    ):
        findings.destroys[""] = None
    if not findings.commands:
        findings.doubt("no-command")
    if worktree is not None:
        _guard(findings, worktree, home)
    return Scan(
        commands=tuple(findings.commands),
        paths=tuple(Path(path) for path in findings.paths),
        unclear=tuple(findings.unclear),
        writes=tuple(Path(path) for path in findings.writes),
        destroys=tuple(findings.destroys),
        lands=tuple(Path(path) for path in findings.lands),
        linked=tuple(Path(path) for path in findings.linked),
        globs=tuple(findings.globs),
        hazards=tuple(findings.hazards.items()),
        unknown=tuple(findings.unknown),
        overlays=tuple(findings.overlays),
    )


def _guard(findings: Findings, worktree: Path, home: Path) -> None:
    """Doubt a line that may change, or bring about, what runs by itself in the project."""
    for path in findings.handed:
        if not _RUNNING.isdisjoint(os.path.realpath(path).lower().split("/")):
            findings.writes[path] = None
    written = (_real(path, worktree) for path in findings.writes)
    landing = (_real(path, worktree) for path in findings.lands)
    if any(path and protected_path(path, worktree=worktree, home=home) for path in written) or any(
        path and protected_folder(path, worktree=worktree, home=home) for path in landing
    ):
        findings.doubt("protected-path")


def _real(path: str, worktree: Path) -> Path | None:
    """The path with links resolved, if it is in the project."""
    real = Path(os.path.realpath(path))
    return real if real.is_relative_to(worktree) else None
