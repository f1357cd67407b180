"""The conversion of tool results, prompts and resources from MCP types to Pegboard's types."""

import base64
import binascii
from collections.abc import Sequence

import mcp_types as types
import msgspec

from pegboard import Attachment, ToolError, ToolResult

ATTACHMENTS = 20
ATTACHMENT_BYTES = 8 << 20
TEXT_BYTES = 4 << 20
"""The most that goes on to the core, which cuts it for the model and stores the rest."""


def tool_result(server: str, tool: str, result: types.CallToolResult) -> ToolResult:
    """Return the result of an MCP tool call as a Pegboard tool result.

    :raises ToolError: when the server marks the result as an error.
    """
    texts, files = parts_of(result.content)
    structured = result.structured_content
    if not texts and structured is not None:
        texts.append(msgspec.json.encode(structured).decode())
        structured = None
    output = limited("\n\n".join(texts))
    if result.is_error:
        raise ToolError(
            output or f"the tool {tool} of the MCP server {server} failed without a text"
        )
    return ToolResult(
        output=output,
        title=f"{server} {tool}",
        metadata={} if structured is None else {"structured": structured},
        attachments=tuple(files),
    )


def parts_of(content: Sequence[types.ContentBlock]) -> tuple[list[str], list[Attachment]]:
    """Return the texts in MCP content, and the attached files."""
    texts: list[str] = []
    files: list[Attachment] = []
    for block in content:
        match block:
            case types.TextContent(text=text):
                texts.append(text)
            case types.ImageContent(data=data, mime_type=mime):
                _attach(data, mime, texts, files)
            case types.AudioContent(data=data, mime_type=mime):
                _attach(data, mime, texts, files)
            case types.ResourceLink(name=name, uri=uri):
                texts.append(f"[resource {name}: {uri}]")
            case types.EmbeddedResource(resource=resource):
                add_resource(resource, texts, files)
    return texts, files


def add_resource(
    resource: types.TextResourceContents | types.BlobResourceContents,
    texts: list[str],
    files: list[Attachment],
) -> None:
    """Append the content of a resource to `texts` or to `files`."""
    match resource:
        case types.TextResourceContents(text=text):
            texts.append(text)
        case types.BlobResourceContents(blob=blob, mime_type=mime):
            _attach(blob, mime or "application/octet-stream", texts, files)


def _attach(data: str, mime: str, texts: list[str], files: list[Attachment]) -> None:
    """Append a file to `files`, or to `texts` a note about a file that is too large or damaged."""
    try:
        content = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        texts.append(f"[a file of type {mime} is left out: it is not valid base64]")
        return
    if len(files) == ATTACHMENTS or len(content) > ATTACHMENT_BYTES:
        texts.append(f"[a file of type {mime} with {len(content)} bytes is left out: too much]")
        return
    files.append(Attachment.of_bytes(content, mime))


def limited(text: str) -> str:
    """Return the text, cut after `TEXT_BYTES` bytes with a note about the whole size."""
    content = text.encode("utf-8", "replace")
    if len(content) <= TEXT_BYTES:
        return text
    head = content[:TEXT_BYTES].decode("utf-8", "ignore")
    return f"{head}\n[cut: the server answered with {len(content)} bytes]"


def prompt_text(result: types.GetPromptResult) -> str:
    """Return the messages of a prompt as one text; name the roles if there are several messages."""
    texts = [("\n\n".join(parts_of([each.content])[0]), each.role) for each in result.messages]
    if len(texts) == 1:
        return limited(texts[0][0])
    return limited("\n\n".join(f"{role}: {text}" for text, role in texts))


def resource_result(uri: str, result: types.ReadResourceResult) -> ToolResult:
    """Return the content of a resource."""
    texts: list[str] = []
    files: list[Attachment] = []
    for each in result.contents:
        add_resource(each, texts, files)
    return ToolResult(output=limited("\n\n".join(texts)), title=uri, attachments=tuple(files))
