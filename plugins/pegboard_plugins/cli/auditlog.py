"""`pegboard audit show`: the lines of the log of decisions and tool calls, as a table or JSON."""

import os
import re
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal

import click
import msgspec

from pegboard import InvalidInputError
from pegboard.app import UserFolders
from pegboard.display import escape_controls
from pegboard.errors import StorageError
from pegboard.unstable import exposed
from pegboard_plugins.cli.jsontext import as_json, format_option
from pegboard_plugins.cli.tables import moment, show_table

_SPAN = re.compile(r"(\d+)([mhd])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days"}
_FULL = re.compile(r"audit-(\d+)\.jsonl")
_WIDTH = 120
_MS = 1000


@click.command("show")
@click.option(
    "-n",
    "--max-count",
    type=click.IntRange(min=1),
    metavar="N",
    default=50,
    show_default=True,
    help="Show at most the N newest.",
)
@click.option(
    "--session", "session_id", metavar="ID", help="Only sessions whose id starts with ID."
)
@click.option("--tool", metavar="NAME", help="Only this tool or permission.")
@click.option("--since", metavar="WHEN", help="Only since WHEN: 90m, 2h, 7d, or a date.")
@format_option("table")
def show(
    max_count: int,
    session_id: str | None,
    tool: str | None,
    since: str | None,
    style: Literal["table", "json"],
) -> None:
    """Show the newest lines of the log, oldest first.

    As JSON, each record is one line. `audit verify` checks whether any line was altered.
    """
    from_ms = _instant(since) if since else 0
    found: deque[dict[str, Any]] = deque(maxlen=max_count)
    try:
        for entry in entries(UserFolders.of(os.environ).audit):
            if _is_meant(entry, session_id, tool) and entry.get("at", 0) >= from_ms:
                found.append(entry)
    except OSError as error:
        raise StorageError(f"the log cannot be read: {error}") from error
    if style == "json":
        for entry in found:
            click.echo(as_json(entry))
        return
    headers = ("time", "session", "what", "result", "by", "about")
    show_table(headers, [_row(each) for each in found], none="nothing is logged", width=_WIDTH)


def entries(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the log's records, oldest first; unreadable lines are skipped.

    :raises OSError: when a file cannot be read.
    """
    full = [
        (int(match[1]), file)
        for file in path.parent.glob("audit-*.jsonl")
        if (match := _FULL.fullmatch(file.name))
    ]
    files = [file for _, file in sorted(full)]
    for file in [*files, path] if path.exists() else files:
        with file.open("rb") as lines:
            for line in lines:
                try:
                    yield msgspec.json.decode(line, type=dict[str, Any])
                except (msgspec.DecodeError, UnicodeDecodeError):
                    continue


def _is_meant(entry: Mapping[str, Any], session_id: str | None, tool: str | None) -> bool:
    if session_id is not None and not str(entry.get("session", "")).startswith(session_id):
        return False
    return tool is None or tool in (entry.get("tool"), entry.get("permission"))


def _row(entry: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the cells of a record, with control characters escaped."""
    kind = str(entry.get("kind", ""))
    about = entry.get("patterns") or entry.get("files") or entry.get("reason") or ""
    about = about if isinstance(about, str) else ", ".join(map(str, about))
    line = entry.get("line")
    cells = (
        str(entry.get("session") or ""),
        f"{kind} {entry.get('tool') or entry.get('permission') or ''}".strip(),
        str(entry.get("action") or ""),
        str(entry.get("by") or ""),
        f"{line}: {about}" if line else about,
    )
    return (moment(int(entry.get("at", 0))), *(escape_controls(exposed(each)) for each in cells))


def _instant(text: str) -> int:
    """Parse an age such as `2h` or a date; return milliseconds since the epoch.

    :raises InvalidInputError: when the text is neither.
    """
    if match := _SPAN.fullmatch(text):
        span = timedelta(**{_UNITS[match[2]]: int(match[1])})
        return int((datetime.now(UTC) - span).timestamp() * _MS)
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * _MS)
    except ValueError as error:
        way = "write 90m, 2h, 7d, or a date such as 2026-01-31"
        raise InvalidInputError(f"--since {text}: {way}") from error
