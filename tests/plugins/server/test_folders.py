"""A session whose folder does not exist any more is shown, and works in no other folder."""

import shutil

import pytest

from support.tools.worktrees import git, small_repository
from support.wire.streams_heard import prompt


@pytest.mark.parametrize("word", ["message", "prompt_async", "shell", "command", "revert"])
def test_a_session_without_its_folder_does_not_work_in_another(client, tmp_path, word):
    main, other = small_repository(tmp_path / "main"), tmp_path / "other"
    git(main, "worktree", "add", "-q", str(other))
    session = client.post("/session", params={"directory": str(other)}).json()["id"]
    shutil.rmtree(other)

    where = {"directory": str(main)}
    shown = client.get(f"/session/{session}", params=where)
    answer = client.post(f"/session/{session}/{word}", params=where, json=prompt("x;;%say PONG"))

    assert (shown.status_code, answer.status_code) == (200, 400)
    assert f"session {session} works in {other}, not in {main}" in answer.text
