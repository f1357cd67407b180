"""How the answers of plugins combine, what is told about them, and who hears events."""

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable
from types import FrameType

import msgspec
import pytest

from pegboard.contract.plugin import Answer
from pegboard.contract.results import FoldStep
from pegboard.errors import RequiredHookError, ToolError
from pegboard.hooks.callers import Hooks
from pegboard.hooks.implementation import LIMIT, Implementation
from pegboard.policy.clock import Clock
from pegboard.schema.event import PluginFailed
from pegboard.schema.session import Rule, Ruleset, Verdict
from support.models.written import until
from support.plugins.dispatching import (
    COLLECT,
    FIRST,
    FOLD,
    HOOK,
    JUDGE,
    NEWS,
    REFUSABLE,
    Plugins,
    adds,
    fails,
    hangs,
    implementation,
    says,
    spec,
    tuple_of,
)
from support.plugins.hook_samples import VIEW

MOST_CALLS_OF_A_HOOK = 80
"""Of functions of Python, the event loop's own included."""


async def test_collect_gives_the_answers_oldest_first() -> None:
    plugins = Plugins(
        implementation("a", lambda value: (value, "a")), implementation("b", lambda value: ("b",))
    )

    async with plugins as hooks:
        answers = await hooks.answers(COLLECT, value="-")
        items = await hooks.collect(COLLECT, value="-")

    a, first, second = (Answer("a", "installed", each, "a") for each in (("-", "a"), "-", "a"))
    b, third = (Answer("b", "installed", each, "b") for each in (("b",), "b"))
    assert answers == (a, b)
    assert items == (first, second, third)


async def test_a_required_fold_that_fails_ends_what_it_was_asked_about() -> None:
    plugins = Plugins(
        implementation("guarding", fails, required=True), implementation("never", adds("n"))
    )

    async with plugins as hooks:
        for _ in range(3):
            with pytest.raises(RequiredHookError, match="plugin guarding: the required hook"):
                await hooks.fold(FOLD, value="-")
        with pytest.raises(RequiredHookError, match="is quarantined"):
            await hooks.fold(FOLD, value="-")

    assert len(plugins.told) == 3


async def test_collect_leaves_out_who_fails_and_who_has_nothing() -> None:
    plugins = Plugins(
        implementation("bad", fails),
        implementation("none", lambda value: None),
        implementation("good", lambda value: ("g",)),
    )

    async with plugins as hooks:
        found = await hooks.collect(COLLECT, value="-")

    assert [answer.plugin for answer in found] == ["good"]
    assert len(plugins.told) == 1


async def test_fold_hands_each_plugin_what_the_one_before_left() -> None:
    plugins = Plugins(
        implementation("a", adds("a")),
        implementation("none", lambda value: None),
        implementation("b", adds("b")),
    )

    async with plugins as hooks:
        assert await hooks.fold(FOLD, value="-") == "-ab"


async def test_fold_keeps_the_value_of_a_plugin_that_fails() -> None:
    plugins = Plugins(
        implementation("a", adds("a")), implementation("bad", fails), implementation("b", adds("b"))
    )

    async with plugins as hooks:
        assert await hooks.fold(FOLD, value="-") == "-ab"

    assert plugins.told[0].startswith("plugin bad: hook hook raised ValueError: no luck")
    assert "dispatching.py:" in plugins.told[0]


async def test_fold_raises_the_errors_that_are_answers() -> None:
    def refuse(value: str) -> str:
        raise ToolError("not today")

    plugins = Plugins(implementation("guard", refuse), implementation("b", adds("b")))

    async with plugins as hooks:
        for _ in range(5):
            with pytest.raises(ToolError, match="not today"):
                await hooks.fold(REFUSABLE, value="-")

    assert plugins.failures == []


async def test_first_asks_the_newest_and_stops_at_an_answer() -> None:
    asked = []

    def answers(name: str, answer: str | None) -> Implementation:
        def ask(value: str) -> str | None:
            asked.append(name)
            return answer

        return implementation(name, ask, kind="first")

    plugins = Plugins(answers("old", "old"), answers("middle", "middle"), answers("new", None))

    async with plugins as hooks:
        assert await hooks.first(FIRST, value="-") == "middle"

    assert asked == ["new", "middle"]


