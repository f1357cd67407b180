"""Protocols of what a plugin may bring as a whole: snapshots, a sandbox, a way to compact.

The engine decides when, stores the outcome, and refuses one that gains too little. What came
before stays in the database; only the model's view of the session begins anew.

The core says when to take one and whose work a change is; a plugin keeps the states. A state has
an id of the plugin's own, which is stored with the steps of a session.

The core says that processes are to be enclosed, and opens no App where no plugin does it. A plugin
decides what a process may reach; a sandbox, of that plugin or another, turns that into a command
line. One that cannot enforce all of it says so, and is not used.
"""

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

import msgspec

from pegboard.contract.context import SessionView
from pegboard.paths import Places
from pegboard.schema.config import Config
from pegboard.schema.message import Turn
from pegboard.schema.part import PatchPart, Staged, Unkept
from pegboard.schema.session import FileDiff, Todo
from pegboard.workspace import Workspace


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """A change from one state of the files to another, by their ids."""

    before: str
    after: str


def ways_of(patch: PatchPart) -> dict[str, Way]:
    """The trees that a patch refers to, of files and of the index, by a name for each pair."""
    index = {
        f"{patch.id}_index{number}": Way(before=each.hash, after=each.after)
        for number, each in enumerate(patch.staged)
    }
    return {patch.id: Way(before=patch.hash, after=patch.after or patch.hash), **index}


class StagedWay(NamedTuple):
    """A change of a path in git's index; `head` was the commit before it."""

    before: str
    after: str
    head: str


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """A file that was not restored: `changed` by somebody since, its content `lost`, or `failed`.

    No copy is kept of a `secret`, so it can be neither restored nor, once removed, brought back.
    Of others no snapshot was made. Of some only the entry in git's index was not restored: it was
    `restaged` by somebody, `committed`, its staged content is gone from the repository
    (`unstaged`), or the index was `locked`.
    """

    path: Path
    reason: (
        Literal["changed", "lost", "failed", "secret"]
        | Literal["restaged", "committed", "unstaged", "locked"]
        | Unkept
    )


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome for each file; those that were already in the wanted state are in neither.

    `unknown` says why the changes of some steps are unknown, else it is "".
    """

    changed: tuple[Path, ...] = ()
    left: tuple[Left, ...] = ()
    unknown: str = ""


class Writing(Protocol):
    """A call that may write files, while it runs."""

    def tell(self, path: Path) -> None:
        """The call has written this file."""
        ...

    def intend(self, path: Path) -> None:
        """The call is about to write this file; a copy is made if no state has it. It blocks."""
        ...

    def paused(self) -> AbstractContextManager[None]:
        """A block in which the call waits: changes meanwhile are not its work."""
        ...


class Snapshots(Protocol):
    """The states of the files of one worktree; one object per App.

    A method that is not `async` returns at once, but for `Writing.intend`.
    """

    refused: str
    """Why there are none (a home folder, too many files, no git), else ""."""

    @property
    def current(self) -> str | None:
        """The newest state, if nothing can have been written since; else None."""
        ...

    def lineage(self, session_id: str, parent_id: str | None) -> tuple[str, ...]:
        """The session and its ancestors: a subagent's changes are its callers' work, too."""
        ...

    def writing(self, owners: tuple[str, ...], *, tells: bool) -> AbstractContextManager[Writing]:
        """A block for a call that may write files, for a session and its ancestors.

        With `tells` the call names the files that it writes. If it names none, or without
        `tells`, the next snapshot looks at all files.
        """
        ...

    async def track(self, *, fresh: bool = False) -> str | None:
        """Take a snapshot: the id of the current state, None where snapshots are refused.

        It costs nothing when nothing can have been written; `fresh` looks anyway, for changes of
        the user. Cancelling the caller does not stop it.
        """
        ...

    def claimed(self, session_id: str) -> bool:
        """Whether `take` or `take_staged` has something."""
        ...

    def take(self, session_id: str) -> tuple[Path, ...]:
        """The files that the session has changed, each given once."""
        ...

    def take_staged(self, session_id: str) -> tuple[Staged, ...]:
        """The session's changes of git's index, each given once."""
        ...

    async def copied(self, session_id: str) -> Mapping[Path, Way]:
        """The changes of files that no state has, but of which copies are kept; before `take`."""
        ...

    def unkept(self, files: Iterable[Path]) -> dict[Path, Unkept]:
        """The files of which no states are kept, with the reason."""
        ...

    async def keep(self, session_id: str, step: str, way: Way) -> None:
        """Keep both states of a step from being collected, until the session is forgotten."""
        ...

    async def keep_copies(self, session_id: str, ways: Mapping[str, Way]) -> None:
        """Keep the states for a copy of a session; `ways` are by step.

        States that are not here, as after an import, cannot be kept.
        """
        ...

    async def forget(self, session_id: str) -> None:
        """Release the states of a session, which can then not be reverted."""
        ...

    async def diff(self, ways: Mapping[Path, Way]) -> tuple[FileDiff, ...]:
        """The changes of files as unified diffs; files without a difference are left out.

        States that are no longer kept are left out.
        """
        ...

    async def restore(self, ways: Mapping[Path, Way]) -> Restored:
        """Restore files that are in their state of `before` to their state of `after`.

        A file in neither state has been changed by somebody: it is left, and so is one whose
        state is no longer kept. A file is deleted only where `after` has none.
        """
        ...

    async def restage(self, ways: Mapping[str, StagedWay]) -> tuple[Left, ...]:
        """Restore paths of git's index, as git names them; those that were not restored."""
        ...

    async def collect(self, directories: Collection[Path]) -> int:
        """Delete states that are too old, beyond the quota, or of a directory without a session.

        `directories` are those that have one, of all projects. The answer is the freed bytes.
        """
        ...

    async def aclose(self) -> None:
        """Stop all work; an unfinished snapshot is given up."""
        ...


