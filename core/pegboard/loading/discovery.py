"""The discovery of plugins in installed distributions, and the import of plugins.

The metadata of a distribution names the versions of Pegboard that it needs.
"""

import importlib
import inspect
import re
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from operator import attrgetter, eq, ge, gt, le, lt, ne
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any, Literal, TypeVar

import msgspec

from pegboard.contract.plugin import PROJECT
from pegboard.errors import SignatureError
from pegboard.loading.imports import Imports
from pegboard.trust.projectcode import CodeFile, read_bounded

MARK = f"{PROJECT}_impl"
"""What pluggy marks an implementation with."""
GROUP = "pegboard"
OWN = "pegboard"
"""The distribution of Pegboard itself."""
_METADATA = (".dist-info", ".egg-info")
_SETTLED_NS = 2_000_000_000
"""A folder that changed since then may change once more without another time of its change."""
_T = TypeVar("_T")
IMPORT_LIMIT_S = 30.0
"""How long the import of a plugin may take; the slowest known library takes 10 s under load."""
_AGAIN_S = 1.0
"""Code that catches the end of its import gets it once more after this time."""


@dataclass(frozen=True, slots=True, order=True)
class EntryPoint:
    """An entry point: the name that a distribution gives to a `module` or `module:attribute`.

    `version` is the version of the distribution, "" if unknown. `folder` is the entry of `sys.path`
    that contains the distribution. `metadata` is the path of its metadata file, "" if it has none.
    """

    name: str
    value: str
    distribution: str
    version: str
    folder: str = field(default="", compare=False)
    metadata: str = field(default="", compare=False)


ProblemKind = Literal[
    "import",
    "name",
    "clash",
    "empty",
    "signature",
    "unmarked",
    "hook",
    "options",
    "order",
    "version",
    "refusal",
    "replaced",
]


class PluginProblem(msgspec.Struct, frozen=True):
    """A problem of a plugin that the user should know; `text` is one line.

    The `kind` says what happened:

    - `replaced`: a tool replaces the tool with the same id of an earlier origin.
    - `options`: settings of a plugin are wrong, or belong to no plugin.
    - `order`: the orders that plugins ask for contradict each other.
    - `refusal`: an operation is refused, because the plugin that guards it is missing.
    - All other kinds: something was not loaded.

    `detail` is the traceback, "" without one.
    """

    kind: ProblemKind
    plugin: str
    text: str
    detail: str = ""

    @property
    def named(self) -> str:
        """The problem's text, with the plugin's name in front unless the text contains the name."""
        return self.text if self.plugin in self.text else f"{self.plugin}: {self.text}"


