"""The database without an App, for commands that look after it and for programs that only read."""

import os
from functools import partial
from pathlib import Path

from pegboard.config.configuration import load_config
from pegboard.contract import hookspecs
from pegboard.ids import IdSource
from pegboard.loading.absent import names_hook
from pegboard.loading.candidates import Sources
from pegboard.loading.register import Register
from pegboard.loading.reload import open_database
from pegboard.paths import Places
from pegboard.storage.protocol import OnCommit, Storage
from pegboard.trust.decisions import TrustStore
from pegboard.workspace import open_workspace


async def open_storage(
    url: str | Path = "",
    *,
    ids: IdSource,
    on_commit: OnCommit | None = None,
    directory: Path | None = None,
) -> Storage:
    """The database at a URL or a path, "" for the one that an App of this process would open.

    It is opened by a plugin of `register_storage`, as in an App, but only plugins whose own module
    names that hook are imported, and none of the code of the project at `directory`, the current
    one if that is None. What is unfinished of dead processes is marked as interrupted; `on_commit`
    hears of it, and of every commit.

    :raises ConfigError: when no plugin opens databases of this kind.
    :raises StorageError: when it cannot be opened.
    """
    workspace = open_workspace(directory or Path.cwd())
    places = Places.of(os.environ)
    loaded = await load_config(
        workspace, config_dir=places.config, env=os.environ, overrides=None, trusted=False
    )
    decision = TrustStore(places.trust).decide(
        directory=workspace.directory, worktree=workspace.worktree, answer=False
    )
    sources = Sources(
        directory=workspace.directory,
        places=places,
        config=loaded.config,
        env=os.environ,
        decision=decision,
        fitting=partial(names_hook, spec=hookspecs.register_storage),
        on_failure=lambda _: None,
    )
    register = Register(sources)
    await register.load()
    try:
        place = url or os.environ.get("PEGBOARD_DATABASE", "") or places.database
        return await open_database(place, register=register, ids=ids, on_commit=on_commit)
    finally:
        await register.aclose()
