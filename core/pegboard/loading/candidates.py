"""Plugins before they are imported: where they come from, and who forbids which."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import msgspec
from msgspec.structs import replace

from pegboard.contract.plugin import Origin
from pegboard.loading.discovery import OWN, entry_points, load_entry_point, load_file, load_module
from pegboard.loading.imports import Imports
from pegboard.loading.toolset import ORIGINS
from pegboard.schema.config import Config
from pegboard.trust.decisions import THIS_TIME, Decision
from pegboard.trust.projectcode import CodeFile, plugin_files, user_code, with_neighbours

DISABLING = "PEGBOARD_DISABLE_PLUGINS"
"""The variable with the names of plugins that are not loaded, between commas."""
_ALLOW = "`pegboard trust allow` shows and trusts it"
_INSTALLED = ("site-packages", "dist-packages")
"""The names of folders into which programs install distributions."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin before it is imported; `file` is the file that it is made from, if any.

    `table` is the name of its settings: its own, or behind its distribution or origin and a slash
    where a built-in plugin has that name, or the user has written it so.
    """

    name: str
    origin: Origin
    location: str
    load: Callable[[], object]
    version: str = ""
    distribution: str = ""
    table: str = ""
    file: CodeFile | None = None
    forbidden: str = ""


def candidates(  # noqa: PLR0913 - where plugins come from, all keyword-only
    *,
    directory: Path,
    config_dir: Path,
    config: Config,
    decision: Decision,
    extra: Sequence[object] = (),
    builtins: bool = True,
    installed: bool = True,
    fitting: Callable[[Candidate, Imports], bool] = lambda *_: True,
) -> tuple[list[Candidate], Imports]:
    """All that can be loaded, oldest first, and how those that are files import one another.

    Those that are not `fitting` are left out.
    """
    imports = Imports()
    found = [
        *_from_distributions(decision.root, builtins=builtins, installed=installed),
        *_from_files(directory, config_dir, config, decision, imports),
        *(embedded(plugin, config.plugins) for plugin in extra),
    ]
    found = [each for each in found if fitting(each, imports)]
    found = with_tables(found, config, {each.name for each in found if each.origin == "builtin"})
    return sorted(found, key=lambda each: ORIGINS.index(each.origin)), imports


def with_tables(
    found: Iterable[Candidate], config: Config, builtin: Collection[str]
) -> list[Candidate]:
    """The candidates with the names of their settings; `builtin` are names of our own plugins."""
    return [replace(each, table=_table(each, config.plugins, builtin)) for each in found]


def _table(candidate: Candidate, tables: Collection[str], builtin: Collection[str]) -> str:
    if candidate.table:
        return candidate.table
    is_shadowed = candidate.origin != "builtin" and candidate.name in builtin
    full = full_name(candidate)
    return full if is_shadowed or full in tables else candidate.name


def full_name(candidate: Candidate) -> str:
    """The name with which it is told from others of its name: `house-plugins/guard`."""
    return f"{candidate.distribution or candidate.origin}/{candidate.name}"


def _from_distributions(root: Path, *, builtins: bool, installed: bool) -> Iterator[Candidate]:
    brought = cache(partial(_brought, root))
    points = entry_points()
    host = next((entry.version for entry in points if entry.distribution == OWN), "")
    for entry in points:
        own = entry.distribution == OWN
        if builtins if own else installed:
            yield Candidate(
                name=entry.name,
                origin="builtin" if own else "installed",
                location=entry.value,
                version=entry.version,
                distribution=entry.distribution,
                load=partial(load_entry_point, entry, "" if own else host),
                forbidden=brought(entry.folder),
            )


def _brought(root: Path, place: str) -> str:
    """Why a plugin is not run that only stands in a folder of the project, as in a notebook's.

    What says to be one of our own is told from it by the folder that we run from.
    """
    folder, ours = Path(place or ".").resolve(), Path(__file__).resolve().parent.parent.parent
    if folder.name in _INSTALLED or folder == ours or not folder.is_relative_to(root):
        return ""
    return f"not run: {folder} is a folder of the project; install what is in it"


def _from_files(
    directory: Path, config_dir: Path, config: Config, decision: Decision, imports: Imports
) -> Iterator[Candidate]:
    """The user's files, those that the configuration names, and the project's.

    A file outside of the project that both name is the user's.
    """
    users = _with_neighbours(user_code(config_dir), imports, "user")
    for entry in config.plugin_paths:
        users += _from_path(directory / entry, decision, imports)
    yield from users
    known = {candidate.location for candidate in users}
    for candidate in project_candidates(decision, imports):
        if candidate.location not in known:
            yield candidate


def project_candidates(decision: Decision, imports: Imports) -> Iterator[Candidate]:
    """The plugins of the project's files, as they are decided about."""
    way = "" if decision.reason.endswith(THIS_TIME) else f"; {_ALLOW}"
    forbidden = "" if decision.trusted else f"not run: {decision.reason}{way}"
    imports.add(decision.code if decision.trusted else ())
    for file in decision.code:
        if file.kind != "part":
            yield _from_file(file, "project", imports, forbidden=forbidden)


