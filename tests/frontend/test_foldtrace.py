"""Digests and differences of what folds go through."""

from pathlib import Path

import pytest

from pegboard import evolve
from pegboard.schema.session import Rule
from pegboard_plugins.shared.frontend import begin_trace, trace_steps
from pegboard_plugins.shared.frontend.foldtrace import difference, digest
from support.models.played import HI, Played, opened, text
from support.plugins.hook_samples import PART, Functions


async def test_a_trace_has_who_changed_which_line_of_a_session_once_it_is_begun(
    tmp_path: Path,
) -> None:
    kind = Functions(chat_system_transform=lambda system: (*system, "be kind"))
    still = Functions(chat_system_transform=lambda system: None)
    provider = Played(text("hello"), text("hello"))
    async with opened(tmp_path, provider, kind, still) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        assert trace_steps(app) == ()

        begin_trace(app)
        begin_trace(app)
        await app.prompt(session.id, HI)
        steps = [each for each in trace_steps(app) if each.hook == "chat_system_transform"]
        changed, left = steps

        assert "+be kind" in changed.diff.splitlines()
        assert changed.before != changed.after == left.before == left.after
        assert left.diff == ""
        assert {each.session_id for each in steps} == {session.id}
        assert trace_steps(app, "ses_other") == ()


def test_equal_values_have_one_digest() -> None:
    assert digest(("a", "b")) == digest(("a", "b")) != digest(("a", "c"))
    assert digest({"a": 1}) != digest({"a": 2})
    assert len(digest(object())) == 16


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("a\nb", "a\nc", ["-b", "+c"]),
        (("a",), ("a", "b\nc"), ["+b", "+c"]),
        ({"x": "1"}, {"x": "2"}, ["-x: 1", "+x: 2"]),
        (Rule("a", "b", "ask"), Rule("a", "c", "ask"), ['- "pattern": "b",', '+ "pattern": "c",']),
        ((evolve(PART, text="a\nb"),), (evolve(PART, text="a\nc"),), ['-b",', '+c",']),
    ],
)
def test_the_difference_shows_lines(before: object, after: object, changed: list[str]) -> None:
    lines = difference(before, after).splitlines()[3:]

    assert [line for line in lines if line[0] != " "] == changed


def test_other_values_have_no_difference() -> None:
    assert difference(3, 4) == difference((1,), (2,)) == ""
