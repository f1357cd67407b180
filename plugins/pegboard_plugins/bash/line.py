"""The judgement of a shell line: which commands the line runs, and the values of variables."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pegboard_plugins.bash.environment import hijacks, settings
from pegboard_plugins.bash.programs import KINDS, RUNS, is_single, kinds, plain_form
from pegboard_plugins.bash.reader import read
from pegboard_plugins.bash.source import DEVICE, RESERVED, placed
from pegboard_plugins.bash.syntax import (
    ANYTHING,
    CommandFeed,
    Reading,
    ShellCommand,
    Simple,
    Statement,
    StatementBlock,
    Unclear,
    Word,
    has_caret_set,
    joined,
    lone,
    text_word,
)
from pegboard_plugins.bash.tables import pattern
from pegboard_plugins.bash.values import Value, Values

DEEPEST = 6
"""So many levels of wrappers, and of code in each other, are judged."""
_NAME = re.compile(r"[A-Za-z_]\w*")
_PROGRAM = re.compile(r"[\w./+-]+")
_IN_FOLDER = re.compile(r"(/[\w.+-]+)+")
_VERSION = re.compile(r"-?[\d.]+$")
_CODE = re.compile(r"[\s;|&<>(){}$`'\"\\]")
"""Not in a name that another program gets: the program may pass the name to a shell."""
_NETWORK = ("/dev/tcp/", "/dev/udp/")
_NO_PROGRAMS = RESERVED - {"time"}
_IN_THIS_SHELL = frozenset({"eval", "trap"})
_UNLIKE_SH = frozenset({"zsh", "fish", "rbash", "mksh"})
_BASH_ONLY, _PLAIN_CODE = pattern("shell", "bash-only"), pattern("shell", "plain-code")


@dataclass(slots=True)
class CommandCall:
    """A command that is being judged, with the place where the shell line starts it.

    `one` is the command in the syntax tree. `level` counts the commands that start it,
    `code_level` the nested code snippets around it.
    """

    line: "JudgedLine"
    command: ShellCommand
    one: Simple
    level: int
    code_level: int

    @property
    def program(self) -> str:
        """The name of the command's program without the folder."""
        return self.command.base

    @property
    def words(self) -> list[Word]:
        """The arguments of the command: the words after the program's name."""
        return self.command.words[1:]

    @property
    def gets_anything(self) -> bool:
        """Whether a caller passes words of unknown text to the command."""
        return self.command.is_fed and self.line.values.feeds_any(self.one.fed)

    def no(self, code: str, word: Word | None = None) -> Unclear:
        """Return an `Unclear` error about a word, or about the command as a whole."""
        words = self.command.words if word is None else [word]
        return Unclear(code, words[0].at, words[-1].end)

    def refuse(
        self, word: Word, code: str, refused: Callable[[str], object], *, whole: bool = False
    ) -> None:
        """Reject the line later, with all values known, if `refused` holds for a text of the word.

        The word is split before the check, unless it is taken as a `whole`.
        """

        def check() -> None:
            values = self.line.values
            if any(map(refused, values.texts(word) if whole else values.words([word]))):
                raise self.no(code, word)

        self.line.later.append(check)

    def refuse_words(self, word: Word, code: str) -> None:
        """Reject a word that the shell may split into several, once all values are known."""

        def check() -> None:
            values = self.line.values
            texts = () if is_single(word) else values.texts(word)
            if any(ANYTHING in text or len(values.split(text)) > 1 for text in texts):
                raise self.no(code, word)

        self.line.later.append(check)

    def start(
        self, words: Sequence[Word], *, placeholder: str = "", is_fed: bool = False
    ) -> ShellCommand:
        """Judge a command that the present command starts, and return the new command."""
        command = ShellCommand(
            list(words),
            "",
            placeholder=placeholder or self.command.placeholder,
            is_fed=is_fed or self.command.is_fed,
        )
        self.line.judge(CommandCall(self.line, command, self.one, self.level + 1, self.code_level))
        self.command.inner += (command,)
        return command

    def run(self, text: str, word: Word) -> None:
        """Judge code that the command passes to a shell; `word` is the code as written in the line.

        The code of `eval` and `trap` runs in the same shell, other code in `sh` or the shell named.
        """
        outer = self.line.shell
        if self.program not in _IN_THIS_SHELL:
            self.line.shell = self.program if "shell" in kinds(self.program) else "sh"
        with placed(word.at, word.end):
            self.command.code += (self.line.read(text, self.code_level + 1, self),)
        self.line.shell = outer


Rule = Callable[[CommandCall], None]


