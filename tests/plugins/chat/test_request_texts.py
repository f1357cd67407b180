"""What a dialog shows of a request."""

from pegboard.schema.session import PermissionRequest
from pegboard_plugins.chat.requests import Permission


def test_a_dialog_shows_what_would_be_sent_and_changed() -> None:
    facts = {"text": "hello\nyou\x1b", "diff": "--- a\n+++ b\n@@ -1 +1 @@\n-one\n+two\n"}
    asked = PermissionRequest(
        id="per_1",
        session_id="ses_1",
        permission="comment",
        patterns=("SHOP-7",),
        metadata=facts,
        always=(),
    )

    shown = ["".join(span.text for span in row) for row in Permission(asked, _settle).lines(60, 20)]

    assert [row.strip() for row in shown[1:4]] == ["SHOP-7", "hello", "you\\x1b"]
    assert [row.split()[-1] for row in shown[4:6]] == ["one", "two"]


def _settle(*_: object) -> None:
    """Nothing is answered."""
