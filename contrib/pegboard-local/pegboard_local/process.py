"""The process of a model, which starts with the first request and ends with the App."""

import asyncio
import json
import os
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from pegboard.errors import ProviderError
from pegboard.plugins import shield

CHILD = Path(__file__).with_name("child.py")
LOAD_LIMIT_S = 120.0
"""Weights of some gigabytes come from a slow disk in this time."""
STOP_LIMIT_S = 10.0
"""How long a withdrawn answer may take to its next token, before the process is killed."""
END_LIMIT_S = 5.0
_LINE_BYTES = 1 << 24
_ERROR_BYTES = 2_000
_VARIABLES = ("PATH", "HOME", "TMPDIR", "LANG", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME")
"""All that the process gets of the environment: keys of providers are none of its business."""

Chunk = Mapping[str, Any]


class ModelProcess:
    """A model that runs in a separate process and answers one request at a time."""

    def __init__(self, path: Path, *, context: int, threads: int) -> None:
        self._settings = {"path": str(path), "context": context, "threads": threads}
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._errors: IO[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process, or None if it does not run."""
        return self._process.pid if self._process else None

    async def ask(self, body: Chunk, *, idle_timeout_s: float) -> AsyncGenerator[Chunk, None]:
        """Yield the chunks of the model's answer; closing the iterator cancels the request.

        :raises ProviderError: when the model cannot be loaded, or its process ends or is silent.
        """
        async with self._turn:
            process = await self._started()
            await self._send(process, body)
            ended = False
            try:
                while not ended:
                    line = await self._line(process, idle_timeout_s)
                    ended = "end" in line
                    if not ended:
                        yield line["chunk"]
            finally:
                if not ended:
                    await shield(self._take_back(process))

    async def aclose(self) -> None:
        """End the process, if the process runs."""
        if self._process is not None:
            await shield(self._end(self._process))

    async def _started(self) -> Process:
        if self._process is not None and self._process.returncode is None:
            return self._process
        if find_spec("xllamacpp") is None:
            raise _failure("llama.cpp is not installed: `pip install 'pegboard[local]'`")
        self._close_errors()
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self._process = process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-P", str(CHILD), json.dumps(self._settings)),
            stdin=PIPE,
            stdout=PIPE,
            stderr=self._errors,
            env={name: os.environ[name] for name in _VARIABLES if name in os.environ},
            limit=_LINE_BYTES,
            start_new_session=True,  # Ctrl-C is for us; it ends with its input
        )
        said: Chunk = {}
        try:
            said = await self._line(process, LOAD_LIMIT_S)
        finally:
            if "ready" not in said:
                await shield(self._end(process))
        if "ready" not in said:
            path = self._settings["path"]
            raise _failure(f"{path} cannot be loaded: {said['failed']} {self._last_words()}")
        return process

    async def _send(self, process: Process, value: Chunk | None) -> None:
        assert process.stdin is not None
        with suppress(ConnectionError):  # its end is seen where it is read
            process.stdin.write(json.dumps(value).encode() + b"\n")
            await process.stdin.drain()

    async def _line(self, process: Process, limit_s: float) -> Chunk:
        assert process.stdout is not None
        try:
            async with asyncio.timeout(limit_s):
                line = await process.stdout.readline()
        except TimeoutError:
            raise _failure(f"the model's process was silent for {limit_s:g} s") from None
        if not line:
            code = await process.wait()
            raise _failure(f"the model's process ended with {code}. {self._last_words()}")
        found: Chunk = json.loads(line)
        return found

    async def _take_back(self, process: Process) -> None:
        """Cancel the running answer, and read the output until the answer's end."""
        await self._send(process, None)
        try:
            async with asyncio.timeout(STOP_LIMIT_S):
                while "end" not in await self._line(process, STOP_LIMIT_S):
                    pass
        except (TimeoutError, ProviderError):
            await self._end(process)

    async def _end(self, process: Process) -> None:
        assert process.stdin is not None
        process.stdin.close()
        try:
            async with asyncio.timeout(END_LIMIT_S):
                await process.communicate()
        except TimeoutError:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
        self._process = None
        self._close_errors()

    def _last_words(self) -> str:
        if self._errors is None:
            return ""
        self._errors.seek(max(0, self._errors.seek(0, os.SEEK_END) - _ERROR_BYTES))
        return " ".join(self._errors.read().decode("utf-8", "replace").split())

    def _close_errors(self) -> None:
        if self._errors is not None:
            self._errors.close()
            self._errors = None


def _failure(text: str) -> ProviderError:
    return ProviderError(f"local: {text}".rstrip(), provider_id="local")
