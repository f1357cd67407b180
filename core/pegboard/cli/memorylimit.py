"""The test for a limit on the program's memory."""

import resource
import sys


def is_limited() -> bool:
    """Return whether a limit allows this process less memory than the machine has."""
    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return sys.platform == "linux" and limit != resource.RLIM_INFINITY
