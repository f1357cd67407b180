"""The errors of what a process left unfinished when it died, in the words that a model reads."""

INTERRUPTED_CALL = (
    "interrupted: the program ended while this call was running. What it had done by then is "
    "done; look before you do it again."
)
"""The error of a call that ran when its process died: the model is told that it may have acted."""
NEVER_RAN = "interrupted: the program ended before this call ran"
"""The error of a call that was pending when its process died."""
INTERRUPTED_ANSWER = "interrupted: Pegboard was closed during this answer"
"""The error of an answer that a model had not ended when its process died."""
UNSTORED_CALL = (
    "interrupted: the database could not store the end of this call. What it had done by then is "
    "done; look before you do it again."
)
"""The error of a call whose end was not written when its session was released."""
INTERRUPTED_CALLS = (INTERRUPTED_CALL, UNSTORED_CALL)
"""The errors of calls that ran and may have acted."""
UNSTORED_ANSWER = "interrupted: the database could not store the end of this answer"
"""The error of an answer whose end was not written when its session was released."""
INTERRUPTED_ANSWERS = (INTERRUPTED_ANSWER, UNSTORED_ANSWER)
"""The errors of answers that a model had not ended."""
