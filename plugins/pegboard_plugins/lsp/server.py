"""A running language server: its process, and its messages."""

import asyncio
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from lsprotocol import types

from pegboard import ToolError
from pegboard.processes import Enclosed
from pegboard_plugins.lsp.capabilities import offered
from pegboard_plugins.lsp.client import PATIENCE_S, REQUEST_S, STOP_S, LSPClient
from pegboard_plugins.lsp.columns import encoding_of, in_letters
from pegboard_plugins.lsp.known import Launch
from pegboard_plugins.lsp.serverprocess import kill_group, rss_bytes, running
from pegboard_plugins.lsp.sourcetree import Change, SourceTree
from pegboard_plugins.lsp.textdocuments import Document, TextDocuments
from pegboard_plugins.lsp.watchers import Watchers

SETTLED_S = 0.15
"""Diagnostics are taken when so long no others came: servers send them in several steps."""
MOST_CHANGES = 1_000
"""The most changed files at a time; beyond it the server is restarted instead."""
MOST_OTHERS = 5
"""In so many other files errors are shown after an edit (opencode `tool/write.ts`)."""
MOST_PULLED = 10
"""The most other files to ask about, with a server that reports nothing by itself."""
LIMIT_RSS_BYTES = 4 << 30
IDLE_S = 600.0
MOST_UNANSWERED = 3
"""The number of requests without a sign of life after which a server is restarted."""
WATCH_S = 5.0
_PATIENCE_S = 1.0
"""The least that a server which has spoken is waited for."""
_LEAST_PATIENCE_S = 0.3


