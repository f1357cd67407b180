"""A program called `rg` that prints without an end is ended, whatever it prints."""

import json
import sys
from pathlib import Path

import pytest

from pegboard.schema.part import Failed
from pegboard_plugins import glob, grep
from pegboard_plugins import list as list_plugin
from support.models.played import HI, Played, call, calls, opened, text, tools_of

PIECES = {"lines": "printf '%065536d\\n' 0", "one line": "printf '%065536d' 0"}


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize(
    ("tool", "arguments"), [("grep", {"pattern": "a"}), ("glob", {"pattern": "*"}), ("list", {})]
)
async def test_what_prints_no_result_is_ended_and_named(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    tool: str,
    arguments: dict[str, str],
    piece: str,
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "rg").write_text(f"#!/bin/sh\nwhile :; do {PIECES[piece]}; done\n")
    (folder / "rg").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    provider = Played(calls(call(tool, json.dumps(arguments))), text("done"))

    config = {"model": "played/m", "plugins": {"list": {}}}

    async with opened(tmp_path, provider, grep, glob, list_plugin, config=config) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        [part] = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Failed)
    assert "rg printed 4 MiB without a result" in part.state.error
