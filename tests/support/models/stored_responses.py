"""A model behind the Responses API that stores what it answers, as OpenAI's does."""

from collections.abc import Sequence
from itertools import count
from typing import Any

from support.models import model_server as ms
from support.models import response_frames as frames

Item = dict[str, Any]


class Storing:
    """A script of a model that stores its responses and refuses ids that it does not have.

    `inputs` are what the model has seen for each answer: the stored items and those of the request.
    """

    def __init__(self, *answers: Sequence[Sequence[Item]]) -> None:
        self.stored: dict[str, list[Item]] = {}
        self.inputs: list[list[Item]] = []
        self._answers = answers
        self._ids = count(1)

    def __call__(self, body: ms.Body) -> ms.Answer:
        previous = body.get("previous_response_id")
        if previous and previous not in self.stored:
            message = f"Previous response with id '{previous}' not found."
            return ms.failure(400, message, code="previous_response_not_found")
        seen = [*self.stored.get(previous or "", ()), *body["input"]]
        answer = self._answers[min(len(self.inputs), len(self._answers) - 1)]
        self.inputs.append(seen)
        response_id = f"resp_{next(self._ids)}"
        if body["store"]:
            done = [item[-1]["item"] for item in answer]
            self.stored[response_id] = [*seen, *done]
        return frames.answer(*answer, id=response_id)
