"""OpenTelemetry spans and metrics of turns, model requests and tool calls.

Nothing is imported or sent unless environment variables such as `OTEL_EXPORTER_OTLP_ENDPOINT` name
a collector, or the program has set up OpenTelemetry itself.
"""

import asyncio
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pegboard import Activity, Host, Plugin, hookimpl

if TYPE_CHECKING:
    from pegboard_otel.exporting import Export

_ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
HOOKS = "PEGBOARD_OTEL_HOOKS"
"""The variable that has hooks of plugins in the trace."""
_PARENT = ("TRACEPARENT", "TRACESTATE")
LIMIT_S = 30.0
"""The first turn waits for the import of OpenTelemetry's SDK on a busy machine."""


class Telemetry:
    """The telemetry of a process, which all open Apps of the process share."""

    def __init__(self) -> None:
        self._apps = 0
        self._export: Export | None = None
        self._opening: asyncio.Lock | None = None
        self._failed = False

    @hookimpl(timeout_s=LIMIT_S)
    async def startup(self, app: Host, plugin: Plugin) -> None:
        """Load the exporter in the background, before the user's first prompt."""
        self._apps += 1
        export = await self._opened(plugin)
        if export is not None and os.environ.get(HOOKS, "").strip().lower() == "true":
            app.hooks.fold_listeners.append(export.spans.note_fold)

    @hookimpl(timeout_s=LIMIT_S)
    async def around_call(
        self, activity: Activity, plugin: Plugin
    ) -> tuple[AbstractContextManager[object], ...] | None:
        """Return a context manager that records a span for a turn, model request or tool call."""
        export = self._export or await self._opened(plugin)
        return None if export is None else (export.spans.around(activity),)

    @hookimpl
    async def text_complete(self, text: str) -> None:
        """Add the model's text to the span of its request, if the user has enabled contents."""
        if self._export is not None:
            self._export.spans.note_text(text)

    @hookimpl
    async def shell_env(self, env: Mapping[str, str]) -> Mapping[str, str] | None:
        """Replace OpenTelemetry variables in a tool's environment by the call's parent span."""
        gone = [name for name in env if name.startswith("OTEL_") or name in _PARENT]
        parent = self._parent()
        if not gone and not parent:
            return None
        return {**{name: env[name] for name in env if name not in gone}, **parent}

    @hookimpl(timeout_s=LIMIT_S)
    async def shutdown(self) -> None:
        """Send the remaining telemetry when the last App of the process closes."""
        self._apps -= 1
        export = self._export
        if self._apps <= 0 and export is not None:
            self._export = None
            await export.aclose()

    async def _opened(self, plugin: Plugin) -> "Export | None":
        """Return the exporter, opened on first use; None if unwanted or not installed."""
        if self._failed or not wanted():
            return None
        self._opening = self._opening or asyncio.Lock()
        async with self._opening:
            if self._export is None and not self._failed:
                try:
                    self._export = await asyncio.to_thread(_open)
                except ImportError as error:
                    self._failed = True
                    install = "pip install 'pegboard-otel[otlp]'"
                    plugin.logger.warning("no telemetry is sent (%s): %s", error, install)
        return self._export

    def _parent(self) -> dict[str, str]:
        """Return the variables that make the current span the parent of a tool's spans."""
        if self._export is None:
            return {}
        from opentelemetry import propagate

        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        found = {name.upper(): value for name, value in carrier.items()}
        return {name: found[name] for name in _PARENT if name in found}


def wanted() -> bool:
    """Return whether telemetry is wanted: a collector is configured, or the program sets it up."""
    if os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true":
        return False
    if any(os.environ.get(name, "").strip() for name in _ENDPOINTS):
        return True
    if "opentelemetry.sdk.trace" not in sys.modules:
        return False
    from pegboard_otel.exporting import has_own_provider

    return has_own_provider()


def _open() -> "Export":
    from pegboard_otel.exporting import open_export

    return open_export()


telemetry = Telemetry()
