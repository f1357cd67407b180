"""Names that the built-in plugins use, without a promise of stability.

Any release may change them. If your plugin needs such a name, ask for a stable one.
"""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.cli.exits": (
            "OUT_OF_MEMORY",
            "end_without_memory",
            "exit_of",
            "fault_of",
        ),
        "pegboard.cli.main": ("complain",),
        "pegboard.cli.namedoutput": ("named_output",),
        "pegboard.config.configuration": (
            "check_config",
            "load_config",
        ),
        "pegboard.config.layer": (
            "config_text",
            "json_config",
            "read_layer",
        ),
        "pegboard.config.project": (
            "redirections",
            "shown_before",
        ),
        "pegboard.contract.apphooks": ("mention",),
        "pegboard.contract.toolhooks": ("render_tool",),
        "pegboard.contract.tools": ("serving",),
        "pegboard.display.blocklines": (
            "block_lines",
            "shown_line",
            "with_note",
        ),
        "pegboard.display.defaultblocks": (
            "CallBlocks",
            "counted",
            "given_block",
            "lines_of",
            "one_line",
            "subject_of",
            "todo_lines",
        ),
        "pegboard.display.userwords": (
            "outcome_of",
            "user_words",
        ),
        "pegboard.display.visibletext": (
            "exposed",
            "without_passwords",
        ),
        "pegboard.engine.bus": ("Bus",),
        "pegboard.engine.toolresult": ("remove_old_outputs",),
        "pegboard.files.encodings": ("marked_encoding",),
        "pegboard.files.filestates": ("States",),
        "pegboard.files.ignores": ("IgnoreRules",),
        "pegboard.files.ledger": ("LocalLedger",),
        "pegboard.files.mediacontent": ("MEDIA_MIMES",),
        "pegboard.files.mediatypes": ("is_text",),
        "pegboard.files.placing": (
            "TEMPORARY",
            "copy_traits",
            "move_resolved",
            "temporary_beside",
        ),
        "pegboard.files.protection": (
            "autorun_files",
            "home_secrets",
            "imported_documents",
            "instructs",
            "protected_folder",
            "protected_path",
        ),
        "pegboard.files.searchprocess": ("run_until",),
        "pegboard.files.shellpatterns": (
            "folder_entries",
            "shell_escape",
            "shell_fits",
            "shell_names",
            "shell_paths",
            "shell_unescape",
        ),
        "pegboard.files.stepsnapshots": (
            "COPIED_LIMIT_BYTES",
            "StepSnapshots",
            "bounded",
            "changed_files",
            "summary_of",
            "total",
            "total_by_name",
            "ways_of",
        ),
        "pegboard.files.storednames": (
            "name_of",
            "stored_name",
        ),
        "pegboard.files.typography": (
            "PLAIN",
            "in_letters_of",
            "plain",
        ),
        "pegboard.files.walk": (
            "ripgrep",
            "ripgrep_names",
        ),
        "pegboard.http.answerblocks": ("AnswerKind",),
        "pegboard.http.certificates": (
            "CERTIFICATES_HINT",
            "tls_context",
        ),
        "pegboard.http.client": ("untrusted_issuer",),
        "pegboard.http.encoding": (
            "forgiven",
            "mapping_in",
            "media_bytes",
            "media_kind",
            "snake_case",
        ),
        "pegboard.http.finishwords": ("finish_of",),
        "pegboard.http.keyadvice": ("key_advice",),
        "pegboard.http.proxies": (
            "Proxy",
            "proxy_for",
        ),
        "pegboard.http.publicaddress": ("is_public_address",),
        "pegboard.http.refusals": ("says",),
        "pegboard.http.sentmedia": ("SentMedia",),
        "pegboard.http.wireformat": ("Fetch",),
        "pegboard.ids": ("check_id",),
        "pegboard.kit.deprecation": ("PegboardDeprecationWarning",),
        "pegboard.kit.hosts": (
            "host_pattern",
            "ip_address_of",
            "is_literal",
            "known_host",
            "split_port",
        ),
        "pegboard.kit.privatefile": (
            "USERS_ALONE",
            "set_aside",
        ),
        "pegboard.kit.redact": (
            "secret_values",
            "without_values",
        ),
        "pegboard.kit.threads": (
            "Threads",
            "closing",
        ),
        "pegboard.opening.options": (
            "files_to_trust",
            "find_plugins",
        ),
        "pegboard.policy.agents": ("exposure_of",),
        "pegboard.processes.background": ("ToolProcesses",),
        "pegboard.processes.family": (
            "Family",
            "MARK",
            "refuse_within_tool",
            "within_tool",
        ),
        "pegboard.processes.hostprograms": (
            "search_path",
            "try_program",
        ),
        "pegboard.processes.programsearch": ("ProgramSearch",),
        "pegboard.providers.spending": (
            "tokens_of",
            "total_tokens",
        ),
        "pegboard.storage.rows": ("INTERRUPTED_CALLS",),
        "pegboard.trust.decisions": ("TrustStore",),
        "pegboard.trust.projectcode": (
            "imported_modules",
            "imports_pegboard",
            "read_bounded",
            "way_down",
        ),
        "pegboard.workspace": ("open_workspace",),
    },
)