def entry_points(group: str = GROUP, path: Sequence[str] | None = None) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, sorted by name; `path` replaces `sys.path`.

    If a distribution occurs twice, the first one counts. Folders are read directly, in a few
    milliseconds instead of the 45 to 80 ms of `importlib.metadata`. Zip files are read by
    `importlib_metadata`.
    """
    seen: set[str] = set()
    found: list[EntryPoint] = []
    for entry in dict.fromkeys(sys.path if path is None else path):
        for name, version, text, metadata in _scanned(entry or "."):
            if name in seen:
                continue
            seen.add(name)
            found.extend(
                EntryPoint(point, value, name, version, entry, metadata)
                for point, value in _parsed(text, group)
            )
    return tuple(sorted(found))


def attempt(load: Callable[[], _T], where: str = "", *, file: str = "") -> _T | PluginProblem:
    """Return the result of `load`, or a `PluginProblem` if it raises.

    The text of the problem begins with `where` and the line of the plugin's `file` that raised. The
    function must end within `IMPORT_LIMIT_S`, except where no timer can be set.
    """
    try:
        with _limited():
            return load()
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything
        line = next(iter(_describe(error, file).strip().splitlines()), "")
        place = _placed(where, file, error)
        text = f"{place}: {line}" if place else line
        kind: ProblemKind = "signature" if isinstance(error, SignatureError) else "import"
        return PluginProblem(kind, "", text, traceback.format_exc())


class _ImportLimitError(BaseException):
    """The error for an import that takes too long; no `except Exception` catches it."""


@contextmanager
def _limited() -> Iterator[None]:
    """Raise an error in the block if the block takes longer than `IMPORT_LIMIT_S`.

    There is no limit outside the main thread, or if other code uses the alarm signal.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        yield
        return
    signal.signal(signal.SIGALRM, _end_import)
    signal.setitimer(signal.ITIMER_REAL, IMPORT_LIMIT_S, _AGAIN_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def _end_import(_number: int, frame: FrameType | None) -> None:
    place = f", at {frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""
    raise _ImportLimitError(
        f"its import did not end within {IMPORT_LIMIT_S:g} s{place}; PEGBOARD_DISABLE_PLUGINS "
        "with its name, or `pegboard plugins disable`, leaves it out"
    )


def _describe(error: BaseException, file: str) -> str:
    match error:
        case _ImportLimitError():
            return str(error)
        case SignatureError():
            return str(error).removeprefix(f"plugin {error.plugin}: ")
        case ModuleNotFoundError():
            return f"{error}: install what it needs, or disable it"
        case SyntaxError():
            source = f": `{error.text.strip()}`" if error.text else ""
            name = error.filename or file
            place = f" in {name}, line {error.lineno}" if name != file else ""
            return f"SyntaxError{place}: {error.msg}{source}"
    return f"{type(error).__name__}: {error}"


def _placed(where: str, file: str, error: BaseException) -> str:
    """Return `where` with the line of the file that raised; a syntax error also has a column."""
    line, column = 0, 0
    if isinstance(error, SyntaxError) and error.filename == file:
        line, column = error.lineno or 0, error.offset or 0
    step = error.__traceback__
    while step is not None and not column:
        if step.tb_frame.f_code.co_filename == file:
            line = step.tb_lineno
        step = step.tb_next
    if not line:
        return where
    place = f"line {line}, column {column}" if column else f"line {line}"
    return f"{where}, {place}" if where else place


def marked(plugin: object) -> Iterator[tuple[str, Callable[..., object]]]:
    """Yield the name and function of each `@hookimpl` of a plugin, without running properties."""
    names = vars(plugin) if isinstance(plugin, ModuleType) else dir(plugin)
    for name in tuple(names):
        if is_marked(plugin, name):
            yield name, getattr(plugin, name)


def owned(plugin: object, fits: Callable[[object], bool]) -> Iterator[tuple[str, Any]]:
    """Yield name and value of each object, once, that the module itself defines and that `fits`."""
    if not isinstance(plugin, ModuleType):
        return
    seen: set[int] = set()
    for name, value in tuple(vars(plugin).items()):
        is_own = fits(value) and getattr(value, "__module__", None) == plugin.__name__
        if is_own and id(value) not in seen:
            seen.add(id(value))
            yield name, value


def is_provider(value: object) -> bool:
    """Return whether the class of the object has the methods of a provider; runs no property."""
    return all(callable(getattr(type(value), name, None)) for name in ("stream", "resolve"))


def is_marked(plugin: object, name: str) -> bool:
    """Return whether the plugin's attribute `name` is a function marked with `@hookimpl`."""
    if isinstance(plugin, ModuleType):
        static = vars(plugin).get(name)  # a tenth of the time of the other
    else:
        static = inspect.getattr_static(plugin, name, None)
    plain = getattr(static, "__func__", static)
    return inspect.isfunction(plain) and hasattr(plain, MARK)


def load_entry_point(entry: EntryPoint, host: str = "") -> object | PluginProblem:
    """Import the plugin of an entry point, or return the problem.

    `host` is Pegboard's version. If it is given, the version that the distribution requires is
    checked first, because the installer may not have checked it.
    """
    if host and entry.metadata and (clause := unmet(Path(entry.metadata), host)):
        who = f"{entry.distribution} {entry.version}"
        text = f"{who} needs pegboard{clause}, and this is {host}"
        return PluginProblem("version", "", text)
    module, _, attribute = entry.value.partition(":")
    if not attribute:
        return load_module(module.strip())
    get = attrgetter(attribute.strip())
    return attempt(lambda: get(importlib.import_module(module.strip())))


def load_module(name: str) -> object | PluginProblem:
    """Import the plugin with this name, or return the problem."""
    return attempt(lambda: importlib.import_module(name))


def load_file(file: CodeFile, imports: Imports) -> object | PluginProblem:
    """Run a file as a module and return this module, or a problem that names the failing line."""
    where = str(file.path) if file.kind == "plugin" else ""
    if file.error:
        return PluginProblem("import", "", f"{file.path}: {file.error}")
    return attempt(lambda: imports.load(file), where, file=str(file.path))


def _scanned(entry: str) -> tuple[tuple[str, str, str, str], ...]:
    """Return the distributions in an entry of `sys.path`, cached until the folder changes."""
    try:
        changed_ns = Path(entry).stat().st_mtime_ns
    except OSError:
        return ()
    settled = time.time_ns() - changed_ns > _SETTLED_NS
    return _read_once(entry, changed_ns) if settled else tuple(_distributions(entry))


@lru_cache(maxsize=64)
def _read_once(entry: str, _changed_ns: int) -> tuple[tuple[str, str, str, str], ...]:
    return tuple(_distributions(entry))


def _distributions(entry: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield each distribution's name, version, `entry_points.txt` content and metadata path."""
    folder = Path(entry)
    if not folder.is_dir():
        if folder.exists():
            yield from _elsewhere(entry)
        return
    try:
        found = sorted(path for path in folder.iterdir() if path.name.endswith(_METADATA))
    except OSError:  # a folder that may not be read has nothing for us
        return
    for path in found:
        yield _described(path)


def _described(folder: Path) -> tuple[str, str, str, str]:
    """Return name, version, entry points and metadata path from a metadata folder."""
    name, _, version = folder.stem.partition("-")
    is_egg = folder.suffix == ".egg-info"
    metadata = folder / ("PKG-INFO" if is_egg else "METADATA")
    if is_egg:
        version = next(headers(metadata, "Version"), "") or version.partition("-py")[0]
    return _normalised(name), version, _read(folder / "entry_points.txt"), str(metadata)


def headers(metadata: str | Path, name: str) -> Iterator[str]:
    """Yield the values of a header in a distribution's metadata."""
    for line in _read(Path(metadata)).partition("\n\n")[0].splitlines() if metadata else ():
        key, _, value = line.partition(":")
        if key.lower() == name.lower():
            yield value.strip()


def _read(path: Path) -> str:
    # Most distributions have no entry points, an egg-info may be a file.
    return read_bounded(path)[0].decode("utf-8", "replace")


def _elsewhere(entry: str) -> Iterator[tuple[str, str, str, str]]:
    """Yield the distributions of an entry of `sys.path` that is not a folder."""
    from importlib_metadata import distributions  # 45 ms that only such an entry pays

    for found in distributions(path=[entry]):
        points = found.read_text("entry_points.txt") or ""
        yield _normalised(found.name), found.version, points, ""


def _normalised(name: str) -> str:
    return name.lower().replace("_", "-").replace(".", "-")


def _parsed(text: str, group: str) -> Iterator[tuple[str, str]]:
    """Yield the names and values in a section of `entry_points.txt`, without extras in brackets."""
    if f"[{group}]" not in text:
        return
    inside = False
    for line in map(str.strip, text.splitlines()):
        if line.startswith("["):
            inside = line == f"[{group}]"
        elif inside and "=" in line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield name.strip(), value.partition("[")[0].strip()


_HOST = re.compile(r"pegboard\s*(?:\[[^\]]*\])?\s*\(?\s*([^;)]*)\)?\s*(?:;(.*))?", re.IGNORECASE)
_CLAUSE = re.compile(r"(===|==|!=|~=|>=|<=|>|<)\s*v?(\d+(?:\.\d+)*)(\.\*)?")
_Release = tuple[int, ...]
_COMPARED: Mapping[str, Callable[[_Release, _Release], bool]] = {
    "===": eq,
    "==": eq,
    "!=": ne,
    ">=": ge,
    "<=": le,
    ">": gt,
    "<": lt,
}


def unmet(metadata: Path, version: str) -> str:
    """Return the requirement on Pegboard that `version` does not meet, such as `>=99`, or "".

    `metadata` is the file `METADATA` or `PKG-INFO`. Requirements of extras do not count, and
    letters after the numbers of a version are ignored.
    """
    for line in headers(metadata, "Requires-Dist"):
        found = _HOST.fullmatch(line)
        if found and "extra" not in (found[2] or ""):
            for clause in filter(None, map(str.strip, found[1].split(","))):
                if not _holds(clause, _release(version)):
                    return clause
    return ""


def _holds(clause: str, have: _Release) -> bool:
    found = _CLAUSE.match(clause)
    if found is None:
        return True
    operator, wanted, any_rest = found[1], _release(found[2]), bool(found[3])
    if operator == "~=":
        return have >= wanted and have[: len(wanted) - 1] == wanted[:-1]
    if any_rest:
        return (have[: len(wanted)] == wanted) == (operator == "==")
    length = max(len(have), len(wanted))
    return _COMPARED[operator](_filled(have, length), _filled(wanted, length))


def _release(version: str) -> _Release:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()


def _filled(release: _Release, length: int) -> _Release:
    return release + (0,) * (length - len(release))
