"""The kit for authors of plugins: what their own tests need of Pegboard.

- `scripted_app`, `play_turn`: a whole turn of an App of its own, with a model that a test has
  written down; pytest gives them as the fixtures `pegboard_app`, `run_turn` and `tool_call`.
- `check_tools(await tools_of(module))`: what about a plugin's tools would trouble a model.
- `check_hooks`, `check_policy`, `check_provider`, `check_storage`, `check_snapshots`,
  `check_sandbox`: the rules for other things that plugins bring; `()` where all hold.
- `check_provider_faults(make, wire)`: what a provider makes of a server that fails, by a table.
- `EventRecorder(app)`: the events of an App, to look at and to wait for.

Each name is loaded when it is first asked for: a test run that uses none of them pays nothing.
"""

from typing import TYPE_CHECKING

from pegboard import late_names

if TYPE_CHECKING:
    from pegboard_testing.conformance import check_tools as check_tools
    from pegboard_testing.conformance import tools_of as tools_of
    from pegboard_testing.finding import Finding as Finding
    from pegboard_testing.hookchecks import check_hooks as check_hooks
    from pegboard_testing.policychecks import check_policy as check_policy
    from pegboard_testing.provider_faults import check_provider_faults as check_provider_faults
    from pegboard_testing.providerchecks import check_answer as check_answer
    from pegboard_testing.providerchecks import check_provider as check_provider
    from pegboard_testing.recorder import EventRecorder as EventRecorder
    from pegboard_testing.sandboxchecks import check_sandbox as check_sandbox
    from pegboard_testing.scriptedapp import CallRecord as CallRecord
    from pegboard_testing.scriptedapp import ScriptedApp as ScriptedApp
    from pegboard_testing.scriptedapp import TurnRecord as TurnRecord
    from pegboard_testing.scriptedapp import play_turn as play_turn
    from pegboard_testing.scriptedapp import scripted_app as scripted_app
    from pegboard_testing.scriptedmodel import CANCEL as CANCEL
    from pegboard_testing.scriptedmodel import ScriptedModel as ScriptedModel
    from pegboard_testing.scriptedserver import ScriptedServer as ScriptedServer
    from pegboard_testing.snapshotchecks import check_snapshots as check_snapshots
    from pegboard_testing.storagechecks import check_storage as check_storage
    from pegboard_testing.wireframes import ServerFrames as ServerFrames
else:
    __getattr__, __dir__ = late_names(__name__, __file__)
