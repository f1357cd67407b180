"""What the last line has room for."""

from inspect import iscoroutinefunction
from pathlib import Path

import pytest

from pegboard.display import plain_line
from pegboard_plugins.chat import footer_widget, status_items
from pegboard_plugins.chat.hookspecs import ChatState
from pegboard_plugins.chat.statusline import status_line
from pegboard_plugins.shared.frontend import Facts

MODEL = "provider/a-model-with-a-name-that-is-far-too-long-2026"


@pytest.mark.parametrize("mode", ["ask", "accept edits", "plan", "everything"])
@pytest.mark.parametrize("width", [29, 39, 79, 199])
def test_the_permission_mode_and_the_end_of_the_model_s_name_are_in_the_line(
    mode: str, width: int
) -> None:
    here = Path("/a/project")
    state = ChatState(directory=here, agent="build", model=MODEL, mode=mode)

    line = plain_line(status_line(Facts(directory=here), state, 3, (), width))

    assert mode in line
    assert "long-2026" in line
    assert len(line) <= width


def test_the_chat_s_own_items_wait_for_no_thread() -> None:
    assert iscoroutinefunction(status_items)
    assert iscoroutinefunction(footer_widget)
