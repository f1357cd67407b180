"""The plugins that an App finds before it imports any, and the reasons not to import a plugin."""

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import msgspec

from pegboard.contract.plugin import Origin
from pegboard.kit.suggestions import did_you_mean
from pegboard.loading.discovery import (
    OWN,
    PluginProblem,
    entry_points,
    load_entry_point,
    load_file,
    load_module,
)
from pegboard.loading.imports import Imports
from pegboard.loading.registrant import Registrant
from pegboard.paths import UserFolders
from pegboard.schema.config import Config
from pegboard.schema.event import PluginFailed
from pegboard.trust.decisions import THIS_TIME, Decision
from pegboard.trust.projectcode import CodeFile, plugin_files, user_code, with_neighbours

DISABLING = "PEGBOARD_DISABLE_PLUGINS"
"""The variable with the names of plugins that are not loaded, between commas."""
_ALLOW = "`pegboard trust allow` shows and trusts it"
_INSTALLED = ("site-packages", "dist-packages")
"""The names of folders into which programs install distributions."""


class Sources(msgspec.Struct, frozen=True, kw_only=True):
    """The sources of an App's plugins, and the facts that decide which plugins are loaded.

    `extra` are plugin objects that are newer than all other plugins. `fitting` returns whether to
    use a plugin; the other plugins are left out. `locate` returns where the user wrote a dotted key
    of the configuration. `on_failure` receives the failures of plugins.
    """

    directory: Path
    places: UserFolders
    config: Config
    env: Mapping[str, str]
    decision: Decision
    extra: Sequence[object] = ()
    builtins: bool = True
    installed: bool = True
    locate: Callable[[str], str] = lambda key: key
    fitting: Callable[[Registrant], bool] = lambda _: True
    on_failure: Callable[[PluginFailed], None]

    def candidates(self, imports: Imports) -> list[Registrant]:
        """Return all plugins that can be loaded; `imports` lets plugin files import each other."""
        tables = self.config.plugins
        found = [
            *self._distributions(),
            *(users := self._users(imports)),
            *_from_project(self.decision, imports, users),
            *(embedded(plugin, tables) for plugin in self.extra),
        ]
        found = [each for each in found if self.fitting(each)]
        builtin = {each.name for each in found if each.origin == "builtin"}
        return [self._settled(each, builtin) for each in found]

    def project(
        self, decision: Decision, imports: Imports, others: Sequence[Registrant]
    ) -> list[Registrant]:
        """Return the plugins of the project that the trust decision allows, except `others`."""
        builtin = {each.name for each in others if each.origin == "builtin"}
        found = _from_project(decision, imports, others)
        return [self._settled(each, builtin) for each in found]

    def _distributions(self) -> Iterator[Registrant]:
        brought = cache(partial(_brought, self.decision.root))
        points = entry_points()
        host = next((entry.version for entry in points if entry.distribution == OWN), "")
        for entry in points:
            own = entry.distribution == OWN
            if self.builtins if own else self.installed:
                yield Registrant(
                    name=entry.name,
                    origin="builtin" if own else "installed",
                    location=entry.value,
                    version=entry.version,
                    distribution=entry.distribution,
                    load=partial(load_entry_point, entry, "" if own else host),
                    forbidden=brought(entry.folder),
                )

    def _users(self, imports: Imports) -> list[Registrant]:
        """Return the plugins in the user's files and the plugins that the configuration names."""
        users = _with_neighbours(user_code(self.places.config), imports)
        for entry in self.config.plugin_paths:
            users += _from_path(self.directory / entry, self.decision, imports)
        return users

    def _settled(self, found: Registrant, builtin: Collection[str]) -> Registrant:
        """Set the plugin's settings table, and forbid the plugin if the user has disabled it.

        Return the same plugin.
        """
        found.table = table_of(found, self.config.plugins, builtin)
        said = self.config.plugins.get(found.table)
        disabled = {name.strip() for name in self.env.get(DISABLING, "").split(",")}
        if said is not None and not said.enabled:
            key = f"plugins.{found.table}.enabled"
            found.forbidden = f"switched off by {key} in the configuration"
        elif disabled & {found.table, found.full_name}:
            found.forbidden = f"switched off by {DISABLING}"
        return found

    def tables_of_none(self, found: Sequence[Registrant]) -> Iterator[PluginProblem]:
        """Yield a problem for each configured settings table that belongs to no plugin."""
        tables = {each.table for each in found}
        if (self.config.mcp or self.config.project_mcp) and "mcp" not in tables:
            text = "nothing starts these servers; `pip install pegboard-mcp` adds what does"
            yield PluginProblem("options", "mcp", f"{self.locate('mcp')}: {text}")
        if not (strange := self.config.plugins.keys() - tables):
            return
        known = {
            *(name for each in found for name in (each.name, each.table)),
            *(each.name for each in entry_points()),
        }
        for name in sorted(strange - known):
            text = f"there is no plugin {name}{did_you_mean(name, known)}"
            yield PluginProblem("options", name, f"{self.locate(f'plugins.{name}')}: {text}")


