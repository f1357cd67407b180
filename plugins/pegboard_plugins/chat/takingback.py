"""What is queued, or sent and not read yet, comes back to the editor."""

from typing import TYPE_CHECKING

from pegboard_plugins.chat.course import Course
from pegboard_plugins.chat.finished import Steer

if TYPE_CHECKING:
    from pegboard_plugins.chat.chat import Chat
    from pegboard_plugins.chat.talk import Talk


def take_back(chat: "Chat") -> bool:
    """Whether there is something to edit again: the newest of the queue, else of the steers."""
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
        chat.spawn(_withdraw(chat, talk, course, message_id, steer))
    return True


async def _withdraw(
    chat: "Chat", talk: "Talk", course: Course, message_id: str, steer: Steer
) -> None:
    """Put a steer in the editor if the model has not read it."""
    typed = talk.typed_as(steer.text)
    if typed is None and not steer.is_text:
        chat.notice = "a message with files from another client cannot be edited here"
        return
    steer.leaving = True
    try:
        gone = await talk.feed.withdraw(course.session.id, message_id)
    finally:
        steer.leaving = False
    if gone:
        course.steers.pop(message_id, None)
        chat.draft.put_before(typed or steer.text)
    else:
        chat.notice = "the model has already read it"
