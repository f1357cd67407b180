"""What a command line would run and touch, as far as its text says.

tree-sitter parses it, so that lists, pipelines, subshells, substitutions, here-documents and
redirections are all seen. What cannot be known from the text makes the line `unclear`: then no
rule about a part of it may allow the whole.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from pegboard import protected_path
from pegboard_plugins.bash.findings import Findings
from pegboard_plugins.bash.walking import walk_text


@dataclass(frozen=True, slots=True)
class Scan:
    """The commands, as words; the paths that they name; what is unclear, in codes.

    `writes` are those of the paths that would be written. `destroys` would be gone with all
    that is in them: absolute paths or globs, empty for one that only the shell would know.
    """

    commands: tuple[tuple[str, ...], ...]
    paths: tuple[Path, ...]
    unclear: tuple[str, ...] = ()
    writes: tuple[Path, ...] = ()
    destroys: tuple[str, ...] = ()


def scan(command: str, *, cwd: Path, home: Path, worktree: Path | None = None) -> Scan:
    """What the line would run and touch when it is started in `cwd`; nothing is executed.

    A write to what runs by itself in the `worktree` makes it unclear, too.
    """
    findings = Findings(home=str(home), cwd=(str(cwd),))
    findings.values["PWD"] = frozenset({str(cwd)})
    try:
        walk_text(command, findings, 0)
    except RecursionError:
        findings.doubt("nested-too-deep")
    if findings.calculates and findings.untold:
        findings.doubt("arith-eval")
    if not findings.commands:
        findings.doubt("no-command")
    if worktree is not None and any(_is_guarded(path, worktree, home) for path in findings.writes):
        findings.doubt("protected-path")
    return Scan(
        commands=tuple(findings.commands),
        paths=tuple(Path(path) for path in findings.paths),
        unclear=tuple(findings.unclear),
        writes=tuple(Path(path) for path in findings.writes),
        destroys=tuple(findings.destroys),
    )


def _is_guarded(path: str, worktree: Path, home: Path) -> bool:
    real = Path(os.path.realpath(path))
    return (
        real.is_relative_to(worktree)
        and protected_path(real, worktree=worktree, home=home) is not None
    )
