"""The address of a server, the credentials for the server, and the project's folder."""

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
    """The address of a server, the credentials for the server, and the folder of the project.

    If `directory` is None, the server uses the folder in which it was started. If `token` is a
    function, it is called for each request, because a restarted server has a new token.
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
        """Return the address for a URL, with a token or else with a password.

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
        """Return the Authorization header, or None for a server without authentication."""
        token = self.token() if callable(self.token) else self.token
        if token is not None:
            return f"Bearer {token}"
        if self.password is None:
            return None
        login = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(login).decode()}"


def route(*steps: str) -> str:
    """Join path segments; each segment is percent-encoded, so it cannot contain a separator."""
    return "/" + "/".join(quote(step, safe="") for step in steps)


def checked_url(url: str) -> str:
    """Return the URL of a server without a trailing slash.

    :raises InvalidInputError: for a URL without the form `http://HOST:PORT`.
    """
    try:
        parts = urlsplit(url)
        known = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        known = False
    if not known:
        raise InvalidInputError(f"not the address of a server: {url[:200]!r}; http://HOST:PORT is")
    return url.rstrip("/")
