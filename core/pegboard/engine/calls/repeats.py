"""Repeated calls with equal results and no news in between: a model in a loop."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import msgspec

from pegboard.contract.results import ToolResult

_DIGEST_BYTES = 16


class _Latest(msgspec.Struct, frozen=True):
    """The last result of a call: its digest, how often in a row, and after which news."""

    answer: bytes
    times: int
    news: int


class Repeats:
    """The calls of a turn, by their results.

    Calls count as equal that have the same answer while the files are the same. News is an answer
    that a call has not had in this turn, and a state of the files that the turn has not had; with
    it the count begins anew. So neither are tests a circle that run behind each change, nor is a
    file that is read again after other work, whatever tool or subagent did it; but a change that
    is made and taken back in turns is one. Without snapshots the answers alone tell.
    """

    def __init__(self) -> None:
        self._news = 0
        self._tree = ""
        self._trees: set[str] = set()
        self._answers: set[tuple[bytes, bytes]] = set()
        self._latest: dict[tuple[bytes, str], _Latest] = {}

    def clear(self) -> None:
        """Forget everything: another turn begins."""
        self._trees.clear()
        self._answers.clear()
        self._latest.clear()

    def found(self, tree: str) -> None:
        """The files are in this state, by the id of their snapshot."""
        self._tree = tree
        if tree not in self._trees:
            self._trees.add(tree)
            self._news += 1

    def ended(self, call: bytes, answer: bytes) -> None:
        """A call has ended with this result."""
        if (call, answer) not in self._answers:
            self._answers.add((call, answer))
            self._news += 1
        before = self._latest.get((call, self._tree))
        same = before is not None and (before.answer, before.news) == (answer, self._news)
        times = before.times + 1 if before is not None and same else 1
        self._latest[call, self._tree] = _Latest(answer, times, self._news)

    def times(self, call: bytes) -> int:
        """How often in a row the call had the same result, without news in between."""
        latest = self._latest.get((call, self._tree))
        return latest.times if latest is not None and latest.news == self._news else 0


def digest_of_call(tool: str, args: Mapping[str, Any]) -> bytes:
    """The digest of a call, equal for equal arguments in any order."""
    return digest(tool, json.dumps(args, sort_keys=True))


def digest_of_result(result: ToolResult) -> bytes:
    """The digest of a result without the name of its output file, which is new each time."""
    path = str(result.metadata.get("outputPath") or "\0")
    files = (each.url for each in result.attachments)
    return digest(result.output.replace(path, ""), *files)


def digest(*texts: str) -> bytes:
    """The digest of texts."""
    sum_of = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for text in texts:
        sum_of.update(text.encode(errors="surrogatepass"))
        sum_of.update(b"\0")
    return sum_of.digest()
