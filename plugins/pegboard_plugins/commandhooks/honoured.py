"""Which events of other agents' hooks are honoured, and what of their output."""

import msgspec


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """Output of a hook that has an effect, or has none; `test` holds it."""

    name: str
    is_honoured: bool = True
    note: str = ""
    test: str = ""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """An event by its names, empty where a product has none."""

    claude: str
    codex: str = ""
    gemini: str = ""
    runs: str
    fields: tuple[Field, ...] = ()


_CONTEXT = "text for the model"

ROWS: tuple[Row, ...] = (
    Row(
        claude="PreToolUse",
        codex="PreToolUse",
        gemini="BeforeTool",
        runs="before each tool call",
        fields=(
            Field(name="exit code 2", test="test_exit_code_2_blocks_with_the_text_of_stderr"),
            Field(
                name="`permissionDecision` deny, ask, defer; `decision` block, deny",
                note="`defer` counts as `ask`",
                test="test_a_call_that_a_hook_denies_does_not_run",
            ),
            Field(
                name="`permissionDecision` allow; `decision` approve",
                is_honoured=False,
                note="a hook tightens and never loosens",
                test="test_an_allow_of_a_hook_loosens_nothing",
            ),
            Field(
                name="`updatedInput`, `tool_input`",
                note="merged with the arguments; of several the last counts",
                test="test_a_hook_changes_the_arguments_of_a_call",
            ),
            Field(
                name="`additionalContext`",
                note="stands behind the result",
                test="test_words_before_a_call_stand_behind_its_result",
            ),
            Field(
                name="`continue` false, `stopReason`",
                test="test_a_hook_that_says_stop_ends_the_turn",
            ),
        ),
    ),
    Row(
        claude="PermissionRequest",
        codex="PermissionRequest",
        runs="where the rules would ask the user",
        fields=(
            Field(
                name="`decision.behavior` deny, `message`",
                test="test_a_request_that_is_asked_about_can_be_denied_and_not_allowed",
            ),
            Field(
                name="`decision.behavior` allow",
                is_honoured=False,
                note="a hook never loosens",
                test="test_a_request_that_is_asked_about_can_be_denied_and_not_allowed",
            ),
            Field(name="`updatedInput`, `updatedPermissions`, `interrupt`", is_honoured=False),
        ),
    ),
    Row(
        claude="PermissionDenied",
        runs="after the user said no",
        fields=(Field(name="`retry`", is_honoured=False),),
    ),
    Row(
        claude="PostToolUse",
        codex="PostToolUse",
        gemini="AfterTool",
        runs="after each call that succeeded",
        fields=(
            Field(
                name="`additionalContext`; `decision` block with `reason`; exit code 2",
                note=_CONTEXT,
                test="test_a_hook_adds_to_a_result",
            ),
            Field(
                name="`updatedToolOutput`, `tool_output`",
                note="takes the place of the result",
                test="test_a_hook_adds_to_a_result",
            ),
            Field(name="`updatedMCPToolOutput`", is_honoured=False),
        ),
    ),
    Row(
        claude="PostToolUseFailure",
        runs="after each call that failed",
        fields=(Field(name="`additionalContext`", is_honoured=False),),
    ),
    Row(
        claude="UserPromptSubmit",
        codex="UserPromptSubmit",
        gemini="BeforeAgent",
        runs="for each prompt of the user",
        fields=(
            Field(
                name="`additionalContext`; plain output",
                note=_CONTEXT,
                test="test_words_behind_a_prompt_reach_the_model",
            ),
            Field(
                name="`decision` block; exit code 2",
                note="the prompt stays stored, and the model reads the reason in its place",
                test="test_a_prompt_that_a_hook_refuses_is_not_read_by_the_model",
            ),
            Field(name="`sessionTitle`", is_honoured=False),
        ),
    ),
    Row(
        claude="SessionStart",
        codex="SessionStart",
        gemini="SessionStart",
        runs="with the first prompt of a session in this process; `source` is startup or resume",
        fields=(
            Field(
                name="`additionalContext`; plain output",
                note=_CONTEXT,
                test="test_words_behind_a_prompt_reach_the_model",
            ),
            Field(name="`initialUserMessage`, `sessionTitle`, `watchPaths`", is_honoured=False),
        ),
    ),
    Row(
        claude="SubagentStart",
        codex="SubagentStart",
        runs="with the first prompt of a subagent",
        fields=(
            Field(
                name="`additionalContext`",
                note=_CONTEXT,
                test="test_a_subagent_has_hooks_of_its_own",
            ),
        ),
    ),
    Row(
        claude="PreCompact",
        codex="PreCompact",
        gemini="PreCompress",
        runs="before a summary",
        fields=(
            Field(
                name="plain output; `additionalContext`",
                note="further instructions",
                test="test_words_before_a_summary_are_instructions",
            ),
            Field(name="`decision` block; exit code 2", is_honoured=False),
        ),
    ),
    Row(
        claude="PostCompact",
        codex="PostCompact",
        runs="after a summary",
    ),
    Row(
        claude="Notification",
        gemini="Notification",
        runs="when the user is asked for a permission or by a question",
        fields=(Field(name="`additionalContext`", is_honoured=False),),
    ),
    Row(
        claude="Stop",
        codex="Stop",
        gemini="AfterAgent",
        runs="when a turn has ended",
        fields=(
            Field(name="`decision` block; exit code 2; `additionalContext`", is_honoured=False),
        ),
    ),
    Row(
        claude="SubagentStop",
        codex="SubagentStop",
        runs="when a subagent's turn has ended",
        fields=(Field(name="`decision` block; exit code 2", is_honoured=False),),
    ),
    Row(claude="StopFailure", runs="when a turn has failed"),
    Row(
        claude="SessionEnd",
        codex="SessionEnd",
        gemini="SessionEnd",
        runs="when the program ends; all of them have 1.5 s",
    ),
)

EVENTS = frozenset(row.claude for row in ROWS)
"""By Claude Code's names."""
GEMINI_EVENTS = {row.gemini: row.claude for row in ROWS if row.gemini}


def page() -> str:
    """Return the table of the docs, as Markdown."""
    lines = [
        "| Claude Code | Codex | Gemini CLI | runs | output | honoured |",
        "|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        names = (row.claude, row.codex or "-", row.gemini or "-", row.runs)
        for place, field in enumerate(row.fields or (Field(name="-", note="it has none"),)):
            first = names if place == 0 else ("", "", "", "")
            word = "yes" if field.is_honoured else "no"
            effect = f"{word}: {field.note}" if field.note else word
            lines.append(f"| {' | '.join((*first, field.name, effect))} |")
    return "\n".join(lines)
