"""What a command does with files, by what its program's operands and options are in the tables."""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from pegboard_plugins.bash.destroying import destroy
from pegboard_plugins.bash.findings import Findings, within
from pegboard_plugins.bash.hazards import tells_of_process
from pegboard_plugins.bash.languages import git_config
from pegboard_plugins.bash.listings import names_secret
from pegboard_plugins.bash.programs import git_words, kinds
from pegboard_plugins.bash.syntax import Operand
from pegboard_plugins.bash.tables import patterns, rows, words
from pegboard_plugins.bash.values import ANYTHING

_GIVEN, _WRITES, _SECOND = (
    {name: " ".join(values).split() for name, values in rows("programs", section).items()}
    for section in ("given", "writes", "second-written")
)
_EDITS = re.compile(r"-[a-zA-Z]*i|--i")
"""With these sed writes into its files."""
_GIT_PLACES = frozenset({"mv", "clone", "worktree", "submodule"})
_GIT_SHOWS = frozenset({"show", "diff", "grep", "cat-file", "blame", "add"})
_TARGETS = ("-t", "--target-directory")
_MESSAGES = frozenset({"-m", "--message", "-b", "--body", "-t", "--title", "-n", "--notes"})
_SAYING = words("git", "words", "saying")
_EXPRESSION = re.compile(r"-\w*[ef]|--(reg|file|expr).*")
_VALUE = re.compile(r"(--?[\w-]+=|\w+=@?|-[A-Za-z]|@)[$`]")
_VERSION = re.compile(r"[^$`]*:[$`]")
"""Behind a colon git takes the name of a file."""
_GLUED = re.compile(r"-(?:[KT]|[dF](?=@|\w+=@))(.+)", re.DOTALL)
_GLUED_VALUE = re.compile(r"-[A-Za-z]([^-].*)", re.DOTALL)
"""Options of curl with the name of a file behind them."""
_SENDS = patterns("programs", "sends")
_MOUNTED = re.compile(r"([/~.$][^:]*):/.*", re.DOTALL)
"""What `docker -v` takes from here, and where it puts it."""
_PS_SHOWS = re.compile(r"[A-Za-z]*[eE][A-Za-z]*|-[A-Za-z]*E[A-Za-z]*")
_PS_VALUED = re.compile(r"-\w*[CoOkpuUgGtsqN]|[a-zA-Z]*[oOkUpt]|--\w+")
"""With its letter `e`, without a sign before it, `ps` shows the environments; source: ps(1)."""
_LONGEST_CLUSTER = 64
_BEHIND = re.compile(r"([=@,:])([^=@,:]+)")
_SEVERAL = re.compile(r"[\s'\"(]")
_FILE = re.compile(r"[\w./~+-]*\.[\w./+-]+|[\w./~+-]*id_\w+|/proc/[\w/]+")
_LOCAL_URL = re.compile(r"^file://[^/]*/", re.IGNORECASE)
Kinds = frozenset[str]


def apply(base: str, words: Sequence[Operand], findings: Findings) -> None:
    """Add what the command would do with files; `words` are its arguments."""
    does = kinds(base)
    if base == "ps" and _shows_variables([word.text for word in words]):
        findings.tell_of_process()
    if "no-files" in does:
        return
    dynamic = any(word.dynamic for word in words)
    if dynamic:
        nothing = (Operand("."),) if base == "find" else ()  # where it starts then
        unset = not does.isdisjoint(("removes", "deletes"))
        words = _known(words, findings, nothing, unset=unset)
    operands = _candidates(base, does, words)
    if not operands:
        return
    writes = "writes" in does or (base == "sed" and any(_EDITS.match(w.text) for w in operands))
    _note_process(operands, findings, writes=writes)
    if dynamic:
        _doubt(base, words, operands, findings)
    for word in operands:
        _touch(word, findings, write=writes)
        if "moves" in does and "://" in word.text and base not in _SENDS:
            findings.touch(word, write=writes)  # for such a program it is a folder, no address
    _hand_over(base, does, operands, findings)
    _write(base, words, operands, findings)
    findings.end()
    destroy(base, words, operands, findings)


def _known(
    words: Sequence[Operand], findings: Findings, nothing: Sequence[Operand], *, unset: bool
) -> list[Operand]:
    """The words with the values of variables, as far as the line gives them.

    `nothing` stands for a word that may be none.
    """
    found: list[Operand] = []
    for word in words:
        values = findings.known(word, unset=unset) if word.dynamic else None
        if values is None:
            found.append(word)
        for value in values or ():
            found += [value] if value.text or not word.splits else nothing
    return found


def _shows_variables(texts: Sequence[str]) -> bool:
    """Whether the words of a `ps` make it show what processes were given."""
    return any(
        _PS_SHOWS.fullmatch(text) and not _PS_VALUED.fullmatch(before)
        for before, text in pairwise(["", *texts])
    )


