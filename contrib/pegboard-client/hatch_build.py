"""The build hook that generates the client's synchronous modules from the asynchronous modules."""

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

_WORDS = (
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
    (r"\bAsync(?=[A-Z])", ""),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\ba(close|read|iter_bytes)\b", r"\1"),
    (r"\banext\(", "next("),
    (r"\basyncio\.sleep\(", "sleep("),
    (r"\basyncio\.to_thread\((\w+), ", r"\1("),
    (r"^import asyncio\n", ""),
    (r"^from time import monotonic$", "from time import monotonic, sleep"),
    (r"`(async )with`", "`with`"),
    (r"\bpegboard_client\.aio\b", "pegboard_client.sync"),
)
_PACKAGE = '"""The client without an event loop: made by the build, from `aio`."""\n'


class MakesSync(BuildHookInterface[Any]):
    """A hook that writes `pegboard_client/sync/` before a wheel or an editable install is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """Write the synchronous modules, but do not touch files that are up to date."""
        package = Path(self.root) / "pegboard_client"
        folder = package / "sync"
        folder.mkdir(exist_ok=True)
        for name, text in made(package / "aio").items():
            file = folder / name
            if not file.is_file() or file.read_text() != text:
                file.write_text(text)


def made(sources: Path) -> dict[str, str]:
    """Return the source text of each synchronous module, from the modules in `sources`."""
    return {path.name: _without_loop(path) for path in sorted(sources.glob("*.py"))}


def _without_loop(path: Path) -> str:
    if path.name == "__init__.py":
        return _PACKAGE
    text = path.read_text()
    for pattern, word in _WORDS:
        text = re.sub(pattern, word, text, flags=re.MULTILINE)
    return text
