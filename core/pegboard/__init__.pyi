# Written by `poe stubs` from the table in the module beside it.
from collections.abc import Callable, Mapping

from pegboard.app.application import App as App
from pegboard.app.script import run as run
from pegboard.contract.context import PermissionContext as PermissionContext
from pegboard.contract.context import SessionView as SessionView
from pegboard.contract.context import SubagentResult as SubagentResult
from pegboard.contract.context import ToolContext as ToolContext
from pegboard.contract.host import HookCalls as HookCalls
from pegboard.contract.host import Host as Host
from pegboard.contract.host import ModelQuestion as ModelQuestion
from pegboard.contract.plugin import Plugin as Plugin
from pegboard.contract.plugin import evolve as evolve
from pegboard.contract.plugin import hookimpl as hookimpl
from pegboard.contract.plugin import hookspec as hookspec
from pegboard.contract.results import Activity as Activity
from pegboard.contract.results import Attachment as Attachment
from pegboard.contract.results import PendingCall as PendingCall
from pegboard.contract.results import ToolResult as ToolResult
from pegboard.contract.tools import Tool as Tool
from pegboard.contract.tools import tool as tool
from pegboard.errors import InvalidInputError as InvalidInputError
from pegboard.errors import PegboardError as PegboardError
from pegboard.errors import PermissionDeniedError as PermissionDeniedError
from pegboard.errors import ToolError as ToolError
from pegboard.opening.options import AppOptions as AppOptions
from pegboard.providers.function import provider as provider
from pegboard.schema.message import Prompt as Prompt
from pegboard.workspace import Workspace as Workspace

__version__: str

def late_names(
    ring: str,
    homes: Mapping[str, tuple[str, ...]],
    moved: Mapping[str, tuple[str, str]] = ...,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]: ...