@dataclass(slots=True)
class JudgedLine:
    """The judgement of a shell line, as far as the line has been read.

    `values` are all values that the line assigns to variables. `snippets` are texts that
    interpreters run as code. `later` are the checks that need all values. `shell` is the shell
    that reads the current text. `settings` are the variables that may change a command, with the
    command's words.
    """

    rules: Mapping[str, Rule]
    default: Rule
    values: Values
    shell: str = "bash"
    commands: dict[tuple[str, ...], None] = field(default_factory=dict)
    judged: list[ShellCommand] = field(default_factory=list)
    simples: list[Simple] = field(default_factory=list)
    functions: set[str] = field(default_factory=set)
    sums: dict[str, int] = field(default_factory=dict)
    settings: dict[tuple[str, ...], None] = field(default_factory=dict)
    snippets: list[str] = field(default_factory=list)
    later: list[Callable[[], None]] = field(default_factory=list)
    has_arrays: bool = False
    first: tuple[str, Word] | None = None
    text: str = ""

    def read(self, text: str, level: int, around: CommandCall | None = None) -> StatementBlock:
        """Read and judge a text, which is the line itself or code in a command."""
        if level > DEEPEST:
            raise Unclear("nested-too-deep")
        if place := _read_otherwise(text, self.shell):
            raise Unclear("dialect", *place)
        reading = read(text, level)
        if self.shell != "bash" and any(map(has_caret_set, reading.simples)):
            raise Unclear("dialect", 0, len(text))
        self.functions |= reading.functions.keys()
        if around is not None:
            for each in reading.simples:
                each.fed = each.fed or around.one.fed
        _feed_functions(reading)
        self.sums |= dict.fromkeys(reading.sums, 0) if level else reading.sums
        if not level:
            self.text = text
            self.first = _first(reading.body, reading.simples)
        if any(name in self.rules or name in KINDS for name in reading.functions):
            raise Unclear("redefinition", 0, len(text))
        self.simples += reading.simples
        for each in reading.simples:
            self._simple(each, level, around)
        return reading.body

    def _simple(self, one: Simple, level: int, around: CommandCall | None) -> None:
        for each in one.redirections:
            if each.sign != "<<" and each.word.shown.startswith(_NETWORK):
                raise Unclear("network", each.word.at, each.word.end)
        for name, how, word in one.assignments:
            was_set = name in self.values.held
            self.assign(name, word, how)
            if one.words and not was_set:  # behind the command it is what it was before
                self.values.add(name, text_word(self.values.environment.get(name, ""), word))
        for word in one.expanded:
            for piece in word.pieces:
                if piece.kind == "variable" and piece.how.startswith(("=", ":=")):
                    text = piece.how.lstrip(":")[1:]
                    self.assign(piece.text, word if "$" in text else text_word(text, word))
        if one.kind or not one.words:
            self.commands |= dict.fromkeys(_builtin(one))
            return
        self.settings |= dict.fromkeys(settings(one)) if one.assignments else {}
        one.runs = ShellCommand(one.words, "")
        if around is not None:
            one.runs.placeholder = around.command.placeholder
            one.runs.is_fed = around.command.is_fed
        self.judge(CommandCall(self, one.runs, one, 0, level))

    def assign(self, name: str, value: Value, how: str = "=") -> None:
        """Add a value that a variable may have from now on.

        :raises Unclear: when the value can make a program run another one.
        """
        word = value if isinstance(value, Word) else None
        self.has_arrays |= how == "array"
        if hijacks(name, word, how) and not self._is_restored(name, word):
            start, end = (0, len(self.text)) if word is None else (word.at, word.end)
            raise Unclear("env-hijack", start, end)
        added = [value]
        if how.endswith("+=") and word is not None:
            held = self.values.held.get(name) or [None]
            added += [joined(each, word) for each in held if isinstance(each, Word)]
            added += [None] * (held == [None])
        for each in added:
            self.values.add(name, each, splits=how in ("for", "array"))

    def _is_restored(self, name: str, word: Word | None) -> bool:
        """Return whether `IFS` gets back the old value that the line has saved in a variable."""
        if name != "IFS" or word is None or len(word.pieces) != 1:
            return False
        held = self.values.given(word.pieces[0].text) or [None]
        return word.pieces[0].kind == "variable" and all(
            isinstance(each, Word) and [piece.text for piece in each.pieces] == [name]
            for each in held
        )

    def judge(self, call: CommandCall) -> None:
        """Judge a command and the commands that it starts.

        :raises Unclear: when it is unknown what the command runs.
        """
        command = call.command
        if call.level > DEEPEST:
            raise call.no("nested-too-deep")
        name = self._name(call)
        base = name.rpartition("/")[2]
        command.base = base if self._tells_of(base) else self._unversioned(base)
        is_program = command.base and not DEVICE.match(name)
        is_code = call.level > 0 and _CODE.search(name) is not None
        if not is_program or name.startswith("-") or name in _NO_PROGRAMS or is_code:
            raise call.no("dynamic-command", command.words[0])
        first, *shown = [word.shown for word in command.words]
        self.commands[first, *shown] = None
        if first != base:
            self.commands |= dict.fromkeys(((name, *shown), (base, *shown)))
        if plain := plain_form(command.base, shown):
            self.commands[plain] = None
        self.judged.append(command)
        self.rules.get(command.base, self.default)(call)

    def _tells_of(self, base: str) -> bool:
        """Return whether a table, a rule or a function of the line describes this program."""
        return base in KINDS or base in self.rules or base in RUNS or base in self.functions

    def _unversioned(self, base: str) -> str:
        """Return the program's name without a version if the tables know that name, else `base`."""
        plain = _VERSION.sub("", base)
        is_program = self._tells_of(plain) and kinds(plain).isdisjoint(("no-files", "goes"))
        return plain if is_program else base

    def _name(self, call: CommandCall) -> str:
        """Return the name of the program that a call starts, if the shell line determines it."""
        word = call.command.words[0]
        if word.literal is not None:
            return word.literal
        if found := _looked_up(word):
            behind = call.command.words[1:2]
            if word.is_quoted or all(each.shown.startswith("-") for each in behind):
                return found
        if found := self._set_first(word):
            return found
        first, *rest = word.pieces
        tail = "".join(piece.text for piece in rest if piece.kind == "text")
        is_plain = first.kind == "variable" and not first.how and _NAME.fullmatch(first.text)
        if (
            is_plain
            and len(tail) == len("".join(p.shown for p in rest))
            and _IN_FOLDER.fullmatch(tail)
        ):
            self._refuse_later(first.text, 0, word)
            return word.shown
        raise call.no("dynamic-command", word)

    def _refuse_later(self, name: str, most: int, word: Word) -> None:
        """Reject the line later if the variable that names a program has over `most` values."""

        def refuse() -> None:
            if len(self.values.held.get(name, ())) > most:
                raise Unclear("dynamic-command", word.at, word.end)

        self.later.append(refuse)

    def _set_first(self, word: Word) -> str:
        """Return the program in a variable that only the first statement of the line sets."""
        if self.first is None or len(word.pieces) != 1 or word.pieces[0].how:
            return ""
        name, value = self.first
        if word.pieces[0].text != name or not _PROGRAM.fullmatch(value.literal or ""):
            return ""
        self._refuse_later(name, 1, word)
        return value.literal or ""


