"""The public names for plugins that keep state or secrets, or work in threads."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.contract.plugin": (
            "Secret",
            "Stash",
            "StashKey",
        ),
        "pegboard.contract.results": ("FoldStep", "PrefixChange", "PrefixLoss"),
        "pegboard.kit.pluginhttp": ("Http", "HttpResponse"),
        "pegboard.kit.privatefile": (
            "lock_file",
            "replace_file",
        ),
        "pegboard.kit.redact": ("redact",),
        "pegboard.kit.suggestions": ("nearest_names",),
        "pegboard.kit.threads": (
            "run_in_thread",
            "shield",
        ),
    },
)
