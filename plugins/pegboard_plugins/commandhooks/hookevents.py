"""The table of other agents' hook events and their output fields; each entry names its test."""

import msgspec

_UNHONOURED = "test_output_that_is_not_honoured_is_named_once"
_NEVER = "test_an_event_that_never_fires_is_named"


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A field of a hook's output: its JSON `keys`, and whether Pegboard honours the field."""

    name: str
    keys: tuple[str, ...] = ()
    is_honoured: bool = True
    note: str = ""
    test: str


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A hook event, with its name in each product or ""; an event without `runs` never fires."""

    claude: str = ""
    codex: str = ""
    gemini: str = ""
    runs: str = ""
    note: str = ""
    fields: tuple[Field, ...] = ()
    test: str = _NEVER

    @property
    def name(self) -> str:
        """The event's name in Pegboard."""
        return self.claude or self.codex or self.gemini


def _unhonoured(*keys: str, note: str) -> Field:
    names = ", ".join(f"`{key}`" for key in keys)
    return Field(name=names, keys=keys, is_honoured=False, note=note, test=_UNHONOURED)


_DECISION = ("decision",)
_CONTEXT = "additionalContext"

_STOPPING = Field(
    name="`continue` false",
    keys=("continue",),
    note="the turn ends as stopped by the hook; a run has exit code 5",
    test="test_a_hook_that_says_stop_ends_the_turn",
)
_TITLE = Field(name="`sessionTitle`", keys=("sessionTitle",), test="test_a_hook_names_the_session")

COMMON = Row(
    claude="all",
    codex="all",
    gemini="all",
    runs="(fields of every event)",
    test="test_a_hook_is_given_their_names_and_absolute_paths",
    fields=(
        Field(
            name="`systemMessage`",
            keys=("systemMessage",),
            note="a warning to the user",
            test="test_a_message_for_the_user_is_a_warning",
        ),
        Field(
            name="`suppressOutput`",
            keys=("suppressOutput",),
            note="no output of a hook is displayed",
            test="test_a_message_for_the_user_is_a_warning",
        ),
        _unhonoured("terminalSequence", note="a hook has no terminal"),
        _unhonoured("async", "asyncTimeout", note='`"async": true` in the hook file is'),
    ),
)

