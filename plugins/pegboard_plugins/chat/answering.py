"""The dialogs for permission requests and questions, and the replies to these requests."""

from collections.abc import Callable, Sequence
from contextlib import suppress

from msgspec.structs import replace

from pegboard import PegboardError
from pegboard.errors import NotFoundError
from pegboard.schema.session import PermissionRequest, QuestionRequest
from pegboard_plugins.chat.questions import QuestionDialog
from pegboard_plugins.chat.requests import Permission, Settled, allowed
from pegboard_plugins.chat.talk import Talk
from pegboard_plugins.shared.frontend import MODES


class Answering:
    """The dialogs of a conversation for permission requests and questions, one at a time."""

    def __init__(self, talk: Talk, on_asked: Callable[[], None]) -> None:
        self._talk = talk
        self._on_asked = on_asked
        self.dialog: Permission | QuestionDialog | None = None

    def look(self) -> None:
        """Close the dialog if its request was answered, and open a dialog for the next request."""
        waiting = list(self._talk.course.requests.values()) if self._talk.course else []
        if self.dialog is not None and all(self.dialog.request.id != each.id for each in waiting):
            self.dialog = None
        if self.dialog is None and waiting:
            self.dialog = self._dialog(waiting[0])
            self._on_asked()
        if self.dialog is not None:
            self.dialog.place = f" (1 of {len(waiting)})" if waiting[1:] else ""
        if isinstance(self.dialog, Permission):
            self.dialog.request = _in_mode(self.dialog.request, self._talk.choices.mode)

    def _dialog(self, request: PermissionRequest | QuestionRequest) -> Permission | QuestionDialog:
        if isinstance(request, PermissionRequest):
            return Permission(request, self._settle)
        is_own = any(request.questions == (each,) for each, _ in self._talk.asking)
        return QuestionDialog(request, self._settle_questions, is_own=is_own)

    def _settle(self, request: PermissionRequest, settled: Settled | None) -> None:
        if settled is not None and settled.patterns:
            self._talk.spawn(self._narrow(request, settled))
            return
        self._gone(request.id)
        self._talk.spawn(self._reply(request, settled))

    async def _narrow(self, request: PermissionRequest, settled: Settled) -> None:
        """Approve only the patterns that the user typed; the dialog displays any error."""
        try:
            await self._approve(request, settled)
        except NotFoundError:
            return  # it was answered elsewhere meanwhile
        except PegboardError as error:
            if isinstance(self.dialog, Permission) and self.dialog.request.id == request.id:
                self.dialog.refusal = str(error)
                self._talk.touch()

    async def _approve(self, request: PermissionRequest, settled: Settled) -> None:
        await self._talk.feed.approve(request.id, settled.scope, patterns=settled.patterns)
        self._talk.say(allowed(request, settled))

    async def _reply(self, request: PermissionRequest, settled: Settled | None) -> None:
        with suppress(NotFoundError):  # it was answered elsewhere meanwhile
            if settled is None:
                self._talk.stop()
            elif settled.reply == "always":
                await self._approve(request, settled)
            else:
                await self._talk.feed.reply(request.id, settled.reply, settled.message)

    def _settle_questions(
        self, request: QuestionRequest, answers: Sequence[Sequence[str]] | None
    ) -> None:
        self._gone(request.id)
        self._talk.spawn(self._answer(request, answers))

    async def _answer(
        self, request: QuestionRequest, answers: Sequence[Sequence[str]] | None
    ) -> None:
        with suppress(NotFoundError):
            await self._talk.feed.answer(request.id, answers)

    def _gone(self, request_id: str) -> None:
        self.dialog = None
        if self._talk.course is not None:
            self._talk.course.answered(request_id)
        self.look()
        self._talk.touch()


def _in_mode(request: PermissionRequest, mode: str) -> PermissionRequest:
    """Return the request; if a permission mode is its reason, the reason is now `mode`."""
    reason = request.metadata.get("reason")
    if mode not in MODES or not (isinstance(reason, str) and reason.startswith("mode ")):
        return request
    reason = f"mode {mode}: {MODES[mode].help}"
    return replace(request, metadata={**request.metadata, "reason": reason})
