"""A collector of OTLP over HTTP: it reads what is sent as protobuf, and keeps it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, kw_only=True)
class SentSpan:
    """A span as it was sent; times are in nanoseconds since the epoch."""

    id: str
    parent: str
    trace: str
    name: str
    kind: int
    attributes: dict[str, Any]
    events: list[tuple[str, dict[str, Any]]]
    failed: bool
    start_ns: int
    end_ns: int


@dataclass(kw_only=True)
class Collector:
    """What was sent, until now; `hanging` answers nothing any more."""

    url: str = ""
    bodies: list[tuple[str, bytes]] = field(default_factory=list)
    hanging: threading.Event = field(default_factory=threading.Event)

    @classmethod
    @contextmanager
    def listening(cls) -> Iterator["Collector"]:
        """Listen as long as the block lasts."""
        found, released = cls(), threading.Event()

        class Handler(BaseHTTPRequestHandler):
            """Keeps the body of each request."""

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                found.bodies.append((self.path, self.rfile.read(length)))
                if found.hanging.is_set():
                    released.wait()
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        found.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            released.set()
            server.shutdown()
            server.server_close()
            thread.join()

    @property
    def spans(self) -> list[SentSpan]:
        """The spans in the order in which they began."""
        found = []
        for path, body in self.bodies:
            if path == "/v1/traces":
                request = ExportTraceServiceRequest.FromString(body)
                for resource in request.resource_spans:
                    for scope in resource.scope_spans:
                        found += [_span(each) for each in scope.spans]
        return sorted(found, key=lambda span: span.start_ns)

    @property
    def metrics(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """The measurements by name: attributes, and the sum of the values."""
        return self._measured(is_count=False)

    @property
    def counts(self) -> dict[str, list[tuple[dict[str, Any], float]]]:
        """The measurements by name: attributes, and the number of the values of histograms."""
        return self._measured(is_count=True)

    def _measured(self, *, is_count: bool) -> dict[str, list[tuple[dict[str, Any], float]]]:
        found: dict[str, list[tuple[dict[str, Any], float]]] = {}
        for path, body in self.bodies:
            if path == "/v1/metrics":
                request = ExportMetricsServiceRequest.FromString(body)
                for resource in request.resource_metrics:
                    for scope in resource.scope_metrics:
                        for each in scope.metrics:
                            found[each.name] = _points(each, is_count=is_count)
        return found

    @property
    def resource(self) -> dict[str, Any]:
        """The attributes of the process that sent the last spans."""
        body = next(body for path, body in reversed(self.bodies) if path == "/v1/traces")
        request = ExportTraceServiceRequest.FromString(body)
        return _values(request.resource_spans[0].resource.attributes)


def _points(metric: Any, *, is_count: bool) -> list[tuple[dict[str, Any], float]]:
    if metric.HasField("sum"):
        return [(_values(each.attributes), each.as_int) for each in metric.sum.data_points]
    points = metric.histogram.data_points
    return [(_values(each.attributes), each.count if is_count else each.sum) for each in points]


def _span(sent: Any) -> SentSpan:
    return SentSpan(
        id=sent.span_id.hex(),
        parent=sent.parent_span_id.hex(),
        trace=sent.trace_id.hex(),
        name=sent.name,
        kind=sent.kind,
        attributes=_values(sent.attributes),
        events=[(each.name, _values(each.attributes)) for each in sent.events],
        failed=sent.status.code == 2,
        start_ns=sent.start_time_unix_nano,
        end_ns=sent.end_time_unix_nano,
    )


def _values(attributes: Any) -> dict[str, Any]:
    return {each.key: _value(each.value) for each in attributes}


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(each) for each in value.array_value.values]
    return getattr(value, kind)
