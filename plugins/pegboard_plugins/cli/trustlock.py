"""The lock file with digests of a project's code, which a run without a user may trust."""

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from pegboard.app import Decision
from pegboard.errors import TrustError
from pegboard.unstable import temporary_beside


def write_lock(decision: Decision, path: Path, *, hooks: Mapping[str, str] | None = None) -> None:
    """Write the digests of the decision's files to a lock file, for runs without a user.

    The lock file also has the digests of the trusted programs, and of the project's `hooks`.

    :raises TrustError: when the file cannot be written.
    """
    digests = {**decision.allowed, **decision.digests, **(hooks or {})}
    content = json.dumps({"version": 1, "files": dict(sorted(digests.items()))}, indent=2)
    draft = temporary_beside(path)
    try:
        draft.write_text(f"{content}\n", encoding="utf-8")
        draft.replace(path)  # one that is a link of the project's leads nowhere
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        raise TrustError(f"the lock file {path} cannot be written: {error.strerror}") from error
