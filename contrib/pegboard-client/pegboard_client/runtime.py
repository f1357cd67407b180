"""The running servers of this user, found by the runtime files that servers write."""

import fcntl
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from pegboard.app import UserFolders
from pegboard.errors import ServerUnreachableError
from pegboard.http import is_loopback
from pegboard.unstable import ip_address_of
from pegboard_client.address import START, checked_url

PASSWORDS = ("PEGBOARD_SERVER_PASSWORD", "OPENCODE_SERVER_PASSWORD")
USERS = ("PEGBOARD_SERVER_USERNAME", "OPENCODE_SERVER_USERNAME")
_OTHERS = 0o077


class FoundServer(msgspec.Struct, frozen=True, kw_only=True):
    """A running server: URL, process id, token, and the directory where it was started."""

    url: str
    pid: int
    token: str | None = None
    directory: str = ""


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """A server's URL with its credentials: a token, or else the user's password.

    The token is read when it is needed, because a restarted server has a new token.
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
    """Return the URL and credentials of the server at `url`, or else of a server for `directory`.

    A server is for the directory if it was started there or in the nearest parent folder; without
    such a server, the newest one is used. The credential is `password` if it is given, or else the
    token in the server's runtime file. Only a server at `url` that has no runtime file gets the
    password of the environment. A token is sent only to the address in its file.

    :raises ServerUnreachableError: when no URL is given and no server runs.
    :raises InvalidInputError: for a URL without the form `http://HOST:PORT`.
    """
    said = os.environ if env is None else env
    state = UserFolders.of(said).state
    servers = running(state)
    if url is None:
        place = _nearest(servers, Path(directory or Path.cwd()).absolute()).url
        known = True
    else:
        named = checked_url(url)
        found = next((each.url for each in servers if _is_meant(each.url, named)), None)
        place, known = found or named, found is not None
    return Access(
        url=place,
        token=partial(token_of, place, state) if password is None else None,
        username=_first(said, USERS),
        password=password or (None if known else _first(said, PASSWORDS)),
    )


def token_of(url: str, state: Path) -> str | None:
    """Return the token of the server at this URL, or None if another user started the server."""
    return next((each.token for each in running(state) if each.url == url), None)


def running(state: Path) -> tuple[FoundServer, ...]:
    """Return the servers with a runtime file in the folder `state`, newest first.

    A file that other users can read or write is ignored. A running server locks its file. An
    unlocked file is left from a server that has ended, and another program may use its port.
    """
    found = [(at, each) for file in state.glob("server-*.json") for at, each in _read(file)]
    return tuple(each for _, each in sorted(found, key=lambda pair: pair[0], reverse=True))


def _read(file: Path) -> list[tuple[float, FoundServer]]:
    try:
        # No link, and nothing that lets one wait for who writes into it.
        opened = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(opened, "rb") as content:
            facts = os.fstat(opened)
            if facts.st_uid != os.geteuid() or facts.st_mode & _OTHERS or not _is_locked(opened):
                return []
            return [(facts.st_mtime, msgspec.json.decode(content.read(), type=FoundServer))]
    except (OSError, msgspec.DecodeError):
        return []


def _is_locked(opened: int) -> bool:
    try:
        fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _nearest(servers: tuple[FoundServer, ...], directory: Path) -> FoundServer:
    if not servers:
        raise ServerUnreachableError(f"no server runs; {START}")
    around = [
        each for each in servers if each.directory and directory.is_relative_to(each.directory)
    ]
    return max(around, key=lambda each: len(each.directory)) if around else servers[0]


def _is_meant(known: str, url: str) -> bool:
    """Return whether `url` is an address of the server at `known`.

    `localhost` matches a server at any loopback address. A numeric address matches only itself,
    because other users may listen at other loopback addresses.
    """
    one, other = urlsplit(known), urlsplit(url)
    host, named = one.hostname or "", other.hostname or ""
    is_same = host == named or (ip_address_of(host) or host) == (ip_address_of(named) or named)
    is_ours = is_loopback(host) and is_loopback(named) and ip_address_of(named) is None
    return (one.scheme, one.port) == (other.scheme, other.port) and (is_same or is_ours)


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((env[name] for name in names if env.get(name)), None)
