"""The walk through a judged shell line, which finds each command's folder and effects on files."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise

from pegboard_plugins.bash.feeding import fed_texts, feed, named_on_input
from pegboard_plugins.bash.findings import (
    ANYWHERE,
    DEEPEST_CALLS,
    MOST_CALLS,
    WalkState,
    within,
)
from pegboard_plugins.bash.hazards import endanger
from pegboard_plugins.bash.operands import apply, tell
from pegboard_plugins.bash.origins import lose
from pegboard_plugins.bash.programs import KINDS, destroys, kinds, option_values
from pegboard_plugins.bash.syntax import (
    ANYTHING,
    LISTED,
    CommandFeed,
    Operand,
    ShellCommand,
    Simple,
    Statement,
    StatementBlock,
    Word,
    is_any,
)

_FEEDERS = frozenset({"find", "xargs"})
_ARRAYS = ("mapfile", "readarray")
_SETTERS = {"set", "unset", *_ARRAYS, *(name for name in KINDS if "assigns" in KINDS[name])}
_SUCCEEDS = frozenset({"cd", "pushd", "popd", "mkdir", "echo", "export", "set", "true", ":"})
_EMPTIES = frozenset({">", ">|", "&>"})
_IN_THIS_SHELL = frozenset({"builtin", "command"})
_OF_FILES = re.compile(r"-[a-zA-Z]|-nt|-ot|-ef")


def walk(statement: Statement, findings: WalkState) -> None:
    """Record the effects of a statement on files, folders and variables."""
    if isinstance(statement, Simple):
        _simple(statement, findings)
    else:
        _STEPS[statement.kind](statement, findings)


def _apart(statement: Statement, findings: WalkState) -> None:
    """Walk a statement in a subshell; the folder and the variables are restored afterwards."""
    before = (findings.cwd, findings.strays, findings.strict, findings.home, findings.assigned)
    findings.strays = ()
    walk(statement, findings)
    findings.settle()
    findings.cwd, findings.strays, findings.strict, findings.home, findings.assigned = before


@contextmanager
def _branch(findings: WalkState) -> Iterator[None]:
    """Treat the statements that are walked in this context as statements that may be skipped."""
    assigned = findings.assigned
    findings.branches += 1
    yield
    findings.branches -= 1
    findings.assigned = assigned


def _list(block: StatementBlock, findings: WalkState) -> None:
    for part in block.parts:
        before = findings.assigned
        walk(part, findings)
        findings.settle()
        if isinstance(part, StatementBlock) and part.kind in (
            "and",
            "or",
        ):  # what follows may not have run
            findings.assigned = before | _sets(part)


def _sets(statement: Statement) -> set[str]:
    """Return the variables that the first command of a statement certainly sets."""
    while isinstance(statement, StatementBlock) and statement.kind in (
        "and",
        "or",
        "list",
        "group",
    ):
        statement = statement.parts[0]
    if isinstance(statement, StatementBlock) or statement.words:
        return set()
    given = statement.assignments
    return {name for name, how, _ in given if how[0] != "["}


def _group(block: StatementBlock, findings: WalkState) -> None:
    for part in block.parts:
        walk(part, findings)


def _and(block: StatementBlock, findings: WalkState) -> None:
    """Walk `a && b`: `b` starts where `a` ended, and may be skipped."""
    first, second = block.parts
    _first(first, findings)
    reached = findings.cwd
    strays, findings.strays = findings.strays, ()
    walk(second, findings)
    if findings.cwd != reached and not _succeeds(first):
        strays = (*strays, *reached)
    findings.strays += strays


def _succeeds(statement: Statement) -> bool:
    """Return whether a statement nearly always succeeds; a failing `cd` is handled elsewhere."""
    if isinstance(statement, StatementBlock):
        return statement.kind in ("and", "list", "group") and all(map(_succeeds, statement.parts))
    return statement.runs is None or statement.runs.base in _SUCCEEDS


def _or(block: StatementBlock, findings: WalkState) -> None:
    """Walk `a || b`: the next statement runs where `a` or `b` ended, or after `a` if `b` exits."""
    first, second = block.parts
    _first(first, findings)
    reached = findings.cwd
    findings.settle()
    with _branch(findings):
        walk(second, findings)
    if _ends(second):
        findings.cwd = reached


def _first(statement: Statement, findings: WalkState) -> None:
    strict, findings.strict = findings.strict, False  # a failure of it ends nothing
    walk(statement, findings)
    findings.strict |= strict


def _ends(statement: Statement) -> bool:
    """Return whether the statement ends with `exit`."""
    while isinstance(statement, StatementBlock) and statement.kind == "list":
        statement = statement.parts[-1]
    return isinstance(statement, Simple) and [w.literal for w in statement.words[:1]] == ["exit"]


def _pipe(block: StatementBlock, findings: WalkState) -> None:
    for part in block.parts:
        _apart(part, findings)


def _shell(block: StatementBlock, findings: WalkState) -> None:
    _apart(StatementBlock("list", block.parts), findings)


def _may_run(block: StatementBlock, findings: WalkState) -> None:
    with _branch(findings):
        _list(block, findings)


def _loop(block: StatementBlock, findings: WalkState) -> None:
    """Walk a loop; if the loop changes the folder, walk it again from the new folder."""
    before = findings.cwd
    _may_run(block, findings)
    if findings.cwd != before:
        _may_run(block, findings)


def _function(block: StatementBlock, findings: WalkState) -> None:
    findings.active.append(())
    _apart(StatementBlock("branch", block.parts), findings)
    findings.active.pop()
    findings.functions[block.name] = block


_STEPS: Mapping[str, Callable[[StatementBlock, WalkState], None]] = {
    "list": _list,
    "group": _group,
    "and": _and,
    "or": _or,
    "pipe": _pipe,
    "shell": _shell,
    "branch": _may_run,
    "loop": _loop,
    "function": _function,
}


def _simple(one: Simple, findings: WalkState) -> None:
    findings.values.be_in(findings.cwd)
    used = findings.values.used(one.expanded)
    findings.values.doubt(used - findings.assigned - {"PWD", "HOME"})
    for body in [piece.body for word in one.expanded for piece in word.pieces if piece.body]:
        for part in body:
            _apart(part, findings)
    findings.values.be_in(findings.cwd)
    for each in one.redirections:
        if each.sign not in ("<<", "<<<"):
            _redirect(each.word, findings, write="<" not in each.sign)
            if each.sign in _EMPTIES:
                _empty(each.word, findings)
        elif each.sign == "<<<" and one.runs is not None:
            tell(each.word, findings)
    if one.assignments:
        findings.assigned |= _sets(one)
    if one.kind == "test":
        files = [word for sign, word in pairwise(one.words) if _OF_FILES.fullmatch(sign.raw)]
        apply("[[", findings.operands(files), findings)
    fed, findings.fed = findings.fed, one.fed or findings.fed
    _save(one, findings)
    if one.runs is not None:
        _command(one.runs, findings)
        _save(one, findings)
    findings.fed = fed


def _redirect(word: Word, findings: WalkState, *, write: bool) -> None:
    for target in findings.operands([word]):
        if is_any(target.text):
            findings.doubt("dynamic-path", word)
        if write:
            findings.distrust(target)
        if target.text:
            findings.touch(within(target), write=write)
    findings.end()


def _save(one: Simple, findings: WalkState) -> None:
    """Record, for the files that a redirection writes, which commands print their content."""
    if findings.writing:
        feed = CommandFeed("pipe", None, (*(findings.fed.parts if findings.fed else ()), one))
        for path in findings.writing:
            findings.saved[path] = (*findings.saved.get(path, ()), feed)
        findings.writing.clear()


def _empty(word: Word, findings: WalkState) -> None:
    """Record the files that a redirection empties, if a wildcard or printed names select them."""
    for target in findings.operands([word]):
        if target.dynamic or (findings.placeholder and findings.placeholder in target.text):
            lose(target, findings)
        elif target.wild:
            findings.destroy(target)


def _command(command: ShellCommand, findings: WalkState) -> None:
    """Walk a command and the commands that this command starts."""
    words = command.words[1:]
    placeholder = findings.placeholder
    findings.placeholder = command.placeholder if command.is_fed else ""
    cwd, strays, fed = findings.cwd, findings.strays, findings.fed
    if command.folder is not None:
        _move([command.folder], findings)
        findings.strays = strays  # without the folder nothing is run
    base = command.base
    findings.note_listing(base, words)
    findings.places_of[command] = findings.cwd
    if base in _FEEDERS:
        feed(command, words, findings)
    endanger(base, words, findings)
    if base in _SETTERS or base == "shopt":
        _set(base, words, findings)
    _in_its_folder(command, words, findings)
    for inner in command.inner:
        _command(inner, findings)
    for code in command.code:
        _run(code, findings, stays=command.stays)
    if (command.inner and base not in _IN_THIS_SHELL) or command.folder is not None:
        findings.cwd, findings.strays = cwd, strays
    if base in findings.functions:
        _call(base, command.words, findings)
    elif "goes" in kinds(base) and not command.is_fed and (words or base != "pushd"):
        _move(words, findings)
    elif base in ("popd", "pushd"):
        findings.be_in(findings.values.been)
    findings.placeholder, findings.fed = placeholder, fed


def _run(code: Statement, findings: WalkState, *, stays: bool) -> None:
    """Walk code that a shell runs: in the current shell if it `stays`, else in a subshell."""
    if stays:
        walk(code, findings)
        return
    strict, findings.strict = findings.strict, False
    _apart(code, findings)
    findings.strict = strict


def _call(name: str, words: Sequence[Word], findings: WalkState) -> None:
    """Walk the body of a function that the line defines, with the state at the call."""
    call = tuple(word.shown for word in words)
    if call in findings.active:
        return  # one that calls itself does the same again
    findings.calls += 1
    if findings.calls > MOST_CALLS or len(findings.active) > DEEPEST_CALLS:
        findings.doubt("nested-too-deep", words[0])
        return
    findings.active.append(call)
    assigned = findings.assigned
    _list(findings.functions[name], findings)
    findings.assigned = assigned  # what is local to it has no value any more
    findings.active.pop()


def _set(base: str, words: Sequence[Word], findings: WalkState) -> None:
    """Apply a builtin such as `set` to the recorded variables and options of the shell."""
    if "assigns" in kinds(base) and (base != "local" or findings.active):
        pattern = r"[A-Za-z_]\w*" if base == "read" else r"[A-Za-z_]\w*(?=\+?=)"
        names = [found[0] for word in words if (found := re.match(pattern, word.shown))]
        findings.assigned |= set(names[:1] if base == "read" else names)
    if base == "shopt":
        findings.nullglob |= "nullglob" in [word.shown for word in words]
    if base == "unset":
        findings.assigned -= {word.shown for word in words}
    if base == "set" and words and not findings.branches:
        findings.strict = _exits_on_failure([w.shown for w in words], strict=findings.strict)


def _exits_on_failure(texts: Sequence[str], *, strict: bool) -> bool:
    """Return whether `errexit` is on after a `set` with these words; `strict` is the old state."""
    for before, text in zip(["", *texts], texts, strict=False):
        is_named = text == "errexit" and re.fullmatch(r"[-+]\w*o", before) is not None
        if is_named or re.fullmatch(r"[-+][A-Za-z]*e[A-Za-z]*", text):
            strict = (before if is_named else text).startswith("-")
    return strict


def _in_its_folder(command: ShellCommand, own: Sequence[Word], findings: WalkState) -> None:
    """Record a command's effects on files, in the folder that an option `-C` names, if any."""
    before, base = findings.cwd, command.base
    findings.filled = "" if destroys(base) else command.placeholder
    if command.inner and base != "find":
        own = own[: len(own) - max(len(inner.words) for inner in command.inner)]
    words = findings.operands(own)
    for folder in option_values(words, ("-C",)) if "in-folder" in kinds(base) else ():
        findings.touch(folder)
        findings.branches += 1
        _reach([folder], findings)
        findings.branches -= 1
    if command.is_fed and not command.inner and not fed_texts(findings):
        words.append(Operand(ANYTHING if findings.values.feeds_any(findings.fed) else LISTED))
    if base not in findings.functions:
        apply(base, words, findings)
    written = ((Operand(path, bare=False), True) for path in command.writes)
    for word, is_written in (*written, *named_on_input(base, words, findings)):
        findings.touch(word, write=is_written)
    findings.end()
    findings.cwd, findings.filled = before, ""


