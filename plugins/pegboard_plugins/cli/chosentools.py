"""`--tools`: a run that offers only some of the tools."""

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from pegboard import InvalidInputError, PendingCall, SessionView, ToolError, hookimpl
from pegboard.errors import NotFoundError
from pegboard.plugins import nearest_names


def switches(chosen: Sequence[str], known: Mapping[str, str]) -> dict[str, bool]:
    """Return the tool switches of a prompt (name to on or off) that leave only chosen tools on.

    `chosen` are names or wildcards. `known` maps each tool to its permission, or to "" if unknown.
    A switch named like a permission, such as `edit`, applies to all tools with this permission.
    The tools among them that were not chosen are therefore switched off by name.

    :raises NotFoundError: for an unknown name, with the nearest names.
    :raises InvalidInputError: for an unknown name without similar names.
    """
    if not chosen:
        return {}
    for name in chosen:
        if not any(fnmatchcase(each, name) for each in known):
            if near := nearest_names(name, known):
                raise NotFoundError("tool", name, suggestions=near)
            raise InvalidInputError(f"no tool is called {name}; the tools are {', '.join(known)}")
    offered = [each for each in known if any(fnmatchcase(each, name) for name in chosen)]
    permissions = {known[each] for each in offered}
    besides = [
        each
        for each, permission in known.items()
        if each not in offered and permission in offered and each not in permissions
    ]
    return {"*": False, **dict.fromkeys(offered, True), **dict.fromkeys(besides, False)}


class ChosenTools:
    """A plugin that rejects every call of a tool that was not chosen, also in subagents."""

    def __init__(self, chosen: Sequence[str]) -> None:
        self._chosen = chosen

    @hookimpl
    def tool_execute_before(self, session: SessionView, call: PendingCall) -> None:  # noqa: ARG002 - the hook's
        """Reject the call of a tool that was not chosen."""
        if not any(fnmatchcase(call.tool, name) for name in self._chosen):
            raise ToolError(
                f"the user has left {call.tool} out of this run; there are: "
                f"{', '.join(self._chosen)}"
            )
