"""What a person does in the terminal interface on one day, step by step, in this order."""

import os
import re
from collections.abc import Callable

from wire.terminal import Terminal

FOOTER = r"▣\s+Build\b"
RENAMED = "Renamed by hand"
FORKED = re.escape(RENAMED) + r" \(fork #1\)"

Step = Callable[[Terminal], None]


def boot(terminal: Terminal) -> None:
    """The prompt box, the agent and the model are shown."""
    terminal.wait(r"Ask anything|Run a command", within_s=40)
    terminal.wait(r"Build\s+·?\s*\S+")
    terminal.settle(0.8, 8)


def a_prompt_is_answered(terminal: Terminal) -> None:
    """The text, the streamed answer and the footer."""
    terminal.prompt("first question;;%say PONG-one")
    terminal.wait(r"first question")
    terminal.wait(r"^\s+PONG-one")
    terminal.wait(FOOTER)
    terminal.rests()


def the_title_arrives(terminal: Terminal) -> None:
    """The server has named the session."""
    terminal.wait("Fake title")


def a_permission_is_given_once(terminal: Terminal) -> None:
    """The dialog shows the command; it runs when allowed."""
    terminal.prompt("run it;;%bash echo tool-$((40+1))")
    terminal.wait("Permission required")
    terminal.wait(r"echo tool-\$\(\(40\+1\)\)")
    terminal.settle()
    terminal.press("Enter")
    terminal.wait(r"^\s*┃?\s+tool-41")
    terminal.wait("All done after 1 tool result")
    terminal.rests()


def an_allowed_call_is_not_asked_for(terminal: Terminal) -> None:
    """What the configuration allows runs."""
    terminal.prompt("run free;;%bash echo free-$((50+5))")
    terminal.wait("free-55")
    terminal.wait("All done after 1 tool result")
    terminal.wait(FOOTER + r".*\d+(\.\d+)?m?s\b")
    terminal.rests()


def a_permission_is_refused(terminal: Terminal) -> None:
    """Nothing runs, and the turn ends."""
    terminal.prompt("reject it;;%bash echo rejected-$((1+1))")
    terminal.wait("Permission required")
    terminal.settle()
    terminal.press("Right", "Right")
    terminal.settle(0.3)
    terminal.press("Enter")
    terminal.wait("Permission required", absent=True)
    terminal.rests()
    assert "rejected-2" not in terminal.screen()


def a_permission_is_given_for_always(terminal: Terminal) -> None:
    """The second call of the same command is not asked for."""
    name = f"always{os.getpid()}"  # there is no such program, and no matter
    terminal.prompt(f"always;;%bash {name} 1;;%bash {name} 2")
    terminal.wait("Permission required")
    terminal.settle()
    terminal.press("Right")
    terminal.settle(0.3)
    terminal.press("Enter")
    terminal.wait("Always allow")
    terminal.settle()
    terminal.press("Enter")
    terminal.wait(r"All done after 2 tool results?")
    terminal.rests()


def tools_are_drawn(terminal: Terminal) -> None:
    """Each in its own way."""
    terminal.prompt(
        "six;;%write z.txt hello there;;%read z.txt;;%edit z.txt hello=>HELLO;;%glob z*;;"
        "%grep HELLO;;%todo one|two|three"
    )
    terminal.wait("All done after 6 tool result", within_s=40)
    terminal.rests()
    terminal.settle()
    screen = terminal.screen()
    drawn = (
        *(r"# Wrote .*z\.txt", r"→ Read .*z\.txt", r"← Edit .*z\.txt"),
        *(r"✱ Glob \"z\*\"", r"✱ Grep \"HELLO\"", r"\[•\] one", r"\[ \] two"),
    )
    assert [each for each in drawn if not re.search(each, screen)] == [], screen


def an_answer_streams_and_is_aborted(terminal: Terminal) -> None:
    """Piece by piece, until a person has enough."""
    terminal.prompt("slow;;%slow 100")
    terminal.wait("chunk3 ")
    assert "chunk60" not in terminal.screen()
    terminal.press("Escape")
    terminal.wait("again to interrupt")
    terminal.press("Escape")
    terminal.wait("interrupted")
    terminal.rests()
    assert "chunk99" not in terminal.screen()


