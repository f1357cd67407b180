"""Which test fires each hook through an App, and the hooks that nothing calls."""

_RUN = "tests/contract/test_hooks_fired.py::test_a_run_passes_through_these_hooks"
_COMPACTION = (
    "tests/core/engine/compaction/test_summary.py"
    "::test_the_newest_compactor_acts_with_the_prompt_that_plugins_have_changed"
)
_MODELS = "tests/core/engine/test_models.py::test_facts_fill_what_a_provider_leaves_unsaid"

_ENCLOSED = (
    "tests/plugins/sandbox/test_enclosure.py::test_the_first_sandbox_that_can_hold_the_level_acts"
)
_CHAT = "tests/plugins/chat/test_additions.py::test_what_a_plugin_adds_is_there"

FIRED_BY = {
    "register_hooks": "tests/core/loading/test_brought_hooks.py::test_a_plugin_calls_its_own_hook",
    "register_tools": _RUN,
    "register_providers": _RUN,
    "wrap_providers": (
        "tests/plugins/cassette/test_cassette.py::test_what_was_recorded_is_played_without_a_model"
    ),
    "register_permissions": (
        "tests/core/loading/test_permissions.py"
        "::test_a_plugin_s_rules_hold_until_the_user_says_otherwise"
    ),
    "register_agents": _RUN,
    "register_commands": _RUN,
    "register_compactors": _COMPACTION,
    "session_compacting": _COMPACTION,
    "register_sandboxes": _ENCLOSED,
    "register_encloser": _ENCLOSED,
    "register_budget": _RUN,
    "register_processes": _RUN,
    "register_files": _RUN,
    "register_snapshots": _RUN,
    "register_logins": (
        "tests/docs/test_sign_in.py::test_a_sign_in_opens_its_provider_and_is_renewed"
    ),
    "register_search_backends": (
        "tests/plugins/test_websearch.py::test_in_an_app_the_backend_of_another_plugin_searches"
    ),
    "services": "tests/plugins/server/test_services.py::test_a_plugin_tells_what_it_runs",
    "register_keystore": _RUN,
    "register_storage": _RUN,
    "config_load": _RUN,
    "chat_message": _RUN,
    "expand_file": (
        "tests/docs/test_hook_examples.py"
        "::test_a_file_of_a_prompt_is_what_a_plugin_makes_of_its_url"
    ),
    "chat_messages_transform": _RUN,
    "chat_system_transform": _RUN,
    "chat_params": _RUN,
    "chat_headers": _RUN,
    "text_complete": _RUN,
    "permission_ask": _RUN,
    "permission_decided": _RUN,
    "tool_definition": _RUN,
    "tool_execute_before": _RUN,
    "tool_execute_after": _RUN,
    "render_tool": (
        "tests/terminal/test_blocks.py"
        "::test_a_plugins_block_comes_before_the_tools_own_and_is_made_once"
    ),
    "shell_env": _RUN,
    "command_execute_before": (
        "tests/frontend/test_slashcommand.py"
        "::test_a_plugin_changes_the_parts_of_a_command_behind_what_is_stored"
    ),
    "register_routes": (
        "tests/plugins/server/test_resources.py::test_a_plugin_adds_routes_under_its_name"
    ),
    "register_slash": _CHAT,
    "register_keys": _CHAT,
    "register_themes": _CHAT,
    "status_items": _CHAT,
    "footer_widget": _CHAT,
    "complete": _CHAT,
    "model_resolve": _RUN,
    "model_facts": _MODELS,
    "model_names": _MODELS,
    "event": _RUN,
    "startup": _RUN,
    "shutdown": _RUN,
}
"""Hook to test."""

WITHOUT_CALLER: dict[str, str] = {}
"""Hooks that are promised for a part that is not there; as soon as it is, it needs a test."""
