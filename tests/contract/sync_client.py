"""The client without an event loop, made from the one with: the same code with other words.

Run as a program it writes `core/pegboard/client/sync/`.
"""

import re
import subprocess
import sys
from pathlib import Path

CLIENT = Path(__file__).parents[2] / "core" / "pegboard" / "client"
_WORDS = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\ba(close|read|iter_bytes)\b", r"\1"),
    (r"\banext\(", "next("),
    (r"\basyncio\.sleep\(", "sleep("),
    (r"^import asyncio\n", ""),
    (r"^from time import monotonic$", "from time import monotonic, sleep"),
    (r"`(async )with`", "`with`"),
    (r"\bclient\.aio\b", "client.sync"),
)
_PACKAGE = """\
\"\"\"The client without an event loop: written by tests/contract/sync_client.py, not by hand.\"\"\"
"""


def made() -> dict[str, str]:
    """The modules by name."""
    sources = sorted((CLIENT / "aio").glob("*.py"))
    return {path.name: _formatted(_without_loop(path)) for path in sources}


def stored() -> dict[str, str]:
    """The modules as they are in the repository."""
    return {path.name: path.read_text() for path in sorted((CLIENT / "sync").glob("*.py"))}


def _without_loop(path: Path) -> str:
    if path.name == "__init__.py":
        return _PACKAGE
    text = path.read_text()
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text


def _formatted(text: str) -> str:
    ruff = Path(sys.executable).with_name("ruff")
    at = ["--stdin-filename", str(CLIENT / "sync" / "module.py")]
    for words in (["check", "--quiet", "--select=I", "--fix"], ["format"]):
        text = subprocess.run(
            [ruff, *words, *at, "-"], input=text, capture_output=True, text=True, check=True
        ).stdout
    return text


if __name__ == "__main__":
    for name, text in made().items():
        (CLIENT / "sync" / name).write_text(text)
