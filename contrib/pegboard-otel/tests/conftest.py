"""The plugin is found next to its tests where it is not installed; a collector is a fixture."""

import sys
import threading
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collector import Collector

HERE = Path(__file__).parent
for _folder in (HERE, HERE.parent):
    if str(_folder) not in sys.path:
        sys.path.insert(0, str(_folder))

if find_spec("opentelemetry.exporter.otlp.proto.http") is None:
    collect_ignore_glob = ["test_*.py"]  # nothing is installed that exports


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator["Collector"]:
    """Start a collector on this machine and name it in the environment.

    Threads that still export end with it: they draw random numbers, which disturbs other tests.
    """
    from collector import Collector

    for name in ("OTEL_SDK_DISABLED", "TRACEPARENT", "TRACESTATE", "OTEL_SERVICE_NAME"):
        monkeypatch.delenv(name, raising=False)
    with Collector.listening() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        yield found
    for thread in threading.enumerate():
        if thread.name.startswith(("Otel", "pegboard-otel")):
            thread.join(60)
            assert not thread.is_alive(), thread.name
