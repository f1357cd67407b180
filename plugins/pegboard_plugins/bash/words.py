"""The words of a command as names of files: what of them stands in the line, and what does not."""

from dataclasses import dataclass, field

from pegboard_plugins.bash.syntax import Word


@dataclass(frozen=True, slots=True)
class Operand:
    """A word of a command; `dynamic` when only the shell knows what stands there at last.

    `bare`: it begins outside of quotes, so that a `~` there means a home. `leads`: what is dynamic
    stands first, so that it may be an option or any path. `splits`: it may become several words.
    `word` is what was read.
    """

    text: str
    dynamic: bool = False
    bare: bool = True
    leads: bool = False
    splits: bool = False
    word: Word | None = field(default=None, compare=False, repr=False)

    @property
    def open(self) -> bool:
        """Whether it may become anything, not only a text with a known beginning."""
        return self.dynamic and (self.leads or self.splits)


def operand(word: Word, home: str) -> Operand:
    """The word as an operand; `home` is the value of `$HOME`, empty where it is not known."""
    if word.literal is not None:
        return Operand(word.literal, bare=not word.is_quoted, word=word)
    texts, dynamic = [], []
    for piece in word.pieces:
        is_home = piece.kind == "variable" and piece.text == "HOME" and not piece.how and home
        is_known = is_home or piece.kind in ("text", "tilde", "glob", "process")
        texts.append(home if is_home else piece.shown)
        dynamic.append(None if is_known and not texts[-1] else not is_known)
    first = next((each for each in dynamic if each is not None), False)
    unquoted = zip(word.pieces, dynamic, strict=True)
    return Operand(
        "".join(texts),
        dynamic=any(dynamic) or any(piece.kind == "process" for piece in word.pieces),
        bare=not word.is_quoted and word.pieces[0].kind != "variable",
        leads=bool(first),
        splits=any(is_open and not piece.quoted for piece, is_open in unquoted),
        word=word,
    )
