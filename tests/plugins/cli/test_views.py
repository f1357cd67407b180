"""What a person sees of a turn, from its events."""

import io
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from pegboard.schema.event import (
    Event,
    PartRemoved,
    PluginFailed,
    SessionCompacted,
    SessionCreated,
    SessionStatusChanged,
    SessionWarned,
)
from pegboard.schema.message import BudgetFailure, TextData
from pegboard.schema.part import (
    Completed,
    CompletedSpan,
    Failed,
    Pending,
    ReasoningPart,
    TextPart,
    TimeSpan,
)
from pegboard.schema.session import Retry, Tokens
from pegboard_plugins.cli.render import (
    OutputScreen,
    PlainScreen,
    TerminalScreen,
    open_screen,
    wants_colours,
)
from pegboard_plugins.cli.tally import Tally
from pegboard_plugins.cli.views import Viewer
from plugins.cli.events import (
    SESSION,
    answer,
    call,
    delta,
    event,
    said,
    session,
    text,
    updated,
)


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def play(screen: OutputScreen, events: Iterable[Event], *, thinking: bool = False) -> Tally:
    tally = Tally(SESSION)
    viewer = Viewer(screen, tally, Path("/w"), thinking=thinking)
    for each in events:
        tally.note(each)
        viewer.show(each)
    screen.close()
    return tally


def plain(*events: Event, thinking: bool = False) -> tuple[str, str]:
    out, err = io.StringIO(), io.StringIO()
    play(PlainScreen(out, err), events, thinking=thinking)
    return out.getvalue(), err.getvalue()


def on_terminal(*events: Event) -> tuple[str, str]:
    out, err = Terminal(), Terminal()
    play(TerminalScreen(out, err, colours=False), events)
    return out.getvalue(), err.getvalue()


def done(output: str = "a.txt\n") -> Completed:
    span = CompletedSpan(start=1, end=2)
    metadata = {"output": output, "exit": 0}
    return Completed(
        input={"command": "ls"}, output=output, title="ls", metadata=metadata, time=span
    )


def test_a_pipe_gets_the_finished_text_and_nothing_else() -> None:
    out, err = plain(
        said(answer()), text(""), delta("Hel"), delta("lo"), call(), text("Hello!", end=2)
    )

    assert out == "Hello!\n"
    assert err == "bash ls\n"


def test_a_terminal_gets_the_text_as_it_comes() -> None:
    out, _ = on_terminal(said(answer()), text(""), delta("Hel"), delta("lo"))

    assert out == "Hello\n"


def test_a_text_that_a_filter_changed_is_shown_again_on_a_terminal() -> None:
    streamed = delta("key 123\n\nend")

    out, err = on_terminal(said(answer()), text(""), streamed, text("key ***\n\nend", end=2))

    assert out == "key 123\nkey ***\n\nend\n"
    assert "changed by a plugin:" in err


def test_a_text_that_a_filter_changed_before_any_of_it_was_seen_is_shown_once() -> None:
    out, err = on_terminal(said(answer()), text(""), delta("key 123"), text("key ***", end=2))

    assert out == "key ***\n"
    assert "changed by a plugin:" not in err


def test_a_text_without_its_last_blanks_is_no_other_text() -> None:
    changed = delta("one\n\ntwo \n"), text("one\n\ntwo", end=2)

    _, err = on_terminal(said(answer()), text(""), *changed)

    assert "changed by a plugin:" not in err


def test_a_terminal_does_not_obey_the_model() -> None:
    out, _ = on_terminal(said(answer()), text(""), delta("\x1b[2J"), text("\x1b[2J", end=2))

    assert out == "\\x1b[2J\n"


def test_what_the_user_wrote_is_not_shown_again() -> None:
    assert plain(said(answer()), text("my prompt", end=2, message_id="msg_1")) == ("", "")


def test_a_summary_of_the_history_is_no_answer() -> None:
    out, err = plain(
        said(answer(summary=True)),
        text("what happened", end=2),
        event(SessionCompacted(session_id=SESSION)),
    )

    assert (out, err) == ("", "(compacted: a summary replaces the history)\n")


def test_reasoning_is_not_shown_as_text() -> None:
    assert plain(said(answer()), text(""), delta("hm", field="reasoning")) == ("", "")


def test_text_beyond_the_deltas_is_not_lost() -> None:
    out, _ = on_terminal(said(answer()), text(""), text("Hello"), text("Hello you", end=2))

    assert out == "Hello you\n"


def test_a_call_has_one_head_and_then_its_result() -> None:
    pending = Pending(input={}, raw="{")

    _, err = plain(said(answer()), call(pending), call(), call(), call(done()))

    assert err == "bash ls\n  a.txt\n"


def test_calls_beside_each_other_are_named_once_each_with_its_result() -> None:
    beside = call(tool="grep", part_id="prt_d")
    _, err = plain(call(), beside, call(done()), call(done(""), tool="grep", part_id="prt_d"))
    _, late = plain(call(), beside, call(done("b"), tool="grep", part_id="prt_d"), call(done()))

    assert err == "bash ls\n  a.txt\ngrep ls\n"
    assert late == "bash ls\n  a.txt\ngrep ls\n  b\n"


def test_a_call_of_an_answer_that_broke_off_holds_up_no_other() -> None:
    gone = event(PartRemoved(session_id=SESSION, message_id="msg_2", part_id="prt_c"))
    _, err = plain(call(), call(tool="grep", part_id="prt_d"), gone, call(done(), part_id="prt_d"))

    assert err == "bash ls\nbash ls\n  a.txt\n"


def thought(text: str, end: int | None) -> Event:
    span = TimeSpan(start=1, end=end)
    part = ReasoningPart(id="prt_r", session_id=SESSION, message_id="msg_2", text=text, time=span)
    return updated(part)


