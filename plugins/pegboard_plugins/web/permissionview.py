"""The data of permission requests, with the same lines as on a terminal."""

from pegboard.schema.session import PermissionRequest
from pegboard.schema.wire import Wire
from pegboard.unstable import exposed, user_words
from pegboard_plugins.shared.terminal import permission_lines
from pegboard_plugins.shared.transcripts import rows_html
from pegboard_plugins.web.nodes import Node, html_nodes


class PermissionView(Wire, frozen=True):
    """A permission request for display; `reason` names the rule or the plugin that asks."""

    agent: str
    reason: str
    nodes: tuple[Node, ...]


def permission_view(request: PermissionRequest) -> PermissionView:
    """Return a permission request for display, with the agent and the reason for asking."""
    rows = "".join(rows_html(permission_lines(request)))
    return PermissionView(
        agent=exposed(str(request.metadata.get("agent") or "")),
        reason=exposed(user_words(str(request.metadata.get("reason") or ""))),
        nodes=html_nodes(f"<pre class='asked'>\n{rows}</pre>"),
    )
