"""The warning about a project's code that is not loaded, with the commands to load it."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pegboard import App

_NOTICES = ("replaced", "order", "options")
"""The kinds of problems that disable nothing, unless the plugin also has an error."""
_MOST_LETTERS = 160
"""The maximum length of one reason in the line; `pegboard plugins doctor` has all of it."""
_STALL = "held up everything"
"""The text about a hook that blocks the event loop; its plugin is loaded and continues."""
NAMES = 3
"""The maximum number of file names of each kind in the line."""


class LeftOut(NamedTuple):
    """The warnings about code that is not loaded.

    `lines` has one line that sums up all `details`, or nothing. `others` are warnings about plugins
    that are loaded nevertheless.
    """

    lines: tuple[str, ...] = ()
    details: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


class _Fault(NamedTuple):
    plugin: str
    text: str
    warning: str
    is_refusal: bool = False
    is_notice: bool = False


def left_out(app: "App", *, names: int = NAMES) -> LeftOut:
    """Return the warnings about code that is not loaded.

    The code is untrusted, changed since it was trusted, or of a plugin that has failed. The summary
    line names `names` files of each kind and counts the rest.
    """
    root = app.workspace.worktree
    waiting = {_short(path, root): path in app.trust.changed for path in app.untrusted}
    found = _faults(app)
    faults = [each for each in found if not each.is_notice]
    broken = list(dict.fromkeys(each.plugin for each in (*_refusing(faults), *faults)))
    why = [each.text for each in faults if each.plugin in broken[:1]][:2]
    groups = [
        *_group([name for name in waiting if waiting[name]], " (changed since trusted)", names),
        *_group([name for name in waiting if not waiting[name]], " (not trusted)", names),
        *_group([f"{name} ({'; '.join(map(_clipped, why))})" for name in broken], "", 1),
    ]
    it = "it" if len(waiting) == 1 else "them"
    trust = f"`pegboard trust allow` shows and trusts {it}, --trust does so once"
    ways = [trust] * bool(waiting) + ["`pegboard plugins doctor` shows more"] * bool(broken)
    return LeftOut(
        lines=(f"not loaded: {'; '.join((*groups, *ways))}",) if groups else (),
        details=(
            *untrusted_warnings(app),
            *_document_warnings(app),
            *(each.warning for each in faults),
        ),
        others=tuple(each.warning for each in found if each.is_notice),
    )


def untrusted_warnings(app: "App") -> tuple[str, ...]:
    """Return a line that names all untrusted code files, or () if the project has none."""
    code = [path for path in app.untrusted if path not in app.config_sources.untrusted]
    if not code:
        return ()
    names = ", ".join(_short(path, app.workspace.worktree) for path in code)
    text = f"not loaded, because this project is not trusted: {names}"
    return (f"{text}; `pegboard trust allow` shows and trusts it, --trust does so once",)


def _document_warnings(app: "App") -> Iterator[str]:
    """Yield the warnings about untrusted Markdown files, which define commands or agents."""
    files = tuple(f"{path}: " for path in app.config_sources.untrusted if path.suffix == ".md")
    return (each for each in app.config_sources.warnings if each.startswith(files))


def fault_warnings(app: "App") -> tuple[str, ...]:
    """Return a line for each problem and failure of a plugin, refused plugins first."""
    found = _faults(app)
    return tuple(dict.fromkeys(each.warning for each in (*_refusing(found), *found)))


def _faults(app: "App") -> tuple[_Fault, ...]:
    broken = {each.name for each in app.plugins.infos if each.error and not each.blocked}
    problems = (
        _Fault(
            each.plugin,
            each.text,
            f"{each.plugin}: {each.text}",
            is_refusal=each.kind == "refusal",
            is_notice=each.kind in _NOTICES and each.plugin not in broken,
        )
        for each in app.plugins.problems
    )
    failures = (
        _Fault(
            each.plugin,
            each.message.removeprefix(f"plugin {each.plugin}: "),
            each.message,
            is_notice=_STALL in each.message,
        )
        for each in app.failures
    )
    return (*problems, *failures)


def _refusing(faults: Sequence[_Fault]) -> Iterator[_Fault]:
    return (each for each in faults if each.is_refusal)


def _group(names: Sequence[str], why: str, most: int) -> Iterator[str]:
    if names:
        more = f" and {len(names) - most} more" if len(names) > most else ""
        yield f"{', '.join(names[:most])}{more}{why}"


def _clipped(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."


def _short(path: Path, root: Path) -> str:
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
