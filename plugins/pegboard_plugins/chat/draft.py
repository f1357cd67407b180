"""The editor's draft and its history; placeholders stand for long pastes and pictures."""

import base64
import re
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory

from pegboard.schema.part import FileInput, mime_of

LONG_LINES, LONG_LETTERS = 10, 2000
"""The maximum size of a paste that is inserted as text; a longer paste becomes a placeholder."""
COMPOSING_S = 3.0
"""The longest pause between two letters of an input method."""
LONGEST_EDITED = 100_000
"""The maximum length of a text that returns to the editor, since each key redraws all lines."""
PICTURES = ("image/",)
COMMAND = "/"
_CHIP = re.compile(r"\[(?:Pasted text|Picture) #\d+[^\]]*\]")


class Draft:
    """The text in the editor, with the long pastes and files that its placeholders stand for."""

    def __init__(self, history_file: Path | None, changed: Callable[[str], None]) -> None:
        history: History = FileHistory(str(history_file)) if history_file else InMemoryHistory()
        self.history = history
        self.buffer = Buffer(
            multiline=True,
            history=history,
            on_text_changed=self._typed,
            complete_while_typing=False,
        )
        self._changed = changed
        self.on_placed: Callable[[], None] = lambda: None  # the text is not being typed
        self._typed_s = 0.0
        self._texts: dict[str, str] = {}
        self._files: dict[str, FileInput] = {}
        self._folded: dict[str, str] = {}  # what was sent with its chips, by its whole text
        self._doubted = ""
        self._put_aside: list[tuple[str, int]] = []
        self._restored = ""

    @property
    def text(self) -> str:
        """The text in the editor."""
        return self.buffer.text

    @property
    def is_composed(self) -> bool:
        """Whether an input method seems to be active: letters beyond ASCII were typed just now."""
        return not self.text.isascii() and time.monotonic() - self._typed_s < COMPOSING_S

    def _typed(self, buffer: Buffer) -> None:
        self._typed_s = time.monotonic()
        if buffer.text != self._restored:
            self._restored = ""
        self._changed(buffer.text)

    def letter(self, letter: str) -> None:
        """Insert a letter; a first `/` clears an unedited prompt that `restore` has put there."""
        if letter == COMMAND and self._is_restored:
            self.take()
        self.buffer.insert_text(letter)

    def paste(self, pasted: str) -> None:
        """Insert pasted text; a long text or a picture's path becomes a placeholder."""
        if picture := _picture(pasted):
            self.picture(picture)
        else:
            self.paste_text(pasted)

    def paste_text(self, pasted: str) -> None:
        """Insert a text; a long text becomes a placeholder."""
        text = pasted.replace("\r\n", "\n").replace("\r", "\n")
        if text.count("\n") < LONG_LINES and len(text) <= LONG_LETTERS:
            self.buffer.insert_text(text)
            return
        lines = text.count("\n") + (not text.endswith("\n"))
        chip = f"[Pasted text #{len(self._texts) + 1}: {lines:,} lines]"
        self._texts[chip] = text
        self.buffer.insert_text(chip + " ")

    def picture(self, path: Path) -> None:
        """Insert a placeholder for a picture's file."""
        chip = f"[Picture #{len(self._files) + 1}: {path.name}]"
        self._files[chip] = FileInput.of(path)
        self.buffer.insert_text(chip + " ")

    def pasted_picture(self, content: bytes, mime: str) -> None:
        """Insert a placeholder for a picture from the clipboard."""
        chip = f"[Picture #{len(self._files) + 1}: clipboard]"
        url = f"data:{mime};base64,{base64.b64encode(content).decode()}"
        self._files[chip] = FileInput(mime=mime, url=url, filename="clipboard.png")
        self.buffer.insert_text(chip + " ")

    def expanded(self, text: str) -> tuple[str, tuple[FileInput, ...]]:
        """Return the text with its long pastes inserted, and the files of its placeholders."""
        chips = _CHIP.findall(text)
        files = tuple(self._files[chip] for chip in chips if chip in self._files)
        for chip in chips:
            if chip in self._texts:
                text = text.replace(chip, f"\n{self._texts[chip]}\n")
        return text.strip(), files

    def unknown(self, text: str) -> str:
        """Return the first placeholder in `text` that stands for no content of this chat, or "".

        A prompt from another chat's history has such placeholders. The user is warned only once:
        for the same text again, "" is returned and the prompt can be sent.
        """
        chips = [chip for chip in _CHIP.findall(text) if chip not in {**self._texts, **self._files}]
        self._doubted, doubted = text if chips else "", self._doubted
        return chips[0] if chips and text != doubted else ""

    def take(self) -> str:
        """Clear the editor, add its text with all pastes to the history, and return the text."""
        text = self.buffer.text
        if text.strip():
            whole = self.expanded(text)[0] if _CHIP.search(text) else text
            if len(whole) > LONGEST_EDITED:
                whole = text
            self._folded[whole] = text
            if whole not in self.history.get_strings()[-1:]:
                self.history.append_string(whole)
        self.empty()
        self._restored = ""
        return text

    def empty(self) -> None:
        """Clear the editor."""
        self.buffer.reset()
        self._changed("")

    def put_aside(self) -> None:
        """Empty the editor for a dialog's text; `bring_back` restores the draft."""
        self._put_aside.append((self.buffer.text, self.buffer.cursor_position))
        self.buffer.reset()

    def bring_back(self) -> None:
        """Restore the draft that was put aside last."""
        text, place = self._put_aside.pop() if self._put_aside else ("", 0)
        self.set(text)
        self.buffer.cursor_position = min(place, len(text))

    def set(self, text: str) -> None:
        """Replace the editor's text, and move the cursor to its end."""
        self.buffer.reset()
        if len(text) > LONGEST_EDITED:
            self.paste_text(text)
        elif text:
            self.buffer.insert_text(text)
        else:
            self._changed("")
        self.on_placed()

    def put_before(self, text: str) -> None:
        """Insert a text before the draft, also if the draft is put aside."""
        if self._put_aside:
            rest, place = self._put_aside[0]
            self._put_aside[0] = (_joined(text, rest), place + len(_joined(text, rest)) - len(rest))
        else:
            self.set(_joined(text, self.buffer.text))

    def restore(self, text: str) -> None:
        """Put an undone prompt in the editor; the text of an earlier undo moves to the history."""
        if self._is_restored:
            self.take()
        self.put_back(text)

    def put_back(self, text: str) -> None:
        """Put an unanswered prompt before the editor's text.

        If the user is writing a slash command, the prompt goes to the history.
        """
        is_restored = self._is_restored
        if self.text.startswith(COMMAND) and not (is_restored or self._put_aside):
            self.history.append_string(text)
            return
        is_alone = is_restored or not (self.text or self._put_aside)
        self.put_before(text)
        self._restored = self.text if is_alone else ""

    @property
    def _is_restored(self) -> bool:
        """Whether the editor has a prompt from `restore` that the user has not edited."""
        end = len(self.text)
        return self.text == self._restored != "" and self.buffer.cursor_position == end

    def move_up(self) -> None:
        """Move the cursor up a line, or to an earlier prompt of the history."""
        before = self.text
        self.buffer.auto_up()
        self._fold(before)

    def move_down(self) -> None:
        """Move the cursor down a line, or to a later prompt of the history."""
        before = self.text
        self.buffer.auto_down()
        self._fold(before)

    def _fold(self, before: str) -> None:
        """Replace long pastes in a recalled prompt by placeholders; `before` is the old text."""
        if (typed := self._folded.get(self.text, self.text)) != self.text:
            self.buffer.document = Document(typed, len(typed))
        if self.text != before:
            self.on_placed()

    def recall(self, text: str) -> None:
        """Put a prompt of the history in the editor."""
        self.set(self._folded.get(text, text))

    def earlier(self) -> Sequence[str]:
        """Return the distinct earlier prompts, newest first."""
        return tuple(dict.fromkeys(reversed(self.history.get_strings())))


def word_before(text: str, signs: Iterable[str]) -> tuple[str, str] | None:
    """Return the sign, such as `@`, before the last word, and the word; None without a sign."""
    word = re.split(r"\s", text)[-1]
    sign = word[:1]
    return (sign, word[1:]) if sign in tuple(signs) and sign else None


def _joined(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def _picture(text: str) -> Path | None:
    """Return the path if the text is a picture's path, as terminals paste dropped files."""
    line = text.strip().strip("'\"")
    if "\n" in line or not line or len(line) > LONG_LETTERS:
        return None
    if line.startswith("file://"):
        line = unquote(urlsplit(line).path)
    path = Path(line.replace("\\ ", " ")).expanduser()
    if not path.is_absolute() or not mime_of(path).startswith(PICTURES):
        return None
    return path if path.is_file() else None
