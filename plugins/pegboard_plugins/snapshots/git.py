"""The shadow repository, in which git reads the user's files without hooks or filters.

Its folder is in the user's data, with a configuration by Pegboard. Git reads the user's index, the
best record of unchanged files, but never writes it, and uses objects from the user's repository.
The user's configuration is not read, so none of its hooks, filters, monitors, pagers or textconv
programs run.
"""

import asyncio
import logging
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import msgspec

from pegboard import ToolError, Workspace
from pegboard.unstable import TEMPORARY, read_bounded, search_path
from pegboard_plugins.snapshots.objects import Algorithm, TreeEntry, path_and_stage, stage_name

if TYPE_CHECKING:
    from pegboard.processes import ProgramResult

MOST_ARGUMENTS = 1_000
"""More paths are not given to a process: the system limits what it takes."""
TIME_LIMIT_S = 60.0
"""The longest that one process of git may take; the next one is not tried then."""
SLOW_S = 5.0
"""The time after which the user hears what Pegboard waits for."""
LISTING_LIMIT_BYTES = 256 << 20
"""What git says of two million files."""
CONTENT_LIMIT_BYTES = 1 << 30

_OFF = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.pager=cat"),
    *("-c", "core.alternateRefsCommand=", "-c", "core.untrackedCache=false"),
    *("-c", "core.autocrlf=false", "-c", "diff.external=", "-c", "commit.gpgSign=false"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "protocol.allow=never"),
    *("-c", "submodule.recurse=false", "-c", "safe.bareRepository=explicit"),
)
_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n"
_SHA256_CONFIG = _CONFIG.replace("= 0", "= 1") + "[extensions]\n\tobjectformat = sha256\n"
# Files are taken byte by byte: attributes that change content on its way do not count.
_ATTRIBUTES = "* -text -eol -ident -filter -working-tree-encoding -diff -merge\n"
_CONVERTING = re.compile(rb"\b(text|eol|crlf|ident|filter|working-tree-encoding)\b")
_COMMIT = re.compile(rb"[0-9a-f]{40}([0-9a-f]{24})?")
_OTHER_HASH = re.compile(rb"objectformat\s*=\s*sha256", re.IGNORECASE)

_log = logging.getLogger("pegboard.snapshots")


class GitError(OSError):
    """An error for a failed process of git, with git's own message."""


class GitUnusableError(GitError):
    """An error for a git that is missing, too slow, or prints too much; git is not run again."""


class Listing(msgspec.Struct):
    """The worktree's files by path, as `git ls-files` lists them.

    `indexed` are the files in the index, only in a listing of the whole index. `others` are
    untracked files that are not ignored, and `nested` the repositories among them. `doubtful` are
    files that may differ from the index. `unmerged` are the versions of files in a merge conflict;
    `stage_name` makes their keys. `skipped` files are left out by a sparse checkout. Unmerged and
    skipped files are not in `indexed`.
    """

    indexed: dict[bytes, TreeEntry] = msgspec.field(default_factory=dict)
    unmerged: dict[bytes, TreeEntry] = msgspec.field(default_factory=dict)
    skipped: set[bytes] = msgspec.field(default_factory=set)
    doubtful: set[bytes] = msgspec.field(default_factory=set)
    others: set[bytes] = msgspec.field(default_factory=set)
    nested: set[bytes] = msgspec.field(default_factory=set)