def _with_neighbours(
    files: Sequence[CodeFile], imports: Imports, origin: Origin
) -> list[Candidate]:
    """The files, which can import what is beside them."""
    if not files:
        return []
    imports.add(with_neighbours(files))
    return [_from_file(file, origin, imports) for file in files]


def _from_path(path: Path, decision: Decision, imports: Imports) -> Iterator[Candidate]:
    """The plugins of an entry of `plugin_paths`; the project's own are the decision's affair.

    Of what the project names no file is looked at again: one may have come since the decision.
    """
    name = path.name
    if path in decision.named:
        if not any(path in (file.path, file.path.parent) for file in decision.code):
            missing = CodeFile(path=path, kind="plugin", name=name, error="there is none")
            yield _from_file(missing, "project", imports)
    elif _is_module_name(path):
        yield Candidate(name=name, origin="user", location=name, load=partial(load_module, name))
    else:
        own = [
            file
            for file in plugin_files(path)
            if file.path not in decision.files or not file.path.is_relative_to(decision.root)
        ]
        yield from _with_neighbours(own, imports, "user")


def _is_module_name(path: Path) -> bool:
    is_dotted = path.suffix != ".py" and path.name.replace(".", "_").isidentifier()
    return is_dotted and not os.path.exists(path)  # noqa: PTH110 - no error for a name too long


def _from_file(
    file: CodeFile, origin: Origin, imports: Imports, *, forbidden: str = ""
) -> Candidate:
    return Candidate(
        name=file.name,
        origin=origin,
        location=str(file.path),
        load=partial(load_file, file, imports),
        file=file,
        forbidden=forbidden,
    )


def embedded(plugin: object, tables: Collection[str]) -> Candidate:
    """An object as a plugin, by the name and the settings that it has where it is installed.

    Settings under the name of the object itself, if it is among `tables`, make that its name.
    """
    name, entry = embedded_name(plugin), None
    if name not in tables and isinstance(plugin, ModuleType):
        entry = next((each for each in entry_points() if each.value == plugin.__name__), None)
    return Candidate(
        name=entry.name if entry else name,
        origin="embedded",
        location="",
        load=lambda: plugin,
        version=entry.version if entry else "",
        distribution=entry.distribution if entry else "",
        table=entry.name if entry and entry.distribution == OWN else "",
    )


def with_own_table(plugin: object, tables: Collection[str]) -> Candidate:
    """An object as a plugin beside the built-in ones, with the name of its settings."""
    builtin = {each.name for each in entry_points() if each.distribution == OWN}
    candidate = embedded(plugin, tables)
    return replace(candidate, table=_table(candidate, tables, builtin))


def embedded_name(plugin: object) -> str:
    """The name of a plugin that is nothing but an object: its own, or its type's."""
    named = getattr(plugin, "__name__", None)
    return named if isinstance(named, str) else type(plugin).__name__


def allowed(candidate: Candidate, config: Config, env: Mapping[str, str]) -> Candidate:
    """The candidate, forbidden if the user has switched it off."""
    said = config.plugins.get(candidate.table)
    disabled = {name.strip() for name in env.get(DISABLING, "").split(",")}
    reason = candidate.forbidden
    if said is not None and not said.enabled:
        reason = f"switched off by plugins.{candidate.table}.enabled in the configuration"
    elif disabled & {candidate.table, full_name(candidate)}:
        reason = f"switched off by {DISABLING}"
    return replace(candidate, forbidden=reason)
