"""The skills of an Agent Plugin in a wheel, which a marker in the wheel's metadata names.

The marker `agent_plugins.json` in the `.dist-info` folder has the plugin's folder as `root`, and
its `files`.
"""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from pegboard_plugins.shared.frontend import BundleError, SkillCheck, check_text, read_bundle
from pegboard_plugins.skill.record import CHANGED, LibraryEntry, text_as_recorded

_MARKER, _MANIFEST, _SERVERS = "agent_plugins.json", "plugin.json", "mcp.json"
_SKILL = re.compile(r"skills/[^/]+/SKILL\.md")
_ENTRY = re.compile(r"^\"?([^,\"\n]+)\"?,sha256=([\w-]+)=?,\d*\r?$", re.MULTILINE)


def plugin_entries(site: Path, info: str, record: bytes) -> Iterator[LibraryEntry]:
    """Yield the skill files of a library's Agent Plugin; `info` is the `.dist-info` folder's name.

    A part that cannot be used is an entry with a problem.
    """
    digests = dict(_ENTRY.findall(record.decode("utf-8", "replace")))
    stem = info.removesuffix(".dist-info")
    library = stem.replace("-", " ", 1)
    root = site / f"{stem}.agent-plugin"
    files, problem = _named_files(site, f"{info}/{_MARKER}", root.name, digests)
    problem = problem or _manifest_problem(root, digests)
    if problem:
        yield LibraryEntry(root, "", library, problem)
        return
    if _SERVERS in files:
        reason = "its servers do not start: a library gives skills alone"
        yield LibraryEntry(root / _SERVERS, "", library, reason)
    for name in filter(_SKILL.fullmatch, files):
        path = Path(os.path.realpath(root / name))
        digest = digests.get(f"{root.name}/{name}", "")
        text = text_as_recorded(path, digest)
        check = SkillCheck() if text is None else check_text(text, path.parent.name)
        problem = check.problem or "; ".join(check.departures)
        yield LibraryEntry(path, digest, library, problem)


def _named_files(
    site: Path, marker: str, root: str, digests: Mapping[str, str]
) -> tuple[tuple[str, ...], str]:
    """Return the files that the marker file names, and "" or the reason why it is not valid."""
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


def _manifest_problem(root: Path, digests: Mapping[str, str]) -> str:
    """Return why a library's Agent Plugin cannot be used, or "" if it is valid."""
    if not root.resolve().is_relative_to(root.parent.resolve()):
        return "its folder is a link that leads out of site-packages"
    if text_as_recorded(root / _MANIFEST, digests.get(f"{root.name}/{_MANIFEST}", "")) is None:
        return f"{_MANIFEST}: {CHANGED}"
    try:
        read_bundle(root, root)
    except BundleError as error:
        return str(error)
    return ""