class ShadowGit:
    """The shadow repository of a worktree, in `folder`.

    Its methods block. They are called in threads, and the processes run on the event loop `loop`.
    """

    def __init__(self, workspace: Workspace, folder: Path, env: Mapping[str, str]) -> None:
        self.worktree = workspace.worktree
        self.folder = folder
        self._git_dir = workspace.git_dir
        self._shared = workspace.git_dirs[-1] if workspace.git_dirs else None
        self.algorithm: Algorithm = "sha1" if self._shared is None else _algorithm(self._shared)
        self._env = _clean(env, self.worktree)
        self.loop: asyncio.AbstractEventLoop | None = None
        self._running: asyncio.Task[ProgramResult] | None = None
        self._unusable = ""

    @property
    def seeded(self) -> bool:
        """Whether the user's worktree is in a git repository."""
        return self._shared is not None

    def prepare(self) -> None:
        """Create the repository, and copy the user's own ignore rules.

        A repository with another hash algorithm than the user's is replaced, and its snapshots are
        lost.

        :raises OSError: when the folder cannot be written.
        """
        if (self.folder / "config").exists() and _algorithm(self.folder) != self.algorithm:
            shutil.rmtree(self.folder)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)  # copies of the user's files
        config = _CONFIG if self.algorithm == "sha1" else _SHA256_CONFIG
        users = self.folder / "users"  # the user's objects without ours
        for name in ("objects/info", "refs", "info", "users/objects/info", "users/refs"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        for folder in (self.folder, users):
            _put(folder / "HEAD", b"ref: refs/heads/none\n")
            _put(folder / "config", config.encode())
        _put(self.folder / "info" / "attributes", _ATTRIBUTES.encode())
        _put(self.folder / "worktree", bytes(self.worktree) + b"\n")
        if self.seeded:
            assert self._shared is not None
            for folder in (self.folder, users):
                alternates = folder / "objects" / "info" / "alternates"
                _put(alternates, bytes(self._shared / "objects") + b"\n")
        self._take_excludes()

    def index_state(self) -> tuple[int, ...]:
        """Return numbers that change when the user's index changes."""
        try:
            found = self._index.stat()
        except OSError:
            return ()
        return (found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino)

    def listing(self, *, whole: bool, paths: Sequence[bytes] = ()) -> Listing:
        """Return the differences from the index; with `whole`, also the index. Runs one process.

        :raises OSError: when git fails or is missing.
        """
        if not paths:
            self._take_excludes()
        what = ("-c", "-s") if whole else ()
        limit = ("--", *map(os.fsdecode, paths)) if paths else ()
        output = self._run(
            "ls-files", "-z", "-v", *what, "-m", "-d", "-o", "--exclude-standard", *limit
        )
        return _parsed(output, whole=whole)

    def ignored(self, paths: Sequence[bytes]) -> set[bytes]:
        """Return which of the paths git's ignore rules exclude; runs one process."""
        given = b"".join(b"./%b\0" % path for path in paths)  # a name may begin with a colon
        output = self._run("check-ignore", "-z", "--stdin", given=given, fine=(0, 1))
        return {path[2:] for path in output.split(b"\0")[:-1]}

    def converts(self, listing: Listing) -> bool:
        """Return whether git may convert files, as `autocrlf` does, so that blobs differ."""
        names = [path for path in listing.indexed if path.endswith(b".gitattributes")]
        files = [self.worktree / os.fsdecode(name) for name in names]
        home = Path(self._env.get("HOME", "/"))
        configs = [home / ".gitconfig", home / ".config/git/config"]
        if self._shared is not None:
            files.append(self._shared / "info" / "attributes")
            configs.append(self._shared / "config")
        return any(_CONVERTING.search(_read(file)) for file in files) or any(
            b"autocrlf" in _read(file).lower() for file in configs
        )

    def head(self) -> str:
        """Return the checked-out commit; "" if no commit is checked out or it is unreadable."""
        if self._git_dir is None or self._shared is None or not self.seeded:
            return ""
        content = _read(self._git_dir / "HEAD").strip()
        if content.startswith(b"ref: "):
            name = content.removeprefix(b"ref: ")
            content = _read(self._shared / os.fsdecode(name)).strip()
            if not content:
                packed = _read(self._shared / "packed-refs").splitlines()
                found = (line for line in packed if line.endswith(b" " + name))
                content = next(found, b"").partition(b" ")[0]
        return content.decode() if _COMMIT.fullmatch(content) else ""

    def tree_of(self, commit: str, paths: Sequence[bytes]) -> dict[bytes, TreeEntry]:
        """Return the entries of a commit at these paths; runs one process."""
        if not commit or not paths:
            return {}
        limit = () if len(paths) > MOST_ARGUMENTS else ("--", *map(os.fsdecode, paths))
        output = self._run("ls-tree", "-z", "-r", commit, *limit)
        found = {}
        for line in output.split(b"\0")[:-1]:
            head, _, path = line.partition(b"\t")
            mode, _, oid = head.split(b" ")
            found[path] = TreeEntry(mode, oid)
        return found

    def users_own(self, oids: Sequence[bytes]) -> set[bytes]:
        """Return which of the objects are in the user's repository; runs one process."""
        if not oids:
            return set()
        known = self.sizes(oids, repository=self.folder / "users")
        return set(known)

    def write_index(self, files: Mapping[bytes, TreeEntry | None]) -> None:
        """Set or remove these paths in the user's index; runs one process.

        The keys are made by `stage_name`. All stages of a path must be given together.

        :raises GitError: when another process has locked the index, or it cannot be written.
        """
        named = [(*path_and_stage(name), entry) for name, entry in files.items()]
        none = b"0" * {"sha1": 40, "sha256": 64}[self.algorithm]
        removed = [b"0 %s\t%s" % (none, path) for path in {path for path, *_ in named}]
        put = [b"%s %s %s\t%s" % (*entry, stage, path) for path, stage, entry in named if entry]
        if files:
            given = b"\0".join((*removed, *put)) + b"\0"
            self._run("update-index", "-z", "--index-info", given=given)

    def sizes(self, oids: Sequence[bytes], *, repository: Path | None = None) -> dict[bytes, int]:
        """Return the sizes of blobs in bytes, without missing blobs; runs one process."""
        place = ("--git-dir", str(repository)) if repository is not None else ()
        output = self._run(*place, "cat-file", "--batch-check", given=b"\n".join(oids) + b"\n")
        found = {}
        for line in output.splitlines():
            oid, kind, *rest = line.split()
            if kind == b"blob":
                found[oid] = int(rest[0])
        return found

    def contents(self, oids: Sequence[bytes]) -> dict[bytes, bytes]:
        """Return the contents of blobs, without missing blobs; runs one process."""
        if not oids:
            return {}
        output = self._run(
            *("cat-file", "--batch"),
            given=b"\n".join(oids) + b"\n",
            limit_bytes=CONTENT_LIMIT_BYTES,
        )
        found = {}
        place = 0
        while place < len(output):
            end = output.index(b"\n", place)
            oid, *rest = output[place:end].split()
            place = end + 1
            if len(rest) == len(("kind", "size")):
                size = int(rest[1])
                found[oid] = output[place : place + size]
                place += size + 1
        return found

    async def stop(self) -> None:
        """Kill the running process with its children, and refuse to start other processes."""
        self._unusable = "the snapshots are closed"
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait({self._running})  # what is killed is gone within two seconds

    @property
    def _index(self) -> Path:
        if self._git_dir is None or not self.seeded:
            return self.folder / "none"
        return self._git_dir / "index"

    def _take_excludes(self) -> None:
        own = b".*%b\n" % TEMPORARY.encode()
        if self.folder.is_relative_to(self.worktree):
            own += b"/" + bytes(self.folder.relative_to(self.worktree)) + b"/\n"
        users = _read(self._shared / "info" / "exclude") if self._shared else b""
        _put(self.folder / "info" / "exclude", own + users)

    def _run(
        self,
        *words: str,
        given: bytes = b"",
        fine: Sequence[int] = (0,),
        limit_bytes: int = LISTING_LIMIT_BYTES,
    ) -> bytes:
        assert self.loop is not None
        program = self._ran(words, given, limit_bytes)
        waiting = asyncio.run_coroutine_threadsafe(program, self.loop)
        try:
            done = _waited_for(waiting, words[0])
        except ToolError as error:
            missing = isinstance(error.__cause__, FileNotFoundError)
            raise (GitUnusableError if missing else GitError)(str(error)) from error
        except CancelledError as error:
            raise GitError("git was ended with the program") from error
        if done.timed_out or done.flooded:
            self._give_up(words[0], done, limit_bytes)
        if done.exit_code not in fine:
            text = done.errors.decode(errors="replace").strip()
            raise GitError(text or f"git {words[0]} failed")
        return done.output

    def _give_up(self, word: str, done: "ProgramResult", limit_bytes: int) -> NoReturn:
        """Mark git as unusable, as another try would take as long; raise `GitUnusableError`."""
        limit = f"{limit_bytes >> 20} MiB"
        what = (
            f"printed more than {limit}" if done.flooded else f"took more than {TIME_LIMIT_S:g} s"
        )
        self._unusable = f"git {word} {what}"
        _log.warning("%s; from here on changes of files cannot be undone", self._unusable)
        raise GitUnusableError(self._unusable)

    async def _ran(self, words: Sequence[str], given: bytes, limit_bytes: int) -> "ProgramResult":
        from pegboard.processes import run_program  # a run that changes nothing starts no process

        if self._unusable:
            raise GitUnusableError(self._unusable)
        self._running = asyncio.current_task()
        env = {**self._env, "GIT_DIR": str(self.folder), "GIT_WORK_TREE": str(self.worktree)}
        env["GIT_INDEX_FILE"] = str(self._index)
        if words[0] == "check-ignore":  # it takes paths as they are, and fails if told to
            env["GIT_LITERAL_PATHSPECS"] = "0"
        try:
            return await run_program(
                ["git", *_OFF, *words],
                cwd=self.worktree,
                env=env,
                given=given,
                timeout_s=TIME_LIMIT_S,
                limit_bytes=limit_bytes,
            )
        finally:
            self._running = None


def _waited_for(waiting: "Future[ProgramResult]", word: str) -> "ProgramResult":
    try:
        return waiting.result(SLOW_S)
    except TimeoutError:
        if waiting.done():
            raise
    text = "git %s has not ended after %g s; it is waited for up to %g s, to see what tools change"
    _log.warning(text, word, SLOW_S, TIME_LIMIT_S)
    return waiting.result()


def _algorithm(git_dir: Path) -> Algorithm:
    return "sha256" if _OTHER_HASH.search(_read(git_dir / "config")) else "sha1"


def _clean(env: Mapping[str, str], root: Path) -> dict[str, str]:
    """Return the environment for git's processes, without the user's settings of git."""
    kept = {name: env[name] for name in ("HOME", "XDG_CONFIG_HOME", "TMPDIR") if name in env}
    return kept | {
        "PATH": search_path(env, root=root),
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_LITERAL_PATHSPECS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _parsed(output: bytes, *, whole: bool) -> Listing:
    """Parse the lines of `git ls-files`: a tag and a path; if `whole`, with mode, id and stage.

    A tag in lower case marks a file that the user has marked as unchanged.
    """
    found = Listing()
    for line in output.split(b"\0")[:-1]:
        tag, rest = line[:1], line[2:]
        if tag == b"?":
            if rest.endswith(b"/"):  # a repository of its own
                found.nested.add(rest[:-1])
            else:
                found.others.add(rest)
        elif tag in b"Ss":
            if whole:
                found.skipped.add(rest.partition(b"\t")[2])
        elif whole:
            head, _, path = rest.partition(b"\t")
            mode, oid, stage = head.split(b" ")
            if tag != b"H":
                found.doubtful.add(path)
            if stage != b"0":
                found.unmerged[stage_name(path, stage)] = TreeEntry(mode, oid)
            else:
                found.indexed[path] = TreeEntry(mode, oid)
        else:
            found.doubtful.add(rest)
    return found


def _put(file: Path, content: bytes) -> None:
    if _read(file) == content and file.exists():
        return
    temporary = file.with_name(f"{file.name}.{os.urandom(6).hex()}")
    temporary.write_bytes(content)
    temporary.replace(file)


def _read(file: Path) -> bytes:
    return read_bounded(file)[0]
