import re
import threading
import time
from collections.abc import Callable

import pytest

from pegboard.errors import InvalidInputError
from pegboard.ids import PREFIXES, IdSource, Kind, check_id

WRAP_MS = 2**36  # the 48 bits start again after so many milliseconds
NS_PER_MS = 1_000_000


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Sets the wall clock, in milliseconds since the epoch."""

    def set_ms(now_ms: int) -> None:
        monkeypatch.setattr(time, "time_ns", lambda: now_ms * NS_PER_MS)

    return set_ms


@pytest.mark.parametrize("kind", PREFIXES)
def test_an_id_is_prefix_time_and_random_tail(kind: Kind) -> None:
    assert re.fullmatch(PREFIXES[kind] + "_[0-9a-f]{12}[0-9A-Za-z]{14}", IdSource().new(kind))


def test_the_time_field_is_milliseconds_and_a_counter_that_starts_at_one(
    clock: Callable[[int], None],
) -> None:
    clock(5 * WRAP_MS + 3)
    source = IdSource()

    ids = [source.new("message")[4:16] for _ in range(3)]

    assert ids == [f"{3 * 4096 + counter:012x}" for counter in (1, 2, 3)]


def test_session_ids_descend() -> None:
    source = IdSource()

    ids = [source.new("session") for _ in range(50)]

    assert ids == sorted(ids, reverse=True)


def test_ids_ascend_when_the_clock_is_set_back(clock: Callable[[int], None]) -> None:
    source = IdSource()
    clock(WRAP_MS * 20 + 100_000)
    before = source.new("part")
    clock(WRAP_MS * 20)

    after = source.new("part")

    assert after > before


def test_more_ids_than_a_millisecond_counts_still_ascend(clock: Callable[[int], None]) -> None:
    clock(WRAP_MS * 20 + 7)
    source = IdSource()

    ids = [source.new("part") for _ in range(10_000)]

    assert ids == sorted(set(ids))


def test_ids_of_a_session_ascend_across_the_wrap(clock: Callable[[int], None]) -> None:
    source = IdSource()
    clock(21 * WRAP_MS - 1)
    ids = [source.new("message")]
    for step in range(5):
        clock(21 * WRAP_MS + step)
        ids.append(source.new("message", after=ids[-1]))

    assert ids == sorted(set(ids))
    assert ids[0].startswith("msg_fffffff")


def test_an_id_follows_one_from_a_clock_that_is_ahead(clock: Callable[[int], None]) -> None:
    clock(20 * WRAP_MS + 1000)
    ahead = f"msg_{(60_000 * 4096):012x}ABCDEFGHIJKLMN"

    made = IdSource().new("message", after=ahead)

    assert made > ahead
    assert made[4:16] == f"{60_000 * 4096 + 1:012x}"


@pytest.mark.parametrize(
    "after",
    ["msg_z", "msg_zzzz", "msg_" + "z" * 64, "msg_" + "f" * 12 + "z" * 14, "msg_ffffffffffff"],
)
def test_there_is_always_a_greater_id(after: str) -> None:
    source = IdSource()
    ids = [after]

    for _ in range(300):
        ids.append(source.new("message", after=ids[-1]))

    assert ids == sorted(set(ids))
    assert max(len(made) for made in ids) <= len(after) + 26


def test_threads_may_share_a_source() -> None:
    source = IdSource()
    made: list[list[str]] = [[], [], [], []]

    def make(into: list[str]) -> None:
        into.extend(source.new("part")[:16] for _ in range(500))

    threads = [threading.Thread(target=make, args=(into,)) for into in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len({text for texts in made for text in texts}) == 2000


@pytest.mark.parametrize("text", ["msg_1", "msg_Az-_9", "msg_" + "a" * 64])
def test_an_id_that_a_client_brings_is_kept(text: str) -> None:
    assert check_id("message", text) == text


@pytest.mark.parametrize(
    "text",
    ["", "msg_", "msg", "prt_1", "msg_a b", "msg_ä", "msg_../x", "msg_1\n", "msg_" + "a" * 65],
)
def test_an_id_that_cannot_be_one_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError):
        check_id("message", text)
