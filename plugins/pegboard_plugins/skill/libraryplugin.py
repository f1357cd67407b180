"""The skills of an Agent Plugin that a wheel brings, as the marker in its metadata names it.

`agent_plugins.json` in the `.dist-info` folder has the plugin's folder as `root`, and its `files`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard_plugins.shared.frontend import BundleError, read_bundle
from pegboard_plugins.skill.record import CHANGED, LibraryEntry, text_as_recorded

_MARKER, _MANIFEST, _SERVERS = "agent_plugins.json", "plugin.json", "mcp.json"
_SKILL = re.compile(r"skills/[^/]+/SKILL\.md")
_ENTRY = re.compile(r"^\"?([^,\"\n]+)\"?,sha256=([\w-]+)=?,\d*\r?$", re.MULTILINE)


def plugin_entries(site: Path, info: str, record: bytes) -> Iterator[LibraryEntry]:
    """Yield the skills of the plugin of the library whose metadata are in the folder `info`.

    Whatever of it cannot be used is an entry with a problem.
    """
    digests = dict(_ENTRY.findall(record.decode("utf-8", "replace")))
    stem = info.removesuffix(".dist-info")
    library = stem.replace("-", " ", 1)
    root = site / f"{stem}.agent-plugin"
    files, problem = _named_files(site, f"{info}/{_MARKER}", root.name, digests)
    valid: set[str] = set()
    if not problem:
        valid, problem = _valid_skills(root, digests)
    if problem:
        yield LibraryEntry(root, "", library, problem)
        return
    if _SERVERS in files:
        reason = "its servers do not start: a library gives skills alone"
        yield LibraryEntry(root / _SERVERS, "", library, reason)
    for name in filter(_SKILL.fullmatch, files):
        path = Path(os.path.realpath(root / name))
        digest = digests.get(f"{root.name}/{name}", "")
        is_recorded = text_as_recorded(path, digest) is not None
        is_lost = is_recorded and name not in valid
        problem = "it is not a skill of Agent Skills 1.0" if is_lost else ""
        yield LibraryEntry(path, digest, library, problem)


def _named_files(
    site: Path, marker: str, root: str, digests: Mapping[str, str]
) -> tuple[tuple[str, ...], str]:
    """Return the files that the marker names, and why they do not count."""
    text = text_as_recorded(site / marker, digests.get(marker, ""))
    if text is None:
        return (), f"{_MARKER}: {CHANGED}"
    try:
        table: Any = msgspec.json.decode(text)
    except (ValueError, msgspec.MsgspecError, RecursionError) as error:
        return (), f"{_MARKER} is not valid JSON: {error}"
    files = table.get("files") if isinstance(table, dict) else None
    if not isinstance(files, list) or table.get("root") != root:
        return (), f"{_MARKER} does not name the folder {root} of this version with its files"
    return tuple(each for each in files if isinstance(each, str)), ""


def _valid_skills(root: Path, digests: Mapping[str, str]) -> tuple[set[str], str]:
    """Return the skills that the plugin has by its own form, and why it has none."""
    if not root.resolve().is_relative_to(root.parent.resolve()):
        return set(), "its folder is a link that leads out of site-packages"
    if text_as_recorded(root / _MANIFEST, digests.get(f"{root.name}/{_MANIFEST}", "")) is None:
        return set(), f"{_MANIFEST}: {CHANGED}"
    try:
        bundle = read_bundle(root, root)
    except BundleError as error:
        return set(), str(error)
    return {f"skills/{each.name}/SKILL.md" for each in bundle.skills}, ""
