"""Who waits for an answer, and what one answer settles."""

import asyncio
import tomllib

import msgspec
import pytest

from pegboard.errors import NotFoundError, PermissionDeniedError
from pegboard.policy.pending import Answer, Desk, advice, nobody
from pegboard.schema.permission import PermissionRequest, Verdict


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


async def _waiting(desk: Desk, *requests: PermissionRequest) -> list[asyncio.Task[Answer]]:
    tasks = [asyncio.create_task(desk.wait(request)) for request in requests]
    await asyncio.sleep(0)
    return tasks


async def test_an_answer_reaches_the_one_that_waits() -> None:
    desk = Desk(interactive=True)
    first, second = await _waiting(desk, _request(1), _request(2))

    assert desk.reply("per_1", "once") == _request(1)

    assert await first == Answer(reply="once")
    assert desk.pending() == (_request(2),)
    desk.reply("per_2", "reject", "use a branch")
    assert await second == Answer(reply="reject", message="use a branch")


async def test_a_rejection_rejects_the_whole_session_and_no_other() -> None:
    desk = Desk(interactive=True)
    tasks = await _waiting(desk, _request(1), _request(2), _request(3, session="ses_2"))

    desk.reply("per_1", "reject", "no")

    assert await tasks[0] == Answer(reply="reject", message="no")
    assert await tasks[1] == Answer(reply="reject", message="no", by="rejection")
    assert desk.pending("ses_1") == ()
    assert desk.pending("ses_2") == (_request(3, session="ses_2"),)
    desk.cancel("ses_2")
    assert await tasks[2] == Answer(reply="reject", by="rejection")


async def test_what_is_covered_by_a_new_approval_is_answered_too() -> None:
    desk = Desk(interactive=True)
    requests = (_request(1, patterns=("ls",)), _request(2, session="ses_2"))

    async def no() -> bool:
        return False

    async def yes() -> bool:
        return True

    tasks = [
        asyncio.create_task(desk.wait(request, allowed=allowed))
        for request, allowed in zip(requests, (no, yes), strict=True)
    ]
    await asyncio.sleep(0)
    settled = await desk.recheck()

    assert settled == (_request(2, session="ses_2"),)
    assert await tasks[1] == Answer(reply="always", by="approval")
    assert not tasks[0].done()
    desk.cancel("ses_1")
    await tasks[0]


async def test_a_cancelled_wait_leaves_the_desk_empty() -> None:
    desk = Desk(interactive=True)
    (task,) = await _waiting(desk, _request(1))

    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert desk.pending() == ()
    with pytest.raises(NotFoundError):
        desk.reply("per_1", "once")


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
        await Desk(interactive=False).wait(request)

    assert "pegboard.toml" not in str(raised.value), "what a model could do about it is nothing"
    assert "Do not look for another way" in str(raised.value)
    line = raised.value.advice.rpartition("pegboard.toml: ")[2]
    assert tomllib.loads(line) == {"permission": {"bash": dict.fromkeys(allowed, "allow")}}


async def test_an_answer_for_good_says_how_far_it_goes_and_for_whom() -> None:
    desk = Desk(interactive=True)
    [waiting] = await _waiting(desk, _request(1))

    desk.reply("per_1", "always", scope="user", agent_only=True)

    assert await waiting == Answer(reply="always", scope="user", agent_only=True)


def test_no_rule_is_offered_for_what_a_plugin_wants_asked_every_time() -> None:
    firm = Verdict(action="ask", reason="it is protected", firm=True)

    assert advice(_request(1), because=firm) == ""
    assert nobody(_request(1), because=firm).startswith(
        'bash "git push" needs a permission (it is protected) and nobody is there to be asked.'
    )
