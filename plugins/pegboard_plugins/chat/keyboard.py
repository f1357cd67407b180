"""The effect of each key: on the open dialog or list first, then on the chat and the editor."""

import asyncio
import time

from pegboard_plugins.chat import takingback
from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.modes import SAVE, Item
from pegboard_plugins.chat.outside import clipboard_picture
from pegboard_plugins.chat.requests import Permission
from pegboard_plugins.shared.terminal import HELD_S

TWICE_S = 1.0
"""The time within which a key counts as pressed twice."""
C_C_AGAIN, C_D_AGAIN = "Ctrl+C again leaves", "Ctrl+D again stops the turn and leaves"
"""Notices; while one is on the screen, the next press of its key leaves."""
FOCUS_IN, FOCUS_OUT = "\x1b[I", "\x1b[O"


class Keyboard:
    """The keys of one chat: a method for each action in `keys.KEYS`."""

    def __init__(self, chat: Desk) -> None:
        self._chat = chat
        self._last: dict[str, float] = {}
        self._held = ""
        self._holding: asyncio.TimerHandle | None = None

    def _taken(self, key: str) -> bool:
        """Pass a key to the open dialog or list; return whether it used the key."""
        chat = self._chat
        if key == "enter" and (held := self._release()):
            self._press(held)
            if not (isinstance(chat.mode, Permission) and chat.mode.unconfirmed):
                return True
        chat.notices.active()
        chat.notice = ""
        mode = chat.mode
        taken = mode is not None and mode.press(key)
        if taken:
            chat.touch()
            if isinstance(mode, Permission) and mode.begun:  # the editor is the dialog's by now
                begun, mode.begun = mode.begun, ""
                chat.draft.set(begun)
        return taken

    def _twice(self, key: str) -> bool:
        now = time.monotonic()
        before, self._last[key] = self._last.get(key, -TWICE_S), now
        return now - before < TWICE_S

    def letter(self, letter: str) -> None:
        """Insert a letter, or delay it if it may be an answer to a dialog that opened by itself.

        Another letter at once means that the user is writing, so both letters go to the editor.
        """
        mode = self._chat.mode
        held = self._release()
        if isinstance(mode, Permission) and not mode.edits:
            held = held or mode.take_back()
        if held:
            self._chat.attention.leave()
            self._press(held)
            self._press(letter)
        elif mode is not None and mode.is_unasked and not mode.edits and not letter.isspace():
            self._held = letter
            self._holding = asyncio.get_running_loop().call_later(HELD_S, self._press_held)
        else:
            self._press(letter)

    def begin_key(self) -> None:
        """Stop the timer of the letter that `letter` has delayed, because another key follows."""
        if self._holding is not None:
            self._holding.cancel()

    def end_key(self) -> None:
        """Drop the letter that `letter` has delayed, after a key that did not use this letter."""
        if self._holding is not None and self._holding.cancelled():
            self._release()

    def _press_held(self) -> None:
        self._press(self._release())

    def _release(self) -> str:
        """Return the letter that `letter` has delayed, or "", and cancel the delay."""
        if self._holding is not None:
            self._holding.cancel()
        held, self._held, self._holding = self._held, "", None
        return held

    def _press(self, letter: str) -> None:
        chat = self._chat
        mode = chat.mode
        if mode is not None and not mode.edits:
            is_taken = self._taken(letter)
            if isinstance(mode, Permission) and letter == "v":
                chat.spawn(chat.show_page(mode.whole_text()))
            if is_taken or not mode.is_unasked or letter.isspace():
                return
            chat.attention.leave()
        if letter.isprintable() and not (letter == " " and chat.offers.take_blank()):
            chat.notice = ""
            chat.draft.letter(letter)

    def paste(self, text: str) -> None:
        """Insert pasted text; a paste never sends a prompt."""
        if held := self._release():
            self._chat.attention.leave()
            self._press(held)
        mode = self._chat.mode
        if mode is None:
            self._chat.draft.paste(text)
        elif mode.edits:
            self._chat.draft.paste_text(text)

    def focus(self, sequence: str) -> None:
        """Record the terminal's report that it has got or lost the focus."""
        if sequence in (FOCUS_IN, FOCUS_OUT):
            self._chat.notices.focused = sequence == FOCUS_IN

    def send(self) -> None:
        """Handle Enter: answer a dialog, accept a completion, or send the prompt."""
        chat = self._chat
        mode = chat.mode
        buffer = chat.draft.buffer
        if self._taken("enter"):
            return
        if mode is not None:
            if mode.edits:
                mode.submit(chat.draft.expanded(chat.draft.text)[0])
                chat.touch()
        elif chat.offers.items:
            was_command = chat.offers.is_command
            chat.offers.accept()
            if was_command:
                chat.submit(chat.draft.take())
        elif buffer.document.current_line_before_cursor.endswith("\\"):
            buffer.delete_before_cursor(1)
            buffer.newline(copy_margin=False)
        else:
            chat.submit(chat.draft.take())
        chat.touch()

    def answer(self) -> None:
        """Send further keys to the open dialog."""
        self._chat.attention.turn()

    def queue(self) -> None:
        """Queue the prompt until the turn ends; in a list, save the choice for later chats."""
        if not self._taken(SAVE) and self._chat.mode is None:
            self._chat.submit(self._chat.draft.take(), later=True)

    def newline(self) -> None:
        """Insert a new line."""
        mode = self._chat.mode
        if mode is None or mode.edits:
            self._chat.draft.buffer.newline(copy_margin=False)

    def stop(self) -> None:
        """Handle Escape: close a dialog or list, or stop the turn; pressed twice, run /rewind."""
        chat = self._chat
        if self._taken("escape"):
            return
        if chat.offers.items:
            chat.offers.close()
        elif chat.talk is not None and chat.talk.busy:
            self._stop()
        elif self._twice("escape") and not chat.draft.text:
            chat.spawn(chat.slash("rewind"))
        chat.touch()

    def _stop(self) -> None:
        """Cancel commands that wait for the end of the turn; if there are none, stop the turn."""
        chat = self._chat
        assert chat.talk is not None
        if not chat.talk.rest.give_up():
            takingback.stop(chat, chat.talk)

    def interrupt(self) -> None:
        """Handle Ctrl-C: clear the editor, stop the turn, or leave the chat if pressed twice."""
        chat = self._chat
        if chat.draft.text and not (chat.mode and not chat.mode.edits):
            chat.draft.empty()
            chat.window.vi.begin()
        elif chat.talk is not None and chat.talk.busy:
            self._stop()
        else:
            is_again = chat.notice == C_C_AGAIN
            if not self._taken("escape"):
                chat.notice = C_C_AGAIN
                if is_again:
                    chat.leave()
        chat.touch()

    def leave(self) -> None:
        """Handle Ctrl-D: delete a letter, or leave the chat; twice while a turn runs."""
        chat = self._chat
        is_busy = chat.talk is not None and chat.talk.busy
        if chat.draft.text:
            chat.draft.buffer.delete()
        elif is_busy and chat.notice != C_D_AGAIN:
            chat.notice = C_D_AGAIN
            chat.touch()
        else:
            chat.leave()

    def next_agent(self) -> None:
        """Handle Tab: accept a completion, or choose the next agent."""
        chat = self._chat
        if self._taken("tab"):
            return
        if chat.offers.items and chat.mode is None:
            chat.offers.accept()
        elif not chat.offers.may_come:
            self._choose("next_agent")
        chat.touch()

    def next_model(self) -> None:
        """Choose the next model."""
        self._choose("next_model")

    def last_model(self) -> None:
        """Choose the previous model."""
        self._choose("last_model")

    def mode(self) -> None:
        """Choose the next permission mode, which may also answer the open dialog."""
        if self._taken("s-tab"):
            return
        mode = self._chat.mode
        if mode is None or (isinstance(mode, Permission) and not mode.edits):
            self._chat.spawn(self._chat.slash("next_mode"))

    def effort(self) -> None:
        """Choose the next effort level."""
        self._choose("next_effort")

    def _choose(self, what: str) -> None:
        """Run a slash command such as /model, unless a dialog or list is open."""
        if self._chat.mode is None:
            self._chat.spawn(self._chat.slash(what))

    def output(self) -> None:
        """Show the last tool call's complete output."""
        self._chat.spawn(self._chat.slash("output"))

    def transcript(self) -> None:
        """Show the whole session."""
        self._chat.spawn(self._chat.slash("transcript"))

    def editor(self) -> None:
        """Edit the draft in the user's own editor."""
        self._chat.spawn(self._edit())

    async def _edit(self) -> None:
        chat = self._chat
        if (text := await chat.outside.edit(chat.draft.text)) is not None:
            chat.draft.set(text)

    def history(self) -> None:
        """Search the history of prompts."""
        if self._chat.mode is None:
            self._chat.spawn(self._search())

    async def _search(self) -> None:
        chat = self._chat
        found = chat.draft.earlier()
        items = [Item(value=str(n), text=" ".join(text.split())) for n, text in enumerate(found)]
        chosen = await chat.choose("History", items)
        if chosen is not None:
            chat.draft.recall(found[int(chosen)])

    def up(self) -> None:
        """Handle Up: move in completions, edit a queued or unread prompt, or recall an old one."""
        chat = self._chat
        if self._taken("up"):
            return
        if chat.offers.items:
            chat.offers.move(-1)
        elif not takingback.take_back(chat):
            chat.draft.move_up()
        chat.touch()

    def down(self) -> None:
        """Handle Down: move in completions, or go forward in the history."""
        chat = self._chat
        if self._taken("down"):
            return
        if chat.offers.items:
            chat.offers.move(1)
        else:
            chat.draft.move_down()
        chat.touch()

    def page_up(self) -> None:
        """Scroll a page up."""
        self._taken("pageup")

    def page_down(self) -> None:
        """Scroll a page down."""
        self._taken("pagedown")

    def picture(self) -> None:
        """Attach the clipboard's picture."""
        self._chat.spawn(self._picture())

    async def _picture(self) -> None:
        content = await clipboard_picture()
        if content:
            self._chat.draft.pasted_picture(content, "image/png")
        else:
            self._chat.warn(
                "there is no picture in the clipboard that wl-paste, xclip or pngpaste can read"
            )

    def redraw(self) -> None:
        """Redraw the footer without clearing the screen."""
        self._chat.window.anew()

    def suspend(self) -> None:
        """Suspend the chat, as Ctrl-Z does."""
        self._chat.spawn(self._chat.outside.suspend())

    def help(self) -> None:
        """Insert a question mark, or list the keys if the editor is empty."""
        chat = self._chat
        if (chat.mode is None or chat.mode.edits) and chat.draft.text:
            self.letter("?")
        elif chat.mode is None:
            chat.spawn(chat.slash("key_card"))
        else:
            self.letter("?")
