"""Code of front ends, servers and clients: bodies of requests, and an App's report about itself.

Also changes of the user's configuration, the files of keys and secrets, and what a project's
code does by its source.
"""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard_plugins.shared.frontend.agentcosts": ("AgentCost", "by_agent", "costs_of"),
        "pegboard_plugins.shared.frontend.approvals": (
            "approvals_of",
            "revoke",
        ),
        "pegboard_plugins.shared.frontend.bodies": (
            "AnswersBody",
            "Auth",
            "Branch",
            "ChangedTime",
            "CommandBody",
            "ConfiguredProviders",
            "FileChange",
            "FileContent",
            "FileNode",
            "ForkBody",
            "Health",
            "InitBody",
            "LogBody",
            "Match",
            "PluginEntry",
            "PromptBody",
            "Protection",
            "ProviderListing",
            "QuestionsBody",
            "ReplyBody",
            "ResponseBody",
            "RevertBody",
            "SessionBody",
            "SessionChange",
            "ShellBody",
            "Shown",
            "Submatch",
            "SummarizeBody",
            "TraceEntry",
        ),
        "pegboard_plugins.shared.frontend.bundlemanifest": (
            "Bundle",
            "BundleError",
            "read_bundle",
        ),
        "pegboard_plugins.shared.frontend.bundlestore": (
            "BundleStore",
            "copy_bundle",
            "read_bundles",
        ),
        "pegboard_plugins.shared.frontend.projectbundles": (
            "ProjectBundle",
            "project_bundles",
        ),
        "pegboard_plugins.shared.frontend.runrules": ("RunRules",),
        "pegboard_plugins.shared.frontend.codescan": (
            "ScanReport",
            "scans_of",
        ),
        "pegboard_plugins.shared.frontend.configedit": (
            "update_user_config",
            "write_config",
        ),
        "pegboard_plugins.shared.frontend.copies": (
            "Conversation",
            "adopted",
            "forked",
            "moved_here",
        ),
        "pegboard_plugins.shared.frontend.editing": ("edit_turn",),
        "pegboard_plugins.shared.frontend.explanation": (
            "Explanation",
            "explain",
        ),
        "pegboard_plugins.shared.frontend.foldtrace": (
            "TraceStep",
            "begin_trace",
            "trace_steps",
            "tracing",
        ),
        "pegboard_plugins.shared.frontend.frontmatter": ("front_matter", "listed"),
        "pegboard_plugins.shared.frontend.insight": (
            "plugin_entries",
            "standing",
            "trace_entries",
        ),
        "pegboard_plugins.shared.frontend.keyfile": (
            "KEYRING",
            "KeyFile",
            "entry_name",
            "kept_names",
            "kept_secrets",
            "key_of",
            "store_secret",
        ),
        "pegboard_plugins.shared.frontend.leftout": (
            "LeftOut",
            "fault_warnings",
            "left_out",
            "untrusted_warnings",
        ),
        "pegboard_plugins.shared.frontend.marking": (
            "as_source",
            "disarmed",
            "material",
        ),
        "pegboard_plugins.shared.frontend.mentions": (
            "mentioned",
            "missing_files",
        ),
        "pegboard_plugins.shared.frontend.modelorder": ("newest_first",),
        "pegboard_plugins.shared.frontend.permissionmodes": (
            "ASK",
            "MODES",
            "PLAN",
            "PermissionMode",
            "change_mode",
            "default_mode",
            "is_for_all",
            "mode_of",
            "with_mode",
        ),
        "pegboard_plugins.shared.frontend.projectfolder": (
            "branch",
            "running_settings",
            "follow_folder",
            "settings_warnings",
            "unseen_warnings",
        ),
        "pegboard_plugins.shared.frontend.reverting": (
            "Reverted",
            "copies_of",
            "reason_of",
            "reverted",
            "session_diff",
            "shown_path",
            "unreverted",
        ),
        "pegboard_plugins.shared.frontend.sessionfolder": (
            "adopt_folder",
            "gone_folders",
            "gone_note",
            "require_folder",
        ),
        "pegboard_plugins.shared.frontend.shellline": (
            "ShellOrder",
            "run_shell",
        ),
        "pegboard_plugins.shared.frontend.slashcommand": (
            "CommandOrder",
            "require_answerer",
            "run_command",
        ),
        "pegboard_plugins.shared.frontend.unknowns": (
            "ASKS_UNKNOWN",
            "UNKNOWN",
            "decoded",
            "for_client",
        ),
        "pegboard_plugins.shared.frontend.unseendocuments": ("UnseenDocuments",),
    },
)
