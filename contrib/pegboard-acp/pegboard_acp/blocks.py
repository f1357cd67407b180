"""The conversion between content blocks of ACP prompts and parts of Pegboard's messages."""

import asyncio
import base64
import os
import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

from pegboard import App
from pegboard.schema.part import DIRECTORY_MIME, FileInput, FilePart, TextInput, mime_of
from pegboard_acp.jsonrpc import ErrorCode, RpcError
from pegboard_acp.protocol import (
    AudioBlock,
    Block,
    ImageBlock,
    LinkBlock,
    ResourceBlock,
    ResourceContents,
    TextBlock,
)

_LINES = re.compile(r"L?(\d+)(?:[-:]L?(\d+))?")
_PICTURE = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)


def typed_text(blocks: tuple[Block, ...]) -> str:
    """Return the text that the user typed: all text blocks that are not only for the model."""
    texts = (block for block in blocks if isinstance(block, TextBlock))
    return "".join(block.text for block in texts if _audience(block) != ("assistant",))


async def parts_of(
    app: App, session_id: str, agent: str, blocks: tuple[Block, ...]
) -> tuple[TextInput | FileInput, ...]:
    """Convert each block of a prompt to a part.

    :raises RpcError: for a block of a kind that Pegboard has not offered to accept.
    """
    return tuple([await _part(app, session_id, agent, block) for block in blocks])


async def _part(app: App, session_id: str, agent: str, block: Block) -> TextInput | FileInput:
    match block:
        case TextBlock(text=text):
            audience = _audience(block)
            return TextInput(
                text=text,
                synthetic=audience == ("assistant",),
                ignored=audience == ("user",),
            )
        case ImageBlock(data=data, mime_type=mime):
            return FileInput(mime=mime, url=f"data:{mime};base64,{data}", filename=block.uri)
        case ResourceBlock(resource=resource):
            return _embedded(resource)
        case LinkBlock():
            return await _linked(app, session_id, agent, block)
        case AudioBlock():
            raise RpcError(ErrorCode.INVALID_PARAMS, "audio: Pegboard announces no such capability")


def _audience(block: TextBlock) -> tuple[str, ...] | None:
    return block.annotations.audience if block.annotations else None


def _embedded(resource: ResourceContents) -> FileInput:
    """Return a file part with a resource whose content the editor has sent."""
    if resource.blob is not None:
        mime = resource.mime_type or "application/octet-stream"
        return FileInput(
            mime=mime, url=f"data:{mime};base64,{resource.blob}", filename=resource.uri
        )
    content = base64.b64encode((resource.text or "").encode()).decode()
    url = f"data:text/plain;charset=utf-8;base64,{content}"
    return FileInput(mime="text/plain", url=url, filename=resource.uri)


async def _linked(app: App, session_id: str, agent: str, block: LinkBlock) -> TextInput | FileInput:
    """Return a linked project file as an attachment, and a link to anything else as text.

    If the permission rules do not let the agent read the file, the part is a text with the reason.
    """
    split = urlsplit(block.uri)
    path = Path(unquote(split.path))
    if split.scheme != "file" or not await asyncio.to_thread(_is_inside, path, app):
        return TextInput(text=f"[{block.name}]({block.uri})")
    names = await asyncio.to_thread(lambda: (os.path.normpath(path), str(path.resolve())))
    verdict = await app.policy.decide(
        session_id, "read", names, agent=agent, metadata={"filepath": names[1]}
    )
    if verdict.action != "allow":
        reason = verdict.reason or "it needs a permission"
        return TextInput(text=f"[{path} is not attached: {reason}]", synthetic=True)
    mime = await asyncio.to_thread(lambda: DIRECTORY_MIME if path.is_dir() else mime_of(path))
    lines = _LINES.fullmatch(split.fragment)
    window = f"?start={lines[1]}&end={lines[2] or lines[1]}" if lines else ""
    return FileInput(mime=mime, url=f"{path.as_uri()}{window}", filename=block.name)


def _is_inside(path: Path, app: App) -> bool:
    try:
        return path.resolve(strict=True).is_relative_to(app.workspace.worktree.resolve())
    except (OSError, RuntimeError, ValueError):
        return False


def block_of(part: FilePart) -> ImageBlock | LinkBlock:
    """Return a file part of a stored prompt as an ACP content block."""
    name = part.filename or part.url.rpartition("/")[2]
    if found := _PICTURE.fullmatch(part.url):
        return ImageBlock(mime_type=found[1], data=found[2], uri=part.filename)
    uri = part.url if part.url.startswith("file:") else name
    return LinkBlock(uri=uri, name=name, mime_type=part.mime)
