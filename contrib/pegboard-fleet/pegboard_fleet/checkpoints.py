"""Checkpoints of session folders: git commits from which another worker can continue a session.

Before each request to the model, the folder is pushed as `refs/pegboard/SESSION/BEGIN/STEP`. A
worker that continues a session uses a greater BEGIN, and the checkpoint with the greatest BEGIN
counts. A previous worker that was declared dead therefore cannot replace it.
"""

import asyncio
from pathlib import Path

from pegboard_fleet.folders import Folders, SetupError, git
from pegboard_fleet.state import Attempt

_AUTHOR = ("-c", "user.name=pegboard", "-c", "user.email=pegboard@localhost")
_PUSH_LIMIT_S = 120.0
_PAUSES_S = (0.2, 1.0, 3.0)


class Checkpoints:
    """The checkpoints of an attempt's folder, stored in the bare git repository `remote`.

    Each checkpoint is a child of the commit `base`, if there is one; git then sends only changes.
    """

    def __init__(
        self, folders: Folders, remote: str, attempt: Attempt, session_id: str, base: str = ""
    ) -> None:
        self._base = base
        self._folders = folders
        self._remote = remote
        self._attempt = attempt
        self._refs = f"refs/pegboard/{session_id}"
        self._step = 0
        self._tree = ""
        self._saving = asyncio.Lock()

    async def save(self) -> None:
        """Push the attempt's folder if its content has changed since the last checkpoint.

        :raises SetupError: when git fails.
        """
        async with self._saving:
            await self._git("add", "-A")
            tree = await self._git("write-tree")
            if tree == self._tree:
                return
            parent = ("-p", self._base) if self._base else ()
            words = (*_AUTHOR, "commit-tree", tree, *parent, "-m", self._attempt.name)
            commit = await self._git(*words)
            others: tuple[str, ...] = ()
            if self._tree:
                others = (f":{self._ref}",)
            elif self._base:
                others = (f"{self._base}:refs/pegboard/base/{self._base}",)
            self._step += 1
            await self._push(f"{commit}:{self._ref}", *others)
            self._tree = tree

    async def restore(self) -> None:
        """Restore the attempt's folder from the newest checkpoint, if a checkpoint exists.

        Files that git ignores stay unchanged.

        :raises SetupError: when git fails.
        """
        if (ref := await self._fetch()) is not None:
            await self._git("add", "-A")
            await self._git("read-tree", "--reset", "-u", ref)

    async def _fetch(self) -> str | None:
        """Fetch the newest checkpoint and return its name, or None if there is no checkpoint.

        A late push of the previous worker may replace the checkpoint during the fetch; the fetch is
        then repeated.
        """
        for pause_s in (*_PAUSES_S, None):
            if not (found := await self._list()):
                break
            ref = max(found, key=lambda each: [int(number) for number in each.split("/")[-2:]])
            try:
                await self._git("fetch", "--quiet", "--no-tags", self._remote, f"{ref}:{ref}")
            except SetupError:
                if pause_s is None:
                    raise
                await asyncio.sleep(pause_s)
            else:
                return ref
        return None

    async def drop(self) -> None:
        """Delete all checkpoints of the session.

        :raises SetupError: when git fails.
        """
        if found := await self._list():
            await self._push(*(f":{ref}" for ref in found))

    @property
    def _ref(self) -> str:
        return f"{self._refs}/{len(self._attempt.begun)}/{self._step}"

    async def _push(self, *refs: str) -> None:
        """Push git refspecs; retry a failed push, because concurrent pushes can collide."""
        for pause_s in _PAUSES_S:
            try:
                await self._git("push", "--quiet", self._remote, *refs)
            except SetupError:
                await asyncio.sleep(pause_s)
            else:
                return
        await self._git("push", "--quiet", self._remote, *refs)

    async def _list(self) -> list[str]:
        lines = await self._git("ls-remote", "--refs", self._remote, f"{self._refs}/*")
        return [line.split("\t")[1] for line in lines.splitlines()]

    async def _git(self, *words: str) -> str:
        folder = self._folders.of(self._attempt)
        store = await self._folders.store(self._attempt)
        env = {
            "GIT_DIR": str(store),
            "GIT_WORK_TREE": str(folder),
            "GIT_INDEX_FILE": f"{folder}.index",
        }
        return (await git(folder, *words, env=env, limit_s=_PUSH_LIMIT_S)).decode().strip()


async def check_remote(remote: str, folder: Path) -> str:
    """Return why git cannot push to the repository `remote`, or "" if git can push.

    `folder` is an existing, empty folder for the test repository.

    :raises OSError: when git cannot be started.
    """
    try:
        await git(folder, "init", "--quiet", "--bare", "check.git")
        await git(folder, "ls-remote", "--quiet", remote, limit_s=_PUSH_LIMIT_S)
        words = ("hash-object", "-w", "-t", "tree", "/dev/null")
        tree = (await git(folder / "check.git", *words)).decode().strip()
        named = (*_AUTHOR, "commit-tree", tree, "-m", "check")
        commit = (await git(folder / "check.git", *named)).decode().strip()
        ref = f"refs/pegboard/check/{commit}"
        await git(folder / "check.git", "push", "--quiet", remote, f"{commit}:{ref}")
        await git(folder / "check.git", "push", "--quiet", remote, f":{ref}")
    except SetupError as error:
        return str(error)
    return ""