ROWS: tuple[Row, ...] = (
    COMMON,
    Row(
        claude="PreToolUse",
        codex="PreToolUse",
        gemini="BeforeTool",
        runs="before each tool call",
        test="test_a_matcher_chooses_the_calls",
        fields=(
            Field(name="exit code 2", test="test_exit_code_2_blocks_with_the_text_of_stderr"),
            Field(
                name="`permissionDecision` deny, ask, defer; `decision` block, deny, ask",
                keys=("permissionDecision", "permissionDecisionReason", *_DECISION),
                note="`defer` counts as `ask`",
                test="test_a_call_that_a_hook_denies_does_not_run",
            ),
            Field(
                name="`permissionDecision` allow; `decision` approve, allow",
                is_honoured=False,
                note="a hook tightens and never loosens",
                test="test_an_allow_of_a_hook_loosens_nothing",
            ),
            Field(
                name="`updatedInput`, `tool_input`",
                keys=("updatedInput", "tool_input"),
                note="merged with the arguments; of several the last counts",
                test="test_a_hook_changes_the_arguments_of_a_call",
            ),
            Field(
                name=f"`{_CONTEXT}`",
                keys=(_CONTEXT,),
                note="stands behind the result",
                test="test_words_before_a_call_stand_behind_its_result",
            ),
            _STOPPING,
        ),
    ),
    Row(
        claude="PermissionRequest",
        codex="PermissionRequest",
        runs="where the rules would ask the user",
        test="test_a_request_is_told_with_the_arguments_of_its_call",
        fields=(
            Field(
                name="`decision.behavior` deny, `message`; exit code 2",
                keys=_DECISION,
                test="test_a_request_that_is_asked_about_can_be_denied_and_not_allowed",
            ),
            Field(
                name="`decision.behavior` allow",
                is_honoured=False,
                note="a hook never loosens",
                test="test_a_request_that_is_asked_about_can_be_denied_and_not_allowed",
            ),
            Field(
                name="`decision.interrupt`, `continue` false",
                keys=("continue",),
                note="the turn ends",
                test="test_a_denied_request_can_end_the_turn",
            ),
            _unhonoured("updatedInput", "updatedPermissions", note="`PreToolUse` can change input"),
        ),
    ),
    Row(
        claude="PermissionDenied",
        runs="after the user said no",
        test="test_a_program_of_the_user_hears_of_a_rejected_request",
        fields=(_unhonoured("retry", note="the user's no counts"),),
    ),
    Row(
        claude="PostToolUse",
        codex="PostToolUse",
        gemini="AfterTool",
        runs="after each call that succeeded",
        test="test_a_hook_adds_to_a_result",
        fields=(
            Field(
                name=f"`{_CONTEXT}`; `decision` block with `reason`; exit code 2",
                keys=(_CONTEXT, *_DECISION),
                note="text behind the result; a `block` of Gemini CLI takes its place",
                test="test_a_hook_adds_to_a_result",
            ),
            Field(
                name="`updatedToolOutput`, `tool_output`",
                keys=("updatedToolOutput", "tool_output"),
                note="takes the place of the result",
                test="test_a_hook_adds_to_a_result",
            ),
            Field(
                name="`updatedMCPToolOutput`",
                keys=("updatedMCPToolOutput",),
                note="for tools of MCP servers",
                test="test_the_output_of_a_tool_of_a_server_can_be_replaced",
            ),
            _STOPPING,
        ),
    ),
    Row(
        claude="PostToolUseFailure",
        runs="after each call that failed",
        test="test_a_hook_says_more_about_a_call_that_failed",
        fields=(
            Field(
                name=f"`{_CONTEXT}`; `decision` block with `reason`; exit code 2",
                keys=(_CONTEXT, *_DECISION),
                note="text behind the error",
                test="test_a_hook_says_more_about_a_call_that_failed",
            ),
            _STOPPING,
        ),
    ),
    Row(
        claude="PostToolBatch",
        runs="before the request that follows a step's calls",
        test="test_a_hook_adds_to_the_calls_of_a_step",
        fields=(
            Field(
                name=f"`{_CONTEXT}`",
                keys=(_CONTEXT,),
                note="text behind the last result",
                test="test_a_hook_adds_to_the_calls_of_a_step",
            ),
            Field(
                name="exit code 2; `decision` block; `continue` false",
                keys=(*_DECISION, "continue"),
                note="the turn ends",
                test="test_a_hook_ends_the_turn_after_the_calls_of_a_step",
            ),
        ),
    ),
    Row(
        claude="UserPromptSubmit",
        codex="UserPromptSubmit",
        gemini="BeforeAgent",
        runs="for each prompt of the user",
        test="test_words_behind_a_prompt_reach_the_model",
        fields=(
            Field(
                name=f"`{_CONTEXT}`; plain output",
                keys=(_CONTEXT,),
                note="text for the model",
                test="test_words_behind_a_prompt_reach_the_model",
            ),
            Field(
                name="`decision` block; exit code 2; `continue` false",
                keys=(*_DECISION, "continue"),
                note="the turn ends before a request; no model reads the stored prompt",
                test="test_a_prompt_that_a_hook_refuses_is_not_read_by_the_model",
            ),
            _TITLE,
        ),
    ),
    Row(
        claude="UserPromptExpansion",
        runs="for each slash command of the user",
        test="test_a_hook_adds_to_a_slash_command",
        fields=(
            Field(
                name=f"`{_CONTEXT}`; plain output",
                keys=(_CONTEXT,),
                note="text for the model",
                test="test_a_hook_adds_to_a_slash_command",
            ),
            Field(
                name="`decision` block; exit code 2; `continue` false",
                keys=(*_DECISION, "continue"),
                note="as of a prompt",
                test="test_a_hook_refuses_a_slash_command",
            ),
        ),
    ),
    Row(
        claude="SessionStart",
        codex="SessionStart",
        gemini="SessionStart",
        runs=(
            "with the first prompt of a session in this process, and after a summary;"
            " `source` is startup, resume or compact"
        ),
        test="test_a_session_starts_again_after_a_summary",
        fields=(
            Field(
                name=f"`{_CONTEXT}`; plain output",
                keys=(_CONTEXT,),
                note="text for the model",
                test="test_words_behind_a_prompt_reach_the_model",
            ),
            Field(
                name="`CLAUDE_ENV_FILE`",
                note="its `export` lines are added to the environment of tools",
                test="test_what_a_session_s_start_exports_is_in_the_environment_of_tools",
            ),
            _TITLE,
            Field(
                name="`reloadSkills`",
                keys=("reloadSkills",),
                note="skills are read at each use",
                test="test_output_with_an_effect_is_not_named",
            ),
            _unhonoured(
                *("initialUserMessage", "watchPaths", "continue"),
                note="a prompt comes from the user",
            ),
        ),
    ),
    Row(
        claude="SubagentStart",
        codex="SubagentStart",
        runs="with the first prompt of a subagent",
        test="test_a_subagent_has_hooks_of_its_own",
        fields=(
            Field(
                name=f"`{_CONTEXT}`",
                keys=(_CONTEXT,),
                note="text for the model",
                test="test_a_subagent_has_hooks_of_its_own",
            ),
        ),
    ),
    Row(
        claude="Stop",
        codex="Stop",
        gemini="AfterAgent",
        runs="when the model has answered without a further call",
        test="test_a_hook_that_only_watches_runs",
        fields=(
            Field(
                name=f"`decision` block with `reason`; exit code 2; `{_CONTEXT}`",
                keys=(*_DECISION, _CONTEXT),
                note="a text with which the turn goes on, 8 times in a row at most",
                test="test_a_hook_has_the_turn_go_on",
            ),
            Field(
                name="`continue` false",
                keys=("continue",),
                note="the turn ends, whatever other hooks want",
                test="test_of_two_hooks_the_one_that_ends_the_turn_wins",
            ),
            _unhonoured("clearContext", note="a session keeps what it has"),
        ),
    ),
    Row(
        claude="SubagentStop",
        codex="SubagentStop",
        runs="when a subagent has answered",
        test="test_a_subagent_goes_on_by_a_hook_of_its_own",
        fields=(
            Field(
                name=f"`decision` block with `reason`; exit code 2; `{_CONTEXT}`",
                keys=(*_DECISION, _CONTEXT),
                note="as `Stop`",
                test="test_a_subagent_goes_on_by_a_hook_of_its_own",
            ),
            Field(
                name="`continue` false",
                keys=("continue",),
                note="as `Stop`",
                test="test_of_two_hooks_the_one_that_ends_the_turn_wins",
            ),
        ),
    ),
    Row(
        claude="StopFailure",
        runs="when a turn has failed",
        test="test_a_turn_that_fails_or_is_stopped_is_told",
    ),
    Row(
        codex="Interrupt",
        runs="when the user has stopped a turn",
        test="test_a_turn_that_fails_or_is_stopped_is_told",
    ),
    Row(
        claude="PreCompact",
        codex="PreCompact",
        gemini="PreCompress",
        runs="before a summary",
        test="test_words_before_a_summary_are_instructions",
        fields=(
            Field(
                name=f"plain output; `{_CONTEXT}`",
                keys=(_CONTEXT,),
                note="further instructions",
                test="test_words_before_a_summary_are_instructions",
            ),
            _unhonoured("decision", "continue", note="a full window cannot wait"),
        ),
    ),
    Row(
        claude="PostCompact",
        codex="PostCompact",
        runs="after a summary",
        test="test_a_summary_is_told_when_it_is_there",
    ),
    Row(
        claude="Notification",
        gemini="Notification",
        runs="when the user is asked for a permission or by a question",
        test="test_the_user_s_programs_hear_that_the_user_is_asked",
        fields=(_unhonoured(_CONTEXT, note="the model waits for the user"),),
    ),
    Row(
        claude="SessionEnd",
        codex="SessionEnd",
        gemini="SessionEnd",
        runs="when the program ends; all of them have 1.5 s",
        test="test_a_hook_that_only_watches_runs",
    ),
    Row(codex="preModelRequest", gemini="BeforeModel", note="`chat_params` in Python is the way"),
    Row(codex="postModelRequest", gemini="AfterModel", note="`text_complete` in Python is the way"),
    Row(gemini="BeforeToolSelection", note="`tool_definition` in Python is the way"),
    *(
        Row(claude=name, note="no question of an MCP server passes here")
        for name in ("Elicitation", "ElicitationResult")
    ),
    Row(claude="PreSkillShellCommand", note="a snippet is a call of `bash`: `PreToolUse`"),
    *(
        Row(claude=name, note="Pegboard has no such event")
        for name in (
            *("PreModelSwitch", "PostModelSwitch", "ConfigChange", "InstructionsLoaded"),
            *("CwdChanged", "FileChanged", "DirectoryAdded", "MessageDisplay", "Setup"),
            *("TeammateIdle", "TaskCreated", "TaskCompleted", "WorktreeCreate", "WorktreeRemove"),
        )
    ),
)
