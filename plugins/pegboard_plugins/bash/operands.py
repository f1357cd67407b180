"""The effects of a command on files, by tables of the operands and options of programs."""

import os
import re
from collections.abc import Container, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from pegboard.unstable import shell_escape
from pegboard_plugins.bash.changing import as_operand, changed, checked_out
from pegboard_plugins.bash.destroying import destroy
from pegboard_plugins.bash.findexpression import acted_on
from pegboard_plugins.bash.findings import (
    ANYWHERE,
    FolderListing,
    WalkState,
    before_glob,
    within,
)
from pegboard_plugins.bash.hazards import tells_of_process
from pegboard_plugins.bash.languages import git_config
from pegboard_plugins.bash.listings import names_secret
from pegboard_plugins.bash.placing import hand_over, makes_links, note_links
from pegboard_plugins.bash.programs import (
    KINDS,
    git_words,
    kinds,
    option_values,
)
from pegboard_plugins.bash.reach import Reach, reach
from pegboard_plugins.bash.syntax import ANYTHING, Operand, Word, is_any
from pegboard_plugins.bash.tables import patterns, rows, words

_GIVEN, _WRITES = (
    {name: " ".join(values).split() for name, values in rows("programs", section).items()}
    for section in ("given", "writes")
)
_CHOOSES = frozenset({"pattern-first", "messages"})
_PROCESSES = re.compile(
    r"/+proc(/+([0-9$*?\[]|self|thread-self)[^/]*)?(/+task(/+[^/]*)?)?/*", re.DOTALL
)
_LISTS = frozenset({"lists", "finds", "searches"})
_GIT_LISTS = frozenset(
    {"diff", "diff-tree", "grep", "log", "ls-files", "ls-tree", "show", "status"}
)
_SHOW_HIDDEN = frozenset({"git", "grep", "egrep", "fgrep"})
_CHOOSING = ("-g", "--glob", "--iglob", "--include")
_CHOOSES_NAMES = re.compile(r"--(?:include|glob)=(.*)", re.DOTALL)
_EDITS = re.compile(r"-[a-zA-Z]*i|--i")
"""With these sed writes into its files."""
_TO_STDOUT = re.compile(r"-[a-zA-Z]*[ctl][a-zA-Z]*|--(stdout|to-stdout|list|test)")
_GIT_SHOWS = frozenset({"show", "diff", "grep", "cat-file", "blame", "add"})
_SAYING = words("git", "words", "saying")
_EXPRESSION = re.compile(r"-\w*[ef]|--(reg|file|expr).*")
_VALUE = re.compile(rf"(--?[\w-]+=|\w+=@?|-[A-Za-z]|@){ANYTHING}")
_VERSION = re.compile(rf"[^{ANYTHING}]*:{ANYTHING}")
"""Behind a colon git takes the name of a file."""
_SENDS = patterns("programs", "sends")
_MOUNTED = re.compile(r"([/~.$][^:]*):/.*", re.DOTALL)
"""What `docker -v` takes from here, and where it puts it."""
_FLAGS = re.compile(r"-[itdP]+|--(rm|init|tty|interactive|detach|read-only|publish-all)")
"""Options of `docker run` and `docker exec` that take no value."""
_PS_SHOWS = re.compile(r"[A-Za-z]*[eE][A-Za-z]*|-[A-Za-z]*E[A-Za-z]*")
_PS_VALUED = re.compile(r"-\w*[CoOkpuUgGtsqN]|[a-zA-Z]*[oOkUpt]|--\w+")
"""With its letter `e`, without a sign before it, `ps` shows the environments; source: ps(1)."""
_LONGEST_CLUSTER = 64
_LEADS_OUT = re.compile(r"[/~]|(.*/)?\.\./", re.DOTALL)
_BEHIND = re.compile(r"([=@,:])([^=@,:]+)")
_SEVERAL = re.compile(r"[\s'\"(]")
_FILE = re.compile(r"[\w./~+-]*\.[\w./+-]+|[\w./~+-]*id_\w+|/proc/[\w/]+")
_LOCAL_URL = re.compile(r"^file://[^/]*/", re.IGNORECASE)
Kinds = frozenset[str]
Words = Sequence[Operand]


