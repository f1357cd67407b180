"""The findings about other agents' files: the parts of a file, and what Pegboard makes of each."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from pegboard import Workspace
from pegboard_plugins.commandhooks.hookcommand import Product
from pegboard_plugins.commandhooks.hookfiles import read_hooks

State = Literal["acts", "trust", "hooks", "import", "cannot"]
"""Acts already, acts after trust in the code or in the hooks, is written by `pegboard import`, or
cannot be honoured."""
Setting = tuple[tuple[str, ...], Any]
"""A key of `pegboard.toml` by its parts, and its value; a list is added to."""


class ForeignFinding(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One part of another agent's file, what it becomes in Pegboard, and why parts are lost.

    An import writes the `settings`, and the `documents`, which are texts by their paths in the
    settings folder.
    """

    found: str
    file: str
    becomes: str | None
    state: State
    reason: str | None = None
    is_project: bool = False
    settings: tuple[Setting, ...] = ()
    documents: Mapping[str, str] = {}

    @property
    def is_lost(self) -> bool:
        """Whether this part of a file has no effect in Pegboard."""
        return self.state == "cannot"


class BrokenFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file that cannot be read, and the reason why."""

    file: str
    reason: str


NEEDS_MCP = "needs `pip install 'pegboard[mcp]'`"
Found = list[ForeignFinding | BrokenFile]


class Home(msgspec.Struct, frozen=True, kw_only=True):
    """The folders of the user and the project; `has_mcp` means that MCP servers can be used."""

    home: Path
    workspace: Workspace
    has_mcp: bool

    @property
    def projects(self) -> tuple[Path, ...]:
        """The folders of the project in which settings of other agents may lie."""
        folders = (self.workspace.worktree, self.workspace.directory)
        return tuple(each for each in dict.fromkeys(folders) if each != self.home)

    def short(self, path: Path) -> str:
        """Return a path relative to the project, with `~` for the home folder, or unchanged."""
        for root, sign in ((self.workspace.worktree, ""), (self.home, "~/")):
            if path.is_relative_to(root):
                return f"{sign}{path.relative_to(root)}"
        return str(path)

    def row(
        self, found: str, path: Path, becomes: str | None, state: State = "acts", reason: str = ""
    ) -> ForeignFinding:
        """Return a finding for which an import writes nothing."""
        return ForeignFinding(
            found=found, file=self.short(path), becomes=becomes, state=state, reason=reason or None
        )


Survey = Callable[[Home], Found]


def keys_of(
    home: Home,
    file: Path,
    table: Mapping[str, Any],
    reasons: Mapping[str, str],
    known: frozenset[str],
) -> Found:
    """Return a finding for each key of a settings table that has no effect and is not `known`."""
    is_project = not file.is_relative_to(home.home) or file.is_relative_to(home.workspace.worktree)
    return [
        ForeignFinding(
            found=key,
            file=home.short(file),
            becomes=None,
            state="cannot",
            reason=reasons.get(key, "Pegboard has nothing like it"),
            is_project=is_project,
        )
        for key in table
        if key not in known
    ]


def hooks_of(home: Home, product: Product, file: Path, *, is_project: bool) -> list[ForeignFinding]:
    """Return a finding for each event with hooks, and for each ignored part of the hooks."""
    read = read_hooks(product, file, is_project=is_project)
    if read is None:
        return []
    state: State = "hooks" if is_project else "acts"
    events = dict.fromkeys(each.name for each in read.hooks)
    found = [home.row(f"hook {event}", file, "command hook", state) for event in events]
    reasons = [note.removeprefix(f"{file}: ") for note in read.notes]
    return found + [home.row("hooks", file, None, "cannot", reason) for reason in reasons]


def servers_of(home: Home, file: Path, table: object, *, is_project: bool) -> list[ForeignFinding]:
    """Return a finding for each MCP server of a table.

    Values of variables and headers are left out, because they may be secrets.
    """
    found: list[ForeignFinding] = []
    for name, entry in table.items() if isinstance(table, Mapping) else ():
        if not isinstance(entry, Mapping):
            continue
        server, left_out = _server(entry)
        what = f"MCP server {name}"
        if not server or not home.has_mcp:
            reason = NEEDS_MCP if server else "neither command nor address"
            found.append(home.row(what, file, None, "cannot", reason))
            continue
        reason = f"{', '.join(left_out)} left out: set them yourself" if left_out else ""
        found.append(
            ForeignFinding(
                found=what,
                file=home.short(file),
                becomes=f"mcp.{name}",
                state="import",
                reason=reason or None,
                is_project=is_project,
                settings=((("mcp", str(name)), server),),
            )
        )
    return found


def _server(entry: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return an MCP server in Pegboard's form, and the names of values that may be secret."""
    server: dict[str, Any] = {}
    url = entry.get("httpUrl") or entry.get("url")
    if isinstance(entry.get("command"), str):
        args = entry.get("args")
        server["command"] = [entry["command"], *map(str, args if isinstance(args, list) else ())]
    elif isinstance(url, str):
        server["url"] = url
    left_out = [
        f"{key}.{name}"
        for key in ("env", "headers", "http_headers")
        for name in (entry[key] if isinstance(entry.get(key), Mapping) else ())
    ]
    variable = entry.get("bearer_token_env_var")
    if isinstance(variable, str) and server:
        server["headers"] = {"Authorization": f"Bearer {{env:{variable}}}"}
    return server, left_out
