"""The servers of this user that run, by the files in which they tell of themselves."""

import ipaddress
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pegboard.client.address import START
from pegboard.errors import ServerUnreachableError
from pegboard.paths import Places

PASSWORDS = ("PEGBOARD_SERVER_PASSWORD", "OPENCODE_SERVER_PASSWORD")
USERS = ("PEGBOARD_SERVER_USERNAME", "OPENCODE_SERVER_USERNAME")
_OTHERS = 0o077


class Running(msgspec.Struct, frozen=True, kw_only=True):
    """A server: its address, its process, what opens it, and the directory it was started for."""

    url: str
    pid: int
    token: str | None = None
    directory: str = ""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """A server's address and what opens it: the token, or else the password of the user.

    The token is looked up when it is needed: a server that starts again has another one.
    """

    url: str
    token: Callable[[], str | None] | None = None
    username: str | None = None
    password: str | None = None


def find_server(
    directory: Path | str | None,
    *,
    url: str | None = None,
    env: Mapping[str, str] | None = None,
    password: str | None = None,
) -> Access:
    """The server at this URL with what opens it, or the one to ask about this directory.

    That is the one that was started for the directory, or for the nearest folder around it, else
    the one that was started last. It is opened by the password if there is one, else by the token
    of its file, else by the password of the environment. A token is never sent to another address
    than that of its file.

    :raises ServerUnreachableError: when no URL is given and no server runs.
    """
    said = os.environ if env is None else env
    state = Places.of(said).state
    place = url or _nearest(running(state), Path(directory or Path.cwd()).absolute()).url
    return Access(
        url=place,
        token=partial(token_of, place, state) if password is None else None,
        username=_first(said, USERS),
        password=password or _first(said, PASSWORDS),
    )


def token_of(url: str, state: Path) -> str | None:
    """The token of the server at this URL, if this user has started it."""
    same = (each.token for each in running(state) if _is_same(each.url, url))
    return next(same, None)


def running(state: Path) -> tuple[Running, ...]:
    """The servers whose files are in this folder, the newest first.

    A file that others may read or write is no server's, and one without its process is a rest.
    """
    found = [(at, each) for file in state.glob("server-*.json") for at, each in _read(file)]
    return tuple(each for _, each in sorted(found, key=lambda pair: pair[0], reverse=True))


def _read(file: Path) -> list[tuple[float, Running]]:
    try:
        with file.open("rb") as opened:
            facts = os.fstat(opened.fileno())
            if facts.st_uid != os.geteuid() or facts.st_mode & _OTHERS:
                return []
            server = msgspec.json.decode(opened.read(), type=Running)
        os.kill(server.pid, 0)
    except (OSError, msgspec.DecodeError):
        return []
    return [(facts.st_mtime, server)]


def _nearest(servers: tuple[Running, ...], directory: Path) -> Running:
    if not servers:
        raise ServerUnreachableError(f"no server runs; {START}")
    around = [
        each for each in servers if each.directory and directory.is_relative_to(each.directory)
    ]
    return max(around, key=lambda each: len(each.directory)) if around else servers[0]


def _is_same(known: str, url: str) -> bool:
    """Whether both are one server: this machine has several names."""
    one, other = urlsplit(known), urlsplit(url)
    same_host = one.hostname == other.hostname or (
        _is_loopback(one.hostname or "") and _is_loopback(other.hostname or "")
    )
    return one.scheme == other.scheme and one.port == other.port and same_host


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)
