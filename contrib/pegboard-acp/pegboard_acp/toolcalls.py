"""Tool calls in ACP's form: kind, status, files, diffs and output."""

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, assert_never

import msgspec

from pegboard import Tool
from pegboard.schema.part import Completed, Failed, FilePart, Pending, Running, ToolPart
from pegboard_acp.protocol import ImageBlock, TextBlock
from pegboard_acp.updates import CallBlock, CallFields, DiffContent, Location, ToolKind, ToolStatus

_KINDS: Mapping[str, ToolKind] = {
    "glob": "search",
    "grep": "search",
    "websearch": "fetch",
    "webfetch": "fetch",
    "todowrite": "think",
    "task": "think",
    "plan_exit": "switch_mode",
}
"""The kinds of tools whose effect does not tell them."""
_PATHS = ("filePath", "path", "file_path")
"""The arguments that name a file."""
_DATA = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)


def kind_of(name: str, tool: Tool | None) -> ToolKind:
    """Return the kind of a tool call, from which an editor chooses an icon."""
    if name in _KINDS:
        return _KINDS[name]
    if tool is None:
        return "other"
    if tool.serves == "shell":
        return "execute"
    match tool.effect:
        case "reads":
            return "read"
        case "edits":
            return "edit"
        case "delegates" | "runs":
            return "other"
        case never:
            assert_never(never)


def status_of(part: ToolPart) -> ToolStatus:
    """Return the ACP status of a tool call."""
    match part.state:
        case Pending():
            return "pending"
        case Running():
            return "in_progress"
        case Completed():
            return "completed"
        case Failed():
            return "failed"
        case never:
            assert_never(never)


def fields_of(part: ToolPart, *, title: str, tool: Tool | None, directory: Path) -> CallFields:
    """Return all known fields of a tool call; relative paths are below `directory`."""
    state = part.state
    metadata = getattr(state, "metadata", None) or {}
    diffs = tuple(diffs_of(metadata, directory))
    fields = CallFields(
        tool_call_id=part.id,
        title=title,
        name=part.tool,
        kind=kind_of(part.tool, tool),
        status=status_of(part),
        locations=_locations(state.input, diffs, directory),
        raw_input=state.input or None,
    )
    match state:
        case Pending():
            return fields
        case Running():
            output = metadata.get("output")
            if not isinstance(output, str) or not output:
                return fields
            return msgspec.structs.replace(fields, content=(_text_block(output),))
        case Completed(output=output, attachments=files):
            shown = diffs or ((_text_block(output),) if output else ())
            return msgspec.structs.replace(
                fields,
                content=(*shown, *_pictures(files)),
                raw_output={"output": output},
            )
        case Failed(error=error):
            return msgspec.structs.replace(
                fields, content=(_text_block(error),), raw_output={"error": error}
            )
        case never:
            assert_never(never)


def diffs_of(metadata: Mapping[str, Any], directory: Path) -> Iterator[DiffContent]:
    """Yield a diff for each hunk in the metadata of a tool call or a permission request."""
    match metadata:
        case {"files": [*files]}:
            for each in files:
                match each:
                    case {"filePath": str(path), "diff": str(diff)}:
                        yield from _hunks(diff, directory / path)
        case {"diff": str(diff), "filediff": {"file": str(path)}}:
            yield from _hunks(diff, directory / path)
        case {"diff": str(diff), "filepath": str(path)}:
            yield from _hunks(diff, directory / path)


def _hunks(diff: str, path: Path) -> Iterator[DiffContent]:
    """Yield a diff value for each hunk of a file's unified diff, with the hunk's context lines."""
    first, *hunks = re.split(r"^(?=@@ )", diff, flags=re.MULTILINE)
    del first  # the names of the file
    for hunk in hunks:
        head, _, body = hunk.partition("\n")
        old = new = ""
        for line in body.splitlines(keepends=True):
            mark, text = line[:1], line[1:]
            old += text if mark in " -" else ""
            new += text if mark in " +" else ""
        is_new = head.startswith("@@ -0,0 ")
        yield DiffContent(path=str(path), old_text=None if is_new else old, new_text=new)


def _locations(
    arguments: Mapping[str, Any], diffs: tuple[DiffContent, ...], directory: Path
) -> tuple[Location, ...] | None:
    named = next((value for name in _PATHS if isinstance(value := arguments.get(name), str)), None)
    if named is not None:
        line = arguments.get("offset")
        place = os.path.normpath(directory / named)
        at = line if isinstance(line, int) and line > 0 else None
        return (Location(path=place, line=at),)
    changed = dict.fromkeys(diff.path for diff in diffs)
    return tuple(Location(path=path) for path in changed) or None


def _text_block(text: str) -> CallBlock:
    return CallBlock(content=TextBlock(text=text))


def _pictures(files: tuple[FilePart, ...]) -> Iterator[CallBlock]:
    for file in files:
        if found := _DATA.fullmatch(file.url):
            yield CallBlock(content=ImageBlock(mime_type=found[1], data=found[2]))
