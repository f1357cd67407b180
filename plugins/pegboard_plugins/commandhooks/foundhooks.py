"""The hook files that an App finds, and the ones that the user has yet to trust."""

import os
from collections.abc import Iterator
from pathlib import Path

from msgspec.structs import replace

from pegboard import App, Workspace
from pegboard.app import Decision, UserFolders
from pegboard.unstable import ProgramSearch
from pegboard_plugins.commandhooks.hookcommand import ForeignFiles
from pegboard_plugins.commandhooks.hookfiles import (
    HookFile,
    bundle_hooks,
    places,
    read_hooks,
    wanted_digests,
    without_disabled,
)
from pegboard_plugins.commandhooks.skillhooks import skill_hooks, skill_site
from pegboard_plugins.skill import with_libraries


def found_files(app: App, files: ForeignFiles, home: Path | None = None) -> list[HookFile]:
    """Return the hook files that `files_of` yields, without disabled hooks; reads files."""
    return without_disabled([*files_of(app, files, home)], home or Path.home())


def files_of(app: App, files: ForeignFiles, home: Path | None = None) -> Iterator[HookFile]:
    """Yield the hook files of the user, of the project, of bundles and of skills; reads files."""
    for product, path, is_project in places(files, home or Path.home(), app.workspace):
        if (file := read_hooks(product, path, is_project=is_project)) is not None:
            yield file
    yield from bundle_hooks(app.places, app.workspace.worktree, app.trust)
    site = skill_site(app.workspace, home or Path.home(), app.places, app.trust)
    yield from skill_hooks(replace(site, libraries=with_libraries(app.config)))


def is_of_project(app: App, file: HookFile) -> bool:
    """Return whether a hook file belongs to the project."""
    return file.path.is_relative_to(app.workspace.worktree)


def project_digests(
    names: ForeignFiles, workspace: Workspace, folders: UserFolders, trust: Decision
) -> dict[str, str]:
    """Return the digests of all hooks of a project, trusted or not, without running any hook."""
    whole = replace(trust, trusted=True)
    own = [
        read_hooks(product, path, is_project=True)
        for product, path, is_project in places(names, Path.home(), workspace)
        if is_project
    ]
    bundled = bundle_hooks(folders, workspace.worktree, whole)
    found: dict[str, str] = {}
    skills = skill_hooks(skill_site(workspace, Path.home(), folders, whole))
    for file in (*own, *bundled, *skills):
        if file is not None and file.path.is_relative_to(workspace.worktree):
            found |= digests_of(workspace, file)
    return found


def digests_of(workspace: Workspace, file: HookFile) -> dict[str, str]:
    """Return the digests of a hook file, and of the project's files that its commands name."""
    root, directory = workspace.worktree.resolve(), workspace.directory
    search = ProgramSearch(root=root, directory=directory, trusted_by_user=True, env=os.environ)
    found = {os.path.relpath(file.path, root): file.digest}
    for hook in file.hooks:
        found |= wanted_digests(hook, file.digest, search)
    return found


def is_waiting(app: App, file: HookFile) -> bool:
    """Return whether the hooks of a file wait for trust."""
    if not is_of_project(app, file):
        return False
    allowed = app.trust.allowed
    return any(
        allowed.get(name) != digest for name, digest in digests_of(app.workspace, file).items()
    )
