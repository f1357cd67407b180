"""The programs and files of a shell line, or the reason why they are unknown.

A line is clear if the parser reads all of it, the rules know each command, and each file with
moved content can be determined.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache, partial
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from pegboard.files import resolved_path
from pegboard.unstable import shell_fits, shell_unescape
from pegboard_plugins.bash import builtins, carrying, languages
from pegboard_plugins.bash.destroying import is_narrow
from pegboard_plugins.bash.dragnet import (
    code_destruction,
    destruction,
    is_deleter,
    line_destruction,
)
from pegboard_plugins.bash.environment import hijacks
from pegboard_plugins.bash.findings import ANY_NUMBER, PROCESS, FolderListing, Glob, Lost, WalkState
from pegboard_plugins.bash.hazards import tells_of_process
from pegboard_plugins.bash.line import CommandCall, JudgedLine, Rule
from pegboard_plugins.bash.programs import (
    CARRIER_NAMES,
    CODE_ON_STDIN,
    HARMLESS_CARRIERS,
    KINDS,
    RUNS,
    is_single,
    kinds,
)
from pegboard_plugins.bash.scripts import code_texts, refuse_computed, refuse_renamed
from pegboard_plugins.bash.source import LONGEST
from pegboard_plugins.bash.syntax import (
    ANYTHING,
    LISTED,
    Operand,
    Piece,
    StatementBlock,
    Unclear,
    Word,
)
from pegboard_plugins.bash.tables import words
from pegboard_plugins.bash.values import ARGUMENTS, NUMBERS, Values, counts, piped_text
from pegboard_plugins.bash.walking import walk

_RUNNING = frozenset({".git", ".pegboard", ".opencode"})
_ENDLESS = "what would be destroyed is not known"
_LISTED_ONES = "it would destroy those files of it that are listed, whichever they are"
_OWN = "pegboard"
_OWN_COPY = "under another name it could change what is allowed"
_IN_CODE = "in the code of an interpreter it would destroy what is vital"
_SHARP = {name for name, does in KINDS.items() if not does.isdisjoint(("shell", "sharp"))}
_FIND_ACTS = re.compile(r"-(delete|exec|ok)")
_NAME_FILES = words("variables", "writes", "names")
_WORST = ("ProxyCommand=x", "|x", "sh", "\\!x")
"""Values with which the options of one program or another run something."""


class Scan(NamedTuple):
    """The programs and files of a shell line; `unclear` is why they are unknown, or None.

    `commands` are the programs with their arguments, `paths` all files that the line names.
    `writes` are the paths that the line writes, `reads` those of them that another command reads.
    `destroys` are absolute paths or globs that would be lost with their content; "" is an unknown
    path. At `lands` a file, folder or link may be created. `linked` are files that get another
    name. `globs` are the paths with wildcards; `paths` has their folders.

    `hazards` are commands that destroy files which they do not name, each with the reason to ask.
    `overlays` are folders that would be overwritten completely, `renames` globs of files that get
    other names. `listings` are folder listings: the line writes their files if `writes_listed`, and
    shows them if `reads_listed`. `lost` are listed names that would be destroyed; the disk tells
    how much they are. `snippets` are texts that interpreters run as code. `settings` are variables
    that may change what a command does, each with the command's words.
    """

    commands: tuple[tuple[str, ...], ...] = ()
    paths: tuple[Path, ...] = ()
    unclear: Unclear | None = None
    writes: tuple[Path, ...] = ()
    destroys: tuple[str, ...] = ()
    lands: tuple[Path, ...] = ()
    linked: tuple[Path, ...] = ()
    globs: tuple[Glob, ...] = ()
    hazards: tuple[tuple[str, str], ...] = ()
    overlays: tuple[str, ...] = ()
    renames: tuple[str, ...] = ()
    reads: tuple[Path, ...] = ()
    snippets: tuple[str, ...] = ()
    settings: tuple[tuple[str, ...], ...] = ()
    listings: tuple[FolderListing, ...] = ()
    writes_listed: bool = False
    reads_listed: bool = False
    lost: tuple[Lost, ...] = ()
    place: "StartPlace | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StartPlace:
    """The folder and the shell in which a line would be started.

    `environment` is the environment of the shell. If `is_bash`, the shell reads the whole grammar.
    """

    cwd: Path
    home: Path
    worktree: Path | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    is_bash: bool = True


def scan(command: str, place: StartPlace) -> Scan:
    """Return the programs and files that a shell line would use; nothing is executed."""
    home = str(place.home)
    vital = (home, str(place.worktree or place.cwd), str(place.cwd))
    own = {"HOME": home, "PWD": str(place.cwd), "OLDPWD": "", "IFS": " "}
    findings = WalkState(
        home=home, cwd=(str(place.cwd),), values=Values({**place.environment, **own})
    )
    findings.values.be_in(findings.cwd)
    try:
        shell = "bash" if place.is_bash else "sh"
        line, body = judge_line(command, findings.values, shell=shell)
        found = _walked(line, body, findings, place.worktree)
        written = [*map(str, (*found.writes, *found.lands))]
        refuse_computed(line, written)
        refuse_renamed(line)
        snippets = (*line.snippets, *code_texts(line, written))
        found = found._replace(snippets=snippets)
        if any(map(tells_of_process, snippets)):
            found = found._replace(paths=(*found.paths, Path(PROCESS)))
        destroyed = next(filter(None, (code_destruction(each, vital) for each in snippets)), "")
        if destroyed:
            found = found._replace(hazards=(*found.hazards, (destroyed, _IN_CODE)))
        is_known = found.unclear is None and not _names_deleter(line)
        destroyed = "" if is_known else line_destruction(command, vital)
    except Unclear as error:
        found = Scan(unclear=error.with_traceback(None))
        destroyed = destruction(command[:LONGEST], vital)
        program = command[error.start : error.end].rpartition("/")[2]
        is_own = error.code == "dynamic-command" and shell_fits(program, _OWN)
        if is_own or (error.code == "renamed-program" and _OWN in command):
            found = found._replace(hazards=((_OWN, _OWN_COPY),))
    if destroyed:
        found = found._replace(hazards=(*found.hazards, (destroyed, _ENDLESS)))
    if found.listings:
        found = found._replace(place=place)
    if found.unclear is None or not tells_of_process(command[:LONGEST]):
        return found
    return found._replace(paths=(*found.paths, Path(PROCESS)))


def _walked(
    line: JudgedLine, body: StatementBlock, findings: WalkState, worktree: Path | None
) -> Scan:
    try:
        walk(body, findings)
    except RecursionError:
        raise Unclear("nested-too-deep") from None
    for name in _NAME_FILES & line.values.held.keys():
        for text in line.values.texts(Word((Piece("variable", name),)), number=ANY_NUMBER):
            findings.touch(Operand(text), write=True)
    if findings.writes_listed:
        findings.writes |= {f"{folder}/*": None for folder in findings.listed}
    lost = tuple(_sift_out(findings, worktree))
    if worktree is not None:
        _note_running(findings)
    writes = _paths(findings.writes)
    listings = tuple(findings.listings) if findings.writes_listed or findings.reads_listed else ()
    return Scan(
        commands=tuple(line.commands),
        paths=_paths(findings.paths),
        unclear=findings.unclear,
        writes=writes,
        reads=tuple({*writes}.intersection(_paths(findings.reads))) if writes else (),
        destroys=tuple(findings.destroys),
        lands=_paths(findings.lands),
        linked=_paths(findings.linked),
        globs=tuple(findings.globs),
        hazards=tuple(findings.hazards.items()),
        overlays=tuple(findings.overlays),
        renames=tuple(each for each in findings.renamed if isinstance(each, str)),
        settings=tuple(line.settings),
        listings=tuple(filter(_acts, findings.listings)) or listings,
        writes_listed=findings.writes_listed,
        reads_listed=findings.reads_listed,
        lost=lost,
    )


def _sift_out(findings: WalkState, worktree: Path | None) -> Iterator[Lost]:
    """Record what a line destroys by file names that a command prints; yield losses to look up.

    If the contents of files decide which names are lost, only vital folders are checked.
    """
    vital = (findings.home, *map(str, filter(None, [worktree])), *findings.values.been)
    for each in findings.lost:
        if each.is_part and each.listing is not None:
            place = f"{resolved_path(shell_unescape(each.place)).rstrip('/')}/"
            if any(f"{resolved_path(path)}/".startswith(place) for path in vital):
                findings.hazards[each.place] = _LISTED_ONES
        elif each.sieves or (each.listing is not None and _is_narrow(each.listing)):
            yield each
        else:
            findings.destroys[each.place] = None


def _is_narrow(listing: FolderListing) -> bool:
    """Return whether the words of a listing restrict the listing to some files of its folder."""
    return is_narrow(listing.texts) if listing.is_find else bool(listing.texts)


def _acts(listing: FolderListing) -> bool:
    """Return whether a listing is a `find` that deletes files or runs commands on files."""
    return listing.is_find and any(map(_FIND_ACTS.match, listing.texts))


def _names_deleter(line: JudgedLine) -> bool:
    """Return whether an argument in a shell line names a program that deletes, such as `rm`.

    The line may run this program under another name.
    """
    run = {command.words[0].shown for command in line.judged}
    return any(
        is_deleter(word.shown if command.base != "which" else f"/bin/{word.shown}")
        for command in line.judged
        for word in command.words[1:]
        if word.shown not in run
    )


def _paths(texts: Iterable[str]) -> tuple[Path, ...]:
    return tuple(map(_path, texts))


_path = lru_cache(maxsize=1024)(Path)
"""A line names the same file several times, and one line what another has named."""


def _note_running(findings: WalkState) -> None:
    """Record possible writes below folders such as `.git`, where files run by themselves."""
    folders: dict[str, str] = {}
    for path in findings.handed:
        folder, _, name = path.rpartition("/")
        if folder not in folders:
            folders[folder] = resolved_path(folder or "/")
        is_plain = name not in ("", ".", "..") and not os.path.islink(path)  # noqa: PTH114 - text
        real = f"{folders[folder]}/{name}" if is_plain else resolved_path(path)
        if not _RUNNING.isdisjoint(real.lower().split("/")):
            findings.writes[path] = None


def judge_line(
    text: str, values: Values, *, shell: str = "bash"
) -> tuple[JudgedLine, StatementBlock]:
    """Return the judgement of a shell line, and the statements of the line.

    :raises Unclear: when it is unknown what the line would run.
    """
    line = JudgedLine(RULES, program, values, shell)
    try:
        body = line.read(text, 0)
    except RecursionError:
        raise Unclear("nested-too-deep") from None
    checks, line.later = line.later, []  # which know the line: no circle is left behind
    values.doubt(values.held.keys() - {line.first[0] if line.first else ""})
    for check in checks:
        check()
    values.unsure.clear()
    values.known.clear()
    for name, at in line.sums.items():
        if name not in NUMBERS and hijacks(name, None):
            raise Unclear("env-hijack", at, at + len(name))
        is_argument = name.isdigit() and bool(line.functions)
        if is_argument or not counts(name, line.values):
            raise Unclear("calculation", at, at + len(name))
    values.counted |= line.sums.keys()
    values.known.clear()
    return line, body


def program(call: CommandCall) -> None:
    """Judge a program that has no rule; reject the call if a word may be a command to run."""
    base, words = call.program, call.words
    does = kinds(base)
    if base in call.line.functions:
        for word in words:
            call.line.values.add(ARGUMENTS, word, splits=True)
    runs, is_open = RUNS.get(base), "takes-texts" not in does
    if "coder" in does:
        carrying.coder(call)
        is_module = bool(words[1:]) and words[0].literal == "-m"
        runs, is_open = RUNS.get(words[1].shown) if is_module else None, False
    elif "carrier" in does or CARRIER_NAMES.fullmatch(base):
        shown = " ".join(word.literal or "$" for word in words)
        if not re.fullmatch(HARMLESS_CARRIERS.get(base, "(?!)"), shown):
            raise call.no("git-program" if base.startswith("git-") else "carrier")
    for word in words if is_open else ():
        if word.literal is not None and word.literal.rpartition("/")[2] in _SHARP:
            raise call.no("wrapper", word)
    if runs is not None or (is_open and any(word.literal is None for word in words)):
        call.line.later.append(partial(_refuse_runs, call, runs, is_open=is_open))
    if "obeys-input" in does:
        _refuse_input(call)


def _refuse_runs(call: CommandCall, runs: str | None, *, is_open: bool) -> None:
    """Reject an option that runs another program; if `is_open`, also the name of a shell."""
    does = kinds(call.program)
    takes_options = runs is not None and "operands-act" not in does
    for word, after in pairwise([*call.words, Word(())]):
        takes_options &= word.literal != "--"
        if runs is not None and word.pieces and word.pieces[0].kind == "process":
            raise call.no("option-runs", word)
        for text, *behind in _sequences(call, word, after):
            if is_open and text.rpartition("/")[2] in _SHARP:
                raise call.no("wrapper", word)
            is_option = runs is not None and any(
                _pattern(runs).match(form) for form in _option_forms(text, behind[:1])
            )
            if is_option or (takes_options and languages.is_open(word, text)):
                raise call.no("option-runs", word)
    if takes_options and call.gets_anything:
        raise call.no("option-runs")


def _sequences(call: CommandCall, word: Word, after: Word) -> Iterator[list[str]]:
    """Yield the possible texts of a word, each as a list that ends with the text of `after`."""
    if word.literal is not None and after.literal is not None:
        yield [word.literal, after.literal]
        return
    values = call.line.values
    for behind in values.words([after]) or [""]:
        for text in values.texts(word):
            texts = [text] if is_single(word) else values.split(text) or [""]
            yield from ([*texts[at:], behind] for at in range(len(texts)))


@cache
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.DOTALL | re.MULTILINE)


def _option_forms(text: str, behind: Sequence[str]) -> Iterator[str]:
    """Yield an option joined with the next word; unknown parts become the worst values."""
    form = "\n".join([text, *behind])
    yield form
    form = form.replace(LISTED, ANYTHING)
    yield from (form.replace(ANYTHING, worst) for worst in _WORST if ANYTHING in form)


def _refuse_input(call: CommandCall) -> None:
    """Reject standard input that the program would run as commands."""
    fed = call.one.fed
    texts = [word.literal for word in call.words]
    is_asked = call.program not in ("make", "gmake", "gcc", "cc", "g++", "clang") or "-" in texts
    if fed is None or not is_asked or fed.kind == "file":
        return
    word = piped_text(fed.parts) if fed.kind == "pipe" else fed.word
    if word is None or word.literal is None or CODE_ON_STDIN.search(word.literal):
        raise call.no("code-on-stdin")


RULES: Mapping[str, Rule] = {
    **carrying.RULES,
    **builtins.RULES,
    **languages.RULES,
}
