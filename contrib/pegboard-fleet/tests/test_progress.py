"""The progress of a batch: one line on a terminal, and a line for each attempt elsewhere."""

import re
from pathlib import Path
from typing import Any

import pytest
from batches import OK, Jobs, words_of

from plugins.cli.commands import CommandLine
from support.models.model_server import Answer, ModelServer, Pause, failure, say, text


async def test_a_terminal_has_one_line_with_the_state_of_the_batch(
    line: CommandLine, jobs: Jobs, tmp_path: Path
) -> None:
    def script(body: dict[str, Any]) -> Answer:
        return [*text("half"), Pause()] if "slowly" in words_of(body) else say("Yes.")

    file = jobs(
        {"id": "ill", "prompt": "go", "setup": "printf '\\033[2J'; exit 1"},
        {"id": "good", "prompt": "go"},
        {"id": "slow", "prompt": "slowly"},
    )
    out = str(tmp_path / "out")
    async with ModelServer(script) as server:
        line.use_model(server.url, **OK)
        words = ("batch", "run", file, "--out", out, "--budget-usd", "1000")
        async with line.terminal(*words) as terminal:
            await terminal.see("2 of 3 · 1 running · ")
            await line("batch", "stop", out)
            code = await terminal.end()

    assert code == 130
    assert "\r\x1b[Kill #1: error_infra: setup ended with 1: printf" in terminal.shown
    assert "good #1" not in terminal.shown
    assert "\x1b[2J" not in terminal.shown
    drawn = [each for each in re.split(r"\r\x1b\[K|\n", terminal.shown) if " of 3" in each]
    assert re.search(r"^2 of 3 · 1 running · [\d.]+ a minute · \d+ min \d\d s left · \$", drawn[-1])
    assert " of $1000" in drawn[-1]
    assert max(map(len, drawn)) < 80


async def test_elsewhere_each_attempt_has_a_line_with_the_sums(
    line: CommandLine, jobs: Jobs, tmp_path: Path
) -> None:
    refused: list[int] = []

    def script(body: dict[str, Any]) -> Answer:
        refused.append(1)
        return failure(429) if len(refused) == 1 else say("Yes.")

    file = jobs({"id": "one", "prompt": "go"}, {"id": "two", "prompt": "go", "check": "exit 1"})
    async with ModelServer(script) as server:
        line.use_model(server.url, **OK)
        words = ("--out", str(tmp_path / "out"), "--concurrency", "1", "--pause", "0.1")
        done = await line("batch", "run", file, *words)

    first, second, third, last = done.err.splitlines()
    assert first == "one #1: the provider gets too many requests; no attempt begins for 0.1 s"
    assert second.startswith("two #1: failed; 1 of 2: 1 failed · $")
    assert third.startswith("one #1: done; 2 of 2: 1 done, 1 failed · $")
    assert last.endswith(f"the results are in {tmp_path / 'out' / 'results.jsonl'}")
    assert (done.code, done.out) == (1, "")


@pytest.mark.parametrize("command", ["status", "stop", "results", "resume"])
async def test_a_folder_without_a_batch_is_named(
    line: CommandLine, tmp_path: Path, command: str
) -> None:
    done = await line("batch", command, str(tmp_path / "nowhere"))

    assert done.code == 2
    assert f"{tmp_path / 'nowhere'} has no batch" in done.err
    assert "Traceback" not in done.err
