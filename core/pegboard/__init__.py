"""Pegboard: a plugin-first coding-agent framework.

These are the names that a plugin may use; each is loaded when it is first asked for, so that
importing the package costs nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.addresses import ip_address_of as ip_address_of
    from pegboard.addresses import is_loopback as is_loopback
    from pegboard.addresses import is_public_address as is_public_address
    from pegboard.app import App as App
    from pegboard.audit import Audit as Audit
    from pegboard.audit.acknowledgement import acknowledge_audit as acknowledge_audit
    from pegboard.audit.check import verify_audit as verify_audit
    from pegboard.bus import Bus as Bus
    from pegboard.bus import Subscription as Subscription
    from pegboard.bus import encode_event as encode_event
    from pegboard.compactors import Compaction as Compaction
    from pegboard.compactors import CompactionRequest as CompactionRequest
    from pegboard.compactors import Compactor as Compactor
    from pegboard.config import load_config as load_config
    from pegboard.config.edit import ConfigEdit as ConfigEdit
    from pegboard.config.edit import update_user_config as update_user_config
    from pegboard.config.parse import read_layer as read_layer
    from pegboard.config.project import redirections as redirections
    from pegboard.config.project import shown_before as shown_before
    from pegboard.context import BackgroundProcess as BackgroundProcess
    from pegboard.context import ChildResult as ChildResult
    from pegboard.context import ProcessResult as ProcessResult
    from pegboard.context import Ruleset as Ruleset
    from pegboard.context import SessionView as SessionView
    from pegboard.context import ToolContext as ToolContext
    from pegboard.context import named_path as named_path
    from pegboard.diffs import Diff as Diff
    from pegboard.diffs import diff_texts as diff_texts
    from pegboard.enough import run_until as run_until
    from pegboard.errors import AbortedError as AbortedError
    from pegboard.errors import ConfigError as ConfigError
    from pegboard.errors import ContextOverflowError as ContextOverflowError
    from pegboard.errors import InvalidInputError as InvalidInputError
    from pegboard.errors import ModelNotFoundError as ModelNotFoundError
    from pegboard.errors import NotFoundError as NotFoundError
    from pegboard.errors import PegboardError as PegboardError
    from pegboard.errors import PermissionDeniedError as PermissionDeniedError
    from pegboard.errors import ProviderAuthError as ProviderAuthError
    from pegboard.errors import ProviderError as ProviderError
    from pegboard.errors import QuestionRejectedError as QuestionRejectedError
    from pegboard.errors import ServerError as ServerError
    from pegboard.errors import ServerUnreachableError as ServerUnreachableError
    from pegboard.errors import SessionBusyError as SessionBusyError
    from pegboard.errors import StorageError as StorageError
    from pegboard.errors import TimeLimitError as TimeLimitError
    from pegboard.errors import ToolError as ToolError
    from pegboard.errors import TrustError as TrustError
    from pegboard.eventloop import run_async as run_async
    from pegboard.expressions import LineExpression as LineExpression
    from pegboard.expressions import line_expression as line_expression
    from pegboard.gitconfig import running_settings as running_settings
    from pegboard.globs import glob_expression as glob_expression
    from pegboard.hookmarks import hookimpl as hookimpl
    from pegboard.hookmarks import hookspec as hookspec
    from pegboard.host import HookCalls as HookCalls
    from pegboard.host import Host as Host
    from pegboard.ids import IdSource as IdSource
    from pegboard.ids import check_id as check_id
    from pegboard.ignores import IgnoreRules as IgnoreRules
    from pegboard.nearest import nearest_names as nearest_names
    from pegboard.openat import TEMPORARY as TEMPORARY
    from pegboard.openat import is_resolved as is_resolved
    from pegboard.openat import move_resolved as move_resolved
    from pegboard.openat import open_resolved as open_resolved
    from pegboard.openat import remove_resolved as remove_resolved
    from pegboard.openat import temporary_beside as temporary_beside
    from pegboard.opening import AppOptions as AppOptions
    from pegboard.paths import Places as Places
    from pegboard.permissions import UNCLEAR as UNCLEAR
    from pegboard.permissions import judge as judge
    from pegboard.permissions import may_name as may_name
    from pegboard.permissions import may_read as may_read
    from pegboard.permissions import rules_from_config as rules_from_config
    from pegboard.plugins import PluginInfo as PluginInfo
    from pegboard.process import ProgramResult as ProgramResult
    from pegboard.process import run_program as run_program
    from pegboard.programs import FoundProgram as FoundProgram
    from pegboard.programs import ProgramSearch as ProgramSearch
    from pegboard.programs import find_program as find_program
    from pegboard.programs import search_path as search_path
    from pegboard.providers import Call as Call
    from pegboard.providers import Media as Media
    from pegboard.providers import ModelMessage as ModelMessage
    from pegboard.providers import ModelRequest as ModelRequest
    from pegboard.providers import Provider as Provider
    from pegboard.providers import Reasoning as Reasoning
    from pegboard.providers import ReasoningDelta as ReasoningDelta
    from pegboard.providers import ReasoningEnd as ReasoningEnd
    from pegboard.providers import ReasoningStart as ReasoningStart
    from pegboard.providers import Result as Result
    from pegboard.providers import StreamEvent as StreamEvent
    from pegboard.providers import StreamFinish as StreamFinish
    from pegboard.providers import Text as Text
    from pegboard.providers import TextDelta as TextDelta
    from pegboard.providers import TextEnd as TextEnd
    from pegboard.providers import TextStart as TextStart
    from pegboard.providers import ToolCall as ToolCall
    from pegboard.providers import ToolDefinition as ToolDefinition
    from pegboard.providers import ToolInputDelta as ToolInputDelta
    from pegboard.providers import ToolInputEnd as ToolInputEnd
    from pegboard.providers import ToolInputStart as ToolInputStart
    from pegboard.providers import Usage as Usage
    from pegboard.redact import secret_values as secret_values
    from pegboard.registration import Problem as Problem
    from pegboard.results import Attachment as Attachment
    from pegboard.results import PendingCall as PendingCall
    from pegboard.results import ToolResult as ToolResult
    from pegboard.sandbox import Sandbox as Sandbox
    from pegboard.sandbox import SandboxPolicy as SandboxPolicy
    from pegboard.scan import ScanReport as ScanReport
    from pegboard.sensitive import protected_folder as protected_folder
    from pegboard.sensitive import protected_path as protected_path
    from pegboard.sensitive import secret_path as secret_path
    from pegboard.session.attachments import DIRECTORY_MIME as DIRECTORY_MIME
    from pegboard.session.attachments import mime_of as mime_of
    from pegboard.session.command import CommandOrder as CommandOrder
    from pegboard.session.costs import AgentCost as AgentCost
    from pegboard.session.costs import by_agent as by_agent
    from pegboard.session.explain import Explanation as Explanation
    from pegboard.session.export import LINE_LIMIT_BYTES as LINE_LIMIT_BYTES
    from pegboard.session.leavings import reason_of as reason_of
    from pegboard.session.leavings import shown_path as shown_path
    from pegboard.session.revert import Reverted as Reverted
    from pegboard.session.shell import ShellOrder as ShellOrder
    from pegboard.session.terminal import TerminalOrder as TerminalOrder
    from pegboard.snapshots import Left as Left
    from pegboard.snapshots import Restored as Restored
    from pegboard.snapshots import Snapshots as Snapshots
    from pegboard.snapshots import StagedWay as StagedWay
    from pegboard.snapshots import Way as Way
    from pegboard.snapshots import Writing as Writing
    from pegboard.sources import read_bounded as read_bounded
    from pegboard.stash import Stash as Stash
    from pegboard.stash import StashKey as StashKey
    from pegboard.storage.changes import ChangeSession as ChangeSession
    from pegboard.storage.changes import DropMessage as DropMessage
    from pegboard.storage.changes import DropPart as DropPart
    from pegboard.storage.changes import PutPart as PutPart
    from pegboard.storage.opener import open_storage as open_storage
    from pegboard.storage.protocol import Hit as Hit
    from pegboard.storage.protocol import SessionSize as SessionSize
    from pegboard.terminal import Terminal as Terminal
    from pegboard.terminal import TerminalSize as TerminalSize
    from pegboard.textfile import FileText as FileText
    from pegboard.textfile import decode_text as decode_text
    from pegboard.textfile import file_encoding as file_encoding
    from pegboard.textfile import line_text as line_text
    from pegboard.textfile import marked_encoding as marked_encoding
    from pegboard.textfile import new_text as new_text
    from pegboard.tools import Tool as Tool
    from pegboard.tools import serving as serving
    from pegboard.tools import tool as tool
    from pegboard.truncate import remove_old_outputs as remove_old_outputs
    from pegboard.trust import Decision as Decision
    from pegboard.trust import TrustStore as TrustStore
    from pegboard.trust import write_lock as write_lock
    from pegboard.walk import printable_name as printable_name
    from pegboard.walk import ripgrep as ripgrep
    from pegboard.walk import ripgrep_names as ripgrep_names
    from pegboard.walk import walk_files as walk_files
    from pegboard.workspace import Workspace as Workspace
    from pegboard.workspace import branch as branch
    from pegboard.workspace import open_workspace as open_workspace

_MODULES = {
    "addresses": ("ip_address_of", "is_loopback", "is_public_address"),
    "app": ("App",),
    "audit": ("Audit",),
    "audit.acknowledgement": ("acknowledge_audit",),
    "audit.check": ("verify_audit",),
    "bus": ("Bus", "Subscription", "encode_event"),
    "compactors": ("Compaction", "CompactionRequest", "Compactor"),
    "config": ("load_config",),
    "config.edit": ("ConfigEdit", "update_user_config"),
    "config.parse": ("read_layer",),
    "config.project": ("redirections", "shown_before"),
    "context": (
        "BackgroundProcess",
        "ChildResult",
        "ProcessResult",
        "Ruleset",
        "SessionView",
        "ToolContext",
        "named_path",
    ),
    "diffs": ("Diff", "diff_texts"),
    "enough": ("run_until",),
    "errors": (
        "AbortedError",
        "ConfigError",
        "ContextOverflowError",
        "InvalidInputError",
        "ModelNotFoundError",
        "NotFoundError",
        "PegboardError",
        "PermissionDeniedError",
        "ProviderAuthError",
        "ProviderError",
        "QuestionRejectedError",
        "ServerError",
        "ServerUnreachableError",
        "SessionBusyError",
        "StorageError",
        "TimeLimitError",
        "ToolError",
        "TrustError",
    ),
    "eventloop": ("run_async",),
    "expressions": ("LineExpression", "line_expression"),
    "gitconfig": ("running_settings",),
    "globs": ("glob_expression",),
    "hookmarks": ("hookimpl", "hookspec"),
    "host": ("HookCalls", "Host"),
    "ids": ("IdSource", "check_id"),
    "ignores": ("IgnoreRules",),
    "nearest": ("nearest_names",),
    "openat": (
        "TEMPORARY",
        "is_resolved",
        "move_resolved",
        "open_resolved",
        "remove_resolved",
        "temporary_beside",
    ),
    "opening": ("AppOptions",),
    "paths": ("Places",),
    "permissions": ("UNCLEAR", "judge", "may_name", "may_read", "rules_from_config", "strictest"),
    "plugins": ("PluginInfo",),
    "process": ("ProgramResult", "run_program"),
    "programs": ("FoundProgram", "ProgramSearch", "find_program", "search_path"),
    "providers": (
        "Call",
        "Media",
        "ModelMessage",
        "ModelRequest",
        "Provider",
        "Reasoning",
        "ReasoningDelta",
        "ReasoningEnd",
        "ReasoningStart",
        "Result",
        "StreamEvent",
        "StreamFinish",
        "Text",
        "TextDelta",
        "TextEnd",
        "TextStart",
        "ToolCall",
        "ToolDefinition",
        "ToolInputDelta",
        "ToolInputEnd",
        "ToolInputStart",
        "Usage",
    ),
    "redact": ("secret_values",),
    "registration": ("Problem",),
    "results": ("Attachment", "PendingCall", "ToolResult"),
    "sandbox": ("Sandbox", "SandboxPolicy"),
    "scan": ("ScanReport",),
    "sensitive": ("protected_folder", "protected_path", "secret_path"),
    "session.attachments": ("DIRECTORY_MIME", "mime_of"),
    "session.command": ("CommandOrder",),
    "session.costs": ("AgentCost", "by_agent"),
    "session.explain": ("Explanation",),
    "session.export": ("LINE_LIMIT_BYTES",),
    "session.leavings": ("reason_of", "shown_path"),
    "session.revert": ("Reverted",),
    "session.shell": ("ShellOrder",),
    "session.terminal": ("TerminalOrder",),
    "snapshots": ("Left", "Restored", "Snapshots", "StagedWay", "Way", "Writing"),
    "sources": ("read_bounded",),
    "stash": ("Stash", "StashKey"),
    "storage.changes": ("ChangeSession", "DropMessage", "DropPart", "PutPart"),
    "storage.opener": ("open_storage",),
    "storage.protocol": ("Hit", "SessionSize"),
    "terminal": ("Terminal", "TerminalSize"),
    "textfile": (
        "FileText",
        "decode_text",
        "file_encoding",
        "line_text",
        "marked_encoding",
        "new_text",
    ),
    "tools": ("Tool", "serving", "tool"),
    "truncate": ("remove_old_outputs",),
    "trust": ("Decision", "TrustStore", "write_lock"),
    "walk": ("printable_name", "ripgrep", "ripgrep_names", "walk_files"),
    "workspace": ("Workspace", "branch", "open_workspace"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
__all__ = sorted(_HOME)  # noqa: PLE0605 - built from the one table, so that it cannot differ
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'pegboard' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"pegboard.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
