"""The kit for authors of plugins: what their own tests need of Pegboard.

- `check_tools(await tools_of(module))`: what about a plugin's tools would trouble a model.
- `EventRecorder(app)`: the events of an App, to look at and to wait for.
"""

from pegboard.testing.conformance import Finding as Finding
from pegboard.testing.conformance import check_tools as check_tools
from pegboard.testing.conformance import tools_of as tools_of
from pegboard.testing.recorder import EventRecorder as EventRecorder
