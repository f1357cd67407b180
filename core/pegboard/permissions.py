"""The public names for permission policies: rules, verdicts and requests."""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.files.secretfiles": (
            "may_name",
            "may_read",
        ),
        "pegboard.policy.permissions": (
            "UNCLEAR",
            "deciding_rule",
            "judge_rules",
            "matches_pattern",
            "rules_from_config",
            "strictest_verdict",
        ),
        "pegboard.processes.commandwords": ("may_run",),
        "pegboard.schema.session": ("Ruleset",),
    },
)