def _note_process(operands: Sequence[Operand], findings: Findings, *, writes: bool) -> None:
    """What a process was given is read where the words name it, taken together."""
    if not any(word.dynamic or "proc" in word.text for word in operands):
        return
    texts: list[str] = []
    for word in operands:
        texts += findings.values.words([word.word]) if word.word and word.dynamic else [word.text]
    if "proc" not in "".join(texts):
        return
    is_seen = not writes and any(map(names_secret, texts))
    if not is_seen and tells_of_process(" ".join(texts)):
        findings.tell_of_process()


def _doubt(
    base: str, words: Sequence[Operand], operands: Sequence[Operand], findings: Findings
) -> None:
    """Doubt a command that moves the content of files of which nobody knows the names."""
    dynamic = [word for word in operands if word.dynamic]
    if dynamic and moves_content(base, [word.text for word in words]):
        value = _VERSION if base == "git" else _VALUE
        for word in dynamic:
            if (word.open or value.match(word.text)) and findings.is_unknown(word):
                findings.doubt("dynamic-args", word)


def moves_content(base: str, texts: Sequence[str]) -> bool:
    """Whether the command shows, sends, copies or overwrites what is in the files it is given."""
    if base in _SENDS:
        return any(re.match(_SENDS[base], text) for text in texts)
    if base == "git":
        return not _GIT_SHOWS.isdisjoint(git_words(texts)[:1])
    return "moves" in kinds(base)


def _candidates(base: str, does: Kinds, words: Sequence[Operand]) -> list[Operand]:
    """The words that may name files: not a pattern, not a message."""
    rest = _without_values(base, words)
    if "pattern-first" in does and not any(_EXPRESSION.match(word.text) for word in words):
        counts = r"-|\d+$" if base.endswith("grep") else r"-"  # as in `-A 5`
        first = next((word for word in rest if not re.match(counts, word.text)), None)
        rest = [word for word in rest if word is not first]
    if base == "curl":
        glued = [(word, _GLUED.fullmatch(word.text)) for word in rest]
        rest += [word._replace(text=found[1]) for word, found in glued if found]
    if base in ("docker", "podman"):
        rest = [after for before, after in _pairs(rest) if before not in ("-w", "--workdir")]
        found = [(word, _MOUNTED.fullmatch(word.text)) for word in rest]
        rest = [Operand(mount[1], bare=word.bare) if mount else word for word, mount in found]
    if "messages" in does and not _SAYING.isdisjoint(git_words([w.text for w in words])[:1]):
        options = _MESSAGES if base in ("gh", "glab") else ("-m", "--message")
        rest = [word for before, word in _pairs(rest) if before not in options or word.splits]
    return rest


def _pairs(words: Sequence[Operand]) -> Iterator[tuple[str, Operand]]:
    """Each word behind the text of the one before it."""
    before = ""
    for word in words:
        yield before, word
        before = word.text


def _without_values(base: str, words: Sequence[Operand]) -> list[Operand]:
    """The words without the variables that a program is given, with their values."""
    if base not in _GIVEN:
        return list(words)
    count, *options = _GIVEN[base]
    rest, skipped = [], 0
    for word in words:
        if skipped:
            skipped -= 1
        elif word.text in options:
            skipped = int(count)
        else:
            rest.append(word)
    return rest


def _touch(word: Operand, findings: Findings, *, write: bool) -> None:
    """What a word names, in whatever way; of one that is not known what it may be."""
    if not word.dynamic:
        for text in _named(word.text):
            findings.touch(word if text == word.text else Operand(text), write=write)
        return
    texts = findings.values.texts(word.word) if word.word is not None else ()
    pieces = (each.split() if word.splits else [each] for each in texts)
    for text in (text for piece in pieces for text in piece):
        folder, known, _ = text.partition(ANYTHING)
        plain = text.replace(ANYTHING, "")
        if names_secret(plain):
            findings.touch(Operand(plain, bare=word.bare), write=write)
        elif folder and (not known or "/" in folder):
            _touch(Operand(folder, bare=word.bare), findings, write=write)
        elif known and ".." in text.split("/"):
            findings.touch(within(Operand(text)), write=write)


def tell(word: Operand, findings: Findings) -> None:
    """A text that a command is given: what it names of secrets is read."""
    for text in findings.values.texts(word.word) if word.word is not None else (word.text,):
        for name in _secrets(text):
            findings.touch(Operand(name))


@lru_cache(maxsize=4096)
def _named(text: str) -> tuple[str, ...]:
    """The paths in a word: itself, what is glued to an option, what stands behind a sign."""
    return tuple(_paths(text))


def _paths(text: str) -> Iterator[str]:
    local = _LOCAL_URL.sub("/", text.removeprefix("@"))
    if not text.startswith("-"):
        if local and "://" not in local and "\n" not in local:
            yield local
    elif not text.startswith("--"):
        for at in range(len("-x"), min(len(text), _LONGEST_CLUSTER)):
            if text[at] in "/~" or text.startswith("../", at):
                yield text[at:]
                break
            if names_secret(text[at:]):
                yield text[at:]
    for sign, part in _BEHIND.findall(text) if "://" not in text else ():
        is_path = sign != ":" and part.startswith(("/", "~", "../"))
        if is_path or names_secret(part) or (sign == "=" and text.startswith("--")):
            yield part
    yield from _secrets(text)


