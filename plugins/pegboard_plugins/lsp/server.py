"""One running language server: its process, its open documents and what it finds in them."""

import asyncio
import os
import signal
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from pegboard import ToolError
from pegboard_plugins.lsp.connection import Connection, ServerGoneError
from pegboard_plugins.lsp.known import Launch
from pegboard_plugins.lsp.messages import Diagnostic, Published, Report, path_of, uri_of

START_S = 45.0
REQUEST_S = 15.0
PATIENCE_S = 3.0
"""The longest that diagnostics are waited for; less for a server that is often silent."""
SETTLED_S = 0.15
"""Diagnostics are taken when so long no others came: servers send them in several steps."""
STOP_S = 1.0
MOST_DOCUMENTS = 50
LONGEST_BYTES = 2 << 20
LIMIT_RSS_BYTES = 4 << 30
IDLE_S = 600.0
WATCH_S = 5.0
_LEAST_PATIENCE_S = 0.3


class Enclosed(Protocol):
    """What a tool context has by this name."""

    def __call__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """The command line to start, for as long as the process runs."""
        ...


class _PullOptions(msgspec.Struct, frozen=True):
    """That the server answers requests for diagnostics."""


class _Capabilities(msgspec.Struct, frozen=True, rename="camel"):
    diagnostic_provider: _PullOptions | None = None
    position_encoding: str = "utf-16"


class _Initialized(msgspec.Struct, frozen=True):
    capabilities: _Capabilities = _Capabilities()


@dataclass(slots=True)
class _Document:
    """A document that the server has open, and what it found in it."""

    text: str
    version: int = 1
    found: tuple[Diagnostic, ...] = ()
    news: asyncio.Event = field(default_factory=asyncio.Event)


