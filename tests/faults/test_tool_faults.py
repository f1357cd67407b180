"""What the machine, the files and the model do to tools, and what becomes of it.

Each row of the fault table has the tests that `COVERED` names, here and elsewhere. After every
fault no process, no temporary file and no lock is left.
"""

import asyncio
import ctypes
import json
import os
import pwd
import re
import subprocess
from pathlib import Path

import pytest

from pegboard import tool
from pegboard.cli.main import keep_memory_private
from pegboard.errors import ToolError
from pegboard.schema.event import Event, PermissionAsked
from pegboard.schema.part import Completed, Failed
from pegboard_plugins import bash as bash_plugin
from pegboard_plugins.bash import bash
from pegboard_plugins.edit import write_plugin
from support.models.played import HI, Played, ToolsPlugin, calls, heard, opened, text, tools_of
from support.models.played import call as model_call
from support.processes.processes import MARK, remaining
from support.tools.tool_context import call, said

COVERED = """
T1   toolprocesses/test_process.py
       nothing_survives_the_time_limit
       nothing_survives_a_cancelled_call
T1   faults/test_tool_faults.py
       t1_a_command_that_is_ended_says_what_it_said_until_then
T2   toolprocesses/test_process.py
       what_is_left_in_the_background_is_ended_with_the_call
T2   plugins/bash/test_bash.py
       processes_in_the_background_are_said_to_be_ended
T3   toolprocesses/test_process.py
       a_gigabyte_needs_little_memory
T3   faults/test_tool_faults.py
       t3_a_kept_output_that_was_cut_is_said_to_be
T4   faults/test_tool_faults.py
       t4_whatever_bytes_a_command_writes_the_answer_is_text
T5   faults/test_tool_faults.py
       t5_a_program_that_would_wait_for_a_person_ends_at_once
T6   faults/test_tool_faults.py
       t6_without_its_folder_a_command_is_an_error_and_the_next_one_runs
T7   faults/test_file_faults.py
       t7_a_full_disk_leaves_the_file_whole
T8   faults/test_file_faults.py
       t8_what_the_system_refuses_is_an_error_that_says_so
T8   files/test_ledger.py
       a_write_protected_file_is_not_replaced
T9   plugins/test_containment.py
       a_way_out_is_asked_for
       a_link_put_in_after_the_check_leads_nowhere
T9   faults/test_file_faults.py
       t9_a_circle_of_links_is_an_error
T10  plugins/test_read.py
       what_could_block_for_ever_is_refused
T10  faults/test_file_faults.py
       t10_what_is_no_regular_file_is_not_written
T11  plugins/test_read.py
       the_first_page_of_two_gigabytes_takes_no_more_than_that_of_a_small_file
       of_a_line_of_two_gigabytes_the_start_is_shown
       a_large_directory_is_listed_in_part
T11  faults/test_file_faults.py
       t11_a_huge_file_is_not_edited
       t11_names_that_are_no_text_are_shown_and_found
T12  plugins/test_written_text.py
       a_file_keeps_its_encoding
       bytes_of_no_known_encoding_stay_as_they_are
T13  faults/test_file_faults.py
       t13_all_around_an_edit_stays_byte_for_byte
T14  faults/test_file_faults.py
       t14_a_file_that_is_not_as_it_was_read_is_not_written
       t14_mode_and_attributes_stay
T14  plugins/test_containment.py
       a_change_of_a_hard_link_leaves_the_other_name_as_it_was
T15  faults/test_two_writers.py
       of_subagents_that_change_one_file_none_loses_its_change
       of_two_parallel_edits_in_one_answer_both_are_there
T16  plugins/test_edit_matching.py
       a_case_of_the_collection_is_edited_or_refused_as_it_says
T16  property/test_edits.py
       a_hostile_text_is_searched_in_bounded_time
T16  plugins/test_search.py
       the_fallback_does_not_block_for_a_hopeless_expression
T17  core/engine/test_calls.py
       a_tool_that_raises_is_an_error_for_the_model
       a_tool_that_hangs_is_ended_at_its_time_limit
T17  core/contract/test_tools.py
       any_other_answer_is_an_error_that_names_the_tool
       a_function_that_hangs_holds_up_neither_the_time_limit_nor_the_exit
T17  faults/test_tool_faults.py
       t17_a_huge_answer_of_any_tool_is_cut_and_kept
T17  core/hooks/test_stalls.py
       a_tool_that_holds_up_the_loop_is_named_once_with_its_line
       a_hook_that_holds_up_the_loop_is_named
       a_tool_in_a_thread_holds_up_nothing
T18  faults/test_tool_faults.py
       t18_an_abort_ends_a_call_whatever_it_does
T18  plugins/test_apply_patch.py
       a_cancelled_patch_is_applied_whole
T19  faults/test_tool_faults.py
       t19_a_command_that_takes_the_machine_is_ended_and_the_next_one_runs
T19  toolprocesses/test_limits.py
       too_many_processes_are_ended_and_said_to_be
       memory_is_counted_over_all_processes
       for_a_user_the_kernel_itself_holds_the_limit
T20  toolprocesses/test_process.py
       the_environment_of_children_has_no_secrets
T20  faults/test_tool_faults.py
       t20_a_command_does_not_read_the_environment_of_the_program
T20  plugins/sandbox/test_escapes.py
       it_does_not_get_through
T20  plugins/sandbox/test_engine.py
       a_run_of_the_engine_stays_inside
T21  plugins/webfetch/test_fetching.py
       each_hop_of_a_redirect_is_checked_again
       the_connection_goes_to_the_address_that_was_checked
       a_small_answer_that_unpacks_to_gigabytes_is_cut
T22  plugins/snapshots/test_snapshots_hostile.py
       nothing_of_a_hostile_repository_is_run
T22  frontend/test_revert.py
       files_that_the_user_changed_afterwards_are_left_and_named
T22  plugins/snapshots/test_trees.py
       a_nested_repository_is_left_alone
"""
"""Rows, with files below tests/ and the names of tests in them, without `test_`."""
TESTS = Path(__file__).parents[1]
PR_SET_DUMPABLE = 4


