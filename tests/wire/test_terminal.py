"""The real terminal interface, two generations of it, attached to the server."""

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from served import Served
from wire.real_clients import TERMINALS, Clients
from wire.terminal import Terminal, attached

pytestmark = [
    pytest.mark.timeout(240),
    pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux"),
]
FOOTER = r"▣\s+Build\b"


@pytest.fixture(params=TERMINALS)
def terminal(
    request: pytest.FixtureRequest, clients: Clients, server: Served, tmp_path: Path
) -> Iterator[Terminal]:
    program = clients.terminal(request.param)
    places = {"directory": server.directory, "root": tmp_path / "client"}
    with attached(program, url=server.url, password=server.token, **places) as opened:
        opened.wait(r"Ask anything|Run a command", within_s=40)
        opened.wait(r"Build\s+·?\s*\S+")
        opened.settle(0.8, 8)
        yield opened


def test_a_day_s_work_in_the_terminal(terminal: Terminal, server: Served) -> None:
    _a_prompt_is_answered(terminal)
    _a_permission_is_asked_for(terminal)
    _tools_are_drawn(terminal)
    _an_answer_streams_and_is_aborted(terminal)
    _questions_and_subagents(terminal)
    _going_back_and_forth(terminal)
    _sessions_are_listed(terminal)
    _the_interface_ends(terminal)


def _a_prompt_is_answered(terminal: Terminal) -> None:
    terminal.prompt("first question;;%say PONG-one")
    terminal.wait(r"first question")
    terminal.wait(r"^\s+PONG-one")
    terminal.wait(FOOTER)
    terminal.wait("Fake title")
    terminal.rests()


def _a_permission_is_asked_for(terminal: Terminal) -> None:
    terminal.prompt("run it;;%bash echo tool-$((40+1))")
    terminal.wait("Permission required")
    terminal.settle()
    terminal.press("Enter")
    terminal.wait(r"^\s*┃?\s+tool-41")
    terminal.wait("All done after 1 tool result")
    terminal.prompt("reject it;;%bash echo rejected-$((1+1))")
    terminal.wait("Permission required")
    terminal.settle()
    terminal.press("Right", "Right", "Enter")
    terminal.wait("Permission required", absent=True)
    terminal.rests()
    assert "rejected-2" not in terminal.screen()


def _tools_are_drawn(terminal: Terminal) -> None:
    terminal.prompt(
        "six;;%write z.txt hello there;;%read z.txt;;%edit z.txt hello=>HELLO;;%glob z*;;"
        "%grep HELLO;;%todo one|two"
    )
    terminal.wait("All done after 6 tool result", within_s=40)
    terminal.rests()
    terminal.settle()
    drawn = (r"# Wrote .*z\.txt", r"→ Read .*z\.txt", r"← Edit .*z\.txt", r"\[•\] one")
    screen = terminal.screen()
    assert [each for each in drawn if not re.search(each, screen)] == [], screen


def _an_answer_streams_and_is_aborted(terminal: Terminal) -> None:
    terminal.prompt("slow;;%slow 100")
    terminal.wait("chunk3 ")
    assert "chunk60" not in terminal.screen()
    terminal.press("Escape")
    terminal.wait("again to interrupt")
    terminal.press("Escape")
    terminal.wait("interrupted")
    terminal.rests()


def _questions_and_subagents(terminal: Terminal) -> None:
    terminal.prompt("ask;;%question Which color?|Red|Blue")
    terminal.wait(r"1\. Red")
    terminal.settle()
    terminal.press("Down", "Enter")
    terminal.wait("All done after 1 tool result")
    terminal.rests()
    terminal.prompt("delegate;;%task general do sub work")
    terminal.wait("General Task")
    terminal.rests()


def _going_back_and_forth(terminal: Terminal) -> None:
    terminal.slash("undo")
    terminal.wait("1 message reverted")
    terminal.slash("redo")
    terminal.wait("1 message reverted", absent=True)


def _sessions_are_listed(terminal: Terminal) -> None:
    terminal.slash("new")
    terminal.wait(r"Ask anything|Run a command")
    terminal.settle()
    terminal.prompt("second session;;%say PONG-two")
    terminal.wait("PONG-two")
    terminal.rests()
    terminal.slash("sessions")
    terminal.wait("Search")
    terminal.wait("Fake title")
    terminal.press("Escape")
    terminal.settle()


def _the_interface_ends(terminal: Terminal) -> None:
    terminal.slash("exit")
    for _ in range(50):
        if terminal.ended():
            return
        terminal.settle(0.1, 0.2)
    raise AssertionError(terminal.screen())
