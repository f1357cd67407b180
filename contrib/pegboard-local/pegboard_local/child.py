"""The program that runs a model: it reads requests on standard input and prints answers in chunks.

Pegboard starts this file by its path, and the file imports nothing of Pegboard. The program ends
when its input is closed, so it cannot outlive its parent process.
"""

import json
import os
import secrets
import sys
import threading
from collections.abc import Callable
from typing import Any, TextIO

BATCH_TOKENS = 256
"""The tokens of the prompt after which progress is reported, and a request can be withdrawn."""


def main() -> None:
    """Load the model named in the command line, then answer requests until standard input ends."""
    settings = json.loads(sys.argv[1])
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what the library prints is no answer
    requests = ChildRequests()
    threading.Thread(target=requests.listen, daemon=True).start()
    try:
        server = _load(settings)
    except RuntimeError as error:
        tell(out, {"failed": str(error)})
        return
    tell(out, {"ready": True})
    while True:
        body = requests.next()
        _answer(server, body, out, requests.is_taken_back)


class ChildRequests:
    """The requests from standard input, in order, and the cancellations of requests."""

    def __init__(self) -> None:
        self._some = threading.Condition()
        self._waiting: list[dict[str, Any]] = []
        self._taken_back = False

    def listen(self) -> None:
        """Read requests until standard input ends; then exit the process, even during an answer."""
        for line in sys.stdin:
            body = json.loads(line)
            with self._some:
                self._taken_back = body is None
                if body is not None:
                    self._waiting.append(body)
                    self._some.notify()
        os._exit(0)

    def next(self) -> dict[str, Any]:
        """Wait for the next request, and return the request."""
        with self._some:
            self._some.wait_for(lambda: self._waiting)
            return self._waiting.pop(0)

    def is_taken_back(self) -> bool:
        """Return whether the parent process has cancelled the current request."""
        return self._taken_back


def _load(settings: dict[str, Any]) -> Any:  # noqa: ANN401 - the library has no types
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = settings["path"]
    params.n_ctx = settings["context"]
    params.n_parallel = 1
    params.n_batch = BATCH_TOKENS
    params.n_ubatch = BATCH_TOKENS
    params.cpuparams.n_threads = settings["threads"]
    params.cpuparams_batch.n_threads = settings["threads"]
    params.n_gpu_layers = 0
    params.cache_ram_mib = 0  # the prefix of the last request is kept in any case
    params.fit_params = False
    params.warmup = False
    params.ui = False
    params.endpoint_slots = False
    params.verbosity = -1
    params.port = 0
    params.api_keys = [secrets.token_urlsafe()]  # its own server listens, and answers nobody
    return xllamacpp.Server(params)


def _answer(server: Any, body: dict[str, Any], out: TextIO, stop: Callable[[], bool]) -> None:  # noqa: ANN401 - likewise
    def heard(chunk: dict[str, Any]) -> bool:
        tell(out, {"chunk": chunk})
        return stop()

    try:
        server.handle_chat_completions(body, heard)
    except RuntimeError as error:
        tell(out, {"chunk": {"error": {"message": str(error)}}})
    tell(out, {"end": True})


def tell(out: TextIO, value: object) -> None:
    """Write a value as a JSON line; exit if the parent process has closed the pipe."""
    try:
        out.write(json.dumps(value) + "\n")
        out.flush()
    except BrokenPipeError:
        os._exit(0)


if __name__ == "__main__":
    main()
