"""The table of the fields of hook files, and of where hooks can be; each entry names its test."""

from pegboard_plugins.commandhooks.hookevents import Field

_UNHONOURED = "test_what_is_not_honoured_is_named"

FIELDS: tuple[Field, ...] = (
    Field(name="`command`", test="test_a_call_that_a_hook_denies_does_not_run"),
    Field(name="`args`", note="no shell reads them", test="test_a_hook_with_args_needs_no_shell"),
    Field(name="`matcher`", test="test_a_matcher_chooses_the_calls"),
    Field(name="`if`", test="test_a_rule_chooses_the_calls"),
    Field(name="`timeout`", test="test_hooks_run_at_once_and_are_ended_in_time"),
    Field(
        name="`async`, `asyncRewake`",
        note="the text goes with the next prompt",
        test="test_the_text_of_a_hook_that_wakes_goes_with_the_next_prompt",
    ),
    Field(name="`onFailure`", test="test_a_failure_blocks_where_the_file_says_so"),
    Field(name="`sequential`", test="test_hooks_of_gemini_can_run_one_after_the_other"),
    Field(
        name="`hooks` in the front matter of a skill",
        note="in a session, from its use of the skill on",
        test="test_a_hook_of_a_skill_counts_from_its_use_on",
    ),
    Field(
        name="`once` in the front matter of a skill",
        note="once in a session, for each process",
        test="test_a_hook_with_once_runs_once_per_session",
    ),
    Field(
        name="`hooks` in the front matter of an agent",
        is_honoured=False,
        note="`SubagentStart` and `SubagentStop` have the agent's name as matcher",
        test="test_hooks_of_an_agent_are_named_and_do_not_run",
    ),
    Field(
        name="`once` elsewhere, `statusMessage`, `shell` powershell",
        is_honoured=False,
        test=_UNHONOURED,
    ),
    Field(
        name="the types `http`, `prompt`, `agent`, `mcp_tool`",
        is_honoured=False,
        note="only commands run",
        test=_UNHONOURED,
    ),
)
"""The fields of a hook file with their effect."""
