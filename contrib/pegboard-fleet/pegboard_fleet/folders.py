"""The folders that jobs work in: worktrees of local bare clones of the jobs' git repositories."""

import asyncio
import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from pegboard.errors import PegboardError
from pegboard.processes import ProgramResult, run_program
from pegboard_fleet.state import Attempt

CLONE_LIMIT_S = 1800.0
GIT_LIMIT_S = 300.0
OUTPUT_LIMIT_BYTES = 256 * 1024 * 1024
"""More than a verbose test suite or the patch of a large change has."""
OUTPUT_TAIL_BYTES = 4000
"""The end of a command's output that a result has."""
_SAFE = ("-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never", "-c", "gc.auto=0")


class SetupError(PegboardError):
    """A job's folder could not be created or set up, for a reason other than the model."""


def ending(result: ProgramResult, limit_s: float) -> str:
    """Return why Pegboard killed a program, such as its time limit; "" if Pegboard did not."""
    if result.timed_out:
        return f"it took longer than {limit_s:g} s"
    if result.flooded:
        return f"it printed more than {OUTPUT_LIMIT_BYTES:,} bytes"
    return ""


class Folders:
    """The folders of a batch: bare clones below `repos`, and a folder per attempt below `work`."""

    def __init__(self, root: Path) -> None:
        self._root = root.absolute()
        self._locks: dict[str, asyncio.Lock] = {}

    def of(self, attempt: Attempt) -> Path:
        """Return the path of the attempt's folder."""
        return self._root / "work" / attempt.name

    async def make(self, attempt: Attempt) -> str:
        """Replace the attempt's folder by a new one; return the commit, or "" without a repository.

        :raises SetupError: when git cannot clone the repository or check out the commit.
        """
        folder, job = self.of(attempt), attempt.job
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        if not job.repo:
            await asyncio.to_thread(folder.mkdir, parents=True)
            return ""
        copy = await self._copy(job.repo)
        async with self._changing(job.repo):
            await git(copy, "worktree", "prune")
            await git(copy, "worktree", "add", "--detach", "-f", str(folder), job.commit)
        return (await git(folder, "rev-parse", "HEAD")).decode().strip()

    async def patch(self, attempt: Attempt, base: str) -> str:
        """Return the attempt's changes since the commit `base` as a git patch; "" if `base` is "".

        If the patch is not valid UTF-8, git writes all files as binary patches.

        :raises SetupError: when git fails, or the repository's attributes prevent a binary patch.
        """
        if not base:
            return ""
        folder = self.of(attempt)
        await git(folder, "add", "-A")
        words = ("diff", "--cached", "--binary", "--no-ext-diff", base)
        try:
            return (await git(folder, *words)).decode()
        except UnicodeDecodeError:
            attributes = self._root / "binary.gitattributes"
            await asyncio.to_thread(attributes.write_text, "* -diff\n")
        patch = await git(folder, "-c", f"core.attributesFile={attributes}", *words)
        try:
            return patch.decode()
        except UnicodeDecodeError as error:
            raise SetupError(f"the patch has a text that is not UTF-8: {error}") from error

    async def _copy(self, repo: str) -> Path:
        """Return a local bare clone of a repository; create the clone on the first call."""
        place = self._root / "repos" / f"{hashlib.sha256(repo.encode()).hexdigest()[:16]}.git"
        async with self._changing(repo):
            if not (place / "complete").exists():
                await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)
                await asyncio.to_thread(place.parent.mkdir, parents=True, exist_ok=True)
                words = ("clone", "--quiet", "--mirror", "--no-hardlinks", "--", repo, str(place))
                await git(place.parent, *words, limit_s=CLONE_LIMIT_S)
                (place / "complete").touch()
        return place

    def _changing(self, repo: str) -> asyncio.Lock:
        """Return the lock that serializes changes to the copy of `repo`."""
        return self._locks.setdefault(repo, asyncio.Lock())

    async def store(self, attempt: Attempt) -> Path:
        """Return the local bare repository that holds git objects for the attempt's folder."""
        if attempt.job.repo:
            return await self._copy(attempt.job.repo)
        place = self._root / "repos" / "empty.git"
        async with self._changing(""):
            if not place.exists():
                await asyncio.to_thread(place.parent.mkdir, parents=True, exist_ok=True)
                await git(place.parent, "init", "--quiet", "--bare", str(place))
        return place


async def git(
    folder: Path, *words: str, env: Mapping[str, str] | None = None, limit_s: float = GIT_LIMIT_S
) -> bytes:
    """Run git in a folder, and return git's standard output.

    Git sees no `GIT_*` variables except those in `env`.

    :raises SetupError: when git fails or exceeds a limit.
    """
    without = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = await run_program(
        ("git", *_SAFE, *words),
        cwd=folder,
        env=without | dict(env or {}),
        timeout_s=limit_s,
        limit_bytes=OUTPUT_LIMIT_BYTES,
    )
    if done.exit_code:
        errors = done.errors.decode(errors="replace").strip()[-OUTPUT_TAIL_BYTES:]
        raise SetupError(f"git {' '.join(words[:2])} ended with {done.exit_code}: {errors}")
    if reason := ending(done, limit_s):
        raise SetupError(f"git {' '.join(words[:2])} was ended: {reason}")
    return done.output
