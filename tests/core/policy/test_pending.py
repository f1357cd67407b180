"""Who waits for an answer, and what one answer settles."""

import asyncio
import tomllib
from collections.abc import Callable

import msgspec
import pytest

from pegboard.errors import NotFoundError, PermissionDeniedError, StorageError
from pegboard.policy.pending import PendingRequests, PermissionAnswer, advice, nobody
from pegboard.schema.session import PermissionRequest, Verdict


def _request(
    number: int, *, session: str = "ses_1", patterns: tuple[str, ...] = ("git push",)
) -> PermissionRequest:
    return PermissionRequest(
        id=f"per_{number}",
        session_id=session,
        permission="bash",
        patterns=patterns,
        metadata={},
        always=("git push *",),
    )


async def _noted(answer: PermissionAnswer, keep: Callable[[], None]) -> None:
    """Nothing is to be done for an answer."""


async def _waiting(
    pending: PendingRequests, *requests: PermissionRequest
) -> list[asyncio.Task[PermissionAnswer]]:
    tasks = [asyncio.create_task(pending.wait(request, note=_noted)) for request in requests]
    await asyncio.sleep(0)
    return tasks


async def test_an_answer_reaches_the_one_that_waits() -> None:
    pending = PendingRequests(interactive=True)
    first, second = await _waiting(pending, _request(1), _request(2))

    assert await pending.reply("per_1", "once") == _request(1)

    assert await first == PermissionAnswer(reply="once")
    assert pending.pending() == (_request(2),)
    await pending.reply("per_2", "reject", "use a branch")
    assert await second == PermissionAnswer(reply="reject", message="use a branch")


async def test_a_rejection_rejects_the_whole_session_and_no_other() -> None:
    pending = PendingRequests(interactive=True)
    tasks = await _waiting(pending, _request(1), _request(2), _request(3, session="ses_2"))

    await pending.reply("per_1", "reject", "no")

    assert await tasks[0] == PermissionAnswer(reply="reject", message="no")
    assert await tasks[1] == PermissionAnswer(reply="reject", message="no", by="rejection")
    assert pending.pending("ses_1") == ()
    assert pending.pending("ses_2") == (_request(3, session="ses_2"),)
    pending.cancel("ses_2")
    assert await tasks[2] == PermissionAnswer(reply="reject", by="rejection")


async def test_what_nobody_answers_is_denied_and_nothing_else() -> None:
    pending = PendingRequests(interactive=True)
    first, second = await _waiting(pending, _request(1), _request(2))

    await pending.leave_unattended("per_1")

    assert await first == PermissionAnswer(reply="reject", by="nobody")
    assert pending.pending() == (_request(2),)
    pending.cancel("ses_1")
    await second
    with pytest.raises(NotFoundError, match="per_1"):
        await pending.leave_unattended("per_1")


async def test_what_is_covered_by_a_new_approval_is_answered_too() -> None:
    pending = PendingRequests(interactive=True)
    requests = (_request(1, patterns=("ls",)), _request(2, session="ses_2"))

    async def no() -> bool:
        return False

    async def yes() -> bool:
        return True

    tasks = [
        asyncio.create_task(pending.wait(request, note=_noted, allowed=allowed))
        for request, allowed in zip(requests, (no, yes), strict=True)
    ]
    await asyncio.sleep(0)
    settled = await pending.recheck()

    assert settled == (_request(2, session="ses_2"),)
    assert await tasks[1] == PermissionAnswer(reply="always", by="approval")
    assert not tasks[0].done()
    pending.cancel("ses_1")
    await tasks[0]


async def test_a_cancelled_wait_leaves_the_desk_empty() -> None:
    pending = PendingRequests(interactive=True)
    (task,) = await _waiting(pending, _request(1))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert pending.pending() == ()
    with pytest.raises(NotFoundError):
        await pending.reply("per_1", "once")


async def test_who_answers_hears_when_the_answer_is_kept_and_no_cancellation_loses_it() -> None:
    pending = PendingRequests(interactive=True)
    stored = asyncio.Event()
    after: list[PermissionAnswer] = []

    async def note(answer: PermissionAnswer, keep: Callable[[], None]) -> None:
        await stored.wait()
        keep()
        await asyncio.sleep(0)
        after.append(answer)

    waits = asyncio.create_task(pending.wait(_request(1), note=note))
    await asyncio.sleep(0)
    answers = asyncio.create_task(pending.reply("per_1", "always"))
    await asyncio.sleep(0)
    waits.cancel()  # before the one that waits has seen the answer
    await asyncio.sleep(0.01)
    with pytest.raises(NotFoundError):
        await pending.reply("per_1", "once")
    assert not answers.done()
    stored.set()

    assert await answers == _request(1)
    with pytest.raises(asyncio.CancelledError):
        await waits
    assert after == [PermissionAnswer(reply="always")]


async def test_an_answer_that_cannot_be_kept_is_a_failure_for_both() -> None:
    pending = PendingRequests(interactive=True)

    async def note(answer: PermissionAnswer, keep: Callable[[], None]) -> None:
        raise StorageError("the disk is full")

    waits = asyncio.create_task(pending.wait(_request(1), note=note))
    await asyncio.sleep(0)

    with pytest.raises(StorageError):
        await pending.reply("per_1", "always")
    with pytest.raises(StorageError):
        await waits


async def test_who_is_cancelled_first_cannot_be_answered() -> None:
    pending = PendingRequests(interactive=True)
    (task,) = await _waiting(pending, _request(1))

    task.cancel()

    with pytest.raises(NotFoundError):
        await pending.reply("per_1", "always")


@pytest.mark.parametrize(
    ("always", "patterns", "allowed"),
    [
        (("git push *", "make *"), ("git push", "make x"), ["git push *", "make *"]),
        (("*",), ("/p/.env",), ["/p/.env"]),
        ((), ("say \"hi\" 'x' \\",), ["say \"hi\" 'x' \\"]),
    ],
)
async def test_without_anybody_to_ask_the_answer_is_no_and_says_what_would_allow_it(
    always: tuple[str, ...], patterns: tuple[str, ...], allowed: list[str]
) -> None:
    request = msgspec.structs.replace(_request(1), always=always, patterns=patterns)

    with pytest.raises(PermissionDeniedError) as raised:
        await PendingRequests(interactive=False).wait(request, note=_noted)

    assert "pegboard.toml" not in str(raised.value), "what a model could do about it is nothing"
    assert "Do not look for another way" in str(raised.value)
    line = raised.value.advice.rpartition("pegboard.toml: ")[2]
    assert tomllib.loads(line) == {"permission": {"bash": dict.fromkeys(allowed, "allow")}}


async def test_an_answer_for_good_says_how_far_it_goes_and_for_whom() -> None:
    pending = PendingRequests(interactive=True)
    [waiting] = await _waiting(pending, _request(1))

    answer = PermissionAnswer(reply="always", scope="user", agent_only=True, patterns=("a",))
    await pending.answer("per_1", answer)

    assert await waiting == answer


def test_no_rule_is_offered_for_what_a_plugin_wants_asked_every_time() -> None:
    firm = Verdict(action="ask", reason="it is protected", firm=True)

    assert advice(_request(1), because=firm) == (
        "no rule allows it: a plugin wants it asked every time"
    )
    assert nobody(_request(1), because=firm).startswith(
        'bash "git push" needs a permission (it is protected) and nobody is there to be asked.'
    )
