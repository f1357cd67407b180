"""The check of a final answer that must have a form, and the request to correct the answer."""

from functools import partial

from msgspec.structs import replace

from pegboard.engine.expected import Expected, MismatchError
from pegboard.engine.finish import goes_on
from pegboard.engine.input.usermessage import queue_again
from pegboard.engine.run import Run
from pegboard.kit.threads import run_in_thread
from pegboard.schema.event import SessionFailed
from pegboard.schema.message import (
    AssistantMessage,
    OutputData,
    StructuredOutputFailure,
    UserMessage,
)
from pegboard.storage.changes import PublishEvent, PutMessage

_WRONG = "Your answer does not fit the JSON Schema: {}\nAnswer with the corrected JSON value alone."


async def settle(run: Run, user: UserMessage, *, repairs: int | None) -> UserMessage | None:
    """Check the final answer against the form that the prompt requires, and store its value.

    If the answer does not match, store and return a prompt that asks the model for a correction.
    `repairs` is the number of earlier corrections; None allows none. If no further correction is
    allowed, store a failure and return None.
    """
    last = run.last_answer()
    if last is None or goes_on(last) or user.format is None:
        return None
    assert isinstance(last.info, AssistantMessage)
    if last.info.error is not None:
        return None
    expected = run.engine.expected.get(user.id)
    if expected is None:
        expected = await run_in_thread(partial(Expected, user.format), name="pegboard-schema")
    try:
        work = partial(expected.read, last.text)
        info = replace(last.info, structured=await run_in_thread(work, name="pegboard-schema"))
    except MismatchError as error:
        if repairs is not None and repairs < expected.retries:
            return await queue_again(run, user, _WRONG.format(error), output=expected)
        text = f"the answer does not fit the schema: {error}"
        failure = StructuredOutputFailure(data=OutputData(message=text, retries=repairs or 0))
        info = replace(last.info, error=failure)
        run.writer.change(PublishEvent(SessionFailed(session_id=user.session_id, error=failure)))
    run.writer.change(PutMessage(info))
    run.put(replace(last, info=info))
    await run.writer.barrier()
    return None
