"""The enclosure of an App: what its tools' processes may access, and how they are started."""

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path

import msgspec

from pegboard import HookCalls, ToolError
from pegboard.errors import ConfigError
from pegboard.permissions import Ruleset
from pegboard.plugins import shield
from pegboard.processes import Enclosing, Network, Site
from pegboard.schema.session import PermissionRequest
from pegboard.unstable import autorun_files, home_secrets, read_bounded, way_down
from pegboard_plugins.sandbox.hookspecs import Sandbox, SandboxPolicy, register_sandboxes
from pegboard_plugins.sandbox.inside import stays_inside
from pegboard_plugins.sandbox.proxy import FilteringProxy

WAY_OUT = '`apt-get install bubblewrap` lets it be, sandbox = "off" does without'
_PROTECTED = (".pegboard", ".opencode", "pegboard.toml", "opencode.json", "opencode.jsonc")
"""In every folder from the worktree's root to the directory: what is read from there."""
_PROTECTED_AT_THE_ROOT = (".git", ".gitmodules", ".envrc", ".mcp.json", ".vscode")
_TOOLS = "tool"
_MACHINE_SECRETS = ("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-")
_SUBMODULE = re.compile(r"^[ \t]*path[ \t]*=(.*)$", re.MULTILINE)


class Walls:
    """The enclosure of an App's tool processes; created by a `Builder`."""

    def __init__(
        self,
        box: Sandbox,
        policy: SandboxPolicy,
        *,
        home: Path,
        secrets: Sequence[Path] = (),
        proxy: FilteringProxy | None = None,
    ) -> None:
        self._box = box
        self._home = home
        self._secrets = tuple(secrets)
        self._policy = policy
        self._proxy = proxy

    @property
    def level(self) -> Enclosing:
        """The level of the enclosure."""
        return self._policy.level

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts that can be reached; empty if all hosts or none can be reached."""
        return self._policy.hosts

    @property
    def described(self) -> str:
        """A line with the sandbox level, the sandbox in use, and the access to the network."""
        network = "network" if self._policy.network else "no network"
        if count := len(self.hosts):
            network = f"network to {count} host{'s' if count > 1 else ''}"
        caveat = f"; {self._box.caveat}" if self._box.caveat else ""
        return f"{self.level} ({self._box.name}, {network}{caveat})"

    @asynccontextmanager
    async def around(
        self,
        argv: Sequence[str],
        *,
        cwd: Path,
        search: str,
        reads: Iterable[Path] = (),
        network: Network | None = None,
    ) -> AsyncIterator[Sequence[str]]:
        """Yield the command line that runs `argv` enclosed, for the lifetime of the process.

        `search` is the PATH for the program. `reads` are files and folders that the process must
        see anywhere; a missing one is created as a folder. `network` replaces the setting for this
        process.

        :raises ToolError: when the program is missing, or the policy cannot be enforced.
        """
        async with self._reaching(network) as policy:
            with ExitStack() as stack:
                # Milliseconds: what a thread has begun has to be known before it can be undone.
                yield await shield(
                    asyncio.to_thread(self._entered, stack, policy, argv, cwd, search, tuple(reads))
                )

    @asynccontextmanager
    async def _reaching(self, network: Network | None) -> AsyncIterator[SandboxPolicy]:
        """Yield the policy with this access to the network; None means the configured access.

        A list of hosts starts a proxy for this one process.
        """
        if network is None:
            yield self._policy
            return
        hosts = () if isinstance(network, bool) else network
        proxy = FilteringProxy(hosts) if hosts else None
        try:
            policy = msgspec.structs.replace(
                self._policy,
                network=network is True and self.level != "strict",
                hosts=hosts,
                proxy=await proxy.open() if proxy else None,
            )
            if hosts and (reason := await asyncio.to_thread(self._box.why_not, policy)):
                raise ToolError(f"the hosts {', '.join(hosts)} cannot be held here: {reason}")
            yield policy
        finally:
            if proxy is not None:
                await proxy.aclose()

    async def contains(self, request: PermissionRequest, rulesets: Sequence[Ruleset]) -> bool:
        """Return whether a command stays in the project and no permission rule asks about it."""
        return await asyncio.to_thread(
            stays_inside, request, rulesets, worktree=self._policy.worktree, home=self._home
        )

    async def aclose(self) -> None:
        """Close the enclosure's proxy, and remove the temporary files of processes."""
        if self._proxy is not None:
            await self._proxy.aclose()
        await asyncio.to_thread(shutil.rmtree, self._policy.temp, ignore_errors=True)

    def _entered(  # noqa: PLR0913, PLR0917 - for `to_thread`
        self,
        stack: ExitStack,
        policy: SandboxPolicy,
        argv: Sequence[str],
        cwd: Path,
        search: str,
        reads: Iterable[Path],
    ) -> Sequence[str]:
        name = argv[0] if "/" in argv[0] else shutil.which(argv[0], path=search)
        if name is None or not cwd.is_dir():
            why = "there is no such program" if name is None else "there is no such directory"
            raise ToolError(f"cannot run {argv[0]!r} in {cwd}: {why}")
        program = cwd / name
        seen = (*policy.visible, *map(_made, reads), program, program.resolve())
        hidden = (*policy.hidden, *_there(self._secrets))  # a key may have come since
        policy = msgspec.structs.replace(
            policy,
            visible=tuple(dict.fromkeys(seen)),
            hidden=tuple(dict.fromkeys(hidden)),
        )
        return stack.enter_context(self._box.enclose((str(program), *argv[1:]), cwd, policy))