def test_each_row_has_its_tests() -> None:
    rows, source = set(), ""
    for line in COVERED.split("\n"):
        row, _, name = line.strip().rpartition(" ")
        if row:
            rows.add(row.strip())
            source = (TESTS / name).read_text()
        else:
            assert not name or f"def test_{name}(" in source, name

    assert rows == {f"T{number}" for number in range(1, 23)}


async def test_t1_a_command_that_is_ended_says_what_it_said_until_then(context) -> None:
    command = f"echo begun; setsid setsid sleep {MARK} & trap '' TERM; sleep {MARK}"

    result = await call(bash, context, command=command, timeout=1500)

    assert result.output == "begun\n\n[timed out after 1500 ms, and was ended]"


async def test_t3_a_kept_output_that_was_cut_is_said_to_be(context, monkeypatch) -> None:
    monkeypatch.setattr("pegboard.processes.output.SPILL_LIMIT_BYTES", 2 << 20)

    result = await call(bash, context, command="head -c 3000000 /dev/zero | tr '\\0' x")

    kept = Path(result.metadata["outputPath"])
    assert kept.stat().st_size == 2 << 20  # noqa: ASYNC240 - a test
    assert result.output.endswith("[of 3,000,000 bytes of output its file has the first 2,097,152]")


@pytest.mark.parametrize(
    "command",
    [
        "head -c 20000000 /dev/urandom",
        "head -c 50000000 /dev/zero",
        "head -c 30000000 /dev/zero | tr '\\0' x",
        "printf 'a\\xff\\xfe\\033[31mred\\033]0;title\\007\\n'",
        "for n in 1 2 3; do printf '%s%%\\r' $n; done; echo",
    ],
    ids=["random", "zeroes", "one line", "escapes", "progress"],
)
async def test_t4_whatever_bytes_a_command_writes_the_answer_is_text(context, command) -> None:
    result = await call(bash, context, command=command)

    assert len(result.output) < 1_200_000
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", result.output)
    result.output.encode()
    if "printf 'a" in command:
        assert said(result.output) == "a\ufffd\ufffdred"
    if "%%" in command:
        assert said(result.output) == "3%"


@pytest.mark.parametrize(
    "command",
    [
        "cat",
        "read -r line",
        "python3 -c 'input()'",
        "git init -q . && git -c user.name=n -c user.email=e commit --allow-empty",
        "cat < /dev/tty",
    ],
)
async def test_t5_a_program_that_would_wait_for_a_person_ends_at_once(context, command) -> None:
    result = await call(bash, context, command=command, timeout=20_000)

    assert "timed out" not in result.output


@pytest.mark.parametrize("workdir", ["missing", "a"])
async def test_t6_without_its_folder_a_command_is_an_error_and_the_next_one_runs(
    context, workdir
) -> None:
    with pytest.raises(ToolError, match="cannot run"):
        await call(bash, context, command="true", workdir=workdir)

    assert said((await call(bash, context, command="echo on")).output) == "on"


async def test_t6_a_folder_that_goes_away_meanwhile_is_an_error(context) -> None:
    folder = context.directory / "work"
    folder.mkdir()
    await call(bash, context, command='rmdir "$PWD"', workdir="work")

    with pytest.raises(ToolError, match="cannot run"):
        await call(bash, context, command="true", workdir="work")


