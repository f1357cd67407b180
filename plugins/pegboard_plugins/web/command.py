"""`pegboard web`: the web view of this project in a browser."""

import asyncio
import contextlib
import fcntl
import html
import os
import webbrowser
from pathlib import Path
from urllib.parse import quote

import click
import httpx
import msgspec

from pegboard import AppOptions, InvalidInputError
from pegboard.app import UserFolders
from pegboard.cli import run_async
from pegboard.errors import ServerUnreachableError
from pegboard.unstable import refuse_within_tool
from pegboard_plugins.server import lifecycle

KEY_WITHIN_S = 10.0
FIRST_PORT = 4096
_OTHERS = 0o077


class RunningServer(msgspec.Struct, frozen=True):
    """A running server of this user, as a file in the state folder describes the server."""

    url: str
    directory: str
    token: str | None = None


@click.command()
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="The port of a new server; without it, any free one.",
)
@click.option("--allow-approve", is_flag=True, help="Let the page allow calls for good.")
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
@click.option("--trust", is_flag=True, help="Trust the code of all projects, in a new server.")
@click.pass_obj
def web(directory: Path, port: int, *, allow_approve: bool, no_open: bool, trust: bool) -> None:
    """Show this project's sessions in a browser.

    A running server of this folder is used; otherwise one is started, which Ctrl-C stops. The
    printed address works once, within a minute.
    """
    refuse_within_tool("pegboard web")
    state = UserFolders.of(os.environ).state
    folder = directory.absolute()

    def show(server: RunningServer) -> None:
        url = page_url(server, folder, approve=allow_approve)
        click.echo(url)
        if not no_open:
            open_browser(url, state)

    running = running_server(state, folder)
    if running is not None:
        show(running)
        return
    settings = lifecycle.ServerSettings(
        directory=directory,
        port=port,
        options=AppOptions(interactive=True, trust=True if trust else None),
    )

    def ready(url: str) -> None:
        server = running_server(state, folder, url=url)
        assert server is not None  # its file is written before it is ready
        opening.append(asyncio.get_running_loop().run_in_executor(None, show, server))

    opening: list[asyncio.Future[None]] = []
    lifecycle.log_to_stderr(is_quiet=True)
    run_async(lifecycle.serve(settings, os.environ, ready))


def running_server(state: Path, directory: Path, *, url: str = "") -> RunningServer | None:
    """Return the directory's running server, or None; with `url`, only the server at `url`."""
    for file in state.glob("server-*.json"):
        found = _read(file)
        if found is None or (url and found.url != url):
            continue
        if Path(found.directory).resolve() == directory.resolve():
            return found
    return None


def _read(file: Path) -> RunningServer | None:
    """Return the server in a state file; None if it has ended or belongs to another user."""
    try:
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as content:
            facts = os.fstat(opened)
            if facts.st_uid != os.geteuid() or facts.st_mode & _OTHERS:
                return None
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return None  # a server holds its file locked as long as it lives
            return msgspec.json.decode(content.read(), type=RunningServer)
    except (OSError, msgspec.DecodeError):
        return None


def page_url(server: RunningServer, directory: Path, *, approve: bool) -> str:
    """Return the page's URL with a new key; with `approve`, the page may allow calls for good.

    :raises ServerUnreachableError: when the server returns no key.
    """
    headers = {"authorization": f"Bearer {server.token}"} if server.token else {}
    address = f"{server.url}/pegboard/browser/key"
    try:
        with httpx.Client(trust_env=False, timeout=KEY_WITHIN_S) as client:
            response = client.post(address, json={"approve": approve}, headers=headers)
            response.raise_for_status()
    except httpx.HTTPError as error:
        raise ServerUnreachableError(
            f"the server at {server.url} gave no key: {error}; stop it and run `pegboard web` again"
        ) from error
    key = response.json()["key"]
    return f"{server.url}/plugin/web/#k={key}&d={quote(str(directory), safe='')}"


def open_browser(url: str, state: Path) -> None:
    """Open the address in the browser, through a private file.

    Other users could read the address, with its key, in a program's arguments.

    :raises InvalidInputError: when the file cannot be written.
    """
    file = state / "web.html"
    text = f'<!DOCTYPE html><meta http-equiv="refresh" content="0;url={html.escape(url)}">'
    try:
        file.unlink(missing_ok=True)
        with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as opened:
            opened.write(text)
    except OSError as error:
        raise InvalidInputError(
            f"cannot write {file}: {error.strerror or error}; --no-open prints the address alone"
        ) from error
    webbrowser.open(file.as_uri())
