"""The hooks of a plugin that could not be imported, as far as its source tells of them."""

import importlib.machinery
import importlib.util
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from pegboard.contract import hookspecs
from pegboard.contract.marks import hookimpl
from pegboard.loading.candidates import Candidate
from pegboard.loading.imports import Imports
from pegboard.loading.registration import specifications
from pegboard.trust.projectcode import read_bounded

_WORD = re.compile(rb"\w+")
_REQUIRED = re.compile(
    rb"hookimpl\([^)]*\brequired\s*=\s*True[^)]*\)[^\n]*\n(?:\s*@[^\n]*\n)*\s*(?:async\s+)?def\s+(\w+)"
)
MOST_FILES = 200
"""Of a package that is a plugin so many files are looked at."""


def hooks_of_source(candidate: Candidate, imports: Imports) -> Mapping[str, Callable[..., object]]:
    """A function for each hook that the source names, `required` where it says so.

    The source is not run, so a hook that a comment names counts, too: who is not understood is
    taken for the guard that it may be.
    """
    sources = b"\n".join(_sources(candidate, imports))
    words = {word.decode(errors="replace") for word in _WORD.findall(sources)}
    required = {word.decode(errors="replace") for word in _REQUIRED.findall(sources)}
    return {
        name: _absent(required=name in required)
        for name in sorted(words & specifications().keys() - {hookspecs.register_hooks.__name__})
    }


def _absent(*, required: bool) -> Callable[..., object]:
    @hookimpl(required=required)
    def absent() -> None: ...

    return absent


def _sources(candidate: Candidate, imports: Imports) -> Iterator[bytes]:
    if candidate.file is not None:
        yield candidate.file.content
        if candidate.file.path.name == "__init__.py":
            yield from imports.contents_below(candidate.file.path.parent)
        return
    path = _origin(candidate.location.partition(":")[0].strip())
    if path is not None:
        yield read_bounded(path)[0]
        if path.name == "__init__.py":
            for _, file in zip(range(MOST_FILES), sorted(path.parent.rglob("*.py")), strict=False):
                yield read_bounded(file)[0]


def _origin(module: str) -> Path | None:
    """The file that a dotted name is, found without importing what is above it."""
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