Enclosing = Literal["workspace", "strict"]
"""The levels at which processes are enclosed, from the loosest to the strictest."""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a process of a tool may reach; all paths are absolute, with links resolved.

    It may write below `worktree`, but for `protected`, and below `temp`, which is its folder for
    temporary files. A `protected` path may be missing, and must not come to be. It may read
    everything but `hidden`; `visible` may be read though it lies in something hidden. It reaches
    no socket that has a path, no other process and, without `network`, no network; the abstract
    sockets of the machine count as network.

    `hosts` is a list of hosts that it reaches without `network`, and no others: `proxy` is the
    socket at which a proxy for HTTP and tunnels holds it to them. What the process is started
    with says where that is, in the variables that programs know: HTTPS_PROXY and the like.

    `strict` is more: the folders of users (`home`, `/home`, `/root`) are empty but for what is
    named above, and process, IPC and network namespaces are its own.

    `keep` is a folder for what the sandbox itself has to remember; it is hidden.
    """

    level: Enclosing
    worktree: Path
    protected: tuple[Path, ...]
    hidden: tuple[Path, ...]
    visible: tuple[Path, ...]
    home: Path
    temp: Path
    keep: Path
    network: bool = False
    hosts: tuple[str, ...] = ()
    proxy: Path | None = None


class Sandbox(Protocol):
    """A way to enclose processes; the first one that can enforce the policy is used."""

    name: str
    """What users know it as."""

    caveat: str
    """What it leaves open that is no part of the policy, to be shown with the level; or empty."""

    def why_not(self, policy: SandboxPolicy) -> str | None:
        """Why it cannot enforce all of the policy on this machine, None if it can.

        Called in a worker thread when the App opens; it may try it out with a process.
        """
        ...

    def enclose(
        self, argv: Sequence[str], cwd: Path, policy: SandboxPolicy
    ) -> AbstractContextManager[Sequence[str]]:
        """The command line that runs `argv` in `cwd` within the policy, and no further.

        The first of `argv` is an absolute path. The context lasts as long as the process; it is
        entered in a worker thread, and left by the event loop's, quickly. The process is started
        by the thread of the event loop, with input, output and process group as the caller wants
        them; when it ends, or is killed, all that it has started ends too as far as the machine
        allows that.

        :raises ToolError: when the policy cannot be held for this command; it is not run.
        """
        ...


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """Where processes are to be enclosed; `private` is what no tool may change unasked."""

    config: Config
    workspace: Workspace
    places: Places
    home: Path
    private: tuple[Path, ...]


class Enclosure(Protocol):
    """What encloses the processes of one App's tools."""

    @property
    def level(self) -> Enclosing:
        """How far it reaches."""
        ...

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that it lets through; none where it lets through all, or nothing."""
        ...

    @property
    def described(self) -> str:
        """The level with who holds it and what it means for the network, on one line."""
        ...

    def around(
        self, argv: Sequence[str], *, cwd: Path, search: str, reads: Iterable[Path] = ()
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """The command line that runs `argv` enclosed; the context lasts as long as the process.

        `search` is the PATH on which the program is looked for. `reads` are files and folders
        that it has to see wherever they are; what is missing is made as a folder.

        :raises ToolError: when there is no such program, or the policy cannot be held.
        """
        ...

    async def aclose(self) -> None:
        """End what goes to the network, and remove the processes' temporary files."""
        ...


class Encloser(Protocol):
    """What encloses the processes of Apps whose configuration has a `sandbox`."""

    async def open(self, site: Site) -> Enclosure:
        """What holds the processes of this App to the level of `site.config.sandbox`.

        :raises ConfigError: when nothing can hold it; the App does not open.
        """
        ...


class CompactionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A history that has to become shorter.

    `session.turns` are what the model sees now, after `chat_messages_transform`; so is `first`, the
    session's first prompt, also when it is out of the model's view already. `session.model` is
    the one that `ask` asks.
    `answering` are the ids of the prompts that wait for their answer: they stay whatever the
    compactor says. `prompt` asks for a summary, in the words that the `session_compacting` hook
    has left. `room_tokens` is about how much a text for `ask` may hold, `keep_tokens` how much
    may stay word for word. `auto` says that the window is full and not the user asked.

    `ask` gives the model's answer to a text, and shows it as it comes. It raises
    `ContextOverflowError` when the text is too long, and `ProviderError` when the model cannot
    be asked.
    """

    session: SessionView
    first: Turn | None
    answering: tuple[str, ...]
    todos: tuple[Todo, ...]
    prompt: str
    room_tokens: int
    keep_tokens: int
    auto: bool
    ask: Callable[[str], Awaitable[str]]


class Compaction(msgspec.Struct, frozen=True, kw_only=True):
    """The replacement of a history: a summary, and what stays word for word.

    `pinned` are texts that the model reads before the summary. `kept` are ids of turns of the
    view that follow it as they were; a turn keeps its tool calls with their results.
    """

    summary: str
    pinned: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class Compactor(Protocol):
    """A way to shorten a history; the newest one that plugins register is used."""

    async def compact(self, request: CompactionRequest) -> Compaction:
        """The replacement of the history.

        Any error ends the turn with its text and leaves the history as it is. The engine waits
        ten minutes at most.
        """
        ...
