"""The decision whether a project's code may run, by the content that the user has trusted.

The store keeps the digest and a copy of each trusted file. If a file changes, the user is asked
again and can see the difference. A decision holds the content of the files, and exactly this
content is run, even if a file changes meanwhile. The store's file is read leniently, written
atomically, and private to the user.
"""

import contextlib
import hashlib
import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from pegboard.errors import TrustError
from pegboard.kit.privatefile import lock_file, replace_file, set_aside
from pegboard.trust.projectcode import (
    CodeFile,
    plugin_files,
    project_code,
    read_bounded,
    with_neighbours,
)

_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


class _ForeignError(OSError):
    """An error for a file that another user may have written."""


class Trusted(msgspec.Struct, frozen=True, kw_only=True):
    """A trusted project: the digest of each file, and the time when the user trusted the project.

    `allowed_at` is in milliseconds since the epoch. Files outside of the project's root are named
    by their absolute path.
    """

    allowed_at: int
    files: dict[str, str]


class _Stored(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the trust store's file: the trusted projects by their root folder."""

    version: Literal[1] = 1
    projects: dict[str, Trusted]


class _Lock(msgspec.Struct, frozen=True):
    files: dict[str, str]


THIS_TIME = "this time"
"""The end of the reason where the user has decided for one App."""


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The decision whether to trust a project's code, with the content of the code.

    `files` maps each file that needs trust to its content: code, and configuration files with
    settings that need trust. `named` are the plugin paths in these settings. `trusted_by_user` is
    whether the user has agreed. A project without such files is trusted anyway, but its own
    programs do not run. `allowed` are the digests that the user trusts, including those of the
    project's programs. `changed` are files that were trusted with other content. `reason` is one
    line for the user.
    """

    trusted: bool
    trusted_by_user: bool = False
    root: Path
    files: Mapping[Path, bytes] = {}
    code: tuple[CodeFile, ...] = ()
    named: tuple[Path, ...] = ()
    allowed: Mapping[str, str] = {}
    changed: tuple[Path, ...] = ()
    reason: str = ""

    @property
    def digests(self) -> Mapping[str, str]:
        """The digest of each file by its name in the trust store, a path relative to the root."""
        return {name: digest for _, name, digest in _digests(self)}

    @property
    def key(self) -> str:
        """A hash of all paths and contents in `files`, or "" if there are no files."""
        digests = "".join(f"{name}\0{digest}\n" for _, name, digest in _digests(self))
        return hashlib.sha256(os.fsencode(digests)).hexdigest() if digests else ""


class TrustStore:
    """The projects that the user trusts, in a file of the state folder, with copies of their files.

    Reading never fails: a damaged store is renamed and counts as empty.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._copies = path.parent / f"{path.stem}-copies"

    def decide(  # noqa: PLR0913 - the facts of a decision, all keyword-only
        self,
        *,
        directory: Path,
        worktree: Path,
        config_files: Sequence[Path] = (),
        plugin_paths: Sequence[Path] = (),
        answer: "bool | Decision | None" = None,
        lock: Path | None = None,
    ) -> Decision:
        """Decide whether the code that the project would run from this directory is trusted.

        `config_files` are the project's configuration files with settings that need trust. Plugins
        at the `plugin_paths` that they name need trust too. `answer` is the user's answer for this
        run only: for all files, or for the files of an earlier decision with their content then.
        `lock` is a file of digests that the user trusts, written by `pegboard trust lock`.

        :raises TrustError: when the lock file is invalid.
        """
        root = worktree.resolve()
        code = _code(directory.resolve(), root, plugin_paths)
        files = {file.path: file.content for file in code}
        files |= {path: read_bounded(path)[0] for path in config_files}
        decision = Decision(
            trusted=answer is True, root=root, files=files, code=code, named=tuple(plugin_paths)
        )
        known = self._read().get(str(root))
        allowed = dict(known.files if known else {})
        if lock and answer is not False:
            allowed |= _read_lock(lock, root)
        if isinstance(answer, Decision) and answer.root == root:
            allowed |= {**answer.allowed, **answer.digests}
        decision = replace(decision, allowed=allowed)
        if isinstance(answer, bool):
            reason = "trusted for this time" if answer else f"not trusted {THIS_TIME}"
            return replace(decision, trusted_by_user=answer, reason=reason)
        if not files:
            agreed, reason = known is not None or bool(allowed), "the project brings no code"
            return replace(decision, trusted=True, trusted_by_user=agreed, reason=reason)
        return _by_digest(decision)

    def allow(self, decision: Decision) -> None:
        """Trust the files of the decision with exactly their content; forget deleted files.

        :raises TrustError: when the store cannot be written.
        """
        root = decision.root
        with self._writing() as projects:
            for content in decision.files.values():
                replace_file(self._copies / hashlib.sha256(content).hexdigest(), content)
            before = projects.get(str(root))
            known = before.files.items() if before else ()
            kept = {name: digest for name, digest in known if (root / name).is_file()}
            projects[str(root)] = _trusted({**kept, **decision.digests})

    def allow_programs(self, root: Path, digests: Mapping[str, str]) -> None:
        """Trust programs of a trusted project; `digests` maps the relative paths to digests.

        :raises TrustError: when the project is not trusted, or the store cannot be written.
        """
        with self._writing() as projects:
            known = projects.get(str(root))
            if known is None:
                raise TrustError(f"{root} is not trusted yet; `pegboard trust allow` comes first")
            projects[str(root)] = _trusted({**known.files, **digests})

    def revoke(self, worktree: Path) -> bool:
        """Revoke the trust in a project; return False if the project was not trusted.

        :raises TrustError: when the store cannot be written.
        """
        with self._writing() as projects:
            return projects.pop(str(worktree.resolve()), None) is not None

    def projects(self) -> dict[str, Trusted]:
        """Return the trusted projects by root, sorted."""
        return dict(sorted(self._read().items()))

    def difference(self, decision: Decision) -> str:
        """Return the unified diff from the trusted to the current files, with new files in full."""
        known = self._read().get(str(decision.root))
        allowed = known.files if known else {}
        pieces: list[str] = []
        for path, name, digest in _digests(decision):
            if allowed.get(name) == digest:
                continue
            before = self._copy(allowed[name]) if name in allowed else b""
            pieces.extend(_diff(name, before, decision.files[path]))
        return "\n".join(pieces)

    def _copy(self, digest: str) -> bytes:
        """Return the copy of a trusted file by the file's digest, or b"" if the copy is lost."""
        try:
            return (self._copies / digest).read_bytes()
        except OSError:
            return b""

    @contextlib.contextmanager
    def _writing(self) -> Iterator[dict[str, Trusted]]:
        """Lock the trust store, yield its projects to be changed, and write them after the block.

        Copies that no project refers to are then deleted.
        """
        try:
            with lock_file(self._path):
                self._copies.mkdir(exist_ok=True, mode=0o700)
                projects = self._to_be_changed()
                yield projects
                content = msgspec.json.encode(_Stored(projects=projects), order="sorted")
                replace_file(self._path, msgspec.json.format(content, indent=2))
                used = {digest for each in projects.values() for digest in each.files.values()}
                for copy in self._copies.iterdir():
                    if copy.name not in used:
                        copy.unlink(missing_ok=True)
        except TrustError:  # an OSError, too
            raise
        except OSError as error:
            text = f"the trust store {self._path} cannot be written: {error.strerror or error}"
            raise TrustError(text) from error

    def _to_be_changed(self) -> dict[str, Trusted]:
        """Return the projects in the trust store, so that they can be changed.

        If other users can write the store's file, rename it and return no projects.
        """
        try:
            return self._stored()
        except _ForeignError:
            self._set_aside("can be written by others")
            return {}

    def _read(self) -> dict[str, Trusted]:
        """Return the stored projects; none if the file is unreadable or others can write it."""
        with contextlib.suppress(OSError):
            return self._stored()
        return {}

    def _stored(self) -> dict[str, Trusted]:
        """Return the stored projects; a damaged file is renamed.

        :raises OSError: when the file cannot be read, or another user can write it.
        """
        try:
            with self._path.open("rb") as file:
                facts = os.fstat(file.fileno())
                if facts.st_uid not in (os.geteuid(), 0) or facts.st_mode & _OTHERS_WRITE:
                    raise _ForeignError
                return msgspec.json.decode(file.read(), type=_Stored).projects
        except FileNotFoundError:
            return {}
        except (msgspec.MsgspecError, ValueError) as error:
            self._set_aside(f"is damaged ({error})")
            return {}

    def _set_aside(self, why: str) -> None:
        """Rename the trust store's file to keep its content, and log the reason `why`."""
        with contextlib.suppress(OSError):
            aside = set_aside(self._path)
            text = "the trust store %s %s: it is kept as %s, and projects have to be trusted again"
            logging.getLogger("pegboard.trust").warning(text, self._path, why, aside)


def _trusted(files: dict[str, str]) -> Trusted:
    return Trusted(allowed_at=time.time_ns() // 1_000_000, files=files)


def _by_digest(decision: Decision) -> Decision:
    """Complete the decision by comparing digests with the digests that the user has trusted."""
    allowed = decision.allowed
    differing = [path for path, name, digest in _digests(decision) if allowed.get(name) != digest]
    if not differing:
        reason = "trusted: nothing has changed"
        return replace(decision, trusted=True, trusted_by_user=True, reason=reason)
    changed = tuple(path for path in differing if _key(path, decision.root) in allowed)
    names = [_key(path, decision.root) for path in changed or differing]
    is_one = len(names) == 1
    if changed:
        what = f"changed since {'it was' if is_one else 'they were'} trusted"
    else:
        what = f"{'is' if is_one else 'are'} not trusted yet"
    return replace(decision, changed=changed, reason=f"{', '.join(names)} {what}")


def _read_lock(path: Path, root: Path) -> dict[str, str]:
    try:
        return msgspec.json.decode((root / path).read_bytes(), type=_Lock).files
    except (OSError, ValueError, msgspec.MsgspecError) as error:
        raise TrustError(f"the lock file {path} cannot be used ({error}); write it anew") from error


def _code(directory: Path, root: Path, plugin_paths: Iterable[Path]) -> tuple[CodeFile, ...]:
    """Return the project's code, each file once."""
    # `os.path`: a name that is too long for one is that of nothing, and no error.
    there = (path for path in plugin_paths if os.path.exists(path))  # noqa: PTH110
    named = (file for path in there for file in plugin_files(path))
    found: dict[Path, CodeFile] = {}
    for file in (*project_code(directory, root), *named):
        found.setdefault(file.path, file)
    if not found:
        return ()
    return with_neighbours(found.values())


def _digests(decision: Decision) -> Iterator[tuple[Path, str, str]]:
    """Yield each file with its name in the trust store, and with the digest of its content."""
    for path, content in decision.files.items():
        yield path, _key(path, decision.root), hashlib.sha256(content).hexdigest()


def _key(path: Path, root: Path) -> str:
    """Return the path relative to the root, or the absolute path if the file is elsewhere."""
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else str(path)


def _diff(name: str, before: bytes, after: bytes) -> Iterator[str]:
    import difflib  # 1 ms that only a person who looks at a change pays

    old, new = (text.decode("utf-8", "replace").splitlines() for text in (before, after))
    yield from difflib.unified_diff(old, new, f"trusted/{name}", f"project/{name}", lineterm="")
