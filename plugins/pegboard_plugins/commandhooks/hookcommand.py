"""A command of another agent's hook file, with its matchers for calls and events."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Literal

import msgspec

Product = Literal["claude", "codex", "gemini"]
ForeignFiles = tuple[tuple[Product, str], ...]
"""The names of hook files in a home or a project, each with its product."""
MATCH_WITHIN_S = 0.1
"""The time limit for one regular expression of a matcher."""
_EXACT: dict[Product, re.Pattern[str]] = {
    "claude": re.compile(r"[\w\-,| ]*"),
    "codex": re.compile(r"[\w|]*"),
    "gemini": re.compile(r"(?!)"),
}
"""The matchers that are lists of names; all others are regular expressions."""
_RULE = re.compile(r"\s*(?P<tool>[\w*-]+)\s*(?:\((?P<pattern>.*)\))?\s*", re.DOTALL)
_COMMANDS = re.compile(r"&&|\|\||[;|&\n(){}]")
_UNCLEAR = re.compile(r"[$`'\"\\<>]")
"""The characters with which a shell line cannot be split into its commands."""
_ASSIGNMENTS = re.compile(r"\s*(?:\w+=\S*\s+)*")


class CommandHook(msgspec.Struct, frozen=True, kw_only=True):
    """One command of a hook file for one event; `event` is Claude Code's name of the event.

    With `args` the command is a program; without them it is a line for `sh`. `is_project` means
    that the project has the file, so that the hook runs only by digest. `sequential` hooks run in
    order. The text of a hook with `wakes` is added to the next prompt. A hook with `once` runs once
    in a session. `root` and `storage` are the folders of the hook's bundle.
    """

    product: Product
    event: str
    name: str
    command: str
    file: Path
    matcher: str = ""
    args: tuple[str, ...] | None = None
    timeout_s: float = 600.0
    rule: str = ""
    is_async: bool = False
    blocks_on_failure: bool = False
    is_project: bool = False
    sequential: bool = False
    wakes: bool = False
    once: bool = False
    root: Path | None = None
    storage: Path | None = None

    @property
    def label(self) -> str:
        """The name of the hook in messages."""
        return f"{self.name} hook {self.origin}"

    @property
    def origin(self) -> str:
        """The hook's command and the file that defines it, as a text for messages."""
        return f"`{self.command}` of {self.file}"

    def fits(self, names: Sequence[str]) -> bool:
        """Return whether the hook's `matcher` matches one of the names.

        These are the called tool's names, or the source of an event, such as `startup`. An
        invalid regular expression matches everything, so that no guard is lost.
        """
        if self.matcher in {"", "*"}:
            return True
        if _EXACT[self.product].fullmatch(self.matcher):
            wanted = {each.strip() for each in re.split(r"[|,]", self.matcher)}
            return not wanted.isdisjoint(names)
        import regex  # type: ignore[import-untyped]  # 20 ms that only such matchers cost

        try:
            expression = regex.compile(self.matcher)
            return any(expression.search(each, timeout=MATCH_WITHIN_S) for each in names)
        except (regex.error, TimeoutError):
            return True

    def applies(self, names: Sequence[str], subject: str, root: Path) -> bool:
        """Return whether the `if` rule matches a call; `subject` is the call's command or path.

        A shell line that cannot be split into commands matches.
        """
        if not self.rule:
            return True
        parsed = _RULE.fullmatch(self.rule)
        if parsed is None:
            return True
        if not any(fnmatch(each, parsed["tool"]) for each in names):
            return False
        pattern = parsed["pattern"]
        if not pattern or pattern == "*":
            return True
        if "Bash" in names or "run_shell_command" in names:
            return bool(_UNCLEAR.search(subject)) or any(
                _fits_command(each, pattern) for each in _commands(subject)
            )
        return any(fnmatch(each, pattern.removeprefix("./")) for each in _paths(subject, root))


def _commands(line: str) -> Iterable[str]:
    for each in _COMMANDS.split(line):
        yield _ASSIGNMENTS.sub("", each, count=1).strip()


def _fits_command(command: str, pattern: str) -> bool:
    if pattern.endswith(":*"):
        start = pattern.removesuffix(":*")
        return command == start or command.startswith(f"{start} ")
    return fnmatch(command, pattern)


def _paths(subject: str, root: Path) -> Iterable[str]:
    yield subject
    path = Path(subject)
    if path.is_relative_to(root):
        yield str(path.relative_to(root))
