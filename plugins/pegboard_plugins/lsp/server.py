"""One running language server: its process, its open documents and what it finds in them."""

import asyncio
import os
import signal
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from lsprotocol import types

from pegboard import ToolError
from pegboard_plugins.lsp.client import PATIENCE_S, STOP_S, Client
from pegboard_plugins.lsp.known import Launch

SETTLED_S = 0.15
"""Diagnostics are taken when so long no others came: servers send them in several steps."""
MOST_DOCUMENTS = 50
LONGEST_BYTES = 2 << 20
LIMIT_RSS_BYTES = 4 << 30
IDLE_S = 600.0
MOST_UNANSWERED = 3
"""A server that gives no sign of life for so many requests is started anew."""
WATCH_S = 5.0
_LEAST_PATIENCE_S = 0.3


class Enclosed(Protocol):
    """What a tool context has by this name."""

    def __call__(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> AbstractAsyncContextManager[Sequence[str]]:
        """The command line to start, for as long as the process runs."""
        ...


@dataclass(slots=True)
class _Document:
    """A document that the server has open, and what it found in it."""

    text: str
    version: int = 1
    found: Sequence[types.Diagnostic] = ()
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
        self.client = Client(process.stdout, process.stdin)
        self._documents: OrderedDict[Path, _Document] = OrderedDict()
        self._capabilities = types.ServerCapabilities()
        self._patience_s = PATIENCE_S
        self._used_at = self.started_at = time.monotonic()
        self._tasks = (
            asyncio.create_task(self.client.run()),
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
            server._listen()
            await server._initialize()
        except BaseException:
            await server._kill()
            raise
        return server

    @property
    def alive(self) -> bool:
        """It can be asked."""
        return self._process.returncode is None and not any(task.done() for task in self._tasks)

    @property
    def counts_utf16(self) -> bool:
        """Its positions are in UTF-16 units, and not in code points."""
        return self._capabilities.position_encoding != types.PositionEncodingKind.Utf32

    async def open(self, path: Path) -> types.TextDocumentIdentifier:
        """The file, once the server knows the text that is on the disk.

        :raises ToolError: when it cannot be read, or is too long.
        """
        self._used_at = time.monotonic()
        text = await asyncio.to_thread(_text, path)
        document = self._documents.get(path)
        if document is None:
            self._documents[path] = _Document(text)
            kind = self._launch.language.languages.get(path.suffix.lower(), "")
            item = types.TextDocumentItem(path.as_uri(), kind, 1, text)
            self.client.text_document_did_open(types.DidOpenTextDocumentParams(item))
            self._close_the_oldest()
        elif document.text != text:
            self._change(path.as_uri(), document, text)
        self._documents.move_to_end(path)
        return types.TextDocumentIdentifier(path.as_uri())

    async def diagnostics(self, path: Path) -> Sequence[types.Diagnostic]:
        """What the server finds in the file as it is now, as far as it says so in 3 seconds.

        :raises ToolError: when the file cannot be read, or the server is gone.
        """
        identifier = await self.open(path)
        document = self._documents[path]
        if self._capabilities.diagnostic_provider is None:
            await self._settled(document)
            return document.found
        params = types.DocumentDiagnosticParams(identifier)
        report = await self.client.text_document_diagnostic_async(params)
        if isinstance(report, types.RelatedFullDocumentDiagnosticReport):
            document.found = report.items
        return document.found

    async def aclose(self) -> None:
        """End the server: asked first, killed a second later, with all that it started."""
        with suppress(ToolError, TimeoutError):
            if self.alive:
                await self.client.shutdown_async(None)
                self.client.exit(None)
                await asyncio.wait_for(self._process.wait(), STOP_S)
        await self._kill()

    async def _kill(self) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        for task in self._tasks:
            task.cancel()
        # Each ends at once: one is cancelled while it waits, the other was killed.
        await asyncio.gather(*self._tasks, self._process.wait(), return_exceptions=True)
        await self._around.aclose()

    def _listen(self) -> None:
        """Answer what the server asks and hear what it finds; pygls refuses anything else."""
        answers: Mapping[str, Callable[[Any], object]] = {
            # Not the method itself: pygls writes on what it is given.
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: partial(self._published),
            types.WORKSPACE_CONFIGURATION: lambda params: [None for _ in params.items],
            types.WORKSPACE_WORKSPACE_FOLDERS: lambda _: [_folder(self._launch.root)],
            types.CLIENT_REGISTER_CAPABILITY: lambda _: None,
            types.CLIENT_UNREGISTER_CAPABILITY: lambda _: None,
            types.WINDOW_WORK_DONE_PROGRESS_CREATE: lambda _: None,
        }
        for method, answer in answers.items():
            self.client.feature(method)(answer)

    async def _initialize(self) -> None:
        root = self._launch.root
        params = types.InitializeParams(
            process_id=None,  # the number would mean nothing in a sandbox; we end the server
            client_info=types.ClientInfo(self.client.name),
            root_uri=root.as_uri(),
            root_path=str(root),
            workspace_folders=[_folder(root)],
            initialization_options=self._launch.language.initialization,
            capabilities=_offered(),
        )
        self._capabilities = (await self.client.initialize_async(params)).capabilities
        self.client.initialized(types.InitializedParams())

    def _change(self, uri: str, document: _Document, text: str) -> None:
        document.text = text
        document.version += 1
        document.news = asyncio.Event()
        self.client.text_document_did_change(
            types.DidChangeTextDocumentParams(
                types.VersionedTextDocumentIdentifier(document.version, uri),
                [types.TextDocumentContentChangeWholeDocument(text)],
            )
        )
        self.client.text_document_did_save(
            types.DidSaveTextDocumentParams(types.TextDocumentIdentifier(uri))
        )
        change = types.FileEvent(uri, types.FileChangeType.Changed)
        self.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([change]))

    def _close_the_oldest(self) -> None:
        while len(self._documents) > MOST_DOCUMENTS:
            path, _ = self._documents.popitem(last=False)
            identifier = types.TextDocumentIdentifier(path.as_uri())
            self.client.text_document_did_close(types.DidCloseTextDocumentParams(identifier))

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

    def _published(self, params: types.PublishDiagnosticsParams) -> None:
        document = self._documents.get(Path(path_of(params.uri)))
        if document is None or (params.version or document.version) < document.version:
            return  # what is not open is not kept, and what is outdated is not true
        document.found = params.diagnostics
        document.news.set()

    async def _watch(self) -> None:
        """Nothing, when the server is idle for long, has grown too big, hangs, or has ended."""
        while self._process.returncode is None:
            await asyncio.sleep(WATCH_S)
            idle = time.monotonic() - self._used_at > IDLE_S
            hangs = self.client.protocol.unanswered >= MOST_UNANSWERED
            if idle or hangs or _rss_bytes(self._process.pid) > LIMIT_RSS_BYTES:
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                return


def path_of(uri: str) -> str:
    """The path of a `file:` URI; any other URI as it is."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


def _offered() -> types.ClientCapabilities:
    """What this client understands."""
    return types.ClientCapabilities(
        general=types.GeneralClientCapabilities(
            position_encodings=[
                types.PositionEncodingKind.Utf32,
                types.PositionEncodingKind.Utf16,
            ]
        ),
        window=types.WindowClientCapabilities(work_done_progress=True),
        workspace=types.WorkspaceClientCapabilities(
            configuration=True,
            workspace_folders=True,
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
                dynamic_registration=True
            ),
            symbol=types.WorkspaceSymbolClientCapabilities(),
        ),
        text_document=types.TextDocumentClientCapabilities(
            synchronization=types.TextDocumentSyncClientCapabilities(did_save=True),
            publish_diagnostics=types.PublishDiagnosticsClientCapabilities(version_support=True),
            diagnostic=types.DiagnosticClientCapabilities(),
            hover=types.HoverClientCapabilities(
                content_format=[types.MarkupKind.Markdown, types.MarkupKind.PlainText]
            ),
            definition=types.DefinitionClientCapabilities(link_support=True),
            implementation=types.ImplementationClientCapabilities(link_support=True),
            references=types.ReferenceClientCapabilities(),
            document_symbol=types.DocumentSymbolClientCapabilities(
                hierarchical_document_symbol_support=True
            ),
            call_hierarchy=types.CallHierarchyClientCapabilities(),
        ),
    )


async def _quiet(news: asyncio.Event) -> None:
    """Waits until nothing came for a while.

    :raises TimeoutError: then.
    """
    while True:
        news.clear()
        async with asyncio.timeout(SETTLED_S):
            await news.wait()


def _folder(root: Path) -> types.WorkspaceFolder:
    return types.WorkspaceFolder(root.as_uri(), root.name)


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
