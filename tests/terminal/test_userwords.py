"""What is stored for the model is put in words for the user where the user reads it."""

import pytest

from pegboard.display import default_block
from pegboard.engine.asking.decision import REJECTED
from pegboard.engine.toolcall import STOPPED
from pegboard.policy.pending import nobody
from pegboard.schema.part import Failed, TimeSpan, ToolPart
from pegboard.schema.session import PermissionRequest, Verdict
from pegboard.unstable import outcome_of, user_words
from pegboard_plugins.shared.terminal import denial_of

REQUEST = PermissionRequest(
    id="per_1", session_id="ses_1", permission="edit", patterns=("a.py",), metadata={}, always=()
)
TEXTS = {
    REJECTED: "You said no.",
    f"{REJECTED} The user said: Use git.": "You said no: Use git.",
    f"output\n\n{STOPPED}": "output\n\nStopped.",
    nobody(REQUEST): 'edit "a.py" needs a permission, and there is no terminal to ask on.',
    "The user did not want to answer.": "You skipped the question.",
    'denied by rule edit "*" (agent plan)': "Blocked: the plan agent does not allow edits.",
    'denied by rule bash "git push *" (config)': (
        'Blocked: your config does not allow shell commands that match "git push *".'
    ),
    'asked by rule edit "*" (config)': "Your config asks before edits.",
    'asked by rule external_directory "*" (built-in)': (
        "Pegboard asks before access outside the project."
    ),
    'asked by rule deploy "a (b)" (mode ask)': (
        'The ask mode asks before calls of deploy that match "a (b)".'
    ),
    nobody(REQUEST, because=Verdict(action="ask", reason='asked by rule edit "*" (config)')): (
        'edit "a.py" needs a permission (your config asks before edits), and there is no terminal'
        " to ask on."
    ),
    "anything else": "anything else",
}


@pytest.mark.parametrize(("stored", "read"), TEXTS.items())
def test_the_words_for_the_model_are_not_those_for_the_user(stored: str, read: str) -> None:
    assert user_words(stored) == read


def test_a_refused_or_stopped_call_has_not_failed() -> None:
    assert [outcome_of(stored) for stored in TEXTS] == [
        "refused",
        "refused",
        "stopped",
        *["failed"] * 9,
    ]


@pytest.mark.parametrize("stored", TEXTS)
def test_blocks_and_denials_have_the_words_for_the_user(stored: str) -> None:
    state = Failed(input={}, error=stored, metadata={"denied": True}, time=TimeSpan(start=0, end=1))
    part = ToolPart(
        id="prt_1", session_id="ses_1", message_id="msg_1", call_id="c", tool="t", state=state
    )

    lines = ["".join(span.text for span in line) for line in default_block(part).lines]

    assert "\n".join(lines) == TEXTS[stored]
    assert denial_of(part) == TEXTS[stored]