async def test_first_raises_the_errors_that_are_answers() -> None:
    def refuse(value: str) -> str:
        raise ToolError("not today")

    plugins = Plugins(
        implementation("old", adds("o"), kind="first"),
        implementation("guard", refuse, kind="first"),
    )
    refusable = spec("first", lambda answer, _: answer, raises=(ToolError,))

    async with plugins as hooks:
        with pytest.raises(ToolError, match="not today"):
            await hooks.first(refusable, value="-")

    assert plugins.failures == []


async def test_first_asks_the_next_when_one_fails() -> None:
    plugins = Plugins(
        implementation("old", adds("o"), kind="first"), implementation("bad", fails, kind="first")
    )

    async with plugins as hooks:
        assert await hooks.first(FIRST, value="-") == "-o"


@pytest.mark.parametrize(
    ("actions", "expected"),
    [
        (["allow", "ask", "deny"], "deny"),
        (["deny", "allow"], "deny"),
        (["allow", "ask", None], "ask"),
        (["allow"], "allow"),
        ([None, None], None),
        ([], None),
    ],
)
async def test_strictest_is_deny_then_ask_then_allow(actions, expected) -> None:
    plugins = Plugins(
        *(implementation(str(number), says(action)) for number, action in enumerate(actions))
    )

    async with plugins as hooks:
        verdict = await hooks.strictest(JUDGE, value="-")

    assert (verdict.action if verdict else None) == expected


@pytest.mark.parametrize("function", [fails, hangs, lambda value: "yes"])
async def test_strictest_takes_a_failure_for_deny(function) -> None:
    plugins = Plugins(
        implementation("bad", function, timeout_s=0.05), implementation("kind", says("allow"))
    )

    async with plugins as hooks:
        verdicts = [await hooks.strictest(JUDGE, value="-") for _ in range(5)]

    assert {verdict.action for verdict in verdicts if verdict} == {"deny"}
    assert all("plugin bad" in verdict.reason for verdict in verdicts if verdict)
    assert all(verdict.source == "bad" for verdict in verdicts if verdict)


@pytest.mark.parametrize(
    ("kind", "asked", "answer"), [("fold", "fabl", "-fabl"), ("first", "fbal", "-f")]
)
async def test_try_first_and_last_move_within_the_order_of_the_kind(
    kind: str, asked: str, answer: str
) -> None:
    places = {"l": 1, "a": 0, "f": -1, "b": 0}
    plugins = Plugins(
        *(
            implementation(name, adds(name), position=place, kind=kind)
            for name, place in places.items()
        )
    )

    async with plugins as hooks:
        call = hooks.fold(FOLD, value="-") if kind == "fold" else hooks.first(FIRST, value="-")
        assert await call == answer
        assert hooks.order(HOOK) == tuple(asked)


@pytest.mark.parametrize("origin", ["builtin", "installed"])
async def test_an_opinion_has_the_source_of_the_session_s_rule_or_the_plugin_s_name(
    origin: str,
) -> None:
    rule, other = Rule("shout", "*", "ask"), Rule("shout", "loud*", "ask")
    session = msgspec.structs.replace(VIEW, rulesets=(Ruleset(source="config", rules=(rule,)),))

    def says(source: str, by: Rule | None) -> Callable[..., Verdict]:
        return lambda: Verdict(action="ask", source=source, rule=by)

    said = [says("config", rule), says("config", other), says("config", None), says("", None)]
    plugins = Plugins(
        *(implementation("it", each, origin=origin, arguments=(), key=str(each)) for each in said)
    )
    async with plugins as hooks:
        found = await hooks.opinions(JUDGE, session=session)

    assert [each.value.source for each in found] == ["config", "it: config", "it: config", "it"]


async def test_each_implementation_is_timed() -> None:
    plugins = Plugins(implementation("a", adds("a")), implementation("bad", fails))

    async with plugins as hooks:
        for _ in range(2):
            await hooks.fold(FOLD, value="-")
        good, bad = hooks.timings()

    assert (good.plugin, good.hook, good.calls, good.failures) == ("a", HOOK, 2, 0)
    assert 0 < good.max_ms <= good.total_ms
    assert (bad.calls, bad.failures) == (2, 2)