def apply(base: str, words: Words, findings: WalkState) -> None:
    """Record how a command affects files; `base` is the program, `words` are its arguments."""
    does = kinds(base)
    if base == "ps" and _shows_variables([word.text for word in words]):
        findings.tell_of_process()
    if "no-files" in does:
        return
    is_matched = "matches" in does or base not in KINDS
    names = {(word.word, word.text) for word in words if is_matched and not word.wild}
    operands = words = _as_given(base, words, findings, is_matched=is_matched)
    if base in _GIVEN or base in _SENDS or not does.isdisjoint(_CHOOSES):
        operands = _candidates(base, does, words)
    _note_sought(base, words, findings)
    _note_listed(base, operands, findings)
    if not operands:
        return
    writes = "writes" in does or (base == "sed" and any(_EDITS.match(w.text) for w in operands))
    _doubt(base, words, operands, findings)
    is_local = "moves" in does and base not in _SENDS  # an address is a folder for it
    texts = [word.text for word in operands]
    for word in (*operands, *_as_names(operands, names)):
        _touch(word, findings, write=writes, is_local=is_local)
    if "proc" in "".join(texts):
        _note_process(base, operands, findings, writes=writes)
    if base == "git" or "reads" not in does:
        hand_over(base, does, operands, findings)
    _write(base, words, operands, findings)
    findings.end()
    if "replaces" in does and not any(_TO_STDOUT.fullmatch(text) for text in texts):
        for word in operands:  # it has read them, too
            _touch(word, findings, write=True)
        findings.end()
    destroy(base, words, operands, findings)


def _as_given(base: str, words: Words, findings: WalkState, *, is_matched: bool) -> Words:
    """Return the arguments as the program will see them; a `find` without a folder gets `.`."""
    start = [Operand(".")] * (base == "find")
    texts = [word.text for word in words]
    if is_matched:
        words = [word._replace(wild=True) for word in words]
    elif "--" in texts:
        end = texts.index("--")
        words = [*words[:end], *map(as_operand, words[end:])]
    if "" in texts:
        words = [each for w in words for each in (start if findings.is_none(w) else [w])]
    may_be_none = findings.nullglob and any(re.search(r"[*?\[]", word.text) for word in words)
    return [*start, *words] if may_be_none else words


def _as_names(operands: Words, names: Container[tuple[Word | None, str]]) -> Iterator[Operand]:
    """Yield literal names for the words with wildcards that the shell may leave unexpanded."""
    for word in operands:
        if (word.word, word.text) in names and shell_escape(word.text) != word.text:
            yield word._replace(wild=False)


def _note_sought(base: str, words: Words, findings: WalkState) -> None:
    """Record the secret files that the glob options of a search select, as in `rg -g .env`."""
    is_search = "searches" in kinds(base)
    for word in option_values(words, _CHOOSING) if is_search else ():
        if not word.text.startswith("!") and names_secret(word.text.lower()):
            findings.touch(Operand(word.text.lower(), bare=False))


def _note_listed(base: str, operands: Words, findings: WalkState) -> None:
    """Record which folders a command lists, because it may print the names of files in them."""
    texts = [word.text for word in operands]
    acts = git_words(texts) if base == "git" else []
    if kinds(base).isdisjoint(_LISTS) and _GIT_LISTS.isdisjoint(acts[:1]):
        return
    outside = [word for word in operands if _LEADS_OUT.match(f"{word.text}/")]
    placed = [path for word in outside for path in map(before_glob, findings.places(word))]
    findings.listed |= dict.fromkeys(placed)
    if base in ("find", "gfind"):
        return
    names = [text for text in (acts[1:] if base == "git" else texts) if text[:1] != "-"]
    names += [found[1] for text in texts if (found := _CHOOSES_NAMES.match(text))]
    has_names = base not in ("git", "fd", "fdfind") or acts[:1] == ["ls-files"]
    chosen = tuple(names) if has_names and not any(map(is_any, names)) else ()
    here = [folder for folder in findings.cwd if folder != ANYWHERE]
    hides = base not in _SHOW_HIDDEN and reach(base, texts) != Reach.ANY
    is_git = base == "git"
    findings.listings |= {
        FolderListing(path, path, chosen, hides=hides, is_tracked=is_git): None for path in here
    }
    findings.listings |= {FolderListing(path, path, hides=hides): None for path in placed}


def _shows_variables(texts: Sequence[str]) -> bool:
    """Return whether a `ps` with these words shows the environment of processes."""
    return any(
        _PS_SHOWS.fullmatch(text) and not _PS_VALUED.fullmatch(before)
        for before, text in pairwise(["", *texts])
    )


def _note_process(base: str, operands: Words, findings: WalkState, *, writes: bool) -> None:
    """Record that a command such as `ps` may read arguments or environments of processes.

    The words may name the file in `/proc` together. A search in `/proc`, or a copy of it, counts
    too.
    """
    roots = [word.text.rstrip("/") for word in operands if _PROCESSES.fullmatch(word.text)]
    files = {f"{root}{name}": False for root in roots for name in ("/environ", "/1/environ")}
    is_found = base == "find" and acted_on([word.text for word in operands], files)
    is_whole = not kinds(base).isdisjoint(("searches", "moves"))
    is_seen = not writes and any(names_secret(w.text) and not w.wild for w in operands)
    names_it = not is_seen and tells_of_process(" ".join(word.text for word in operands))
    if names_it or (files and (is_found or is_whole)):
        findings.tell_of_process()


def _doubt(base: str, words: Words, operands: Words, findings: WalkState) -> None:
    """Mark the shell line as unclear if a command shows or moves files with unknown names."""
    dynamic = [word for word in operands if word.dynamic]
    unknown = [word for word in dynamic if is_any(word.text)]
    if dynamic and moves_content(base, [word.text for word in words]):
        findings.reads_listed = True
        value = _VERSION if base == "git" else _VALUE
        for word in unknown:
            if word.open or value.match(word.text):
                findings.doubt("dynamic-args", word)


