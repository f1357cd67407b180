"""Servers that misbehave: one fault each, with a real process."""

import asyncio
import json
import os
import time

import pytest
from pegboard_mcp.actions import act
from pegboard_mcp.tools import SERVERS
from settled import settled

CALL = ("raw_t", {"a": "x"})


def tools_of(scripted) -> list[str]:
    return [each for each in scripted.app.tools if each.startswith("raw_")]


def server_of(scripted):
    return scripted.app.stash.get(SERVERS).named("raw")


async def test_a_server_that_never_answers_fails_within_its_limit(served_app, raw_server) -> None:
    began = time.monotonic()

    async with served_app({"raw": raw_server("hang_start", connect_timeout_s=1)}) as scripted:
        server = server_of(scripted)
        turn = await scripted.turn()

    assert server.state == "failed"
    assert "it was silent for 1 s" in server.error
    assert turn.text == "done"
    assert time.monotonic() - began < 28


async def test_a_server_that_never_lists_fails_within_its_limit(served_app, raw_server) -> None:
    async with served_app({"raw": raw_server("hang_list", connect_timeout_s=1)}) as scripted:
        assert server_of(scripted).state == "failed"


async def test_a_server_that_ends_at_once_is_named_with_its_last_words(
    served_app, raw_server
) -> None:
    async with served_app({"raw": raw_server("exit")}) as scripted:
        server = server_of(scripted)

    assert server.state == "failed"
    assert "the configuration has no key" in server.error


async def test_a_program_that_does_not_exist_is_named(served_app) -> None:
    async with served_app({"raw": {"command": ["no-such-program-here"]}}) as scripted:
        server = server_of(scripted)

    assert server.state == "failed"
    assert "no-such-program-here" in server.error


async def test_a_call_without_an_answer_fails_at_its_limit_and_the_server_stays(
    served_app, raw_server
) -> None:
    server = raw_server("hang_call", call_timeout_s=0.5)

    async with served_app({"raw": server}, CALL) as scripted:
        turn = await scripted.turn()
        state = server_of(scripted).state

    assert "did not answer within 0.5 s" in turn.calls[0].error
    assert state == "running"


async def test_a_server_is_ended_after_three_calls_without_an_answer(
    served_app, raw_server
) -> None:
    server = raw_server("hang_call", call_timeout_s=0.3)

    async with served_app({"raw": server}, CALL, CALL, CALL) as scripted:
        turn = await scripted.turn()
        await settled(lambda: server_of(scripted).state == "idle")

    assert "3 times in a row" in turn.calls[2].error


async def test_a_server_that_ends_during_a_call_is_not_asked_the_same_again(
    served_app, raw_server
) -> None:
    async with served_app({"raw": raw_server("die_call")}, CALL) as scripted:
        turn = await scripted.turn()

    assert "ended during the call, which may have had an effect" in turn.calls[0].error


async def test_a_server_that_has_ended_is_started_again_by_the_next_call(
    served_app, raw_server, tmp_path
) -> None:
    server = raw_server("die_once", tmp_path / "died")

    async with served_app({"raw": server}, CALL, "done", CALL) as scripted:
        first = await scripted.turn()
        await settled(lambda: server_of(scripted).state == "failed")
        await settled(lambda: server_of(scripted).wait_s <= 0)
        second = await scripted.turn()

    assert first.calls[0].output == "first"
    assert second.calls[0].output == "x"


@pytest.mark.parametrize("mode", ["garbage", "chatty"])
async def test_lines_that_are_not_messages_are_skipped(served_app, raw_server, mode) -> None:
    async with served_app({"raw": raw_server(mode)}, CALL) as scripted:
        turn = await scripted.turn()
        log = server_of(scripted).files.log.read_text()

    assert turn.calls[0].output == "x"
    assert log.count("that are not messages") == (2 if mode == "chatty" else 1)  # two processes


async def test_bytes_that_are_not_utf8_are_replaced(served_app, raw_server) -> None:
    async with served_app({"raw": raw_server("badutf")}, CALL) as scripted:
        turn = await scripted.turn()

    assert turn.calls[0].output == "\N{REPLACEMENT CHARACTER}"


@pytest.mark.parametrize(
    ("mode", "words"),
    [
        ("flood", "unasked messages in a second"),
        ("big", "answered with more than 16 MiB"),
        ("noline", "answered with more than 16 MiB"),
    ],
)
async def test_a_server_that_writes_too_much_is_ended(served_app, raw_server, mode, words) -> None:
    stalls = []

    async def watch() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0.01)
            stalls.append(time.thread_time() - before)

    async with served_app({"raw": raw_server(mode)}, CALL) as scripted:
        watching = asyncio.create_task(watch())
        turn = await scripted.turn()
        watching.cancel()

    assert words in turn.calls[0].error
    assert max(stalls) < 1.0


