"""Programs that plugins run for a project, as clients show them."""

from typing import Literal

from pegboard.schema.wire import Wire


class Service(Wire, frozen=True):
    """A language server, a formatter, or whatever else `kind` says.

    `ready` is installed and would be run, `absent` would not. `root` is the folder that it
    works in, `extensions` are the suffixes of the files that it is for.
    """

    kind: str
    name: str
    state: Literal["ready", "running", "failed", "absent"]
    root: str = ""
    extensions: tuple[str, ...] = ()
