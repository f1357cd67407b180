"""The workspace of a session: its directory, the worktree around the directory, and project id.

Git's facts are read from its files, because a `git` process takes more time. The variables
`GIT_DIR` and `GIT_WORK_TREE` are ignored: only the directory counts.
"""

import hashlib
import os
from pathlib import Path

import msgspec

from pegboard.errors import InvalidInputError
from pegboard.trust.projectcode import read_bounded


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    """A directory and the git repository that contains the directory; all paths are resolved.

    `worktree` is the root of the checkout, or the directory itself without git. `project_id` is the
    same for all worktrees of a repository, if git has recorded them in the repository. Any other
    folder that points to the repository is a separate project. `git_dir` is the git directory of
    this worktree, None without git.
    """

    directory: Path
    worktree: Path
    project_id: str
    git_dir: Path | None

    @property
    def git_dirs(self) -> tuple[Path, ...]:
        """The git directories of this worktree and of the whole repository, if any."""
        if self.git_dir is None:
            return ()
        return tuple(dict.fromkeys((self.git_dir, _shared_git_dir(self.git_dir))))


def open_workspace(directory: Path) -> Workspace:
    """Return the workspace of an existing directory.

    A repository around it counts only if its owner is this user, root or the directory's owner.

    :raises InvalidInputError: when `directory` is not a directory, or its path is not UTF-8.
    """
    try:
        resolved = directory.expanduser().resolve()
        exists = resolved.is_dir()
    except (OSError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"not a directory: {directory} ({error})") from error
    if not exists:
        raise InvalidInputError(f"not a directory: {directory}")
    try:
        str(resolved).encode()
    except UnicodeEncodeError as error:
        raise InvalidInputError(
            f"the path of the project is not UTF-8, so that no session can name it: {resolved}; "
            "rename the folder"
        ) from error
    for folder in (resolved, *resolved.parents):
        git_dir = _git_dir(folder)
        if git_dir is not None and (folder == resolved or _is_ours(folder, resolved)):
            return Workspace(
                directory=resolved,
                worktree=folder,
                project_id=_project_id(_identity(folder, git_dir)),
                git_dir=git_dir,
            )
    return Workspace(
        directory=resolved, worktree=resolved, project_id=_project_id(resolved), git_dir=None
    )


def _is_ours(folder: Path, directory: Path) -> bool:
    """Return whether the repository around a directory belongs to a trusted user.

    These are this user, root, and the owner of the directory. Any user could create a repository in
    a folder such as /tmp, so git has the same check (safe.directory).
    """
    owner = (folder / ".git").lstat().st_uid
    return owner in (os.geteuid(), 0, directory.stat().st_uid)


def _git_dir(folder: Path) -> Path | None:
    """Return the git directory of which `folder` is a worktree, or None."""
    entry = folder / ".git"
    try:
        found = _pointed_to(entry, "gitdir:") if entry.is_file() else entry
        # Like git, which looks further up when `.git` is an empty folder.
        return found.resolve() if found is not None and (found / "HEAD").is_file() else None
    except (OSError, ValueError, RuntimeError):
        return None


def _shared_git_dir(git_dir: Path) -> Path:
    """Return the git directory that all worktrees of a repository share."""
    return _resolved(_pointed_to(git_dir / "commondir")) or git_dir


def _identity(folder: Path, git_dir: Path) -> Path:
    """Return the path that identifies the project, to which approvals of the user belong.

    This is the git directory of the repository, shared by its worktrees. If the repository does not
    list `folder` as its worktree, it is `folder` itself.
    """
    shared = _shared_git_dir(git_dir)
    own = git_dir == folder / ".git"
    if own and shared == git_dir:
        return git_dir
    if git_dir.parent == shared / "worktrees":
        known = _pointed_to(git_dir / "gitdir")
        return shared if _resolved(known and known.parent) == folder else folder
    said = _resolved(git_dir / _said_worktree(_read(git_dir / "config")))
    return git_dir if own or said == folder else folder


def _said_worktree(config: str) -> str:
    """Return the worktree that a repository's configuration names, or ""."""
    for line in config.splitlines():
        name, _, value = line.partition("=")
        if name.strip().lower() == "worktree":
            return value.strip().strip('"')
    return ""


def _resolved(path: Path | None) -> Path | None:
    """Resolve the links of a path; return None for None or an invalid path."""
    try:
        return None if path is None else path.resolve()
    except (OSError, ValueError, RuntimeError):
        return None


def _pointed_to(file: Path, mark: str = "") -> Path | None:
    """Return the path that follows `mark` in `file`, relative to the file's folder, or None."""
    text = _read(file)
    path = text.removeprefix(mark).strip()
    return file.parent / path if path and text.startswith(mark) else None


def _read(file: Path) -> str:
    return read_bounded(file)[0].decode("utf-8", "surrogateescape").strip()


def _project_id(path: Path) -> str:
    return hashlib.sha1(bytes(path), usedforsecurity=False).hexdigest()
