"""The kit for authors of plugins: helpers, fixtures and checks for their own tests.

- `scripted_app`, `play_turn`: whole turns in an App of the test, with a model that follows a
  script; in pytest also as the fixtures `pegboard_app`, `run_turn` and `tool_call`.
- `check_tools(await tools_of(module))`: faults of a plugin's tools that would trouble a model.
- `check_hooks`, `check_policy`, `check_provider`, `check_storage`, `check_shared_storage`,
  `check_snapshots`, `check_sandbox`: faults of other things that plugins add; `()` if
  there are none.
- `check_provider_faults(make, wire)`: how a provider handles a server that fails.
- `EventRecorder(app)`: records the events of an App, and waits for them.
"""

from pegboard import late_names

__getattr__, __dir__ = late_names(
    __name__,
    {
        "pegboard.testing.conformance": (
            "check_tools",
            "tools_of",
        ),
        "pegboard.testing.finding": ("Finding",),
        "pegboard.testing.hookchecks": ("check_hooks",),
        "pegboard.testing.policychecks": ("check_policy",),
        "pegboard.testing.provider_faults": ("check_provider_faults",),
        "pegboard.testing.providerchecks": (
            "check_answer",
            "check_provider",
        ),
        "pegboard.testing.recorder": ("EventRecorder",),
        "pegboard.testing.sandboxchecks": ("check_sandbox",),
        "pegboard.testing.scriptedapp": (
            "ScriptedApp",
            "play_turn",
            "scripted_app",
        ),
        "pegboard.testing.scriptedmodel": (
            "CANCEL",
            "ScriptedModel",
        ),
        "pegboard.testing.scriptedserver": ("ScriptedServer",),
        "pegboard.testing.sharedstoragechecks": ("check_shared_storage",),
        "pegboard.testing.snapshotchecks": ("check_snapshots",),
        "pegboard.testing.storagechecks": ("check_storage",),
        "pegboard.testing.turnrecord": (
            "CallRecord",
            "TurnRecord",
        ),
        "pegboard.testing.wireframes": ("ServerFrames",),
    },
)
