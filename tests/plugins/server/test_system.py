"""What a client cannot have, and a log line cannot say, wherever the project is."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from pegboard_plugins.server.lifecycle import LOGGERS, log_to_stderr
from support.wire.served import Served


@pytest.mark.parametrize("path", ["proc/self/environ", "proc/self/fd", "dev/zero", "sys/kernel"])
def test_a_file_of_the_system_is_no_project_s(client: httpx.Client, path: str) -> None:
    asked = {"directory": "/", "path": path}

    answers = [client.get(route, params=asked) for route in ("/file", "/file/content")]

    assert [answer.status_code for answer in answers] == [403, 403]


def test_a_folder_of_the_system_is_no_project(client: httpx.Client, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("/proc/self")

    answers = [
        client.get("/path", params={"directory": "/proc/self"}),
        client.get("/find", params={"directory": str(link), "pattern": "PEGBOARD"}),
        client.post("/pty", params={"directory": "/dev"}),
    ]

    assert [answer.status_code for answer in answers] == [403, 403, 403]


def test_a_file_that_is_too_long_is_not_shown(server: Served, client: httpx.Client) -> None:
    long = server.directory / "long"
    with long.open("wb") as file:
        file.truncate((10 << 20) + 1)

    answer = client.get("/file/content", params={"path": "long"})
    long.unlink()

    assert (answer.status_code, "10,485,760 bytes" in answer.text) == (400, True)


def test_nothing_that_a_client_says_begins_a_line_of_the_log(
    server: Served, client: httpx.Client
) -> None:
    said = {"service": "a\nFAKE", "level": "error", "message": "b\r\nFAKE\x1b[2J"}
    client.post("/log", json=said)
    client.get("/x%0aFAKE%1b[2J")

    lines = (server.places / "server.log").read_text().splitlines()
    assert [line for line in lines if line.startswith("FAKE") or "\x1b" in line] == []
    assert any("a\\nFAKE" in line for line in lines)


@contextmanager
def logged() -> Iterator[logging.Logger]:
    """A logger of the server, which writes to standard error meanwhile."""
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(each, each.level, each.propagate) for each in loggers]
    log_to_stderr(is_quiet=True)
    yield loggers[0]
    for each, level, propagates in before:
        each.removeHandler(each.handlers[-1])
        each.setLevel(level)
        each.propagate = propagates


def test_a_name_with_control_characters_is_spelt_out(capsys: pytest.CaptureFixture[str]) -> None:
    with logged() as log:
        log.warning("not run: %s", "tool/a\n\x1b]0;x\x07\udcff\u202e.py")

    assert "not run: tool/a\\n\\x1b]0;x\\x07\\udcff\\u202e.py\n" in capsys.readouterr().err


def test_an_error_s_own_text_begins_no_line_of_the_log(capsys: pytest.CaptureFixture[str]) -> None:
    with logged() as log:
        log.error("failed", exc_info=ValueError("a\nFAKE\x1b[2J"))

    first, *trace = capsys.readouterr().err.splitlines()
    assert first.endswith("failed")
    assert trace == ["  ValueError: a", "  FAKE\\x1b[2J"]
