"""Pegboard: a plugin-first coding-agent framework.

These names are for authors of tools, policies, prompt parts, text filters and commands, and for
programs that embed an agent. The packages below have further names, by subject.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__version__ = "0.1.0"


def late_names(
    ring: str,
    homes: "Mapping[str, tuple[str, ...]]",
    moved: "Mapping[str, tuple[str, str]]" = {},  # noqa: B006 - a constant
) -> "tuple[Callable[[str], object], Callable[[], list[str]]]":
    """Return `__getattr__` and `__dir__` for the public module `ring`, which imports names lazily.

    `homes` maps each defining module to its names. A defining module is imported when one of its
    names is first used. `moved` maps each old name to `module:name`, its new place, and to the
    release that removes the old name.
    """
    places = {name: home for home, names in homes.items() for name in names}

    def value_of(name: str) -> object:
        if name == "__all__":
            return sorted(places)
        if name not in places and name not in moved:
            raise AttributeError(f"module {ring!r} has no attribute {name!r}")
        from importlib import import_module

        if name in moved:
            from pegboard.kit.deprecation import warn_of

            place, goes_in = moved[name]
            home, _, new = place.partition(":")
            warn_of(f"{ring}.{name}", goes_in, f"{home}.{new}")
            return getattr(import_module(home), new)
        return getattr(import_module(places[name]), name)

    return value_of, lambda: sorted(places)


__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.app.application": ("App",),
        "pegboard.app.script": ("run",),
        "pegboard.contract.context": (
            "PermissionContext",
            "SessionView",
            "SubagentResult",
            "ToolContext",
        ),
        "pegboard.contract.host": ("HookCalls", "Host", "ModelQuestion"),
        "pegboard.contract.plugin": ("Plugin", "evolve", "hookimpl", "hookspec"),
        "pegboard.contract.results": (
            "Activity",
            "Attachment",
            "PendingCall",
            "ToolResult",
        ),
        "pegboard.contract.tools": (
            "Tool",
            "tool",
        ),
        "pegboard.errors": (
            "InvalidInputError",
            "PegboardError",
            "PermissionDeniedError",
            "ToolError",
        ),
        "pegboard.opening.options": ("AppOptions",),
        "pegboard.providers.function": ("provider",),
        "pegboard.schema.message": ("Prompt",),
        "pegboard.workspace": ("Workspace",),
    },
)
