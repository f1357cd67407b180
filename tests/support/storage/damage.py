# ruff: noqa: ASYNC240 - these tests arrange small files
"""Databases with damage, and what is salvaged of them."""

from pathlib import Path

import apsw

from pegboard.ids import IdSource
from pegboard_plugins.sqlite.salvage import Salvaged, salvage
from pegboard_plugins.sqlite.storage import SqliteStorage

PAGE = 4096


def overwritten(path: Path, start: int, length: int = PAGE) -> None:
    content = bytearray(path.read_bytes())
    content[start : start + length] = b"\xa5" * length
    path.write_bytes(content)


def met(path: Path) -> None:
    """As when a read has met the damage."""
    path.with_name(f"{path.name}.damaged").touch()


def rootpage(path: Path, name: str) -> int:
    db = apsw.Connection(str(path))
    [(page,)] = db.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,))
    db.close()
    return int(str(page))


async def taken_over(path: Path) -> Salvaged:
    """The database with what is salvaged of itself, and how much that is."""
    source = path.rename(path.with_name("old.db"))
    texts = path.with_name(f"{path.name}.texts")
    if texts.exists():
        texts.rename(path.with_name("texts"))
    storage = await SqliteStorage.open(path, ids=IdSource())
    if path.with_name("texts").exists():
        path.with_name("texts").rename(texts)
    found = salvage(source, storage._writer._db)
    await storage.aclose()
    return found
