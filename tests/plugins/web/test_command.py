"""`pegboard web`: it finds or starts the server, and gives an address that works once."""

import os
import re
import stat
import subprocess
import time
from pathlib import Path

import httpx

from pegboard_plugins.web import command
from support.processes.forks import PEGBOARD, PIPE, environment, start
from support.wire.served import Served, make_project

OPEN = """
import sys
from pathlib import Path
from pegboard_plugins.web.command import open_browser

open_browser("http://127.0.0.1:1/plugin/web/#k=SECRET&d=x", Path(sys.argv[1]))
"""
ADDRESS = re.compile(r"(http://127\.0\.0\.1:\d+)/plugin/web/#k=([\w-]+)&d=(\S+)")


def test_a_running_server_of_the_folder_is_used(server: Served) -> None:
    words = [PEGBOARD, "-C", str(server.directory), "web", "--no-open"]
    done = subprocess.run(words, env=server.env, capture_output=True, text=True, check=True)

    found = ADDRESS.search(done.stdout)
    assert found is not None, done
    assert found[1] == server.url
    answer = httpx.post(
        f"{server.url}/pegboard/browser/session",
        json={"key": found[2]},
        headers={"origin": server.url},
    )
    assert (answer.status_code, answer.json()["approve"]) == (200, False)


def test_without_one_a_server_is_started(tmp_path: Path) -> None:
    work = make_project(tmp_path / "work")
    places = {f"PEGBOARD_{name}_DIR": str(tmp_path / name) for name in ("STATE", "DATA", "CONFIG")}
    env = {**environment(), **places, "HOME": str(tmp_path)}
    words = [PEGBOARD, "-C", str(work), "web", "--no-open", "--allow-approve"]
    process = start(words, cwd=tmp_path, env=env, stdout=PIPE)
    try:
        assert process.stdout
        found = ADDRESS.search(process.stdout.readline().decode())
        assert found is not None
        answer = httpx.post(
            f"{found[1]}/pegboard/browser/session",
            json={"key": found[2]},
            headers={"origin": found[1]},
        )
        assert (answer.status_code, answer.json()["approve"]) == (200, True)
    finally:
        process.terminate()
        process.wait(30)
        if process.stdout:
            process.stdout.close()


def test_a_dead_server_s_file_and_one_that_others_may_read_are_not_used(tmp_path: Path) -> None:
    facts = f'{{"url":"http://127.0.0.1:1","directory":"{tmp_path}","token":"t"}}'
    file = tmp_path / "server-1.json"
    file.write_text(facts)
    file.chmod(0o600)

    assert command.running_server(tmp_path, tmp_path) is None


def test_the_browser_gets_a_file_that_only_its_owner_reads(tmp_path, monkeypatch) -> None:
    opened = tmp_path / "opened"
    program = tmp_path / "browser"
    program.write_text(f'#!/bin/sh\necho "$@" > {opened}.part && mv {opened}.part {opened}\n')
    program.chmod(0o700)
    words = [str(Path(PEGBOARD).with_name("python")), "-c", OPEN, str(tmp_path)]
    env = {**os.environ, "BROWSER": f"{program} %s"}
    subprocess.run(words, env=env, check=True)
    end = time.monotonic() + 60
    while not opened.exists() and time.monotonic() < end:
        time.sleep(0.02)

    page = tmp_path / "web.html"
    assert "SECRET" not in opened.read_text()
    assert opened.read_text().strip() == page.as_uri()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert "url=http://127.0.0.1:1/plugin/web/#k=SECRET&amp;d=x" in page.read_text()