async def test_an_answer_with_too_many_values_is_refused_and_the_server_goes_on(
    served_app, raw_server
) -> None:
    wanted = [{"times": 1}, {"item": {"k": 1}, "times": 1_600_000}, {"item": 1, "times": 5_000_000}]
    script = [("raw_t", {"a": json.dumps(each)}) for each in (*wanted, wanted[0])]

    async with served_app({"raw": raw_server("values")}, *script, "done") as scripted:
        first, objects, numbers, last = (await scripted.turn()).calls

    text = "the MCP server raw cannot answer: its message has {} values, and 50000 are allowed"
    assert text.format(3_200_009) in objects.error
    assert text.format(5_000_009) in numbers.error
    assert json.loads(first.output)["pid"] == json.loads(last.output)["pid"]


async def test_text_with_many_commas_is_not_many_values(served_app, raw_server) -> None:
    asked = json.dumps({"text": 'a, {[" \\'})

    async with served_app({"raw": raw_server("values")}, ("raw_t", {"a": asked})) as scripted:
        call = (await scripted.turn()).calls[0]

    assert not call.error


async def test_a_tool_that_cannot_be_used_is_left_out_and_the_others_stay(
    served_app, raw_server
) -> None:
    async with served_app({"raw": raw_server("wrong")}) as scripted:
        assert tools_of(scripted) == ["raw_t"]
        notes = server_of(scripted).catalogue.notes

    assert len(notes) == 7
    assert "'deep' is left out: its inputSchema has more than 32 levels" in notes


@pytest.mark.parametrize(("mode", "count"), [("endless", 100), ("many", 200), ("twice", 1)])
async def test_lists_have_limits(served_app, raw_server, mode, count) -> None:
    async with served_app({"raw": raw_server(mode)}) as scripted:
        assert len(tools_of(scripted)) == count


async def test_a_server_without_the_lists_that_it_announces_has_its_tools(
    served_app, raw_server
) -> None:
    server = {"raw": raw_server("announcing")}
    async with served_app(server, ("raw_t", {"a": "1"})) as scripted:
        notes = scripted.app.stash.get(SERVERS).named("raw").catalogue.notes
        turn = await scripted.turn()

    assert turn.calls[0].output == "1"
    assert [each.split(" cannot list its ")[1] for each in notes] == [
        "prompts: no",
        "resources: no",
        "resourceTemplates: no",
    ]


async def test_a_long_description_is_cut_with_a_notice(served_app, raw_server) -> None:
    async with served_app({"raw": raw_server("long")}) as scripted:
        description = scripted.app.tools["raw_t"].description

    assert len(description) <= 4096
    assert description.endswith("[cut: the server's text is longer]")


async def test_invisible_characters_are_removed_and_named(served_app, raw_server) -> None:
    async with served_app({"raw": raw_server("hidden")}) as scripted:
        description = scripted.app.tools["raw_t"].description
        notes = server_of(scripted).catalogue.notes

    assert description == "good day"
    assert notes == ("'t': invisible characters were removed from its description",)


@pytest.mark.parametrize(
    ("raw", "expected"), [("10e12", 86_400), ("-5", None), ('"x"', None), ("5000", 5), ("0", 0)]
)
async def test_a_time_to_live_is_clamped_and_an_odd_one_is_none(
    served_app, raw_server, tmp_path, raw, expected
) -> None:
    async with served_app({"raw": raw_server("ttl", raw, tmp_path / "log")}) as scripted:
        assert server_of(scripted).catalogue.fresh_s == expected


async def test_the_end_waits_for_no_server_that_is_being_started(
    served_app, raw_server, monkeypatch
) -> None:
    monkeypatch.setattr("pegboard_mcp.server.END_LIMIT_S", 3600)
    async with served_app({"raw": raw_server()}) as scripted:
        servers = scripted.app.stash.get(SERVERS)
        hanging = raw_server("hang_start", connect_timeout_s=3600)
        adding = asyncio.create_task(act(servers, "late", "add", hanging))
        await settled(lambda: "late" in [each.config.name for each in servers])
        late = servers.named("late")
        await settled(lambda: late.state == "starting")

        async with asyncio.timeout(60):
            await late.aclose()
            await adding

    assert late.state == "idle"


async def test_a_server_that_ignores_its_end_is_killed(served_app, raw_server) -> None:
    async with served_app({"raw": raw_server("stubborn")}, CALL) as scripted:
        await scripted.turn()
        began = time.monotonic()

    assert time.monotonic() - began < 30


@pytest.mark.parametrize(("mode", "text"), [("error", "no such table"), ("failed", "wrong key")])
async def test_an_error_of_a_tool_is_for_the_model(served_app, raw_server, mode, text) -> None:
    async with served_app({"raw": raw_server(mode)}, CALL) as scripted:
        assert text in (await scripted.turn()).calls[0].error


async def test_no_process_is_left_when_the_app_closes(served_app, raw_server) -> None:
    async with served_app({"raw": raw_server("pid")}, CALL) as scripted:
        pid = int((await scripted.turn()).calls[0].output)
        assert _runs(pid)

    await settled(lambda: not _runs(pid))


async def test_a_server_without_calls_ends_and_the_next_call_starts_it(
    served_app, raw_server
) -> None:
    async with served_app({"raw": raw_server("pid", idle_s=0.3)}, CALL, "done", CALL) as scripted:
        first = (await scripted.turn()).calls[0].output
        await settled(lambda: server_of(scripted).state == "idle")
        assert not _runs(int(first))
        second = (await scripted.turn()).calls[0].output

    assert first != second


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
