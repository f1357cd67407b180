"""The folders that jobs work in: worktrees of bare copies of their repositories."""

import asyncio
import hashlib
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec

from pegboard.errors import PegboardError
from pegboard_fleet.state import Attempt

CLONE_LIMIT_S = 1800.0
GIT_LIMIT_S = 300.0
OUTPUT_LETTERS = 4000
"""The end of a command's output that is kept."""
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never", "-c", "gc.auto=0")


class SetupError(PegboardError):
    """The folder of a job cannot be made or set up, which is no fault of the model's."""


class Ran(msgspec.Struct, frozen=True):
    """The end of a command: its exit code, -1 after its time limit, and its output."""

    code: int
    output: str


async def run(words: Sequence[str], folder: Path, limit_s: float, env: Mapping[str, str]) -> Ran:
    """Run a program to its end, or until the limit; its process group ends with it."""
    process = await asyncio.create_subprocess_exec(
        *words,
        cwd=folder,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(limit_s):
            output, _ = await process.communicate()
    except TimeoutError:
        return Ran(-1, f"it took longer than {limit_s:g} s")
    finally:
        with suppress(ProcessLookupError):  # nothing of it is left
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return Ran(process.returncode or 0, output.decode(errors="replace"))


class Folders:
    """The folders below a batch's own: `repos` has bare copies, `work` a folder an attempt."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, attempt: Attempt) -> Path:
        """The folder of an attempt."""
        return self._root / "work" / attempt.name

    async def make(self, attempt: Attempt) -> str:
        """Make the folder anew; return the commit it begins at, "" without a repository.

        :raises SetupError: when the repository cannot be had.
        """
        folder, job = self.of(attempt), attempt.job
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        if not job.repo:
            await asyncio.to_thread(folder.mkdir, parents=True)
            return ""
        copy = await self._copy(job.repo)
        async with self._changing(job.repo):
            await self._git(copy, "worktree", "prune")
            await self._git(copy, "worktree", "add", "--detach", "-f", str(folder), job.commit)
        return (await self._git(folder, "rev-parse", "HEAD")).strip()

    async def patch(self, attempt: Attempt, base: str) -> str:
        """What an attempt has changed, as git's patch; "" without a repository.

        :raises SetupError: when git fails.
        """
        if not base:
            return ""
        folder = self.of(attempt)
        await self._git(folder, "add", "-A")
        return await self._git(folder, "diff", "--cached", "--binary", "--no-ext-diff", base)

    async def _copy(self, repo: str) -> Path:
        """The bare copy of a repository, which is made once."""
        place = self._root / "repos" / f"{hashlib.sha256(repo.encode()).hexdigest()[:16]}.git"
        async with self._changing(repo):
            if not (place / "complete").exists():
                await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
                await asyncio.to_thread(place.parent.mkdir, parents=True, exist_ok=True)
                words = ("clone", "--quiet", "--mirror", "--no-hardlinks", "--", repo, str(place))
                await self._git(place.parent, *words, limit_s=CLONE_LIMIT_S)
                (place / "complete").touch()
        return place

    def _changing(self, repo: str) -> asyncio.Lock:
        """The lock of whoever changes the copy of a repository."""
        return self._locks.setdefault(repo, asyncio.Lock())

    @staticmethod
    async def _git(folder: Path, *words: str, limit_s: float = GIT_LIMIT_S) -> str:
        env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
        done = await run(["git", *_SAFE, *words], folder, limit_s, env)
        if done.code:
            said = done.output.strip()[-OUTPUT_LETTERS:]
            raise SetupError(f"git {' '.join(words[:2])} ended with {done.code}: {said}")
        return done.output
