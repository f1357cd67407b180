"""What a command line would run and touch, as far as its text says.

tree-sitter parses it, so that lists, pipelines, subshells, substitutions, here-documents and
redirections are all seen. What cannot be known from the text makes the line `unclear`: then no
rule about a part of it may allow the whole.
"""

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from pegboard_plugins.bash.words import Word, read_word
from pegboard_plugins.bash.wrappers import SHELLS, is_wrapper, unwrapped

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

LONGEST_COMMAND = 16 << 10
"""Letters: the parser takes quadratic time for some wrong lines, a second for so long a one."""
DEEPEST = 8
"""Levels of `sh -c '...'` that are followed."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]")
_DEVICES = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "random", "urandom", "full", "tty")
)
_STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/")
_SCOPES = frozenset({"subshell", "pipeline", "command_substitution", "process_substitution"})
_MOVERS = frozenset({"cd", "pushd"})
_WORDS_ONLY = frozenset({"echo", "printf", "true", "false", ":", "exit", "return", "kill", "sleep"})
_PATTERN_FIRST = frozenset({"grep", "egrep", "fgrep", "rg", "sed", "awk", "gawk", "jq"})
_STATEMENTS = frozenset({"declaration_command", "unset_command"})


@dataclass(frozen=True, slots=True)
class Scan:
    """The commands, as words joined by one blank; the paths that they name; what is unclear."""

    commands: tuple[tuple[str, ...], ...]
    paths: tuple[Path, ...]
    unclear: str = ""


@dataclass(slots=True)
class _State:
    home: str
    cwd: tuple[str, ...]
    commands: dict[tuple[str, ...], None] = field(default_factory=dict)
    paths: dict[str, None] = field(default_factory=dict)
    unclear: str = ""
    fed: bool = False
    """Whether what is visited reads from a pipe or from the line itself."""

    def doubt(self, reason: str) -> None:
        self.unclear = self.unclear or reason


def scan(command: str, *, cwd: Path, home: Path) -> Scan:
    """What the line would run and touch when it is started in `cwd`; nothing is executed."""
    state = _State(home=str(home), cwd=(str(cwd),))
    try:
        _scan_text(command, state, depth=0)
    except RecursionError:
        state.doubt("it is nested too deep")
    if not state.commands:
        state.doubt("it has no command that a rule could name")
    paths = tuple(Path(path) for path in state.paths)
    return Scan(commands=tuple(state.commands), paths=paths, unclear=state.unclear)


def _parser() -> "Parser":
    # 30 ms that a session without shell commands does not pay.
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    return Parser(Language(tree_sitter_bash.language()))


def _scan_text(text: str, state: _State, *, depth: int) -> None:
    if len(text) > LONGEST_COMMAND or depth > DEEPEST:
        state.doubt("it is too long or nested too deep to be judged")
        return
    if _CONTROL.search(text):
        state.doubt("it holds control characters or invisible letters")
    if "\\\n" in text:
        if "'" in text or "<<" in text:
            state.doubt("a line is continued where quotes may change what that means")
        text = text.replace("\\\n", "")
    root = _parser().parse(text.encode(errors="surrogateescape")).root_node
    if root.has_error:
        state.doubt("it cannot be parsed")
    _visit(root, state, depth=depth)


def _visit(node: "Node", state: _State, *, depth: int) -> None:
    match node.type:
        case "command":
            _visit_children(node, state, depth=depth)
            _command(node, state, depth=depth)
        case "list":
            _list(node, state, depth=depth)
        case "redirected_statement":
            fed, state.fed = state.fed, state.fed or _has_input(node)
            _visit_children(node, state, depth=depth)
            state.fed = fed
        case "file_redirect":
            _visit_children(node, state, depth=depth)
            _redirect(node, state)
        case "function_definition":
            state.doubt("it defines a function, which may stand for another command")
            _in_scope(node, state, depth=depth)
        case kind if kind in _SCOPES:
            _in_scope(node, state, depth=depth)
        case kind if kind in _STATEMENTS:
            _visit_children(node, state, depth=depth)
            argv = [read_word(child, state.home).text for child in node.children]
            state.commands[tuple(argv)] = None
        case _:
            _visit_children(node, state, depth=depth)


def _visit_children(node: "Node", state: _State, *, depth: int) -> None:
    # A redirection is opened before the command may have changed the directory.
    for child in sorted(node.children, key=lambda child: child.type != "file_redirect"):
        _visit(child, state, depth=depth)


def _in_scope(node: "Node", state: _State, *, depth: int) -> None:
    cwd, fed = state.cwd, state.fed
    for number, child in enumerate(node.children):
        if node.type == "pipeline":
            state.cwd, state.fed = cwd, fed or number > 0
        _visit(child, state, depth=depth)
    state.cwd, state.fed = cwd, fed


def _list(node: "Node", state: _State, *, depth: int) -> None:
    """`a && b` goes on where `a` left; after `a || b` it may be in either place."""
    before = state.cwd
    for child in node.children:
        if child.type == "||":
            after_first, state.cwd = state.cwd, before
            before = after_first
        _visit(child, state, depth=depth)
    if any(child.type == "||" for child in node.children):
        state.cwd = tuple(dict.fromkeys(before + state.cwd))


def _command(node: "Node", state: _State, *, depth: int) -> None:
    name = node.child_by_field_name("name")
    if name is None:
        return
    words = [read_word(name, state.home)]
    words += [read_word(child, state.home) for child in node.children_by_field_name("argument")]
    if any(child.type == "variable_assignment" for child in node.children):
        _assignments(node, state)
    if words[0].dynamic or not words[0].text:
        state.doubt("the name of a command is made at run time")
    _judge(words, state, depth=depth, piped=state.fed or _has_input(node))


def _has_input(node: "Node") -> bool:
    """Whether a here-document or here-string is among its parts."""
    return any(child.type.startswith("here") for child in node.children)


def _assignments(node: "Node", state: _State) -> None:
    for child in node.children:
        if child.type == "variable_assignment":
            name = (child.children[0].text or b"").decode(errors="replace")
            if _HIJACK.search(name):
                state.doubt(f"{name} can make a program run another one")


_HIJACK = re.compile(
    r"^(PATH|IFS|ENV|BASH_ENV|SHELLOPTS|BASHOPTS|PS4|PROMPT_COMMAND|PAGER|EDITOR|VISUAL|LESSOPEN"
    r"|NODE_OPTIONS|PERL5OPT|RUBYOPT|LD_.*|DYLD_.*|PYTHON.*|GIT_.*|.*_PAGER)$"
)


def _judge(words: Sequence[Word], state: _State, *, depth: int, piped: bool) -> None:
    """One command, and those that it would start in turn."""
    argv = tuple(word.text for word in words)
    state.commands[argv] = None
    base = argv[0].rpartition("/")[2]
    if base != argv[0]:
        state.commands[(base, *argv[1:])] = None
    if depth > DEEPEST:
        state.doubt("it is nested too deep to be judged")
        return
    _touch(base, words[1:], state)
    if base in _MOVERS:
        _move(words[1:], state)
    elif base in SHELLS or base == "eval":
        _shell(base, words[1:], state, depth=depth, piped=piped)
    elif base in ("alias", "source", ".", "hash", "enable"):
        state.doubt(f"{base} can change what a command means")
    elif is_wrapper(base):
        for inner in unwrapped(base, words[1:]):
            _judge(inner, state, depth=depth + 1, piped=piped)


def _shell(base: str, words: Sequence[Word], state: _State, *, depth: int, piped: bool) -> None:
    """`sh -c 'code'` and `eval code`: the code is judged like the line itself."""
    if base == "eval":
        code: Sequence[Word] = words
    else:
        flags = next((at for at, word in enumerate(words) if re.match(r"-\w*c", word.text)), None)
        if flags is None:
            if piped and all(word.text.startswith("-") for word in words):
                state.doubt(f"{base} runs what it reads")
            return
        code = words[flags + 1 : flags + 2]
    if any(word.dynamic for word in code):
        state.doubt("code is made at run time")
    cwd = state.cwd
    _scan_text(" ".join(word.text for word in code), state, depth=depth + 1)
    if base != "eval":
        state.cwd = cwd


def _move(words: Sequence[Word], state: _State) -> None:
    target = next((word for word in words if not re.match(r"-[LPe@]", word.text)), None)
    if target is not None and (target.dynamic or target.text == "-"):
        state.doubt("the directory is not known before it runs")
    elif target is None:
        state.cwd = (state.home,)
    else:
        state.cwd = tuple(path for path in _resolved(target, state))


def _touch(base: str, words: Sequence[Word], state: _State) -> None:
    """The operands and option values that may be paths."""
    if base in _WORDS_ONLY:
        return
    rest = list(words)
    if base in _PATTERN_FIRST and not any(re.match(r"-\w*[ef]|--(reg|file)", w.text) for w in rest):
        first = next((word for word in rest if not word.text.startswith("-")), None)
        rest = [word for word in rest if word is not first]
    for word in rest:
        text = word.text
        if text.startswith("-"):
            option, equals, value = text.partition("=")
            if not equals or not option.startswith("--"):
                continue
            text = value
        text = text.removeprefix("@")
        if not word.dynamic and text and "://" not in text and "\n" not in text:
            for path in _resolved(Word(text, bare=word.bare), state):
                state.paths[path] = None


def _redirect(node: "Node", state: _State) -> None:
    target = node.child_by_field_name("destination")
    if target is None or target.type == "process_substitution":
        return
    word = read_word(target, state.home)
    operator = next((child.type for child in node.children if not child.is_named), "")
    if operator in (">&", "<&") and re.fullmatch(r"\d+|-", word.text):
        return
    if word.dynamic:
        state.doubt("the file of a redirection is not known before it runs")
    else:
        state.paths.update(dict.fromkeys(_resolved(word, state)))


def _home_of(user: str) -> str:
    return os.path.expanduser(f"~{user}")  # noqa: PTH111 - an unknown user is no error in a shell


def _resolved(word: Word, state: _State) -> Iterator[str]:
    """The word as a path, from each directory that the line may be in; a glob's fixed part."""
    text = word.text
    if word.bare and text.startswith("~"):
        user, slash, rest = text[1:].partition("/")
        text = (_home_of(user) if user else state.home) + slash + rest
    if found := re.search(r"[*?\[]", text):
        text = (
            text[: found.start()].rpartition("/")[0] + "/" if "/" in text[: found.start()] else "."
        )
    for folder in state.cwd:
        path = os.path.join(folder, text)  # noqa: PTH118 - `..` must stay behind a symlink
        if path not in _DEVICES and not path.startswith(_STREAMS):
            yield path