async def test_t17_a_huge_answer_of_any_tool_is_cut_and_kept(tmp_path: Path) -> None:
    @tool
    async def flood() -> str:
        """Answer with far too much."""
        return "line of a flood\n" * 4_000_000

    provider = Played(calls(model_call("flood", "{}")), text("done"))
    async with opened(tmp_path, provider, ToolsPlugin(flood)) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        (part,) = tools_of(await app.list_turns(session.id))

    assert isinstance(part.state, Completed)
    assert len(part.state.output) < 60_000
    kept = Path(part.state.metadata["outputPath"])
    assert kept.stat().st_size == 64_000_000  # noqa: ASYNC240 - a test


ABORTED = {
    "asking": ("write", '{"filePath": "new", "content": "x"}'),
    "running": ("bash", f'{{"command": "echo begun; setsid sleep {MARK}.1 & sleep {MARK}.1"}}'),
}


@pytest.mark.parametrize("phase", ABORTED)
async def test_t18_an_abort_ends_a_call_whatever_it_does(tmp_path: Path, phase: str) -> None:
    provider = Played(calls(model_call(*ABORTED[phase])), text("done"))
    asks = phase == "asking"
    plugins = (bash_plugin, write_plugin)
    async with opened(tmp_path, provider, *plugins, allow=not asks, interactive=asks) as app:
        session = await app.create_session()

        def is_there(event: Event) -> bool:
            if asks:
                return isinstance(event.properties, PermissionAsked)
            return "begun" in str(event)

        listening = asyncio.create_task(heard(app, is_there))
        await asyncio.sleep(0)
        prompting = asyncio.create_task(app.prompt(session.id, HI))
        async with asyncio.timeout(30):
            await listening

        assert await app.abort(session.id)

        await prompting
        (part,) = tools_of(await app.list_turns(session.id))
        waiting = app.permissions.pending()
    assert isinstance(part.state, Failed)
    assert waiting == ()
    assert remaining(MARK) == []
    assert list((tmp_path / "project").iterdir()) == []


GREEDY = {
    "fork bomb": (":(){ :|:& };: ; sleep 60", "[stopped: more than 200 processes, "),
    "fork bomb in hiding": (
        "bomb() { setsid bash -c true & bomb | bomb & }; bomb; sleep 60",
        "[stopped: more than 200 processes, ",
    ),
    "memory": ("tail /dev/zero", "[stopped: more than 300 MB of memory, "),
    "descriptors": (
        "python3 -c 'import os; [os.dup(0) for _ in range(100_000)]' 2>&1 | tail -1",
        "OSError: [Errno 24] Too many open files",
    ),
}


@pytest.mark.parametrize("kind", GREEDY)
async def test_t19_a_command_that_takes_the_machine_is_ended_and_the_next_one_runs(
    tmp_path: Path, kind: str
) -> None:
    command, told = GREEDY[kind]
    greedy = model_call("bash", json.dumps({"command": command}))
    modest = model_call("bash", '{"command": "echo on"}', call_id="call_1")
    provider = Played(calls(greedy), calls(modest), text("done"))
    limits = {"processes": 200, "memory_mb": 300, "open_files": 1000}
    async with opened(
        tmp_path, provider, bash_plugin, config={"model": "played/m", "limits": limits}
    ) as app:
        session = await app.create_session()
        await app.prompt(session.id, HI)
        first, second = tools_of(await app.list_turns(session.id))

    assert isinstance(first.state, Completed)
    assert told in first.state.output
    assert isinstance(second.state, Completed)
    assert said(second.state.output) == "on"


def told_to_a_command(*, closed: bool) -> str:
    """What a command of an ordinary user reads of the program that started it."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            if os.geteuid() == 0:
                os.setgid(pwd.getpwnam("nobody").pw_gid)
                os.setuid(pwd.getpwnam("nobody").pw_uid)
            ctypes.CDLL(None).prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # as at the start of a program
            if closed:
                keep_memory_private()
            command = "tr '\\0' '\\n' <\"/proc/$PPID/environ\" | grep -c =; echo $PATH"
            done = subprocess.run(["/bin/sh", "-c", command], capture_output=True, check=False)
            os.write(writing, done.stdout + done.stderr)
        finally:
            os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading) as answer:
        return answer.read()


def test_t20_a_command_does_not_read_the_environment_of_the_program() -> None:
    # The program itself is protected before it opens an App; root may read everything.
    assert int(told_to_a_command(closed=False).split()[0]) > 0

    closed = told_to_a_command(closed=True)

    assert closed.split()[0] == "0"
    assert "denied" in closed
