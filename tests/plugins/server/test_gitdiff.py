"""What differs from the last commit, also in a repository that somebody else has prepared."""

import os
import subprocess
from pathlib import Path

import pytest

from support.wire.served import make_project, served

QUESTIONS = ("/file/status", "/vcs/status", "/vcs/diff", "/vcs/diff?context=0")


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "protocol.file.allow=always")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def prepared(tmp_path: Path) -> Path:
    """A repository with changes, whose own configuration has a trap wherever git runs something."""
    trap = tmp_path / "trap"
    trap.write_text(f'#!/bin/sh\necho "$0 $*" >> {tmp_path}/canary\ncat\n')
    trap.chmod(0o755)
    inner, folder = tmp_path / "inner", tmp_path / "prepared"
    for each in (inner, folder):
        each.mkdir()
        git(each, "init", "-q")
        (each / ".gitattributes").write_text("* filter=a=b diff=x\n*.md filter=plain\n")
        (each / "a.md").write_text("one\n")
        (each / "b.txt").write_text("one\n")
        git(each, "add", "-A")
        git(each, "commit", "-qm", "first")
    git(folder, "submodule", "add", "-q", str(inner), "sub")
    git(folder, "commit", "-qam", "second")
    for each in (folder, folder / "sub"):
        for key in (
            *(
                "filter.a=b.clean",
                "filter.a=b.process",
                "filter.plain.clean",
                "filter.plain.smudge",
            ),
            *("diff.x.textconv", "diff.x.command", "diff.external", "core.pager", "core.fsmonitor"),
        ):
            git(each, "config", key, str(trap))
        git(each, "config", "filter.plain.required", "true")
        (each / "a.md").write_text("two\n")
        (each / "b.txt").write_text("two\n")
    return folder


@pytest.mark.parametrize("question", QUESTIONS)
def test_nothing_that_a_repository_is_set_up_to_run_is_run(client, prepared, question):
    answer = client.get(question, headers={"x-opencode-directory": str(prepared)})

    assert not (prepared.parent / "canary").exists()
    assert {each.get("path", each.get("file")) for each in answer.json()} == {"a.md", "b.txt"}


def test_no_git_of_the_project_is_run(model_port, prepared):
    trap = prepared.parent / "trap"
    (prepared / "git").symlink_to(trap)
    path = os.pathsep.join((".", "", os.environ["PATH"]))
    with (
        served(prepared.parent / "served", model_port, env={"PATH": path}) as server,
        server.client() as client,
    ):
        answer = client.get("/vcs/status", params={"directory": str(prepared)})

    assert not (prepared.parent / "canary").exists()
    assert {each["file"] for each in answer.json()} == {"a.md", "b.txt", "git"}


@pytest.mark.parametrize("content", ["a\nb\n", "a\nb", "", "\n", "a\r\n\n", "\u2028x\x0c\n"])
def test_a_file_that_git_does_not_know_is_shown_as_new(client, tmp_path, content):
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "first")
    (tmp_path / "new.txt").write_bytes(content.encode())
    where = {"directory": str(tmp_path)}

    [entry] = client.get("/vcs/diff", params=where).json()
    git(tmp_path, "add", "-A")
    [known] = client.get("/vcs/diff", params=where).json()

    index = next(line for line in known["patch"].splitlines() if line.startswith("index "))
    assert {**known, "patch": known["patch"].replace(f"{index}\n", "")} == entry


def test_changes_are_those_since_the_last_commit(server, client):
    (server.directory / "fresh.txt").write_text("a\nb\n")

    status = client.get("/file/status").json()
    patches = client.get("/vcs/diff").json()

    entry = next(each for each in status if each["path"] == "fresh.txt")
    assert entry == {"path": "fresh.txt", "added": 2, "removed": 0, "status": "added"}
    assert "fresh.txt" in {each["file"] for each in patches}


def test_a_branch_is_shown_beside_the_one_that_it_began_at(client, tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a.txt").write_text("one\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "first")
    where = {"directory": str(tmp_path)}
    on_main = client.get("/vcs/diff", params={**where, "mode": "branch"}).json()
    git(tmp_path, "switch", "-qc", "mine")
    (tmp_path / "b.txt").write_text("two\n")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "second")
    (tmp_path / "a.txt").write_text("three\n")

    branches = client.get("/vcs", params=where).json()
    asked = ({**where, "mode": mode} for mode in ("git", "branch"))
    shown = [client.get("/vcs/diff", params=each).json() for each in asked]

    assert on_main == []
    assert branches == {"branch": "mine", "default_branch": "main"}
    assert [[each["file"] for each in files] for files in shown] == [["a.txt"], ["a.txt", "b.txt"]]


def test_the_remote_says_which_branch_is_the_default(client, tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    there.mkdir()
    git(there, "init", "-q", "-b", "trunk")
    git(there, "commit", "-q", "--allow-empty", "-m", "first")
    git(tmp_path, "clone", "-q", str(there), str(here))
    git(here, "switch", "-qc", "main")

    branches = client.get("/vcs", params={"directory": str(here)}).json()

    assert branches == {"branch": "main", "default_branch": "trunk"}


def test_the_raw_diff_is_a_patch_that_git_applies(client, tmp_path):
    folder, other = make_project(tmp_path / "work"), make_project(tmp_path / "other")
    (folder / "calc.py").write_text("def add(a, b):\n    return b + a\n")
    (folder / "new.txt").write_text("one\ntwo")

    answer = client.get("/vcs/diff/raw", headers={"x-opencode-directory": str(folder)})

    assert answer.headers["content-type"] == "text/x-diff; charset=utf-8"
    (other / "raw.patch").write_bytes(answer.content)
    git(other, "apply", "raw.patch")
    for name in ("calc.py", "new.txt"):
        assert (other / name).read_bytes() == (folder / name).read_bytes()


def test_a_repository_is_made_and_takes_the_sessions_of_its_folder_along(client, tmp_path):
    place = {"x-opencode-directory": str(tmp_path)}
    session = client.post("/session", headers=place, json={"title": "before git"}).json()
    child = {"title": "below", "parentID": session["id"]}
    below = client.post("/session", headers=place, json=child).json()

    project = client.post("/project/git/init", headers=place).json()

    assert (tmp_path / ".git/HEAD").is_file()
    assert (project["worktree"], project["vcs"]) == (str(tmp_path), "git")
    listed = client.get("/session", headers=place).json()
    assert {each["id"] for each in listed} == {session["id"], below["id"]}
    assert {each["projectID"] for each in listed} == {project["id"]} != {session["projectID"]}
    again = client.post("/project/git/init", headers=place).json()
    assert again["id"] == project["id"]


def test_no_repository_is_made_while_a_turn_runs(client, tmp_path):
    place = {"x-opencode-directory": str(tmp_path)}
    session = client.post("/session", headers=place).json()["id"]
    prompt = {"parts": [{"type": "text", "text": "%bash free; sleep 60"}]}
    client.post(f"/session/{session}/prompt_async", headers=place, json=prompt)

    answer = client.post("/project/git/init", headers=place)

    assert (answer.status_code, answer.json()["sessionID"]) == (409, session)
    assert not (tmp_path / ".git").exists()
    client.post(f"/session/{session}/abort", headers=place)
