"""The hook that the sandbox brings."""

from collections.abc import Sequence

from pegboard import Sandbox, hookspec


@hookspec("collect")
def register_sandboxes() -> Sequence[Sandbox] | None:
    """Ways to enclose the processes that tools start.

    Called when an App opens with a `sandbox` in its configuration. The first that can hold it
    acts; without one the App does not open. Collect: a plugin that raises is left out.

    Since 0.1.
    """