class Server:
    """A server that was started by `start`; `alive` until it ends, is closed, idle or too big."""

    def __init__(
        self, launch: Launch, process: asyncio.subprocess.Process, around: AsyncExitStack
    ) -> None:
        assert process.stdout
        assert process.stdin
        self._launch = launch
        self._around = around
        self._process = process
        self._connection = Connection(
            process.stdout,
            process.stdin,
            notified=self._notified,
            answers={
                "workspace/configuration": _nothings,
                "workspace/workspaceFolders": lambda _: [_folder(launch.root)],
                "client/registerCapability": lambda _: None,
                "client/unregisterCapability": lambda _: None,
                "window/workDoneProgress/create": lambda _: None,
            },
        )
        self._documents: OrderedDict[str, _Document] = OrderedDict()
        self._capabilities = _Capabilities()
        self._patience_s = PATIENCE_S
        self._used_at = self.started_at = time.monotonic()
        self._tasks = (
            asyncio.create_task(self._connection.run()),
            asyncio.create_task(self._watch()),
        )

    @classmethod
    async def start(cls, launch: Launch, env: Mapping[str, str], enclosed: Enclosed) -> "Server":
        """A server that is ready; it runs where `enclosed`, a tool context's, puts it.

        :raises ToolError: when it cannot be run, or is not ready in 45 seconds.
        """
        language, env = launch.language, {**env, **(launch.language.env or {})}
        around = AsyncExitStack()
        try:
            command = await around.enter_async_context(
                enclosed(language.command, cwd=launch.root, env=env)
            )
            process = await asyncio.create_subprocess_exec(
                *command,
                cwd=launch.root,
                env=env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        except BaseException as error:
            await around.aclose()
            if isinstance(error, OSError):
                raise ToolError(f"{language.name} cannot be started: {error}") from error
            raise
        server = cls(launch, process, around)
        try:
            await server._initialize()
        except BaseException:
            await server.aclose()
            raise
        return server

    @property
    def alive(self) -> bool:
        """It can be asked."""
        return self._process.returncode is None and not any(task.done() for task in self._tasks)

    @property
    def counts_utf16(self) -> bool:
        """Its positions are in UTF-16 units, and not in code points."""
        return self._capabilities.position_encoding != "utf-32"

    async def request(self, method: str, params: object) -> msgspec.Raw:
        """The result of a request as JSON.

        :raises ToolError: when there is none within 15 seconds, or the server is gone.
        """
        self._used_at = time.monotonic()
        return await self._connection.request(method, params, timeout_s=REQUEST_S)

    async def open(self, path: Path) -> str:
        """The file's URI, once the server knows the text that is on the disk.

        :raises ToolError: when it cannot be read, or is too long.
        """
        self._used_at = time.monotonic()
        text = await asyncio.to_thread(_text, path)
        uri = uri_of(path)
        document = self._documents.get(uri)
        if document is None:
            self._documents[uri] = _Document(text)
            kind = self._launch.language.languages.get(path.suffix.lower(), "")
            item = {"uri": uri, "languageId": kind, "version": 1, "text": text}
            self._connection.notify("textDocument/didOpen", {"textDocument": item})
            self._close_the_oldest()
        elif document.text != text:
            self._change(uri, document, text)
        self._documents.move_to_end(uri)
        return uri

    async def diagnostics(self, path: Path) -> tuple[Diagnostic, ...]:
        """What the server finds in the file as it is now, as far as it says so in 3 seconds.

        :raises ToolError: when the file cannot be read, or the server is gone.
        """
        uri = await self.open(path)
        document = self._documents[uri]
        if self._capabilities.diagnostic_provider is not None:
            params = {"textDocument": {"uri": uri}}
            raw = await self._connection.request(
                "textDocument/diagnostic", params, timeout_s=PATIENCE_S
            )
            report = msgspec.json.decode(raw, type=Report)
            if report.kind == "full":
                document.found = report.items
            return document.found
        await self._settled(document)
        return document.found

    async def aclose(self) -> None:
        """End the server: asked first, killed a second later, with all that it started."""
        with suppress(ToolError, TimeoutError):
            if self.alive:
                await self._connection.request("shutdown", None, timeout_s=STOP_S)
                self._connection.notify("exit", None)
                await asyncio.wait_for(self._process.wait(), STOP_S)
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for task in self._tasks:
            task.cancel()
        # Each ends at once: one is cancelled while it waits, the other was killed.
        await asyncio.gather(*self._tasks, self._process.wait(), return_exceptions=True)
        await self._around.aclose()

    async def _initialize(self) -> None:
        root = self._launch.root
        params = {
            "processId": None,  # the number would mean nothing in a sandbox; we end the server
            "clientInfo": {"name": "pegboard"},
            "rootUri": uri_of(root),
            "rootPath": str(root),
            "workspaceFolders": [_folder(root)],
            "initializationOptions": self._launch.language.initialization,
            "capabilities": _CLIENT,
        }
        raw = await self._connection.request("initialize", params, timeout_s=START_S)
        try:
            self._capabilities = msgspec.json.decode(raw, type=_Initialized).capabilities
        except msgspec.ValidationError as error:
            raise ServerGoneError(
                f"the language server introduced itself badly: {error}"
            ) from error
        self._connection.notify("initialized", {})

    def _change(self, uri: str, document: _Document, text: str) -> None:
        document.text = text
        document.version += 1
        document.news = asyncio.Event()
        self._connection.notify(
            "textDocument/didChange",
            {
                "textDocument": {"uri": uri, "version": document.version},
                "contentChanges": [{"text": text}],
            },
        )
        self._connection.notify("textDocument/didSave", {"textDocument": {"uri": uri}})
        self._connection.notify(
            "workspace/didChangeWatchedFiles", {"changes": [{"uri": uri, "type": 2}]}
        )

    def _close_the_oldest(self) -> None:
        while len(self._documents) > MOST_DOCUMENTS:
            uri, _ = self._documents.popitem(last=False)
            self._connection.notify("textDocument/didClose", {"textDocument": {"uri": uri}})

    async def _settled(self, document: _Document) -> None:
        """Waits for diagnostics of the document's newest text, as long as they are likely."""
        started = time.monotonic()
        heard = False
        try:
            async with asyncio.timeout(self._patience_s):
                await document.news.wait()
                heard = True
                await _quiet(document.news)
        except TimeoutError:
            pass
        finally:
            took = time.monotonic() - started
            wanted = 3 * took if heard else self._patience_s / 2
            self._patience_s = min(max(wanted, _LEAST_PATIENCE_S), PATIENCE_S)
            document.news.set()  # what is known is known, until the text changes

    def _notified(self, method: str, params: msgspec.Raw) -> None:
        if method != "textDocument/publishDiagnostics":
            return
        try:
            published = msgspec.json.decode(params, type=Published)
        except msgspec.ValidationError:
            return
        document = self._documents.get(uri_of(Path(path_of(published.uri))))
        if document is None or (published.version or document.version) < document.version:
            return  # what is not open is not kept, and what is outdated is not true
        document.found = published.diagnostics
        document.news.set()

    async def _watch(self) -> None:
        """Nothing, when the server has been idle for long, has grown too big, or has ended."""
        while self._process.returncode is None:
            await asyncio.sleep(WATCH_S)
            idle = time.monotonic() - self._used_at > IDLE_S
            if idle or _rss_bytes(self._process.pid) > LIMIT_RSS_BYTES:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                return


_CLIENT: Mapping[str, object] = {
    "general": {"positionEncodings": ["utf-32", "utf-16"]},
    "window": {"workDoneProgress": True},
    "workspace": {
        "configuration": True,
        "workspaceFolders": True,
        "didChangeWatchedFiles": {"dynamicRegistration": True},
        "symbol": {},
    },
    "textDocument": {
        "synchronization": {"didSave": True},
        "publishDiagnostics": {"versionSupport": True},
        "diagnostic": {},
        "hover": {"contentFormat": ["markdown", "plaintext"]},
        "definition": {"linkSupport": True},
        "implementation": {"linkSupport": True},
        "references": {},
        "documentSymbol": {"hierarchicalDocumentSymbolSupport": True},
        "callHierarchy": {},
    },
}


async def _quiet(news: asyncio.Event) -> None:
    """Waits until nothing came for a while.

    :raises TimeoutError: then.
    """
    while True:
        news.clear()
        async with asyncio.timeout(SETTLED_S):
            await news.wait()


def _folder(root: Path) -> dict[str, str]:
    return {"uri": uri_of(root), "name": root.name}


class _Items(msgspec.Struct, frozen=True):
    items: list[msgspec.Raw] = []


def _nothings(params: msgspec.Raw) -> list[None]:
    """No setting for each that the server asks for."""
    return [None] * len(msgspec.json.decode(params, type=_Items).items)


def _text(path: Path) -> str:
    try:
        if path.stat().st_size > LONGEST_BYTES:
            raise ToolError(f"{path} is too long for a language server")
        return path.read_bytes().decode(errors="replace")
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror}") from error


def _rss_bytes(pid: int) -> int:
    """The memory of a process and its children; 0 where the system does not say."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_bytes().split()[1])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") + sum(_rss_bytes(int(child)) for child in children)
