"""The hooks of a plugin that could not be imported, found in its source."""

import importlib.machinery
import importlib.util
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from pegboard.contract import apphooks, modelhooks, toolhooks
from pegboard.contract.plugin import hookimpl
from pegboard.loading.imports import Imports
from pegboard.loading.registrant import Registrant
from pegboard.loading.registration import Specs, core_specs
from pegboard.trust.projectcode import read_bounded

_WORD = re.compile(rb"\w+")
_REQUIRED = re.compile(
    rb"hookimpl\([^)]*\brequired\s*=\s*True[^)]*\)[^\n]*\n(?:\s*@[^\n]*\n)*\s*(?:async\s+)?def\s+(\w+)"
)
MOST_FILES = 200
"""Of a package that is a plugin so many files are looked at."""


_NO_GUARDS = frozenset({apphooks.register_hooks.__name__, apphooks.register_permissions.__name__})
"""Nothing is unguarded without these: a plugin that is not loaded has no tools."""
_ANY = {toolhooks.permission_ask.__name__: False, modelhooks.chat_messages_transform.__name__: True}
"""The hooks of a plugin whose source cannot be read, with whether each is required."""


def hooks_of_source(each: Registrant, imports: Imports) -> tuple[Specs, bool]:
    """Return the hooks that a plugin's source names, and whether all of the source could be read.

    Each hook is marked as required if the source marks it so. The source is not run, so a hook that
    only a comment names counts too. If part of the source cannot be read, the result also contains
    `permission_ask` and `chat_messages_transform`, because the plugin may be a guard.
    """
    names: dict[str, bool] = {}
    known = True
    for content, is_source in _sources(each, imports):
        known = known and content is not None
        for name, required in _named(content or b"", is_source=is_source):
            names[name] = names.get(name, False) or required
    if not known:
        names |= _ANY
    return {name: _absent(required=names[name]) for name in sorted(names)}, known


def names_hook(each: Registrant, spec: Callable[..., object]) -> bool:
    """Return whether the plugin's module names the hook or cannot be read; no code runs."""
    content, _ = next(_sources(each, Imports()))
    return content is None or spec.__name__.encode() in content


def _named(content: bytes, *, is_source: bool) -> Iterator[tuple[str, bool]]:
    """Yield each hook that a file names, and whether the file marks the hook as required.

    In a compiled file, all hooks count as required if the file contains the word `required`.
    """
    hooks = core_specs().keys() - _NO_GUARDS
    if not is_source:
        required = b"required" in content
        longest_first = sorted(hooks, key=len, reverse=True)
        found = set(re.findall("|".join(longest_first).encode(), content))
        yield from ((name.decode(), required) for name in found)
        return
    words = {word.decode(errors="replace") for word in _WORD.findall(content)}
    marked = {word.decode(errors="replace") for word in _REQUIRED.findall(content)}
    yield from ((name, name in marked) for name in words & hooks)


def _absent(*, required: bool) -> Callable[..., object]:
    @hookimpl(required=required)
    def absent() -> None: ...

    return absent


def _sources(each: Registrant, imports: Imports) -> Iterator[tuple[bytes | None, bool]]:
    """Yield the content of each file of a plugin, and whether the file is source code.

    The content is None if the file cannot be read.
    """
    if each.file is not None:
        yield each.file.content, True
        if each.file.path.name == "__init__.py":
            yield from ((one, True) for one in imports.contents_below(each.file.path.parent))
        return
    path = _origin(each.location.partition(":")[0].strip())
    if path is None:
        yield None, True
        return
    yield _read(path)
    if path.name == "__init__.py":
        for _, file in zip(range(MOST_FILES), sorted(path.parent.rglob("*.py")), strict=False):
            yield _read(file)


def _read(path: Path) -> tuple[bytes | None, bool]:
    content, error = read_bounded(path)
    return None if error else content, path.suffix == ".py"


def _origin(module: str) -> Path | None:
    """Return the file of the module with this dotted name, without importing parent packages."""
    top, *rest = module.split(".")
    try:
        spec = importlib.util.find_spec(top)
        name = top
        for part in rest:
            name = f"{name}.{part}"
            places = spec.submodule_search_locations if spec is not None else None
            spec = importlib.machinery.PathFinder.find_spec(name, places)
    except (ImportError, ValueError):
        return None
    return Path(spec.origin) if spec is not None and spec.origin else None
