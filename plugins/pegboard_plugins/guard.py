"""A guard for vital folders, for files that run by themselves, and for Pegboard itself.

The guard acts even if all rules allow a request. A tool describes the effects of a call in the
metadata of its permission request:

- `destroys`: absolute globs of paths that would be deleted with all their content. Wildcards in
  plain names are escaped. An empty string is a target that is unknown before the call.
- `overlays`: folders in which all content could be overwritten.
- `renames`: globs of paths that would be moved.
- `hazards`: commands that destroy files without naming them, each with the reason.
- `writes`: absolute paths that would be written.
- `lands`: absolute paths at which a whole folder or a link may appear.

An `edit` request names its paths in its patterns.
"""

import asyncio
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import pegboard.files
import pegboard.unstable
from pegboard import SessionView, hookimpl
from pegboard.files import resolved_path
from pegboard.permissions import Ruleset, judge_rules
from pegboard.schema.session import PermissionRequest, Rule, Verdict

DESTROY = "destroy"
PROTECTED = "protected"
_EVERYTHING = frozenset({"*", ".*", "*.*", "**", ".", "..", ".[!.]*", "?*"})
_SYSTEM = tuple(
    Path(name)
    for name in (
        *("/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root"),
        *("/run", "/sbin", "/srv", "/sys", "/usr", "/var", "/tmp"),  # noqa: S108 - named, not used
        *("/usr/bin", "/usr/include", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/sbin"),
        *("/usr/share", "/var/cache", "/var/lib", "/var/log", "/var/spool"),
        *("/Applications", "/Library", "/System", "/Users", "/Volumes"),
    )
)

_INSTALLED = frozenset({"node_modules", "site-packages", ".venv", "venv"})
"""In these programs put what they can put there again."""
_MOST_NAMES = 5000
_MOST_HELD = 2000
_MOST_FOLDERS = 32
"""So many names of a folder, files in one that would be gone, and folders are looked at."""
_FEW = 5
_MOST = 0.9
_GLOB = re.compile(r"[*?\[]")
_ESCAPED = re.compile(r"\[\\?([*?\[\\])\]")
_HOMES = (Path("/home"), Path("/Users"))
_OWN = re.compile(
    r"(?:\S*/)?(?:pegboard|python[\d.]* (?:-\w+ )*(?:-m ?pegboard\S*|\S*/pegboard))"
    r" (?!(?:explain|models|demo|--version|--help|-h"
    r"|(?:trust|permission|plugins) list|plugins doctor|session (?:list|show)"
    r"|config show|audit verify)(?: |$)"
    r"|(?:trust|permission|plugins|session|config|audit)$)"
)
_DECIDES = "a command of Pegboard itself could change what is allowed, or go around it"
_DISK = re.compile(r"/dev/(sd|hd|vd|xvd|nvme|mmcblk|md|dm-|mapper/|r?disk|loop|zd)")


@hookimpl
async def permission_ask(session: SessionView, request: PermissionRequest) -> Verdict | None:
    """Deny the destruction of a vital folder; ask before other risky effects.

    These are writes to files that run by themselves, unknown destruction, and calls of Pegboard,
    which could change trust and permissions.
    """
    destroys = request.list_strings("destroys")
    said = None
    if (
        destroys
        or request.list_strings("overlays")
        or request.list_strings("renames")
        or _written_paths(session, request)
        or request.list_strings("lands")
    ):
        said = await asyncio.to_thread(_opinion, session, request, destroys)
    if said is not None and said.action == "deny":
        return said
    return _question(session, request) or said


def _question(session: SessionView, request: PermissionRequest) -> Verdict | None:
    """Ask before a command that calls Pegboard, or that destroys files without naming them."""
    for text in request.patterns if request.permission == "bash" else ():
        if _OWN.match(text) and not _is_allowed(session, request, PROTECTED, text):
            return Verdict(action="ask", reason=_DECIDES, source="guard", firm=True)
    for text, reason in _hazards(request):
        if not _is_allowed(session, request, DESTROY, text):
            return Verdict(action="ask", reason=f"{text}: {reason}", source="guard", firm=True)
    return None


def _opinion(
    session: SessionView, request: PermissionRequest, destroys: Sequence[str]
) -> Verdict | None:
    for target in destroys:
        reason = _vital(target, session)
        if reason and not _is_allowed(session, request, DESTROY, target):
            return Verdict(action="deny", reason=_refusal(target, reason), source="guard")
    if swept := _swept_wildcard([each for each in destroys if each], session, request):
        return Verdict(action="deny", reason=_refusal(*swept), source="guard")
    for target in request.list_strings("overlays"):
        name = _written_over(target, session)
        if name and not _is_allowed(session, request, DESTROY, target):
            reason = _refusal(target, f"is {name}: all that is in it could be written over")
            return Verdict(action="deny", reason=reason, source="guard")
    for path, why in _protected_paths(session, request):
        if not _is_allowed(session, request, PROTECTED, str(path)):
            reason = f"{path} is protected, because {why}"
            return Verdict(action="ask", reason=reason, source="guard", firm=True)
    return None


def _protected_paths(
    session: SessionView, request: PermissionRequest
) -> Iterator[tuple[Path, str]]:
    """Yield each protected path that would change, with links resolved, and why it is protected."""
    written, landing = [*_written_paths(session, request)], [*request.list_strings("lands")]
    written += _files_within(
        session, [*request.list_strings("destroys"), *request.list_strings("renames")]
    )
    if not written and not landing:
        return
    from pegboard.unstable import protected_folder, protected_path  # not before a file is changed

    changes = [(Path(resolved_path(text)), protected_path) for text in written]
    changes += [(Path(resolved_path(text)), protected_folder) for text in landing]
    others = (Path(resolved_path(text)) for text in request.list_strings("writes"))
    places = (*others, *(path for path, _ in changes))
    changed = {each for path in places for each in (path, *path.parents)}
    for path, reason_of in changes:
        why = reason_of(
            path,
            worktree=session.worktree,
            home=_home(session),
            private=session.private,
            changed=changed,
        )
        if why:
            yield path, why


def _files_within(session: SessionView, destroys: Sequence[str]) -> Iterator[str]:
    """Yield the project's files below the globs in `destroys`, without ignored files."""
    for target in destroys:
        for folder in islice(pegboard.unstable.shell_paths(target.rstrip("/")), _MOST_FOLDERS):
            real = Path(resolved_path(folder))
            if real.is_relative_to(session.worktree) and _INSTALLED.isdisjoint(real.parts):
                yield from islice(pegboard.files.walk_files(real, skip=_INSTALLED), _MOST_HELD)


def _refusal(target: str, reason: str) -> str:
    if not target:
        return (
            f"refused: {reason}. Write the path out, or use find -exec, so that it can be seen"
            " what would be gone"
        )
    return (
        f"refused: {target} {reason}. Name what is inside and not needed, and go on after a cd"
        f" that may fail with &&; only the user can allow it, with permission.{DESTROY}."
        f'"{target}" = "allow" in the configuration'
    )


def _written_paths(session: SessionView, request: PermissionRequest) -> list[str]:
    """Return the absolute paths of the files that the request would write.

    For a shell command, paths in the project are left out: another request, an `edit`, covers them.
    """
    if request.permission == "edit":
        return [os.path.join(session.worktree, text) for text in request.patterns]  # noqa: PTH118
    inside = f"{session.worktree}/"
    return [text for text in request.list_strings("writes") if not text.startswith(inside)]


def _hazards(request: PermissionRequest) -> list[tuple[str, str]]:
    """Return the commands that destroy files without naming them, each with the reason to ask."""
    value = request.metadata.get("hazards")
    found = value.items() if isinstance(value, dict) else ()
    return [(str(text), str(reason)) for text, reason in found]


def _home(session: SessionView) -> Path:
    return session.home or Path.home()


def _is_allowed(
    session: SessionView, request: PermissionRequest, permission: str, text: str
) -> bool:
    """Return whether a rule of the user allows `text` under `permission`, or this exact request."""
    said = [
        rule for ruleset in session.rulesets if ruleset.source == "config" for rule in ruleset.rules
    ]
    if permission == DESTROY and any(_is_exact(rule, request) for rule in said):
        return True
    own = [rule for rule in said if rule.permission == permission]
    if not own or not text:
        return False
    return (
        judge_rules(
            [Ruleset(source="config", rules=tuple(own))], permission, [text], home=_home(session)
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
    """Return why the path or glob must not be destroyed, or "" if it may be."""
    if not target:
        return "what would be deleted is only known when it runs"
    for path in _targets_of(target):
        for vital, name in _vitals(session):
            if _covers(path, vital):
                return f"is or contains {name}"
        if _DISK.match(path):
            return "is a disk"
        if Path(path).parent in _HOMES:
            return "is a home folder"
        if not any(sign in path for sign in "*?[") and os.path.ismount(path):
            return "is the root of a file system"
    return ""


def _written_over(target: str, session: SessionView) -> str:
    """Return "the root" or "a home folder" if the target is one of these, else ""."""
    folder, _, name = target.rstrip("/").rpartition("/")
    path = Path(resolved_path(folder or "/" if name in _EVERYTHING else target))
    if path == session.directory:
        return ""
    if path == Path("/"):
        return "the root"
    is_home = path == Path(resolved_path(_home(session))) or path.parent in _HOMES
    return "a home folder" if is_home else ""


def _swept_wildcard(
    targets: Sequence[str], session: SessionView, request: PermissionRequest
) -> tuple[str, str] | None:
    """Return a glob that would empty a vital folder and the reason, or None without such a glob."""
    folders: dict[str, list[str]] = {}
    for target in targets:
        if not _is_allowed(session, request, DESTROY, target):
            parent, _, name = target.rstrip("/").rpartition("/")
            for folder in islice(pegboard.unstable.shell_paths(parent or "/"), _MOST_FOLDERS):
                folders.setdefault(resolved_path(folder), []).append(name)
    for folder, names in folders.items():
        whose = _vital_content(folder, session)
        if whose and _is_emptied(folder, names):
            pattern = next((name for name in names if _GLOB.search(name)), names[0])
            return f"{folder}/{pattern}", f"would leave next to nothing of {whose}"
    return None


def _vital_content(folder: str, session: SessionView) -> str:
    """Return a text such as "the project itself" for a vital folder, or "" for any other folder."""
    for vital, name in _vitals(session):
        if str(vital) == folder and vital not in _SYSTEM:
            return name
    is_root = folder == "/" or (Path(folder) not in _SYSTEM and os.path.ismount(folder))
    return "the root of a file system" if is_root else ""


def _is_emptied(folder: str, names: Sequence[str]) -> bool:
    """Return whether the globs `names` match nearly all visible entries of the folder.

    Of up to five matches, all visible entries must match; of more, nine in ten.
    """
    try:
        with os.scandir(folder) as entries:
            there = [entry.name for entry in islice(entries, _MOST_NAMES)]
    except OSError:
        return False
    gone = {
        entry
        for entry in there
        if any(pegboard.unstable.shell_names(name, entry) for name in names)
    }
    shown = {entry for entry in there if not entry.startswith(".")}
    is_broad = len(gone) > _FEW or (len(shown) > 1 and any(map(_GLOB.search, names)))
    least = len(shown) if len(gone) <= _FEW else _MOST * len(shown)
    return is_broad and bool(shown) and len(shown & gone) >= least


def _vitals(session: SessionView) -> Iterator[tuple[Path, str]]:
    home = _home(session)
    yield session.worktree, "the project itself"
    yield session.directory, "the session's folder"
    yield home, "the home folder"
    yield Path(resolved_path(home)), "the home folder"
    for folder in session.private:
        yield folder, "what Pegboard keeps"
    for folder in _SYSTEM:
        yield folder, f"the system's {folder}"


def _targets_of(target: str) -> Iterable[str]:
    """Return the target as written and with links resolved, and for `folder/*` also the folder."""
    folder, _, name = target.rstrip("/").rpartition("/")
    real = _resolve(folder or "/")
    found = dict.fromkeys((os.path.normpath(target), os.path.normpath(f"{real}/{name}")))
    if name in _EVERYTHING:
        found |= dict.fromkeys((os.path.normpath(folder or "/"), real))
    if target.endswith("/"):
        found[_resolve(target)] = None
    return found


def _resolve(pattern: str) -> str:
    """Resolve the links of a plain path, and escape wildcards in the resolved path.

    A pattern with real wildcards is returned unchanged.
    """
    plain = _ESCAPED.sub(r"\1", pattern)
    return (
        pegboard.unstable.shell_escape(resolved_path(plain))
        if pegboard.unstable.shell_escape(plain) == pattern
        else pattern
    )


def _covers(pattern: str, vital: Path) -> bool:
    """Return whether the glob `pattern` matches the vital folder or a folder above it."""
    wanted = Path(pattern).parts
    actual = vital.parts[: len(wanted)]
    return len(actual) == len(wanted) and all(
        part == sign or pegboard.unstable.shell_fits(sign, part)
        for part, sign in zip(actual, wanted, strict=True)
    )
