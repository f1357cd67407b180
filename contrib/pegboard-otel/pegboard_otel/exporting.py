"""The export of spans and metrics, to the program's own providers or to a collector by OTLP."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress

from opentelemetry import metrics, trace

from pegboard import __version__
from pegboard_otel import content, names
from pegboard_otel.spans import Spans

FLUSH_S = 1.0
"""The longest wait for the last spans at the end of a program."""
PARENT = ("TRACEPARENT", "TRACESTATE")
INSTALL = "`pip install 'pegboard-otel[otlp]'` installs what sends it"


class Export:
    """The exporters for spans and metrics of a process, until `aclose`."""

    def __init__(self, spans: Spans, close: Callable[[], object]) -> None:
        self.spans = spans
        self._close = close

    async def aclose(self) -> None:
        """Send the remaining telemetry, and wait at most `FLUSH_S` seconds for the collector."""
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def work() -> None:
            self._close()
            with suppress(RuntimeError):  # the loop was closed meanwhile
                loop.call_soon_threadsafe(ended.set)

        # A thread of `asyncio.to_thread` would hold the exit of the process.
        threading.Thread(target=work, name="pegboard-otel", daemon=True).start()
        try:
            async with asyncio.timeout(FLUSH_S):
                await ended.wait()
        except TimeoutError:
            return


def open_export() -> Export:
    """Return an export to the program's own providers, or else to the collector in the environment.

    :raises ImportError: when nothing is installed that sends to a collector.
    """
    tracers, meters = trace.get_tracer_provider(), metrics.get_meter_provider()
    close: Callable[[], object] = _nothing
    if not has_own_provider():
        tracers, meters, close = _to_collector()
    version, url = __version__, names.SCHEMA_URL
    opted = {each.strip() for each in os.environ.get(names.OPT_IN, "").split(",")}
    spans = Spans(
        tracers.get_tracer("pegboard", version, schema_url=url),
        meters.get_meter("pegboard", version, schema_url=url),
        capture=content.capture(),
        parent={name.lower(): os.environ[name] for name in PARENT if name in os.environ},
        has_old_names=names.DUPLICATE in opted,
    )
    return Export(spans, close)


def has_own_provider() -> bool:
    """Return whether the program that uses Pegboard has set up OpenTelemetry itself."""
    return "opentelemetry.sdk.trace" in sys.modules and not isinstance(
        trace.get_tracer_provider(), trace.ProxyTracerProvider
    )


def _nothing() -> None:
    """Do nothing, because the program that set up OpenTelemetry also closes it."""


def _to_collector() -> tuple[trace.TracerProvider, metrics.MeterProvider, Callable[[], object]]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    own = {"service.version": __version__}
    if "OTEL_SERVICE_NAME" not in os.environ:
        own["service.name"] = "pegboard"
    resource = Resource.create(own)
    tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
    if _wants("TRACES"):
        tracers.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if _wants("METRICS") else []
    meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)

    def close() -> None:
        limit_ms = int(FLUSH_S * 1000)
        tracers.force_flush(limit_ms)
        meters.force_flush(limit_ms)
        tracers.shutdown()
        meters.shutdown(limit_ms)

    return tracers, meters, close


def _wants(signal: str) -> bool:
    """Return whether the environment names a collector for a signal and does not disable it."""
    if os.environ.get(f"OTEL_{signal}_EXPORTER", "otlp").strip() == "none":
        return False
    places = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT")
    return any(os.environ.get(name, "").strip() for name in places)