def _read_otherwise(text: str, shell: str) -> tuple[int, int] | None:
    """Return the span of a text that the shell may read differently from bash."""
    if shell == "bash":
        return None
    if shell in _UNLIKE_SH:
        return None if _PLAIN_CODE.fullmatch(text) else (0, len(text))
    found = _BASH_ONLY.search(text)
    return None if found is None else found.span()


def _feed_functions(reading: Reading) -> None:
    """Pass the input of a function's call to the function's commands; unknown if calls differ."""
    for _ in reading.functions:
        for name, body in reading.functions.items():
            calls = (one for one in reading.simples if one.words and one.words[0].literal == name)
            feeds = [one.fed for one in calls if one.fed is not None]
            if feeds:
                feed = feeds[0] if len(set(map(id, feeds))) == 1 else CommandFeed("pipe")
                for each in body:
                    each.fed = each.fed or feed


def _builtin(one: Simple) -> Iterator[tuple[str, ...]]:
    """Yield the words of a statement that starts no program, such as `[[ -e FILE ]]`."""
    shown = " ".join(word.shown for word in one.words)
    if one.kind == "test":
        yield "[[", shown, "]]"
    elif one.kind == "sum":
        yield (f"(({shown}))",)
    elif not one.kind and one.assignments:
        yield tuple(f"{name}={word.shown}" for name, _, word in one.assignments)
    elif not one.kind and one.redirections:
        yield tuple(f"{sign} {word.shown}" for sign, _, word in one.redirections)


def _first(body: StatementBlock, simples: Sequence[Simple]) -> tuple[str, Word] | None:
    """Return the variable that the first statement sets, with its value; None if it sets none."""
    first: Statement = body
    while isinstance(first, StatementBlock) and first.kind in ("list", "and", "or") and first.parts:
        first = first.parts[0]
    if not isinstance(first, Simple) or first is not simples[0] or first.words:
        return None
    if len(first.assignments) != 1 or first.assignments[0].how != "=":
        return None
    name, _, word = first.assignments[0]
    return name, word


def _looked_up(word: Word) -> str:
    """Return the program that `$(which X)` and similar commands look up, or ""."""
    piece = word.pieces[0]
    one = lone(piece.body) if len(word.pieces) == 1 and piece.kind == "output" else None
    if one is None or one.redirections:
        return ""
    *asked, name = [each.literal or "" for each in one.words]
    is_asked = asked in (["which"], ["command", "-v"], ["type", "-P"], ["type", "-p"])
    return name if is_asked and re.fullmatch(r"[\w.+-]+", name) else ""
