"""The agents, slash commands and MCP servers of trusted bundles (plugins of other agents)."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard import evolve
from pegboard.app import UserFolders
from pegboard.unstable import read_bounded
from pegboard_plugins.foreignfiles.claudefolder import ClaudeSetup, Definition, read_definition
from pegboard_plugins.shared.frontend import Bundle, read_bundles


class BundleParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of all bundles: agents and commands, and servers in the configuration's form."""

    setup: ClaudeSetup
    servers: Mapping[str, dict[str, Any]]


def read_parts(places: UserFolders, worktree: Path, trusted: Mapping[Path, bytes]) -> BundleParts:
    """Return the parts of the trusted bundles; blocks.

    Of two servers with the same name, that of the earlier bundle counts.
    """
    bundles = read_bundles(places, worktree, trusted)
    setups = [read_bundle_setup(bundle) for bundle in bundles.active]
    servers: dict[str, dict[str, Any]] = {}
    for bundle in bundles.active:
        servers = {**bundle.servers, **servers}
    setup = ClaudeSetup(
        agents=tuple(agent for each in setups for agent in each.agents),
        commands=tuple(command for each in setups for command in each.commands),
        withheld={name: tools for each in setups for name, tools in each.withheld.items()},
        notes=(*bundles.problems, *(note for each in setups for note in each.notes)),
    )
    return BundleParts(setup=setup, servers=servers)


def read_bundle_setup(bundle: Bundle) -> ClaudeSetup:
    """Return the agents and commands of a bundle, renamed to `BUNDLE:NAME`; reads files."""
    found = ClaudeSetup(notes=tuple(f"bundle {bundle.name}: {note}" for note in bundle.notes))
    for file in _definitions(bundle):
        content, why = read_bounded(file.path)
        root = str(bundle.root).encode()
        read = read_definition(file, content.replace(b"${CLAUDE_PLUGIN_ROOT}", root), why)
        found.agents += tuple(_named(bundle, each) for each in read.agents)
        found.withheld = {
            **found.withheld,
            **{f"{bundle.name}:{name}": tools for name, tools in read.withheld.items()},
        }
        found.commands += tuple(_named(bundle, each) for each in read.commands)
        place = f"bundle {bundle.name}, {file.path.relative_to(bundle.root)}"
        is_used = bool(read.agents or read.commands)
        for note in read.notes:
            parts = map(_with_reason, note.split(", ")) if is_used else (note,)
            found.notes += tuple(f"{place}: {part}" for part in parts)
    return found


def _with_reason(part: str) -> str:
    """Return a line about an agent's or command's setting without effect, with the reason."""
    is_model = part.startswith("model ")
    why = "the session's model answers" if is_model else "Pegboard has nothing like it"
    return f"{part} is not honoured: {why}"


def _named(bundle: Bundle, part: Any) -> Any:  # noqa: ANN401 - an agent or a command
    return evolve(part, name=f"{bundle.name}:{part.name}")


def _definitions(bundle: Bundle) -> Iterator[Definition]:
    for kind, places in (("agents", bundle.agents), ("commands", bundle.commands)):
        for place in places:
            for path in [place] if place.is_file() else sorted(place.rglob("*.md")):
                below = path.relative_to(place.parent if place.is_file() else place)
                name = below.with_suffix("").as_posix().replace("/", ":")
                yield Definition(kind=kind, name=name, path=path)
