"""The imported code of installed plugins, and its changes on disk."""

import asyncio
import importlib
import sys
from collections.abc import Collection, Iterator
from importlib.metadata import Distribution, distributions
from pathlib import Path
from types import FrameType, FunctionType, ModuleType
from typing import NamedTuple

GROUP = OWN = "pegboard"
MOST_FILES = 2000
"""The maximum number of files of one package that are checked."""
_File = tuple[int, int, int]


class _Code(NamedTuple):
    """An installed distribution with plugins: its version, packages, and the state of its files."""

    version: str
    packages: tuple[str, ...]
    files: dict[Path, _File]


class InstalledCode:
    """The code of installed plugins, which is imported again after an update if possible."""

    def __init__(self) -> None:
        self._known: dict[str, _Code] = {}
        self._looking: asyncio.Task[None] | None = None
        self.changes: tuple[str, ...] = ()
        """What the last `renew` did, and which change needs a restart, a line each."""

    def look(self) -> None:
        """Record the state of the plugins' files in a thread, after the plugins are imported."""
        self._looking = asyncio.create_task(asyncio.to_thread(_note, self._known))

    async def renew(self) -> None:
        """Drop modules that changed on disk, so that the next import loads the new code.

        No App may be open. A change that cannot be loaded is reported again on the next call.
        """
        if self._looking is not None:
            await self._looking
        self.changes = tuple(await asyncio.to_thread(lambda: [*_renewed(self._known)]))


def _note(known: dict[str, _Code]) -> None:
    """Add the installed distributions with plugins to `known`, unless they are already in it."""
    for name, now in _codes().items():
        before = known.get(name, now)
        known[name] = before._replace(files={**now.files, **before.files})


def _renewed(known: dict[str, _Code]) -> Iterator[str]:
    """Drop the modules of changed distributions, and yield a line about each change."""
    importlib.invalidate_caches()
    found = _codes()
    for name, before in known.items():
        now = found.get(name)
        files = {path: _state(path) for path in before.files}
        if now is None or (now.version, files) == (before.version, before.files):
            continue
        loaded = {each for each in tuple(sys.modules) if _is_in(each, before.packages)}
        if name == OWN or (obstacle := _obstacle(loaded)):
            why = "" if name == OWN else f": {obstacle}"
            yield f"{name} {now.version} changed on disk{why}; restart the chat to use it"
            continue
        for each in loaded:
            del sys.modules[each]
        known[name] = now._replace(files=files)
        if loaded:
            yield f"{name} {now.version} is reloaded"


def _codes() -> dict[str, _Code]:
    """Return the distributions with plugins by name.

    Of two distributions with one name, the first is returned. For Pegboard itself only the version
    is recorded.
    """
    found: dict[str, _Code] = {}
    for each in distributions():
        name = (each.metadata["Name"] or "").lower().replace("_", "-")
        points = [point for point in each.entry_points if point.group == GROUP]
        if points and name not in found:
            modules = [point.module for point in points] if name != OWN else []
            packages = _packages(each, modules) if modules else ()
            files = {path: _state(path) for path in _files(packages)}
            found[name] = _Code(each.version, packages, files)
    return found


def _packages(distribution: Distribution, modules: Collection[str]) -> tuple[str, ...]:
    """Return the top-level packages of a distribution; namespace folders are left out."""
    files = [path for path in distribution.files or () if path.suffix == ".py"]
    tops = {path.parts[0].removesuffix(".py") for path in files if path.parts[0].isidentifier()}
    tops |= {path.stem for path in files if len(path.parts) == 1}
    named = {_outermost(module) for module in modules}
    return tuple(sorted(named | {top for top in tops if _file(top) is not None}))


def _outermost(module: str) -> str:
    """Return a module's outermost package that has a file, so no namespace package."""
    parts = module.split(".")
    above = (".".join(parts[:end]) for end in range(1, len(parts)))
    return next((name for name in above if _file(name) is not None), module)


def _file(module: str) -> Path | None:
    file = getattr(sys.modules.get(module), "__file__", None)
    return Path(file) if file else None


def _files(packages: Collection[str]) -> Iterator[Path]:
    """Yield the packages' source files, including those of modules that are not imported yet."""
    names = [each for each in tuple(sys.modules) if _is_in(each, packages)]
    yield from filter(None, map(_file, names))
    for package in filter(None, map(_file, packages)):
        if package.name == "__init__.py":
            more = package.parent.rglob("*.py")
            yield from (path for _, path in zip(range(MOST_FILES), more, strict=False))


def _state(path: Path) -> _File:
    try:
        facts = path.stat()
    except OSError:  # it was removed
        return (0, 0, 0)
    return (facts.st_mtime_ns, facts.st_size, facts.st_ino)


def _obstacle(loaded: Collection[str]) -> str:
    """Return why the modules cannot be imported again in this process, or "" if they can."""
    for name in sorted(loaded):
        if (file := _file(name)) is not None and file.suffix != ".py":
            return f"{name} is compiled"
    for frame in sys._current_frames().values():  # noqa: SLF001 - the only way to see threads
        step: FrameType | None = frame
        while step is not None:
            if step.f_globals.get("__name__") in loaded:
                return "a thread of it still runs"
            step = step.f_back
    above = {name.rpartition(".")[0] for name in loaded}
    for name, module in tuple(sys.modules.items()):
        if name in loaded or name in above or type(module) is not ModuleType:
            continue
        if any(_home(value) in loaded for value in tuple(vars(module).values())):
            return f"{name} uses it"
    return ""


def _home(value: object) -> str:
    """Return the module of a function or class, or a module's own name; "" for other values."""
    if type(value) is ModuleType:
        return value.__name__
    if type(value) is FunctionType or issubclass(type(value), type):
        return str(vars(value).get("__module__") or getattr(value, "__module__", ""))
    return ""


def _is_in(module: str, packages: Collection[str]) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in packages)
