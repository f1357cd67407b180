"""The example of a storage keeps what a storage promises, and runs a turn."""

import ast
from itertools import count
from pathlib import Path

import pytest

from docs.pages import EXAMPLES, PAGES, links
from pegboard.app import IdSource
from pegboard.errors import StorageError
from pegboard.schema.part import TextPart
from pegboard.testing import check_hooks, check_storage
from support.models.played import HI, Played, opened, text
from support.plugins.surface import PROMISED

FOLDER = EXAMPLES / "pegboard_lines"


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example is a package of a folder on the path, as an installed one is."""
    monkeypatch.syspath_prepend(EXAMPLES)


async def test_it_keeps_what_a_storage_promises(tmp_path: Path) -> None:
    import pegboard_lines

    numbers = count()

    def new_url() -> str:
        return f"lines://{tmp_path}/{next(numbers)}.jsonl"

    assert await check_storage(pegboard_lines.open_lines, new_url) == ()
    assert await check_hooks(pegboard_lines) == ()


async def test_a_turn_is_there_when_it_is_opened_again(tmp_path: Path) -> None:
    import pegboard_lines

    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    env["PEGBOARD_DATABASE"] = f"lines://{tmp_path}/sessions.jsonl"
    said: list[list[str]] = []
    for _ in range(2):
        provider = Played(text("Hello."))
        async with opened(tmp_path, provider, pegboard_lines, env=env) as app:
            known = await app.sessions()
            session = known[0] if known else await app.create_session(title="kept")
            await app.prompt(session.id, HI)
            turns = await app.list_turns(session.id)
            parts = (part for turn in turns for part in turn.parts)
            said.append([part.text for part in parts if isinstance(part, TextPart)])

    assert said == [["hi", "Hello."], ["hi", "Hello.", "hi", "Hello."]]


async def test_a_line_that_a_crash_has_cut_off_counts_for_nothing(tmp_path: Path) -> None:
    import pegboard_lines

    path = tmp_path / "sessions.jsonl"
    path.write_bytes(b'{"at":1,"changes":[["PutPro')

    storage = await pegboard_lines.open_lines(path, ids=IdSource())

    assert await storage.projects() == ()
    with pytest.raises(StorageError, match="is open in another process"):
        await pegboard_lines.open_lines(path, ids=IdSource())
    await storage.aclose()
    assert path.read_bytes() == b""


def test_it_uses_public_names_and_is_linked_from_a_page() -> None:
    files = sorted(FOLDER.glob("*.py"))
    imported = {
        node.module
        for file in files
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module
    }
    linked = {(page.parent / link).resolve() for page in PAGES for link in links(page)}

    ours = {name for name in imported if name.partition(".")[0] == "pegboard"}
    assert {name for name in ours - {*PROMISED} if not name.startswith("pegboard.schema")} == set()
    assert set(files) <= linked
