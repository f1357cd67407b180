"""How two workers share the tests."""

from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

WORKERS = 2
TESTS = Path(__file__).parent
TIMED = frozenset(
    {
        "core/session/test_attempts.py",
        "core/session/test_stalled_turns.py",
        "core/test_background.py",
        "core/test_diffs.py",
        "core/test_dispatch.py",
        "core/test_isolation.py",
        "core/test_limits.py",
        "core/test_permissions.py",
        "core/test_process.py",
        "core/test_stalls.py",
        "core/test_truncate.py",
        "faults/test_many_sessions.py",
        "faults/test_provider_faults.py",
        "faults/test_server_load.py",
        "faults/test_session_kill.py",
        "plugins/bash/test_background.py",
        "plugins/bash/test_bash.py",
        "plugins/bash/test_limits.py",
        "plugins/lsp/test_servers.py",
        "plugins/server/test_abuse.py",
        "plugins/server/test_connection.py",
        "plugins/test_edit_matching.py",
    }
)
"""What watches a clock, or takes much of the machine: of these never two run at a time."""


def share(nodeid: str) -> str:
    """What one worker runs as a whole: the file of a test, or all files of `TIMED`."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    return "timed" if file in TIMED else file


class Shares(LoadScopeScheduling):
    """The share with the most tests is given out first."""

    def _split_scope(self, nodeid: str) -> str:
        return share(nodeid)
