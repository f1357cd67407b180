"""Names for plugins that keep state or secrets."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.contract.plugin": (
            "Secret",
            "Stash",
            "StashKey",
        ),
        "pegboard.kit.pluginhttp": ("Http", "HttpResponse"),
        "pegboard.kit.redact": ("redacted",),
        "pegboard.kit.suggestions": ("nearest_names",),
        "pegboard.kit.threads": ("shielded",),
    },
)
