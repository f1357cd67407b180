"""The live line: the activity and duration of a running turn, and the key that stops it."""

from time import time

from pegboard.display import Span
from pegboard.schema.session import Retry
from pegboard.unstable import one_line, shown_line
from pegboard_plugins.chat import short_count
from pegboard_plugins.chat.course import Course
from pegboard_plugins.chat.modes import SpanLine
from pegboard_plugins.chat.turnprogress import retry_text

REASON_LETTERS = 60
"""The maximum length of a retry's reason; the transcript has all of it."""
STOPS = "Esc stops"
LOST = "No connection to the server, trying again"


def live_line(course: Course, width: int, *, is_connected: bool) -> SpanLine:
    """Return the line for a session; empty without a turn, and while a dialog is open.

    In a narrow window only the description of the activity is cut.
    """
    progress = course.progress
    progress.look(busy=course.busy)
    if not course.busy or course.requests:
        return ()
    facts, written = [f"{time() - progress.begun_s:.0f} s"], progress.written
    facts += [f"{short_count(written)} token{'s' * (written != 1)}"] if written else []
    rest = "".join(f" · {fact}" for fact in (*facts, STOPS))
    doing = _doing(course) if is_connected else LOST
    return shown_line(
        (Span(one_line(doing, max(1, width - len(rest))), "active"), Span(rest, "dim"))
    )


def _doing(course: Course) -> str:
    if isinstance(course.status, Retry):
        return retry_text(course.status, REASON_LETTERS)
    tools = [part.tool for part in course.calls.values()]
    if tools:
        return f"Running {tools[0]}" if len(tools) == 1 else f"Running {len(tools)} tools"
    if course.writes:
        return "Writing"
    return "Thinking" if course.thinking else "Waiting for the model"
