"""How workers share the tests."""

from collections.abc import Collection, Mapping
from pathlib import Path

import pytest
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

WORKERS = 4
"""Two cores are enough for them, since half of the time something is waited for."""
TESTS = Path(__file__).parents[2]
TIMED = frozenset(
    {
        "core/engine/test_attempts.py",
        "core/engine/test_stalled_turns.py",
        "toolprocesses/test_background.py",
        "files/test_diffs.py",
        "core/hooks/test_kinds.py",
        "core/hooks/test_isolation.py",
        "toolprocesses/test_limits.py",
        "core/policy/test_permissions.py",
        "toolprocesses/test_process.py",
        "core/hooks/test_stalls.py",
        "core/engine/test_truncate.py",
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

APART = frozenset({"plugins/cli/test_misbehaving_runs.py"})
"""Files of many tests that start a command each, for which one worker would take too long."""

SANDBOX = "plugins/sandbox"
"""Its tests see each other's sockets, as they see all of the machine, and each closes its own."""
LONG_S = {
    "timed": 100,
    "core/engine/test_asked_time.py": 10,
    "core/engine/test_meanwhile.py": 15,
    "core/engine/test_stream_costs.py": 10,
    "testing/test_suites.py": 12,
    "plugins/chat/test_additions.py": 8,
    "plugins/chat/test_day.py": 35,
    "plugins/chat/test_typing.py": 60,
    "plugins/chat/test_keys.py": 10,
    "plugins/chat/test_session.py": 12,
    "plugins/chat/test_shown.py": 12,
    "plugins/cli/test_commands.py": 10,
    "plugins/cli/test_plugin_templates.py": 14,
    "plugins/cli/test_run_plugins.py": 15,
    "plugins/cli/test_explain.py": 15,
    "plugins/cli/test_sessioncommands.py": 12,
    "plugins/cli/test_run.py": 10,
    "plugins/cli/test_run_attach.py": 12,
    "plugins/cli/test_terminal.py": 10,
    "evals/test_cases.py": 18,
    "evals/test_runner.py": 8,
    "faults/test_bad_plugins.py": 12,
    "faults/test_random_operations.py": 15,
    "faults/test_storage_kill.py": 12,
    "faults/test_surroundings.py": 14,
    "faults/test_tool_faults.py": 10,
    "plugins/bash/test_differential.py": 35,
    "plugins/bash/test_fuzz.py": 50,
    "plugins/lsp/test_basedpyright.py": 12,
    "plugins/lsp/test_changes.py": 20,
    "plugins/openai_compatible/test_fault_table.py": 12,
    "plugins/sandbox": 40,
    "plugins/server/test_access.py": 15,
    "plugins/server/test_nonsense.py": 25,
    "plugins/server/test_pty.py": 20,
    "plugins/server/test_schemathesis.py": 45,
    "plugins/server/test_streams.py": 12,
    "plugins/server/test_turns.py": 12,
    "plugins/test_litellm.py": 20,
    "plugins/test_search.py": 12,
    "property/test_edits.py": 20,
    "test_shape.py": 25,
    "test_start.py": 5,
    "wire/test_documents.py": 12,
    "wire/test_sdk.py": 40,
    "wire/test_terminal.py": 35,
}
"""About how long what takes more than three seconds takes on a quiet machine."""
TEST_S = 0.02
"""And any other test."""


def in_folders(config: pytest.Config) -> bool:
    """Whether tests are run by folders, and not by files or names."""
    return all(Path(named).is_dir() for named in config.args)


def longest(shares: Mapping[str, Collection[object]]) -> str:
    """The share, by its name and its tests, that takes longest."""
    return max(shares, key=lambda name: LONG_S.get(name, TEST_S * len(shares[name])))


def share(nodeid: str) -> str:
    """What one worker runs as a whole: a file, a test of `APART`, all of `TIMED`, or a folder."""
    file = nodeid.partition("::")[0].removeprefix("tests/")
    if file in APART:
        return nodeid
    if file.startswith(f"{SANDBOX}/"):
        return SANDBOX
    return "timed" if file in TIMED else file


class Shares(LoadScopeScheduling):
    """The share that takes longest is given out first, so that no worker is left alone with it."""

    def _split_scope(self, nodeid: str) -> str:
        return share(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        self.workqueue.move_to_end(longest(self.workqueue), last=False)
        super()._assign_work_unit(node)
