"""Marketplaces of Claude Code: files that list bundles, each in a folder or a repository."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pegboard.unstable import read_bounded
from pegboard_plugins.shared.frontend.bundlemanifest import BundleError

MARKETPLACE = ".claude-plugin/marketplace.json"
_SHOWN = 10


def listed_source(folder: Path, name: str) -> Path | str:
    """Return the source of a bundle in a marketplace's list: a folder, or a repository's URL.

    :raises BundleError: when there is no list, or it has no usable entry of this name.
    """
    file = folder / MARKETPLACE
    content, why = read_bounded(file)
    try:
        table = json.loads(content) if not why else None
        entries = {each["name"]: each["source"] for each in table["plugins"]} if table else {}
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise BundleError(f"{file} is no list of bundles: {error!r}") from error
    if name not in entries:
        names = ", ".join(map(str, [*entries][:_SHOWN])) or "none"
        raise BundleError(f"{file} lists no bundle {name!r}; it lists: {names}")
    match entries[name]:
        case str(path) if "://" in path:
            return path
        case str(path):
            return _inside(folder, _below(table, path))
        case {"source": "github", "repo": str(repository), **rest}:
            return _with_revision(f"https://github.com/{repository}.git", rest)
        case {"source": "url", "url": str(url), **rest}:
            return _with_revision(url, rest)
        case other:
            raise BundleError(f"{file}: the source of {name} is {other!r}, which cannot be fetched")


def _below(table: Any, path: str) -> str:  # noqa: ANN401 - JSON
    """Return a listed path relative to the marketplace; without `./`, add `pluginRoot`."""
    facts = table.get("metadata")
    root = facts.get("pluginRoot") if isinstance(facts, Mapping) else None
    is_bare = isinstance(root, str) and not path.startswith("./")
    return f"{root}/{path}" if is_bare else path


def _inside(folder: Path, path: str) -> Path:
    root = folder.resolve()
    found = (root / path).resolve()
    if not found.is_relative_to(root) or not found.is_dir():
        raise BundleError(f"{path} is no folder of {folder}")
    return found


def _with_revision(url: str, facts: Mapping[Any, Any]) -> str:
    revision = facts.get("ref")
    return f"{url}#{revision}" if isinstance(revision, str) and revision else url