class LanguageServer:
    """A running language server; `alive` until it ends, is closed, idles long or grows too big."""

    def __init__(
        self,
        launch: Launch,
        process: asyncio.subprocess.Process,
        around: AsyncExitStack,
        tree: SourceTree,
    ) -> None:
        assert process.stdout
        assert process.stdin
        self._launch = launch
        self._around = around
        self._process = process
        self._tree = tree
        self.client = LSPClient(process.stdout, process.stdin)
        self._documents = TextDocuments(self.client, launch.language.languages)
        self._watchers = Watchers(launch)
        self._refreshing = asyncio.Lock()
        self._outdated = False
        self._capabilities = types.ServerCapabilities()
        self._patience_s = PATIENCE_S
        self._used_at = self.started_at = time.monotonic()
        self._tasks = (
            asyncio.create_task(self.client.run()),
            asyncio.create_task(self._watch()),
        )

    @classmethod
    async def start(
        cls, launch: Launch, env: Mapping[str, str], enclosed: Enclosed
    ) -> "LanguageServer":
        """Start a server, and wait until the server is ready; `enclosed` runs it in the sandbox.

        :raises ToolError: when it cannot be run, or is not ready in 45 seconds.
        """
        language, env = launch.language, {**env, **(launch.language.env or {})}
        # Before the server reads any.
        tree = await asyncio.to_thread(SourceTree, launch.root, env.get("PATH", ""))
        around = AsyncExitStack()
        try:
            command = await around.enter_async_context(
                enclosed(language.command, cwd=launch.root, env=env)
            )
            process = await around.enter_async_context(running(command, launch.root, env))
        except BaseException as error:
            await around.aclose()
            if isinstance(error, OSError):
                raise ToolError(f"{language.name} cannot be started: {error}") from error
            raise
        server = cls(launch, process, around, tree)
        try:
            server._listen()
            await server._initialize()
        except BaseException:
            await server._kill()
            raise
        return server

    @property
    def alive(self) -> bool:
        """Whether the server can answer requests."""
        return self._process.returncode is None and not any(task.done() for task in self._tasks)

    @property
    def encoding(self) -> types.PositionEncodingKind:
        """The unit of the server's columns."""
        return encoding_of(self._capabilities)

    async def refresh(self, told: Iterable[Path]) -> bool:
        """Notify the server of created, changed and deleted files.

        Return False if there were too many changes, or packages were installed: the server must
        then be restarted. `told` are changed files, watched or not.
        """
        self._used_at = time.monotonic()
        async with self._refreshing:
            also = (*told, *self._documents.paths())
            changes = await asyncio.to_thread(self._wanted_changes, also)
            self._outdated |= len(changes) > MOST_CHANGES or self._tree.installed
            if self._outdated:
                return False
            if affects := any(map(self._watchers.knows, changes)):
                self._documents.doubt()
            if changes:
                events = [
                    types.FileEvent(Path(path).as_uri(), types.FileChangeType[change])
                    for path, change in changes.items()
                ]
                params = types.DidChangeWatchedFilesParams(events)
                self.client.workspace_did_change_watched_files(params)
            if await self._documents.refresh() and not affects:
                self._documents.doubt()
            return True

    async def open(self, path: Path) -> types.TextDocumentIdentifier:
        """Open the file in the server with the file's current content.

        :raises ToolError: when the file cannot be read, or is too long.
        """
        await self._documents.open(path)
        return types.TextDocumentIdentifier(path.as_uri())

    async def diagnostics(self, path: Path, *, patient: bool = False) -> Sequence[types.Diagnostic]:
        """Return the server's diagnostics of the current file, with positions in characters.

        The server has 15 seconds if `patient`, else 3, and less if it was slow before.

        :raises ToolError: when the file cannot be read, the server has ended, or it does not report
            on the file's content in time.
        """
        document = await self._documents.open(path)
        if self._capabilities.diagnostic_provider is None:
            if document.stale:
                self._documents.ask_anew(path, document)
            unknown = patient and document.found is None
            limit_s = REQUEST_S if unknown else self._patience_s
            await self._settled(lambda: document.found is not None, limit_s)
        else:
            await self._pull(path, document)
        if document.found is None:
            raise ToolError(f"the language server has not said yet what it finds in {path}")
        document.look()
        return self._in_letters(document, document.found)

    async def broken(self, but: Collection[Path]) -> dict[Path, list[types.Diagnostic]]:
        """Return new errors in at most five open documents whose paths are not in `but`."""
        documents = self._documents.latest()
        others = [(path, document) for path, document in documents if path not in but]
        if self._capabilities.diagnostic_provider is not None:
            seen = [(path, document) for path, document in others if document.known is not None]
            pulls = (self._pull(path, document) for path, document in seen[:MOST_PULLED])
            await asyncio.gather(*pulls, return_exceptions=True)
        elif others and len(others) == len(documents):  # nobody has waited for the server yet
            await self._settled(lambda: self._documents.heard, self._patience_s)
        found: dict[Path, list[types.Diagnostic]] = {}
        for path, document in others:
            if len(found) < MOST_OTHERS and (new := document.look()):
                found[path] = self._in_letters(document, new)
        return found

    async def aclose(self) -> None:
        """Ask the server to end; a second later, kill the server with its children."""
        with suppress(ToolError, TimeoutError):
            if self.alive:
                await self.client.shutdown_async(None)
                self.client.exit(None)
                await asyncio.wait_for(self._process.wait(), STOP_S)
        await self._kill()

    async def _kill(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)  # they end at once
        await self._around.aclose()

    def _listen(self) -> None:
        """Register how the server's requests are answered and its diagnostics are stored."""
        answers: Mapping[str, Callable[[Any], object]] = {
            # Not the method itself: pygls writes on what it is given.
            types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: partial(self._published),
            types.WORKSPACE_CONFIGURATION: lambda params: [None for _ in params.items],
            types.WORKSPACE_WORKSPACE_FOLDERS: lambda _: [_folder(self._launch.root)],
            types.CLIENT_REGISTER_CAPABILITY: partial(self._watchers.register),
            types.CLIENT_UNREGISTER_CAPABILITY: partial(self._watchers.unregister),
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
            capabilities=offered(),
        )
        self._capabilities = (await self.client.initialize_async(params)).capabilities
        self.client.initialized(types.InitializedParams())

    def _wanted_changes(self, also: Iterable[Path]) -> dict[str, Change]:
        changes = self._tree.changes(also)
        return {path: change for path, change in changes.items() if self._watchers.want(path)}

    def _in_letters(
        self, document: Document, found: Iterable[types.Diagnostic]
    ) -> list[types.Diagnostic]:
        lines = document.text.split("\n")
        return [in_letters(each, lines, self.encoding) for each in found]

    async def _pull(self, path: Path, document: Document) -> None:
        params = types.DocumentDiagnosticParams(types.TextDocumentIdentifier(path.as_uri()))
        report = await self.client.text_document_diagnostic_async(params)
        if isinstance(report, types.RelatedFullDocumentDiagnosticReport):
            document.found = report.items

    async def _settled(self, known: Callable[[], bool], limit_s: float) -> None:
        """Wait until `known` returns True, and then until no more diagnostics arrive.

        The next limit is three times the time that this took, within bounds. If `known` stayed
        False, it is half the last limit.
        """
        news = self._documents.news
        started = time.monotonic()
        heard = False
        try:
            async with asyncio.timeout(limit_s):
                while not known():
                    news.clear()
                    await news.wait()
                heard = True
                await _quiet(news)
        except TimeoutError:
            pass
        finally:
            took = time.monotonic() - started
            if heard:
                self._patience_s = min(max(3 * took, _PATIENCE_S), PATIENCE_S)
            elif took > self._patience_s / 2:
                self._patience_s = max(self._patience_s / 2, _LEAST_PATIENCE_S)

    def _published(self, params: types.PublishDiagnosticsParams) -> None:
        self._documents.published(Path(path_of(params.uri)), params)
        self._patience_s = max(self._patience_s, _PATIENCE_S)

    async def _watch(self) -> None:
        """Kill the server if it idles for long, grows too big, hangs, or breaks the protocol."""
        while self._process.returncode is None:
            await asyncio.sleep(WATCH_S)
            idle = time.monotonic() - self._used_at > IDLE_S
            hangs = self.client.protocol.unanswered >= MOST_UNANSWERED
            heard = not self._tasks[0].done()
            if idle or hangs or not heard or rss_bytes(self._process.pid) > LIMIT_RSS_BYTES:
                kill_group(self._process.pid)
                return


def path_of(uri: str) -> str:
    """Return the path of a `file:` URI; return any other URI unchanged."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri


async def _quiet(news: asyncio.Event) -> None:
    """Wait until `news` is not set for a short time, and then raise TimeoutError.

    :raises TimeoutError: always, when no further news comes.
    """
    while True:
        news.clear()
        async with asyncio.timeout(SETTLED_S):
            await news.wait()


def _folder(root: Path) -> types.WorkspaceFolder:
    return types.WorkspaceFolder(root.as_uri(), root.name)