def _secrets(text: str) -> Iterator[str]:
    """The files of secrets that are named in a text of several words, such as code."""
    if _SEVERAL.search(text):
        yield from (name for name in _FILE.findall(text) if names_secret(name))


def _hand_over(base: str, does: Kinds, operands: Sequence[Operand], findings: Findings) -> None:
    """What a program may write, make or give another name, that nothing else says of it."""
    if base == "git" or "reads" not in does:
        named = (each for word in operands for each in _with_value(word))
        for path in (path for word in named for path in findings.places(word)):
            if base != "git" or "/.git/" in f"{path}/".lower():
                findings.handed[path] = None
    if base == "git":
        _place_clone(operands, findings)
    if base == "mkdir":
        findings.made |= dict.fromkeys(path for word in operands for path in findings.places(word))
    if "places" in does:
        _place(operands, findings)
    if "links" in does:
        sources = (each for word in operands[:-1] for each in _known_texts(word, findings))
        findings.linked |= dict.fromkeys(p for word in sources for p in findings.places(word))


def _known_texts(word: Operand, findings: Findings) -> Iterator[Operand]:
    """The word, with what it may come to."""
    yield word
    if word.dynamic and word.word is not None:
        yield from map(Operand, findings.values.words([word.word]))


def _place_clone(operands: Sequence[Operand], findings: Findings) -> None:
    """Where git places what it is told to, a clone also under the name of its source."""
    named = [word for word in operands if not word.text.startswith("-")]
    if any(word.text in _GIT_PLACES for word in named[:2]):
        _place(named, findings)
        name = re.split(r"[/:]", named[-1].text.rstrip("/"))[-1].removesuffix(".git")
        findings.made |= dict.fromkeys(findings.places(Operand(name)))


def _with_value(word: Operand) -> tuple[Operand, ...]:
    """The word, or where it is an option the value in it; a name without a slash names no file."""
    option, equals, value = word.text.partition("=")
    if option == "--git-dir":
        return ()
    if equals:
        return (word, Operand(value))
    if not word.text.startswith("-"):
        return (word,)
    glued = _GLUED_VALUE.fullmatch(word.text)
    named = (word,) if "/" in word.text else ()
    return named if glued is None else (*named, Operand(glued[1], bare=False))


def _place(operands: Sequence[Operand], findings: Findings) -> None:
    """Where things come to be: at the last operand, or in it under their own names."""
    named = [word for word in operands if not word.text.startswith("-")]
    targets = (after for word, after in pairwise(operands) if _is_called(word.text, _TARGETS))
    target = next(targets, named[-1] if named else None)
    for word in operands:
        option, equals, value = word.text.partition("=")
        if equals and _is_called(option, _TARGETS):
            target = Operand(value, bare=word.bare)
    if target is None or target.dynamic:
        return
    for folder in findings.places(target):
        findings.lands[folder] = None
        for word in named:
            name = word.text.rstrip("/").rpartition("/")[2]
            findings.lands[f"{folder.rstrip('/')}/{name}"] = None


def _write(
    base: str, words: Sequence[Operand], operands: Sequence[Operand], findings: Findings
) -> None:
    """What a program writes that has a way of its own to name it."""
    if base == "git" and (file := git_config([word.text for word in words])):
        findings.touch(Operand(file), write=True)
        findings.doubt("git-option")
    if "last-written" in kinds(base):
        _touch(operands[-1], findings, write=True)
    for word in operands if base == "dd" else ():
        if word.text.startswith(("of=", "if=")):
            findings.touch(Operand(word.text[len("of=") :]), write=word.text.startswith("of="))
    if base in _SECOND:
        (valued,) = _SECOND[base]
        plain = [
            word
            for before, word in _pairs(operands)
            if not re.match(r"-.", word.text) and not re.fullmatch(rf"-\w*[{valued}]", before)
        ]
        for word in plain[1:2]:
            _touch(word, findings, write=True)
    if base in _WRITES:
        _write_by_option(base, operands, findings)


def _write_by_option(base: str, operands: Sequence[Operand], findings: Findings) -> None:
    subcommand = next((word.text for word in operands if not word.text.startswith("-")), "")
    names = _WRITES.get(f"{base}-{subcommand}") or _WRITES[base]
    letters = "".join(name[1] for name in names if len(name) == len("-o"))
    for before, word in _pairs(operands):
        option, equals, value = word.text.partition("=")
        if equals and _is_called(option, names):
            findings.touch(Operand(value), write=True)
        elif glued := re.fullmatch(rf"-[{letters}](.+)", word.text) if letters else None:
            findings.touch(Operand(glued[1], bare=False), write=True)
        bundled = letters and re.fullmatch(rf"-[A-Za-z]*[{letters}]", before)
        if (bundled or _is_called(before, names)) and word.text != "-":
            findings.touch(word, write=True)


def _is_called(option: str, names: Sequence[str]) -> bool:
    """Whether the option is one of these, or the beginning of a long one."""
    is_short_for = option.startswith("--") and len(option) > len("--")
    return any(name == option or (is_short_for and name.startswith(option)) for name in names)
