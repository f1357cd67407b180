"""The apply_patch tool: changes many files in one call, for models trained on its format."""

from typing import TYPE_CHECKING

from pegboard import PermissionContext, Tool, ToolContext, ToolResult, hookimpl, tool
from pegboard.providers import ModelRequest
from pegboard.schema.model import Model
from pegboard.schema.part import Completed, ToolPart

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pegboard.display import Block
    from pegboard_plugins.apply_patch.changes import PatchPlace

SHOWN_LINES = 48
"""Lines of the diff that people see before they unfold it."""
_REPLACED = frozenset({"edit", "write", "multiedit"})


async def _may_change(context: PermissionContext, patchText: str) -> "Sequence[PatchPlace]":
    """Return the patch's sections with resolved paths, unless one of the changes is denied."""
    from pegboard_plugins.apply_patch.applying import permitted  # as in apply_patch

    return await permitted(context, patchText)


def _drawn(part: ToolPart) -> "Block | None":
    """Return the patch's diff for the user interface, or None before the call completes."""
    if not isinstance(part.state, Completed):
        return None
    import pegboard.unstable  # not before a call is drawn
    from pegboard.display import Block

    diff = part.state.metadata.get("diff")
    title = part.state.title or pegboard.unstable.subject_of(part.state.input)
    return Block(title=title, diff=diff if isinstance(diff, str) else "", fold=SHOWN_LINES)


@tool(
    permission="edit",
    requires=_may_change,
    draw=_drawn,
    aliases={"patch": "patchText", "input": "patchText"},
    effect="edits",
)
async def apply_patch(context: ToolContext, patchText: str) -> ToolResult:  # noqa: ARG001 - for `requires`
    """Change files that were read or attached: all that the patch names, or none.

    Paths are relative to the working directory, or absolute. A file may have several chunks,
    each below an `@@` line, with three unchanged lines around the change; every line of a new
    file begins with +. Do not read the file again: the call fails if it did not apply.

    *** Begin Patch
    *** Update File: path
    *** Move to: path (optional)
    @@ a line above the place, such as a def (optional)
     kept line
    -old line
    +new line
    *** End of File (optional: the chunk ends the file)
    *** Add File: path
    +each line
    *** Delete File: path
    *** End Patch
    """
    from pegboard_plugins.apply_patch.applying import apply_sections  # 8 ms, at the first patch

    return await apply_sections(context, context.granted(_may_change))


@hookimpl
async def register_tools() -> list[Tool]:
    """Register the apply_patch tool."""
    return [apply_patch]


@hookimpl
async def chat_params(request: ModelRequest) -> ModelRequest | None:
    """Remove apply_patch from the request, or for models trained on it, the other edit tools."""
    names = {tool.name for tool in request.tools}
    if "apply_patch" not in names:
        return None
    patches = writes_patches(request.model) or not names & _REPLACED
    return request.without(*(_REPLACED if patches else {"apply_patch"}))


def writes_patches(model: Model) -> bool:
    """Return whether the model was trained on apply_patch (opencode `tool/registry.ts`)."""
    name = model.api.id or model.id
    return "gpt-" in name and "oss" not in name and "gpt-4" not in name
