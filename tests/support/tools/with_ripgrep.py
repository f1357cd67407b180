"""Searches with ripgrep on the PATH, and without it."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

RG = shutil.which("rg", path=f"{sys.prefix}/bin:{os.environ.get('PATH', os.defpath)}")
"""That of the extra `dev`, if it is there: an older one knows less of what expressions can say."""
KINDS = ("ripgrep", "python")


def offer(kind: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Has ripgrep alone on the PATH, or nothing; `folder` is for that."""
    tools = folder / kind
    tools.mkdir(parents=True, exist_ok=True)
    if kind == "ripgrep" and not (tools / "rg").exists():
        assert RG, "the extra `dev` brings ripgrep"
        (tools / "rg").symlink_to(RG)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setattr(sys, "prefix", str(folder))


def both(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """With ripgrep first, then without it."""
    for kind in KINDS:
        offer(kind, folder, monkeypatch)
        yield kind


def lay(folder: Path, files: Mapping[str, bytes]) -> None:
    """Writes the files, by their names, each a second younger than the one before."""
    for number, (name, content) in enumerate(files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        os.utime(path, (number, number))
