"""The page of batches in the web view: progress and outcomes of each."""

from pathlib import Path

import pytest
from batches import OK, Jobs, worker
from pegboard_fleet import webpages

from pegboard import App
from pegboard_plugins import web
from plugins.cli.commands import CommandLine
from support.models.model_server import ModelServer
from support.models.played import Played, opened


async def drawn(app: App) -> list[tuple[str, tuple[tuple[str, ...], ...]]]:
    found = await app.hooks.collect(web.web_pages)
    (page,) = [each.value for each in found if each.value.name == "batches"]
    return [(block.title, block.table) for block in await page.draw(app)]


async def test_a_batch_has_a_row_for_each_attempt(
    line: CommandLine, jobs: Jobs, repository: Path, tmp_path: Path
) -> None:
    good = {"id": "good", "prompt": "go", "repo": str(repository)}
    file = jobs(good, {"id": "ill", "prompt": "go", "repo": str(tmp_path / "missing")})
    async with ModelServer(worker) as server:
        line.use_model(server.url, **OK)
        await line("batch", "run", file, "--out", str(tmp_path / "project" / "out"))

    async with opened(tmp_path, Played(), web, webpages) as app:
        ((title, table),) = await drawn(app)

    assert title.startswith("out: 2 of 2 attempts have ended · 1 done · 1 error_infra")
    assert [row[:3] for row in table[1:]] == [("good", "1", "done"), ("ill", "1", "error_infra")]
    assert "missing" in table[2][-1]


@pytest.mark.parametrize("content", ["", "not JSON\n", '{"type":"began"}\n'])
async def test_a_damaged_journal_is_named(tmp_path: Path, content: str) -> None:
    folder = tmp_path / "project" / "runs" / "one"
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text(content)

    async with opened(tmp_path, Played(), web, webpages) as app:
        assert [title for title, _ in await drawn(app)] == ["runs/one"]


async def test_without_batches_the_page_says_how_to_make_one(tmp_path: Path) -> None:
    async with opened(tmp_path, Played(), web, webpages) as app:
        assert [title for title, _ in await drawn(app)] == ["No batches"]