def _made(path: Path) -> Path:
    """Return the path with links resolved; create a missing path as a folder."""
    with suppress(OSError):  # what cannot be made is not seen
        if not path.exists():
            path.mkdir(parents=True, mode=0o700)
    return path.resolve()


class Builder:
    """A builder that encloses processes in the first sandbox that can enforce the level."""

    def __init__(self, hooks: HookCalls) -> None:
        self._hooks = hooks

    async def open(self, site: Site) -> Walls:
        """Return the enclosure of this App's processes.

        :raises ConfigError: when no sandbox can enforce the configured level.
        """
        policy = await asyncio.to_thread(policy_of, site)
        proxy = FilteringProxy(policy.hosts) if policy.hosts else None
        try:
            if proxy is not None:
                policy = msgspec.structs.replace(policy, proxy=await proxy.open())
            box = await self._able(policy)
            secrets = _secrets(site, site.home.resolve())
            return Walls(box, policy, home=site.home, secrets=secrets, proxy=proxy)
        except BaseException:
            if proxy is not None:
                await proxy.aclose()
            shutil.rmtree(policy.temp, ignore_errors=True)
            raise

    async def _able(self, policy: SandboxPolicy) -> Sandbox:
        reasons = []
        for answer in await self._hooks.collect(register_sandboxes):
            box = answer.value
            reason = await asyncio.to_thread(box.why_not, policy)
            if reason is None:
                return box
            reasons.append(f"{box.name}: {reason}")
        why = "; ".join(reasons) or "no plugin brings a sandbox"
        raise ConfigError(f'"{policy.level}" cannot be held here ({why}): {WAY_OUT}', key="sandbox")


def policy_of(site: Site) -> SandboxPolicy:
    """Return the policy for processes; create temporary and data folders that it names.

    A data folder that appears later could not be hidden from a running process.

    :raises ConfigError: when the project contains the home folder, which then has no protection.
    """
    level, root, home = site.config.sandbox, site.workspace.worktree, site.home.resolve()
    assert level != "off"
    if home.is_relative_to(root):
        raise ConfigError(
            f'the project {root} holds your home folder, so "{level}" would protect nothing:'
            ' work in a folder of its own, or set sandbox = "off"',
            key="sandbox",
        )
    for folder in site.places.kept:
        with suppress(OSError):  # then nobody can keep anything there
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    hidden = _there(_secrets(site, home))
    network = site.config.sandbox_network
    return SandboxPolicy(
        level=level,
        worktree=root,
        protected=_protected(site),
        hidden=hidden,
        visible=_our_code(home, hidden),
        home=home,
        temp=Path(tempfile.mkdtemp(prefix="pegboard-sandbox-")).resolve(),
        keep=site.places.state.resolve() / "sandbox",
        network=network is True and level != "strict",
        hosts=() if isinstance(network, bool) else network,
    )


def _protected(site: Site) -> tuple[Path, ...]:
    """Return the paths, existing or not, that decide which programs run, to be made read-only."""
    root, directory = site.workspace.worktree, site.workspace.directory
    found = [root / name for name in _PROTECTED_AT_THE_ROOT]
    found += [folder / name for folder in way_down(root, directory) for name in _PROTECTED]
    found += [root / _TOOLS, directory / _TOOLS, *autorun_files(root)]
    named = (Path(path).resolve() for path in site.config.plugin_paths)
    found += [path for path in named if os.path.exists(path)]  # noqa: PTH110 - likewise below
    found += [root / path / ".git" for path in _submodules(root)]
    found += [path for path in site.private if path.exists()]
    inside = (path for path in found if path != root and path.is_relative_to(root))
    return tuple(dict.fromkeys(inside))


def _submodules(root: Path) -> list[str]:
    """Return the existing submodule folders that `.gitmodules` names."""
    text = read_bounded(root / ".gitmodules")[0].decode(errors="replace")
    named = (path.strip() for path in _SUBMODULE.findall(text))
    return [path for path in named if os.path.exists(root / path / ".git")]  # noqa: PTH110 - no error for a name too long


def _secrets(site: Site, home: Path) -> tuple[Path, ...]:
    """Return the paths to hide, existing or not: keys, and all files of Pegboard."""
    own = [path for path in site.private if path not in site.workspace.git_dirs]
    machine = (Path(path) for path in _MACHINE_SECRETS)
    return (*home_secrets(home), *own, *machine)


def _there(paths: Iterable[Path]) -> tuple[Path, ...]:
    """Return the paths that exist now, with links resolved."""
    found = (path.resolve() for path in paths)
    return tuple(dict.fromkeys(path for path in found if os.path.exists(path)))  # noqa: PTH110 - no error where it may not look


def _our_code(home: Path, hidden: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders with Pegboard's own programs, which may be below the home folder."""
    places = (sys.prefix, sys.base_prefix, *(path for path in sys.path[1:] if path.startswith("/")))
    found = dict.fromkeys(Path(path).resolve() for path in places)
    return tuple(
        path
        for path in found
        if os.path.exists(path)  # noqa: PTH110 - likewise
        and not home.is_relative_to(path)
        and not any(each.is_relative_to(path) for each in hidden)
    )