def thoughts_are_drawn(terminal: Terminal) -> None:
    """What the model thinks is told from what it says."""
    terminal.prompt("ponder;;%think deep-thought-42;;%say conclusion-7")
    terminal.wait(r"^\s+conclusion-7")
    terminal.rests()
    terminal.wait("deep-thought-42|Thought|Thinking")


def a_session_is_renamed(terminal: Terminal) -> None:
    """By its dialog."""
    terminal.slash("rename")
    terminal.wait("Rename Session")
    terminal.press("C-e", "C-u")
    terminal.type(RENAMED)
    terminal.wait(RENAMED)
    terminal.settle()
    terminal.press("Enter")
    terminal.wait("Rename Session", absent=True)
    terminal.wait(RENAMED)


def a_shell_line_is_run(terminal: Terminal) -> None:
    """The person's own command."""
    terminal.clear()
    terminal.type("!")
    terminal.wait("shell mode")
    terminal.type("echo shell-$((40+2))")
    terminal.wait(r"40\+2\)\)")
    terminal.settle()
    terminal.press("Enter")
    terminal.wait("shell-42")
    terminal.rests()


def a_question_is_answered(terminal: Terminal) -> None:
    """With the second of two answers."""
    terminal.prompt("ask;;%question Which color?|Red|Blue")
    terminal.wait(r"1\. Red")
    terminal.settle()
    terminal.press("Down")
    terminal.settle(0.3)
    terminal.press("Enter")
    terminal.wait(r"1\. Red", absent=True)
    terminal.wait("All done after 1 tool result")
    terminal.wait(r"^\s*┃?\s+Blue")
    terminal.rests()


def a_subagent_is_looked_at(terminal: Terminal) -> None:
    """Its session is opened and left again."""
    terminal.prompt("delegate;;%task general sub work please")
    terminal.wait("General Task", within_s=30)
    terminal.rests()
    terminal.settle(0.6)
    hint = re.search(r"ctrl\+x (right|down)\s+view subagents", terminal.screen())
    assert hint, terminal.screen()
    terminal.press("C-x")
    terminal.press(hint[1].title())
    terminal.wait(r"^\s+ECHO: sub work please")
    if re.search(r"Parent ctrl\+x up", terminal.screen()):
        terminal.press("C-x")
    terminal.press("Up")
    terminal.wait("General Task")


def a_session_is_compacted(terminal: Terminal) -> None:
    """The summary is drawn."""
    terminal.slash("compact")
    terminal.wait("Compaction")
    terminal.wait("SUMMARY: the user")
    terminal.rests()


def a_message_is_undone_and_redone(terminal: Terminal) -> None:
    """It goes and comes back."""
    terminal.prompt("to be undone;;%say UNDO-me-now")
    terminal.wait(r"^\s+UNDO-me-now")
    terminal.rests()
    terminal.slash("undo")
    terminal.wait("1 message reverted")
    terminal.wait(r"^\s+UNDO-me-now", absent=True)
    terminal.slash("redo")
    terminal.wait("1 message reverted", absent=True)
    terminal.wait(r"^\s+UNDO-me-now")


def commands_are_listed(terminal: Terminal) -> None:
    """Those of the interface and those of the server."""
    terminal.clear()
    terminal.type("/")
    terminal.wait("/agents")
    terminal.wait("/compact|/connect")
    terminal.press("BSpace")
    terminal.leave()


def a_server_s_command_is_run(terminal: Terminal) -> None:
    """`/init`."""
    terminal.slash("init")
    terminal.press("Enter")
    terminal.wait(r"^\s+ECHO: .*")
    terminal.rests()


def the_palette_opens(terminal: Terminal) -> None:
    """By its key."""
    terminal.press("C-p")
    terminal.wait("Commands")
    terminal.wait("Switch session")
    terminal.leave()


def models_are_listed(terminal: Terminal) -> None:
    """Those of the providers."""
    terminal.slash("models")
    terminal.wait("Select model")
    terminal.wait("Fake Model|fake-model")
    terminal.leave()


def agents_are_listed(terminal: Terminal) -> None:
    """Those that a person talks to."""
    terminal.slash("agents")
    terminal.wait("Select agent")
    terminal.wait(r"\bbuild\b")
    terminal.wait(r"\bplan\b")
    terminal.leave()