def test_thoughts_are_folded_on_a_terminal_and_whole_when_they_are_wanted() -> None:
    events = (said(answer()), thought("", None), thought("First.\nThen.", 1501), text("Hi", end=2))

    assert "thought for 1.5 s: First. …\n" in on_terminal(*events)[1]
    assert plain(*events)[1] == ""
    assert plain(*events, thinking=True)[1] == "thought for 1.5 s\n  First.\n  Then.\n"


def test_a_failed_call_shows_why() -> None:
    failed = Failed(input={"command": "ls"}, error="denied by rule", time=TimeSpan(start=1, end=2))

    _, err = plain(call(), call(failed))

    assert err == "bash ls\n  denied by rule\n"


def test_a_subagent_s_calls_are_indented_and_strangers_are_not_shown() -> None:
    child = event(SessionCreated(session_id="ses_2", info=session("ses_2", SESSION)))
    other = event(SessionCreated(session_id="ses_9", info=session("ses_9")))

    _, err = plain(child, other, call(session_id="ses_2"), call(session_id="ses_9"))

    assert err == "  bash ls\n"


def test_a_subagent_s_text_is_not_the_answer() -> None:
    child = event(SessionCreated(session_id="ses_2", info=session("ses_2", SESSION)))
    found = TextPart(
        id="prt_x",
        session_id="ses_2",
        message_id="msg_7",
        text="found it",
        time=TimeSpan(start=1, end=2),
    )

    out, _ = plain(child, said(answer("msg_7", session_id="ses_2")), updated(found))

    assert out == ""


def test_a_retry_and_a_dropped_answer_are_said() -> None:
    status = Retry(attempt=1, message="overloaded", next=0)
    removed = PartRemoved(session_id=SESSION, message_id="msg_2", part_id="prt_t")

    _, err = plain(
        said(answer()),
        text(""),
        delta("Hel"),
        event(removed),
        event(SessionStatusChanged(session_id=SESSION, status=status)),
    )

    assert err == (
        "(the answer broke off and starts again)\nRetrying in 0 s (attempt 2): overloaded\n"
    )


def test_a_text_that_had_ended_is_taken_back_as_well() -> None:
    removed = PartRemoved(session_id=SESSION, message_id="msg_2", part_id="prt_t")

    _, err = on_terminal(said(answer()), text("Hello.", end=2), event(removed))

    assert "the answer broke off and starts again" in err


def test_a_plugin_s_failure_is_one_line_that_names_it_once() -> None:
    message = "plugin shout: hook text_complete raised boom\n!"
    failure = PluginFailed(plugin="shout", hook="text_complete", message=message)

    _, err = plain(event(failure))

    assert err == "plugin shout: hook text_complete raised boom !\n"


def test_a_warning_about_a_turn_is_one_line_and_another_session_s_is_not_shown() -> None:
    mine = SessionWarned(session_id="ses_1", message="4 of 5 steps are taken")
    other = SessionWarned(session_id="ses_9", message="never shown")

    _, err = plain(event(mine), event(other))

    assert err == "warning: 4 of 5 steps are taken\n"


def test_the_spinner_names_what_runs_and_never_writes_over_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")  # a dumb terminal has no spinner
    out, err = Terminal(), Terminal()
    screen = TerminalScreen(out, err, colours=False)
    tally = Tally(SESSION)
    viewer = Viewer(screen, tally, Path("/w"))
    for each in (said(answer()), text(""), delta("half a line")):
        tally.note(each)
        viewer.show(each)

    viewer.show(call())
    viewer.show_quiet()
    screen.close()
    assert out.getvalue() == "half a line\n"
    assert err.getvalue().startswith("\nbash ls\n")
    assert "⠋ bash" in err.getvalue()


def test_costs_of_subagents_are_counted_in() -> None:
    child = event(SessionCreated(session_id="ses_2", info=session("ses_2", SESSION)))

    tally = play(
        PlainScreen(io.StringIO(), io.StringIO()),
        [
            said(answer()),
            said(answer()),
            child,
            said(answer("msg_7", session_id="ses_2")),
            said(answer("msg_8", session_id="ses_9")),
        ],
    )

    assert (tally.cost, tally.steps, tally.tokens) == (1.0, 2, Tokens(input=20, output=4))


@pytest.mark.parametrize(
    ("later", "denial"),
    [([], "no"), ([call(done(), part_id="prt_e", message_id="msg_3")], "")],
)
def test_a_denial_counts_until_the_agent_calls_something_else(
    later: list[Event], denial: str
) -> None:
    denied = Failed(input={}, error="no", time=TimeSpan(start=1, end=2), metadata={"denied": True})

    tally = play(PlainScreen(io.StringIO(), io.StringIO()), [call(denied), *later])

    assert tally.denial == denial


def test_colours_need_a_terminal_and_no_objection() -> None:
    assert isinstance(open_screen(Terminal(), Terminal(), {}), TerminalScreen)
    assert isinstance(open_screen(Terminal(), io.StringIO(), {}), PlainScreen)
    assert isinstance(open_screen(Terminal(), Terminal(), {"TERM": "dumb"}), PlainScreen)
    assert wants_colours({})
    assert not wants_colours({"NO_COLOR": "1"})


def test_a_step_that_a_budget_refused_is_not_counted() -> None:
    tally = Tally(SESSION)
    spent = BudgetFailure(data=TextData(message="the budget allows no more steps than 1"))
    refused = msgspec.structs.replace(answer("msg_3", cost=0), error=spent, tokens=Tokens())
    cut = msgspec.structs.replace(answer("msg_2"), error=spent)
    for each in (cut, refused):
        tally.note(said(each))

    assert tally.steps == 1
