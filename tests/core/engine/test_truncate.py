import asyncio
import os
import time

import pytest

from pegboard.contract.results import ToolResult
from pegboard.engine.toolresult import (
    KEPT_S,
    limit_output,
    remove_old_outputs,
    shorten,
    sweep,
    truncate,
)
from support.models.played import Played, opened, text
from support.tools.cases import built, load

CASES = load("truncate_cases.json")


def limits(case):
    return {name: case[name] for name in ("max_lines", "max_bytes") if name in case}


def size(text):
    return len(text.encode("utf-8", "surrogatepass"))


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
async def test_a_case_of_the_collection_is_cut_as_it_says(case, tmp_path):
    text = built(case["gen"]["text"]) if "gen" in case else case["text"]
    expect = case["expect"]
    started = time.process_time()

    cut = truncate(text, direction=case["direction"], **limits(case))
    result = await shorten(ToolResult(output=text), cut, output_dir=tmp_path)

    assert time.process_time() - started < case.get("hang_limit_s", 2) / 2
    assert result.metadata["truncated"] is cut.truncated is expect["truncated"]
    if not cut.truncated:
        assert result.output == text
        return
    check_kept(case, text, cut, result.output)
    (stored,) = tmp_path.iterdir()
    assert stored.read_bytes() == text.encode()
    assert result.metadata["outputPath"] == str(stored)
    assert result.metadata["outputPath"] in result.output


def check_kept(case, text, cut, output):
    expect, direction = case["expect"], case["direction"]
    kept = built(case["gen"]["kept"]) if "kept" in case.get("gen", {}) else expect.get("kept")
    if kept is not None and cut.text not in [kept, *expect.get("kept_also", [])]:
        assert direction != "both"
        most = expect[f"kept_{'prefix' if direction == 'head' else 'suffix'}_bytes"]
        assert size(cut.text) <= most
        assert text.startswith(cut.text) if direction == "head" else text.endswith(cut.text)
    assert cut.unit == expect.get("unit", cut.unit)
    assert abs(cut.removed - expect.get("removed", cut.removed)) <= (cut.unit == "bytes")
    assert output.startswith(expect.get("starts_with", cut.head))
    assert output.endswith(expect.get("ends_with", cut.tail))
    assert not any(piece in output for piece in expect.get("not_contains", []))
    assert size(cut.text) <= case.get("max_bytes", 51_200) + 1
    assert cut.text.count("\n") < case.get("max_lines", 2000)


async def test_a_tool_that_cuts_its_own_output_is_left_alone(tmp_path):
    result = ToolResult(output="x\n" * 5000, metadata={"truncated": False})

    assert await limit_output(result, output_dir=tmp_path) is result


async def test_start_and_end_of_a_long_output_are_kept_with_a_hint(tmp_path):
    text = "\n".join(str(number) for number in range(5000))

    result = await limit_output(ToolResult(output=text), output_dir=tmp_path, hint="Use grep")

    assert result.output.startswith("0\n1\n")
    assert result.output.endswith("\n4999")
    assert "[3,000 lines are left out. The whole output is in " in result.output
    assert "Use grep]" in result.output


async def test_an_output_that_is_stored_already_gets_no_second_file(tmp_path):
    result = ToolResult(output="x\n" * 5000, metadata={"outputPath": "/some/where"})

    limited = await limit_output(result, output_dir=tmp_path)

    assert limited.metadata == {"outputPath": "/some/where", "truncated": True}
    assert "lines or more are left out. " in limited.output
    assert list(tmp_path.iterdir()) == []


async def test_without_a_place_for_the_whole_output_the_rest_is_said_to_be_lost(tmp_path):
    (tmp_path / "file").touch()
    result = ToolResult(output="x\n" * 5000)

    limited = await limit_output(result, output_dir=tmp_path / "file")

    assert limited.metadata == {"truncated": True}
    assert "lines are left out, and lost: no file can be written" in limited.output


async def test_the_whole_output_is_for_its_owner_only(tmp_path):
    await limit_output(ToolResult(output="x" * 60_000), output_dir=tmp_path / "new")

    (stored,) = (tmp_path / "new").iterdir()
    assert stored.stat().st_mode & 0o777 == 0o600


def outputs(folder, **ages_s):
    """Files of these names and ages in a folder of outputs."""
    for name, age_s in ages_s.items():
        path = folder / f"{name}.txt"
        path.write_text("x")
        os.utime(path, (time.time() - age_s,) * 2)


def left(folder):
    return {path.name for path in folder.iterdir()}


async def test_outputs_older_than_a_week_are_removed_again_and_again(tmp_path, monkeypatch):
    monkeypatch.setattr("pegboard.engine.toolresult.SWEEP_EVERY_S", 0.01)
    outputs(
        tmp_path, tool_old=KEPT_S + 60, run_old=KEPT_S + 60, tool_new=KEPT_S - 60, mine=KEPT_S + 60
    )
    (tmp_path / "tool_folder.txt").mkdir()

    sweeping = asyncio.create_task(sweep(tmp_path))
    kept = {"tool_new.txt", "mine.txt", "tool_folder.txt"}
    await until(lambda: left(tmp_path) == kept)
    outputs(tmp_path, tool_late=KEPT_S + 60)
    await until(lambda: left(tmp_path) == kept)

    sweeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sweeping


async def until(is_so):
    async with asyncio.timeout(30):
        while not is_so():  # noqa: ASYNC110 - a folder tells nobody
            await asyncio.sleep(0.01)


def test_of_too_many_outputs_the_newest_are_kept(tmp_path):
    outputs(tmp_path, tool_a=30, run_b=20, tool_c=10)

    remove_old_outputs(tmp_path, before=0, most_bytes=2)

    assert left(tmp_path) == {"run_b.txt", "tool_c.txt"}


async def test_an_output_that_is_not_cut_as_its_tool_says_is_cut(tmp_path):
    result = ToolResult(output="x\n" * 2_000_000, metadata={"truncated": False})

    limited = await limit_output(result, output_dir=tmp_path)

    assert len(limited.output) < 52_000
    assert limited.metadata["truncated"] is True


def test_a_folder_that_is_not_there_has_nothing_to_remove(tmp_path):
    remove_old_outputs(tmp_path / "none", before=time.time())


def test_outputs_of_sessions_go_with_their_folders(tmp_path):
    for name in ("ses_old", "ses_new", "mine"):
        (tmp_path / name).mkdir()
    outputs(tmp_path / "ses_old", tool_a=KEPT_S + 60)
    outputs(tmp_path / "ses_new", tool_b=60)
    outputs(tmp_path / "mine", tool_c=KEPT_S + 60)

    remove_old_outputs(tmp_path, before=time.time() - KEPT_S)
    os.utime(tmp_path / "ses_old", (0, 0))
    os.utime(tmp_path / "ses_new", (0, 0))
    remove_old_outputs(tmp_path, before=time.time() - KEPT_S)

    assert sorted(path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")) == [
        *("mine", "mine/tool_c.txt", "ses_new", "ses_new/tool_b.txt")
    ]


def test_what_is_no_output_of_ours_is_left_alone(tmp_path):
    (tmp_path / "precious").write_text("x")
    (tmp_path / "tool_link.txt").symlink_to("precious")

    remove_old_outputs(tmp_path, before=time.time() + 60)

    assert (tmp_path / "precious").exists()


async def test_an_app_closes_while_old_outputs_wait_to_be_removed(tmp_path):
    async with opened(tmp_path, Played(text("hi"))) as app:
        started = time.monotonic()

    assert app is not None
    assert time.monotonic() - started < 20
