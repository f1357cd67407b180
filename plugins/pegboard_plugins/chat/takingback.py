"""The return of queued and unread prompts to the editor."""

from typing import TYPE_CHECKING

from pegboard_plugins.chat.course import Course
from pegboard_plugins.chat.desk import Desk
from pegboard_plugins.chat.finished import Steer

if TYPE_CHECKING:
    from pegboard_plugins.chat.talk import Talk


def take_back(chat: Desk) -> bool:
    """Move the last queued or unread prompt to the editor; return False if this is impossible."""
    talk = chat.talk
    if talk is None or chat.draft.text:
        return False
    if talk.queue:
        chat.draft.put_before(talk.queue.pop().typed)
        return True
    course = talk.course
    if course is None or not course.steers:
        return False
    message_id, steer = next(reversed(course.steers.items()))
    if not steer.leaving:
        chat.spawn(_edit(chat, talk, course, message_id, steer))
    return True


def stop(chat: Desk, talk: "Talk") -> None:
    """Stop the turn, and move the prompts that the model has not read to the editor.

    If the user is writing a slash command, the prompts go to the history.
    """
    for order in reversed(talk.stop()):
        chat.draft.put_back(order.typed)
    if (course := talk.course) is not None:
        unread = {key: each for key, each in course.steers.items() if not each.leaving}
        own = {key: each for key, each in unread.items() if talk.typed_as(each.text)}
        for steer in own.values():
            steer.leaving = True
        chat.spawn(_withdraw_all(chat, talk, course, own))


async def _withdraw_all(chat: Desk, talk: "Talk", course: Course, steers: dict[str, Steer]) -> None:
    """Withdraw the unread prompts and put them into the editor, the oldest first."""
    try:
        for message_id, steer in reversed(steers.items()):
            if unread := await _withdraw(chat, talk, course, message_id, steer):
                chat.draft.put_back(unread)
    finally:
        for steer in steers.values():
            steer.leaving = False


async def _edit(chat: Desk, talk: "Talk", course: Course, message_id: str, steer: Steer) -> None:
    """Withdraw a prompt and put it into the editor, if the model has not read it."""
    if unread := await _withdraw(chat, talk, course, message_id, steer):
        chat.draft.put_before(unread)


async def _withdraw(chat: Desk, talk: "Talk", course: Course, message_id: str, steer: Steer) -> str:
    """Withdraw a prompt and return its text, or "" if the model has read it."""
    typed = talk.typed_as(steer.text)
    if typed is None and not steer.is_text:
        chat.notice = "a message with files from another client cannot be edited here"
        return ""
    steer.leaving = True
    try:
        gone = await talk.feed.withdraw(course.session.id, message_id)
    finally:
        steer.leaving = False
    course.steers.pop(message_id, None)
    if gone:
        return typed or steer.text
    chat.notice = "the model has already read it"
    for piece in steer.pieces:
        talk.draw(piece)
    return ""
