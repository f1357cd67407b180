"""Pegboard: a plugin-first coding-agent framework.

These are the names that a plugin may use; each is loaded when it is first asked for, so that
importing the package costs nothing.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pegboard.app import App as App
    from pegboard.audit.acknowledgement import acknowledge_audit as acknowledge_audit
    from pegboard.audit.check import verify_audit as verify_audit
    from pegboard.audit.trail import Audit as Audit
    from pegboard.config.configuration import load_config as load_config
    from pegboard.config.edit import ConfigEdit as ConfigEdit
    from pegboard.config.edit import update_user_config as update_user_config
    from pegboard.config.parse import read_layer as read_layer
    from pegboard.config.project import redirections as redirections
    from pegboard.config.project import shown_before as shown_before
    from pegboard.contract.changes import ChangeSession as ChangeSession
    from pegboard.contract.changes import DropMessage as DropMessage
    from pegboard.contract.changes import DropPart as DropPart
    from pegboard.contract.changes import PutPart as PutPart
    from pegboard.contract.compactors import Compaction as Compaction
    from pegboard.contract.compactors import CompactionRequest as CompactionRequest
    from pegboard.contract.compactors import Compactor as Compactor
    from pegboard.contract.context import BackgroundProcess as BackgroundProcess
    from pegboard.contract.context import ChildResult as ChildResult
    from pegboard.contract.context import ProcessResult as ProcessResult
    from pegboard.contract.context import Ruleset as Ruleset
    from pegboard.contract.context import SessionView as SessionView
    from pegboard.contract.context import ToolContext as ToolContext
    from pegboard.contract.context import named_path as named_path
    from pegboard.contract.host import HookCalls as HookCalls
    from pegboard.contract.host import Host as Host
    from pegboard.contract.marks import hookimpl as hookimpl
    from pegboard.contract.marks import hookspec as hookspec
    from pegboard.contract.providers import Call as Call
    from pegboard.contract.providers import Media as Media
    from pegboard.contract.providers import ModelMessage as ModelMessage
    from pegboard.contract.providers import ModelRequest as ModelRequest
    from pegboard.contract.providers import Provider as Provider
    from pegboard.contract.providers import Reasoning as Reasoning
    from pegboard.contract.providers import ReasoningDelta as ReasoningDelta
    from pegboard.contract.providers import ReasoningEnd as ReasoningEnd
    from pegboard.contract.providers import ReasoningStart as ReasoningStart
    from pegboard.contract.providers import Result as Result
    from pegboard.contract.providers import StreamEvent as StreamEvent
    from pegboard.contract.providers import StreamFinish as StreamFinish
    from pegboard.contract.providers import Text as Text
    from pegboard.contract.providers import TextDelta as TextDelta
    from pegboard.contract.providers import TextEnd as TextEnd
    from pegboard.contract.providers import TextStart as TextStart
    from pegboard.contract.providers import ToolCall as ToolCall
    from pegboard.contract.providers import ToolDefinition as ToolDefinition
    from pegboard.contract.providers import ToolInputDelta as ToolInputDelta
    from pegboard.contract.providers import ToolInputEnd as ToolInputEnd
    from pegboard.contract.providers import ToolInputStart as ToolInputStart
    from pegboard.contract.providers import Usage as Usage
    from pegboard.contract.results import Attachment as Attachment
    from pegboard.contract.results import PendingCall as PendingCall
    from pegboard.contract.results import ToolResult as ToolResult
    from pegboard.contract.sandbox import Sandbox as Sandbox
    from pegboard.contract.sandbox import SandboxPolicy as SandboxPolicy
    from pegboard.contract.snapshots import Left as Left
    from pegboard.contract.snapshots import Restored as Restored
    from pegboard.contract.snapshots import Snapshots as Snapshots
    from pegboard.contract.snapshots import StagedWay as StagedWay
    from pegboard.contract.snapshots import Way as Way
    from pegboard.contract.snapshots import Writing as Writing
    from pegboard.contract.stash import Stash as Stash
    from pegboard.contract.stash import StashKey as StashKey
    from pegboard.contract.storage import Hit as Hit
    from pegboard.contract.storage import SessionSize as SessionSize
    from pegboard.contract.tools import Tool as Tool
    from pegboard.contract.tools import serving as serving
    from pegboard.contract.tools import tool as tool
    from pegboard.engine.asking.explained import Explanation as Explanation
    from pegboard.engine.bus import Bus as Bus
    from pegboard.engine.bus import Subscription as Subscription
    from pegboard.engine.bus import encode_event as encode_event
    from pegboard.engine.content.attachments import DIRECTORY_MIME as DIRECTORY_MIME
    from pegboard.engine.content.attachments import mime_of as mime_of
    from pegboard.engine.content.truncate import remove_old_outputs as remove_old_outputs
    from pegboard.engine.input.shell import ShellOrder as ShellOrder
    from pegboard.engine.input.slashcommand import CommandOrder as CommandOrder
    from pegboard.engine.session.export import LINE_LIMIT_BYTES as LINE_LIMIT_BYTES
    from pegboard.engine.session.revert import Reverted as Reverted
    from pegboard.engine.spending.spent import AgentCost as AgentCost
    from pegboard.engine.spending.spent import by_agent as by_agent
    from pegboard.engine.tracking.leavings import reason_of as reason_of
    from pegboard.engine.tracking.leavings import shown_path as shown_path
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
    from pegboard.ids import IdSource as IdSource
    from pegboard.ids import check_id as check_id
    from pegboard.kit.addresses import ip_address_of as ip_address_of
    from pegboard.kit.addresses import is_loopback as is_loopback
    from pegboard.kit.addresses import is_public_address as is_public_address
    from pegboard.kit.diffs import Diff as Diff
    from pegboard.kit.diffs import diff_texts as diff_texts
    from pegboard.kit.expressions import LineExpression as LineExpression
    from pegboard.kit.expressions import line_expression as line_expression
    from pegboard.kit.globs import glob_expression as glob_expression
    from pegboard.kit.ignores import IgnoreRules as IgnoreRules
    from pegboard.kit.openat import TEMPORARY as TEMPORARY
    from pegboard.kit.openat import is_resolved as is_resolved
    from pegboard.kit.openat import move_resolved as move_resolved
    from pegboard.kit.openat import open_resolved as open_resolved
    from pegboard.kit.openat import remove_resolved as remove_resolved
    from pegboard.kit.openat import temporary_beside as temporary_beside
    from pegboard.kit.programs import FoundProgram as FoundProgram
    from pegboard.kit.programs import ProgramSearch as ProgramSearch
    from pegboard.kit.programs import find_program as find_program
    from pegboard.kit.programs import search_path as search_path
    from pegboard.kit.redact import secret_values as secret_values
    from pegboard.kit.shielded import shielded as shielded
    from pegboard.kit.suggestions import nearest_names as nearest_names
    from pegboard.kit.textfile import FileText as FileText
    from pegboard.kit.textfile import decode_text as decode_text
    from pegboard.kit.textfile import file_encoding as file_encoding
    from pegboard.kit.textfile import line_text as line_text
    from pegboard.kit.textfile import marked_encoding as marked_encoding
    from pegboard.kit.textfile import new_text as new_text
    from pegboard.kit.walk import printable_name as printable_name
    from pegboard.kit.walk import ripgrep as ripgrep
    from pegboard.kit.walk import ripgrep_names as ripgrep_names
    from pegboard.kit.walk import walk_files as walk_files
    from pegboard.loading.register import PluginInfo as PluginInfo
    from pegboard.loading.registration import Problem as Problem
    from pegboard.opening import AppOptions as AppOptions
    from pegboard.paths import Places as Places
    from pegboard.policy.permissions import UNCLEAR as UNCLEAR
    from pegboard.policy.permissions import judge as judge
    from pegboard.policy.permissions import may_name as may_name
    from pegboard.policy.permissions import may_read as may_read
    from pegboard.policy.permissions import rules_from_config as rules_from_config
    from pegboard.policy.sensitive import protected_folder as protected_folder
    from pegboard.policy.sensitive import protected_path as protected_path
    from pegboard.policy.sensitive import secret_path as secret_path
    from pegboard.processes.eventloop import run_async as run_async
    from pegboard.processes.process import ProgramResult as ProgramResult
    from pegboard.processes.process import run_program as run_program
    from pegboard.processes.run_until import run_until as run_until
    from pegboard.storage.opener import open_storage as open_storage
    from pegboard.terminals.shells import TerminalOrder as TerminalOrder
    from pegboard.terminals.terminal import Terminal as Terminal
    from pegboard.terminals.terminal import TerminalSize as TerminalSize
    from pegboard.trust.decisions import Decision as Decision
    from pegboard.trust.decisions import TrustStore as TrustStore
    from pegboard.trust.decisions import write_lock as write_lock
    from pegboard.trust.gitconfig import running_settings as running_settings
    from pegboard.trust.projectcode import read_bounded as read_bounded
    from pegboard.trust.scan import ScanReport as ScanReport
    from pegboard.workspace import Workspace as Workspace
    from pegboard.workspace import branch as branch
    from pegboard.workspace import open_workspace as open_workspace

_MODULES = {
    "kit.addresses": ("ip_address_of", "is_loopback", "is_public_address"),
    "app": ("App",),
    "audit.trail": ("Audit",),
    "audit.acknowledgement": ("acknowledge_audit",),
    "audit.check": ("verify_audit",),
    "engine.bus": ("Bus", "Subscription", "encode_event"),
    "contract.compactors": ("Compaction", "CompactionRequest", "Compactor"),
    "config.configuration": ("load_config",),
    "config.edit": ("ConfigEdit", "update_user_config"),
    "config.parse": ("read_layer",),
    "config.project": ("redirections", "shown_before"),
    "contract.context": (
        "BackgroundProcess",
        "ChildResult",
        "ProcessResult",
        "Ruleset",
        "SessionView",
        "ToolContext",
        "named_path",
    ),
    "kit.diffs": ("Diff", "diff_texts"),
    "processes.run_until": ("run_until",),
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
    "processes.eventloop": ("run_async",),
    "kit.expressions": ("LineExpression", "line_expression"),
    "trust.gitconfig": ("running_settings",),
    "kit.globs": ("glob_expression",),
    "contract.marks": ("hookimpl", "hookspec"),
    "contract.host": ("HookCalls", "Host"),
    "ids": ("IdSource", "check_id"),
    "kit.ignores": ("IgnoreRules",),
    "kit.shielded": ("shielded",),
    "kit.suggestions": ("nearest_names",),
    "kit.openat": (
        "TEMPORARY",
        "is_resolved",
        "move_resolved",
        "open_resolved",
        "remove_resolved",
        "temporary_beside",
    ),
    "opening": ("AppOptions",),
    "paths": ("Places",),
    "policy.permissions": (
        "UNCLEAR",
        "judge",
        "may_name",
        "may_read",
        "rules_from_config",
        "strictest",
    ),
    "loading.register": ("PluginInfo",),
    "processes.process": ("ProgramResult", "run_program"),
    "kit.programs": ("FoundProgram", "ProgramSearch", "find_program", "search_path"),
    "contract.providers": (
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
    "kit.redact": ("secret_values",),
    "loading.registration": ("Problem",),
    "contract.results": ("Attachment", "PendingCall", "ToolResult"),
    "contract.sandbox": ("Sandbox", "SandboxPolicy"),
    "trust.scan": ("ScanReport",),
    "policy.sensitive": ("protected_folder", "protected_path", "secret_path"),
    "engine.content.attachments": ("DIRECTORY_MIME", "mime_of"),
    "engine.input.slashcommand": ("CommandOrder",),
    "engine.spending.spent": ("AgentCost", "by_agent"),
    "engine.asking.explained": ("Explanation",),
    "engine.session.export": ("LINE_LIMIT_BYTES",),
    "engine.tracking.leavings": ("reason_of", "shown_path"),
    "engine.session.revert": ("Reverted",),
    "engine.input.shell": ("ShellOrder",),
    "terminals.shells": ("TerminalOrder",),
    "contract.snapshots": ("Left", "Restored", "Snapshots", "StagedWay", "Way", "Writing"),
    "trust.projectcode": ("read_bounded",),
    "contract.stash": ("Stash", "StashKey"),
    "contract.changes": ("ChangeSession", "DropMessage", "DropPart", "PutPart"),
    "storage.opener": ("open_storage",),
    "contract.storage": ("Hit", "SessionSize"),
    "terminals.terminal": ("Terminal", "TerminalSize"),
    "kit.textfile": (
        "FileText",
        "decode_text",
        "file_encoding",
        "line_text",
        "marked_encoding",
        "new_text",
    ),
    "contract.tools": ("Tool", "serving", "tool"),
    "engine.content.truncate": ("remove_old_outputs",),
    "trust.decisions": ("Decision", "TrustStore", "write_lock"),
    "kit.walk": ("printable_name", "ripgrep", "ripgrep_names", "walk_files"),
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
