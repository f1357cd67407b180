"""The address of a server, its credentials, and the project."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Self
from urllib.parse import quote, urlsplit

import msgspec

from pegboard import InvalidInputError
from pegboard_plugins.shared.frontend import ASKS_UNKNOWN

USER = "opencode"
"""The name that clients of the protocol send where none is set."""
Token = str | Callable[[], str | None] | None
START = "`pegboard serve` starts one"


class ServerAddress(msgspec.Struct, frozen=True, kw_only=True):
    """One server as a client uses it; without a `directory` the server's own is meant.

    A `token` that is called for each time is that of a server that may start again.
    """

    url: str
    token: Token = None
    username: str = USER
    password: str | None = None
    directory: str | None = None

    @classmethod
    def of(
        cls,
        url: str,
        *,
        token: Token = None,
        username: str | None = None,
        password: str | None = None,
        directory: Path | str | None = None,
    ) -> Self:
        """Return the server at this URL, opened by a token or else by a password.

        :raises InvalidInputError: for another URL than `http://HOST:PORT`.
        """
        return cls(
            url=checked_url(url),
            token=token,
            username=username or USER,
            password=password,
            directory=str(Path(directory).absolute()) if directory is not None else None,
        )

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        said = {"accept": "application/json", ASKS_UNKNOWN[0]: ASKS_UNKNOWN[1]}
        if self.directory is not None:
            said["x-opencode-directory"] = quote(self.directory)
        return said

    def authorization(self) -> str | None:
        """Return the header that opens the server, None for an open one."""
        token = self.token() if callable(self.token) else self.token
        if token is not None:
            return f"Bearer {token}"
        if self.password is None:
            return None
        login = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(login).decode()}"


def route(*steps: str) -> str:
    """Return the path of these steps, each quoted, so that none leaves its place."""
    return "/" + "/".join(quote(step, safe="") for step in steps)


def checked_url(url: str) -> str:
    """Return the URL of a server without its last slash.

    :raises InvalidInputError: for another URL than `http://HOST:PORT`.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise InvalidInputError(f"not the address of a server: {url[:200]!r}; http://HOST:PORT is")
    return url.rstrip("/")
