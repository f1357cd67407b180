"""What front ends, servers and clients share: bodies of requests, and what an App tells of itself.

Also changes of the user's configuration, the files of keys and secrets, and what a project's
code does by its source. Each name is
loaded when it is first asked for.
"""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard_frontend.approvals import approvals_of as approvals_of
    from pegboard_frontend.approvals import revoke as revoke
    from pegboard_frontend.bodies import AnswersBody as AnswersBody
    from pegboard_frontend.bodies import Auth as Auth
    from pegboard_frontend.bodies import Branch as Branch
    from pegboard_frontend.bodies import ChangedTime as ChangedTime
    from pegboard_frontend.bodies import CommandBody as CommandBody
    from pegboard_frontend.bodies import ConfiguredProviders as ConfiguredProviders
    from pegboard_frontend.bodies import FileChange as FileChange
    from pegboard_frontend.bodies import FileContent as FileContent
    from pegboard_frontend.bodies import FileNode as FileNode
    from pegboard_frontend.bodies import ForkBody as ForkBody
    from pegboard_frontend.bodies import Health as Health
    from pegboard_frontend.bodies import InitBody as InitBody
    from pegboard_frontend.bodies import LogBody as LogBody
    from pegboard_frontend.bodies import Match as Match
    from pegboard_frontend.bodies import PluginEntry as PluginEntry
    from pegboard_frontend.bodies import PromptBody as PromptBody
    from pegboard_frontend.bodies import Protection as Protection
    from pegboard_frontend.bodies import ProviderListing as ProviderListing
    from pegboard_frontend.bodies import QuestionsBody as QuestionsBody
    from pegboard_frontend.bodies import ReplyBody as ReplyBody
    from pegboard_frontend.bodies import ResponseBody as ResponseBody
    from pegboard_frontend.bodies import RevertBody as RevertBody
    from pegboard_frontend.bodies import SessionBody as SessionBody
    from pegboard_frontend.bodies import SessionChange as SessionChange
    from pegboard_frontend.bodies import ShellBody as ShellBody
    from pegboard_frontend.bodies import Shown as Shown
    from pegboard_frontend.bodies import Submatch as Submatch
    from pegboard_frontend.bodies import SummarizeBody as SummarizeBody
    from pegboard_frontend.bodies import TraceEntry as TraceEntry
    from pegboard_frontend.codescan import ScanReport as ScanReport
    from pegboard_frontend.codescan import scans_of as scans_of
    from pegboard_frontend.configedit import update_user_config as update_user_config
    from pegboard_frontend.configedit import write_config as write_config
    from pegboard_frontend.copies import Conversation as Conversation
    from pegboard_frontend.copies import adopted as adopted
    from pegboard_frontend.copies import forked as forked
    from pegboard_frontend.copies import moved_here as moved_here
    from pegboard_frontend.editing import edit_turn as edit_turn
    from pegboard_frontend.explanation import Explanation as Explanation
    from pegboard_frontend.explanation import explain as explain
    from pegboard_frontend.foldtrace import begin_trace as begin_trace
    from pegboard_frontend.foldtrace import trace_steps as trace_steps
    from pegboard_frontend.insight import plugin_entries as plugin_entries
    from pegboard_frontend.insight import standing as standing
    from pegboard_frontend.insight import trace_entries as trace_entries
    from pegboard_frontend.keyfile import KEYRING as KEYRING
    from pegboard_frontend.keyfile import KeyFile as KeyFile
    from pegboard_frontend.keyfile import entry_name as entry_name
    from pegboard_frontend.keyfile import kept_names as kept_names
    from pegboard_frontend.keyfile import kept_secrets as kept_secrets
    from pegboard_frontend.keyfile import key_of as key_of
    from pegboard_frontend.keyfile import store_secret as store_secret
    from pegboard_frontend.leftout import LeftOut as LeftOut
    from pegboard_frontend.leftout import fault_warnings as fault_warnings
    from pegboard_frontend.leftout import left_out as left_out
    from pegboard_frontend.leftout import untrusted_warnings as untrusted_warnings
    from pegboard_frontend.marking import as_source as as_source
    from pegboard_frontend.marking import disarmed as disarmed
    from pegboard_frontend.marking import material as material
    from pegboard_frontend.mentions import mentioned as mentioned
    from pegboard_frontend.modelorder import newest_first as newest_first
    from pegboard_frontend.projectfolder import branch as branch
    from pegboard_frontend.projectfolder import running_settings as running_settings
    from pegboard_frontend.projectfolder import settings_warnings as settings_warnings
    from pegboard_frontend.projectfolder import unseen_warnings as unseen_warnings
    from pegboard_frontend.reverting import Reverted as Reverted
    from pegboard_frontend.reverting import copies_of as copies_of
    from pegboard_frontend.reverting import reason_of as reason_of
    from pegboard_frontend.reverting import reverted as reverted
    from pegboard_frontend.reverting import session_diff as session_diff
    from pegboard_frontend.reverting import shown_path as shown_path
    from pegboard_frontend.reverting import unreverted as unreverted
    from pegboard_frontend.sessionfolder import adopt_folder as adopt_folder
    from pegboard_frontend.sessionfolder import gone_folders as gone_folders
    from pegboard_frontend.sessionfolder import gone_note as gone_note
    from pegboard_frontend.sessionfolder import require_folder as require_folder
    from pegboard_frontend.shellline import ShellOrder as ShellOrder
    from pegboard_frontend.shellline import run_shell as run_shell
    from pegboard_frontend.slashcommand import CommandOrder as CommandOrder
    from pegboard_frontend.slashcommand import run_command as run_command
    from pegboard_frontend.unknowns import ASKS_UNKNOWN as ASKS_UNKNOWN
    from pegboard_frontend.unknowns import UNKNOWN as UNKNOWN
    from pegboard_frontend.unknowns import decoded as decoded
    from pegboard_frontend.unknowns import for_client as for_client
    from pegboard_frontend.unseendocuments import UnseenDocuments as UnseenDocuments
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