def moves_content(base: str, texts: Sequence[str]) -> bool:
    """Return whether a command shows, sends, copies or overwrites the contents of files."""
    if base in _SENDS:
        return any(re.match(_SENDS[base], text) for text in texts)
    if base == "git":
        return not _GIT_SHOWS.isdisjoint(git_words(texts)[:1])
    return "moves" in kinds(base)


def _candidates(base: str, does: Kinds, words: Words) -> list[Operand]:
    """Return the words that may name files, without patterns, messages and option values."""
    count, *options = _GIVEN.get(base, ("0",))
    if "messages" in does and _SAYING.isdisjoint(git_words([word.text for word in words])[:1]):
        options = []
    rest, skipped = list[Operand](), 0
    for word in _before_image(words) if base in ("docker", "podman") else words:
        if skipped:
            skipped -= 1
        elif word.text in options:
            skipped = int(count)
        elif mount := _MOUNTED.fullmatch(word.text) if base in ("docker", "podman") else None:
            rest.append(Operand(mount[1], bare=word.bare))
        else:
            rest.append(word)
    if "pattern-first" in does and not any(_EXPRESSION.match(word.text) for word in words):
        counts = r"-|\d+$" if base.endswith("grep") else r"-"  # as in `-A 5`
        first = next((word for word in rest if not re.match(counts, word.text)), None)
        rest = [word for word in rest if word is not first]
    for word in rest[:] if base in _SENDS else ():
        if re.match(rf"(?!--)({_SENDS[base]})", word.text):
            rest.append(word._replace(text=word.text[len("-d") :]))
    return rest


def _before_image(words: Words) -> Words:
    """Return docker's words up to the image or container; later paths are inside of it."""
    acts = [at for at, word in enumerate(words) if word.text in ("run", "exec")]
    at = acts[0] + 1 if acts else len(words)
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        at += 1 if "=" in text or _FLAGS.fullmatch(text) else len(("-v", "x"))
    return words[: at + 1]


def _touch(word: Operand, findings: WalkState, *, write: bool, is_local: bool = False) -> None:
    """Record that the paths in a word are read or written, as far as the paths are known."""
    if write:
        findings.distrust(word)
    if is_local and "://" in word.text:
        findings.touch(word, write=write)
    if not word.dynamic:
        for text in _named(word.text):
            findings.touch(
                word if text == word.text else Operand(text, wild=word.wild), write=write
            )
        return
    folder = word.text.partition(ANYTHING)[0]
    if names_secret(word.plain):
        findings.touch(Operand(word.plain, word.bare), write=write)
    elif "/" in folder:
        _touch(Operand(folder, word.bare), findings, write=write)
    elif ".." in word.text.split("/"):
        findings.touch(within(Operand(word.text)), write=write)


def tell(word: Word, findings: WalkState) -> None:
    """Record as read the secret files that the text of a word names."""
    for text in findings.values.texts(word):
        for name in _secrets(text):
            findings.touch(Operand(name))


@lru_cache(maxsize=4096)
def _named(text: str) -> tuple[str, ...]:
    """Return the paths in a word: the word itself, the value of an option in it, or a part."""
    return tuple(_paths(text))


def _paths(text: str) -> Iterator[str]:
    local = _LOCAL_URL.sub("/", text.removeprefix("@"))
    if not text.startswith("-"):
        is_text = "\n" in local and not _LEADS_OUT.match(local) and not names_secret(local)
        if local and "://" not in local and not is_text:
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
        if is_path or names_secret(part) or (sign == "=" and text.startswith(("--", "if="))):
            yield part
    yield from _secrets(text)


def _secrets(text: str) -> Iterator[str]:
    """Yield the secret files that a text of several words, such as code, names."""
    if _SEVERAL.search(text):
        yield from (name for name in _FILE.findall(text) if names_secret(name))


def _write(base: str, words: Words, operands: Words, findings: WalkState) -> None:
    """Record the files that a program writes by a rule for this program."""
    if base == "git" and (file := git_config([word.text for word in words])):
        findings.touch(Operand(file), write=True)
        findings.doubt("git-option")
    for word in changed(base, operands):
        _touch(word, findings, write=True)
    for word in checked_out(operands) if base == "git" else ():
        if any(map(os.path.lexists, findings.places(word._replace(text=word.text.rstrip("/*"))))):
            _touch(word, findings, write=True)
    if base in _WRITES:
        named = [word.text for word in operands if not word.text.startswith("-")]
        names = _WRITES.get("-".join([base, *named[:1]])) or _WRITES[base]
        for word in option_values(operands, names):
            if word.text != "-":
                _touch(as_operand(word), findings, write=True)
    if makes_links(base, operands):
        note_links(base, operands, findings)