def the_status_is_shown(terminal: Terminal) -> None:
    """Of servers and formatters."""
    terminal.slash("status")
    terminal.wait("Status")
    terminal.wait("MCP")
    terminal.leave()


def the_timeline_is_shown(terminal: Terminal) -> None:
    """The person's messages."""
    terminal.slash("timeline")
    terminal.wait("Timeline")
    terminal.wait("first question|run it|to be undone")
    terminal.leave()


def a_session_is_forked(terminal: Terminal) -> None:
    """The fork is in the list."""
    terminal.slash("fork")
    terminal.wait("Fork")
    terminal.settle()
    terminal.press("Enter")
    terminal.settle(1.0)
    terminal.wait("Fork (from message|session)", absent=True)
    terminal.slash("sessions")
    terminal.wait(FORKED)
    terminal.leave()


def a_new_session_is_begun(terminal: Terminal) -> None:
    """And answered in."""
    terminal.slash("new")
    terminal.wait("Ask anything|Run a command")
    terminal.settle()
    terminal.prompt("second session;;%say PONG-two")
    terminal.wait(r"^\s+PONG-two")
    terminal.rests()


def an_old_session_is_opened(terminal: Terminal) -> None:
    """Its messages are there."""
    terminal.slash("sessions")
    terminal.wait("Search")
    terminal.wait(RENAMED)
    terminal.type(RENAMED)
    terminal.settle(0.8)
    terminal.press("Enter")
    terminal.wait("PONG-two", absent=True)
    terminal.wait("UNDO-me-now|SUMMARY|PONG-one|All done|ECHO: ")


def a_file_is_mentioned(terminal: Terminal) -> None:
    """Its name is completed, its text sent."""
    terminal.slash("new")
    terminal.wait("Ask anything|Run a command")
    terminal.clear()
    terminal.type("look at @READ")
    terminal.wait(r"┃ README\.md")
    terminal.settle()
    terminal.press("Enter")
    terminal.settle()
    terminal.press("Enter")
    terminal.wait(r"look at @README\.md")
    terminal.wait(r"^\s+ECHO: look at")
    terminal.rests()


def a_session_is_deleted(terminal: Terminal) -> None:
    """It is gone from the list."""
    terminal.slash("sessions")
    terminal.wait("Search")
    terminal.type(f"{RENAMED} (f")
    terminal.settle(0.8)
    terminal.wait(FORKED)
    terminal.press("C-d")
    terminal.wait("again to confirm")
    terminal.press("C-d")
    terminal.wait("again to confirm", absent=True)
    terminal.settle(0.6)
    terminal.leave()
    terminal.slash("sessions")
    terminal.wait("Search")
    terminal.wait(FORKED, absent=True)
    terminal.leave()


def the_interface_ends(terminal: Terminal) -> None:
    """By its command."""
    terminal.clear()
    terminal.slash("exit")
    for _ in range(50):
        if terminal.ended():
            return
        terminal.settle(0.1, 0.2)
    raise AssertionError(terminal.screen())


DAY: tuple[Step, ...] = (
    *(boot, a_prompt_is_answered, the_title_arrives, a_permission_is_given_once),
    *(an_allowed_call_is_not_asked_for, a_permission_is_refused, a_permission_is_given_for_always),
    *(tools_are_drawn, an_answer_streams_and_is_aborted, thoughts_are_drawn, a_session_is_renamed),
    *(a_shell_line_is_run, a_question_is_answered, a_subagent_is_looked_at, a_session_is_compacted),
    *(a_message_is_undone_and_redone, commands_are_listed, a_server_s_command_is_run),
    *(the_palette_opens, models_are_listed, agents_are_listed, the_status_is_shown),
    *(the_timeline_is_shown, a_session_is_forked, a_new_session_is_begun),
    *(an_old_session_is_opened, a_file_is_mentioned, a_session_is_deleted, the_interface_ends),
)
"""All 29 of them."""
SHORT: tuple[Step, ...] = (
    *(boot, a_prompt_is_answered, the_title_arrives, a_permission_is_given_once),
    *(a_permission_is_refused, tools_are_drawn, an_answer_streams_and_is_aborted),
    *(a_session_is_renamed, a_message_is_undone_and_redone, a_new_session_is_begun),
    *(an_old_session_is_opened, the_interface_ends),
)
"""What a session is mostly made of."""
