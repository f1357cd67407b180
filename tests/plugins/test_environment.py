import sys
from pathlib import Path

import pytest

from pegboard.schema.config import Config
from pegboard_plugins.environment import chat_system_transform
from session_views import view


async def test_the_piece_tells_where_the_agent_works(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (tmp_path / "sub").mkdir()

    *before, piece = await chat_system_transform(
        view(tmp_path, directory=tmp_path / "sub"), ("prompt",)
    )

    assert before == ["prompt"]
    platform = {"linux": "Linux", "darwin": "macOS"}[sys.platform]
    assert piece == "\n".join(
        [
            "Where you work:",
            f"- Working directory: {tmp_path / 'sub'}",
            f"- Root of the project: {tmp_path}",
            "- Git repository: yes",
            f"- Platform: {platform}",
            "- Today's date: 2026-03-01",
        ]
    )


async def test_the_piece_stays_the_same_through_a_session(tmp_path: Path) -> None:
    session = view(tmp_path)

    assert await chat_system_transform(session, ()) == await chat_system_transform(session, ())


async def test_without_git_it_says_so(tmp_path: Path) -> None:
    (piece,) = await chat_system_transform(view(tmp_path), ())

    assert "- Git repository: no" in piece


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (Config(sandbox="workspace"), "no network"),
        (Config(sandbox="workspace", sandbox_network=True), "$TMPDIR; network"),
        (Config(sandbox="strict", sandbox_network=True), "no network; the home folder is empty"),
        (
            Config(sandbox="strict", sandbox_network=("*.a.test",)),
            "only these hosts, by the proxy in $HTTPS_PROXY: *.a.test; the home folder is empty",
        ),
    ],
)
async def test_in_a_sandbox_it_says_what_cannot_be_done(
    tmp_path: Path, config: Config, words: str
) -> None:
    (piece,) = await chat_system_transform(view(tmp_path, config=config), ())

    assert piece.splitlines()[-1].startswith("- Sandbox: ")
    assert piece.endswith(words)