def table_of(found: Registrant, tables: Collection[str], builtin: Collection[str]) -> str:
    """Return the name of the plugin's settings in `tables`; `builtin` are built-in plugin names."""
    if found.table:
        return found.table
    is_shadowed = found.origin != "builtin" and found.name in builtin
    return found.full_name if is_shadowed or found.full_name in tables else found.name


def _brought(root: Path, place: str) -> str:
    """Return why an installed plugin that lies in a folder of the project is not run, or "".

    Pegboard's own folder is exempt. It is compared by its path, not by the distribution's name,
    which any plugin could use.
    """
    folder, ours = Path(place or ".").resolve(), Path(__file__).resolve().parent.parent.parent
    if folder.name in _INSTALLED or folder == ours or not folder.is_relative_to(root):
        return ""
    return f"not run: {folder} is a folder of the project; install what is in it"


def _from_project(
    decision: Decision, imports: Imports, others: Sequence[Registrant]
) -> Iterator[Registrant]:
    """Yield the plugins in the project's files.

    If the project is not trusted, these plugins are not imported.

    Files of the plugins `others` are skipped, because they belong to the user.
    """
    known = {each.location for each in others}
    way = "" if decision.reason.endswith(THIS_TIME) else f"; {_ALLOW}"
    forbidden = "" if decision.trusted else f"not run: {decision.reason}{way}"
    imports.add(decision.code if decision.trusted else ())
    for file in decision.code:
        if file.kind != "part" and str(file.path) not in known:
            yield _from_file(file, "project", imports, forbidden=forbidden)


def _with_neighbours(files: Sequence[CodeFile], imports: Imports) -> list[Registrant]:
    """Return the user's files as plugins that can import the files in the same folder."""
    imports.add(with_neighbours(files))
    return [_from_file(file, "user", imports) for file in files]


def _from_path(path: Path, decision: Decision, imports: Imports) -> Iterator[Registrant]:
    """Yield the plugins of one path in the setting `plugin_paths`.

    Project files are covered by the decision on trust and not read again, because a file may have
    changed since the decision.
    """
    name = path.name
    if path in decision.named:
        if not any(path in (file.path, file.path.parent) for file in decision.code):
            missing = CodeFile(path=path, kind="plugin", name=name, error="there is none")
            yield _from_file(missing, "project", imports)
    elif _is_module_name(path):
        yield Registrant(name=name, origin="user", location=name, load=partial(load_module, name))
    else:
        own = [
            file
            for file in plugin_files(path)
            if file.path not in decision.files or not file.path.is_relative_to(decision.root)
        ]
        yield from _with_neighbours(own, imports)


def _is_module_name(path: Path) -> bool:
    is_dotted = path.suffix != ".py" and path.name.replace(".", "_").isidentifier()
    return is_dotted and not os.path.exists(path)  # noqa: PTH110 - no error for a name too long


def _from_file(
    file: CodeFile, origin: Origin, imports: Imports, *, forbidden: str = ""
) -> Registrant:
    return Registrant(
        name=file.name,
        origin=origin,
        location=str(file.path),
        load=partial(load_file, file, imports),
        file=file,
        forbidden=forbidden,
    )


def embedded(plugin: object, tables: Collection[str]) -> Registrant:
    """Return the plugin record for an object that the program has passed to the App.

    If the object is the module of an installed entry point, the record has the name and settings of
    the entry point. If `tables` has settings under the object's own name, this name is used.
    """
    named = getattr(plugin, "__name__", None)
    name, entry = named if isinstance(named, str) else type(plugin).__name__, None
    if name not in tables and isinstance(plugin, ModuleType):
        entry = next((each for each in entry_points() if each.value == plugin.__name__), None)
    return Registrant(
        name=entry.name if entry else name,
        origin="embedded",
        location="",
        load=lambda: plugin,
        version=entry.version if entry else "",
        distribution=entry.distribution if entry else "",
        table=entry.name if entry and entry.distribution == OWN else "",
    )