def _move(words: Sequence[Word], findings: WalkState) -> None:
    """Continue in the folders to which a `cd` with these words leads."""
    before, home = findings.cwd, Operand(findings.home)
    targets = [word for word in words if not re.match(r"-[LPe@n]|--$", word.shown)]
    named = findings.operands(targets[:1])
    _reach([home if findings.is_none(each) else each for each in named] or [home], findings)
    if targets[1:] or "-n" in [word.shown for word in words]:  # then it goes nowhere
        findings.be_in([*before, *findings.cwd])


def _reach(targets: Sequence[Operand], findings: WalkState) -> None:
    """Continue in one of the target folders; for an unknown target, also in an unknown folder."""
    if any(re.match(r"-$|[-+]\d", target.text) for target in targets):
        findings.be_in(findings.values.been)
        return
    known = [target for target in targets if not target.dynamic]
    folders = [path for target in known for path in findings.entered(target)]
    doubtful = next((target for target in targets if is_any(target.text)), None)
    if doubtful is not None:
        findings.doubt("dynamic-cwd", doubtful)
    if len(known) == len(targets):
        findings.move([*folders, *[ANYWHERE] * any(map(findings.is_lost, known))])
    elif doubtful or "$(" not in (targets[0].word.raw if targets[0].word else ""):
        findings.be_in([*findings.cwd, *folders, ANYWHERE])