async def test_a_call_that_ends_at_once_sets_no_timer_and_few_functions_are_called() -> None:
    plugins = Plugins(*(implementation(name, adds(name)) for name in "abcdefgh"))
    called: Counter[str] = Counter()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            called[frame.f_code.co_name] += 1

    async with plugins as hooks:
        with Clock().timing():
            await hooks.fold(FOLD, value="-")  # what is found out once is known
            sys.setprofile(note)
            try:
                assert await hooks.fold(FOLD, value="-") == "-abcdefgh"
            finally:
                sys.setprofile(None)

    assert called["call_at"] == 0
    assert called.total() <= 8 * MOST_CALLS_OF_A_HOOK


async def test_a_call_that_goes_on_is_in_a_task_of_its_own_and_within_its_limit() -> None:
    tasks: list[asyncio.Task[object] | None] = [asyncio.current_task()]

    async def looks(value: str) -> str:
        tasks.append(asyncio.current_task())
        async with asyncio.timeout(30):
            await asyncio.sleep(0.01)
        tasks.append(asyncio.current_task())
        return "seen"

    plugins = Plugins(
        implementation("looks", looks), implementation("hangs", hangs, timeout_s=0.05)
    )
    async with plugins as hooks:
        assert await hooks.fold(FOLD, value="-") == "seen"

    assert tasks[0] is not tasks[1] is tasks[2]
    assert plugins.told == ["plugin hangs: hook hook took longer than 0.05 s"]


async def test_who_records_the_folds_is_told_what_each_plugin_made_of_the_value() -> None:
    brief = ("be brief",)
    plugins = Plugins(
        implementation("a", lambda value: (*value, "be kind")),
        implementation("none", lambda value: None),
    )
    steps: list[FoldStep] = []

    async with plugins as hooks:
        hooks.fold_listeners.append(steps.append)
        await hooks.fold(spec("fold", tuple_of, subject="value"), value=brief, session=VIEW)

    changed, left = steps
    assert (changed.session_id, changed.hook, changed.plugin) == (VIEW.id, HOOK, "a")
    assert (changed.before, changed.after) == (brief, ("be brief", "be kind"))
    assert left.before is left.after is changed.after
    assert changed.elapsed_ms > 0


async def test_listeners_hear_everything_in_order_at_their_own_pace() -> None:
    release = asyncio.Event()
    slow, quick = [], []

    async def hears_slowly(value: int) -> None:
        await release.wait()
        slow.append(value)

    async def hears(value: int) -> None:
        quick.append(value)

    plugins = Plugins(implementation("slow", hears_slowly), implementation("quick", hears))

    async with plugins as hooks:
        for number in range(5):
            hooks.notify(NEWS, value=number)
        await until(lambda: len(quick) == 5)
        assert (slow, quick) == ([], [0, 1, 2, 3, 4])
        release.set()
        await hooks.notify_last(NEWS, value=5)

    assert slow == quick == [0, 1, 2, 3, 4, 5]


async def test_a_listener_that_falls_behind_loses_the_oldest_and_is_reported_once() -> None:
    release = asyncio.Event()
    heard = []

    async def hears(value: int) -> None:
        await release.wait()
        heard.append(value)

    plugins = Plugins(implementation("slow", hears))

    async with plugins as hooks:
        for number in range(LIMIT + 50):
            hooks.notify(NEWS, value=number)
        release.set()
        await hooks.notify_last(NEWS, value="end")

    assert heard == [*range(50, LIMIT + 50), "end"]
    assert [told for told in plugins.told if "1,000 events behind" in told] == plugins.told
    assert len(plugins.told) == 1


async def test_a_report_that_is_an_event_itself_ends() -> None:
    async def fail(value: object) -> None:
        raise ValueError("each time")

    plugins = Plugins(implementation("bad", fail))

    async with plugins as hooks:
        plugins.failures = Echo(hooks)
        hooks.notify(NEWS, value="-")
        async with asyncio.timeout(30):
            while not hooks.quarantined("bad"):  # noqa: ASYNC110 - nothing tells it
                await asyncio.sleep(0.01)

    assert len(plugins.failures) == 3


class Echo(list[PluginFailed]):
    """Failures that come back as events, as the App does it."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    def append(self, failure: PluginFailed) -> None:
        super().append(failure)
        self._hooks.notify(NEWS, value=failure)


async def test_the_end_waits_for_a_listener_no_longer_than_its_limit() -> None:
    plugins = Plugins(implementation("slow", hangs, timeout_s=0.5))

    async with plugins as hooks:
        for _ in range(100):
            hooks.notify(NEWS, value="-")
        started = time.perf_counter()
        await hooks.notify_last(NEWS, value="-")
        assert time.perf_counter() - started < 25
