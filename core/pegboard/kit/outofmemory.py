"""What is said where no memory is left; nothing here asks for any."""

import os
import resource
import sys
from typing import NoReturn

OUT_OF_MEMORY = "the memory is used up: close other programs, or raise the limit (`ulimit -v`)"
_LAST_WORDS = f"error: {OUT_OF_MEMORY}\n".encode()


def is_limited() -> bool:
    """Whether this process may use less memory than there is."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return sys.platform == "linux" and limit != resource.RLIM_INFINITY


def end_without_memory(*_: object) -> NoReturn:
    """End the process at once, with the sentence; also the handler of a signal."""
    os.write(2, _LAST_WORDS)
    os._exit(1)
