"""A PostgreSQL server of a test's own: a new cluster in a folder, reached by a socket only.

`python postgres_server.py` starts one, prints the URL of a database and stops when its input ends.
PostgreSQL refuses to run as root, so root starts it as Debian's user `postgres`.
"""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest

USER = "postgres"
LIMIT_S = 60.0
# Nothing here must outlive a power cut.
SETTINGS = {
    "listen_addresses": "",
    "fsync": "off",
    "full_page_writes": "off",
    "max_connections": "100",
    "shared_buffers": "64MB",
}


def programs() -> Path | None:
    """Return the folder of the newest PostgreSQL that is installed, None without one."""
    if found := shutil.which("postgres"):
        return Path(found).resolve().parent
    folders = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    return max(folders, default=None, key=lambda path: float(path.parent.name))


def missing() -> str:
    """Return why no server can be started here, "" where one can."""
    if programs() is None:
        return "PostgreSQL is not installed; Debian's package is `postgresql`"
    if os.getuid() == 0 and not any(each.pw_name == USER for each in pwd.getpwall()):
        return f"PostgreSQL does not run as root, and there is no user {USER}"
    return ""


def server_for_tests() -> Iterator["PostgresServer"]:
    """Start a server for a fixture; skip its tests where none can be started."""
    if reason := missing():
        pytest.skip(reason)
    with postgres_server() as server:
        yield server


class PostgresServer:
    """A running server; `url` leads to a database that belongs to the role `keeper`."""

    def __init__(self, folder: Path) -> None:
        found = programs()
        assert found is not None
        self._programs, self._folder = found, folder
        self._user = USER if os.getuid() == 0 else None
        self._numbers = count()
        if self._user:
            shutil.chown(folder, USER, USER)
        initdb = self._popen("initdb", "-D", "data", "-U", USER, "-A", "trust", "-E", "UTF8", "-N")
        assert initdb.wait(LIMIT_S) == 0, (folder / "log").read_text()
        self.start()
        self.sql("CREATE ROLE keeper LOGIN")
        self.sql("CREATE DATABASE pegboard OWNER keeper")

    def url(self, role: str = "keeper", schema: str = "public") -> str:
        """Return the URL of the database for a role, whose tables are in a schema."""
        path = f"options=-csearch_path%3D{schema}"
        return f"postgresql://{role}@/pegboard?host={quote(str(self._folder), safe='')}&{path}"

    def new_schema(self) -> str:
        """Make an empty schema that belongs to `keeper`, and return its name."""
        schema = f"s{os.getpid()}_{next(self._numbers)}"
        self.sql(f"CREATE SCHEMA {schema} AUTHORIZATION keeper", database="pegboard")
        return schema

    def new_url(self) -> str:
        """Make an empty database, and return its URL."""
        return self.url(schema=self.new_schema())

    def sql(self, statement: str, *, database: str = "postgres") -> None:
        """Do something as the administrator."""
        where = f"host={self._folder} user={USER} dbname={database}"
        with psycopg.connect(where, autocommit=True) as db:
            db.execute(statement.encode())

    def start(self) -> None:
        """Start the server, and wait until it answers."""
        settings = SETTINGS | {"unix_socket_directories": str(self._folder)}
        arguments = [word for each in settings.items() for word in ("-c", "=".join(each))]
        self.process = self._popen("postgres", "-D", "data", *arguments)
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                return self.sql("SELECT 1")
            except psycopg.OperationalError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise
            time.sleep(0.02)

    def stop(self, by: signal.Signals = signal.SIGINT) -> None:
        """Stop the server; SIGQUIT leaves everything as a crash does."""
        self.process.send_signal(by)
        self.process.wait(LIMIT_S)

    def _popen(self, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
        command = [str(self._programs / program), *arguments]
        with (self._folder / "log").open("ab") as log:
            return subprocess.Popen(
                command,
                cwd=self._folder,
                stdout=log,
                stderr=log,
                user=self._user,
                group=self._user,
                extra_groups=None if self._user is None else [],
            )


@contextmanager
def postgres_server() -> Iterator[PostgresServer]:
    """Run a server in a folder of its own; the path of its socket must be short."""
    folder = Path(tempfile.mkdtemp(prefix="pegboard-pg-", dir="/tmp"))
    try:
        server = PostgresServer(folder)
        try:
            yield server
        finally:
            server.stop()
    finally:
        shutil.rmtree(folder)


def main() -> None:
    """Run a server until the input ends."""
    if reason := missing():
        sys.exit(reason)
    with postgres_server() as server:
        sys.stdout.write(f"{server.url()}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
