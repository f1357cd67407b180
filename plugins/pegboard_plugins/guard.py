"""Nothing vital is destroyed, and what runs by itself is not changed unasked.

Both hold where everything else is allowed. A tool says what it would do in the metadata of its
request: `destroys` are absolute paths or globs that would be gone with all that is in them,
empty for one that nobody can know before; `writes` are absolute paths. An `edit` names its paths
in its patterns.
"""

import asyncio
import os
from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from pegboard import Places, Ruleset, SessionView, hookimpl, judge, protected_path
from pegboard.schema.permission import PermissionRequest, Rule, Verdict

DESTROY = "destroy"
PROTECTED = "protected"
_EVERYTHING = frozenset({"*", ".*", "*.*", "**", ".", "..", ".[!.]*", "?*"})
_SYSTEM = tuple(
    Path(name)
    for name in (
        *("/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root"),
        *("/run", "/sbin", "/srv", "/sys", "/usr", "/var", "/tmp"),  # noqa: S108 - named, not used
        *("/Applications", "/Library", "/System", "/Users", "/Volumes"),
    )
)


@hookimpl
async def permission_ask(session: SessionView, request: PermissionRequest) -> Verdict | None:
    """A refusal for the destruction of a vital folder, a question before what runs by itself."""
    destroys = _texts(request, "destroys")
    written = _written(session, request)
    if not destroys and not written:
        return None
    return await asyncio.to_thread(_opinion, session, request, destroys, written)


def _opinion(
    session: SessionView,
    request: PermissionRequest,
    destroys: Sequence[str],
    written: Sequence[str],
) -> Verdict | None:
    for target in destroys:
        reason = _vital(target, session)
        if reason and not _named(session, request, DESTROY, target):
            return Verdict(action="deny", reason=_refusal(target, reason), source="guard")
    home, private = Path.home(), _private()
    for text in written:
        path = Path(os.path.realpath(text))
        why = protected_path(path, worktree=session.worktree, home=home, private=private)
        if why and not _named(session, request, PROTECTED, str(path)):
            reason = f"{path} is protected, because {why}"
            return Verdict(action="ask", reason=reason, source="guard", firm=True)
    return None


def _refusal(target: str, reason: str) -> str:
    if not target:
        return (
            f"refused: {reason}. Write the path out, or use find -exec, so that it can be seen"
            " what would be gone"
        )
    return (
        f"refused: {target} {reason}. Name what is inside and not needed; only the user can"
        f' allow it, with permission.{DESTROY}."{target}" = "allow" in the configuration'
    )


def _written(session: SessionView, request: PermissionRequest) -> list[str]:
    """The absolute paths that would change; those of a shell line in the project are an edit."""
    if request.permission == "edit":
        return [os.path.join(session.worktree, text) for text in request.patterns]  # noqa: PTH118
    inside = f"{session.worktree}/"
    return [text for text in _texts(request, "writes") if not text.startswith(inside)]


def _texts(request: PermissionRequest, key: str) -> list[str]:
    value = request.metadata.get(key)
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def _private() -> tuple[Path, ...]:
    places = Places.of(os.environ)
    return tuple(
        Path(os.path.realpath(folder)) for folder in (places.config, places.data, places.state)
    )


def _named(session: SessionView, request: PermissionRequest, permission: str, text: str) -> bool:
    """Whether the user has allowed this very thing, in a rule of its own."""
    said = [
        rule for ruleset in session.rulesets if ruleset.source == "config" for rule in ruleset.rules
    ]
    if permission == DESTROY and any(_is_exact(rule, request) for rule in said):
        return True
    own = [rule for rule in said if rule.permission == permission]
    if not own or not text:
        return False
    return (
        judge(
            [Ruleset(source="config", rules=tuple(own))], permission, [text], home=Path.home()
        ).action
        == "allow"
    )


def _is_exact(rule: Rule, request: PermissionRequest) -> bool:
    is_plain = not any(sign in rule.pattern for sign in "*?")
    return (
        rule.action == "allow"
        and rule.permission == request.permission
        and is_plain
        and rule.pattern in request.patterns
    )


def _vital(target: str, session: SessionView) -> str:
    """Why nothing may destroy the target; empty for one that may be."""
    if not target:
        return "what would be deleted is only known when it runs"
    for path in _meant(target):
        for vital, name in _vitals(session):
            if _covers(path, vital):
                return f"is or contains {name}"
        if not any(sign in path for sign in "*?[") and os.path.ismount(path):
            return "is the root of a file system"
    return ""


def _vitals(session: SessionView) -> Iterator[tuple[Path, str]]:
    home = Path.home()
    yield session.worktree, "the project itself"
    yield session.directory, "the session's folder"
    yield home, "the home folder"
    yield Path(os.path.realpath(home)), "the home folder"
    for folder in _private():
        yield folder, "what Pegboard keeps"
    for folder in _SYSTEM:
        yield folder, f"the system's {folder}"


def _meant(target: str) -> Iterable[str]:
    """The target as written and with links resolved; of `folder/*` the folder, too."""
    folder, _, name = target.rstrip("/").rpartition("/")
    if any(sign in folder for sign in "*?["):
        real = target
    elif name in _EVERYTHING or target.endswith("/"):
        real = os.path.realpath(folder or "/") + f"/{name}"
    else:
        real = os.path.join(os.path.realpath(folder or "/"), name)  # noqa: PTH118 - a glob
    found = dict.fromkeys((os.path.normpath(target), os.path.normpath(real)))
    if name in _EVERYTHING:
        found |= dict.fromkeys((os.path.normpath(folder or "/"), os.path.realpath(folder or "/")))
    if target.endswith("/"):
        found[os.path.realpath(target)] = None
    return found


def _covers(pattern: str, vital: Path) -> bool:
    """Whether the pattern fits the vital folder or one above it."""
    wanted = Path(pattern).parts
    actual = vital.parts[: len(wanted)]
    return len(actual) == len(wanted) and all(
        fnmatchcase(part, sign) for part, sign in zip(actual, wanted, strict=True)
    )
